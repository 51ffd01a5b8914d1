//! A block of queries of one head: the vectors' lanes are queries until the values are added up.

use crate::error::Result;
use crate::kernels::gemm::matrix::Matrix;
use crate::kernels::gemm::packing::pack_panel;
use crate::math::exp_of_nonpositive;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};

/// Queries of a block: two vectors.
pub(super) const ROWS: usize = 2 * LANES;
/// Keys of a tile. It is part of the kernel's definition.
pub(super) const KEYS: usize = 256;
/// Queries up to which the lanes are keys instead: those of more would stay empty.
const FEW: usize = 2;
/// Keys, or queries, of the innermost tile at most.
const MOST: usize = 8;

/// What all heads share.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) features: usize,
    pub(super) values: usize,
    pub(super) scale: f32,
    pub(super) causal: bool,
}

impl Sizes {
    /// Values of one key in whole vectors.
    fn width(&self) -> usize {
        self.values.next_multiple_of(LANES)
    }
}

/// The operands of one head; rows of the output follow each other.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) q: Matrix<f32>,
    pub(super) k: Matrix<f32>,
    pub(super) v: Matrix<f32>,
    pub(super) mask: Option<Matrix<f32>>,
    pub(super) out: *mut f32,
}

/// Working memory of one thread.
pub(super) struct Workspace {
    isa: Isa,
    sizes: Sizes,
    memory: Scratch,
    keys: Option<Scratch>,
    values: Option<Scratch>,
    turned: Option<Scratch>,
}

impl Workspace {
    pub(super) fn new(operator: &str, isa: Isa, sizes: Sizes) -> Result<Self> {
        let floats = ROWS * (sizes.features + 2 * (KEYS + MOST) + sizes.width());
        let memory = Scratch::new(operator, floats * size_of::<f32>())?;
        // Only the last block may have few queries.
        let few = (1..=FEW).contains(&(sizes.queries % ROWS));
        let bytes = KEYS * sizes.features * size_of::<f32>();
        let turned = few.then(|| Scratch::new(operator, bytes)).transpose()?;
        Ok(Self { isa, sizes, memory, keys: None, values: None, turned })
    }

    /// Lets the features of keys, and the values in whole vectors, follow each other: copies what does
    /// not, or takes the copies of the block before when `again`.
    ///
    /// # Safety
    /// The operands have the elements that the sizes say.
    pub(super) unsafe fn arrange(
        &mut self,
        operator: &str,
        head: &mut Head,
        again: bool,
    ) -> Result<()> {
        let Sizes { keys, features, values, .. } = self.sizes;
        let width = self.sizes.width();
        let bytes = |columns: usize| keys * columns * size_of::<f32>();
        // SAFETY: scratch memory of the sizes of the copies.
        unsafe {
            if head.k.columns != 1 && features > 1 {
                if self.keys.is_none() {
                    self.keys = Some(Scratch::new(operator, bytes(features))?);
                }
                if let Some(memory) = &mut self.keys {
                    let to = memory.as_mut::<f32>().as_mut_ptr();
                    if !again {
                        let Matrix { ptr, rows, columns } = head.k;
                        pack_panel(to, features, features, keys, ptr, rows, columns);
                    }
                    head.k = Matrix::new(to, features as isize, 1);
                }
            }
            if head.v.columns != 1 || width != values {
                if self.values.is_none() {
                    self.values = Some(Scratch::new(operator, bytes(width))?);
                }
                if let Some(memory) = &mut self.values {
                    let to = memory.as_mut::<f32>().as_mut_ptr();
                    if !again {
                        let Matrix { ptr, rows, columns } = head.v;
                        pack_panel(to, width, values, keys, ptr, rows, columns);
                    }
                    head.v = Matrix::new(to, width as isize, 1);
                }
            }
        }
        Ok(())
    }

    /// Computes the queries from `first` on, up to [`ROWS`] of them.
    ///
    /// # Safety
    /// The operands have the elements that the sizes say, arranged.
    pub(super) unsafe fn block(&mut self, head: Head, first: usize) {
        let Sizes { queries, features, .. } = self.sizes;
        let rows = (queries - first).min(ROWS);
        let q = self.memory.as_mut::<f32>().as_mut_ptr();
        let scores = q.wrapping_add(ROWS * features);
        let mask = scores.wrapping_add(ROWS * (KEYS + MOST));
        let sums = mask.wrapping_add(ROWS * (KEYS + MOST));
        // SAFETY: the queries exist; the memory has room for each part.
        unsafe {
            let from = head.q.ptr.offset(first as isize * head.q.rows);
            pack_panel(q, ROWS, rows, features, from, head.q.columns, head.q.rows);
        }
        let turned = self
            .turned
            .as_mut()
            .map_or(std::ptr::null_mut(), |turned| turned.as_mut::<f32>().as_mut_ptr());
        let block = Block { sizes: self.sizes, head, first, rows, q, scores, mask, sums, turned };
        dispatch_on(self.isa, block);
    }
}

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

/// The weight of row m for key j at `at + j * step + m`.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) at: *const f32,
    pub(super) step: usize,
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

    /// `sums[r] = factors[r] sums[r]`, or 0 with the first tile, then `fma(weight, value, sum)` for
    /// each key in order.
    #[inline(always)]
    unsafe fn add_values<S: Simd, const M: usize, const V: usize>(
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
