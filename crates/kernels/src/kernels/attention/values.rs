//! The values of a tile's keys times their weights, added to the rows of a block.

use super::block::{Block, ROWS};
use super::workspace::Sizes;
use crate::kernels::gemm::matrix::Matrix;
use crate::simd::{LANES, Simd};

/// The weight of row m for key j at `at + j * step + m`.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) at: *const f32,
    pub(super) step: usize,
}

impl Block {
    /// `sums[r] = factors[r] sums[r]`, or 0 with the first tile, then `fma(weight, value, sum)` for
    /// each key in order.
    #[inline(always)]
    pub(super) unsafe fn add_values<S: Simd, const M: usize, const V: usize>(
        self,
        s: S,
        from: usize,
        keys: usize,
        factors: &[f32; ROWS],
    ) {
        let mut row = 0;
        while row < self.rows {
            let weights = Weights { at: self.scores.wrapping_add(row), step: ROWS };
            // SAFETY: rows below ROWS, which M divides.
            unsafe { self.add_rows::<S, M, V>(s, from, keys, weights, factors, row) };
            row += M;
        }
    }

    /// The same for M rows.
    #[inline(always)]
    pub(super) unsafe fn add_rows<S: Simd, const M: usize, const V: usize>(
        self,
        s: S,
        from: usize,
        keys: usize,
        weights: Weights,
        factors: &[f32; ROWS],
        row: usize,
    ) {
        let width = self.sizes.width();
        let mut at = 0;
        // SAFETY: columns below `width`.
        unsafe {
            while at + V * LANES <= width {
                self.chains::<S, M, V>(s, from, keys, weights, factors, row, at);
                at += V * LANES;
            }
            while at < width {
                self.chains::<S, M, 1>(s, from, keys, weights, factors, row, at);
                at += LANES;
            }
        }
    }

    #[inline(always)]
    unsafe fn chains<S: Simd, const M: usize, const V: usize>(
        self,
        s: S,
        from: usize,
        keys: usize,
        weights: Weights,
        factors: &[f32; ROWS],
        row: usize,
        at: usize,
    ) {
        let width = self.sizes.width();
        let Matrix { ptr, rows, .. } = self.head.v;
        // SAFETY: the caller's promise.
        unsafe {
            let sums = self.sums.add(row * width + at);
            let mut acc = [[s.splat(0.0); V]; M];
            if from > 0 {
                for m in 0..M {
                    let factor = s.splat(factors[row + m]);
                    for v in 0..V {
                        acc[m][v] = s.mul(s.load(sums.add(m * width + v * LANES)), factor);
                    }
                }
            }
            let mut values = ptr.offset(from as isize * rows).add(at);
            let Weights { at: mut weight, step } = weights;
            for _ in 0..keys {
                let mut x = [s.splat(0.0); V];
                for v in 0..V {
                    x[v] = s.load(values.add(v * LANES));
                }
                for m in 0..M {
                    let w = s.splat(*weight.add(m));
                    for v in 0..V {
                        acc[m][v] = s.fma(w, x[v], acc[m][v]);
                    }
                }
                values = values.wrapping_offset(rows);
                weight = weight.wrapping_add(step);
            }
            for m in 0..M {
                for v in 0..V {
                    s.store(sums.add(m * width + v * LANES), acc[m][v]);
                }
            }
        }
    }

    /// The accumulators times the factors, as rows of the output.
    #[inline(always)]
    pub(super) unsafe fn store<S: Simd>(self, s: S, factors: &[f32; ROWS]) {
        let Sizes { values, .. } = self.sizes;
        let width = self.sizes.width();
        for r in 0..self.rows {
            let factor = s.splat(factors[r]);
            // SAFETY: rows of the block and columns of the output.
            unsafe {
                let from = self.sums.add(r * width);
                let to = self.head.out.add((self.first + r) * values);
                let mut c = 0;
                while c < values {
                    let y = s.mul(s.load(from.add(c)), factor);
                    let n = (values - c).min(LANES);
                    if n == LANES {
                        s.store(to.add(c), y);
                    } else {
                        s.store_n(to.add(c), n, y);
                    }
                    c += LANES;
                }
            }
        }
    }
}
