//! Arithmetic with broadcasting: one correctly rounded operation for each element (halves are
//! computed in f32 and rounded once; integers wrap). FloorDiv rounds the quotient and then down.

use crate::array::{self, Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::broadcast;
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::epilogue::{self, Before, Operand, Step};
use crate::kernels::number::{Number, for_number};
use crate::simd::{PlainLoop, vectorized_wide};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Add", build: |_| Ok(Arc::new(Arithmetic(Add))) },
    Entry { name: "Sub", build: |_| Ok(Arc::new(Arithmetic(Sub))) },
    Entry { name: "Mul", build: |_| Ok(Arc::new(Arithmetic(Mul))) },
    Entry { name: "Div", build: |_| Ok(Arc::new(Arithmetic(Div))) },
    Entry { name: "FloorDiv", build: |_| Ok(Arc::new(Arithmetic(FloorDiv))) },
    Entry {
        name: "Mod",
        build: |a| {
            Ok(if a.flag("fmod", false)? {
                Arc::new(Arithmetic(Fmod))
            } else {
                Arc::new(Arithmetic(Mod))
            })
        },
    },
];

/// An operation on two numbers of a dtype.
pub(crate) trait Operation: Copy + Send + Sync + 'static {
    const NAME: &'static str;
    /// Whether the second number divides, so that an integer 0 is refused.
    const DIVIDES: bool = false;
    const FLOATS: bool = true;
    fn apply<T: Number>(self, a: T, b: T) -> T;
}

macro_rules! operation {
    ($name:ident, $divides:expr, $floats:expr, |$a:ident, $b:ident| $body:expr) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl Operation for $name {
            const NAME: &'static str = stringify!($name);
            const DIVIDES: bool = $divides;
            const FLOATS: bool = $floats;
            #[inline(always)]
            fn apply<T: Number>(self, $a: T, $b: T) -> T {
                $body
            }
        }
    };
}
operation!(Add, false, true, |a, b| a.add(b));
operation!(Sub, false, true, |a, b| a.sub(b));
operation!(Mul, false, true, |a, b| a.mul(b));
operation!(Div, true, true, |a, b| a.div(b));
operation!(FloorDiv, true, true, |a, b| a.floor_div(b));
operation!(Mod, true, false, |a, b| {
    // The remainder with the divisor's sign.
    let r = a.rem(b);
    if r != T::ZERO && (r < T::ZERO) != (b < T::ZERO) { r.add(b) } else { r }
});

/// The remainder with the dividend's sign.
#[derive(Clone, Copy)]
struct Fmod;

impl Operation for Fmod {
    const NAME: &'static str = "Mod";
    const DIVIDES: bool = true;
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T) -> T {
        a.rem(b)
    }
}

struct Arithmetic<O>(O);

impl<O: Operation> Kernel for Arithmetic<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(O::NAME, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        if dtype == DType::Bool {
            return Err(Error::dtype(O::NAME, "a numeric dtype", dtype.name()));
        }
        if !O::FLOATS && dtype.is_float() {
            return Err(Error::attribute(
                O::NAME,
                "fmod=1 for floating point inputs",
                format!("fmod=0 with {}", dtype.name()),
            ));
        }
        let shape = array::broadcast(O::NAME, &inputs.get(0).shape, &inputs.get(1).shape)?;
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(a), Some(b)) = (inputs[0], inputs[1]) else { return Ok(()) };
        if O::DIVIDES && !b.dtype().is_float() && outputs[0].size() > 0 {
            check_divisor(O::NAME, b)?;
        }
        for_number!(a.dtype(), T => {
            if broadcast::zip::<T, O>(self.0, a, b, &outputs[0]) {
                return Ok(());
            }
            elementwise::map(&[a, b], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
                let (a, b, out) = (span.input::<T>(0), span.input::<T>(1), span.output::<T>(0));
                vectorized_wide(Zip { operation: self.0, a, b, out });
            });
        });
        Ok(())
    }

    fn as_step(&self, before: &Before<'_>) -> Option<Step> {
        let operation = match (O::NAME, before.at) {
            ("Add", 0 | 1) => epilogue::Operation::Add,
            ("Mul", 0 | 1) => epilogue::Operation::Mul,
            ("Sub", 0) => epilogue::Operation::Sub,
            ("Sub", 1) => epilogue::Operation::SubFrom,
            ("Div", 0) => epilogue::Operation::Div,
            ("Div", 1) => epilogue::Operation::DivInto,
            _ => return None,
        };
        let operand = match before.constants[1 - before.at] {
            Some(constant) => before.operand(constant)?,
            None => Operand::Input(before.input),
        };
        Some(Step::Combine(operation, operand))
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

fn check_divisor(name: &str, b: &Array) -> Result<()> {
    let b = b.to_contiguous()?;
    let mut zero = false;
    for_number!(b.dtype(), T => zero = b.as_slice::<T>().contains(&T::ZERO));
    if zero {
        return Err(Error::bounds(name, "integer divisors other than 0", "a 0 among them"));
    }
    Ok(())
}

/// `out = operation(a, b)` over slices.
pub(crate) struct Zip<'a, T, O> {
    pub operation: O,
    pub a: &'a [T],
    pub b: &'a [T],
    pub out: &'a mut [T],
}

impl<T: Number, O: Operation> PlainLoop for Zip<'_, T, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.a.iter().zip(self.b).zip(self.out) {
            *z = self.operation.apply(*x, *y);
        }
    }
}
