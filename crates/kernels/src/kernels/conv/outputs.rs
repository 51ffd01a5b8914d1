//! Tiles whose vectors run over neighbouring outputs, read from the source through a table of offsets.

use super::geometry::{AXES, Class};
use super::runs::Runs;
use crate::kernels::epilogue::{Area, Epilogue, Tail};
use crate::kernels::gemm::microkernel::{Aligned, B_BY_TABLE, Start, TABLE_TAIL, Tile, span, tile};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::real::Real;
use crate::simd::{LANES, Simd, WithSimd};
use std::mem::MaybeUninit;

/// Bytes of packed weights up to which all of them pass over one tile of outputs before the next.
const WEIGHTS_IN_CACHE: usize = 384 << 10;

/// The tiles of one class of one unit that one part computes.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'a, E> {
    pub(super) class: &'a Class,
    pub(super) runs: Runs,
    pub(super) panels: RowPanels,
    pub(super) steps: usize,
    pub(super) weights: *const E,
    pub(super) table: *const u32,
    pub(super) source: *const E,
    /// Elements of the source from which whole vectors may be read.
    pub(super) readable: usize,
    pub(super) reach: usize,
    /// Room for the columns of one tile and their table.
    pub(super) tail: *mut E,
    pub(super) tail_table: *mut u32,
    pub(super) start: Start<E>,
    pub(super) relu: bool,
    pub(super) epilogue: Option<Tail<'a, E>>,
    pub(super) first_channel: usize,
    pub(super) destination: *mut E,
    pub(super) plane: usize,
    pub(super) sizes: [usize; AXES],
    /// Chunks of the runs, and row panels.
    pub(super) chunks: (usize, usize),
    pub(super) rows: (usize, usize),
}

impl<E: Real> WithSimd for Tiles<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let most = span(E::accumulators(S::ISA), self.panels.rows(0));
        let per_run = self.runs.length.div_ceil(most * LANES);
        let weights = self.panels.start(self.panels.count) * self.steps * size_of::<E>();
        let outer_rows = weights > WEIGHTS_IN_CACHE;
        let (chunks, rows) = (self.chunks, self.rows);
        let (outer, inner) = if outer_rows { (rows, chunks) } else { (chunks, rows) };
        for o in outer.0..outer.1 {
            for i in inner.0..inner.1 {
                let (chunk, panel) = if outer_rows { (i, o) } else { (o, i) };
                let (run, at) = (chunk / per_run, chunk % per_run * most * LANES);
                let mut at = at;
                let end = (at + most * LANES).min(self.runs.length);
                while at < end {
                    let left = (end - at).div_ceil(LANES);
                    let wide = (1usize << left.ilog2()).min(most);
                    // SAFETY: the chunk and the panel belong to this part.
                    unsafe { self.tile(s, run, at, (end - at).min(wide * LANES), wide, panel) };
                    at += wide * LANES;
                }
            }
        }
    }
}

