//! Convolutions of 1 to 3 spatial axes and their gradients.
//!
//! f16 and bf16 are widened, accumulated in f32 and rounded once at the end.

use crate::kernel::Entry;

mod by_inputs;
mod channels;
mod depthwise;
mod engine;
mod few;
mod forward;
pub(crate) mod geometry;
mod grad_weight;
mod outer;
mod outputs;
mod runs;
mod source;
#[cfg(test)]
mod tests;
mod weights;
mod winograd;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Conv", build: forward::build },
    Entry { name: "ConvTranspose", build: forward::build_transpose },
    Entry { name: "ConvGradInput", build: forward::build_grad_input },
    Entry { name: "ConvGradWeight", build: grad_weight::build },
];
