//! Comparisons with broadcasting, to bool: false where an element is NaN. Equal also takes bool.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::number::{Number, for_number};
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Equal", build: |_| Ok(Arc::new(Comparison(Equal))) },
    Entry { name: "Less", build: |_| Ok(Arc::new(Comparison(Less))) },
    Entry { name: "LessOrEqual", build: |_| Ok(Arc::new(Comparison(LessOrEqual))) },
    Entry { name: "Greater", build: |_| Ok(Arc::new(Comparison(Greater))) },
    Entry { name: "GreaterOrEqual", build: |_| Ok(Arc::new(Comparison(GreaterOrEqual))) },
];

trait Relation: Copy + Send + Sync + 'static {
    const NAME: &'static str;
    const BOOLS: bool = false;
    fn holds<T: PartialOrd>(self, a: T, b: T) -> bool;
}

macro_rules! relation {
    ($name:ident, $bools:expr, $op:tt) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Relation for $name {
            const NAME: &'static str = stringify!($name);
            const BOOLS: bool = $bools;
            #[inline(always)]
            fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
                a $op b
            }
        }
    };
}
relation!(Equal, true, ==);
relation!(Less, false, <);
relation!(LessOrEqual, false, <=);
relation!(Greater, false, >);
relation!(GreaterOrEqual, false, >=);

struct Comparison<R>(R);

impl<R: Relation> Kernel for Comparison<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(R::NAME, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        if dtype == DType::Bool && !R::BOOLS {
            return Err(Error::dtype(R::NAME, "a numeric dtype", dtype.name()));
        }
        let shape = broadcast(R::NAME, &inputs.get(0).shape, &inputs.get(1).shape)?;
        Ok(smallvec![Meta { dtype: DType::Bool, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(a), Some(b)) = (inputs[0], inputs[1]) else { return Ok(()) };
        if a.dtype() == DType::Bool {
            elementwise::map(&[a, b], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                let (a, b) = (span.input::<Bool>(0), span.input::<Bool>(1));
                for ((x, y), z) in a.iter().zip(b).zip(span.output::<Bool>(0)) {
                    *z = Bool::from(self.0.holds(x.get(), y.get()));
                }
            });
            return Ok(());
        }
        for_number!(a.dtype(), T => {
            elementwise::map(&[a, b], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
                let (a, b, out) = (span.input::<T>(0), span.input::<T>(1), span.output(0));
                vectorized(Compare { relation: self.0, a, b, out });
            });
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

struct Compare<'a, T, R> {
    relation: R,
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [Bool],
}

impl<T: Number, R: Relation> PlainLoop for Compare<'_, T, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.a.iter().zip(self.b).zip(self.out) {
            *z = Bool(u8::from(self.relation.holds(*x, *y)));
        }
    }
}
