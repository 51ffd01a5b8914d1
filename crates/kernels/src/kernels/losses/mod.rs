//! Losses whose gradient is not a chain of elementary ones.

pub(super) mod ctc;
mod ctc_lattice;
pub(super) mod nll;
