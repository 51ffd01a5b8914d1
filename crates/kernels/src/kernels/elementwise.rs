//! Walking elementwise operands: the body of an operator sees plain slices, whatever the operands'
//! strides, broadcasting and dtypes are.
//!
//! Contiguous operands are handed over where they lie. Others are gathered block by block, and
//! half-precision ones are widened to f32 (and the result rounded once), so every body is written for
//! slices of f32, f64, an integer or Bool. Each output element depends on the elements at its own
//! place alone, so neither blocks nor threads can change a bit.

use crate::array::{Array, StridedLoop, broadcast_strides};
use crate::dtype::{DType, Element};
use crate::{for_size, parallel};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of a part for operators that cost about a memory access, and for costlier ones.
pub(crate) const CHEAP: usize = 1 << 15;
pub(crate) const COSTLY: usize = 1 << 13;

/// Elements of a gathered block.
const BLOCK: usize = 1024;
/// The most inputs and outputs together.
const OPERANDS: usize = 6;
/// Runs at least this long are not cut by blocks, so that they need no gathering.
const LONG_RUN: usize = 64;

#[repr(C, align(64))]
struct Slot {
    /// A block in the type that bodies compute with.
    computed: [MaybeUninit<u8>; BLOCK * 8],
    /// A gathered block of half-precision elements.
    halves: [MaybeUninit<u16>; BLOCK],
}

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

/// The dtype that bodies compute with.
pub(crate) fn computed(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
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

struct Source<'a> {
    array: &'a Array,
    /// `None` when the elements lie in the outputs' order.
    walk: Option<StridedLoop<1>>,
    /// Whether every run of the walk is the same one and fits a slot twice: then a slot is filled
    /// once with repetitions.
    periodic: bool,
    widened: bool,
}

// SAFETY: the raw pointers inside arrays are only read.
unsafe impl Sync for Source<'_> {}

struct Target<'a> {
    out: &'a Array,
    widened: bool,
    /// Whether an input is the same memory, so that the block is computed aside.
    staged: bool,
}

impl<'a> Source<'a> {
    fn new(array: &'a Array, shape: &[usize], widened: bool) -> Self {
        let walk = if array.shape() == shape && array.is_contiguous() {
            None
        } else {
            Some(StridedLoop::new(shape, [&broadcast_strides(array, shape)]))
        };
        let periodic = walk.as_ref().is_some_and(|w| w.inner <= BLOCK / 2 && w.repeats_one_run());
        Self { array, walk, periodic, widened }
    }

    /// How many elements from `at` on can be had without gathering; none limits a contiguous one.
    fn limit(&self, at: usize) -> usize {
        match &self.walk {
            Some(walk) if self.periodic => BLOCK - at % walk.inner,
            Some(walk) if walk.inner >= LONG_RUN => walk.inner - at % walk.inner,
            _ => usize::MAX,
        }
    }

    /// The address of the block `at..at + len`, gathered into `slot` where needed. `filled` is the
    /// run and length of a repeated element that `slot` already holds.
    fn block(
        &self,
        at: usize,
        len: usize,
        slot: &mut Slot,
        filled: &mut (usize, usize),
    ) -> *const u8 {
        let size = self.array.dtype().size();
        let base = self.array.as_bytes_ptr();
        let Some(walk) = &self.walk else {
            // SAFETY: inside the contiguous array.
            let p = unsafe { base.add(at * size) };
            return if self.widened { self.widen(p, len, slot) } else { p };
        };
        let (run, within) = (at / walk.inner, at % walk.inner);
        if self.periodic {
            if filled.1 == 0 {
                let n = BLOCK.min(walk.inner * walk.runs());
                let to: *mut u8 = self.gathering_place(slot);
                for_size!(self.array.dtype(), T => gather::<T>(walk, base.cast(), 0, n, to.cast()));
                if self.widened {
                    self.widen(to, n, slot);
                }
                *filled = (0, n);
            }
            let size = computed_size(self.array.dtype(), self.widened);
            // SAFETY: `limit` keeps the block inside the filled part of the slot.
            return unsafe { slot.computed.as_ptr().cast::<u8>().add(within * size) };
        }
        let step = walk.inner_strides[0];
        if within + len <= walk.inner {
            if step == 1 {
                let mut p = base;
                walk.for_each(run, run + 1, |[offset]| {
                    // SAFETY: the run lies inside the array.
                    p = unsafe { base.offset((offset + within as isize) * size as isize) };
                });
                return if self.widened { self.widen(p, len, slot) } else { p };
            }
            if step == 0 {
                if filled.0 == run && filled.1 >= len {
                    return slot.computed.as_ptr().cast();
                }
                *filled = (run, len);
            }
        }
        let to = self.gathering_place(slot);
        for_size!(self.array.dtype(), T => gather::<T>(walk, base.cast(), at, len, to.cast()));
        if self.widened { self.widen(to, len, slot) } else { to }
    }

