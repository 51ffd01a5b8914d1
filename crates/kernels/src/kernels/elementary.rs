//! f64 exp and natural logarithm from IEEE operations alone.

const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// `2^n` for n in [-1022, 1023].
fn power(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// e^x: x = n ln 2 + r with |r| <= ln 2 / 2, the series of e^r to degree 13, then two exact scalings.
pub(crate) fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.8 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let n = (x * std::f64::consts::LOG2_E).round_ties_even();
    let r = (x - n * LN2_HI) - n * LN2_LO;
    let mut p = 1.0 / 6_227_020_800.0;
    for d in [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0] {
        p = p * r + 1.0 / d;
    }
    for d in [120.0, 24.0, 6.0, 2.0] {
        p = p * r + 1.0 / d;
    }
    let e = 1.0 + (r + r * r * p);
    let n = n as i64;
    let half = n / 2;
    e * power(half) * power(n - half)
}

/// The natural logarithm: x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f), and
/// the minimax polynomial of fdlibm's `__ieee754_log` in s².
pub(crate) fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * power(54), -54) } else { (x, 0) };
    let bits = x.to_bits();
    let mut k = (bits >> 52) as i64 - 1023 + shift;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        k += 1;
    }
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut r = 1.479_819_860_511_658_6e-1;
    for c in [
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1,
    ] {
        r = r * z + c;
    }
    let r = r * z;
    let half = 0.5 * f * f;
    let k = k as f64;
    k * LN2_HI - ((half - (s * (half + r) + k * LN2_LO)) - f)
}
