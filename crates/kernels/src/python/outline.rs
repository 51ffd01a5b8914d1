//! `Outline`: a plan whose shapes are still open.

use crate::array::Meta;
use crate::error::Error;
use crate::planning::Draft;
use crate::python::convert;
use crate::python::errors::raise;
use crate::python::outline_entries::{Entry, entry, reshaped, selected};
use crate::python::program::PyProgram;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

pub(super) const OP: &str = "Outline";

/// A plan whose shapes are still open: `Outline(inputs, entries, results)`.
///
/// A value is known by its index: the inputs come first, then what each entry makes, in order.
/// Entries are ("constant", Array), ("view", base, shape, offset in elements), ("reshape", base,
/// extents), ("transpose", base, perm, Kernel, label), ("select", base, axis, index, indices, Kernel,
/// label), ("call", Kernel, input indices with -1 for absent, number of outputs, label) and ("steps", name, source indices, number of values), which a
/// function fills in for the shapes at hand. An extent is (-1, n) for n, (i, j) for the product of
/// the base's extents from axis i to before j, (-2, 0) for what is left.
#[pyclass(name = "Outline", module = "onemodel_kernels", frozen)]
pub struct PyOutline {
    inputs: usize,
    entries: Vec<Entry>,
    results: Vec<usize>,
}

/// The values of one plan in the making: the index in the draft of each value of the outline.
struct Filling<'a, 'py> {
    draft: Draft,
    steps: Option<&'a Bound<'py, PyAny>>,
    py: Python<'py>,
}

impl Filling<'_, '_> {
    /// Adds entries whose values are numbered from the end of `known` on.
    fn add(&mut self, entries: &[Entry], known: &mut Vec<usize>) -> PyResult<()> {
        for entry in entries {
            match entry {
                Entry::Constant(array) => known.push(self.draft.constant(array.clone())),
                Entry::View { base, shape, offset } => {
                    let base = at(known, *base)?;
                    known.push(self.draft.view(base, shape, *offset).map_err(raise)?);
                }
                Entry::Reshape { base, extents } => {
                    let base = at(known, *base)?;
                    let shape = &self.draft.meta(base).map_err(raise)?.shape;
                    let shape = reshaped(shape, extents).ok_or_else(|| {
                        raise(Error::shape(
                            OP,
                            "extents that fit the elements",
                            format!("{shape:?}"),
                        ))
                    })?;
                    known.push(self.draft.view(base, &shape, 0).map_err(raise)?);
                }
                Entry::Transpose { base, perm, kernel, label } => {
                    let base = at(known, *base)?;
                    let shape = self.draft.meta(base).map_err(raise)?.shape.clone();
                    let moved = || perm.iter().filter(|&&axis| shape.get(axis) != Some(&1));
                    if perm.len() == shape.len() && moved().is_sorted() {
                        let shown: Vec<usize> =
                            perm.iter().filter_map(|&axis| shape.get(axis).copied()).collect();
                        known.push(self.draft.view(base, &shown, 0).map_err(raise)?);
                    } else {
                        known.extend(self.draft.call(kernel, &[Some(base)], label).map_err(raise)?);
                    }
                }
                Entry::Select { base, axis, at: index, indices, kernel, label } => {
                    let base = at(known, *base)?;
                    let shape = self.draft.meta(base).map_err(raise)?.shape.clone();
                    known.push(match selected(&shape, *axis, *index, indices.shape()) {
                        Some((shape, offset)) => {
                            self.draft.view(base, &shape, offset).map_err(raise)?
                        }
                        None => {
                            let indices = self.draft.constant(indices.clone());
                            let inputs = [Some(base), Some(indices)];
                            self.draft.call(kernel, &inputs, label).map_err(raise)?[0]
                        }
                    });
                }
                Entry::Call { kernel, inputs, count, label } => {
                    let inputs = inputs
                        .iter()
                        .map(|input| input.map(|i| at(known, i)).transpose())
                        .collect::<PyResult<Vec<_>>>()?;
                    let made = self.draft.call(kernel, &inputs, label).map_err(raise)?;
                    if made.len() != *count {
                        let (want, got) = (made.len(), *count);
                        let want = format!("{want} outputs of {}", kernel.name());
                        return Err(raise(Error::usage(OP, want, format!("{got}"))));
                    }
                    known.extend(made);
                }
                Entry::Steps { name, sources, count } => {
                    self.ask(*name, sources, *count, known)?;
                }
            }
        }
        Ok(())
    }

