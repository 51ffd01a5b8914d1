//! Clip: `x < min: min; x > max: max; else x`, the upper bound last, so that NaN and -0.0 stay and
//! max wins where min > max. Integers are bounded by the bounds rounded towards the inside.

use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::epilogue::{Before, Operand, Step};
use crate::kernels::number::{Number, for_number};
use crate::kernels::unary::{NumberFunction, numeric};
use crate::simd::{PlainLoop, vectorized};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry {
    name: "Clip",
    build: |a| Ok(Arc::new(Clip { min: a.float_opt("min")?, max: a.float_opt("max")? })),
}];

/// Bounds as attributes, or as inputs of one element or of x's shape.
struct Clip {
    min: Option<f64>,
    max: Option<f64>,
}

impl Kernel for Clip {
    fn name(&self) -> &'static str {
        "Clip"
    }

    fn infer(&self, metas: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Clip", metas, 1, 3)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype("Clip", "a numeric dtype", x.dtype.name()));
        }
        inputs.same_dtype(&[0, 1, 2])?;
        for (i, (name, bound)) in [("min", self.min), ("max", self.max)].into_iter().enumerate() {
            let Some(given) = inputs.opt(i + 1) else { continue };
            if bound.is_some() {
                let got = "both";
                return Err(Error::usage("Clip", format!("{name} as attribute or input"), got));
            }
            if given.size() != 1 && given.shape != x.shape {
                return Err(Error::shape(
                    "Clip",
                    format!("{name} of one element or of shape {:?}", x.shape),
                    format!("{:?}", given.shape),
                ));
            }
        }
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let opt = |i: usize| inputs.get(i).copied().flatten();
        let (low, high) = (opt(1), opt(2));
        if low.is_none() && high.is_none() {
            let bounds = Bounds {
                min: self.min.unwrap_or(f64::NEG_INFINITY),
                max: self.max.unwrap_or(f64::INFINITY),
            };
            numeric(bounds, x, outputs);
            return Ok(());
        }
        let shape: SmallVec<[usize; 6]> = x.shape().into();
        let fit = |a: &Array| {
            if a.size() == 1 && a.rank() > shape.len() { a.reshape(&[]) } else { Ok(a.clone()) }
        };
        let low = low.map(fit).transpose()?;
        let high = high.map(fit).transpose()?;
        for_number!(x.dtype(), T => {
            let min = self.min.map_or(T::LOWEST, T::from_f64);
            let max = self.max.map_or(T::HIGHEST, T::from_f64);
            let arrays: SmallVec<[&Array; 3]> =
                [Some(x), low.as_ref(), high.as_ref()].into_iter().flatten().collect();
            elementwise::map(&arrays, outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
                let min = if low.is_some() { Bound::Each(span.input(1)) } else { Bound::One(min) };
                let max = if high.is_some() {
                    Bound::Each(span.input(1 + usize::from(low.is_some())))
                } else {
                    Bound::One(max)
                };
                vectorized(Limit { x: span.input::<T>(0), min, max, y: span.output::<T>(0) });
            });
        });
        Ok(())
    }

    fn as_step(&self, before: &Before<'_>) -> Option<Step> {
        let bound = |index: usize, own: Option<f64>, none: f32| {
            if before.constants.len() <= index {
                return Some(own.map_or(none, |b| b as f32));
            }
            match before.operand(before.constants[index]?)? {
                Operand::Scalar(value) => Some(value),
                _ => None,
            }
        };
        let min = bound(1, self.min, f32::NEG_INFINITY)?;
        let max = bound(2, self.max, f32::INFINITY)?;
        (before.at == 0).then_some(Step::Clip { min, max })
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

#[inline(always)]
fn limit<T: Number>(x: T, min: T, max: T) -> T {
    let y = if x < min { min } else { x };
    if y > max { max } else { y }
}

#[derive(Clone, Copy)]
struct Bounds {
    min: f64,
    max: f64,
}

impl NumberFunction for Bounds {
    #[inline(always)]
    fn apply<T: Number>(self, x: T) -> T {
        if T::FLOAT {
            limit(x, T::from_f64(self.min), T::from_f64(self.max))
        } else {
            limit(x, T::from_f64(self.min.ceil()), T::from_f64(self.max.floor()))
        }
    }
}

enum Bound<'a, T> {
    One(T),
    Each(&'a [T]),
}

struct Limit<'a, T> {
    x: &'a [T],
    min: Bound<'a, T>,
    max: Bound<'a, T>,
    y: &'a mut [T],
}

impl<T: Number> PlainLoop for Limit<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, (x, y)) in self.x.iter().zip(self.y).enumerate() {
            let min = match self.min {
                Bound::One(v) => v,
                Bound::Each(v) => v[i],
            };
            let max = match self.max {
                Bound::One(v) => v,
                Bound::Each(v) => v[i],
            };
            *y = limit(*x, min, max);
        }
    }
}
