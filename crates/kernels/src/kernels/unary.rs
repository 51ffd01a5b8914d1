//! Elementwise functions of one input.
//!
//! Neg, Abs, Sign, Square, Relu take every numeric dtype; the others floating point. Each is one
//! correctly rounded operation (Rsqrt: two), or an elementary function of `crate::math`. On f32 exp,
//! expm1, log, log1p, tanh, sigmoid and erf run on vectors; the others are computed in f64 and
//! rounded once. Halves are computed in f32 and rounded once more.

use crate::array::{Array, Meta};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::blocks::computed;
use crate::kernels::elementwise::{self, CHEAP, COSTLY, Halves, Span};
use crate::kernels::epilogue::{Before, Step};
use crate::kernels::function::{Function, Unary, check_float, through_f64};
use crate::kernels::number::{Number, for_number};
use crate::math;
use crate::simd::{PlainLoop, Simd, vectorized_wide};
use smallvec::smallvec;
use std::sync::Arc;

macro_rules! function {
    ($name:ident, $grain:expr, |$s:ident, $x:ident| $single:expr, |$y:ident| $double:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            const GRAIN: usize = $grain;
            #[inline(always)]
            fn single<S: Simd>(self, $s: S, $x: S::F) -> S::F {
                $single
            }
            #[inline(always)]
            fn double(self, $y: f64) -> f64 {
                $double
            }
        }
    };
    ($name:ident, $double:path) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
                math::through_f64!(s, x => $double(x))
            }
            #[inline(always)]
            fn double(self, x: f64) -> f64 {
                $double(x)
            }
            fn floats(self, x: &[f32], y: &mut [f32]) {
                through_f64(self, x, y);
            }
        }
    };
    ($name:ident, circular $double:path, $moderate:ident $moderate_path:path, $any:ident $any_path:path) => {
        function!($moderate, $moderate_path);
        function!($any, $any_path);
        #[derive(Clone, Copy)]
        struct $name;
        impl Function for $name {
            #[inline(always)]
            fn single<S: Simd>(self, s: S, x: S::F) -> S::F {
                math::through_f64!(s, x => $any_path(x))
            }
            #[inline(always)]
            fn double(self, x: f64) -> f64 {
                $double(x)
            }
            /// Moderate elements take the same formula either way; without others the loop has no
            /// branch.
            fn floats(self, x: &[f32], y: &mut [f32]) {
                for (x, y) in x.chunks(256).zip(y.chunks_mut(256)) {
                    if x.iter().fold(true, |all, x| all & math::is_moderate(*x)) {
                        through_f64($moderate, x, y);
                    } else {
                        through_f64($any, x, y);
                    }
                }
            }
        }
    };
    ($name:ident, $single:path, $double:path) => {
        function!($name, COSTLY, |s, x| $single(s, x), |y| $double(y));
    };
}
function!(Floor, CHEAP, |s, x| s.floor(x), |x| x.floor());
function!(Ceil, CHEAP, |s, x| s.ceil(x), |x| x.ceil());
function!(Round, CHEAP, |s, x| s.round(x), |x| x.round_ties_even());
function!(Trunc, CHEAP, |s, x| s.trunc(x), |x| x.trunc());
function!(Sqrt, CHEAP, |s, x| s.sqrt(x), |x| x.sqrt());
function!(Rsqrt, CHEAP, |s, x| s.div(s.splat(1.0), s.sqrt(x)), |x| 1.0 / x.sqrt());
function!(Reciprocal, CHEAP, |s, x| s.div(s.splat(1.0), x), |x| 1.0 / x);
function!(Exp, math::exp, math::exp_f64);
function!(Expm1, math::expm1, math::expm1_f64);
function!(Log, math::log, math::log_f64);
function!(Log1p, math::log1p, math::log1p_f64);
function!(Tanh, math::tanh, math::tanh_f64);
function!(Sigmoid, math::sigmoid, math::sigmoid_f64);
function!(Erf, math::erf, math::erf_f64);
function!(Softplus, math::softplus_f64);
function!(Log2, math::log2_f64);
function!(Log10, math::log10_f64);
function!(Sin, circular math::sin_f64, SinModerate math::sin_moderate, SinAny math::sin_of_f32);
function!(Cos, circular math::cos_f64, CosModerate math::cos_moderate, CosAny math::cos_of_f32);
function!(Tan, circular math::tan_f64, TanModerate math::tan_moderate, TanAny math::tan_of_f32);
function!(Asin, math::asin_f64);
function!(Acos, math::acos_f64);
function!(Atan, math::atan_f64);
function!(Sinh, math::sinh_f64);
function!(Cosh, math::cosh_f64);
function!(Asinh, math::asinh_f64);
function!(Acosh, math::acosh_f64);
function!(Atanh, math::atanh_f64);

