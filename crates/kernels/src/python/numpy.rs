//! NumPy arrays by their own type and constructors, looked up once.

use crate::array::Array;
use crate::dtype::DType;
use crate::python::array::PyArray;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The types and functions of NumPy that every call needs.
pub(super) struct Numpy {
    pub(super) ndarray: Py<PyType>,
    pub(super) asarray: Py<PyAny>,
    memoryview: Py<PyAny>,
    /// One dtype object for each [`DType`] but bfloat16, whose place holds uint16.
    dtypes: Vec<Py<PyAny>>,
}

fn name(dtype: DType) -> &'static str {
    if dtype == DType::BF16 { DType::U16.name() } else { dtype.name() }
}

/// NumPy, imported at the first use.
pub(super) fn numpy(py: Python<'_>) -> PyResult<&Numpy> {
    static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();
    if let Some(found) = NUMPY.get(py) {
        return Ok(found);
    }
    // Outside of the cell: the import runs Python code, during which another thread may fork, and a
    // child would wait for ever at a cell that is being set.
    let found = look_up(py)?;
    Ok(NUMPY.get_or_init(py, || found))
}

fn look_up(py: Python<'_>) -> PyResult<Numpy> {
    let module = py.import("numpy")?;
    let dtypes = DType::ALL
        .iter()
        .map(|&d| Ok(module.getattr("dtype")?.call1((name(d),))?.unbind()))
        .collect::<PyResult<_>>()?;
    Ok(Numpy {
        ndarray: module.getattr("ndarray")?.cast_into::<PyType>()?.unbind(),
        asarray: module.getattr("asarray")?.unbind(),
        memoryview: py.import("builtins")?.getattr("memoryview")?.unbind(),
        dtypes,
    })
}

/// Whether the object is a plain `numpy.ndarray`.
pub(super) fn is_ndarray(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.get_type().is(numpy(object.py())?.ndarray.bind(object.py())))
}

/// A read-only NumPy array over the same memory.
pub fn to_numpy<'py>(slf: &Bound<'py, PyArray>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let numpy = numpy(py)?;
    let array: &Array = &slf.get().0;
    let view = if array.is_contiguous() && array.size() > 0 {
        let dtype = numpy.dtypes[array.dtype() as usize].bind(py);
        let shape = PyTuple::new(py, array.shape())?;
        numpy.ndarray.bind(py).call1((shape, dtype, slf))?
    } else {
        let memory = numpy.memoryview.bind(py).call1((slf,))?;
        numpy.asarray.bind(py).call1((memory,))?
    };
    if array.dtype() == DType::BF16 {
        return match py.import("ml_dtypes") {
            Ok(module) => view.call_method1("view", (module.getattr("bfloat16")?,)),
            Err(_) => Err(PyTypeError::new_err(
                "numpy: expected the package ml_dtypes for bfloat16 arrays, got none (pip install \
                 ml-dtypes, or cast to float32 first)",
            )),
        };
    }
    Ok(view)
}

/// The entries of `given` by name when it holds just these names.
pub(super) fn entries<'py>(
    given: &Bound<'py, PyDict>,
    names: &Bound<'py, PyTuple>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if given.len() != names.len() {
        return Ok(None);
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names.iter_borrowed() {
        match given.get_item(name)? {
            Some(entry) => found.push(entry),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}