    fn gathering_place(&self, slot: &mut Slot) -> *mut u8 {
        if self.widened {
            slot.halves.as_mut_ptr().cast()
        } else {
            slot.computed.as_mut_ptr().cast()
        }
    }

    fn widen(&self, halves: *const u8, len: usize, slot: &mut Slot) -> *const u8 {
        let to: *mut f32 = slot.computed.as_mut_ptr().cast();
        // SAFETY: `len` halves lie there, the slot holds BLOCK f32, and the two do not overlap.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to, len);
            match self.array.dtype() {
                DType::F16 => {
                    std::slice::from_raw_parts(halves.cast::<f16>(), len).convert_to_f32_slice(to)
                }
                _ => {
                    std::slice::from_raw_parts(halves.cast::<bf16>(), len).convert_to_f32_slice(to)
                }
            }
        }
        to.cast()
    }
}

fn computed_size(dtype: DType, widened: bool) -> usize {
    if widened { DType::F32.size() } else { dtype.size() }
}

/// Copies the elements `at..at + len` of the walk.
fn gather<T: Copy>(walk: &StridedLoop<1>, from: *const T, at: usize, len: usize, to: *mut T) {
    let inner = walk.inner;
    let step = walk.inner_strides[0];
    let mut skip = at % inner;
    let mut done = 0;
    let last = (at + len - 1) / inner;
    walk.for_each(at / inner, last + 1, |[offset]| {
        let n = (inner - skip).min(len - done);
        // SAFETY: the walk stays inside the array and the block inside the slot.
        unsafe {
            let p = from.offset(offset + skip as isize * step);
            let q = to.add(done);
            match step {
                0 => {
                    let x = *p;
                    for i in 0..n {
                        *q.add(i) = x;
                    }
                }
                1 if n >= 16 => std::ptr::copy_nonoverlapping(p, q, n),
                _ => {
                    for i in 0..n {
                        *q.add(i) = *p.offset(i as isize * step);
                    }
                }
            }
        }
        skip = 0;
        done += n;
    });
}

#[inline(never)]
fn blocks(
    sources: &[Source<'_>],
    targets: &[Target<'_>],
    range: Range<usize>,
    body: &(dyn Fn(&Span<'_>) + Sync),
) {
    let mut slots: [MaybeUninit<Slot>; OPERANDS] = [const { MaybeUninit::uninit() }; OPERANDS];
    // SAFETY: a slot consists of uninitialised bytes, which are valid as such.
    let slots: [&mut Slot; OPERANDS] = slots.each_mut().map(|s| unsafe { &mut *s.as_mut_ptr() });
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
            ins[k] = source.block(at, len, slots[k], &mut filled[k]);
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

/// Rounds `len` f32 to halves.
fn narrow(from: *const f32, dtype: DType, to: *mut u8, len: usize) {
    // SAFETY: both hold `len` elements and do not overlap.
    unsafe {
        let from = std::slice::from_raw_parts(from, len);
        match dtype {
            DType::F16 => {
                std::slice::from_raw_parts_mut(to.cast::<f16>(), len).convert_from_f32_slice(from)
            }
            _ => {
                std::slice::from_raw_parts_mut(to.cast::<bf16>(), len).convert_from_f32_slice(from)
            }
        }
    }
}
