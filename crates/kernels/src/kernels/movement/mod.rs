//! Operators that move elements and compute nothing: every dtype, every bit as it came.

pub(super) mod concat;
mod copy;
pub(super) mod depth_space;
pub(super) mod expand;
pub(super) mod pad;
pub(super) mod range;
pub(super) mod slice;
pub(super) mod transpose;
pub(super) mod trilu;

pub(crate) use copy::copy_into;
