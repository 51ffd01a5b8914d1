//! Convolutions of 3 by 3 taps by Winograd's F(4×4, 3×3): 36 products for 16 outputs, where the chain
//! takes 144 (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015).
//!
//! The points are 0, ±3/4, ±3/2 and infinity: every coefficient of the transforms is exact, and the
//! error is a third of that of the usual 0, ±1, ±2. Over layers of 16 to 512 channels and inputs with
//! and without outliers, the largest one was 3.9e-6 of the largest result (the chain: 3.0e-6), and an
//! output beside much larger ones of its tile has an error of their size. Weights are transformed
//! once, in f64. Each of the 36 products is one chain over the channels, and each transform has one
//! order of operations, so the bits do not depend on the instruction set, the threads or the batch; but
//! they are not those of the chain over all taps, so that only `fast` convolutions use it.

mod input;
mod output;
#[cfg(test)]
mod tests;

use super::geometry::Window;
use crate::array::Array;
use crate::error::Result;
use crate::kernels::epilogue::Tail;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::microkernel::{IN_ORDER, Start, Tile, span, tile};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, PlainLoop, Simd, WithSimd, dispatch_on, vectorized_wide};
use input::Input;
use output::Output;

/// Outputs of a tile along an axis, and inputs that they read.
const OUT: usize = 4;
const IN: usize = 6;
/// Products of a tile.
const POINTS: usize = IN * IN;
/// The points ±A and ±B.
const A: f32 = 0.75;
const B: f32 = 1.5;
/// Elements of the transformed inputs and outputs that are held at a time.
const HELD: usize = 1 << 18;
/// Tiles of a slab at least, where there are as many: each slab reads all weights.
const FEWEST: usize = 64;
/// Slabs from which on a part takes whole ones.
const MANY_SLABS: usize = 8;
/// Elements between the rows of two points beyond their own, so that the 36 rows of a tile do not
/// meet in few sets of the caches.
const APART: usize = 5 * LANES;

/// The transformed weights of `destinations` by `sources` channels: for each point and panel of
/// rows, the sources in order.
pub(super) struct Transformed {
    data: Array,
    sources: usize,
    destinations: usize,
}

impl Transformed {
    /// Transforms contiguous weights (destinations, sources, 3, 3).
    ///
    /// # Errors
    /// `Memory` when there is no room.
    pub(super) fn new(operator: &str, isa: Isa, w: &Array) -> Result<Self> {
        let (destinations, sources) = (w.shape()[0], w.shape()[1]);
        let w = w.to_contiguous()?;
        let data = Array::uninit(operator, w.dtype(), &[POINTS, destinations, sources])?;
        let panels = RowPanels::new::<f32>(isa, destinations);
        let to = Shared::new(data.as_mut_ptr::<f32>());
        let from = w.as_slice::<f32>();
        crate::parallel::for_each(panels.count, |panel| {
            let (start, height) = (panels.start(panel), panels.rows(panel));
            let (to, next) = (to.get(), destinations * sources);
            let first = start * sources;
            // SAFETY: this panel's elements of each point.
            let to = unsafe { to.add(first) };
            let from = &from[first * 9..(start + height) * sources * 9];
            vectorized_wide(Panel { from, to, next, sources, height });
        });
        Ok(Self { data, sources, destinations })
    }
}

/// The transform of the weights along one axis: p⁰, p¹ and p² over the product of the differences
/// from the other points.
fn rows() -> [[f64; 3]; IN] {
    let (a, b) = (f64::from(A), f64::from(B));
    let of = |p: f64, scale: f64| [1.0 / scale, p / scale, p * p / scale];
    let (of_a, of_b) = (2.0 * a * a * (a * a - b * b), 2.0 * b * b * (b * b - a * a));
    let zero = of(0.0, a * a * b * b);
    [zero, of(a, of_a), of(-a, of_a), of(b, of_b), of(-b, of_b), [0.0, 0.0, 1.0]]
}

/// The weights of `height` rows, at most as many as lanes, all sources of a row together.
struct Panel<'a> {
    from: &'a [f32],
    to: *mut f32,
    /// Distance of the points in `to`.
    next: usize,
    sources: usize,
    height: usize,
}

