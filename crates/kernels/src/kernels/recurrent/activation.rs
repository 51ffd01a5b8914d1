//! The functions of gates, and the arithmetic of vectors that steps need.

use crate::kernels::gemm::real::Real;
use crate::math;
use crate::simd::Simd;

/// f32 or f64 with the functions of a recurrent step, which are those of [`crate::math`].
pub(super) trait Gate: Real {
    fn sigmoid<S: Simd>(s: S, x: Self::V<S>) -> Self::V<S>;
    fn tanh<S: Simd>(s: S, x: Self::V<S>) -> Self::V<S>;
    /// Each lane through an f64 function, rounded once.
    fn map<S: Simd>(s: S, x: Self::V<S>, f: impl Fn(f64) -> f64) -> Self::V<S>;
}

impl Gate for f32 {
    #[inline(always)]
    fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
        math::sigmoid(s, x)
    }
    #[inline(always)]
    fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
        math::tanh(s, x)
    }
    #[inline(always)]
    fn map<S: Simd>(s: S, x: S::F, f: impl Fn(f64) -> f64) -> S::F {
        math::through_f64!(s, x => f(x))
    }
}

impl Gate for f64 {
    #[inline(always)]
    fn sigmoid<S: Simd>(s: S, x: S::D) -> S::D {
        Self::map(s, x, |x| Activation::Sigmoid.scalar(x))
    }
    #[inline(always)]
    fn tanh<S: Simd>(s: S, x: S::D) -> S::D {
        Self::map(s, x, |x| Activation::Tanh.scalar(x))
    }
    #[inline(always)]
    fn map<S: Simd>(s: S, x: S::D, f: impl Fn(f64) -> f64) -> S::D {
        let lanes = s.to_array_d(x).map(f);
        // SAFETY: an array of 16.
        unsafe { s.load_d(lanes.as_ptr()) }
    }
}

/// A gate's function. All but sigmoid, tanh and relu are computed in f64 and rounded once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activation {
    Sigmoid,
    Tanh,
    Relu,
    Affine(f64, f64),
    LeakyRelu(f64),
    ThresholdedRelu(f64),
    ScaledTanh(f64, f64),
    HardSigmoid(f64, f64),
    Elu(f64),
    Softsign,
    Softplus,
}

impl Activation {
    /// ONNX's function of that name with its default parameters where none are given.
    pub(super) fn named(name: &str, alpha: Option<f64>, beta: Option<f64>) -> Option<Self> {
        let (a, b) = (|d| alpha.unwrap_or(d), |d| beta.unwrap_or(d));
        Some(match name.to_ascii_lowercase().as_str() {
            "sigmoid" => Self::Sigmoid,
            "tanh" => Self::Tanh,
            "relu" => Self::Relu,
            "affine" => Self::Affine(a(1.0), b(0.0)),
            "leakyrelu" => Self::LeakyRelu(a(0.01)),
            "thresholdedrelu" => Self::ThresholdedRelu(a(1.0)),
            "scaledtanh" => Self::ScaledTanh(a(1.0), b(1.0)),
            "hardsigmoid" => Self::HardSigmoid(a(0.2), b(0.5)),
            "elu" => Self::Elu(a(1.0)),
            "softsign" => Self::Softsign,
            "softplus" => Self::Softplus,
            _ => return None,
        })
    }

    #[inline(always)]
    pub(super) fn apply<E: Gate, S: Simd>(self, s: S, x: E::V<S>) -> E::V<S> {
        match self {
            Self::Sigmoid => E::sigmoid(s, x),
            Self::Tanh => E::tanh(s, x),
            Self::Relu => E::relu(s, x),
            other => E::map(s, x, |v| other.scalar(v)),
        }
    }

    // Not inlined: sixteen copies of it at each of its many places would be most of the library.
    #[inline(never)]
    fn scalar(self, x: f64) -> f64 {
        match self {
            Self::Sigmoid => math::sigmoid_f64(x),
            Self::Tanh => math::tanh_f64(x),
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::Affine(a, b) => a * x + b,
            Self::LeakyRelu(a) => {
                if x < 0.0 {
                    a * x
                } else {
                    x
                }
            }
            Self::ThresholdedRelu(a) => {
                if x <= a {
                    0.0
                } else {
                    x
                }
            }
            Self::ScaledTanh(a, b) => a * math::tanh_f64(b * x),
            Self::HardSigmoid(a, b) => (a * x + b).clamp(0.0, 1.0),
            Self::Elu(a) => {
                if x < 0.0 {
                    a * math::expm1_f64(x)
                } else {
                    x
                }
            }
            Self::Softsign => x / (1.0 + x.abs()),
            Self::Softplus => math::softplus_f64(x),
        }
    }
}

/// Moves lanes into [-limit, limit]; NaN stays.
#[inline(always)]
pub(super) fn clip<E: Gate, S: Simd>(s: S, x: E::V<S>, limit: Option<f64>) -> E::V<S> {
    match limit {
        None => x,
        Some(limit) => E::map(s, x, |v| v.clamp(-limit, limit)),
    }
}
