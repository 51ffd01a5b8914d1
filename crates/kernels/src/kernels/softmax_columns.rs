//! Softmax of f32 rows side by side: one row in each lane, with the arithmetic of `softmax`'s rows.

use crate::array::Array;
use crate::error::Result;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::product::try_for_each;
use crate::kernels::gemm::transpose::gather_columns;
use crate::kernels::lanes::Lane;
use crate::math;
use crate::scratch::Scratch;
use crate::simd::{LANES, Simd, WithSimd, dispatch};

/// The most elements of neighbouring rows for which they are turned into columns.
const SHORT: usize = 32;
/// Rows that are turned at a time.
const TURNED: usize = 64;

/// One output from one input, or from two for a gradient.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub name: &'static str,
    pub log: bool,
    pub gradient: bool,
}

impl Columns {
    /// Computes all rows along `axis` if they are short or lie side by side; else returns false.
    /// The output is contiguous, and an input may be the same memory.
    ///
    /// # Errors
    /// `Memory` for the copy of a tile.
    pub(crate) fn run(self, inputs: &[&Array], out: &Array, axis: usize) -> Result<bool> {
        let length = out.shape()[axis];
        let inner: usize = out.shape()[axis + 1..].iter().product();
        let turned = inner == 1 && length <= SHORT && out.size() / length.max(1) >= LANES;
        if out.size() == 0 || !turned && inner < 4 {
            return Ok(out.size() == 0);
        }
        let first = inputs[0].to_contiguous()?;
        let second = inputs[inputs.len() - 1].to_contiguous()?;
        let x = [first.as_ptr::<f32>(), second.as_ptr::<f32>()];
        let job = Shared::new((x, out.as_mut_ptr::<f32>()));
        if turned {
            self.turned(job, out.size() / length, length)?;
        } else {
            self.columns(job, out.size() / (length * inner), length, inner)?;
        }
        Ok(true)
    }

    fn columns(
        self,
        job: Shared<([*const f32; 2], *mut f32)>,
        outer: usize,
        length: usize,
        inner: usize,
    ) -> Result<()> {
        let tiles = inner.div_ceil(LANES);
        let all = outer * tiles;
        let parts = all.div_ceil((CHEAP / 4 / (length * inner.min(LANES))).max(1));
        try_for_each(parts, |part| {
            let ([x, g], y) = job.get();
            let mut scratch = Scratch::new(self.name, length * LANES * size_of::<f32>())?;
            let tile = scratch.as_mut::<f32>().as_mut_ptr();
            for t in all * part / parts..all * (part + 1) / parts {
                let first = t % tiles * LANES;
                let at = t / tiles * length * inner + first;
                let n = LANES.min(inner - first);
                // SAFETY: `n` columns of the arrays, and a copy of 16.
                unsafe {
                    let (x, g, y) = (x.add(at), g.add(at), y.add(at));
                    if self.gradient {
                        let step = inner;
                        dispatch(GradientTile { y: x, g, d: y, length, n, step, log: self.log });
                    } else {
                        let steps = (inner, LANES, inner);
                        dispatch(Tile { x, tile, y, length, n, steps, log: self.log });
                    }
                }
            }
            Ok(())
        })
    }

    fn turned(
        self,
        job: Shared<([*const f32; 2], *mut f32)>,
        rows: usize,
        length: usize,
    ) -> Result<()> {
        let tiles = rows.div_ceil(TURNED);
        let parts = tiles.div_ceil((CHEAP / 4 / (length * TURNED)).max(1));
        try_for_each(parts, |part| {
            let (inputs, out) = job.get();
            let mut turned = [[0.0f32; SHORT * TURNED]; 2];
            let [a, b] = turned.each_mut().map(|t| t.as_mut_ptr());
            for t in tiles * part / parts..tiles * (part + 1) / parts {
                let first = t * TURNED;
                let n = TURNED.min(rows - first);
                // SAFETY: `n` rows of the arrays, and room for `length` rows of 64.
                unsafe {
                    for (to, from) in [a, b].into_iter().zip(inputs) {
                        let row = |j: usize| from.add((first + j) * length);
                        gather_columns(to, TURNED, n, length, false, row);
                        if !self.gradient {
                            break;
                        }
                    }
                    if self.gradient {
                        let (y, step) = (a.cast_const(), TURNED);
                        dispatch(GradientTile { y, g: b, d: a, length, n, step, log: self.log });
                    } else {
                        let steps = (TURNED, TURNED, TURNED);
                        dispatch(Tile { x: a, tile: a, y: a, length, n, steps, log: self.log });
                    }
                    let row = |j: usize| a.add(j * TURNED).cast_const();
                    gather_columns(out.add(first * length), length, length, n, false, row);
                }
            }
            Ok(())
        })
    }
}

