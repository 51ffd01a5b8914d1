//! Random numbers from a counter-based generator: element i is a function of the seed, the counter
//! and i alone, so it is the same on every machine and for every number of threads.

mod draws;
pub(super) mod integers;
pub(super) mod normal;
mod philox;
pub(super) mod uniform;
