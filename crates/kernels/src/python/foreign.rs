//! Kernels registered from outside the crate: Python infers their types, and a Python function or a
//! compiled one computes them.

use crate::array::{Array, Meta};
use crate::attributes::Attribute;
use crate::compiled::{Function, Values};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Kernel, Metas};
use crate::kernels::movement::copy_into;
use crate::once::SetOnce;
use crate::python::array::PyArray;
use crate::python::convert;
use crate::python::errors::{raise, stash};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

enum Compute {
    Python(Py<PyAny>),
    Compiled(Function),
}

/// A row of the table.
struct Entry {
    name: &'static str,
    outputs: usize,
    infer: Py<PyAny>,
    compute: Compute,
}

type Table = HashMap<&'static str, Arc<Entry>>;

/// The rows, held by one thread at a time that has the interpreter too and keeps it: then no thread
/// that forks leaves them locked in the child.
fn table() -> MutexGuard<'static, Table> {
    static TABLE: SetOnce<Mutex<Table>> = SetOnce::new();
    TABLE.get_or_make(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(name: &str) -> Option<Arc<Entry>> {
    table().get(name).cloned()
}

/// Adds a row unless the name has one.
fn register(name: &str, entry: impl FnOnce(&'static str) -> Entry) -> bool {
    let mut table = table();
    if table.contains_key(name) {
        return false;
    }
    // Kernels name themselves by a static text; a name is leaked once, when it is registered.
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    table.insert(name, Arc::new(entry(name)));
    true
}

/// The names of all registered kernels.
pub fn names() -> Vec<&'static str> {
    table().keys().copied().collect()
}

/// Registers a kernel; afterwards `Kernel(name, **attributes)` prepares it, and programs run it.
///
/// `name` is "domain::Name". `infer(inputs, attributes)` gets (dtype, shape) or None for each input
/// and returns one (dtype, shape) for each of the `outputs` outputs. `compute` is a function
/// `compute(inputs, attributes)` that gets Arrays (or None) and returns a list of `outputs` Arrays
/// of the inferred types, or the address of a compiled function (see the crate's `compiled`).
///
/// Raises UsageError for a name without a domain and for one that is registered already.
#[pyfunction]
pub fn register_kernel(
    name: &str,
    outputs: usize,
    infer: Py<PyAny>,
    compute: &Bound<'_, PyAny>,
) -> PyResult<()> {
    const OP: &str = "register_kernel";
    if name.split("::").filter(|part| !part.is_empty()).count() != 2 {
        return Err(raise(Error::usage(OP, "a name 'domain::Name'", format!("'{name}'"))));
    }
    let compute = if compute.is_callable() {
        Compute::Python(compute.clone().unbind())
    } else {
        let address: usize = compute.extract()?;
        if address == 0 {
            return Err(raise(Error::usage(OP, "the address of a function", "0")));
        }
        // SAFETY: the caller promises that a Function is at this address and stays there.
        Compute::Compiled(unsafe { std::mem::transmute::<usize, Function>(address) })
    };
    if !register(name, |name| Entry { name, outputs, infer, compute }) {
        let taken = Error::usage(OP, "a name that is not registered yet", format!("'{name}'"));
        return Err(raise(taken));
    }
    Ok(())
}

/// A registered kernel with its attributes; `None` when nobody registered the name.
pub fn build(
    py: Python<'_>,
    name: &str,
    attributes: Option<&Bound<'_, PyDict>>,
    values: BTreeMap<String, Attribute>,
) -> PyResult<Option<Arc<dyn Kernel>>> {
    let Some(entry) = find(name) else { return Ok(None) };
    let given = PyDict::new(py);
    for (key, value) in attributes.into_iter().flatten() {
        if !value.is_none() {
            given.set_item(key, value)?;
        }
    }
    let values = match entry.compute {
        Compute::Compiled(_) => Some(Values::new(entry.name, values).map_err(raise)?),
        Compute::Python(_) => None,
    };
    Ok(Some(Arc::new(Foreign { entry, attributes: given.unbind(), values })))
}

struct Foreign {
    entry: Arc<Entry>,
    attributes: Py<PyDict>,
    values: Option<Values>,
}

impl Foreign {
    /// The exception is kept for the caller in Python; the error stands for it on the way there.
    fn failed(&self, py: Python<'_>, error: PyErr) -> Error {
        let name = self.entry.name;
        let text = error.to_string();
        // The note is for the reader; an exception class that refuses notes is raised all the same.
        let _ = error.value(py).call_method1("add_note", (format!("in the kernel {name}"),));
        stash(error);
        Error::new(ErrorKind::Foreign, name, "a call that succeeds", text)
    }

    fn inferred(&self, py: Python<'_>, inputs: &[Option<&Meta>]) -> PyResult<Metas> {
        let types = PyList::empty(py);
        for meta in inputs {
            match meta {
                Some(meta) => types.append(convert::describe(py, meta)?)?,
                None => types.append(py.None())?,
            }
        }
        let found = self.entry.infer.bind(py).call1((types, self.attributes.bind(py)))?;
        let mut metas = Metas::new();
        for item in found.try_iter()? {
            metas.extend(convert::meta(self.entry.name, &item?)?);
        }
        self.counted(metas.len())?;
        Ok(metas)
    }

    fn counted(&self, count: usize) -> PyResult<()> {
        let Entry { name, outputs, .. } = *self.entry;
        if count == outputs {
            return Ok(());
        }
        Err(raise(Error::usage(name, format!("{outputs} outputs"), format!("{count}"))))
    }

    fn computed(
        &self,
        py: Python<'_>,
        function: &Py<PyAny>,
        inputs: &[Option<&Array>],
        outputs: &[Array],
    ) -> PyResult<()> {
        let name = self.entry.name;
        let given = PyList::empty(py);
        for input in inputs {
            match input {
                Some(array) => given.append(Bound::new(py, PyArray(Array::clone(array)))?)?,
                None => given.append(py.None())?,
            }
        }
        let made: Vec<Bound<'_, PyArray>> =
            function.bind(py).call1((given, self.attributes.bind(py)))?.extract()?;
        self.counted(made.len())?;
        for (position, (array, out)) in made.iter().zip(outputs).enumerate() {
            let array = &array.get().0;
            if array.dtype() != out.dtype() || array.shape() != out.shape() {
                return Err(raise(Error::shape(
                    name,
                    format!("output {position} to be {} {:?}", out.dtype().name(), out.shape()),
                    format!("{} {:?}", array.dtype().name(), array.shape()),
                )));
            }
            copy_into(array, out);
        }
        Ok(())
    }
}

impl Kernel for Foreign {
    fn name(&self) -> &'static str {
        self.entry.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Python::attach(|py| self.inferred(py, inputs).map_err(|error| self.failed(py, error)))
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match (&self.entry.compute, &self.values) {
            (Compute::Compiled(function), Some(values)) => {
                // SAFETY: whoever registered the address promised that this is a Function.
                unsafe { values.call(self.entry.name, *function, inputs, outputs) }
            }
            (Compute::Python(function), _) => Python::attach(|py| {
                self.computed(py, function, inputs, outputs).map_err(|error| self.failed(py, error))
            }),
            (Compute::Compiled(_), None) => {
                Err(Error::usage(self.entry.name, "a prepared kernel", "one without attributes"))
            }
        }
    }

    fn single_output(&self) -> bool {
        self.entry.outputs == 1
    }
}
