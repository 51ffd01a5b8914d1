//! sin, cos and tan: x = n π/2 + r with r in two parts. Up to 2^20 quarter turns the reduction is
//! Cody and Waite's with π/2 in three parts; beyond, and near the zeros, Payne and Hanek's with the
//! bits of 2/π that matter.

use super::logarithm::{fast_two_sum, two_product};
use super::polynomial_f64;

const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;
const HALF_PI: [f64; 3] =
    [1.570_796_326_734_125_6, 6.077_100_506_303_966e-11, 2.022_266_248_795_950_6e-21];
const HALF_PI_HIGH: f64 = std::f64::consts::FRAC_PI_2;
const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// The bits of 2/π after the point, behind one word of zeros.
const BITS: [u64; 21] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// Quadrant and remainder of a finite |x| >= 2^-9 by integer arithmetic.
#[cold]
fn payne_hanek(x: f64) -> (i64, f64, f64) {
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52).cast_signed() - 1075;
    let m = u128::from((bits & 0x000f_ffff_ffff_ffff) | 0x0010_0000_0000_0000);
    // Bits of 2/π whose product with x is a multiple of 4 are skipped; 192 follow.
    let start = (exponent - 2 + 64) as usize;
    let (word, shift) = (start / 64, start % 64);
    let at = |i: usize| BITS.get(word + i).copied().unwrap_or(0);
    let window = |i: usize| {
        if shift == 0 { at(i) } else { at(i) << shift | at(i + 1) >> (64 - shift) }
    };
    let low = m * u128::from(window(2));
    let middle = m * u128::from(window(1)) + (low >> 64);
    let high = (m * u128::from(window(0)) + (middle >> 64)) as u64;
    let mut quadrant = (high >> 62).cast_signed();
    // The fraction, as a signed number of quarter turns in [-1/2, 1/2).
    let top = u128::from(high) << 64 | (middle & u128::from(u64::MAX));
    let below = low as u64;
    let mut fraction = top << 2 | u128::from(below >> 62);
    let mut rest = below << 2;
    let negative = fraction >> 127 == 1;
    if negative {
        quadrant += 1;
        fraction = !fraction;
        rest = !rest;
    }
    let zeros = fraction.leading_zeros().min(63);
    let digits =
        if zeros == 0 { fraction } else { fraction << zeros | u128::from(rest >> (64 - zeros)) };
    let leading = (digits >> 75) as f64;
    let trailing = ((digits >> 22) & ((1 << 53) - 1)) as f64;
    // 2^-53 and 2^-106 times 2^-zeros.
    let unit = f64::from_bits(u64::from(1023 - 53 - zeros) << 52);
    let (high, low) = (leading * unit, trailing * unit * f64::from_bits((1023 - 53) << 52));
    let (p, p_low) = two_product(high, HALF_PI_HIGH);
    let p_low = high.mul_add(HALF_PI_LOW, low.mul_add(HALF_PI_HIGH, p_low));
    let (r, r_low) = fast_two_sum(p, p_low);
    if negative == x.is_sign_negative() {
        (if x < 0.0 { -quadrant } else { quadrant }, r, r_low)
    } else {
        (if x < 0.0 { -quadrant } else { quadrant }, -r, -r_low)
    }
}

/// Below it the reduction of Cody and Waite holds.
const MODERATE: f64 = 1.6e6;

/// Quadrant and remainder in two parts of a moderate x, to about 2^-101 of 1.
#[inline(always)]
fn reduced_moderate(x: f64) -> (i64, f64, f64) {
    let shifted = x.mul_add(TWO_OVER_PI, MAGIC);
    let n = shifted - MAGIC;
    let first = n.mul_add(-HALF_PI[0], x);
    let second = n * HALF_PI[1];
    let r = first - second;
    let back = r - first;
    let lost = (first - (r - back)) - (second + back);
    let (r, low) = fast_two_sum(r, n.mul_add(-HALF_PI[2], lost));
    (shifted.to_bits().cast_signed() - MAGIC.to_bits().cast_signed(), r, low)
}

/// Quadrant (modulo 4) and remainder in two parts, |remainder| <= π/4 or a little more.
#[inline(always)]
fn reduced(x: f64) -> (i64, f64, f64) {
    if x.abs() < MODERATE {
        let (n, r, low) = reduced_moderate(x);
        if n == 0 || r.abs() > 1e-9 {
            return (n, r, low);
        }
    }
    if x.is_finite() { payne_hanek(x) } else { (0, f64::NAN, 0.0) }
}

