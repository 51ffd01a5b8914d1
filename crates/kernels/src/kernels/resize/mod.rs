//! Resize: resampling by nearest, linear or cubic weights, one axis after the other.

mod coordinates;
mod kernel;
mod pass;

pub(crate) use kernel::KERNELS;
