//! Logic on bool, bits of integers and shifts.

use crate::array::{Array, Meta, broadcast};
use crate::dtype::{Bool, DType};
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "And", build: |_| Ok(Arc::new(Bits { name: "And", op: Op::And, bools: true })) },
    Entry { name: "Or", build: |_| Ok(Arc::new(Bits { name: "Or", op: Op::Or, bools: true })) },
    Entry { name: "Xor", build: |_| Ok(Arc::new(Bits { name: "Xor", op: Op::Xor, bools: true })) },
    Entry {
        name: "BitwiseAnd",
        build: |_| Ok(Arc::new(Bits { name: "BitwiseAnd", op: Op::And, bools: false })),
    },
    Entry {
        name: "BitwiseOr",
        build: |_| Ok(Arc::new(Bits { name: "BitwiseOr", op: Op::Or, bools: false })),
    },
    Entry {
        name: "BitwiseXor",
        build: |_| Ok(Arc::new(Bits { name: "BitwiseXor", op: Op::Xor, bools: false })),
    },
    Entry {
        name: "BitShift",
        build: |a| {
            let Some(direction) = a.str_opt("direction")? else {
                return Err(Error::attribute("BitShift", "direction 'LEFT' or 'RIGHT'", "none"));
            };
            let op = match direction.as_str() {
                "LEFT" => Op::ShiftLeft,
                "RIGHT" => Op::ShiftRight,
                other => {
                    let got = format!("'{other}'");
                    return Err(Error::attribute("BitShift", "direction 'LEFT' or 'RIGHT'", got));
                }
            };
            Ok(Arc::new(Bits { name: "BitShift", op, bools: false }))
        },
    },
    Entry { name: "Not", build: |_| Ok(Arc::new(Flip { name: "Not", bools: true })) },
    Entry {
        name: "BitwiseNot",
        build: |_| Ok(Arc::new(Flip { name: "BitwiseNot", bools: false })),
    },
];

#[derive(Clone, Copy)]
enum Op {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

struct Bits {
    name: &'static str,
    op: Op,
    /// On bool, else on integers.
    bools: bool,
}

fn check(name: &str, bools: bool, dtype: DType) -> Result<()> {
    if bools && dtype != DType::Bool {
        return Err(Error::dtype(name, "bool", dtype.name()));
    }
    if !bools && !dtype.is_int() {
        return Err(Error::dtype(name, "an integer dtype", dtype.name()));
    }
    Ok(())
}

impl Kernel for Bits {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        check(self.name, self.bools, dtype)?;
        let shape = broadcast(self.name, &inputs.get(0).shape, &inputs.get(1).shape)?;
        Ok(smallvec![Meta { dtype, shape }])
    }

    // The cast is one for the narrower types only.
    #[allow(clippy::unnecessary_cast)]
    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(a), Some(b)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let op = self.op;
        let arithmetic = a.dtype().is_signed_int();
        for_size!(a.dtype(), T => {
            elementwise::map(&[a, b], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                let (a, b, out) = (span.input::<T>(0), span.input::<T>(1), span.output::<T>(0));
                let width = u64::from(T::BITS);
                match op {
                    Op::And => vectorized(Zip { f: T::bitand, a, b, out }),
                    Op::Or => vectorized(Zip { f: T::bitor, a, b, out }),
                    Op::Xor => vectorized(Zip { f: T::bitxor, a, b, out }),
                    Op::ShiftLeft => {
                        let f = |x: T, by: T| if (by as u64) < width { x << by } else { 0 };
                        vectorized(Zip { f, a, b, out });
                    }
                    Op::ShiftRight => {
                        let f = |x: T, by: T| {
                            if by as u64 >= width {
                                0
                            } else if arithmetic {
                                (x.cast_signed() >> by).cast_unsigned()
                            } else {
                                x >> by
                            }
                        };
                        vectorized(Zip { f, a, b, out });
                    }
                }
            });
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

struct Zip<'a, T, F> {
    f: F,
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [T],
}

impl<T: Copy, F: Fn(T, T) -> T> PlainLoop for Zip<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), z) in self.a.iter().zip(self.b).zip(self.out) {
            *z = (self.f)(*x, *y);
        }
    }
}

struct Flip {
    name: &'static str,
    bools: bool,
}

impl Kernel for Flip {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        check(self.name, self.bools, inputs.get(0).dtype)?;
        Ok(smallvec![inputs.get(0).clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        if self.bools {
            elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                for (x, y) in span.input::<Bool>(0).iter().zip(span.output::<Bool>(0)) {
                    *y = Bool::from(!x.get());
                }
            });
        } else {
            for_size!(x.dtype(), T => {
                elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                    for (x, y) in span.input::<T>(0).iter().zip(span.output::<T>(0)) {
                        *y = x.not();
                    }
                });
            });
        }
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}
