//! e^x, e^x - 1 and the logistic function: x = n ln 2 + r, |r| <= ln(2)/2, and
//! e^r = 1 + (r + r² Q(r)).

use super::logarithm::two_sum;
use super::{polynomial, polynomial_f64, power_of_two};
use crate::simd::Simd;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in nine bits, so that n times it is exact, and the rest.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding it to a small number rounds that number to an integer, in the low bits of the sum.
const MAGIC: f32 = 12_582_912.0;
const Q: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_262, 0.008_368_674, 0.001_382_103_8];

/// n, as an integer and a float, and r with x = n ln 2 + r, for |x| below about 100.
#[inline(always)]
fn split<S: Simd>(s: S, x: S::F) -> (S::I, S::F, S::F) {
    let magic = s.splat(MAGIC);
    let shifted = s.fma(x, s.splat(LOG2_E), magic);
    let n = s.sub(shifted, magic);
    let r = s.fma(n, s.splat(-LN2_HIGH), x);
    let r = s.fma(n, s.splat(-LN2_LOW), r);
    (s.sub_i(s.bits(shifted), s.splat_i(MAGIC.to_bits().cast_signed())), n, r)
}

/// e^r - 1.
#[inline(always)]
fn expm1_of_rest<S: Simd>(s: S, r: S::F) -> S::F {
    s.fma(s.mul(r, r), polynomial(s, r, Q), r)
}

/// n, as an integer and a float, and t = e^r - 1 with x = n ln 2 + r, for |x| below about 100.
#[inline(always)]
fn reduced<S: Simd>(s: S, x: S::F) -> (S::I, S::F, S::F) {
    let (n, whole, r) = split(s, x);
    (n, whole, expm1_of_rest(s, r))
}

/// 2^n for -126 <= n <= 127.
#[inline(always)]
fn scale<S: Simd>(s: S, n: S::I) -> S::F {
    s.from_bits(s.shl_i::<23>(s.add_i(n, s.splat_i(127))))
}

/// e^x for -87 <= x <= 88 (outside: unspecified), as [`exp`] there.
#[inline(always)]
pub(super) fn exp_inside<S: Simd>(s: S, x: S::F) -> S::F {
    let (n, _, t) = reduced(s, x);
    s.mul(s.add(s.splat(1.0), t), scale(s, n))
}

/// 1 - e^-(u + low) for 0 <= u <= 87 and a `low` far below it: the power is not rounded before it is
/// subtracted.
#[inline(always)]
pub(super) fn one_minus_exp<S: Simd>(s: S, u: S::F, low: S::F) -> S::F {
    let (n, _, r) = split(s, s.neg(u));
    let t = expm1_of_rest(s, s.sub(r, low));
    let power = scale(s, n);
    s.fma(s.neg(power), t, s.sub(s.splat(1.0), power))
}

/// e^x. Underflow is gradual and rounded once.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    let x = s.at_most(s.at_least(x, s.splat(-104.0)), s.splat(89.0));
    let (n, whole, t) = reduced(s, x);
    s.scale_by_power(s.add(s.splat(1.0), t), n, whole)
}

/// e^x for x <= 0 or NaN (above 89: unspecified), as [`exp`] there.
#[inline(always)]
pub fn exp_of_nonpositive<S: Simd>(s: S, x: S::F) -> S::F {
    let (n, whole, t) = reduced(s, s.at_least(x, s.splat(-104.0)));
    s.scale_by_power(s.add(s.splat(1.0), t), n, whole)
}

/// e^x - 1 without cancellation.
#[inline(always)]
pub fn expm1<S: Simd>(s: S, x: S::F) -> S::F {
    let a = s.at_most(s.at_least(x, s.splat(-20.0)), s.splat(89.0));
    let (n, _, t) = reduced(s, a);
    // Half of the result, so that n = 128 does not overflow before the end.
    let half = scale(s, s.sub_i(n, s.splat_i(1)));
    let y = s.fma(half, t, s.sub(half, s.splat(0.5)));
    let y = s.add(y, y);
    let y = s.select(s.eq_i(n, s.splat_i(0)), t, y);
    s.select(s.eq(x, s.splat(0.0)), x, y)
}

