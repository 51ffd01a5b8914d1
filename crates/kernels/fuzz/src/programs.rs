//! Plans with hostile indices, offsets and views, run when they are accepted.

use crate::numbers::{dtype, extent, integer, shape};
use arbitrary::{Result, Unstructured};
use onemodel_kernels::array::{Array, Dims, Meta, Strides, contiguous_strides, element_count};
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::dtype::DType;
use onemodel_kernels::program::{Call, Place, Program};
use onemodel_kernels::registry::build;
use std::sync::Arc;

/// Elements of each value with which a plan is run at most; above, it is only checked.
const RUN: usize = 1 << 14;

fn meta(u: &mut Unstructured) -> Result<Meta> {
    if u.ratio(1, 8)? {
        return Ok(Meta::new(dtype(u)?, &shape(u, 3)?));
    }
    let rows = *u.choose(&[2usize, 3, 4])?;
    let dtype = if u.ratio(1, 8)? { dtype(u)? } else { DType::F32 };
    Ok(Meta::new(dtype, &[rows, *u.choose(&[3usize, 4, 16])?]))
}

fn place(u: &mut Unstructured, index: usize) -> Result<Place> {
    Ok(match u.int_in_range(0..=5u8)? {
        0 => Place::Input(meta(u)?),
        1 => {
            let meta = meta(u)?;
            match element_count("fuzz", &meta.shape, meta.dtype) {
                Ok(0..=RUN) => Place::Constant(
                    Array::zeros("fuzz", meta.dtype, &meta.shape).expect("few elements"),
                ),
                _ => Place::Input(meta),
            }
        }
        2 => Place::Output(meta(u)?),
        3 => {
            let shape: Dims = meta(u)?.shape;
            let known = &shape[..shape.len().min(8)];
            let strides: Strides = match u.int_in_range(0..=2u8)? {
                0 if element_count("fuzz", known, DType::U8).is_ok() => contiguous_strides(known),
                _ => (0..u.int_in_range(0..=3)?)
                    .map(|_| Ok(integer(u)? as isize))
                    .collect::<Result<_>>()?,
            };
            let base = if u.ratio(1, 8)? { extent(u)? } else { u.int_in_range(0..=index)? };
            Place::View { base, shape, strides, offset: extent(u)? }
        }
        _ => {
            let at = if u.ratio(1, 8)? { extent(u)? } else { 64 * u.int_in_range(0..=8)? };
            Place::Arena(meta(u)?, at)
        }
    })
}

fn fits(shape: &[usize]) -> bool {
    element_count("fuzz", shape, DType::U8).is_ok_and(|count| count <= RUN)
}

/// # Errors
/// When the data ends.
pub fn run(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    let count = u.int_in_range(0..=8usize)?;
    let values = (0..count).map(|index| place(&mut u, index)).collect::<Result<Vec<_>>>()?;
    let index = |u: &mut Unstructured| -> Result<usize> {
        if u.ratio(1, 20)? { extent(u) } else { u.int_in_range(0..=count) }
    };
    let mut calls = Vec::new();
    for _ in 0..u.int_in_range(0..=5u8)? {
        let kernels = [
            ("Add", 2, 1),
            ("Relu", 1, 1),
            ("MatMul", 2, 1),
            ("Concat", 2, 1),
            ("Split", 1, 2),
            ("Transpose", 1, 1),
            ("Softmax", 1, 1),
            ("TopK", 1, 2),
        ];
        let (name, inputs, outputs) = *u.choose(&kernels)?;
        let attributes = match name {
            "Concat" => vec![("axis", Attribute::Int(0))],
            "Split" => vec![("axis", Attribute::Int(0)), ("split", Attribute::Ints(vec![1, 2]))],
            "Transpose" => vec![("perm", Attribute::Ints(vec![1, 0]))],
            "TopK" => vec![("k", Attribute::Int(2))],
            _ => vec![],
        };
        let attributes = attributes.into_iter().map(|(n, v)| (n.to_string(), v)).collect();
        let kernel = build(name, attributes).expect("right attributes");
        let extra = i32::from(u.ratio(1, 16)?);
        let inputs = (0..inputs + extra)
            .map(|_| Ok(if u.ratio(1, 16)? { None } else { Some(index(&mut u)?) }))
            .collect::<Result<_>>()?;
        let outputs = (0..outputs + i32::from(u.ratio(1, 16)?))
            .map(|_| index(&mut u))
            .collect::<Result<_>>()?;
        calls.push(Call { kernel, inputs, outputs });
    }
    let outputs = (0..u.int_in_range(0..=3u8)?).map(|_| index(&mut u)).collect::<Result<_>>()?;
    let arena = if u.ratio(1, 8)? { extent(&mut u)? } else { 64 * u.int_in_range(0..=32)? };
    let metas: Vec<Meta> = values
        .iter()
        .filter_map(|value| match value {
            Place::Input(meta) => Some(meta.clone()),
            _ => None,
        })
        .collect();
    let small = values.iter().all(|value| match value {
        Place::Input(meta) | Place::Output(meta) | Place::Arena(meta, _) => fits(&meta.shape),
        Place::Constant(_) => true,
        Place::View { shape, .. } => fits(shape),
    });
    let Ok(program) = Program::new(values, calls, outputs, arena) else { return Ok(()) };
    if !small {
        return Ok(());
    }
    let inputs: Vec<Array> = metas
        .iter()
        .map(|meta| Array::zeros("fuzz", meta.dtype, &meta.shape).expect("few elements"))
        .collect();
    let program = Arc::new(program);
    if let Ok(first) = program.run(&inputs) {
        let again = program.run(&inputs).expect("the same plan on the same inputs");
        assert_eq!(first.len(), again.len());
    }
    let _ = program.run(&inputs[..inputs.len() / 2]);
    Ok(())
}
