//! Gradients of activation functions: `(x or y, g) -> dx`, each step rounded by itself unless noted.

use crate::kernel::Entry;
use crate::kernels::activation::{GELU_CUBIC, SQRT_2_OVER_PI, tanh_of_softplus};
use crate::kernels::elementwise::CHEAP;
use crate::kernels::function::{Binary, Function2};
use crate::math;
use crate::simd::Simd;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use std::sync::Arc;

macro_rules! entry {
    ($name:expr, |$a:ident| $f:expr) => {
        Entry {
            name: $name,
            build: |$a| Ok(Arc::new(Binary { name: $name, f: $f, broadcasts: false })),
        }
    };
}

pub(crate) const KERNELS: &[Entry] = &[
    entry!("ReluGrad", |_a| ReluGrad),
    entry!("LeakyReluGrad", |a| LeakyReluGrad { alpha: a.float("alpha", 0.01)? }),
    entry!("EluGrad", |a| EluGrad { alpha: a.float("alpha", 1.0)? }),
    entry!("SigmoidGrad", |_a| SigmoidGrad),
    entry!("TanhGrad", |_a| TanhGrad),
    entry!("SiluGrad", |_a| SiluGrad),
    entry!("SoftplusGrad", |_a| SoftplusGrad),
    entry!("ErfGrad", |_a| ErfGrad),
    entry!("MishGrad", |_a| MishGrad),
    entry!("HardSwishGrad", |_a| HardSwishGrad),
    entry!("HardSigmoidGrad", |a| HardSigmoidGrad {
        alpha: a.float("alpha", 0.2)?,
        beta: a.float("beta", 0.5)?
    }),
    entry!("ClipGrad", |a| ClipGrad {
        min: a.float_opt("min")?.unwrap_or(f64::NEG_INFINITY),
        max: a.float_opt("max")?.unwrap_or(f64::INFINITY)
    }),
    Entry {
        name: "GeluGrad",
        build: |a| {
            Ok(if a.choice("approximate", &["none", "tanh"], 0)? == 0 {
                Arc::new(Binary { name: "GeluGrad", f: GeluGrad, broadcasts: false })
            } else {
                Arc::new(Binary { name: "GeluGrad", f: GeluTanhGrad, broadcasts: false })
            })
        },
    },
];

macro_rules! gradient {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* }, $grain:expr,
     |$this:ident, $s:ident, $x:ident, $g:ident| $single:expr, |$a:ident, $b:ident| $double:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name { $($field: f64),* }
        gradient!(@body $name, $grain, |$this, $s, $x, $g| $single, |$a, $b| $double);
    };
    ($(#[$doc:meta])* $name:ident, $grain:expr,
     |$this:ident, $s:ident, $x:ident, $g:ident| $single:expr, |$a:ident, $b:ident| $double:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name;
        gradient!(@body $name, $grain, |$this, $s, $x, $g| $single, |$a, $b| $double);
    };
    (@body $name:ident, $grain:expr,
     |$this:ident, $s:ident, $x:ident, $g:ident| $single:expr, |$a:ident, $b:ident| $double:expr) => {
        impl Function2 for $name {
            const GRAIN: usize = $grain;
            #[inline(always)]
            fn single<S: Simd>(self, $s: S, $x: S::F, $g: S::F) -> S::F {
                let $this = self;
                let _ = $this;
                $single
            }
            #[inline(always)]
            fn double(self, $a: f64, $b: f64) -> f64 {
                let $this = self;
                let _ = $this;
                $double
            }
        }
    };
}