/// 1 / (1 + e^-x): with z = e^-|x| in two parts the denominator's rounding error is compensated.
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let (one, zero) = (s.splat(1.0), s.splat(0.0));
    let a = s.neg(s.abs(x));
    let (n, whole, t) = reduced(s, s.at_least(a, s.splat(-104.0)));
    let p = s.add(one, t);
    let z = s.scale_by_power(p, n, whole);
    // Below -80 the second part is far below anything that shows.
    let z_low = s.mul(s.sub(t, s.sub(p, one)), scale(s, n));
    let z_low = s.select(s.lt(a, s.splat(-80.0)), zero, z_low);
    let d = s.add(one, z);
    let d_low = s.add(s.sub(z, s.sub(d, one)), z_low);
    let inverse = s.div(one, d);
    let relative = s.fma(s.neg(d_low), inverse, s.fma(s.neg(d), inverse, one));
    let negative = s.lt(x, zero);
    let (high, low) = (s.select(negative, z, one), s.select(negative, z_low, zero));
    let q = s.mul(high, inverse);
    // What rounding q has lost, the second part, and the error of the inverse.
    let rest = s.fma(low, inverse, s.fma(high, inverse, s.neg(q)));
    s.add(q, s.fma(q, relative, rest))
}

const LN2_HIGH_F64: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW_F64: f64 = 1.908_214_929_270_587_7e-10;
const MAGIC_F64: f64 = 6_755_399_441_055_744.0;
const Q_F64: [f64; 12] = [
    0.5,
    0.166_666_666_666_666_66,
    0.041_666_666_666_666_71,
    0.008_333_333_333_333_34,
    0.001_388_888_888_886_504,
    0.000_198_412_698_412_382_56,
    2.480_158_736_172_018_6e-5,
    2.755_731_928_757_859_4e-6,
    2.755_724_300_867_227e-7,
    2.505_204_114_148_704e-8,
    2.092_410_939_556_598e-9,
    1.609_496_407_862_027_3e-10,
];

/// n, r and the rest of e^r - 1 beyond r, with x + low = n ln 2 + r.
#[inline(always)]
fn reduced_f64(x: f64, low: f64) -> (i64, f64, f64) {
    let shifted = x.mul_add(std::f64::consts::LOG2_E, MAGIC_F64);
    let n = shifted - MAGIC_F64;
    let high = n.mul_add(-LN2_HIGH_F64, x);
    let r = n.mul_add(-LN2_LOW_F64, high);
    // What the last step rounded off, and the tail of x.
    let rest = n.mul_add(-LN2_LOW_F64, high - r) + low;
    let tail = r * r * polynomial_f64(r, Q_F64);
    let tail = rest.mul_add(1.0 + (r + tail), tail);
    (shifted.to_bits().cast_signed() - MAGIC_F64.to_bits().cast_signed(), r, tail)
}

/// e^(x + low) for a `low` far below x's last place.
#[inline(always)]
pub(super) fn exp_extended(x: f64, low: f64) -> f64 {
    let a = if x < -746.0 { -746.0 } else { x };
    let a = if a > 710.0 { 710.0 } else { a };
    let (n, r, tail) = reduced_f64(a, if a == x { low } else { 0.0 });
    // Two exact steps and one rounding, also into the subnormal range.
    let half = n >> 1;
    (1.0 + (r + tail)) * power_of_two(half) * power_of_two(n - half)
}

/// e^x.
#[inline(always)]
#[must_use]
pub fn exp_f64(x: f64) -> f64 {
    exp_extended(x, 0.0)
}

/// e^x - 1 without cancellation.
#[inline(always)]
#[must_use]
pub fn expm1_f64(x: f64) -> f64 {
    let a = if x < -50.0 { -50.0 } else { x };
    let a = if a > 710.0 { 710.0 } else { a };
    let (n, r, tail) = reduced_f64(a, 0.0);
    // Half of (2^n - 1) + 2^n (r + tail), the first sum with its rounding error.
    let half = power_of_two(n - 1);
    let (sum, lost) = two_sum(half - 0.5, half * r);
    let y = 2.0 * (sum + half.mul_add(tail, lost));
    let y = if n == 0 { r + tail } else { y };
    if x == 0.0 { x } else { y }
}

/// 1 / (1 + e^-x).
#[inline(always)]
#[must_use]
pub fn sigmoid_f64(x: f64) -> f64 {
    let z = exp_f64(-x.abs());
    let d = 1.0 + z;
    let error = z - (d - 1.0);
    let q = (if x < 0.0 { z } else { 1.0 }) / d;
    (-q).mul_add(error / d, q)
}
