//! A block of few queries, one after the other: the vectors' lanes are keys until the values are added
//! up. Each operation on a score, and the order of the sums, is that of the other blocks.

use super::block::{Block, KEYS, ROWS};
use super::values::Weights;
use crate::kernels::gemm::matrix::Matrix;
use crate::kernels::gemm::packing::pack_panel;
use crate::math::exp_of_nonpositive;
use crate::simd::{LANES, Simd};

/// Keys of a panel: a cache line of each feature.
const PANEL: usize = LANES;

impl Block {
    /// All tiles, with `V` vectors of scores at a time.
    #[inline(always)]
    pub(super) unsafe fn few<S: Simd, const V: usize>(self, s: S) {
        let seen = if self.sizes.causal { self.first + self.rows } else { usize::MAX };
        let seen = seen.min(self.sizes.keys);
        let (mut max, mut sum) = ([f32::NEG_INFINITY; ROWS], [0.0f32; ROWS]);
        let mut factors = [0.0f32; ROWS];
        let mut from = 0;
        // SAFETY: the promise of `Workspace::block`; tiles have keys below `seen`.
        unsafe {
            while from < seen {
                let keys = (seen - from).min(KEYS);
                self.turn(from, keys);
                for row in 0..self.rows {
                    let scores = self.scores.add(row * KEYS);
                    self.row_products::<S, V>(s, row, keys, scores);
                    let before = max[row];
                    max[row] = self.row_finish(s, row, from, keys, scores, before);
                    // With nothing but -inf so far, every weight is 0.
                    let shift = if max[row] == f32::NEG_INFINITY { 0.0 } else { max[row] };
                    let shift = s.splat(shift);
                    let factor = exp_of_nonpositive(s, s.sub(s.splat(before), shift));
                    factors[row] = s.to_array(factor)[0];
                    let mut j = 0;
                    while j < keys {
                        let e = exp_of_nonpositive(s, s.sub(s.load(scores.add(j)), shift));
                        s.store(scores.add(j), e);
                        j += LANES;
                    }
                    let mut added = 0.0;
                    for j in 0..keys {
                        added += *scores.add(j);
                    }
                    sum[row] = sum[row] * factors[row] + added;
                    let weights = Weights { at: scores, step: 1 };
                    self.add_rows::<S, 1, 4>(s, from, keys, weights, &factors, row);
                }
                from += keys;
            }
            for row in 0..self.rows {
                factors[row] = 1.0 / sum[row];
            }
            self.store(s, &factors);
        }
    }

    /// Panels of a tile's keys: key j of a panel, feature i at `i * PANEL + j`, zeros behind the last.
    #[inline(always)]
    unsafe fn turn(self, from: usize, keys: usize) {
        let Matrix { ptr, rows, columns } = self.head.k;
        let features = self.sizes.features;
        let mut j = 0;
        while j < keys {
            let n = (keys - j).min(PANEL);
            // SAFETY: keys below the number of keys; the memory has room for a tile.
            unsafe {
                let to = self.turned.add(j * features);
                let from = ptr.offset((from + j) as isize * rows);
                pack_panel(to, PANEL, n, features, from, columns, rows);
            }
            j += PANEL;
        }
    }

    /// The scores of one query, in whole vectors.
    #[inline(always)]
    unsafe fn row_products<S: Simd, const V: usize>(
        self,
        s: S,
        row: usize,
        keys: usize,
        scores: *mut f32,
    ) {
        let vectors = keys.div_ceil(LANES);
        let mut v = 0;
        // SAFETY: the tile's panels, and room for its scores.
        unsafe {
            while v + V <= vectors {
                self.row_chains::<S, V>(s, row, v, scores);
                v += V;
            }
            while v < vectors {
                self.row_chains::<S, 1>(s, row, v, scores);
                v += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn row_chains<S: Simd, const V: usize>(
        self,
        s: S,
        row: usize,
        vector: usize,
        scores: *mut f32,
    ) {
        let features = self.sizes.features;
        // SAFETY: the caller's promise.
        unsafe {
            let mut k = self.turned.add(vector * LANES * features).cast_const();
            let mut q = self.q.add(row);
            let mut acc = [s.splat(0.0); V];
            for _ in 0..features {
                let w = s.splat(*q);
                for v in 0..V {
                    acc[v] = s.fma(s.load(k.add(v * PANEL * features)), w, acc[v]);
                }
                k = k.wrapping_add(PANEL);
                q = q.wrapping_add(ROWS);
            }
            for v in 0..V {
                s.store(scores.add((vector + v) * LANES), acc[v]);
            }
        }
    }

    /// Scales and masks the scores of one query; returns the maximum so far.
    #[inline(always)]
    unsafe fn row_finish<S: Simd>(
        self,
        s: S,
        row: usize,
        from: usize,
        keys: usize,
        scores: *mut f32,
        max: f32,
    ) -> f32 {
        let scale = s.splat(self.sizes.scale);
        let lowest = s.splat(f32::NEG_INFINITY);
        let mut most = s.splat(max);
        // Keys of the tile that the query sees.
        let seen =
            if self.sizes.causal { (self.first + row + 1).saturating_sub(from) } else { keys };
        // SAFETY: the mask has this row, the memory room for a tile of it.
        unsafe {
            if let Some(Matrix { ptr, rows, columns }) = self.head.mask {
                let at = ptr.offset((self.first + row) as isize * rows + from as isize * columns);
                pack_panel(self.mask, keys.next_multiple_of(LANES), keys, 1, at, 0, columns);
            }
            let mut j = 0;
            while j < keys {
                let x = s.load(scores.add(j));
                let mut x = if self.head.mask.is_some() {
                    s.fma(x, scale, s.load(self.mask.add(j)))
                } else {
                    s.mul(x, scale)
                };
                let shown = seen.min(keys).saturating_sub(j);
                if shown < LANES {
                    x = s.select(s.mask_first(shown), x, lowest);
                }
                most = s.at_least(x, most);
                s.store(scores.add(j), x);
                j += LANES;
            }
        }
        s.tree_max(most)
    }
}
