//! The entries of an `Outline`, read from Python.

use crate::array::Array;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::python::array::PyArray;
use crate::python::errors::raise;
use crate::python::kernel::PyKernel;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

use super::outline::OP;

pub(super) enum Entry {
    Constant(Array),
    View {
        base: usize,
        shape: Vec<usize>,
        offset: usize,
    },
    /// All elements in a shape that is written by the base's.
    Reshape {
        base: usize,
        extents: Vec<Extent>,
    },
    /// A view where only axes of extent 1 change places, else a call.
    Transpose {
        base: usize,
        perm: Vec<usize>,
        kernel: Arc<dyn Kernel>,
        label: String,
    },
    /// Gather of one index: a view where no axis before it has more than one element, else a call.
    Select {
        base: usize,
        axis: usize,
        at: i64,
        indices: Array,
        kernel: Arc<dyn Kernel>,
        label: String,
    },
    Call {
        kernel: Arc<dyn Kernel>,
        inputs: Vec<Option<usize>>,
        count: usize,
        label: String,
    },
    /// What Python plans anew for the shapes at hand.
    Steps {
        name: usize,
        sources: Vec<usize>,
        count: usize,
    },
}

/// An extent of a reshaped value.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    Fixed(usize),
    /// The product of the base's extents from one axis to before another.
    Product(usize, usize),
    /// What is left.
    Rest,
}

fn extent(&(first, second): &(i64, usize)) -> Extent {
    match usize::try_from(first) {
        Ok(axis) => Extent::Product(axis, second),
        Err(_) if first == -1 => Extent::Fixed(second),
        Err(_) => Extent::Rest,
    }
}

/// The shape of a base's elements; `None` where they do not fit it.
pub(super) fn reshaped(base: &[usize], extents: &[Extent]) -> Option<Vec<usize>> {
    let mut shape = Vec::with_capacity(extents.len());
    let mut fixed = 1usize;
    for extent in extents {
        let value = match *extent {
            Extent::Fixed(value) => value,
            Extent::Product(from, to) => base.get(from..to)?.iter().product(),
            Extent::Rest => 1,
        };
        fixed = fixed.checked_mul(value)?;
        shape.push(value);
    }
    let count: usize = base.iter().product();
    if let Some(rest) = extents.iter().position(|e| matches!(e, Extent::Rest)) {
        // Any extent would do where there are no elements: the rule of the operator decides.
        shape[rest] = count.checked_div(fixed)?;
        fixed *= shape[rest];
    }
    (fixed == count).then_some(shape)
}

/// The shape and offset of one index of an axis, where its elements lie together.
pub(super) fn selected(
    base: &[usize],
    axis: usize,
    at: i64,
    indices: &[usize],
) -> Option<(Vec<usize>, usize)> {
    let (&extent, inner) = (base.get(axis)?, base.get(axis + 1..)?);
    let at = if at < 0 { at + i64::try_from(extent).ok()? } else { at };
    let at = usize::try_from(at).ok().filter(|&at| at < extent)?;
    let outer = &base[..axis];
    (outer.iter().product::<usize>() == 1)
        .then(|| ([outer, indices, inner].concat(), at * inner.iter().product::<usize>()))
}

pub(super) fn entry(item: &Bound<'_, PyTuple>) -> PyResult<Entry> {
    let kind = item.get_item(0)?;
    match kind.extract::<&str>()? {
        "constant" => Ok(Entry::Constant(item.get_item(1)?.cast::<PyArray>()?.get().0.clone())),
        "view" => Ok(Entry::View {
            base: item.get_item(1)?.extract()?,
            shape: item.get_item(2)?.extract()?,
            offset: item.get_item(3)?.extract()?,
        }),
        "reshape" => {
            let extents: Vec<(i64, usize)> = item.get_item(2)?.extract()?;
            Ok(Entry::Reshape {
                base: item.get_item(1)?.extract()?,
                extents: extents.iter().map(extent).collect(),
            })
        }
        "transpose" => Ok(Entry::Transpose {
            base: item.get_item(1)?.extract()?,
            perm: item.get_item(2)?.extract()?,
            kernel: item.get_item(3)?.cast::<PyKernel>()?.get().0.clone(),
            label: item.get_item(4)?.extract()?,
        }),
        "select" => Ok(Entry::Select {
            base: item.get_item(1)?.extract()?,
            axis: item.get_item(2)?.extract()?,
            at: item.get_item(3)?.extract()?,
            indices: item.get_item(4)?.cast::<PyArray>()?.get().0.clone(),
            kernel: item.get_item(5)?.cast::<PyKernel>()?.get().0.clone(),
            label: item.get_item(6)?.extract()?,
        }),
        "call" => {
            let inputs: Vec<i64> = item.get_item(2)?.extract()?;
            Ok(Entry::Call {
                kernel: item.get_item(1)?.cast::<PyKernel>()?.get().0.clone(),
                inputs: inputs.into_iter().map(|i| usize::try_from(i).ok()).collect(),
                count: item.get_item(3)?.extract()?,
                label: item.get_item(4)?.extract()?,
            })
        }
        "steps" => Ok(Entry::Steps {
            name: item.get_item(1)?.extract()?,
            sources: item.get_item(2)?.extract()?,
            count: item.get_item(3)?.extract()?,
        }),
        other => Err(raise(Error::usage(
            OP,
            "an entry of kind constant, view, reshape, transpose, select, call or steps",
            format!("'{other}'"),
        ))),
    }
}
