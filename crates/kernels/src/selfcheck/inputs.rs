//! Inputs of the table, drawn by the crate's own generator: the same on every machine.

use super::case::Fill;
use crate::array::{Array, Meta, contiguous_strides};
use crate::attributes::{Attribute, Number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::call;
use crate::registry::build;

const OP: &str = "selfcheck";

fn draw(kernel: &str, shape: &[usize], seed: u64, rest: Vec<(&str, Attribute)>) -> Result<Array> {
    let shape = shape.iter().map(|&d| d as i64).collect();
    let mut attributes =
        vec![("shape", Attribute::Ints(shape)), ("seed", Attribute::Int(seed.cast_signed()))];
    attributes.extend(rest);
    let named = attributes.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let drawn = call(&*build(kernel, named)?, &[])?.pop();
    drawn.ok_or_else(|| Error::usage(OP, "one output of a random kernel", "none"))
}

/// An array of the type, filled as the table says; `seed` is the input's place in the call.
pub fn filled(meta: &Meta, fill: &Fill, seed: u64) -> Result<Array> {
    let (dtype, shape) = (meta.dtype, &meta.shape[..]);
    let named = |dtype: DType| ("dtype", Attribute::Str(dtype.name().to_string()));
    match fill {
        Fill::Default if dtype == DType::Bool => draw("RandomBernoulli", shape, seed, vec![]),
        Fill::Default if dtype.is_float() => draw("RandomNormal", shape, seed, vec![named(dtype)]),
        Fill::Default => {
            let low = if dtype.is_signed_int() { -10 } else { 0 };
            filled(meta, &Fill::Between(Number::Int(low), Number::Int(10)), seed)
        }
        Fill::Between(low, high) => {
            let value = |number| match number {
                Number::Int(v) => Attribute::Int(v),
                Number::Float(v) => Attribute::Float(v),
            };
            let kernel = if dtype.is_float() { "RandomUniform" } else { "RandomIntegers" };
            let ends = vec![("low", value(*low)), ("high", value(*high)), named(dtype)];
            draw(kernel, shape, seed, ends)
        }
        Fill::Values(values) => {
            let array = Array::zeros(OP, dtype, shape)?;
            if values.len() != array.size() {
                let got = format!("{}", values.len());
                return Err(Error::shape(OP, format!("{} values", array.size()), got));
            }
            for_size!(dtype, T => {
                // SAFETY: a new array that nobody else has.
                let to = unsafe { array.as_mut_slice::<T>() };
                for (to, value) in to.iter_mut().zip(values) {
                    *to = value.bits(dtype) as T;
                }
            });
            Ok(array)
        }
        Fill::AnyBits => any_bits(meta, seed),
        Fill::Edges => {
            let array = filled(meta, &Fill::Default, seed)?;
            let special = edges(dtype);
            for_size!(dtype, T => {
                // SAFETY: a new array that nobody else has.
                let to = unsafe { array.as_mut_slice::<T>() };
                for (i, to) in to.iter_mut().enumerate().filter(|(i, _)| i % 3 != 2) {
                    *to = special[i % special.len()] as T;
                }
            });
            Ok(array)
        }
    }
}

fn any_bits(meta: &Meta, seed: u64) -> Result<Array> {
    let bytes = meta.size() * meta.dtype.size();
    let ends = vec![
        ("low", Attribute::Int(0)),
        ("high", Attribute::Int(256)),
        ("dtype", Attribute::Str(DType::U8.name().to_string())),
    ];
    let drawn = draw("RandomIntegers", &[bytes], seed, ends)?;
    let strides = contiguous_strides(&meta.shape);
    Array::from_parts(drawn.storage().clone(), meta.dtype, &meta.shape, &strides, 0)
}

/// Bits of mantissas, for floats.
pub fn mantissa_bits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F16 => Some(10),
        DType::BF16 => Some(7),
        DType::F32 => Some(23),
        DType::F64 => Some(52),
        _ => None,
    }
}

/// Bits of the numbers at which functions have special cases; both signs of each.
fn edges(dtype: DType) -> Vec<u64> {
    let bits = 8 * dtype.size() as u32;
    let Some(mantissa) = mantissa_bits(dtype) else {
        let most = if dtype == DType::Bool { 1 } else { u64::MAX >> (64 - bits) };
        return vec![0, 1, most / 2, most / 2 + 1, most - 1, most];
    };
    let sign = 1u64 << (bits - 1);
    let infinity = (sign - 1) >> mantissa << mantissa;
    let tiny = 1 << mantissa;
    let mut found: Vec<u64> =
        vec![0, 1, tiny - 1, tiny, infinity - 1, infinity, infinity | tiny >> 1];
    let small = [0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 10.0, 88.0];
    found.extend(small.map(|x| Number::Float(x).bits(dtype)));
    let negative: Vec<u64> = found.iter().map(|bits| bits | sign).collect();
    found.extend(negative);
    found
}
