//! Logarithms: x = 2^k m with m in [sqrt(1/2), sqrt(2)).

use super::{polynomial, polynomial_f64};
use crate::simd::Simd;

const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
const SQRT_HALF: i32 = 0x3f35_04f3;
/// (log(1 + f) - f + f²/2) / f³.
const P: [f32; 8] = [
    0.333_333_3,
    -0.250_008_2,
    0.200_012_42,
    -0.166_234_08,
    0.142_015_78,
    -0.131_596_34,
    0.127_622_49,
    -0.076_364_025,
];

/// log of a positive normal `x` plus a `tail` that is small beside it.
#[inline(always)]
fn log_of_normal<S: Simd>(s: S, x: S::F, exponent: S::F, tail: S::F) -> S::F {
    let offset = s.sub_i(s.bits(x), s.splat_i(SQRT_HALF));
    let k = s.add(s.from_int(s.shr_i::<23>(offset)), exponent);
    let mantissa = s.and_i(offset, s.splat_i(0x007f_ffff));
    let m = s.from_bits(s.add_i(mantissa, s.splat_i(SQRT_HALF)));
    let f = s.sub(m, s.splat(1.0));
    let z = s.mul(f, f);
    let y = s.fma(s.mul(f, z), polynomial(s, f, P), tail);
    let y = s.fma(k, s.splat(LN2_LOW), y);
    let y = s.add(s.fma(s.splat(-0.5), z, y), f);
    s.fma(k, s.splat(LN2_HIGH), y)
}

/// The natural logarithm: -inf at 0, NaN below.
#[inline(always)]
pub fn log<S: Simd>(s: S, x: S::F) -> S::F {
    let zero = s.splat(0.0);
    let small = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let scaled = s.select(small, s.mul(x, s.splat(8_388_608.0)), x);
    let exponent = s.select(small, s.splat(-23.0), zero);
    let y = log_of_normal(s, scaled, exponent, zero);
    at_the_ends(s, x, y)
}

/// Puts log's values at 0, infinity, NaN and below 0.
#[inline(always)]
fn at_the_ends<S: Simd>(s: S, x: S::F, y: S::F) -> S::F {
    let infinity = s.splat(f32::INFINITY);
    let y = s.select(s.lt(x, infinity), y, x);
    let y = s.select(s.lt(x, s.splat(0.0)), s.splat(f32::NAN), y);
    s.select(s.eq(x, s.splat(0.0)), s.splat(f32::NEG_INFINITY), y)
}

/// log(1 + x) without cancellation: with u = 1 + x rounded, log u + (x - (u - 1)) / u.
#[inline(always)]
pub fn log1p<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    let u = s.add(one, x);
    // For |x| > 1 the larger summand is x.
    let swapped = s.lt(one, x);
    let lost = s.select(swapped, s.sub(one, s.sub(u, x)), s.sub(x, s.sub(u, one)));
    let y = log_of_normal(s, u, s.splat(0.0), s.div(lost, u));
    let y = at_the_ends(s, u, y);
    s.select(s.eq(x, s.splat(0.0)), x, y)
}

const LN2_HIGH_F64: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW_F64: f64 = 1.908_214_929_270_587_7e-10;
/// (log((1 + s) / (1 - s)) - 2s) / s³ = 2/3 + z M(z) with z = s².
const M: [f64; 8] = [
    0.399_999_999_999_999_8,
    0.285_714_285_714_451_23,
    0.222_222_222_175_336_02,
    0.181_818_188_706_665_38,
    0.153_845_568_469_487_16,
    0.133_363_183_461_213_62,
    0.116_747_996_470_802_06,
    0.119_891_705_901_884_79,
];