impl PlainLoop for Panel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = rows();
        let mut w = [[0.0f64; LANES]; 9];
        for c in 0..self.sources {
            for r in 0..self.height {
                let at = (r * self.sources + c) * 9;
                for t in 0..9 {
                    w[t][r] = f64::from(self.from[at + t]);
                }
            }
            let mut half = [[[0.0f64; LANES]; 3]; IN];
            for i in 0..IN {
                for j in 0..3 {
                    for k in 0..3 {
                        for l in 0..LANES {
                            half[i][j][l] += rows[i][k] * w[k * 3 + j][l];
                        }
                    }
                }
            }
            for i in 0..IN {
                for j in 0..IN {
                    let (h, row) = (&half[i], &rows[j]);
                    let mut u = [0.0f32; LANES];
                    for l in 0..LANES {
                        u[l] = (h[0][l] * row[0] + h[1][l] * row[1] + h[2][l] * row[2]) as f32;
                    }
                    let at = (i * IN + j) * self.next + c * self.height;
                    // SAFETY: `height` elements of this panel, at most as many as lanes.
                    unsafe {
                        std::ptr::copy_nonoverlapping(u.as_ptr(), self.to.add(at), self.height);
                    }
                }
            }
        }
    }
}

/// Six vectors, `step` elements apart.
///
/// # Safety
/// Their elements exist.
#[inline(always)]
unsafe fn six<S: Simd>(s: S, from: *const f32, step: usize) -> [S::F; IN] {
    // SAFETY: the caller's promise.
    unsafe {
        [
            s.load(from),
            s.load(from.add(step)),
            s.load(from.add(2 * step)),
            s.load(from.add(3 * step)),
            s.load(from.add(4 * step)),
            s.load(from.add(5 * step)),
        ]
    }
}

/// Whether a convolution with this window has the form.
pub(super) fn fits(window: &Window) -> bool {
    window.axes == 2
        && window.kernel == [1, 3, 3]
        && window.strides == [1; 3]
        && window.dilations == [1; 3]
}

/// Whether it is faster than the chain: enough channels for the products to outweigh the transforms,
/// and enough tiles for the products to outweigh reading the transformed weights.
pub(super) fn pays(sources: usize, destinations: usize, outputs: [usize; 2]) -> bool {
    const CHANNELS: usize = 16;
    const TILES: usize = 16;
    let tiles = outputs[0].div_ceil(OUT) * outputs[1].div_ceil(OUT);
    sources.min(destinations) >= CHANNELS && tiles >= TILES
}

/// One convolution of contiguous tensors.
#[derive(Clone, Copy)]
pub(super) struct Winograd<'a> {
    pub(super) operator: &'static str,
    pub(super) images: usize,
    pub(super) weights: &'a Transformed,
    pub(super) source: *const f32,
    pub(super) destination: *mut f32,
    pub(super) source_sizes: [usize; 2],
    pub(super) destination_sizes: [usize; 2],
    /// Padding in front of each axis.
    pub(super) begins: [usize; 2],
    pub(super) bias: Option<*const f32>,
    pub(super) relu: bool,
    pub(super) epilogue: Option<Tail<'a, f32>>,
}

/// Some rows of tiles of one image, and where their transforms are.
#[derive(Clone, Copy)]
struct Slab {
    image: usize,
    /// Rows of tiles: the first one and how many.
    first: usize,
    rows: usize,
    /// Tiles of a row.
    across: usize,
    /// Elements of a row of tiles of one point and channel: a multiple of the lanes.
    columns: usize,
    inputs: *mut f32,
    outputs: *mut f32,
}

impl Slab {
    fn tiles(&self) -> usize {
        self.rows * self.across
    }
}

/// Elements between two points of `channels` rows.
fn point(channels: usize, columns: usize) -> usize {
    channels * columns + APART
}

