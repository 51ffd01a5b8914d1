//! Reading operands block by block, whatever their strides and dtypes are.

use crate::array::{Array, StridedLoop, broadcast_strides};
use crate::dtype::{DType, Element};
use crate::for_size;
use crate::kernels::halves;
use crate::simd::{LANES, PlainLoop, vectorized};
use half::{bf16, f16};
use std::mem::MaybeUninit;

/// Elements of a gathered block.
pub(crate) const BLOCK: usize = 1024;
/// Runs at least this long are not cut by blocks, so that they need no gathering.
const LONG_RUN: usize = 64;

/// The dtype that bodies compute with.
pub(crate) fn computed(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

#[repr(C, align(64))]
pub(crate) struct Slot {
    /// A block in the type that bodies compute with.
    pub(crate) computed: [MaybeUninit<u8>; BLOCK * 8],
    /// A gathered block of half-precision elements.
    halves: [MaybeUninit<u16>; BLOCK],
}

impl Slot {
    pub(crate) const fn new() -> Self {
        Self {
            computed: [MaybeUninit::uninit(); BLOCK * 8],
            halves: [MaybeUninit::uninit(); BLOCK],
        }
    }
}

/// An operand seen in the order of a shape that it broadcasts to.
pub(crate) struct Source<'a> {
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

impl<'a> Source<'a> {
    pub(crate) fn new(array: &'a Array, shape: &[usize], widened: bool) -> Self {
        let walk = if array.shape() == shape && array.is_contiguous() {
            None
        } else {
            Some(StridedLoop::new(shape, [&broadcast_strides(array, shape)]))
        };
        let periodic = walk.as_ref().is_some_and(|w| w.inner <= BLOCK / 2 && w.repeats_one_run());
        Self { array, walk, periodic, widened }
    }

    /// A contiguous or strided array of at most f32's or f64's, read row by row with [`Self::pieces`].
    pub(crate) fn rows(array: &'a Array) -> Self {
        Self { periodic: false, ..Self::new(array, array.shape(), false) }
    }

    /// Hands over the elements `at..at + len` in order, in pieces of which all but the last have a
    /// multiple of 16 elements, so that a lane keeps its elements.
    pub(crate) fn pieces<T: Element>(
        &self,
        at: usize,
        len: usize,
        slot: &mut Slot,
        mut body: impl FnMut(&[T]),
    ) {
        let (mut at, end) = (at, at + len);
        while at < end {
            let n = self.piece(at, end - at);
            let p = self.block(at, n, slot, &mut (usize::MAX, 0));
            // SAFETY: a block of `n` elements of the array's type.
            body(unsafe { std::slice::from_raw_parts(p.cast(), n) });
            at += n;
        }
    }

    /// The length of the piece at `at` of a row of which `rest` elements are left.
    pub(crate) fn piece(&self, at: usize, rest: usize) -> usize {
        let Some(walk) = &self.walk else { return rest };
        let run = (walk.inner - at % walk.inner).min(rest);
        if walk.inner_strides[0] != 1 || run < rest && run < LONG_RUN {
            rest.min(BLOCK)
        } else if run == rest {
            rest
        } else {
            run - run % LANES
        }
    }

    /// How many elements from `at` on can be had without gathering; none limits a contiguous one.
    pub(crate) fn limit(&self, at: usize) -> usize {
        match &self.walk {
            Some(walk) if self.periodic => BLOCK - at % walk.inner,
            Some(walk) if walk.inner >= LONG_RUN => walk.inner - at % walk.inner,
            _ => usize::MAX,
        }
    }

    /// The address of the block `at..at + len`, gathered into `slot` where needed. `filled` is the
    /// run and length of a repeated element that `slot` already holds.
    pub(crate) fn block(
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
            if step == 0 && len <= BLOCK {
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
                    halves::widen(std::slice::from_raw_parts(halves.cast::<f16>(), len), to);
                }
                _ => {
                    let from = std::slice::from_raw_parts(halves.cast::<bf16>(), len);
                    vectorized(WidenBrain { from, to });
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

/// Rounds `len` f32 to halves.
pub(crate) fn narrow(from: *const f32, dtype: DType, to: *mut u8, len: usize) {
    // SAFETY: both hold `len` elements and do not overlap.
    unsafe {
        let from = std::slice::from_raw_parts(from, len);
        match dtype {
            DType::F16 => {
                halves::narrow(from, std::slice::from_raw_parts_mut(to.cast::<f16>(), len));
            }
            _ => {
                let to = std::slice::from_raw_parts_mut(to.cast::<bf16>(), len);
                vectorized(NarrowBrain { from, to });
            }
        }
    }
}

struct WidenBrain<'a> {
    from: &'a [bf16],
    to: &'a mut [f32],
}

impl PlainLoop for WidenBrain<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.from.iter().zip(self.to) {
            *y = f32::from_bits(quiet(u32::from(x.to_bits()) << 16));
        }
    }
}

struct NarrowBrain<'a> {
    from: &'a [f32],
    to: &'a mut [bf16],
}

impl PlainLoop for NarrowBrain<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.from.iter().zip(self.to) {
            let bits = x.to_bits();
            let even = (bits >> 16) & 1;
            let near = bits.wrapping_add(0x7fff + even);
            *y = bf16::from_bits((if x.is_nan() { quiet(bits) } else { near } >> 16) as u16);
        }
    }
}

/// A NaN's bits as a quiet NaN's.
#[inline(always)]
fn quiet(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x0040_0000 } else { bits }
}
