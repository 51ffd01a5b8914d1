//! Walking elementwise operands: the body of an operator sees plain slices, whatever the operands'
//! strides, broadcasting and dtypes are.
//!
//! Contiguous operands are handed over where they lie. Others are gathered block by block, and
//! half-precision ones are widened to f32 (and the result rounded once), so every body is written for
//! slices of f32, f64, an integer or Bool. Each output element depends on the elements at its own
//! place alone, so neither blocks nor threads can change a bit.

use crate::array::Array;
use crate::dtype::{DType, Element};
use crate::kernels::blocks::{BLOCK, Slot, Source, computed, narrow};
use crate::parallel;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements of a part for operators that cost about a memory access, and for costlier ones.
pub(crate) const CHEAP: usize = 1 << 15;
pub(crate) const COSTLY: usize = 1 << 13;

/// The most inputs and outputs together.
const OPERANDS: usize = 6;

/// One block of every operand.
pub(crate) struct Span<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
    pub len: usize,
}

impl Span<'_> {
    /// The block of input `k`; `T` is its dtype's type, or f32 for a widened half.
    pub(crate) fn input<T: Element>(&self, k: usize) -> &[T] {
        // SAFETY: `map` hands over `len` elements of this type.
        unsafe { std::slice::from_raw_parts(self.inputs[k].cast(), self.len) }
    }

    /// The block of output `k`. Call it once for each output of a span.
    #[allow(clippy::mut_from_ref)]
    pub(crate) fn output<T: Element>(&self, k: usize) -> &mut [T] {
        // SAFETY: as above; blocks of outputs overlap nothing.
        unsafe { std::slice::from_raw_parts_mut(self.outputs[k].cast(), self.len) }
    }
}

/// Whether half-precision operands are widened to f32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halves {
    Widened,
    Raw,
}

/// Calls `body` on spans that cover the outputs, which are contiguous and of one shape; the inputs
/// broadcast to it. An input may be the same memory as an output.
pub(crate) fn map(
    inputs: &[&Array],
    outputs: &[Array],
    grain: usize,
    halves: Halves,
    body: &(dyn Fn(&Span<'_>) + Sync),
) {
    let size = outputs[0].size();
    if size == 0 {
        return;
    }
    let widen = |dtype: DType| halves == Halves::Widened && computed(dtype) != dtype;
    let plain = outputs.iter().all(|o| !widen(o.dtype()))
        && inputs.iter().all(|a| {
            a.size() == size
                && a.is_contiguous()
                && !widen(a.dtype())
                && outputs.iter().all(|o| o.as_bytes_ptr() != a.as_bytes_ptr())
        });
    if plain {
        let span = |range: Range<usize>| {
            let ins: SmallVec<[*const u8; OPERANDS]> =
                inputs.iter().map(|a| address(a, range.start).cast_const()).collect();
            let outs: SmallVec<[*mut u8; OPERANDS]> =
                outputs.iter().map(|a| address(a, range.start)).collect();
            body(&Span { inputs: &ins, outputs: &outs, len: range.len() });
        };
        split(size, grain, span);
        return;
    }
    assert!(inputs.len() + outputs.len() <= OPERANDS, "more operands than slots");
    let shape = outputs[0].shape();
    let sources: SmallVec<[Source<'_>; OPERANDS]> =
        inputs.iter().map(|a| Source::new(a, shape, widen(a.dtype()))).collect();
    let targets: SmallVec<[Target<'_>; OPERANDS]> = outputs
        .iter()
        .map(|out| Target {
            out,
            widened: widen(out.dtype()),
            staged: inputs.iter().any(|a| a.as_bytes_ptr() == out.as_bytes_ptr()),
        })
        .collect();
    split(size, grain, |range| blocks(&sources, &targets, range, body));
}

/// Splits `0..size` into parts of about `grain` elements by size alone.
pub(crate) fn split(size: usize, grain: usize, task: impl Fn(Range<usize>) + Sync) {
    if size <= grain {
        task(0..size);
    } else {
        let parts = size.div_ceil(grain);
        parallel::for_ranges(size, size.div_ceil(parts).next_multiple_of(64), task);
    }
}

fn address(a: &Array, element: usize) -> *mut u8 {
    // SAFETY: `element` lies inside the contiguous array.
    unsafe { a.as_bytes_ptr().cast_mut().add(element * a.dtype().size()) }
}

struct Target<'a> {
    out: &'a Array,
    widened: bool,
    /// Whether an input is the same memory, so that the block is computed aside.
    staged: bool,
}

#[inline(never)]
fn blocks(
    sources: &[Source<'_>],
    targets: &[Target<'_>],
    range: Range<usize>,
    body: &(dyn Fn(&Span<'_>) + Sync),
) {
    let mut slots = [const { Slot::new() }; OPERANDS];
    let mut filled = [(usize::MAX, 0); OPERANDS];
    let mut ins = [std::ptr::null(); OPERANDS];
    let mut outs = [std::ptr::null_mut(); OPERANDS];
    let n = sources.len();
    let mut at = range.start;
    while at < range.end {
        let mut len = (range.end - at).min(BLOCK);
        for source in sources {
            len = len.min(source.limit(at));
        }
        for (k, source) in sources.iter().enumerate() {
            ins[k] = source.block(at, len, &mut slots[k], &mut filled[k]);
        }
        for (k, target) in targets.iter().enumerate() {
            outs[k] = if target.widened || target.staged {
                slots[n + k].computed.as_mut_ptr().cast()
            } else {
                address(target.out, at)
            };
        }
        body(&Span { inputs: &ins[..n], outputs: &outs[..targets.len()], len });
        for (k, target) in targets.iter().enumerate() {
            let to = address(target.out, at);
            if target.widened {
                narrow(outs[k].cast_const().cast(), target.out.dtype(), to, len);
            } else if target.staged {
                // SAFETY: the slot and the array are different memory.
                unsafe {
                    std::ptr::copy_nonoverlapping(outs[k], to, len * target.out.dtype().size());
                }
            }
        }
        at += len;
    }
}
