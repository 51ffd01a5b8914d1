//! Pow and Atan2 with broadcasting.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, COSTLY, Halves, Span};
use crate::kernels::fold::widened;
use crate::kernels::function::{Binary, Function2, through_f64_2};
use crate::kernels::number::{Number, for_number};
use crate::math;
use crate::simd::{PlainLoop, Simd, vectorized};
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
    fn floats(self, y: &[f32], x: &[f32], angle: &mut [f32]) {
        through_f64_2(self, y, x, angle);
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
        if x.dtype().is_float() && y.size() == 1 {
            let y = exponent(y)?;
            for_number!(x.dtype(), T => {
                elementwise::map(&[x], outputs, COSTLY, Halves::Widened, &|span: &Span<'_>| {
                    vectorized(Uniform { x: span.input::<T>(0), y, z: span.output::<T>(0) });
                });
            });
            return Ok(());
        }
        let integers = !y.dtype().is_float() && !x.dtype().is_float();
        let mut exponents: (Read<f64>, Read<i128>) = (read_floats::<f64>, read_integers::<i64>);
        for_number!(y.dtype(), U => exponents = (read_floats::<U>, read_integers::<U>));
        for_number!(x.dtype(), T => {
            elementwise::map(&[x, y], outputs, COSTLY, Halves::Widened, &|span: &Span<'_>| {
                if integers {
                    integer_chunks::<T>(span, exponents.1);
                } else {
                    chunks::<T>(span, exponents.0);
                }
            });
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

/// The value of an array of one element.
fn exponent(y: &Array) -> Result<f64> {
    let y = widened(y)?;
    let mut value = 0.0;
    for_number!(y.dtype(), T => {
        // SAFETY: one element of this type.
        value = unsafe { *y.as_ptr::<T>() }.to_f64();
    });
    Ok(value)
}

/// One exponent for all: the formulas of [`float_power`], each in a loop of its own.
struct Uniform<'a, T> {
    x: &'a [T],
    y: f64,
    z: &'a mut [T],
}

impl<T: Number> PlainLoop for Uniform<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let y = self.y;
        let pairs = self.x.iter().zip(self.z);
        if y == 2.0 {
            for (x, z) in pairs {
                // The same bits as in f64, where the product is exact for f32.
                *z = x.mul(*x);
            }
        } else if y == 3.0 {
            for (x, z) in pairs {
                let x = x.to_f64();
                *z = T::from_f64(x * x * x);
            }
        } else if y == 0.5 {
            for (x, z) in pairs {
                *z = T::from_f64(square_root(x.to_f64()));
            }
        } else {
            for (x, z) in pairs {
                *z = T::from_f64(float_power(x.to_f64(), y));
            }
        }
    }
}

/// How many powers are computed at a time.
const AT_ONCE: usize = 128;

/// Converts the exponents of a span from an index on. A function of the exponents' dtype alone, so
/// that not every pair of dtypes has its own code.
type Read<W> = fn(&Span<'_>, usize, &mut [W]);

fn read_floats<U: Number>(span: &Span<'_>, first: usize, to: &mut [f64]) {
    for (to, y) in to.iter_mut().zip(&span.input::<U>(1)[first..]) {
        *to = y.to_f64();
    }
}

fn read_integers<U: Number>(span: &Span<'_>, first: usize, to: &mut [i128]) {
    for (to, y) in to.iter_mut().zip(&span.input::<U>(1)[first..]) {
        *to = y.to_i128();
    }
}

/// Powers in f64.
fn chunks<T: Number>(span: &Span<'_>, exponents: Read<f64>) {
    let mut buffers = [[0.0; AT_ONCE]; 3];
    let [base, exponent, power] = &mut buffers;
    let (x, z) = (span.input::<T>(0), span.output::<T>(0));
    for (part, (x, z)) in x.chunks(AT_ONCE).zip(z.chunks_mut(AT_ONCE)).enumerate() {
        let n = z.len();
        for (to, x) in base.iter_mut().zip(x) {
            *to = x.to_f64();
        }
        exponents(span, part * AT_ONCE, &mut exponent[..n]);
        vectorized(Powers { x: &base[..n], y: &exponent[..n], z: &mut power[..n] });
        for (z, from) in z.iter_mut().zip(power.iter()) {
            *z = T::from_f64(*from);
        }
    }
}

/// Powers of integers to integers.
fn integer_chunks<T: Number>(span: &Span<'_>, exponents: Read<i128>) {
    let mut exponent = [0; AT_ONCE];
    let (x, z) = (span.input::<T>(0), span.output::<T>(0));
    for (part, (x, z)) in x.chunks(AT_ONCE).zip(z.chunks_mut(AT_ONCE)).enumerate() {
        exponents(span, part * AT_ONCE, &mut exponent[..z.len()]);
        for ((z, x), y) in z.iter_mut().zip(x).zip(exponent) {
            *z = integer_power(*x, y);
        }
    }
}

struct Powers<'a> {
    x: &'a [f64],
    y: &'a [f64],
    z: &'a mut [f64],
}

impl PlainLoop for Powers<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.x.iter().zip(self.y).zip(self.z) {
            *z = float_power(*x, *y);
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
fn integer_power<T: Number>(x: T, y: i128) -> T {
    let minus_one = T::ZERO.sub(T::ONE);
    if y < 0 {
        return if x == T::ONE || x == minus_one && x < T::ZERO && y % 2 != 0 {
            x
        } else if x == minus_one && x < T::ZERO {
            T::ONE
        } else {
            T::ZERO
        };
    }
    let (mut result, mut base, mut rest) = (T::ONE, x, y);
    while rest > 0 {
        if rest % 2 != 0 {
            result = result.mul(base);
        }
        base = base.mul(base);
        rest /= 2;
    }
    result
}
