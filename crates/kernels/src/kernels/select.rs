//! Where: moves elements, so every dtype and every bit pattern passes unchanged.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "Where", build: |_| Ok(Arc::new(Where)) }];

/// `condition ? a : b` with broadcasting.
struct Where;

impl Kernel for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Where", inputs, 3, 3)?;
        let condition = inputs.get(0);
        if condition.dtype != DType::Bool {
            return Err(Error::dtype("Where", "a condition of dtype bool", condition.dtype.name()));
        }
        let dtype = inputs.same_dtype(&[1, 2])?;
        let shape = broadcast("Where", &inputs.get(1).shape, &inputs.get(2).shape)?;
        let shape = broadcast("Where", &condition.shape, &shape)?;
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(c), Some(a), Some(b)) = (inputs[0], inputs[1], inputs[2]) else { return Ok(()) };
        for_size!(a.dtype(), T => {
            elementwise::map(&[c, a, b], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                let (c, a, b) = (span.input::<Bool>(0), span.input::<T>(1), span.input::<T>(2));
                vectorized(Select { c, a, b, out: span.output::<T>(0) });
            });
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(1, 0), (2, 0)]
    }
}

struct Select<'a, T> {
    c: &'a [Bool],
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [T],
}

impl<T: Bits> PlainLoop for Select<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (((c, a), b), z) in self.c.iter().zip(self.a).zip(self.b).zip(self.out) {
            *z = T::choose(*c, *a, *b);
        }
    }
}

/// The bits of an element.
pub(crate) trait Bits: Copy {
    /// `c ? a : b` by a mask, which unlike a condition never becomes a jump.
    fn choose(c: Bool, a: Self, b: Self) -> Self;
}

macro_rules! bits {
    ($($t:ty),*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn choose(c: Bool, a: Self, b: Self) -> Self {
                let mask = <$t>::from(c.get()).wrapping_neg();
                (a & mask) | (b & !mask)
            }
        }
    )*};
}
bits!(u8, u16, u32, u64);