gradient!(
    /// `x > 0 ? g : 0`; NaN in x passes g.
    ReluGrad, CHEAP,
    |this, s, x, g| s.select(s.le(x, s.splat(0.0)), s.splat(0.0), g),
    |x, g| if x <= 0.0 { 0.0 } else { g }
);
gradient!(
    /// `x > 0 ? g : alpha g`.
    LeakyReluGrad { alpha }, CHEAP,
    |this, s, x, g| {
        let scaled = s.mul(s.splat(this.alpha as f32), g);
        s.select(s.le(x, s.splat(0.0)), scaled, g)
    },
    |x, g| if x <= 0.0 { this.alpha * g } else { g }
);
gradient!(
    /// `x > 0 ? g : (alpha e^x) g`.
    EluGrad { alpha }, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| {
        let slope = s.mul(s.splat(this.alpha as f32), math::exp(s, x));
        s.select(s.lt(s.splat(0.0), x), g, s.mul(slope, g))
    },
    |x, g| if x > 0.0 { g } else { this.alpha * math::exp_f64(x) * g }
);
gradient!(
    /// `(g y) (1 - y)`.
    SigmoidGrad, CHEAP,
    |this, s, y, g| s.mul(s.mul(g, y), s.sub(s.splat(1.0), y)),
    |y, g| g * y * (1.0 - y)
);
gradient!(
    /// `g (1 - y y)`, the bracket as one fma.
    TanhGrad, CHEAP,
    |this, s, y, g| s.mul(g, s.fma(s.neg(y), y, s.splat(1.0))),
    |y, g| g * (-y).mul_add(y, 1.0)
);
gradient!(
    /// `g (q (1 + x (1 - q)))` with q = sigmoid(x).
    SiluGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| {
        let one = s.splat(1.0);
        let q = math::sigmoid(s, x);
        s.mul(g, s.mul(q, s.add(one, s.mul(x, s.sub(one, q)))))
    },
    |x, g| {
        let q = math::sigmoid_f64(x);
        g * (q * (1.0 + x * (1.0 - q)))
    }
);
gradient!(
    /// `g sigmoid(x)`.
    SoftplusGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| s.mul(g, math::sigmoid(s, x)),
    |x, g| g * math::sigmoid_f64(x)
);
gradient!(
    /// `g (2/sqrt(π) e^(-x x))`.
    ErfGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| {
        s.mul(g, s.mul(s.splat(FRAC_2_SQRT_PI as f32), math::exp(s, s.neg(s.mul(x, x)))))
    },
    |x, g| g * (FRAC_2_SQRT_PI * math::exp_f64(-x * x))
);
gradient!(
    /// `g (t + x (1 - t²) sigmoid(x))` with t = tanh(softplus(x)), in f64.
    MishGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| math::through_f64!(s, x, g => this.double(x, g)),
    |x, g| {
        let t = tanh_of_softplus(x);
        g * (t + x * ((1.0 - t * t) * math::sigmoid_f64(x)))
    }
);
gradient!(
    /// 0 up to x = -3, g from x = 3, else `g (x / 3 + 1/2)`.
    HardSwishGrad, CHEAP,
    |this, s, x, g| {
        let inner = s.mul(g, s.add(s.div(x, s.splat(3.0)), s.splat(0.5)));
        let y = s.select(s.le(s.splat(3.0), x), g, inner);
        s.select(s.le(x, s.splat(-3.0)), s.splat(0.0), y)
    },
    |x, g| if x <= -3.0 { 0.0 } else if x >= 3.0 { g } else { g * (x / 3.0 + 0.5) }
);
gradient!(
    /// `alpha g` where `0 < alpha x + beta < 1`, else 0.
    HardSigmoidGrad { alpha, beta }, CHEAP,
    |this, s, x, g| {
        let alpha = s.splat(this.alpha as f32);
        let y = s.add(s.mul(alpha, x), s.splat(this.beta as f32));
        let inside = s.mask_and(s.lt(s.splat(0.0), y), s.lt(y, s.splat(1.0)));
        s.select(inside, s.mul(alpha, g), s.splat(0.0))
    },
    |x, g| {
        let y = this.alpha * x + this.beta;
        if y > 0.0 && y < 1.0 { this.alpha * g } else { 0.0 }
    }
);
gradient!(
    /// g where `min <= x <= max`, else 0.
    ClipGrad { min, max }, CHEAP,
    |this, s, x, g| {
        let (min, max) = (s.splat(this.min as f32), s.splat(this.max as f32));
        s.select(s.mask_and(s.le(min, x), s.le(x, max)), g, s.splat(0.0))
    },
    |x, g| if x >= this.min && x <= this.max { g } else { 0.0 }
);
/// 1/sqrt(2π).
const DENSITY: f64 = 0.398_942_280_401_432_7;

gradient!(
    /// `g (0.5 (1 + erf(x/sqrt 2)) + x (1/sqrt(2π) e^(-0.5 (x x))))`.
    GeluGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| {
        let e = math::erf(s, s.mul(x, s.splat(FRAC_1_SQRT_2 as f32)));
        let cdf = s.mul(s.splat(0.5), s.add(s.splat(1.0), e));
        let density = math::exp(s, s.mul(s.splat(-0.5), s.mul(x, x)));
        let density = s.mul(s.splat(DENSITY as f32), density);
        s.mul(g, s.add(cdf, s.mul(x, density)))
    },
    |x, g| {
        let cdf = 0.5 * (1.0 + math::erf_f64(x * FRAC_1_SQRT_2));
        g * (cdf + x * (DENSITY * math::exp_f64(-0.5 * (x * x))))
    }
);
gradient!(
    /// `g (0.5 (1 + t) + ((0.5 x) (1 - t t)) u')` with u = sqrt(2/π) (x + 0.044715 x³), t = tanh u.
    GeluTanhGrad, crate::kernels::elementwise::COSTLY,
    |this, s, x, g| {
        let (one, half) = (s.splat(1.0), s.splat(0.5));
        let root = s.splat(SQRT_2_OVER_PI as f32);
        let square = s.mul(x, x);
        let cubic = s.mul(s.splat(GELU_CUBIC as f32), s.mul(square, x));
        let t = math::tanh(s, s.mul(root, s.add(x, cubic)));
        let slope = s.mul(root, s.add(one, s.mul(s.splat(3.0 * GELU_CUBIC as f32), square)));
        let second = s.mul(s.mul(s.mul(half, x), s.fma(s.neg(t), t, one)), slope);
        s.mul(g, s.add(s.mul(half, s.add(one, t)), second))
    },
    |x, g| {
        let t = math::tanh_f64(SQRT_2_OVER_PI * (x + GELU_CUBIC * (x * x * x)));
        let slope = SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * (x * x));
        g * (0.5 * (1.0 + t) + 0.5 * x * (-t).mul_add(t, 1.0) * slope)
    }
);