/// `n` rows of `length` elements side by side; `tile` holds a copy of 16 at a time and may be x or
/// y if these hold whole vectors. `steps` are the distances of elements of a row in x, tile and y.
struct Tile {
    x: *const f32,
    tile: *mut f32,
    y: *mut f32,
    length: usize,
    n: usize,
    steps: (usize, usize, usize),
    log: bool,
}

impl WithSimd for Tile {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { length, log, .. } = self;
        let (x_step, step, y_step) = self.steps;
        let mut i = 0;
        while i < self.n {
            let count = LANES.min(self.n - i);
            // SAFETY: `count` elements of each row, and 16 of each in the copy.
            unsafe {
                let (x, y) = (self.x.add(i), self.y.add(i));
                // The only vector of a copy that is not an operand.
                let tile = if step == LANES { self.tile } else { self.tile.add(i) };
                let mut max = [s.splat(f32::NEG_INFINITY); 2];
                for r in 0..length {
                    let v = f32::get(s, x.add(r * x_step), count);
                    s.store(tile.add(r * step), v);
                    max[r % 2] = s.at_least(v, max[r % 2]);
                }
                let shift = s.at_least(max[0], max[1]);
                let mut lanes = [s.splat_d(0.0); LANES];
                for l in 0..LANES.min(length) {
                    let mut sum = lanes[l];
                    let mut r = l;
                    while r < length {
                        let p = tile.add(r * step);
                        let d = s.sub(s.load(p), shift);
                        let e = math::exp_of_nonpositive(s, d);
                        s.store(p, if log { d } else { e });
                        sum = s.add_d(sum, s.widen(e));
                        r += LANES;
                    }
                    lanes[l] = sum;
                }
                let sum = tree(s, lanes);
                let last = if log {
                    let (sums, mut logs) = (s.to_array_d(sum), [0.0f32; LANES]);
                    for l in 0..LANES {
                        logs[l] = math::log_f64(sums[l]) as f32;
                    }
                    s.load(logs.as_ptr())
                } else {
                    s.narrow(s.div_d(s.splat_d(1.0), sum))
                };
                for r in 0..length {
                    let v = s.load(tile.add(r * step));
                    let v = if log { s.sub(v, last) } else { s.mul(v, last) };
                    f32::put(s, y.add(r * y_step), count, v);
                }
            }
            i += LANES;
        }
    }
}

#[inline(always)]
fn tree<S: Simd>(s: S, mut lanes: [S::D; LANES]) -> S::D {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = s.add_d(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The gradients of `n` rows side by side, `step` between the elements of a row.
struct GradientTile {
    y: *const f32,
    g: *const f32,
    d: *mut f32,
    length: usize,
    n: usize,
    step: usize,
    log: bool,
}

impl WithSimd for GradientTile {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { length, step, log, .. } = self;
        let mut i = 0;
        while i < self.n {
            let count = LANES.min(self.n - i);
            // SAFETY: `count` elements of each row; elements are read before their place in d is
            // written.
            unsafe {
                let (y, g, d) = (self.y.add(i), self.g.add(i), self.d.add(i));
                let mut lanes = [s.splat_d(0.0); LANES];
                for l in 0..LANES.min(length) {
                    let mut sum = lanes[l];
                    let mut r = l;
                    while r < length {
                        let g = s.widen(f32::get(s, g.add(r * step), count));
                        sum = if log {
                            s.add_d(sum, g)
                        } else {
                            s.fma_d(g, s.widen(f32::get(s, y.add(r * step), count)), sum)
                        };
                        r += LANES;
                    }
                    lanes[l] = sum;
                }
                let sum = s.narrow(tree(s, lanes));
                for r in 0..length {
                    let y = f32::get(s, y.add(r * step), count);
                    let g = f32::get(s, g.add(r * step), count);
                    let v = if log {
                        s.fma(s.neg(math::exp(s, y)), sum, g)
                    } else {
                        s.mul(y, s.sub(g, sum))
                    };
                    f32::put(s, d.add(r * step), count, v);
                }
            }
            i += LANES;
        }
    }
}
