//! The Python binding: the only folder that names pyo3.

mod array;
mod buffer;
mod convert;
mod dlpack;
mod errors;
mod foreign;
mod kernel;
mod numpy;
mod outline;
mod outline_entries;
mod program;

use pyo3::prelude::*;

/// Threads used for one kernel.
#[pyfunction]
fn get_num_threads() -> usize {
    crate::parallel::num_threads()
}

/// Sets the number of threads for kernels; at least 1.
#[pyfunction]
fn set_num_threads(n: usize) -> PyResult<()> {
    if n == 0 {
        return Err(errors::raise(crate::error::Error::attribute(
            "set_num_threads",
            "at least 1",
            "0",
        )));
    }
    crate::parallel::set_num_threads(n);
    Ok(())
}

/// Bytes of freed blocks that are kept for new arrays: those of all threads together, and those that
/// the calling thread keeps for itself.
#[pyfunction]
fn cached_bytes() -> usize {
    crate::array::cached_bytes()
}

/// Gives the freed blocks that are kept for all threads and for the calling one back to the system.
#[pyfunction]
fn release_cached() {
    crate::array::release_cached();
}

/// The instruction set in use.
#[pyfunction]
fn isa() -> &'static str {
    crate::simd::isa().name()
}

/// The names of the instruction sets that this CPU has, the best one last.
#[pyfunction]
fn available_isas() -> Vec<&'static str> {
    crate::simd::available().into_iter().map(crate::simd::Isa::name).collect()
}

/// Computes every case of a table of hashes (the committed one unless given): (case, expected hash,
/// found hash or the text of an error) of each.
#[pyfunction]
#[pyo3(signature = (table=None))]
fn selfcheck(py: Python<'_>, table: Option<String>) -> PyResult<Vec<(String, String, String)>> {
    let checked =
        py.detach(|| crate::selfcheck::check(table.as_deref().unwrap_or(crate::selfcheck::TABLE)));
    let outcomes = checked.map_err(errors::raise)?;
    Ok(outcomes.into_iter().map(|o| (o.case, o.expected, o.found)).collect())
}

/// A table with the hashes that this machine computes.
#[pyfunction]
fn regenerated_table(py: Python<'_>, table: String) -> PyResult<String> {
    py.detach(|| crate::selfcheck::regenerated(&table)).map_err(errors::raise)
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // Before any thread can be in the middle of what a fork must wait for.
    crate::array::cache::watch_forks();
    crate::parallel::prepare();
    m.add_class::<array::PyArray>()?;
    m.add_class::<kernel::PyKernel>()?;
    m.add_class::<program::PyProgram>()?;
    m.add_class::<outline::PyOutline>()?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(cached_bytes, m)?)?;
    m.add_function(wrap_pyfunction!(release_cached, m)?)?;
    m.add_function(wrap_pyfunction!(isa, m)?)?;
    m.add_function(wrap_pyfunction!(foreign::register_kernel, m)?)?;
    m.add("COMPILED_ABI", crate::compiled::ABI)?;
    m.add_function(wrap_pyfunction!(available_isas, m)?)?;
    m.add_function(wrap_pyfunction!(selfcheck, m)?)?;
    m.add_function(wrap_pyfunction!(regenerated_table, m)?)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
