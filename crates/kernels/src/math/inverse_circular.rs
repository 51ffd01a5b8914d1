//! asin, acos, atan and atan2.

use super::polynomial_f64;
use std::f64::consts::{FRAC_PI_2, PI};

const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;

/// (asin(x) / x - 1) / x² in x² for |x| <= 1/2.
const A: [f64; 13] = [
    0.166_666_666_666_667_63,
    0.074_999_999_999_699_27,
    0.044_642_857_175_457_92,
    0.030_381_942_666_671_74,
    0.022_372_216_158_078_648,
    0.017_351_590_806_705_5,
    0.013_981_076_660_560_246,
    0.011_396_802_898_670_15,
    0.010_792_147_159_567_31,
    0.003_661_221_878_788_488,
    0.021_818_006_548_975_057,
    -0.021_156_385_286_303_057,
    0.032_727_549_315_249_61,
];

/// s and the rest of asin(s) for s = sqrt((1 - a) / 2), with the rounding error of the root.
#[inline(always)]
fn of_half_angle(a: f64) -> (f64, f64) {
    let z = 0.5 * (1.0 - a);
    let s = z.sqrt();
    let lost = if s == 0.0 { 0.0 } else { (-s).mul_add(s, z) / (s + s) };
    (s, (s * z).mul_add(polynomial_f64(z, A), lost))
}

/// high + low - 2 (s + rest) with the large difference exact.
#[inline(always)]
fn minus_twice(high: f64, low: f64, s: f64, rest: f64) -> f64 {
    let d = high - 2.0 * s;
    let lost = (high - d) - 2.0 * s;
    d + (lost + (-2.0_f64).mul_add(rest, low))
}

#[inline(always)]
#[must_use]
pub fn asin_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 0.5 {
        let z = x * x;
        return (x * z).mul_add(polynomial_f64(z, A), x);
    }
    let (s, rest) = of_half_angle(a);
    minus_twice(FRAC_PI_2, HALF_PI_LOW, s, rest).copysign(x)
}

#[inline(always)]
#[must_use]
pub fn acos_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 0.5 {
        let z = x * x;
        let d = FRAC_PI_2 - x;
        let lost = (FRAC_PI_2 - d) - x;
        return d + (lost + (-x * z).mul_add(polynomial_f64(z, A), HALF_PI_LOW));
    }
    let (s, rest) = of_half_angle(a);
    if x < 0.0 { minus_twice(PI, 2.0 * HALF_PI_LOW, s, rest) } else { 2.0 * (s + rest) }
}

/// (atan(x) / x - 1) / x² in x² for |x| <= 7/16.
const T: [f64; 11] = [
    -0.333_333_333_333_329_26,
    0.199_999_999_998_750_4,
    -0.142_857_142_723_738_06,
    0.111_111_103_996_061_15,
    -0.090_908_869_805_147_15,
    0.076_918_737_298_161_18,
    -0.066_610_475_187_181_52,
    0.058_334_004_101_171_25,
    -0.049_761_819_400_730_406,
    0.036_515_484_641_082_493,
    -0.016_269_801_431_898_01,
];

/// atan a = atan c + atan((a - c) / (1 + a c)) with c of 0, 1/2, 1, 3/2 or infinity.
#[inline(always)]
#[must_use]
pub fn atan_f64(x: f64) -> f64 {
    let a = x.abs();
    let (high, low, numerator, denominator) = if a < 0.4375 {
        (0.0, 0.0, a, 1.0)
    } else if a < 0.6875 {
        (0.463_647_609_000_806_1, 2.269_877_745_296_168_7e-17, 2.0 * a - 1.0, 2.0 + a)
    } else if a < 1.1875 {
        (std::f64::consts::FRAC_PI_4, 0.5 * HALF_PI_LOW, a - 1.0, a + 1.0)
    } else if a < 2.4375 {
        (0.982_793_723_247_329, 1.390_331_103_123_099_8e-17, a - 1.5, 1.5_f64.mul_add(a, 1.0))
    } else {
        (FRAC_PI_2, HALF_PI_LOW, -1.0, a)
    };
    let t = numerator / denominator;
    let z = t * t;
    let y = high + ((t * z).mul_add(polynomial_f64(z, T), low) + t);
    y.copysign(x)
}

/// The angle of the point (x, y), with the signs of C's atan2.
#[inline(always)]
#[must_use]
pub fn atan2_f64(y: f64, x: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (a, b) = (y.abs(), x.abs());
    let angle = if a == 0.0 && b == 0.0 {
        0.0
    } else if a == b {
        std::f64::consts::FRAC_PI_4
    } else {
        atan_f64(a / b)
    };
    let angle = if x.is_sign_negative() { (PI - angle) + 2.0 * HALF_PI_LOW } else { angle };
    angle.copysign(y)
}
