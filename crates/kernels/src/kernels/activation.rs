//! Activation functions. Each step of a formula is rounded by itself, in the written order, except
//! where a note says that it is computed in f64 and rounded once.

use crate::kernel::Entry;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::function::{Binary, Function, Function2, Unary, through_f64};
use crate::math;
use crate::simd::Simd;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry {
        name: "LeakyRelu",
        build: |a| {
            let f = LeakyRelu { alpha: a.float("alpha", 0.01)? };
            Ok(Arc::new(Unary { name: "LeakyRelu", f }))
        },
    },
    Entry {
        name: "Elu",
        build: |a| {
            let f = Elu { alpha: a.float("alpha", 1.0)? };
            Ok(Arc::new(Unary { name: "Elu", f }))
        },
    },
    Entry {
        name: "Celu",
        build: |a| {
            let f = Celu { alpha: a.float("alpha", 1.0)? };
            Ok(Arc::new(Unary { name: "Celu", f }))
        },
    },
    Entry {
        name: "Selu",
        build: |a| {
            let f = Selu {
                alpha: a.float("alpha", 1.673_263_192_176_818_8)?,
                gamma: a.float("gamma", 1.050_701_022_148_132_3)?,
            };
            Ok(Arc::new(Unary { name: "Selu", f }))
        },
    },
    Entry {
        name: "Gelu",
        build: |a| {
            Ok(if a.choice("approximate", &["none", "tanh"], 0)? == 0 {
                Arc::new(Unary { name: "Gelu", f: Gelu })
            } else {
                Arc::new(Unary { name: "Gelu", f: GeluTanh })
            })
        },
    },
    Entry { name: "Silu", build: |_| Ok(Arc::new(Unary { name: "Silu", f: Silu })) },
    Entry { name: "Mish", build: |_| Ok(Arc::new(Unary { name: "Mish", f: Mish })) },
    Entry {
        name: "HardSigmoid",
        build: |a| {
            let f = HardSigmoid { alpha: a.float("alpha", 0.2)?, beta: a.float("beta", 0.5)? };
            Ok(Arc::new(Unary { name: "HardSigmoid", f }))
        },
    },
    Entry { name: "HardSwish", build: |_| Ok(Arc::new(Unary { name: "HardSwish", f: HardSwish })) },
    Entry { name: "Softsign", build: |_| Ok(Arc::new(Unary { name: "Softsign", f: Softsign })) },
    Entry {
        name: "Shrink",
        build: |a| {
            let f = Shrink { bias: a.float("bias", 0.0)?, lambd: a.float("lambd", 0.5)? };
            Ok(Arc::new(Unary { name: "Shrink", f }))
        },
    },
    Entry {
        name: "ThresholdedRelu",
        build: |a| {
            let f = ThresholdedRelu { alpha: a.float("alpha", 1.0)? };
            Ok(Arc::new(Unary { name: "ThresholdedRelu", f }))
        },
    },
    Entry {
        name: "PRelu",
        build: |_| Ok(Arc::new(Binary { name: "PRelu", f: PRelu, broadcasts: true })),
    },
];

/// `x < 0 ? alpha x : x`.
#[derive(Clone, Copy)]
struct LeakyRelu {
    alpha: f64,
}

impl Function for LeakyRelu {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        s.select(s.lt(x, s.splat(0.0)), s.mul(s.splat(self.alpha as f32), x), x)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x < 0.0 { self.alpha * x } else { x }
    }
}

/// `x < 0 ? slope x : x`.
#[derive(Clone, Copy)]
struct PRelu;

impl Function2 for PRelu {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F, slope: S::F) -> S::F {
        s.select(s.lt(x, s.splat(0.0)), s.mul(slope, x), x)
    }
    #[inline(always)]
    fn double(self, x: f64, slope: f64) -> f64 {
        if x < 0.0 { slope * x } else { x }
    }
}

/// `x < 0 ? alpha (e^x - 1) : x`.
#[derive(Clone, Copy)]
struct Elu {
    alpha: f64,
}

impl Function for Elu {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let y = s.mul(s.splat(self.alpha as f32), math::expm1(s, x));
        s.select(s.lt(x, s.splat(0.0)), y, x)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x < 0.0 { self.alpha * math::expm1_f64(x) } else { x }
    }
}

/// `x < 0 ? alpha (e^(x / alpha) - 1) : x`.
#[derive(Clone, Copy)]
struct Celu {
    alpha: f64,
}

impl Function for Celu {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let alpha = s.splat(self.alpha as f32);
        let y = s.mul(alpha, math::expm1(s, s.div(x, alpha)));
        s.select(s.lt(x, s.splat(0.0)), y, x)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x < 0.0 { self.alpha * math::expm1_f64(x / self.alpha) } else { x }
    }
}

/// `gamma (x > 0 ? x : alpha (e^x - 1))`.
#[derive(Clone, Copy)]
struct Selu {
    alpha: f64,
    gamma: f64,
}

impl Function for Selu {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let y = s.mul(s.splat(self.alpha as f32), math::expm1(s, x));
        s.mul(s.splat(self.gamma as f32), s.select(s.lt(s.splat(0.0), x), x, y))
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        self.gamma * if x > 0.0 { x } else { self.alpha * math::expm1_f64(x) }
    }
}

/// `(0.5 x) (1 + erf(x / sqrt 2))`; 0 where x is -inf.
#[derive(Clone, Copy)]
struct Gelu;

