//! `Program`: a planned list of kernel calls.

use crate::array::{Array, Dims, Strides};
use crate::error::{Error, ErrorKind, Result};
use crate::program::{Call, Place, Program};
use crate::python::array::PyArray;
use crate::python::buffer;
use crate::python::convert;
use crate::python::errors::{raise, stash};
use crate::python::kernel::PyKernel;
use crate::python::numpy;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::cell::Cell;
use std::time::{Duration, Instant};

const OP: &str = "Program";

/// A planned list of kernel calls over one arena: `Program(values, nodes, outputs, arena_bytes)`.
///
/// `values` holds ("input", dtype, shape), ("constant", Array), ("arena", dtype, shape, byte
/// offset), ("output", dtype, shape) or ("view", base, shape, strides, offset); `nodes` holds
/// (Kernel, input value indices with -1 for absent, output value indices). The plan is checked
/// once; runs from several threads use separate arenas.
#[pyclass(name = "Program", module = "onemodel_kernels", frozen)]
pub struct PyProgram(pub Program);

/// How long Ctrl-C may wait for a run that has many calls; one call is never cut short.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Runs without the interpreter's lock; now and then Python handles its signals, and what a handler
/// raises ends the run.
fn run_detached(py: Python<'_>, program: &Program, inputs: &[Array]) -> Result<Vec<Array>> {
    py.detach(|| {
        let last = Cell::new(Instant::now());
        program.run_watched(inputs, || {
            if last.get().elapsed() < SIGNALS_EVERY {
                return Ok(());
            }
            last.set(Instant::now());
            Python::attach(|py| py.check_signals()).map_err(|raised| {
                stash(raised);
                Error::new(ErrorKind::Foreign, OP, "a run to its end", "an exception of a signal")
            })
        })
    })
}

fn place(item: &Bound<'_, PyTuple>) -> PyResult<Place> {
    let kind: String = item.get_item(0)?.extract()?;
    let shaped = || -> PyResult<_> {
        let meta = convert::meta(OP, &item.get_slice(1, 3).into_any())?;
        meta.ok_or_else(|| raise(Error::usage(OP, "a dtype and a shape", "None")))
    };
    match kind.as_str() {
        "input" => Ok(Place::Input(shaped()?)),
        "output" => Ok(Place::Output(shaped()?)),
        "arena" => Ok(Place::Arena(shaped()?, item.get_item(3)?.extract()?)),
        "constant" => {
            let array = item.get_item(1)?;
            Ok(Place::Constant(array.cast::<PyArray>()?.get().0.clone()))
        }
        "view" => {
            let shape: Vec<usize> = item.get_item(2)?.extract()?;
            let strides: Vec<isize> = item.get_item(3)?.extract()?;
            Ok(Place::View {
                base: item.get_item(1)?.extract()?,
                shape: Dims::from_slice(&shape),
                strides: Strides::from_slice(&strides),
                offset: item.get_item(4)?.extract()?,
            })
        }
        other => Err(raise(Error::usage(
            OP,
            "a value of kind input, constant, arena, output or view",
            format!("'{other}'"),
        ))),
    }
}

fn arrays(inputs: &[Bound<'_, PyArray>]) -> Vec<Array> {
    inputs.iter().map(|a| a.get().0.clone()).collect()
}

fn listed<'py>(py: Python<'py>, outputs: Vec<Array>) -> PyResult<Bound<'py, PyList>> {
    let items =
        outputs.into_iter().map(|a| Bound::new(py, PyArray(a))).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, items)
}

#[pymethods]
impl PyProgram {
    #[new]
    fn new(
        values: Vec<Bound<'_, PyTuple>>,
        nodes: Vec<(Bound<'_, PyKernel>, Vec<i64>, Vec<usize>)>,
        outputs: Vec<usize>,
        arena_bytes: usize,
    ) -> PyResult<Self> {
        let values = values.iter().map(place).collect::<PyResult<Vec<_>>>()?;
        let calls = nodes
            .into_iter()
            .map(|(kernel, inputs, outputs)| Call {
                kernel: kernel.get().0.clone(),
                inputs: inputs.into_iter().map(|i| usize::try_from(i).ok()).collect(),
                outputs,
            })
            .collect();
        Ok(Self(Program::new(values, calls, outputs, arena_bytes).map_err(raise)?))
    }

    /// Bytes of working memory that one run uses.
    #[getter]
    fn arena_bytes(&self) -> usize {
        self.0.arena_bytes()
    }

    /// Number of kernel calls.
    fn __len__(&self) -> usize {
        self.0.calls().len()
    }

    /// Runs the plan on arrays of the planned dtypes and shapes; returns fresh arrays.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyArray>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let inputs = arrays(&inputs);
        let outputs = run_detached(py, &self.0, &inputs).map_err(raise)?;
        listed(py, outputs)
    }

    /// Runs the plan on the entries of `given` by input name and returns NumPy arrays.
    ///
    /// Takes NumPy arrays and Arrays of just the planned dtypes and shapes, contiguous, under just
    /// these names; returns None, and computes nothing, for anything else.
    fn run_named<'py>(
        &self,
        py: Python<'py>,
        given: &Bound<'py, PyDict>,
        names: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(entries) = numpy::entries(given, names)? else { return Ok(None) };
        let mut inputs = Vec::with_capacity(entries.len());
        for (entry, meta) in entries.iter().zip(self.0.input_metas()) {
            let array = if let Ok(array) = entry.cast::<PyArray>() {
                array.get().0.clone()
            } else if numpy::is_ndarray(entry)?
                && let Some(array) = buffer::from_exporter(entry, None)?
            {
                array
            } else {
                return Ok(None);
            };
            if !array.is_contiguous()
                || array.dtype() != meta.dtype
                || array.shape() != meta.shape.as_slice()
            {
                return Ok(None);
            }
            inputs.push(array);
        }
        if inputs.len() != self.0.input_count() {
            return Ok(None);
        }
        let outputs = if self.0.is_short() {
            self.0.run(&inputs)
        } else {
            run_detached(py, &self.0, &inputs)
        };
        let outputs = outputs
            .map_err(raise)?
            .into_iter()
            .map(|a| numpy::to_numpy(&Bound::new(py, PyArray(a))?))
            .collect::<PyResult<Vec<_>>>()?;
        Ok(Some(PyList::new(py, outputs)?))
    }

    /// Gives back the working memory that no run uses; the next run takes some anew.
    fn release(&self) {
        self.0.release();
    }

    /// As `run`, with the nanoseconds that each call took.
    fn run_profiled<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyArray>>,
    ) -> PyResult<(Bound<'py, PyList>, Vec<u64>)> {
        let inputs = arrays(&inputs);
        let (outputs, times) = py.detach(|| self.0.run_profiled(&inputs)).map_err(raise)?;
        Ok((listed(py, outputs)?, times))
    }
}
