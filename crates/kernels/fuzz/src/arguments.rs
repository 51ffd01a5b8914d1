//! Every registered kernel on changed cases of the selfcheck table.

use crate::numbers::{dtype, extent, integer, relaid};
use arbitrary::{Result, Unstructured};
use onemodel_kernels::array::{Array, Meta, element_count};
use onemodel_kernels::attributes::{Attribute, Number};
use onemodel_kernels::kernel::{Kernel, bind, call, infer_for, run_into};
use onemodel_kernels::parallel::set_num_threads;
use onemodel_kernels::registry::build;
use onemodel_kernels::selfcheck::{Case, Fill, cases, filled};
use std::sync::{Arc, OnceLock};

/// Elements of inputs and of outputs with which a kernel is called; above, it infers only.
const COMPUTED: usize = 1 << 16;

fn table() -> &'static [Case] {
    static TABLE: OnceLock<Vec<Case>> = OnceLock::new();
    TABLE.get_or_init(cases)
}

fn attribute(u: &mut Unstructured) -> Result<Attribute> {
    let floats = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 0.5, 1e-320];
    Ok(match u.int_in_range(0..=5u8)? {
        0 => Attribute::Float(*u.choose(&floats)?),
        1 => Attribute::Str((*u.choose(&["", "reflect", "int64", "linear", "x"])?).to_string()),
        2 => Attribute::Floats(
            (0..u.int_in_range(0..=4)?)
                .map(|_| u.choose(&floats).copied())
                .collect::<Result<_>>()?,
        ),
        3 => Attribute::Strs(vec!["Tanh".to_string(); u.int_in_range(0..=7)?]),
        4 => {
            Attribute::Ints((0..u.int_in_range(0..=7)?).map(|_| integer(u)).collect::<Result<_>>()?)
        }
        _ => Attribute::Int(integer(u)?),
    })
}

