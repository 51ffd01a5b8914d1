//! Reading Python arguments: attributes, shapes, input lists.

use crate::array::{Array, Meta, element_count};
use crate::attributes::Attribute;
use crate::dtype::DType;
use crate::error::Error;
use crate::python::array::PyArray;
use crate::python::errors::raise;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The array inside a Python argument; `None` for None.
pub fn input<'a>(operator: &str, item: Borrowed<'a, '_, PyAny>) -> PyResult<Option<&'a Array>> {
    if let Ok(array) = item.cast::<PyArray>() {
        return Ok(Some(&array.get().0));
    }
    if item.is_none() {
        return Ok(None);
    }
    let got = item.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("{operator}: expected an Array or None, got {got}")))
}

fn attribute(operator: &str, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Attribute>> {
    if value.is_none() {
        return Ok(None);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Some(Attribute::Int(i64::from(value.is_truthy()?))));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Some(Attribute::Int(value.extract()?)));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Some(Attribute::Float(value.extract()?)));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Attribute::Str(value.extract()?)));
    }
    if let Ok(v) = value.extract::<Vec<i64>>() {
        return Ok(Some(Attribute::Ints(v)));
    }
    if let Ok(v) = value.extract::<Vec<f64>>() {
        return Ok(Some(Attribute::Floats(v)));
    }
    if let Ok(v) = value.extract::<Vec<String>>() {
        return Ok(Some(Attribute::Strs(v)));
    }
    let got = value.repr()?;
    Err(raise(Error::attribute(
        operator,
        format!("{name} to be a number, a string or a sequence of one of them"),
        got.to_string(),
    )))
}

pub fn attributes(
    operator: &str,
    values: Option<&Bound<'_, PyDict>>,
) -> PyResult<BTreeMap<String, Attribute>> {
    let mut out = BTreeMap::new();
    if let Some(values) = values {
        for (key, value) in values {
            let key: String = key.extract()?;
            if let Some(value) = attribute(operator, &key, &value)? {
                out.insert(key, value);
            }
        }
    }
    Ok(out)
}

pub fn dtype(operator: &str, name: &str) -> PyResult<DType> {
    DType::from_name(operator, name).map_err(raise)
}

pub fn meta(operator: &str, item: &Bound<'_, PyAny>) -> PyResult<Option<Meta>> {
    if item.is_none() {
        return Ok(None);
    }
    let (name, shape): (String, Vec<usize>) = item.extract()?;
    let dtype = dtype(operator, &name)?;
    // What no array can have would overflow in the arithmetic of inference.
    element_count(operator, &shape, dtype).map_err(raise)?;
    Ok(Some(Meta::new(dtype, &shape)))
}

pub fn describe<'py>(py: Python<'py>, meta: &Meta) -> PyResult<Bound<'py, PyTuple>> {
    let shape = PyTuple::new(py, meta.shape.iter())?;
    PyTuple::new(py, [dtype_name(py, meta.dtype).into_any(), shape.into_any()])
}

/// The interned name of a dtype.
pub fn dtype_name(py: Python<'_>, dtype: DType) -> Bound<'_, PyString> {
    use pyo3::intern;
    match dtype {
        DType::Bool => intern!(py, "bool"),
        DType::U8 => intern!(py, "uint8"),
        DType::U16 => intern!(py, "uint16"),
        DType::U32 => intern!(py, "uint32"),
        DType::U64 => intern!(py, "uint64"),
        DType::I8 => intern!(py, "int8"),
        DType::I16 => intern!(py, "int16"),
        DType::I32 => intern!(py, "int32"),
        DType::I64 => intern!(py, "int64"),
        DType::F16 => intern!(py, "float16"),
        DType::BF16 => intern!(py, "bfloat16"),
        DType::F32 => intern!(py, "float32"),
        DType::F64 => intern!(py, "float64"),
    }
    .clone()
}

pub type InputList<'a> = SmallVec<[Option<&'a Array>; 4]>;
