//! A block of queries of one head: the vectors' lanes are queries until the values are added up.

use super::workspace::{Head, Sizes};
use crate::kernels::gemm::matrix::Matrix;
use crate::kernels::gemm::packing::pack_panel;
use crate::math::exp_of_nonpositive;
use crate::simd::{Isa, LANES, Simd, WithSimd};

/// Queries of a block: two vectors.
pub(super) const ROWS: usize = 2 * LANES;
/// Keys of a tile. It is part of the kernel's definition.
pub(super) const KEYS: usize = 256;
/// Queries up to which the lanes are keys instead: those of more would stay empty.
pub(super) const FEW: usize = 2;
/// Keys, or queries, of the innermost tile at most.
pub(super) const MOST: usize = 8;

/// One block, with what is computed of it. The fields are those that [`super::few`] uses too.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) sizes: Sizes,
    pub(super) head: Head,
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Query r of feature i at `q[i * ROWS + r]`.
    pub(super) q: *const f32,
    /// Query r of key j at `scores[j * ROWS + r]`, and so for the mask; for few queries each has its
    /// keys one after the other.
    pub(super) scores: *mut f32,
    pub(super) mask: *mut f32,
    /// The accumulators, row after row.
    pub(super) sums: *mut f32,
    /// For few queries, a tile's keys feature by feature.
    pub(super) turned: *mut f32,
}

impl WithSimd for Block {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // SAFETY: the promise of `Workspace::block`.
        unsafe {
            if self.rows <= FEW {
                if S::ISA == Isa::Avx512 {
                    self.few::<S, 8>(s);
                } else {
                    self.few::<S, 4>(s);
                }
            } else if self.rows > LANES {
                self.vectors::<S, 2>(s);
            } else {
                self.vectors::<S, 1>(s);
            }
        }
    }
}

impl Block {
    #[inline(always)]
    unsafe fn vectors<S: Simd, const V: usize>(self, s: S) {
        let seen = if self.sizes.causal { self.first + self.rows } else { usize::MAX };
        let seen = seen.min(self.sizes.keys);
        let lowest = s.splat(f32::NEG_INFINITY);
        let (mut max, mut sum) = ([lowest; V], [s.splat(0.0); V]);
        let mut factors = [0.0f32; ROWS];
        let mut from = 0;
        // SAFETY: the caller's promise; every tile has keys below `seen`.
        unsafe {
            while from < seen {
                let keys = (seen - from).min(KEYS);
                if S::ISA == Isa::Avx512 {
                    self.products::<S, 8, V>(s, from, keys);
                } else {
                    for v in 0..V {
                        self.shifted(v).products::<S, 4, 1>(s, from, keys);
                    }
                }
                let before = max;
                max = self.finish::<S, V>(s, from, keys, max);
                let mut shift = max;
                for v in 0..V {
                    // With nothing but -inf so far, every weight is 0.
                    let none = s.eq(max[v], lowest);
                    shift[v] = s.select(none, s.splat(0.0), max[v]);
                    let factor = exp_of_nonpositive(s, s.sub(before[v], shift[v]));
                    s.store(factors.as_mut_ptr().add(v * LANES), factor);
                    sum[v] = s.mul(sum[v], factor);
                }
                let added = self.weights::<S, V>(s, keys, shift);
                for v in 0..V {
                    sum[v] = s.add(sum[v], added[v]);
                }
                if S::ISA == Isa::Avx512 {
                    self.add_values::<S, 8, 2>(s, from, keys, &factors);
                } else {
                    self.add_values::<S, 4, 1>(s, from, keys, &factors);
                }
                from += keys;
            }
            for v in 0..V {
                let inverse = s.div(s.splat(1.0), sum[v]);
                s.store(factors.as_mut_ptr().add(v * LANES), inverse);
            }
            self.store(s, &factors);
        }
    }

    /// The block whose first vector is vector v of this one.
    #[inline(always)]
    fn shifted(mut self, v: usize) -> Self {
        self.q = self.q.wrapping_add(v * LANES);
        self.scores = self.scores.wrapping_add(v * LANES);
        self
    }

