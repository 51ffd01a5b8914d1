//! Matrix products: MatMul, Gemm, Linear.
//!
//! One accumulator for each output element, started from +0.0, from C or from the bias, then
//! `acc = fma(a[i, k], b[k, j], acc)` for k ascending. f16 and bf16 operands are widened, accumulated
//! in f32 and rounded once at the end. Integers wrap.

use crate::kernel::Entry;

mod general;
pub(crate) mod half_precision;
mod integer;
mod linear;
mod matmul;
pub(crate) mod matrix;
pub(crate) mod microkernel;
pub(crate) mod packing;
pub(crate) mod product;
pub(crate) mod real;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod transpose;
mod typed;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "MatMul", build: matmul::build },
    Entry { name: "Gemm", build: general::build },
    Entry { name: "Linear", build: linear::build },
];

use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use packing::PackedB;

/// The activation after a product or a convolution: whether it is relu.
pub(crate) fn relu_attribute(attributes: &mut Attributes) -> Result<bool> {
    Ok(attributes.choice("activation", &["none", "relu"], 0)? == 1)
}

/// A right operand packed for one of the two dtypes that are packed.
pub(crate) enum Bound {
    F32(PackedB<f32>),
    F64(PackedB<f64>),
}

fn numeric(operator: &str, dtype: DType) -> Result<()> {
    if dtype == DType::Bool {
        return Err(Error::dtype(operator, "numbers", "bool (cast first)"));
    }
    Ok(())
}

/// Runs `$body` with `$T` bound to the integer type of `$dtype`.
macro_rules! for_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            crate::dtype::DType::U8 => {
                type $T = u8;
                $body
            }
            crate::dtype::DType::U16 => {
                type $T = u16;
                $body
            }
            crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            crate::dtype::DType::I8 => {
                type $T = i8;
                $body
            }
            crate::dtype::DType::I16 => {
                type $T = i16;
                $body
            }
            crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}
pub(crate) use for_integer;
