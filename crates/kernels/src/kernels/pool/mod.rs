//! Pools of 1 to 3 spatial axes and their gradients.
//!
//! NaN propagates. f16 and bf16 are widened, computed in f32 and rounded once at the end.

use crate::kernel::Entry;

mod average;
mod best;
mod global;
mod inside;
mod max;
mod max_grad;
mod places;
mod planes;
#[cfg(test)]
mod tests;
mod windows;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "MaxPool", build: max::build },
    Entry { name: "MaxPoolGrad", build: max_grad::build },
    Entry { name: "AveragePool", build: average::build },
    Entry { name: "AveragePoolGrad", build: average::build_grad },
    Entry { name: "LpPool", build: average::build_lp },
    Entry { name: "GlobalAveragePool", build: global::build_average },
    Entry { name: "GlobalMaxPool", build: global::build_max },
];
