//! `Kernel`: a prepared operator, called on arrays.

use crate::array::Array;
use crate::kernel::{self, Kernel};
use crate::python::array::PyArray;
use crate::python::convert::{self, InputList};
use crate::python::errors::raise;
use crate::python::foreign;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// Below this many elements a call is shorter than giving up the interpreter lock.
const DETACH_ELEMENTS: usize = 4096;

/// A prepared operator: `Kernel(name, **attributes)`, called on arrays (or None for an absent
/// optional input).
///
/// Returns an Array, or a tuple of them for operators with several outputs. The result's bits depend
/// on the inputs alone. Raises ShapeError, DtypeError, AttributeValueError, BoundsError.
#[pyclass(name = "Kernel", module = "onemodel_kernels", frozen)]
pub struct PyKernel(pub Arc<dyn Kernel>);

fn inputs_of<'a>(name: &str, items: &'a [Bound<'_, PyAny>]) -> PyResult<InputList<'a>> {
    items.iter().map(|item| convert::input(name, item.as_borrowed())).collect()
}

fn heavy(inputs: &[Option<&Array>]) -> bool {
    inputs.iter().flatten().map(|a| a.size()).sum::<usize>() >= DETACH_ELEMENTS
}

#[pymethods]
impl PyKernel {
    #[new]
    #[pyo3(signature = (name, /, **attributes))]
    fn new(py: Python<'_>, name: &str, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let values = convert::attributes(name, attributes)?;
        if name.contains("::")
            && let Some(kernel) = foreign::build(py, name, attributes, values.clone())?
        {
            return Ok(Self(kernel));
        }
        Ok(Self(crate::registry::build(name, values).map_err(raise)?))
    }

    /// The names of all kernels, sorted.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        let mut names = crate::registry::names();
        names.extend(foreign::names());
        names.sort_unstable();
        names
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Pairs (input, output) that may be the same memory.
    #[getter]
    fn in_place(&self) -> Vec<(usize, usize)> {
        self.0.in_place().to_vec()
    }

    fn __repr__(&self) -> String {
        format!("Kernel('{}')", self.0.name())
    }

    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kernel = &*self.0;
        let mut arrays = InputList::new();
        for i in 0..inputs.len() {
            arrays.push(convert::input(kernel.name(), inputs.get_borrowed_item(i)?)?);
        }
        let outputs = if heavy(&arrays) {
            py.detach(|| kernel::call(kernel, &arrays))
        } else {
            kernel::call(kernel, &arrays)
        }
        .map_err(raise)?;
        let mut outputs = outputs;
        if kernel.single_output()
            && let Some(only) = outputs.pop()
        {
            return Ok(Bound::new(py, PyArray(only))?.into_any());
        }
        let outputs: PyResult<SmallVec<[Bound<'py, PyArray>; 4]>> =
            outputs.into_iter().map(|a| Bound::new(py, PyArray(a))).collect();
        Ok(PyTuple::new(py, outputs?)?.into_any())
    }

    /// Dtype and shape of each output for inputs given as (dtype, shape) or None.
    fn infer<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let metas = inputs
            .iter()
            .map(|item| convert::meta(self.0.name(), item))
            .collect::<PyResult<Vec<_>>>()?;
        let refs: Vec<_> = metas.iter().map(Option::as_ref).collect();
        let out = self.0.infer(&refs).map_err(raise)?;
        let items = out.iter().map(|m| convert::describe(py, m)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, items)
    }

    /// Computes into existing contiguous arrays and bumps their versions.
    ///
    /// An output may be the same memory as an input only for the pairs of `in_place`.
    fn run_into(
        &self,
        py: Python<'_>,
        outputs: Vec<Bound<'_, PyArray>>,
        inputs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let arrays = inputs_of(self.0.name(), &inputs)?;
        let outputs: Vec<Array> = outputs.iter().map(|o| o.get().0.clone()).collect();
        py.detach(|| kernel::run_into(&*self.0, &arrays, &outputs)).map_err(raise)
    }

    /// A kernel with these constant inputs packed once; called with the same inputs as this one.
    fn bind(&self, py: Python<'_>, constants: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let arrays = inputs_of(self.0.name(), &constants)?;
        let bound = py.detach(|| crate::kernel::bind(&self.0, &arrays)).map_err(raise)?;
        Ok(Self(bound))
    }
}
