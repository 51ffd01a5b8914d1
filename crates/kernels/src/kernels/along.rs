//! Operators that map rows along one axis to rows.

use crate::array::{Array, contiguous_strides};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernels::blocks::{Slot, Source, computed};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::fold::widened;
use crate::kernels::gemm::matrix::Shared;
use crate::parallel;
use crate::scratch::Scratch;
use std::borrow::Cow;
use std::sync::Mutex;

/// Calls `compute` with inputs of f32 or f64 and outputs of that dtype; half-precision operands are
/// widened before and rounded after.
pub(crate) fn in_full_precision(
    inputs: &[&Array],
    outputs: &[Array],
    compute: impl FnOnce(&[Cow<'_, Array>], &[Array]) -> Result<()>,
) -> Result<()> {
    let wide: Vec<Cow<'_, Array>> = inputs.iter().map(|x| widened(x)).collect::<Result<_>>()?;
    if outputs.iter().all(|o| computed(o.dtype()) == o.dtype()) {
        return compute(&wide, outputs);
    }
    let results: Vec<Array> = outputs
        .iter()
        .map(|o| {
            if computed(o.dtype()) == o.dtype() {
                Ok(o.clone())
            } else {
                Array::uninit("cast", DType::F32, o.shape())
            }
        })
        .collect::<Result<_>>()?;
    compute(&wide, &results)?;
    for (from, to) in results.iter().zip(outputs) {
        if computed(to.dtype()) != to.dtype() {
            let to = std::slice::from_ref(to);
            elementwise::map(&[from], to, CHEAP, Halves::Widened, &|s: &Span<'_>| {
                s.output::<f32>(0).copy_from_slice(s.input(0));
            });
        }
    }
    Ok(())
}

/// Calls `body(input rows, output rows, length, count)` for all rows along `axis`, `count` of them that
/// follow each other at a time. The elements of a row are neighbours; an input may be the output.
pub(crate) fn map_rows<T: Element, const N: usize>(
    operator: &str,
    inputs: [&Array; N],
    out: &Array,
    axis: usize,
    body: &(dyn Fn([*const T; N], *mut T, usize, usize) + Sync),
) -> Result<()> {
    let length = out.shape()[axis];
    if out.size() == 0 {
        return Ok(());
    }
    let rows = out.size() / length;
    let stride = contiguous_strides(out.shape())[axis] as usize;
    let grain = (CHEAP / 4 / length).max(1);
    let target = Shared::new(out.as_mut_ptr::<T>());
    if stride == 1 && inputs.iter().all(|x| x.is_contiguous()) {
        let sources = Shared::new(inputs.map(|x| x.as_ptr::<T>()));
        parallel::for_ranges(rows, grain, |range| {
            let at = range.start * length;
            // SAFETY: the rows lie inside the contiguous arrays.
            unsafe {
                let from = sources.get().map(|p| p.add(at));
                body(from, target.get().add(at), length, range.len());
            }
        });
        return Ok(());
    }
    let mut order: Vec<i64> = (0..out.rank() as i64).filter(|&a| a != axis as i64).collect();
    order.push(axis as i64);
    let mut views = Vec::with_capacity(N);
    for x in inputs {
        views.push(x.permute(&order)?);
    }
    let failure = Mutex::new(None);
    parallel::for_ranges(rows, grain, |range| {
        let bytes = (N + 1) * length * size_of::<T>();
        let mut scratch = match Scratch::new(operator, bytes) {
            Ok(scratch) => scratch,
            Err(error) => {
                *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                return;
            }
        };
        let buffer = scratch.as_mut::<T>().as_mut_ptr();
        let sources: Vec<Source<'_>> = views.iter().map(Source::rows).collect();
        let mut slot = Slot::new();
        for row in range {
            let (mut from, to) = ([std::ptr::null(); N], buffer);
            for (k, source) in sources.iter().enumerate() {
                // SAFETY: the buffer holds N + 1 rows.
                let mut at = unsafe { buffer.add((k + 1) * length) };
                from[k] = at.cast_const();
                source.pieces::<T>(row * length, length, &mut slot, |x| {
                    // SAFETY: the pieces of a row are `length` elements together.
                    unsafe {
                        std::ptr::copy_nonoverlapping(x.as_ptr(), at, x.len());
                        at = at.add(x.len());
                    }
                });
            }
            body(from, to, length, 1);
            let start = row / stride * stride * length + row % stride;
            for i in 0..length {
                // SAFETY: the row's elements inside the contiguous output.
                unsafe { *target.get().add(start + i * stride) = *to.add(i) };
            }
        }
    });
    failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
}