/// The same for a value that came from f32: no moderate f32 is so near a multiple of π/2 that the
/// first reduction would not do.
#[inline(always)]
fn reduced_f32(x: f64) -> (i64, f64, f64) {
    if x.abs() < MODERATE {
        reduced_moderate(x)
    } else if x.is_finite() {
        payne_hanek(x)
    } else {
        (0, f64::NAN, 0.0)
    }
}

const S: [f64; 7] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_333_323,
    -0.000_198_412_698_412_549_9,
    2.755_731_921_414_883_3e-6,
    -2.505_210_490_053_513_7e-8,
    1.605_836_519_273_840_3e-10,
    -7.578_625_474_989_447e-13,
];
const C: [f64; 7] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_887_4,
    2.480_158_730_157_138e-5,
    -2.755_731_921_532_558_5e-7,
    2.087_675_435_464_498_7e-9,
    -1.147_029_193_827_355_2e-11,
    4.738_048_205_140_522e-14,
];

/// sin(r + low) in two parts.
#[inline(always)]
fn sin_parts(r: f64, low: f64) -> (f64, f64) {
    let z = r * r;
    let tail = (z * r).mul_add(polynomial_f64(z, S), low * (-0.5_f64).mul_add(z, 1.0));
    (r, tail)
}

/// cos(r + low) in two parts.
#[inline(always)]
fn cos_parts(r: f64, low: f64) -> (f64, f64) {
    let (z, z_low) = two_product(r, r);
    let half = 0.5 * z;
    let w = 1.0 - half;
    let lost = ((1.0 - w) - half) - 0.5 * z_low;
    (w, lost + (z * z).mul_add(polynomial_f64(z, C), -r * low))
}

#[inline(always)]
fn sin_from(x: f64, (n, r, low): (i64, f64, f64)) -> f64 {
    let (s, s_low) = sin_parts(r, low);
    let (c, c_low) = cos_parts(r, low);
    let y = if n & 1 == 0 { s + s_low } else { c + c_low };
    let y = if n & 2 == 0 { y } else { -y };
    if x == 0.0 { x } else { y }
}

#[inline(always)]
fn cos_from((n, r, low): (i64, f64, f64)) -> f64 {
    let (s, s_low) = sin_parts(r, low);
    let (c, c_low) = cos_parts(r, low);
    let y = if n & 1 == 0 { c + c_low } else { s + s_low };
    if (n + 1) & 2 == 0 { y } else { -y }
}

/// The quotient of sin and cos, both in two parts.
#[inline(always)]
fn tan_from(x: f64, (n, r, low): (i64, f64, f64)) -> f64 {
    let (s, s_low) = sin_parts(r, low);
    let (c, c_low) = cos_parts(r, low);
    let (s, s_low) = fast_two_sum(s, s_low);
    let (c, c_low) = fast_two_sum(c, c_low);
    let odd = n & 1 != 0;
    let (a, a_low) = if odd { (-c, -c_low) } else { (s, s_low) };
    let (b, b_low) = if odd { (s, s_low) } else { (c, c_low) };
    let q = a / b;
    let rest = (-q).mul_add(b, a) + (-q).mul_add(b_low, a_low);
    let y = q + rest / b;
    if x == 0.0 { x } else { y }
}

#[inline(always)]
#[must_use]
pub fn sin_f64(x: f64) -> f64 {
    sin_from(x, reduced(x))
}

#[inline(always)]
#[must_use]
pub fn cos_f64(x: f64) -> f64 {
    cos_from(reduced(x))
}

#[inline(always)]
#[must_use]
pub fn tan_f64(x: f64) -> f64 {
    tan_from(x, reduced(x))
}

/// Whether the branch-free reduction holds.
#[inline(always)]
#[must_use]
pub fn is_moderate(x: f32) -> bool {
    f64::from(x).abs() < MODERATE
}

/// The functions of a value that came from f32: of moderate ones without a branch, and of any, with
/// the same bits.
macro_rules! of_f32 {
    ($moderate:ident, $any:ident, |$x:ident, $reduced:ident| $body:expr) => {
        #[inline(always)]
        #[must_use]
        pub fn $moderate($x: f64) -> f64 {
            let $reduced = reduced_moderate($x);
            $body
        }
        #[inline(always)]
        #[must_use]
        pub fn $any($x: f64) -> f64 {
            let $reduced = reduced_f32($x);
            $body
        }
    };
}
of_f32!(sin_moderate, sin_of_f32, |x, r| sin_from(x, r));
of_f32!(cos_moderate, cos_of_f32, |x, r| cos_from(r));
of_f32!(tan_moderate, tan_of_f32, |x, r| tan_from(x, r));
