//! Hostile callers of the kernels: whatever they ask for is a result or an error, never a panic, and
//! never an access outside of memory (the sanitizer watches).

pub mod arguments;
mod limit;
pub mod numbers;
pub mod programs;
pub mod views;

pub use limit::limited;
