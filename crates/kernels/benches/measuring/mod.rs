//! Inputs and times of the benchmarks.

use onemodel_kernels::array::Array;
use std::time::Instant;

/// Numbers from -1 to below 1.
pub fn random(shape: &[usize], seed: u32) -> Array {
    let mut state = seed;
    let data: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Array::from_slice(shape, &data).expect("small enough")
}

/// Seconds of one of `repeat` calls.
pub fn seconds(repeat: usize, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..repeat {
        f();
    }
    start.elapsed().as_secs_f64() / repeat as f64
}

/// The number of threads that the command line asks for, else 1.
pub fn threads() -> usize {
    std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1)
}