impl<E: Real> Tiles<'_, E> {
    #[inline(always)]
    unsafe fn tile<S: Simd>(
        &self,
        s: S,
        run: usize,
        at: usize,
        n: usize,
        wide: usize,
        panel: usize,
    ) {
        const LARGEST: usize = 28 * LANES;
        let r = &self.runs;
        let (row, rows) = (self.panels.start(panel), self.panels.rows(panel));
        // Outputs without taps read nothing, and the source may end before their position.
        let position = if self.steps == 0 { 0 } else { r.position(run, at) };
        // SAFETY: offsets stay inside the source (or its copy with slack) and the destination.
        unsafe {
            let mut t = Tile {
                k: self.steps,
                a: self.weights.add(row * self.steps),
                b: self.source.add(position),
                step: 0,
                table: self.table,
                ahead: std::ptr::null(),
                ahead_step: 0,
                panel: 0,
                start: self.start.at(row, 0),
                c: self.destination,
                c_stride: self.plane as isize,
                n,
                relu: self.relu,
                finish: None,
            };
            let mut table = self.table;
            if self.steps > 0 && position + self.reach + wide * LANES > self.readable {
                self.gather(position, n, wide * LANES);
                t.b = self.tail;
                table = self.tail_table;
            }
            t.table = table;
            let mut part = MaybeUninit::<Aligned<[E; LARGEST]>>::uninit();
            let direct = self.direct(run, at, n);
            let in_registers =
                self.epilogue.filter(|e| direct.is_some() || e.finish.residual.is_none());
            t.finish = in_registers.map(|e| e.finish.at(self.first_channel + row));
            let after = self
                .epilogue
                .and_then(|e| if in_registers.is_some() { e.rest } else { Some(e.whole) });
            if let Some(direct) = direct {
                t.c = self.destination.add(row * self.plane + direct);
            } else {
                t.c = part.as_mut_ptr().cast::<E>();
                t.c_stride = (wide * LANES) as isize;
                t.n = wide * LANES;
            }
            tile::<S, E, B_BY_TABLE>(s, rows, wide, &t);
            if direct.is_some() {
                self.finish::<S>(after, t.c, row, rows, n);
            } else {
                self.scatter(s, after, t.c, wide * LANES, row, rows, run, at, n);
            }
        }
    }

    /// The steps left on `rows` channels of `n` neighbouring outputs.
    #[inline(always)]
    unsafe fn finish<S: Simd>(
        &self,
        steps: Option<&Epilogue<'_>>,
        at: *mut E,
        row: usize,
        rows: usize,
        n: usize,
    ) {
        if let Some(epilogue) = steps {
            let (at, channel) = (at.cast(), self.first_channel + row);
            let area = Area { at, stride: self.plane, rows, n, channel, channel_step: 1 };
            // SAFETY: outputs of this part, in the destination of the epilogue.
            unsafe { epilogue.apply(S::ISA, area) };
        }
    }

    /// Columns near the end of memory, which cannot be read in whole vectors, copied with a table of
    /// their own.
    #[inline(always)]
    unsafe fn gather(&self, position: usize, n: usize, width: usize) {
        // SAFETY: `tail` has room for the steps of one tile; only the n needed columns are read.
        unsafe {
            for k in 0..self.steps + TABLE_TAIL {
                let step = k.min(self.steps.saturating_sub(1));
                *self.tail_table.add(k) = (step * width) as u32;
            }
            for k in 0..self.steps {
                let from = self.source.add(position + *self.table.add(k) as usize);
                let to = std::slice::from_raw_parts_mut(self.tail.add(k * width), width);
                to.fill(E::default());
                std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), n);
            }
        }
    }

    /// The destination offset of a tile whose outputs follow each other.
    #[inline(always)]
    fn direct(&self, run: usize, at: usize, n: usize) -> Option<usize> {
        let column = at % self.runs.pitch;
        let whole = column + n <= self.runs.valid && self.class.step[2] == 1;
        whole.then(|| self.runs.offset(self.class, self.sizes, run, at))
    }

    #[inline(always)]
    unsafe fn scatter<S: Simd>(
        &self,
        s: S,
        after: Option<&Epilogue<'_>>,
        part: *const E,
        part_stride: usize,
        row: usize,
        rows: usize,
        run: usize,
        at: usize,
        n: usize,
    ) {
        let r = &self.runs;
        let (mut q, end) = (at, at + n);
        while q < end {
            let column = q % r.pitch;
            if column >= r.valid {
                q += r.pitch - column;
                continue;
            }
            let count = (r.valid - column).min(end - q);
            let step = self.class.step[2];
            // SAFETY: `count` outputs from here on exist in each of the rows.
            unsafe {
                let to = self
                    .destination
                    .add(row * self.plane + r.offset(self.class, self.sizes, run, q));
                let from = part.add(q - at);
                for i in 0..rows {
                    let (to, from) = (to.add(i * self.plane), from.add(i * part_stride));
                    if step == 1 {
                        let mut j = 0;
                        while j < count {
                            let left = (count - j).min(LANES);
                            let v = E::load_n(s, from.add(j), left);
                            E::store_n(s, to.add(j), left, v);
                            j += LANES;
                        }
                    } else {
                        for j in 0..count {
                            *to.add(j * step) = *from.add(j);
                        }
                    }
                }
                self.finish::<S>(after, to, row, rows, count);
            }
            q += count;
        }
    }
}
