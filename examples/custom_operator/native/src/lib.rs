//! The Huber function: x²/2 where |x| ≤ delta, delta·(|x| - delta/2) beyond.
//!
//! Only IEEE multiplications and additions in a fixed order, so every machine gives the same bits.

mod abi;

use abi::{Call, FLOAT, Tensor};
use std::slice;

/// The version of the layout in `abi.rs`.
#[unsafe(no_mangle)]
pub extern "C" fn onemodel_kernel_abi() -> u32 {
    1
}

macro_rules! fill {
    ($x:expr, $y:expr, $float:ty, $delta:expr) => {{
        let (x, y): (&Tensor, &Tensor) = ($x, $y);
        let delta = $delta as $float;
        // SAFETY: both are contiguous, of the same size, of this type, and do not overlap.
        let (x, y) = unsafe {
            (
                slice::from_raw_parts(x.data.cast::<$float>(), x.size()),
                slice::from_raw_parts_mut(y.data.cast::<$float>(), y.size()),
            )
        };
        for (x, y) in x.iter().zip(y) {
            let size = x.abs();
            *y = if size <= delta { 0.5 * x * x } else { delta * (size - 0.5 * delta) };
        }
    }};
}

/// `Huber(x; delta) -> y` on float32 and float64.
///
/// # Safety
/// `call` is a call of the layout in `abi.rs`, with one input and one output of its type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn huber(call: *const Call) -> i32 {
    // SAFETY: the caller's word.
    let call = unsafe { &*call };
    // SAFETY: the operator's facts promise one input, one output and the attribute.
    let (x, y, delta) = unsafe { (call.input(0), call.output(0), call.float(c"delta")) };
    let Some(delta) = delta.filter(|delta| *delta > 0.0) else {
        // SAFETY: the call is running.
        return unsafe { call.refuse("delta must be above 0") };
    };
    match (x.code, x.bits) {
        (FLOAT, 32) => fill!(x, y, f32, delta),
        (FLOAT, 64) => fill!(x, y, f64, delta),
        // SAFETY: the call is running.
        _ => return unsafe { call.refuse("x must be float32 or float64") },
    }
    0
}
