//! Pow and Atan2 with broadcasting.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, COSTLY, Halves, Span};
use crate::kernels::function::{Binary, Function2};
use crate::kernels::number::{Number, for_number};
use crate::math;
use crate::simd::{Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Pow", build: |_| Ok(Arc::new(Pow)) },
    Entry {
        name: "Atan2",
        build: |_| Ok(Arc::new(Binary { name: "Atan2", f: Atan2, broadcasts: true })),
    },
];

/// The angle of the point (x, y), computed in f64.
#[derive(Clone, Copy)]
struct Atan2;

impl Function2 for Atan2 {
    #[inline(always)]
    fn single<S: Simd>(self, s: S, y: S::F, x: S::F) -> S::F {
        math::through_f64!(s, y, x => math::atan2_f64(y, x))
    }
    #[inline(always)]
    fn double(self, y: f64, x: f64) -> f64 {
        math::atan2_f64(y, x)
    }
}

/// base^exponent in the base's dtype. Floats are computed in f64 and rounded once, by products,
/// square root or reciprocal for the exponents 1, 2, 3, 1/2 and -1. Integers to a non-negative
/// integer power wrap; to a negative one 1/x^|y| truncates (and 0 gives 0); to a float power the f64
/// result truncates and saturates.
struct Pow;

impl Kernel for Pow {
    fn name(&self) -> &'static str {
        "Pow"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Pow", inputs, 2, 2)?;
        for i in 0..2 {
            if inputs.get(i).dtype == DType::Bool {
                return Err(Error::dtype("Pow", format!("input {i} of a numeric dtype"), "bool"));
            }
        }
        let shape = broadcast("Pow", &inputs.get(0).shape, &inputs.get(1).shape)?;
        Ok(smallvec![Meta { dtype: inputs.get(0).dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), Some(y)) = (inputs[0], inputs[1]) else { return Ok(()) };
        for_number!(x.dtype(), T => for_number!(y.dtype(), U => {
            elementwise::map(&[x, y], outputs, COSTLY, Halves::Widened, &|span: &Span<'_>| {
                let (x, y, z) = (span.input::<T>(0), span.input::<U>(1), span.output::<T>(0));
                if T::FLOAT {
                    floats(x, y, z);
                } else if U::FLOAT {
                    for ((x, y), z) in x.iter().zip(y).zip(z) {
                        *z = T::from_f64(math::pow_f64(x.to_f64(), y.to_f64()));
                    }
                } else {
                    for ((x, y), z) in x.iter().zip(y).zip(z) {
                        *z = integer_power(*x, *y);
                    }
                }
            });
        }));
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

/// Blocks with one exponent throughout take the vectorised formula of that exponent; the formulas
/// are the same ones that [`float_power`] takes element by element.
fn floats<T: Number, U: Number>(x: &[T], y: &[U], z: &mut [T]) {
    let first = y[0];
    if y.iter().all(|y| *y == first) {
        dispatch(Fixed { x, z, y: first.to_f64() });
    } else {
        for ((x, y), z) in x.iter().zip(y).zip(z) {
            *z = T::from_f64(float_power(x.to_f64(), y.to_f64()));
        }
    }
}

struct Fixed<'a, T> {
    x: &'a [T],
    z: &'a mut [T],
    y: f64,
}

impl<T: Number> WithSimd for Fixed<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let y = self.y;
        let pairs = self.x.iter().zip(self.z);
        if y == 2.0 {
            // The same bits as in f64, where the product is exact for f32.
            pairs.for_each(|(x, z)| *z = x.mul(*x));
        } else if y == 3.0 {
            pairs.for_each(|(x, z)| *z = T::from_f64(x.to_f64() * x.to_f64() * x.to_f64()));
        } else if y == 0.5 {
            pairs.for_each(|(x, z)| *z = T::from_f64(square_root(x.to_f64())));
        } else {
            pairs.for_each(|(x, z)| *z = T::from_f64(float_power(x.to_f64(), y)));
        }
    }
}

/// x^0.5, which unlike the root is +0 at -0 and infinite at -infinity.
#[inline(always)]
fn square_root(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { f64::INFINITY } else { (x + 0.0).sqrt() }
}

#[inline(always)]
fn float_power(x: f64, y: f64) -> f64 {
    if y == 1.0 {
        x
    } else if y == 2.0 {
        x * x
    } else if y == 3.0 {
        x * x * x
    } else if y == 0.5 {
        square_root(x)
    } else if y == -1.0 {
        1.0 / x
    } else {
        math::pow_f64(x, y)
    }
}

/// By repeated squaring, wrapping.
fn integer_power<T: Number, U: Number>(x: T, y: U) -> T {
    let minus_one = T::ZERO.sub(T::ONE);
    if y < U::ZERO {
        return if x == T::ONE {
            x
        } else if x == minus_one && x < T::ZERO {
            if y.rem(U::from_f64(2.0)) == U::ZERO { T::ONE } else { x }
        } else {
            T::ZERO
        };
    }
    let (mut result, mut base, mut rest) = (T::ONE, x, y);
    let two = U::from_f64(2.0);
    while rest > U::ZERO {
        if rest.rem(two) != U::ZERO {
            result = result.mul(base);
        }
        base = base.mul(base);
        rest = rest.div(two);
    }
    result
}