impl Winograd<'_> {
    /// Rows of tiles of a slab: as many as `HELD` allows, in equal slabs.
    fn slab_rows(&self) -> usize {
        let [down, across] = self.tiles();
        let each = POINTS * (self.weights.sources + self.weights.destinations) * across;
        let most = (HELD / each).max(FEWEST.div_ceil(across)).clamp(1, down);
        down.div_ceil(down.div_ceil(most))
    }

    fn tiles(&self) -> [usize; 2] {
        let [height, width] = self.destination_sizes;
        [height.div_ceil(OUT), width.div_ceil(OUT)]
    }

    /// Computes all outputs on the pool.
    ///
    /// # Errors
    /// `Memory` when there is no room for the transforms.
    ///
    /// # Safety
    /// The addresses cover tensors of the named extents; the destination overlaps nothing.
    pub(super) unsafe fn run(&self, isa: Isa) -> Result<()> {
        let [down, across] = self.tiles();
        if self.images == 0 || down * across == 0 {
            return Ok(());
        }
        let rows = self.slab_rows();
        let slabs = down.div_ceil(rows);
        let all = self.images * slabs;
        let most = (rows * across).next_multiple_of(LANES);
        let (sources, destinations) = (self.weights.sources, self.weights.destinations);
        let operations = 2 * POINTS * sources * destinations * most;
        let whole = all >= MANY_SLABS;
        let parts = if whole { parts_of(operations.saturating_mul(all)).min(all) } else { 1 };
        let job = Shared::new(self);
        try_for_each(parts, |part| {
            let this = job.get();
            let bytes =
                |channels: usize| (POINTS * point(channels, most) + LANES) * size_of::<f32>();
            let mut inputs = Scratch::new(this.operator, bytes(sources))?;
            let mut outputs = Scratch::new(this.operator, bytes(destinations))?;
            let inputs = inputs.as_mut::<f32>().as_mut_ptr();
            let outputs = outputs.as_mut::<f32>().as_mut_ptr();
            for at in all * part / parts..all * (part + 1) / parts {
                let (image, first) = (at / slabs, at % slabs * rows);
                let rows = rows.min(down - first);
                let columns = (rows * across).next_multiple_of(LANES);
                let slab = Slab { image, first, rows, across, columns, inputs, outputs };
                let parts = if whole { 1 } else { parts_of(operations) };
                // SAFETY: the memory has room for the slab's columns, and the caller's promise; slabs
                // are disjoint outputs.
                unsafe { this.slab(isa, slab, parts)? };
            }
            Ok(())
        })
    }

    /// Computes a slab in `parts` of its channels and points.
    unsafe fn slab(&self, isa: Isa, slab: Slab, parts: usize) -> Result<()> {
        let job = Shared::new((self, slab));
        let split = |all: usize, part: usize| (all * part / parts, all * (part + 1) / parts);
        try_for_each(parts, |part| {
            let (this, slab) = job.get();
            let mut lines = Scratch::new(this.operator, Input::bytes(&slab))?;
            let lines = lines.as_mut::<f32>().as_mut_ptr();
            let channels = split(this.weights.sources, part);
            dispatch_on(isa, Input { convolution: this, slab, channels, lines });
            Ok(())
        })?;
        try_for_each(parts, |part| {
            let (this, slab) = job.get();
            let points = split(POINTS, part);
            dispatch_on(isa, Products { weights: this.weights, slab, points });
            Ok(())
        })?;
        try_for_each(parts, |part| {
            let (this, slab) = job.get();
            let mut lines = Scratch::new(this.operator, Output::bytes(&slab))?;
            let lines = lines.as_mut::<f32>().as_mut_ptr();
            let channels = split(this.weights.destinations, part);
            dispatch_on(isa, Output { convolution: this, slab, channels, lines });
            Ok(())
        })
    }
}

/// The products of some points.
struct Products<'a> {
    weights: &'a Transformed,
    slab: Slab,
    points: (usize, usize),
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Transformed { data, sources, destinations } = self.weights;
        let (sources, destinations) = (*sources, *destinations);
        let columns = self.slab.columns;
        let panels = RowPanels::new::<f32>(S::ISA, destinations);
        let most = span(f32::accumulators(S::ISA), panels.rows(0));
        let panel = (f32::vectors(S::ISA) * LANES) as isize;
        let vectors = columns / LANES;
        for at in self.points.0..self.points.1 {
            let mut v = 0;
            while v < vectors {
                let wide = 1usize << (vectors - v).min(most).ilog2();
                for i in 0..panels.count {
                    let (row, rows) = (panels.start(i), panels.rows(i));
                    // SAFETY: rows of the point's weights, and columns of its inputs and outputs.
                    unsafe {
                        let weights = data.as_ptr::<f32>().add(at * destinations * sources);
                        let b = self.slab.inputs.add(at * point(sources, columns) + v * LANES);
                        let c = self
                            .slab
                            .outputs
                            .add(at * point(destinations, columns) + row * columns + v * LANES);
                        let t = Tile {
                            k: sources,
                            a: weights.add(row * sources),
                            b,
                            step: columns as isize,
                            table: std::ptr::null(),
                            ahead: b,
                            ahead_step: 0,
                            panel,
                            start: Start::Zero,
                            c,
                            c_stride: columns as isize,
                            n: wide * LANES,
                            relu: false,
                            finish: None,
                        };
                        tile::<S, f32, IN_ORDER>(s, rows, wide, &t);
                    }
                }
                v += wide;
            }
        }
    }
}
