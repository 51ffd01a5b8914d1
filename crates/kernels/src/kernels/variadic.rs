//! Max, Min, Sum and Mean of any number of inputs with broadcasting: from the first to the last, one
//! rounding for each step; halves are computed in f32 and rounded once at the end. Max and Min are
//! NaN where an input is, and of equal elements (zeros of both signs) keep the earlier one.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::binary::{Add, Operation, Zip};
use crate::kernels::blocks::computed;
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::number::{Number, for_number};
use crate::simd::{PlainLoop, vectorized, vectorized_wide};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry {
        name: "Max",
        build: |_| Ok(Arc::new(Variadic { name: "Max", operation: Maximum, mean: false })),
    },
    Entry {
        name: "Min",
        build: |_| Ok(Arc::new(Variadic { name: "Min", operation: Minimum, mean: false })),
    },
    Entry {
        name: "Sum",
        build: |_| Ok(Arc::new(Variadic { name: "Sum", operation: Add, mean: false })),
    },
    Entry {
        name: "Mean",
        build: |_| Ok(Arc::new(Variadic { name: "Mean", operation: Add, mean: true })),
    },
];

#[derive(Clone, Copy)]
struct Maximum;

impl Operation for Maximum {
    const NAME: &'static str = "Max";
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T) -> T {
        a.maximum(b)
    }
}

#[derive(Clone, Copy)]
struct Minimum;

impl Operation for Minimum {
    const NAME: &'static str = "Min";
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T) -> T {
        a.minimum(b)
    }
}

fn pair<O: Operation>(operation: O, a: &Array, b: &Array, outputs: &[Array]) {
    for_number!(a.dtype(), T => {
        elementwise::map(&[a, b], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
            let (a, b, out) = (span.input::<T>(0), span.input::<T>(1), span.output::<T>(0));
            vectorized_wide(Zip { operation, a, b, out });
        });
    });
}

struct Variadic<O> {
    name: &'static str,
    operation: O,
    /// Whether the result is divided by the number of inputs.
    mean: bool,
}

/// Inputs folded in one walk.
const AT_ONCE: usize = 5;

impl<O: Operation> Kernel for Variadic<O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, metas: &[Option<&Meta>]) -> Result<Metas> {
        let count = metas.len().max(1);
        let inputs = Inputs::new(self.name, metas, count, count)?;
        let dtype = inputs.get(0).dtype;
        if dtype == DType::Bool || self.mean && !dtype.is_float() {
            let expected = if self.mean { "a floating point dtype" } else { "a numeric dtype" };
            return Err(Error::dtype(self.name, expected, dtype.name()));
        }
        let mut shape = inputs.get(0).shape.clone();
        for i in 1..count {
            inputs.same_dtype(&[0, i])?;
            shape = broadcast(self.name, &shape, &inputs.get(i).shape)?;
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        if let (&[Some(a), Some(b)], false) = (inputs, self.mean) {
            pair(self.operation, a, b, outputs);
            return Ok(());
        }
        let arrays: SmallVec<[&Array; 4]> = inputs.iter().copied().flatten().collect();
        let divisor = if self.mean { arrays.len() } else { 1 };
        let mut rest = &arrays[..];
        let mut partial: Option<Array> = None;
        loop {
            let taken = rest.len().min(AT_ONCE - usize::from(partial.is_some()));
            let before = partial.take();
            let now: SmallVec<[&Array; AT_ONCE]> =
                before.iter().chain(rest[..taken].iter().copied()).collect();
            rest = &rest[taken..];
            if rest.is_empty() {
                self.fold(&now, outputs, divisor);
                return Ok(());
            }
            let dtype = computed(outputs[0].dtype());
            let next = Array::uninit(self.name, dtype, outputs[0].shape())?;
            self.fold(&now, std::slice::from_ref(&next), 1);
            partial = Some(next);
        }
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

impl<O: Operation> Variadic<O> {
    fn fold(&self, arrays: &[&Array], outputs: &[Array], divisor: usize) {
        for_number!(outputs[0].dtype(), T => {
            elementwise::map(arrays, outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
                let inputs: SmallVec<[&[T]; AT_ONCE]> =
                    (0..arrays.len()).map(|k| span.input::<T>(k)).collect();
                let divisor = T::from_f64(divisor as f64);
                let out = span.output::<T>(0);
                vectorized(Fold { operation: self.operation, inputs: &inputs, out, divisor });
            });
        });
    }
}

struct Fold<'a, T, O> {
    operation: O,
    inputs: &'a [&'a [T]],
    out: &'a mut [T],
    divisor: T,
}

impl<T: Number, O: Operation> PlainLoop for Fold<'_, T, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (first, rest) = (self.inputs[0], &self.inputs[1..]);
        let Some((second, rest)) = rest.split_first() else {
            self.out.copy_from_slice(first);
            return;
        };
        for ((x, y), z) in first.iter().zip(*second).zip(self.out.iter_mut()) {
            *z = self.operation.apply(*x, *y);
        }
        for more in rest {
            for (x, z) in more.iter().zip(self.out.iter_mut()) {
                *z = self.operation.apply(*z, *x);
            }
        }
        if self.divisor != T::ONE {
            for z in self.out.iter_mut() {
                *z = z.div(self.divisor);
            }
        }
    }
}
