//! The rows of layer, group, instance and root-mean-square normalisation.
//!
//! Sums run in f64 through 16 lanes and their tree. mean = sum / n, var = sum fma(d, d) / n of
//! d = x - mean unrounded, r = 1 / sqrt(var + epsilon) in f64. With mean and r rounded to the dtype,
//! xhat = (x - mean) r. Layers: y = fma(xhat, scale, bias), without a bias xhat scale. Groups and
//! instances: y = (xhat + 0) scale + bias, each step rounded. Root mean square: every step is rounded,
//! m = mean(x x), r = 1 / sqrt(m + epsilon), y = (x r) scale. The last two are thereby the same
//! operations as their forms in a graph of smaller operators.
//!
//! The gradient: u = g scale, dx = r fma(-xhat, k2, u - k1) with k1 = sum u / n (root mean square:
//! none) and k2 = sum fma(u, xhat) / n; dscale sums fma(g, xhat) and db g over rows, in order, through
//! 16 lanes in f64.

use crate::kernels::lanes::{Lane, Term, for_lanes, row_sum};
use crate::simd::{LANES, Simd, WithSimd};

/// A row and the coefficients of its elements.
#[derive(Clone, Copy)]
pub(crate) enum Coefficients<'a, T> {
    Each(&'a [T]),
    One(T),
}

impl<T: Lane> Coefficients<'_, T> {
    /// Those of `count` elements from `i` on.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    unsafe fn at<S: Simd>(&self, s: S, i: usize, count: usize) -> T::V<S> {
        match self {
            // SAFETY: the caller's promise.
            Self::Each(all) => unsafe { T::get(s, all.as_ptr().add(i), count) },
            Self::One(value) => T::splat(s, *value),
        }
    }

    fn fits(&self, n: usize) -> bool {
        match self {
            Self::Each(all) => all.len() == n,
            Self::One(_) => true,
        }
    }
}

/// Mean (0 unless `centred`) and r of a row.
pub(crate) struct Statistics<'a, T> {
    pub x: &'a [T],
    pub centred: bool,
    pub epsilon: f64,
}

impl<T: Lane> WithSimd for Statistics<'_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> (f64, f64) {
        let (x, n) = (self.x.as_ptr(), self.x.len());
        let count = n as f64;
        // SAFETY: a slice of `n`.
        unsafe {
            if !self.centred {
                let mean = row_sum(s, Term::RoundedSquare, x, n) / count;
                let square = T::from_f64(mean).add(T::from_f64(self.epsilon));
                // A root or a quotient of f32 taken in f64 and rounded is the correctly rounded one.
                let root = T::from_f64(square.to_f64().sqrt());
                return (0.0, 1.0 / root.to_f64());
            }
            let mean = row_sum(s, Term::Value, x, n) / count;
            let var = row_sum(s, Term::Deviation(mean), x, n) / count;
            (mean, 1.0 / (var + self.epsilon).sqrt())
        }
    }
}

/// `y = ((x - mean) r + 0) scale + bias`, each step rounded.
pub(crate) struct NormaliseChannel<'a, T> {
    pub x: &'a [T],
    pub y: &'a mut [T],
    pub mean: T,
    pub r: T,
    pub scale: T,
    pub bias: T,
}

impl<T: Lane> WithSimd for NormaliseChannel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.x.len();
        assert!(self.y.len() == n);
        let (x, y) = (self.x.as_ptr(), self.y.as_mut_ptr());
        let (mean, r, zero) = (T::splat(s, self.mean), T::splat(s, self.r), T::splat(s, T::ZERO));
        let (scale, bias) = (T::splat(s, self.scale), T::splat(s, self.bias));
        // SAFETY: both slices hold `n`.
        unsafe {
            for_lanes!(n, |i, count| {
                let hat = T::v_mul(s, T::v_sub(s, T::get(s, x.add(i), count), mean), r);
                let v = T::v_mul(s, T::v_add(s, hat, zero), scale);
                T::put(s, y.add(i), count, T::v_add(s, v, bias));
            });
        }
    }
}

/// `y = fma((x - mean) r, scale, bias)`.
pub(crate) struct Normalise<'a, T> {
    pub x: &'a [T],
    pub y: &'a mut [T],
    pub mean: T,
    pub r: T,
    pub scale: &'a [T],
    pub bias: Option<&'a [T]>,
}

impl<T: Lane> WithSimd for Normalise<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.x.len();
        assert!(self.y.len() == n && self.scale.len() == n);
        assert!(self.bias.is_none_or(|b| b.len() == n));
        let (x, y, scale) = (self.x.as_ptr(), self.y.as_mut_ptr(), self.scale.as_ptr());
        let (mean, r) = (T::splat(s, self.mean), T::splat(s, self.r));
        // SAFETY: all slices hold `n`.
        unsafe {
            for_lanes!(n, |i, count| {
                let hat = T::v_mul(s, T::v_sub(s, T::get(s, x.add(i), count), mean), r);
                let scale = T::get(s, scale.add(i), count);
                let v = match self.bias {
                    Some(bias) => T::v_fma(s, hat, scale, T::get(s, bias.as_ptr().add(i), count)),
                    None => T::v_mul(s, hat, scale),
                };
                T::put(s, y.add(i), count, v);
            });
        }
    }
}

/// Rows of as many elements as `scale` has: their statistics, then [`Normalise`].
pub(crate) struct NormaliseRows<'a, T> {
    pub x: &'a [T],
    pub y: &'a mut [T],
    /// One for each row, unless the mean is not subtracted.
    pub means: Option<&'a mut [T]>,
    pub inverses: &'a mut [T],
    pub scale: &'a [T],
    pub bias: Option<&'a [T]>,
    pub epsilon: f64,
}

