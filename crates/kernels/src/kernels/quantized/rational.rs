//! Logistic function and tanh as quotients of polynomials.
//!
//! The operator that uses them is defined by ONNX Runtime, whose functions these are, coefficient by
//! coefficient (the quotients of Eigen 3.3, `plog`/`ptanh`): an LSTM that rounds its state to 8 bits
//! at every step turns a difference in the last bit into a whole step of the scale, so only the same
//! functions give the results that such files were made with. At most 3e-7 from the true values.

use crate::simd::Simd;

const LOGISTIC_BOUND: f32 = 18.0;
const LOGISTIC_P: [f32; 5] =
    [4.370_31e-11, 1.156_273_2e-7, 6.085_749e-5, 8.513_771e-3, 0.248_287_95];
const LOGISTIC_Q: [f32; 6] =
    [6.102_473_7e-13, 5.761_021_4e-9, 6.291_068e-6, 1.701_988_2e-3, 0.116_817_65, 0.993_151_9];
const TANH_BOUND: f32 = 9.0;
const TANH_P: [f32; 7] = [
    -2.760_768_4e-16,
    2.000_188e-13,
    -8.604_672e-11,
    5.122_297_3e-8,
    1.485_722_35e-5,
    6.372_619_5e-4,
    4.893_524_6e-3,
];
const TANH_Q: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_7e-3, 4.893_525e-3];

#[inline(always)]
fn polynomial<S: Simd>(s: S, x: S::F, coefficients: &[f32]) -> S::F {
    let mut sum = s.splat(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = s.fma(sum, x, s.splat(c));
    }
    sum
}

#[inline(always)]
fn within<S: Simd>(s: S, x: S::F, low: f32, high: f32) -> S::F {
    s.at_most(s.at_least(x, s.splat(low)), s.splat(high))
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub(super) fn logistic<S: Simd>(s: S, x: S::F) -> S::F {
    let x = within(s, x, -LOGISTIC_BOUND, LOGISTIC_BOUND);
    let square = s.mul(x, x);
    let p = s.mul(polynomial(s, square, &LOGISTIC_P), x);
    let quotient = s.div(p, polynomial(s, square, &LOGISTIC_Q));
    within(s, s.add(quotient, s.splat(0.5)), 0.0, 1.0)
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let x = within(s, x, -TANH_BOUND, TANH_BOUND);
    let square = s.mul(x, x);
    let p = s.mul(polynomial(s, square, &TANH_P), x);
    s.div(p, polynomial(s, square, &TANH_Q))
}

#[cfg(test)]
mod tests {
    use super::{logistic, tanh};
    use crate::simd::{LANES, Simd, WithSimd, dispatch};

    struct Both([f32; LANES]);

    impl WithSimd for Both {
        type Output = ([f32; LANES], [f32; LANES]);

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Output {
            // SAFETY: the array holds 16 elements.
            let x = unsafe { s.load(self.0.as_ptr()) };
            (s.to_array(logistic(s, x)), s.to_array(tanh(s, x)))
        }
    }

    #[test]
    fn they_stay_near_the_functions_and_inside_their_ranges() {
        for i in 0..4000 {
            let x = [(i as f32 - 2000.0) / 80.0; LANES];
            let (sigmoid, tangent) = dispatch(Both(x));
            let wide = f64::from(x[0]);
            assert!((f64::from(sigmoid[0]) - 1.0 / (1.0 + (-wide).exp())).abs() < 3e-7, "{wide}");
            assert!((f64::from(tangent[0]) - wide.tanh()).abs() < 4e-7, "{wide}");
            assert!((0.0..=1.0).contains(&sigmoid[0]));
        }
        let (sigmoid, tangent) = dispatch(Both([f32::NAN; LANES]));
        assert!(sigmoid[0].is_nan() && tangent[0].is_nan());
    }
}
