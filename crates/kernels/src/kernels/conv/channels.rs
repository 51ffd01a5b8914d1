//! Tiles whose vectors run over destination channels and whose rows are neighbouring outputs: no lane
//! is wasted on rows of outputs that no vector divides. Bits are those of the other tiles.

use super::geometry::{AXES, Class};
use super::runs::Runs;
use crate::kernels::epilogue::{Area, Tail};
use crate::kernels::gemm::microkernel::{A_BY_TABLE, Start, Tile, span, tile};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::transpose::gather_columns;
use crate::simd::{LANES, Simd, WithSimd};

/// Tiles that continue together through the blocks of steps.
pub(super) const CHUNK: usize = 32;
/// Steps times vectors of one block of weights: half of a second-level cache of 1 MB.
const BLOCK: usize = 4096;

/// The most elements that the accumulators of a chunk fill.
pub(super) fn chunk_elements<E: Real>(isa: crate::simd::Isa) -> usize {
    CHUNK * E::accumulators(isa) * LANES
}

/// The tiles of one class of one unit that one part computes.
#[derive(Clone, Copy)]
pub(super) struct ChannelTiles<'a, E> {
    pub(super) class: &'a Class,
    pub(super) runs: Runs,
    /// The tiles of a run.
    pub(super) panels: RowPanels,
    pub(super) steps: usize,
    /// Packed panels of channels.
    pub(super) weights: *const E,
    pub(super) table: *const u32,
    pub(super) source: *const E,
    pub(super) bias: Option<*const E>,
    pub(super) channels: usize,
    pub(super) relu: bool,
    pub(super) epilogue: Option<Tail<'a, E>>,
    pub(super) first_channel: usize,
    pub(super) destination: *mut E,
    pub(super) plane: usize,
    pub(super) sizes: [usize; AXES],
    /// Room for [`chunk_elements`].
    pub(super) accumulators: *mut E,
    /// Tiles, and vectors of channels.
    pub(super) tiles: (usize, usize),
    pub(super) vectors: (usize, usize),
}

impl<E: Real> WithSimd for ChannelTiles<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let most = span(E::accumulators(S::ISA), self.panels.rows(0));
        let mut first = self.tiles.0;
        while first < self.tiles.1 {
            let end = (first + CHUNK).min(self.tiles.1);
            let mut v = self.vectors.0;
            while v < self.vectors.1 {
                let wide = 1usize << (self.vectors.1 - v).min(most).ilog2();
                let block = (BLOCK / wide).min(self.steps.max(1));
                let mut k0 = 0;
                loop {
                    let steps = (self.steps - k0).min(block);
                    for index in first..end {
                        let slot = (index - first, end - first);
                        // SAFETY: the tile and the vectors belong to this part.
                        unsafe { self.one(s, index, slot, v, wide, k0, steps) };
                    }
                    k0 += steps;
                    if k0 == self.steps {
                        break;
                    }
                }
                v += wide;
            }
            first = end;
        }
    }
}

impl<E: Real> ChannelTiles<'_, E> {
    #[inline(always)]
    unsafe fn one<S: Simd>(
        &self,
        s: S,
        index: usize,
        (slot, tiles): (usize, usize),
        v: usize,
        wide: usize,
        k0: usize,
        steps: usize,
    ) {
        let width = E::vectors(S::ISA);
        let (run, panel) = (index / self.panels.count, index % self.panels.count);
        let (at, rows) = (self.panels.start(panel), self.panels.rows(panel));
        let channel = v * LANES;
        let n = (self.channels - channel).min(wide * LANES);
        let stride = wide * LANES;
        let last = k0 + steps == self.steps;
        // Outputs without taps read nothing, and the source may end before their position.
        let position = if self.steps == 0 { 0 } else { self.runs.position(run, at) };
        // SAFETY: inside the operands, and the slot inside the accumulators' room.
        unsafe {
            let part = self.accumulators.add(slot * E::accumulators(S::ISA) * LANES);
            let inside = v % width * LANES;
            let step = width * LANES;
            let from = (v / width * self.steps + k0) * step + inside;
            let each = step.div_ceil(tiles);
            let start = if k0 > 0 {
                Start::Load { ptr: part.cast_const(), stride: stride as isize }
            } else {
                match self.bias {
                    Some(bias) => Start::Load { ptr: bias.add(channel), stride: 0 },
                    None => Start::Zero,
                }
            };
            // What reads another input waits until the outputs are at their place.
            let in_place = self.epilogue.filter(|e| e.finish.residual.is_none());
            let after =
                self.epilogue.and_then(|e| if in_place.is_some() { e.rest } else { Some(e.whole) });
            let t = Tile {
                k: steps,
                a: self.source.add(position),
                b: self.weights.add(from),
                step: step as isize,
                table: self.table.add(k0),
                // The block of weights that follows comes while the tiles of this one are computed.
                ahead: self.weights.wrapping_add(from + step * steps + each * slot * steps),
                ahead_step: each as isize,
                panel: (self.steps * width * LANES) as isize,
                start,
                c: part,
                c_stride: stride as isize,
                n,
                relu: self.relu && last,
                finish: in_place
                    .filter(|_| last)
                    .map(|e| e.finish.at(self.first_channel + channel)),
            };
            tile::<S, E, A_BY_TABLE>(s, rows, wide, &t);
            if !last {
                return;
            }
            let offset = self.runs.offset(self.class, self.sizes, run, at);
            let to = self.destination.add(channel * self.plane + offset);
            let step = self.class.step[2];
            if step == 1 {
                let column = |r: usize| part.add(r * stride).cast_const();
                gather_columns(to, self.plane, rows, n, true, column);
                if let Some(epilogue) = after {
                    let area = Area {
                        at: to.cast(),
                        stride: self.plane,
                        rows: n,
                        n: rows,
                        channel: self.first_channel + channel,
                        channel_step: 1,
                    };
                    epilogue.apply(S::ISA, area);
                }
                return;
            }
            for r in 0..rows {
                for j in 0..n {
                    *to.add(j * self.plane + r * step) = *part.add(r * stride + j);
                }
            }
        }
    }
}