    /// Adds what the function makes of the shapes of the sources.
    fn ask(
        &mut self,
        name: usize,
        sources: &[usize],
        count: usize,
        known: &mut Vec<usize>,
    ) -> PyResult<()> {
        let Some(steps) = self.steps else {
            return Err(raise(Error::usage(OP, "a function that plans the steps", "None")));
        };
        let mut inner = sources.iter().map(|&s| at(known, s)).collect::<PyResult<Vec<_>>>()?;
        let types = inner
            .iter()
            .map(|&i| convert::describe(self.py, self.draft.meta(i).map_err(raise)?))
            .collect::<PyResult<Vec<_>>>()?;
        let answer = steps.call1((name, PyList::new(self.py, types)?))?;
        let (entries, made): (Vec<Bound<'_, PyTuple>>, Vec<usize>) = answer.extract()?;
        let entries = entries.iter().map(entry).collect::<PyResult<Vec<_>>>()?;
        self.add(&entries, &mut inner)?;
        if made.len() != count {
            let (want, got) = (format!("{count} values"), format!("{}", made.len()));
            return Err(raise(Error::usage(OP, want, got)));
        }
        for value in made {
            known.push(at(&inner, value)?);
        }
        Ok(())
    }
}

fn at(known: &[usize], index: usize) -> PyResult<usize> {
    known.get(index).copied().ok_or_else(|| {
        let count = known.len();
        raise(Error::usage(OP, format!("the index of one of {count} values"), format!("{index}")))
    })
}

#[pymethods]
impl PyOutline {
    #[new]
    fn new(inputs: usize, entries: Vec<Bound<'_, PyTuple>>, results: Vec<usize>) -> PyResult<Self> {
        let entries = entries.iter().map(entry).collect::<PyResult<Vec<_>>>()?;
        Ok(Self { inputs, entries, results })
    }

    /// The program for inputs given as (dtype, shape), and the label of each of its calls.
    ///
    /// Calls that no result depends on are left out, elementwise calls are computed with the one
    /// before them, and values share the memory of others that are no longer needed.
    /// `steps(name, types)` answers for an entry of steps: entries whose values are numbered behind
    /// the sources, and the indices of the values that the entry stands for.
    #[pyo3(signature = (inputs, steps=None))]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<Bound<'py, PyAny>>,
        steps: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(PyProgram, Vec<String>)> {
        if inputs.len() != self.inputs {
            let (want, got) = (format!("{} inputs", self.inputs), format!("{}", inputs.len()));
            return Err(raise(Error::usage(OP, want, got)));
        }
        let mut filling = Filling { draft: Draft::new(), steps, py };
        let mut known = Vec::with_capacity(self.inputs + self.entries.len());
        for item in &inputs {
            let meta: Option<Meta> = convert::meta(OP, item)?;
            let meta =
                meta.ok_or_else(|| raise(Error::usage(OP, "a dtype and a shape", "None")))?;
            known.push(filling.draft.input(meta));
        }
        filling.add(&self.entries, &mut known)?;
        let results = self.results.iter().map(|&r| at(&known, r)).collect::<PyResult<Vec<_>>>()?;
        let (program, labels) = filling.draft.finish(&results).map_err(raise)?;
        Ok((PyProgram(program), labels))
    }
}