/// The sum of two numbers and its rounding error, for |a| >= |b| (Dekker 1971).
#[inline(always)]
pub(super) fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The exact product of two numbers.
#[inline(always)]
pub(super) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// k and the unevaluated sum (high, low) of log m, for a positive finite x = 2^k m: about 2^-65
/// relative to log x.
#[inline(always)]
fn log_parts(x: f64) -> (f64, f64, f64) {
    let subnormal = x < f64::MIN_POSITIVE;
    let scaled = if subnormal { x * 18_014_398_509_481_984.0 } else { x };
    let sqrt_half = 0x3fe6_a09e_667f_3bcdi64;
    let offset = scaled.to_bits().cast_signed().wrapping_sub(sqrt_half);
    // As i32, whose conversion vectorises.
    let k = f64::from((offset >> 52) as i32) - if subnormal { 54.0 } else { 0.0 };
    let m = f64::from_bits(((offset & 0x000f_ffff_ffff_ffff) + sqrt_half).cast_unsigned());
    let f = m - 1.0;
    // s = f / (2 + f) in two parts; 2 + f may round.
    let (d, d_low) = fast_two_sum(2.0, f);
    let s = f / d;
    let s_low = ((-s).mul_add(d, f) - s * d_low) / d;
    let (z, z_low) = two_product(s, s);
    let z_low = (2.0 * s).mul_add(s_low, z_low);
    // 2/3 s³ in two parts, the later terms in one.
    const THIRDS: f64 = 0.666_666_666_666_666_6;
    const THIRDS_LOW: f64 = 3.700_743_415_417_188e-17;
    let (c, c_low) = two_product(THIRDS, z);
    let c_low = THIRDS.mul_add(z_low, THIRDS_LOW.mul_add(z, c_low));
    let tail = z * z * polynomial_f64(z, M);
    let (c, carry) = fast_two_sum(c, tail);
    let c_low = c_low + carry;
    // log m = 2s + s c.
    let (p, p_low) = two_product(s, c);
    let p_low = s.mul_add(c_low, s_low.mul_add(c, p_low));
    let (high, low) = fast_two_sum(2.0 * s, p);
    (k, high, low + 2.0_f64.mul_add(s_low, p_low))
}

/// (high, low) of log x for a positive finite x.
#[inline(always)]
pub(super) fn log_extended(x: f64) -> (f64, f64) {
    let (k, high, low) = log_parts(x);
    // k times the 33 bits of LN2_HIGH is exact.
    let (sum, carry) = two_sum(k * LN2_HIGH_F64, high);
    let (sum, rest) = fast_two_sum(sum, k.mul_add(LN2_LOW_F64, low) + carry);
    (sum, rest)
}

/// The sum of two numbers in any order and its rounding error (Knuth).
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[inline(always)]
fn at_the_ends_f64(x: f64, y: f64) -> f64 {
    if x > 0.0 && x < f64::INFINITY {
        y
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 {
        f64::NAN
    } else {
        x
    }
}

/// The natural logarithm.
#[inline(always)]
#[must_use]
pub fn log_f64(x: f64) -> f64 {
    let (high, low) = log_extended(x);
    at_the_ends_f64(x, high + low)
}

/// The logarithm to base 2, exact for powers of two.
#[inline(always)]
#[must_use]
pub fn log2_f64(x: f64) -> f64 {
    const HIGH: f64 = std::f64::consts::LOG2_E;
    const LOW: f64 = 2.035_527_374_093_103_3e-17;
    let (k, high, low) = log_parts(x);
    let (p, p_low) = two_product(high, HIGH);
    let p_low = high.mul_add(LOW, low.mul_add(HIGH, p_low));
    let (sum, carry) = two_sum(k, p);
    at_the_ends_f64(x, sum + (carry + p_low))
}

/// The logarithm to base 10, exact for the powers of ten that f64 holds.
#[inline(always)]
#[must_use]
pub fn log10_f64(x: f64) -> f64 {
    const HIGH: f64 = std::f64::consts::LOG10_E;
    const LOW: f64 = 1.098_319_650_216_765e-17;
    let (high, low) = log_extended(x);
    let (p, p_low) = two_product(high, HIGH);
    let p_low = high.mul_add(LOW, low.mul_add(HIGH, p_low));
    at_the_ends_f64(x, p + p_low)
}

/// log(1 + x) without cancellation.
#[inline(always)]
#[must_use]
pub fn log1p_f64(x: f64) -> f64 {
    let (u, lost) = two_sum(1.0, x);
    let (high, low) = log_extended(u);
    let y = at_the_ends_f64(u, high + (low + lost / u));
    if x == 0.0 { x } else { y }
}
