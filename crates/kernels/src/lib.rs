//! Deterministic tensor kernels.
//!
//! # The arithmetic contract
//!
//! Every output element is defined by a formula with a fixed order of IEEE-754 operations. Its bits
//! depend on the inputs alone: not on the machine, the instruction set, the thread count, the tile
//! sizes, the position in the batch, or the layout.
//!
//! 1. Products are accumulated with fused multiply-add (`fma(a, b, acc)`, one rounding), always.
//!    Nothing else is fused.
//! 2. A matrix product has one accumulator per output element, started from +0.0 (or from C or the
//!    bias), with k ascending. Vectors run across columns, never across k.
//! 3. A convolution is the same chain over (channel in group, kernel row, kernel column); padded
//!    taps are included as `fma(+0, w, acc)`.
//! 4. Row reductions use 16 logical lanes, lane l taking elements l, l+16, …, then a fixed tree.
//! 5. Elementary functions are our own, built from IEEE add, multiply, fma and integer operations.
//! 6. Pools, maximum, minimum, relu and clip propagate NaN. Denormals are kept.
//! 7. Work is split over outputs by a function of shape alone; a reduction is serial in its part.
//! 8. Integers are exact and wrap.

pub mod array;
pub mod attributes;
mod bound;
pub mod compiled;
pub mod dtype;
pub mod error;
pub mod kernel;
mod kernels;
pub mod math;
mod once;
pub mod parallel;
pub mod planning;
pub mod program;
pub mod registry;
pub mod scratch;
pub mod selfcheck;
pub mod simd;

#[cfg(feature = "python")]
mod python;
