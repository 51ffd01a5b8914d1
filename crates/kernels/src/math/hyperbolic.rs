//! Hyperbolic functions and their inverses, and softplus.

use super::exponential::{exp_f64, exp_inside, expm1_f64};
use super::logarithm::{log_f64, log1p_f64};
use super::{polynomial, through_f64};
use crate::simd::Simd;
use std::f64::consts::LN_2;

/// (tanh(x) / x - 1) / x² in x² for |x| < 0.6.
const T: [f32; 6] =
    [-0.333_333_3, 0.133_332_3, -0.053_950_07, 0.021_720_51, -0.008_230_544, 0.002_195_489_1];

/// tanh: a polynomial below 0.6, 1 - 2 / (e^2x + 1) above.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let a = s.abs(x);
    let is_small = s.lt(a, s.splat(0.6));
    let z = s.mul(x, x);
    let small = s.fma(s.mul(x, z), polynomial(s, z, T), x);
    // Beyond 10 the result is 1 to the last place.
    let b = s.at_most(a, s.splat(10.0));
    let e = exp_inside(s, s.add(b, b));
    let one = s.splat(1.0);
    let large = s.sub(one, s.div(s.splat(2.0), s.add(e, one)));
    s.copysign(s.select(is_small, small, large), x)
}

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), in f64 and rounded once.
#[inline(always)]
pub fn softplus<S: Simd>(s: S, x: S::F) -> S::F {
    through_f64!(s, x => softplus_f64(x))
}

/// log(1 + e^x).
#[inline(always)]
#[must_use]
pub fn softplus_f64(x: f64) -> f64 {
    let tail = log1p_f64(exp_f64(-x.abs()));
    if x < 0.0 { tail } else { x + tail }
}

#[inline(always)]
#[must_use]
pub fn tanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let b = if a > 22.0 { 22.0 } else { a };
    let t = expm1_f64(2.0 * b);
    let y = if a < 1.0 { t / (t + 2.0) } else { 1.0 - 2.0 / (t + 2.0) };
    y.copysign(x)
}

/// Half of e^a for a large a, also where e^a overflows and its half does not.
#[inline(always)]
fn half_exp(a: f64) -> f64 {
    let w = exp_f64(0.5 * a);
    if a > 709.0 { 0.5 * w * w } else { 0.5 * exp_f64(a) }
}

#[inline(always)]
#[must_use]
pub fn sinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let t = expm1_f64(if a > 22.0 { 22.0 } else { a });
    let y = if a < 1.0 { 0.5 * (2.0 * t - t * t / (t + 1.0)) } else { 0.5 * (t + t / (t + 1.0)) };
    let y = if a > 22.0 { half_exp(a) } else { y };
    y.copysign(x)
}

#[inline(always)]
#[must_use]
pub fn cosh_f64(x: f64) -> f64 {
    let a = x.abs();
    let t = expm1_f64(if a > 22.0 { 22.0 } else { a });
    let e = 1.0 + t;
    let y = if a < 0.35 { 1.0 + t * t / (2.0 * e) } else { 0.5 * e + 0.5 / e };
    if a > 22.0 { half_exp(a) } else { y }
}

#[inline(always)]
#[must_use]
pub fn asinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let y = if a > 268_435_456.0 {
        log_f64(a) + LN_2
    } else if a > 2.0 {
        log_f64(2.0 * a + 1.0 / ((square + 1.0).sqrt() + a))
    } else {
        log1p_f64(a + square / (1.0 + (1.0 + square).sqrt()))
    };
    y.copysign(x)
}

#[inline(always)]
#[must_use]
pub fn acosh_f64(x: f64) -> f64 {
    if x > 268_435_456.0 {
        log_f64(x) + LN_2
    } else if x > 2.0 {
        log_f64(2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt()))
    } else {
        let t = if x < 1.0 { f64::NAN } else { x - 1.0 };
        log1p_f64(t + (2.0 * t + t * t).sqrt())
    }
}

#[inline(always)]
#[must_use]
pub fn atanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let d = a + a;
    let inner = if a < 0.5 { d + d * a / (1.0 - a) } else { d / (1.0 - a) };
    (0.5 * log1p_f64(inner)).copysign(x)
}
