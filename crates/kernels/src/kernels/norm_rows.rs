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

use crate::kernels::number::Number;
use crate::simd::{LANES, PlainLoop};

/// A row and the coefficients of its elements.
#[derive(Clone, Copy)]
pub(crate) enum Coefficients<'a, T> {
    Each(&'a [T]),
    One(T),
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
        let mut sums = [0.0; LANES];
        if !self.centred {
            lanes(n, 0, |l, i| sums[l] += self.x[i].mul(self.x[i]).to_f64());
            let square = T::from_f64(tree(sums) / n as f64).add(T::from_f64(self.epsilon));
            // A root or a quotient of f32 taken in f64 and rounded is the correctly rounded one.
            let root = T::from_f64(square.to_f64().sqrt());
            return (0.0, 1.0 / root.to_f64());
        }
        lanes(n, 0, |l, i| sums[l] += self.x[i].to_f64());
        let mean = tree(sums) / n as f64;
        let mut sums = [0.0; LANES];
        lanes(n, 0, |l, i| {
            let d = self.x[i].to_f64() - mean;
            sums[l] = d.mul_add(d, sums[l]);
        });
        (mean, 1.0 / (tree(sums) / n as f64 + self.epsilon).sqrt())
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

impl<T: Number> PlainLoop for NormaliseChannel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            let hat = x.sub(self.mean).mul(self.r).add(T::ZERO);
            *y = hat.mul(self.scale).add(self.bias);
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

impl<T: Number> PlainLoop for Normalise<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { x, y, mean, r, scale, bias } = self;
        let hat = |x: T| x.sub(mean).mul(r);
        match bias {
            Some(bias) => {
                for (((x, y), a), b) in x.iter().zip(y).zip(scale).zip(bias) {
                    *y = hat(*x).fma(*a, *b);
                }
            }
            None => {
                for ((x, y), a) in x.iter().zip(y).zip(scale) {
                    *y = hat(*x).mul(*a);
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
