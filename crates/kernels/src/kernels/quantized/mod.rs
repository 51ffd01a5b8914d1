//! Products of 8-bit integers, and the LSTM whose weights are stored as such.
//!
//! Sums of integers are exact (and wrap at 32 bits), so any order of them gives the same bits. What
//! follows a sum, one conversion to f32 and the products with scales, has one order, stated with
//! each operator.

mod lstm;
mod matmul;
mod product;
mod range;
mod rational;

use crate::kernel::Entry;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "MatMulInteger", build: matmul::build },
    Entry { name: "DynamicQuantizeLSTM", build: lstm::build },
];
