//! The rows of layer, group, instance and root-mean-square normalisation.
//!
//! Sums run in f64 through 16 lanes and their tree. mean = sum / n, var = sum fma(d, d) / n of
//! d = x - mean unrounded (root mean square: d = x), r = 1 / sqrt(var + epsilon) in f64. With mean and
//! r rounded to the dtype, xhat = (x - mean) r and y = fma(xhat, scale, bias), without a bias
//! xhat scale. The gradient: u = g scale, dx = r fma(-xhat, k2, u - k1) with k1 = sum u / n (root mean
//! square: none) and k2 = sum fma(u, xhat) / n; dscale sums fma(g, xhat) and db g over rows, in order,
//! through 16 lanes in f64.

use crate::kernels::number::Number;
use crate::simd::{LANES, PlainLoop};

/// A row and the coefficients of its elements.
#[derive(Clone, Copy)]
pub(crate) enum Coefficients<'a, T> {
    Each(&'a [T]),
    One(T),
}

impl<T: Copy> Coefficients<'_, T> {
    #[inline(always)]
    fn at(&self, i: usize) -> T {
        match self {
            Self::Each(all) => all[i],
            Self::One(value) => *value,
        }
    }
}

/// The fixed tree over 16 lanes.
#[inline(always)]
pub(crate) fn tree(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Calls `f(lane, element index)` for a row whose first element belongs to lane `phase`.
#[inline(always)]
fn lanes(n: usize, phase: usize, mut f: impl FnMut(usize, usize)) {
    let head = if phase == 0 { 0 } else { (LANES - phase).min(n) };
    for i in 0..head {
        f(phase + i, i);
    }
    let whole = (n - head) / LANES;
    for block in 0..whole {
        for l in 0..LANES {
            f(l, head + block * LANES + l);
        }
    }
    for i in head + whole * LANES..n {
        f(i - head - whole * LANES, i);
    }
}

/// Mean (0 unless `centred`) and r of a row.
pub(crate) struct Statistics<'a, T> {
    pub x: &'a [T],
    pub centred: bool,
    pub epsilon: f64,
}

impl<T: Number> PlainLoop for Statistics<'_, T> {
    type Output = (f64, f64);
    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let n = self.x.len();
        let mut mean = 0.0;
        if self.centred {
            let mut sums = [0.0; LANES];
            lanes(n, 0, |l, i| sums[l] += self.x[i].to_f64());
            mean = tree(sums) / n as f64;
        }
        let mut sums = [0.0; LANES];
        lanes(n, 0, |l, i| {
            let d = self.x[i].to_f64() - mean;
            sums[l] = d.mul_add(d, sums[l]);
        });
        (mean, 1.0 / (tree(sums) / n as f64 + self.epsilon).sqrt())
    }
}

/// `y = fma((x - mean) r, scale, bias)`.
pub(crate) struct Normalise<'a, T> {
    pub x: &'a [T],
    pub y: &'a mut [T],
    pub mean: T,
    pub r: T,
    pub scale: Coefficients<'a, T>,
    pub bias: Option<Coefficients<'a, T>>,
}

impl<T: Number> PlainLoop for Normalise<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { x, y, mean, r, scale, bias } = self;
        let hat = |x: T| x.sub(mean).mul(r);
        match (scale, bias) {
            (Coefficients::Each(a), Some(Coefficients::Each(b))) => {
                for (((x, y), a), b) in x.iter().zip(y).zip(a).zip(b) {
                    *y = hat(*x).fma(*a, *b);
                }
            }
            (Coefficients::One(a), Some(Coefficients::One(b))) => {
                for (x, y) in x.iter().zip(y) {
                    *y = hat(*x).fma(a, b);
                }
            }
            (a, Some(b)) => {
                for (i, (x, y)) in x.iter().zip(y).enumerate() {
                    *y = hat(*x).fma(a.at(i), b.at(i));
                }
            }
            (Coefficients::Each(a), None) => {
                for ((x, y), a) in x.iter().zip(y).zip(a) {
                    *y = hat(*x).mul(*a);
                }
            }
            (Coefficients::One(a), None) => {
                for (x, y) in x.iter().zip(y) {
                    *y = hat(*x).mul(a);
                }
            }
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

impl<T: Number> GradientRow<'_, T> {
    #[inline(always)]
    fn hat(&self, i: usize) -> T {
        self.x[i].sub(self.mean).mul(self.r)
    }
}

/// Adds a part's sum of u and sum fma(u, xhat) to lanes, from lane `phase` on.
pub(crate) struct GradientSums<'a, T> {
    pub row: GradientRow<'a, T>,
    pub phase: usize,
    pub sums: &'a mut [[f64; LANES]; 2],
}

impl<T: Number> PlainLoop for GradientSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let row = self.row;
        let [mut first, mut second] = *self.sums;
        let n = row.x.len().min(row.g.len());
        let row = GradientRow { x: &row.x[..n], g: &row.g[..n], ..row };
        match row.scale {
            Coefficients::Each(scale) => {
                let scale = &scale[..n];
                lanes(n, self.phase, |l, i| {
                    let u = row.g[i].mul(scale[i]).to_f64();
                    first[l] += u;
                    second[l] = u.mul_add(row.hat(i).to_f64(), second[l]);
                });
            }
            Coefficients::One(scale) => lanes(n, self.phase, |l, i| {
                let u = row.g[i].mul(scale).to_f64();
                first[l] += u;
                second[l] = u.mul_add(row.hat(i).to_f64(), second[l]);
            }),
        }
        *self.sums = [first, second];
    }
}

/// `dx = r fma(-xhat, k2, u - k1)`.
pub(crate) struct GradientInput<'a, T> {
    pub row: GradientRow<'a, T>,
    pub k1: T,
    pub k2: T,
    pub dx: &'a mut [T],
}

impl<T: Number> PlainLoop for GradientInput<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { row, k1, k2, dx } = self;
        let of = |x: T, g: T, scale: T| {
            let hat = x.sub(row.mean).mul(row.r);
            row.r.mul(hat.neg().fma(k2, g.mul(scale).sub(k1)))
        };
        match row.scale {
            Coefficients::Each(scale) => {
                for (((x, g), s), d) in row.x.iter().zip(row.g).zip(scale).zip(dx) {
                    *d = of(*x, *g, *s);
                }
            }
            Coefficients::One(scale) => {
                for ((x, g), d) in row.x.iter().zip(row.g).zip(dx) {
                    *d = of(*x, *g, scale);
                }
            }
        }
    }
}

/// Adds one row's g xhat and g to the lanes of each of its columns.
pub(crate) struct GradientColumns<'a, T> {
    pub row: GradientRow<'a, T>,
    pub dscale: &'a mut [f64],
    pub db: &'a mut [f64],
}

impl<T: Number> PlainLoop for GradientColumns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let row = self.row;
        for (((x, g), s), b) in row.x.iter().zip(row.g).zip(self.dscale).zip(self.db) {
            let hat = x.sub(row.mean).mul(row.r);
            *s = g.to_f64().mul_add(hat.to_f64(), *s);
            *b += g.to_f64();
        }
    }
}
