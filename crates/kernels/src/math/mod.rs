//! Elementary functions from IEEE add, multiply, fma, divide, square root and integer operations
//! only: no C library, so the bits are the same everywhere.
//!
//! The functions on 16 lanes of f32 (`exp`, `tanh`, …) are within 2 ulp and monotone where the
//! function is. Over every f32 the largest errors were 1.01 ulp for exp, 1.46 for expm1, 0.85 for
//! log, 0.86 for log1p, 1.33 for tanh, 1.01 for the logistic function, 0.86 for erf and 0.50 for
//! softplus (the sweep that tests/math.rs leaves out by default). The ones of f64 (`exp_f64`, …) are within about 1 ulp
//! unless their page says otherwise; rounded to f32 they are nearly always the correctly rounded f32
//! result. Polynomials are minimax fits (Remez exchange, 60 digits) made for these intervals; argument
//! reductions follow Cody and Waite, "Software Manual for the Elementary Functions" (1980), Payne and
//! Hanek (1983) and Muller, "Elementary Functions" (2016).

mod circular;
mod error_function;
mod exponential;
mod hyperbolic;
mod inverse_circular;
mod logarithm;
mod power;

pub use circular::{
    cos_f64, cos_moderate, cos_of_f32, is_moderate, sin_f64, sin_moderate, sin_of_f32, tan_f64,
    tan_moderate, tan_of_f32,
};
pub use error_function::{erf, erf_f64};
pub use exponential::{exp, exp_f64, exp_of_nonpositive, expm1, expm1_f64, sigmoid, sigmoid_f64};
pub use hyperbolic::{
    acosh_f64, asinh_f64, atanh_f64, cosh_f64, sinh_f64, softplus, softplus_f64, tanh, tanh_f64,
};
pub use inverse_circular::{acos_f64, asin_f64, atan_f64, atan2_f64};
pub use logarithm::{log, log_f64, log1p, log1p_f64, log2_f64, log10_f64};
pub use power::pow_f64;

use crate::simd::Simd;

/// c[0] + c[1] x + … by Horner's rule with fma, highest first.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(s: S, x: S::F, c: [f32; N]) -> S::F {
    let mut y = s.splat(c[N - 1]);
    for k in (0..N - 1).rev() {
        y = s.fma(y, x, s.splat(c[k]));
    }
    y
}

/// The same in f64.
#[inline(always)]
fn polynomial_f64<const N: usize>(x: f64, c: [f64; N]) -> f64 {
    let mut y = c[N - 1];
    for k in (0..N - 1).rev() {
        y = y.mul_add(x, c[k]);
    }
    y
}

/// 2^n for -1022 <= n <= 1023.
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((n + 1023) << 52).cast_unsigned())
}

/// Applies an f64 expression to each lane and rounds once to f32: `through_f64!(s, x => f(x))`, or of
/// two vectors `through_f64!(s, x, y => f(x, y))`. A macro, so that the body is compiled with the
/// caller's instructions whatever its size.
macro_rules! through_f64 {
    ($s:expr, $x:ident => $body:expr) => {{
        let lanes = $s.to_array($x);
        let mut result = [0.0f32; $crate::simd::LANES];
        for (lane, y) in lanes.into_iter().zip(result.iter_mut()) {
            let $x = f64::from(lane);
            *y = $body as f32;
        }
        // SAFETY: 16 elements.
        unsafe { $s.load(result.as_ptr()) }
    }};
    ($s:expr, $x:ident, $z:ident => $body:expr) => {{
        let (first, second) = ($s.to_array($x), $s.to_array($z));
        let mut result = [0.0f32; $crate::simd::LANES];
        for ((a, b), y) in first.into_iter().zip(second).zip(result.iter_mut()) {
            let ($x, $z) = (f64::from(a), f64::from(b));
            *y = $body as f32;
        }
        // SAFETY: 16 elements.
        unsafe { $s.load(result.as_ptr()) }
    }};
}
pub(crate) use through_f64;
