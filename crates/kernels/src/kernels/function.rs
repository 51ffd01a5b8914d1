//! Operators that are one floating-point function of one or two elements.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::blocks::computed;
use crate::kernels::elementwise::{self, Halves, Span};
use crate::kernels::epilogue::{Before, Floats, Step};
use crate::simd::{LANES, PlainLoop, Simd, WithSimd, dispatch, vectorized, vectorized_wide};
use smallvec::smallvec;
use std::sync::Arc;

/// A function of one number, on 16 lanes of f32 and in f64.
pub(crate) trait Function: Copy + Send + Sync + 'static {
    const GRAIN: usize = elementwise::COSTLY;
    fn single<S: Simd>(self, s: S, x: S::F) -> S::F;
    fn double(self, x: f64) -> f64;
    /// On a slice; functions that are computed in f64 replace it by [`through_f64`].
    fn floats(self, x: &[f32], y: &mut [f32]) {
        dispatch(Single { f: self, x, y });
    }
}

/// A function of two numbers.
pub(crate) trait Function2: Copy + Send + Sync + 'static {
    const GRAIN: usize = elementwise::COSTLY;
    fn single<S: Simd>(self, s: S, x: S::F, y: S::F) -> S::F;
    fn double(self, x: f64, y: f64) -> f64;
    /// On slices; functions that are computed in f64 replace it by [`through_f64_2`].
    fn floats(self, x: &[f32], y: &[f32], z: &mut [f32]) {
        dispatch(Single2 { f: self, x, y, z });
    }
}

/// `y = f.double(x)`, rounded once.
pub(crate) fn through_f64<F: Function>(f: F, x: &[f32], y: &mut [f32]) {
    vectorized_wide(Through { f, x, y });
}

/// `z = f.double(x, y)`, rounded once.
pub(crate) fn through_f64_2<F: Function2>(f: F, x: &[f32], y: &[f32], z: &mut [f32]) {
    vectorized(Through2 { f, x, y, z });
}

struct Through<'a, F> {
    f: F,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl<F: Function> PlainLoop for Through<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = self.f.double(f64::from(*x)) as f32;
        }
    }
}

struct Through2<'a, F> {
    f: F,
    x: &'a [f32],
    y: &'a [f32],
    z: &'a mut [f32],
}

impl<F: Function2> PlainLoop for Through2<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.x.iter().zip(self.y).zip(self.z) {
            *z = self.f.double(f64::from(*x), f64::from(*y)) as f32;
        }
    }
}

/// `f(x)`, element by element.
pub(crate) struct Unary<F> {
    pub name: &'static str,
    pub f: F,
}

/// `f(x, y)`, element by element.
pub(crate) struct Binary<F> {
    pub name: &'static str,
    pub f: F,
    /// Whether the two shapes broadcast; else they must be equal.
    pub broadcasts: bool,
}

/// Refuses what is not floating point.
pub(crate) fn check_float(name: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(Error::dtype(name, "a floating point dtype", dtype.name()))
    }
}

impl<F: Function> Kernel for Unary<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        check_float(self.name, inputs.get(0).dtype)?;
        Ok(smallvec![inputs.get(0).clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        unary(self.f, x, outputs);
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }

    fn as_step(&self, _before: &Before<'_>) -> Option<Step> {
        Some(Step::Map(Arc::new(self.f)))
    }
}

impl<F: Function> Floats for F {
    fn floats(&self, x: &[f32], y: &mut [f32]) {
        Function::floats(*self, x, y);
    }
}

pub(crate) fn unary<F: Function>(f: F, x: &Array, outputs: &[Array]) {
    let body = |span: &Span<'_>| match computed(x.dtype()) {
        DType::F64 => vectorized(Double { f, x: span.input(0), y: span.output(0) }),
        _ => f.floats(span.input(0), span.output(0)),
    };
    elementwise::map(&[x], outputs, F::GRAIN, Halves::Widened, &body);
}

struct Single<'a, F> {
    f: F,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl<F: Function> WithSimd for Single<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.y.len().min(self.x.len());
        let (x, y) = (self.x.as_ptr(), self.y.as_mut_ptr());
        let whole = n - n % LANES;
        let mut i = 0;
        // SAFETY: all accesses lie below `n`.
        unsafe {
            while i < whole {
                s.store(y.add(i), self.f.single(s, s.load(x.add(i))));
                i += LANES;
            }
            if i < n {
                s.store_n(y.add(i), n - i, self.f.single(s, s.load_n(x.add(i), n - i)));
            }
        }
    }
}

struct Double<'a, F> {
    f: F,
    x: &'a [f64],
    y: &'a mut [f64],
}

impl<F: Function> PlainLoop for Double<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = self.f.double(*x);
        }
    }
}

impl<F: Function2> Kernel for Binary<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        check_float(self.name, dtype)?;
        let (a, b) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if !self.broadcasts && a != b {
            return Err(Error::shape(self.name, "two equal shapes", format!("{a:?} and {b:?}")));
        }
        Ok(smallvec![Meta { dtype, shape: broadcast(self.name, a, b)? }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), Some(y)) = (inputs[0], inputs[1]) else { return Ok(()) };
        binary(self.f, x, y, outputs);
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

pub(crate) fn binary<F: Function2>(f: F, x: &Array, y: &Array, outputs: &[Array]) {
    let body = |span: &Span<'_>| match computed(outputs[0].dtype()) {
        DType::F64 => {
            vectorized(Double2 { f, x: span.input(0), y: span.input(1), z: span.output(0) });
        }
        _ => f.floats(span.input(0), span.input(1), span.output(0)),
    };
    elementwise::map(&[x, y], outputs, F::GRAIN, Halves::Widened, &body);
}

struct Single2<'a, F> {
    f: F,
    x: &'a [f32],
    y: &'a [f32],
    z: &'a mut [f32],
}

impl<F: Function2> WithSimd for Single2<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.z.len().min(self.x.len()).min(self.y.len());
        let (x, y, z) = (self.x.as_ptr(), self.y.as_ptr(), self.z.as_mut_ptr());
        let whole = n - n % LANES;
        let mut i = 0;
        // SAFETY: all accesses lie below `n`.
        unsafe {
            while i < whole {
                s.store(z.add(i), self.f.single(s, s.load(x.add(i)), s.load(y.add(i))));
                i += LANES;
            }
            if i < n {
                let (a, b) = (s.load_n(x.add(i), n - i), s.load_n(y.add(i), n - i));
                s.store_n(z.add(i), n - i, self.f.single(s, a, b));
            }
        }
    }
}

struct Double2<'a, F> {
    f: F,
    x: &'a [f64],
    y: &'a [f64],
    z: &'a mut [f64],
}

impl<F: Function2> PlainLoop for Double2<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.x.iter().zip(self.y).zip(self.z) {
            *z = self.f.double(*x, *y);
        }
    }
}
