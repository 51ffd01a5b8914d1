//! Calling kernels by name on slices.

#![allow(dead_code)]

use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::dtype::Element;
use onemodel_kernels::error::Error;
use onemodel_kernels::kernel::{Kernel, call, run_into};
use onemodel_kernels::registry::build;
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn int(v: i64) -> Attribute {
    Attribute::Int(v)
}

pub fn ints(v: &[i64]) -> Attribute {
    Attribute::Ints(v.to_vec())
}

pub fn float(v: f64) -> Attribute {
    Attribute::Float(v)
}

pub fn text(v: &str) -> Attribute {
    Attribute::Str(v.to_string())
}

pub fn prepare(name: &str, attributes: &[(&str, Attribute)]) -> Result<Arc<dyn Kernel>, Error> {
    let values: BTreeMap<String, Attribute> =
        attributes.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect();
    build(name, values)
}

pub fn try_run(
    name: &str,
    attributes: &[(&str, Attribute)],
    inputs: &[Option<&Array>],
) -> Result<Vec<Array>, Error> {
    Ok(call(&*prepare(name, attributes)?, inputs)?.into_vec())
}

pub fn run(name: &str, attributes: &[(&str, Attribute)], inputs: &[&Array]) -> Vec<Array> {
    let inputs: Vec<Option<&Array>> = inputs.iter().map(|a| Some(*a)).collect();
    try_run(name, attributes, &inputs).unwrap()
}

pub fn into(
    name: &str,
    attributes: &[(&str, Attribute)],
    outputs: &[Array],
    inputs: &[Option<&Array>],
) -> Result<(), Error> {
    run_into(&*prepare(name, attributes)?, inputs, outputs)
}

pub fn array<T: Element>(shape: &[usize], data: &[T]) -> Array {
    Array::from_slice(shape, data).unwrap()
}

pub fn zeros_like(a: &Array) -> Array {
    Array::zeros("test", a.dtype(), a.shape()).unwrap()
}

/// Bit patterns of f32, every NaN alike.
pub fn bits(a: &Array) -> Vec<u32> {
    let canonical = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    a.as_slice::<f32>().iter().map(canonical).collect()
}

/// Reproducible numbers in [-scale, scale).
pub fn numbers(n: usize, seed: u64, scale: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * scale
        })
        .collect()
}

pub fn singles(n: usize, seed: u64, scale: f64) -> Vec<f32> {
    numbers(n, seed, scale).into_iter().map(|x| x as f32).collect()
}