macro_rules! entry {
    ($name:ident) => {
        Entry {
            name: stringify!($name),
            build: |_| Ok(Arc::new(Unary { name: stringify!($name), f: $name })),
        }
    };
}

pub(crate) const KERNELS: &[Entry] = &[
    entry!(Floor),
    entry!(Ceil),
    entry!(Round),
    entry!(Trunc),
    entry!(Sqrt),
    entry!(Rsqrt),
    entry!(Reciprocal),
    entry!(Exp),
    entry!(Expm1),
    entry!(Log),
    entry!(Log1p),
    entry!(Log2),
    entry!(Log10),
    entry!(Sin),
    entry!(Cos),
    entry!(Tan),
    entry!(Asin),
    entry!(Acos),
    entry!(Atan),
    entry!(Sinh),
    entry!(Cosh),
    entry!(Asinh),
    entry!(Acosh),
    entry!(Atanh),
    entry!(Tanh),
    entry!(Sigmoid),
    entry!(Erf),
    entry!(Softplus),
    Entry { name: "Neg", build: |_| Ok(Arc::new(Numeric { name: "Neg", f: Neg })) },
    Entry { name: "Abs", build: |_| Ok(Arc::new(Numeric { name: "Abs", f: Abs })) },
    Entry { name: "Sign", build: |_| Ok(Arc::new(Numeric { name: "Sign", f: Sign })) },
    Entry { name: "Square", build: |_| Ok(Arc::new(Numeric { name: "Square", f: Square })) },
    Entry { name: "Relu", build: |_| Ok(Arc::new(Numeric { name: "Relu", f: Relu })) },
    Entry {
        name: "IsNaN",
        build: |_| Ok(Arc::new(Predicate { name: "IsNaN", nan: true, signs: [false; 2] })),
    },
    Entry {
        name: "IsInf",
        build: |a| {
            let signs = [a.flag("detect_negative", true)?, a.flag("detect_positive", true)?];
            Ok(Arc::new(Predicate { name: "IsInf", nan: false, signs }))
        },
    },
];

/// A function of one number of any numeric dtype.
pub(crate) trait NumberFunction: Copy + Send + Sync + 'static {
    fn apply<T: Number>(self, x: T) -> T;
}

macro_rules! number_function {
    ($name:ident, |$x:ident| $body:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl NumberFunction for $name {
            #[inline(always)]
            fn apply<T: Number>(self, $x: T) -> T {
                $body
            }
        }
    };
}
number_function!(Neg, |x| x.neg());
number_function!(Abs, |x| x.abs());
number_function!(Sign, |x| x.sign());
number_function!(Square, |x| x.mul(x));
// NaN and -0.0 stay.
number_function!(Relu, |x| if x < T::ZERO { T::ZERO } else { x });

pub(crate) struct Numeric<F> {
    pub name: &'static str,
    pub f: F,
}

impl<F: NumberFunction> Kernel for Numeric<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        let meta = inputs.get(0);
        if meta.dtype == DType::Bool {
            return Err(Error::dtype(self.name, "a numeric dtype", meta.dtype.name()));
        }
        Ok(smallvec![meta.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        numeric(self.f, x, outputs);
        Ok(())
    }

    fn as_step(&self, _before: &Before<'_>) -> Option<Step> {
        (self.name == "Relu").then_some(Step::Relu)
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

pub(crate) fn numeric<F: NumberFunction>(f: F, x: &Array, outputs: &[Array]) {
    for_number!(x.dtype(), T => {
        elementwise::map(&[x], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
            vectorized_wide(Map { f, x: span.input::<T>(0), y: span.output::<T>(0) });
        });
    });
}

struct Map<'a, T, F> {
    f: F,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Number, F: NumberFunction> PlainLoop for Map<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = self.f.apply(*x);
        }
    }
}

/// Whether an element is NaN, or infinite with one of the `signs` (negative, positive).
struct Predicate {
    name: &'static str,
    nan: bool,
    signs: [bool; 2],
}

impl Kernel for Predicate {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        check_float(self.name, inputs.get(0).dtype)?;
        Ok(smallvec![Meta { dtype: DType::Bool, shape: inputs.get(0).shape.clone() }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let [negative, positive] = self.signs;
        let holds = |v: f64| {
            if self.nan {
                v.is_nan()
            } else {
                negative && v == f64::NEG_INFINITY || positive && v == f64::INFINITY
            }
        };
        elementwise::map(&[x], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
            let out = span.output::<Bool>(0);
            if computed(x.dtype()) == DType::F64 {
                for (x, y) in span.input::<f64>(0).iter().zip(out) {
                    *y = Bool::from(holds(*x));
                }
            } else {
                for (x, y) in span.input::<f32>(0).iter().zip(out) {
                    *y = Bool::from(holds(f64::from(*x)));
                }
            }
        });
        Ok(())
    }
}
