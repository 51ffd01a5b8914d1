//! x^y = e^(y log x) with the logarithm and the product in two parts each.

use super::exponential::exp_extended;
use super::logarithm::{fast_two_sum, log_extended, two_product};

/// x^y with the special values of C's pow (IEEE 754-2019, 9.2.1).
#[inline(always)]
#[must_use]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let a = x.abs();
    let integral = y.trunc() == y;
    let odd = integral && y.abs() < 9_007_199_254_740_992.0 && (0.5 * y).trunc() != 0.5 * y;
    let magnitude = if a == 0.0 || a == f64::INFINITY {
        if (a == 0.0) == (y < 0.0) { f64::INFINITY } else { 0.0 }
    } else if a == 1.0 {
        1.0
    } else {
        // Beyond this every power is 0 or infinite.
        let y = y.clamp(-1e290, 1e290);
        let (high, low) = log_extended(a);
        let (p, p_low) = two_product(high, y);
        let (p, p_low) = fast_two_sum(p, low.mul_add(y, p_low));
        exp_extended(p, p_low)
    };
    if x < 0.0 && !integral && a != f64::INFINITY {
        f64::NAN
    } else if odd && x.is_sign_negative() {
        -magnitude
    } else {
        magnitude
    }
}
