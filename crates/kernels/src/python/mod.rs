//! The Python binding: the only folder that names pyo3.

mod array;
mod buffer;
mod convert;
mod dlpack;
mod errors;
mod foreign;
mod kernel;
mod numpy;
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

/// The instruction set in use.
#[pyfunction]
fn isa() -> &'static str {
    crate::simd::isa().name()
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<array::PyArray>()?;
    m.add_class::<kernel::PyKernel>()?;
    m.add_class::<program::PyProgram>()?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(isa, m)?)?;
    m.add_function(wrap_pyfunction!(foreign::register_kernel, m)?)?;
    m.add("COMPILED_ABI", crate::compiled::ABI)?;
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