fn changed(u: &mut Unstructured, case: &mut Case) -> Result<()> {
    let inputs = case.inputs.len();
    let names: Vec<String> = case.attributes.keys().cloned().collect();
    match u.int_in_range(0..=9u8)? {
        0..=2 if !names.is_empty() => {
            let value = case.attributes.get_mut(u.choose(&names)?).expect("one of the names");
            match value {
                Attribute::Int(v) => *v = integer(u)?,
                Attribute::Ints(v) if !v.is_empty() => {
                    let at = u.int_in_range(0..=v.len() - 1)?;
                    match u.int_in_range(0..=5u8)? {
                        0 => v.truncate(at),
                        1 => v.push(integer(u)?),
                        _ => v[at] = integer(u)?,
                    }
                }
                other => *other = attribute(u)?,
            }
        }
        3 if !names.is_empty() => {
            let name = u.choose(&names)?;
            if u.ratio(1, 2)? {
                case.attributes.remove(name);
            } else {
                case.attributes.insert(name.clone(), attribute(u)?);
            }
        }
        4 if inputs > 0 => {
            let at = u.int_in_range(0..=inputs - 1)?;
            match u.int_in_range(0..=2u8)? {
                0 => drop(case.inputs.remove(at)),
                1 => case.inputs[at] = None,
                _ => case.inputs.insert(at, case.inputs[u.int_in_range(0..=inputs - 1)?].clone()),
            }
        }
        5 if inputs > 1 => {
            let (a, b) = (u.int_in_range(0..=inputs - 1)?, u.int_in_range(0..=inputs - 1)?);
            case.inputs.swap(a, b);
        }
        6 => {
            let other = u.choose(table())?;
            if u.ratio(1, 2)? {
                case.inputs.clone_from(&other.inputs);
            } else {
                case.kernel.clone_from(&other.kernel);
            }
        }
        _ if inputs > 0 => {
            let at = u.int_in_range(0..=inputs - 1)?;
            let same = u.ratio(1, 2)?;
            let Some((meta, fill)) = &mut case.inputs[at] else { return Ok(()) };
            if matches!(fill, Fill::Values(_)) {
                *fill = Fill::Between(Number::Int(0), Number::Int(3));
            }
            let rank = meta.shape.len();
            match u.int_in_range(0..=5u8)? {
                0 => meta.dtype = dtype(u)?,
                1 if rank > 0 => drop(meta.shape.pop()),
                2 => meta.shape.push(extent(u)?),
                3 => *fill = u.choose(&[Fill::AnyBits, Fill::Default, Fill::Edges])?.clone(),
                _ if rank > 0 => {
                    let axis = u.int_in_range(0..=rank - 1)?;
                    let (old, new) = (meta.shape[axis], extent(u)?);
                    meta.shape[axis] = new;
                    // The axis of the same extent in the other inputs, so that they still agree.
                    for (other, _) in case.inputs.iter_mut().flatten().filter(|_| same) {
                        for d in other.shape.iter_mut().filter(|d| **d == old) {
                            *d = new;
                        }
                    }
                }
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}

fn size(metas: &[Meta]) -> Option<usize> {
    metas.iter().try_fold(0usize, |sum, meta| {
        sum.checked_add(element_count("fuzz", &meta.shape, meta.dtype).ok()?)
    })
}

/// # Errors
/// When the data ends.
pub fn run(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    set_num_threads(1 + usize::from(u.ratio(1, 4)?));
    let mut case = u.choose(table())?.clone();
    for _ in 0..u.int_in_range(0..=4u8)? {
        changed(&mut u, &mut case)?;
    }
    let Ok(kernel) = build(&case.kernel, case.attributes.clone()) else { return Ok(()) };
    let metas: Vec<Meta> = case.inputs.iter().flatten().map(|(meta, _)| meta.clone()).collect();
    let Some(elements) = size(&metas) else { return Ok(()) };
    let given: Vec<Option<&Meta>> =
        case.inputs.iter().map(|input| input.as_ref().map(|(meta, _)| meta)).collect();
    let inferred = kernel.infer(&given);
    if elements > COMPUTED {
        return Ok(());
    }
    let mut arrays = Vec::new();
    for (input, seed) in case.inputs.iter().zip(1..) {
        arrays.push(match input {
            None => None,
            Some((meta, fill)) => match filled(meta, fill, seed) {
                Ok(array) => Some(relaid(&mut u, array)?),
                Err(_) => return Ok(()),
            },
        });
    }
    let inputs: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
    if inferred.as_ref().is_ok_and(|m| size(m).is_none_or(|s| s > COMPUTED)) {
        return Ok(());
    }
    if let Ok(outputs) = call(&*kernel, &inputs) {
        if let Ok(metas) = &inferred {
            assert!(metas.iter().eq(outputs.iter().map(Array::as_meta)), "inference of {case:?}");
        }
        assert!(outputs.iter().all(Array::is_contiguous));
    }
    bound(&mut u, &kernel, &inputs)?;
    into(&mut u, &*kernel, &inputs)
}

/// Constants packed beforehand, right ones and others.
fn bound(u: &mut Unstructured, kernel: &Arc<dyn Kernel>, inputs: &[Option<&Array>]) -> Result<()> {
    let mut constants = inputs.to_vec();
    for constant in &mut constants {
        if u.ratio(1, 2)? {
            *constant = None;
        }
    }
    if u.ratio(1, 8)? {
        constants.push(inputs.first().copied().flatten());
    }
    if !constants.is_empty() && u.ratio(1, 4)? {
        // Not the array that it is called with.
        constants.rotate_right(1);
    }
    if let Ok(packed) = bind(kernel, &constants) {
        let _ = call(&*packed, inputs);
    }
    Ok(())
}

/// Outputs that may be inputs, views of each other, or of another type.
fn into(u: &mut Unstructured, kernel: &dyn Kernel, inputs: &[Option<&Array>]) -> Result<()> {
    let Ok(metas) = infer_for(kernel, inputs) else { return Ok(()) };
    let mut outputs: Vec<Array> = Vec::new();
    for meta in &metas {
        let fresh = Array::zeros("fuzz", meta.dtype, &meta.shape);
        let output = match u.int_in_range(0..=5u8)? {
            0 => inputs.iter().flatten().next().map(|a| (*a).clone()),
            1 => outputs.last().cloned(),
            2 => match fresh.as_ref() {
                Ok(array) => Some(relaid(u, array.clone())?),
                Err(_) => None,
            },
            _ => None,
        };
        match (output, fresh) {
            (Some(array), _) | (None, Ok(array)) => outputs.push(array),
            (None, Err(_)) => return Ok(()),
        }
    }
    if u.ratio(1, 16)? {
        outputs.pop();
    }
    let _ = run_into(kernel, inputs, &outputs);
    Ok(())
}