impl<T: Lane> WithSimd for NormaliseRows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (scale, bias, epsilon) = (self.scale, self.bias, self.epsilon);
        let (n, centred) = (scale.len(), self.means.is_some());
        let rows = self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n));
        for (row, (x, y)) in rows.enumerate() {
            let (mean, r) = Statistics { x, centred, epsilon }.run(s);
            let (mean, r) = (T::from_f64(mean), T::from_f64(r));
            if let Some(means) = &mut self.means {
                means[row] = mean;
            }
            self.inverses[row] = r;
            Normalise { x, y, mean, r, scale, bias }.run(s);
        }
    }
}

/// One row (or part of one) with its gradient.
#[derive(Clone, Copy)]
pub(crate) struct GradientRow<'a, T> {
    pub x: &'a [T],
    pub g: &'a [T],
    pub mean: T,
    pub r: T,
    pub scale: Coefficients<'a, T>,
}

impl<T: Lane> GradientRow<'_, T> {
    fn len(&self) -> usize {
        let n = self.x.len();
        assert!(self.g.len() == n && self.scale.fits(n));
        n
    }

    /// xhat and g of `count` elements from `i` on.
    ///
    /// # Safety
    /// The elements exist.
    #[inline(always)]
    unsafe fn at<S: Simd>(&self, s: S, i: usize, count: usize) -> (T::V<S>, T::V<S>) {
        // SAFETY: the caller's promise.
        unsafe {
            let x = T::get(s, self.x.as_ptr().add(i), count);
            let hat = T::v_sub(s, x, T::splat(s, self.mean));
            (T::v_mul(s, hat, T::splat(s, self.r)), T::get(s, self.g.as_ptr().add(i), count))
        }
    }
}

/// Adds a part's sum of u and sum fma(u, xhat) to lanes, from lane `phase` on.
pub(crate) struct GradientSums<'a, T> {
    pub row: GradientRow<'a, T>,
    pub phase: usize,
    pub sums: &'a mut [[f64; LANES]; 2],
}

impl<T: Lane> WithSimd for GradientSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let row = self.row;
        let n = row.len();
        let head = if self.phase == 0 { 0 } else { (LANES - self.phase).min(n) };
        for i in 0..head {
            let hat = row.x[i].sub(row.mean).mul(row.r);
            let scale = match row.scale {
                Coefficients::Each(all) => all[i],
                Coefficients::One(value) => value,
            };
            let (l, u) = (self.phase + i, row.g[i].mul(scale).to_f64());
            self.sums[0][l] += u;
            self.sums[1][l] = u.mul_add(hat.to_f64(), self.sums[1][l]);
        }
        let [first, second] = self.sums;
        // SAFETY: below `n`, and arrays of 16.
        unsafe {
            let (mut sum, mut product) = (s.load_d(first.as_ptr()), s.load_d(second.as_ptr()));
            for_lanes!(n - head, |i, count| {
                let (hat, g) = row.at(s, head + i, count);
                let u = T::v_mul(s, g, row.scale.at(s, head + i, count));
                // Beyond the end g is 0 and hat as finite as the row's statistics.
                let u = T::widen(s, u);
                sum = s.add_d(sum, u);
                product = s.fma_d(u, T::widen(s, hat), product);
            });
            s.store_d(first.as_mut_ptr(), sum);
            s.store_d(second.as_mut_ptr(), product);
        }
    }
}

/// `dx = r fma(-xhat, k2, u - k1)`.
pub(crate) struct GradientInput<'a, T> {
    pub row: GradientRow<'a, T>,
    pub k1: T,
    pub k2: T,
    pub dx: &'a mut [T],
}

impl<T: Lane> WithSimd for GradientInput<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let row = self.row;
        let n = row.len();
        assert!(self.dx.len() == n);
        let (k1, k2) = (T::splat(s, self.k1), T::splat(s, self.k2));
        let (r, dx) = (T::splat(s, row.r), self.dx.as_mut_ptr());
        // SAFETY: all slices hold `n`.
        unsafe {
            for_lanes!(n, |i, count| {
                let (hat, g) = row.at(s, i, count);
                let u = T::v_sub(s, T::v_mul(s, g, row.scale.at(s, i, count)), k1);
                let v = T::v_mul(s, r, T::v_fma(s, T::v_neg(s, hat), k2, u));
                T::put(s, dx.add(i), count, v);
            });
        }
    }
}

/// Adds one row's g xhat and g to the lanes of each of its columns.
pub(crate) struct GradientColumns<'a, T> {
    pub row: GradientRow<'a, T>,
    pub dscale: &'a mut [f64],
    pub db: &'a mut [f64],
}

impl<T: Lane> WithSimd for GradientColumns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let row = self.row;
        let n = row.len();
        assert!(self.dscale.len() == n && self.db.len() == n);
        let (dscale, db) = (self.dscale.as_mut_ptr(), self.db.as_mut_ptr());
        // SAFETY: all slices hold `n`.
        unsafe {
            for_lanes!(n, |i, count| {
                let (hat, g) = row.at(s, i, count);
                let g = T::widen(s, g);
                let product = f64::get(s, dscale.add(i), count);
                let product = s.fma_d(g, T::widen(s, hat), product);
                f64::put(s, dscale.add(i), count, product);
                let sum = f64::get(s, db.add(i), count);
                f64::put(s, db.add(i), count, s.add_d(sum, g));
            });
        }
    }
}
