//! Rust errors become Python exceptions here and nowhere else.

use crate::error::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::cell::Cell;

const MODULE: &str = "onemodel_kernels.errors";

fn class(py: Python<'_>, kind: ErrorKind) -> PyResult<Bound<'_, PyType>> {
    static CLASSES: PyOnceLock<[Py<PyType>; 7]> = PyOnceLock::new();
    let names = [
        "ShapeError",
        "DtypeError",
        "AttributeValueError",
        "BoundsError",
        "MemoryLimitError",
        "UnsupportedError",
        "UsageError",
    ];
    let all = match CLASSES.get(py) {
        Some(all) => all,
        None => {
            // Outside of the cell, as in `numpy`: an import runs Python code.
            let module = py.import(MODULE)?;
            let mut found = Vec::with_capacity(names.len());
            for name in names {
                found.push(module.getattr(name)?.cast_into::<PyType>()?.unbind());
            }
            let found =
                found.try_into().map_err(|_| pyo3::exceptions::PyImportError::new_err(MODULE))?;
            CLASSES.get_or_init(py, || found)
        }
    };
    let index = match kind {
        ErrorKind::Shape => 0,
        ErrorKind::Dtype => 1,
        ErrorKind::Attribute => 2,
        ErrorKind::Bounds => 3,
        ErrorKind::Memory => 4,
        ErrorKind::Unsupported => 5,
        ErrorKind::Usage | ErrorKind::Foreign => 6,
    };
    Ok(all[index].bind(py).clone())
}

thread_local! {
    /// The exception of a kernel written in Python, on its way through Rust to the caller.
    static STASHED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Keeps the exception that an error of kind `Foreign` on this thread stands for.
pub fn stash(error: PyErr) {
    STASHED.set(Some(error));
}

/// The Python exception of an error.
pub fn raise(error: Error) -> PyErr {
    if error.kind == ErrorKind::Foreign
        && let Some(stashed) = STASHED.take()
    {
        return stashed;
    }
    Python::attach(|py| match class(py, error.kind) {
        Ok(class) => PyErr::from_type(class, error.to_string()),
        Err(failure) => failure,
    })
}
