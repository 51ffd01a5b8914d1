//! Products of f16 and bf16: widened to f32 (exact), computed there, rounded once at the end.

use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use half::{bf16, f16};

/// Whether the dtype has 16 bits and a fraction.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// A contiguous f32 copy of an f16 or bf16 array.
///
/// # Errors
/// `Memory` when there is no room.
pub(crate) fn widened(operator: &str, x: &Array) -> Result<Array> {
    let x = x.to_contiguous()?;
    let out = Array::uninit(operator, DType::F32, x.shape())?;
    // SAFETY: freshly allocated, nobody else holds it.
    let to = unsafe { out.as_mut_slice::<f32>() };
    if x.dtype() == DType::F16 {
        to.iter_mut().zip(x.as_slice::<f16>()).for_each(|(y, x)| *y = x.to_f32());
    } else {
        to.iter_mut().zip(x.as_slice::<bf16>()).for_each(|(y, x)| *y = x.to_f32());
    }
    Ok(out)
}

/// Rounds a contiguous f32 array to the f16 or bf16 elements of `out`.
pub(crate) fn narrow(x: &Array, out: &Array) {
    let from = x.as_slice::<f32>();
    // SAFETY: `out` is an output of the running kernel.
    unsafe {
        if out.dtype() == DType::F16 {
            let to = out.as_mut_slice::<f16>();
            to.iter_mut().zip(from).for_each(|(y, x)| *y = f16::from_f32(*x));
        } else {
            let to = out.as_mut_slice::<bf16>();
            to.iter_mut().zip(from).for_each(|(y, x)| *y = bf16::from_f32(*x));
        }
    }
}

/// Runs an f32 kernel on widened inputs and rounds its only output.
///
/// # Errors
/// As `run`, and `Memory`.
pub(crate) fn through_f32(
    operator: &str,
    inputs: &[Option<&Array>],
    out: &Array,
    run: impl Fn(&[Option<&Array>], &[Array]) -> Result<()>,
) -> Result<()> {
    let wide: Vec<Option<Array>> = inputs
        .iter()
        .map(|x| x.map(|x| widened(operator, x)).transpose())
        .collect::<Result<_>>()?;
    let refs: Vec<Option<&Array>> = wide.iter().map(Option::as_ref).collect();
    let result = [Array::uninit(operator, DType::F32, out.shape())?];
    run(&refs, &result)?;
    narrow(&result[0], out);
    Ok(())
}