    /// `scores[j, r] = Σ k[from + j, i] q[r, i]`; up to `M - 1` keys more are written.
    #[inline(always)]
    unsafe fn products<S: Simd, const M: usize, const V: usize>(
        self,
        s: S,
        from: usize,
        keys: usize,
    ) {
        let Self { q, scores, .. } = self;
        let Matrix { ptr, rows, .. } = self.head.k;
        let features = self.sizes.features;
        let mut j = 0;
        while j < keys {
            let mut k = [ptr; M];
            for m in 0..M {
                // The last key stands in for missing ones.
                let key = from + (j + m).min(keys - 1);
                k[m] = ptr.wrapping_offset(key as isize * rows);
            }
            // SAFETY: keys below the number of keys, and room for M of them.
            unsafe {
                let mut acc = [[s.splat(0.0); V]; M];
                for i in 0..features {
                    let mut x = [s.splat(0.0); V];
                    for v in 0..V {
                        x[v] = s.load(q.add(i * ROWS + v * LANES));
                    }
                    for m in 0..M {
                        let w = s.splat(*k[m].add(i));
                        for v in 0..V {
                            acc[m][v] = s.fma(w, x[v], acc[m][v]);
                        }
                    }
                }
                for m in 0..M {
                    for v in 0..V {
                        s.store(scores.add((j + m) * ROWS + v * LANES), acc[m][v]);
                    }
                }
            }
            j += M;
        }
    }

    /// Scales and masks the scores; returns the maximum so far.
    #[inline(always)]
    unsafe fn finish<S: Simd, const V: usize>(
        self,
        s: S,
        from: usize,
        keys: usize,
        mut max: [S::F; V],
    ) -> [S::F; V] {
        let scale = s.splat(self.sizes.scale);
        let lowest = s.splat(f32::NEG_INFINITY);
        let (mut mask, mut step, mut same) = (std::ptr::null(), 0, true);
        // SAFETY: the mask has these rows and columns, the memory room for them.
        unsafe {
            if let Some(Matrix { ptr, rows, columns }) = self.head.mask {
                let at = ptr.offset(self.first as isize * rows + from as isize * columns);
                (mask, step, same) = (at, columns, rows == 0);
                if !same {
                    pack_panel(self.mask, ROWS, self.rows, keys, at, columns, rows);
                    (mask, step) = (self.mask.cast_const(), ROWS as isize);
                }
            }
            let masked = !mask.is_null();
            for j in 0..keys {
                let to = self.scores.add(j * ROWS);
                // Queries before this key, counted from the first of the block.
                let hidden = (from + j).saturating_sub(self.first);
                for v in 0..V {
                    let x = s.load(to.add(v * LANES));
                    let mut x = if !masked {
                        s.mul(x, scale)
                    } else {
                        let at = mask.offset(j as isize * step);
                        let added = if same { s.splat(*at) } else { s.load(at.add(v * LANES)) };
                        s.fma(x, scale, added)
                    };
                    if self.sizes.causal && hidden > v * LANES {
                        x = s.select(s.mask_first(hidden - v * LANES), lowest, x);
                    }
                    max[v] = s.at_least(x, max[v]);
                    s.store(to.add(v * LANES), x);
                }
            }
        }
        max
    }

    /// The weights in place of the scores; returns their sums.
    #[inline(always)]
    unsafe fn weights<S: Simd, const V: usize>(
        self,
        s: S,
        keys: usize,
        shift: [S::F; V],
    ) -> [S::F; V] {
        let mut sum = [s.splat(0.0); V];
        for j in 0..keys {
            for v in 0..V {
                // SAFETY: the scores of the tile.
                unsafe {
                    let at = self.scores.add(j * ROWS + v * LANES);
                    let e = exp_of_nonpositive(s, s.sub(s.load(at), shift[v]));
                    s.store(at, e);
                    sum[v] = s.add(sum[v], e);
                }
            }
        }
        sum
    }
}