impl Function for Gelu {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let e = math::erf(s, s.mul(x, s.splat(std::f32::consts::FRAC_1_SQRT_2)));
        let y = s.mul(s.mul(s.splat(0.5), x), s.add(s.splat(1.0), e));
        s.select(s.eq(x, s.splat(f32::NEG_INFINITY)), s.splat(0.0), y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        let e = math::erf_f64(x * std::f64::consts::FRAC_1_SQRT_2);
        if x == f64::NEG_INFINITY { 0.0 } else { 0.5 * x * (1.0 + e) }
    }
}

pub(crate) const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
pub(crate) const GELU_CUBIC: f64 = 0.044_715;

/// `(0.5 x) (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))` with x³ = (x x) x; 0 where x is -inf.
#[derive(Clone, Copy)]
struct GeluTanh;

impl Function for GeluTanh {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let cubic = s.mul(s.splat(GELU_CUBIC as f32), s.mul(s.mul(x, x), x));
        let t = math::tanh(s, s.mul(s.splat(SQRT_2_OVER_PI as f32), s.add(x, cubic)));
        let y = s.mul(s.mul(s.splat(0.5), x), s.add(s.splat(1.0), t));
        s.select(s.eq(x, s.splat(f32::NEG_INFINITY)), s.splat(0.0), y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        let t = math::tanh_f64(SQRT_2_OVER_PI * (x + GELU_CUBIC * (x * x * x)));
        if x == f64::NEG_INFINITY { 0.0 } else { 0.5 * x * (1.0 + t) }
    }
}

/// `x sigmoid(x)`; 0 where x is -inf.
#[derive(Clone, Copy)]
struct Silu;

impl Function for Silu {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let y = s.mul(x, math::sigmoid(s, x));
        s.select(s.eq(x, s.splat(f32::NEG_INFINITY)), s.splat(0.0), y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x == f64::NEG_INFINITY { 0.0 } else { x * math::sigmoid_f64(x) }
    }
}

/// `x tanh(log(1 + e^x))`, in f64; 0 where x is -inf.
#[derive(Clone, Copy)]
struct Mish;

impl Function for Mish {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        math::through_f64!(s, x => self.double(x))
    }
    fn floats(self, x: &[f32], y: &mut [f32]) {
        through_f64(self, x, y);
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x == f64::NEG_INFINITY { 0.0 } else { x * tanh_of_softplus(x) }
    }
}

/// tanh(log(1 + e^x)) = (w² + 2w) / (w² + 2w + 2) with w = e^x.
#[inline(always)]
pub(crate) fn tanh_of_softplus(x: f64) -> f64 {
    let w = math::exp_f64(if x > 40.0 { 40.0 } else { x });
    let n = w * (w + 2.0);
    n / (n + 2.0)
}

/// `max(0, min(1, alpha x + beta))`; NaN stays.
#[derive(Clone, Copy)]
struct HardSigmoid {
    alpha: f64,
    beta: f64,
}

impl Function for HardSigmoid {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let y = s.add(s.mul(s.splat(self.alpha as f32), x), s.splat(self.beta as f32));
        s.max(s.min(y, s.splat(1.0)), s.splat(0.0))
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        let y = self.alpha * x + self.beta;
        if y > 1.0 {
            1.0
        } else if y > 0.0 || y.is_nan() {
            y
        } else {
            0.0
        }
    }
}

/// `x max(0, min(1, x / 6 + 1/2))`; 0 where x is -inf.
#[derive(Clone, Copy)]
struct HardSwish;

impl Function for HardSwish {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let gate = HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }.single(s, x);
        let y = s.mul(x, gate);
        s.select(s.eq(x, s.splat(f32::NEG_INFINITY)), s.splat(0.0), y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        let gate = HardSigmoid { alpha: 1.0 / 6.0, beta: 0.5 }.double(x);
        if x == f64::NEG_INFINITY { 0.0 } else { x * gate }
    }
}

/// `x / (1 + |x|)`; the sign where x is infinite.
#[derive(Clone, Copy)]
struct Softsign;

impl Function for Softsign {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let a = s.abs(x);
        let y = s.div(x, s.add(s.splat(1.0), a));
        s.select(s.eq(a, s.splat(f32::INFINITY)), s.copysign(s.splat(1.0), x), y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x.is_infinite() { 1f64.copysign(x) } else { x / (1.0 + x.abs()) }
    }
}

/// `x < -lambd: x + bias; x > lambd: x - bias; else 0`; NaN stays.
#[derive(Clone, Copy)]
struct Shrink {
    bias: f64,
    lambd: f64,
}

impl Function for Shrink {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        let (bias, lambd) = (s.splat(self.bias as f32), s.splat(self.lambd as f32));
        let y = s.select(s.lt(x, s.neg(lambd)), s.add(x, bias), s.splat(0.0));
        let y = s.select(s.lt(lambd, x), s.sub(x, bias), y);
        s.select(s.is_nan(x), x, y)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x < -self.lambd {
            x + self.bias
        } else if x > self.lambd {
            x - self.bias
        } else if x.is_nan() {
            x
        } else {
            0.0
        }
    }
}

/// `x > alpha ? x : 0`; NaN stays.
#[derive(Clone, Copy)]
struct ThresholdedRelu {
    alpha: f64,
}

impl Function for ThresholdedRelu {
    const GRAIN: usize = CHEAP;
    #[inline(always)]
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
        s.select(s.le(x, s.splat(self.alpha as f32)), s.splat(0.0), x)
    }
    #[inline(always)]
    fn double(self, x: f64) -> f64 {
        if x <= self.alpha { 0.0 } else { x }
    }
}
