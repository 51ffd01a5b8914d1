//! The floating-point types of the matrix kernels, each as vectors of 16 logical lanes.

use crate::dtype::Element;
use crate::simd::{Isa, LANES, Simd};

/// f32 or f64 with the few operations that a chain of fused multiply-adds needs. Every method is one
/// IEEE-754 operation per lane.
///
/// # Safety of the pointer methods
/// The addressed elements exist: 16 of them, or the first `n`.
#[allow(clippy::missing_safety_doc)]
pub(crate) trait Real: Element + PartialOrd {
    type V<S: Simd>: Copy;

    /// Vectors of 16 lanes that the accumulators of a tile may fill on `isa`.
    fn accumulators(isa: Isa) -> usize;
    /// Rows of the largest tile on `isa`.
    fn rows(isa: Isa) -> usize;
    /// Vectors side by side in a packed panel on `isa`.
    fn vectors(isa: Isa) -> usize;

    fn splat<S: Simd>(s: S, x: Self) -> Self::V<S>;
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> Self::V<S>;
    unsafe fn load_n<S: Simd>(s: S, p: *const Self, n: usize) -> Self::V<S>;
    /// As [`Simd::load_even`].
    unsafe fn load_even<S: Simd>(s: S, p: *const Self) -> Self::V<S>;
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: Self::V<S>);
    unsafe fn store_n<S: Simd>(s: S, p: *mut Self, n: usize, v: Self::V<S>);
    fn fma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    /// `x < 0 ? 0 : x`.
    fn relu<S: Simd>(s: S, x: Self::V<S>) -> Self::V<S>;
    fn v_plus<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    fn v_minus<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    /// `x < low ? low : x`, then `x > high ? high : x`.
    fn v_clip<S: Simd>(s: S, x: Self::V<S>, low: Self, high: Self) -> Self::V<S>;
    /// One rounding.
    fn fma_one(a: Self, b: Self, c: Self) -> Self;
    fn from_f64(x: f64) -> Self;
    /// Rounded separately: `alpha * x`, and `alpha * x + y`.
    fn scaled(alpha: Self, x: Self) -> Self;
    fn plus(self, other: Self) -> Self;
}

/// `x < 0 ? 0 : x`: NaN and -0.0 stay.
#[inline(always)]
pub(crate) fn relu<E: Real>(x: E) -> E {
    if x < E::default() { E::default() } else { x }
}

impl Real for f32 {
    type V<S: Simd> = S::F;

    #[inline(always)]
    fn accumulators(isa: Isa) -> usize {
        match isa {
            Isa::Avx512 => 28,
            Isa::Avx2 | Isa::Neon => 6,
            Isa::Scalar => 2,
        }
    }
    #[inline(always)]
    fn rows(isa: Isa) -> usize {
        match isa {
            Isa::Avx512 => 14,
            Isa::Avx2 | Isa::Neon => 6,
            Isa::Scalar => 2,
        }
    }
    #[inline(always)]
    fn vectors(isa: Isa) -> usize {
        if isa == Isa::Avx512 { 2 } else { 1 }
    }
    #[inline(always)]
    fn splat<S: Simd>(s: S, x: Self) -> S::F {
        s.splat(x)
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load(p) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(s: S, p: *const Self, n: usize) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load_n(p, n) }
    }
    #[inline(always)]
    unsafe fn load_even<S: Simd>(s: S, p: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load_even(p) }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::F) {
        // SAFETY: the caller's promise.
        unsafe { s.store(p, v) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(s: S, p: *mut Self, n: usize, v: S::F) {
        // SAFETY: the caller's promise.
        unsafe { s.store_n(p, n, v) }
    }
    #[inline(always)]
    fn fma<S: Simd>(s: S, a: S::F, b: S::F, c: S::F) -> S::F {
        s.fma(a, b, c)
    }
    #[inline(always)]
    fn relu<S: Simd>(s: S, x: S::F) -> S::F {
        s.relu(x)
    }
    #[inline(always)]
    fn v_plus<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.add(a, b)
    }
    #[inline(always)]
    fn v_minus<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.sub(a, b)
    }
    #[inline(always)]
    fn v_clip<S: Simd>(s: S, x: S::F, low: Self, high: Self) -> S::F {
        s.at_most(s.at_least(x, s.splat(low)), s.splat(high))
    }
    #[inline(always)]
    fn fma_one(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn scaled(alpha: Self, x: Self) -> Self {
        alpha * x
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Real for f64 {
    type V<S: Simd> = S::D;

    #[inline(always)]
    fn accumulators(isa: Isa) -> usize {
        match isa {
            Isa::Avx512 => 12,
            Isa::Avx2 | Isa::Neon => 3,
            Isa::Scalar => 1,
        }
    }
    #[inline(always)]
    fn rows(isa: Isa) -> usize {
        Self::accumulators(isa).min(6)
    }
    #[inline(always)]
    fn vectors(_: Isa) -> usize {
        1
    }
    #[inline(always)]
    fn splat<S: Simd>(s: S, x: Self) -> S::D {
        s.splat_d(x)
    }
    #[inline(always)]
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> S::D {
        // SAFETY: the caller's promise.
        unsafe { s.load_d(p) }
    }
    #[inline(always)]
    unsafe fn load_n<S: Simd>(s: S, p: *const Self, n: usize) -> S::D {
        let mut part = [0.0; LANES];
        // SAFETY: at most 16 of the caller's n elements, and an array of 16.
        unsafe {
            std::ptr::copy_nonoverlapping(p, part.as_mut_ptr(), n.min(LANES));
            s.load_d(part.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn load_even<S: Simd>(s: S, p: *const Self) -> S::D {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller's promise, and an array of 16.
        unsafe {
            for i in 0..LANES {
                lanes[i] = *p.add(2 * i);
            }
            s.load_d(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: S::D) {
        // SAFETY: the caller's promise.
        unsafe { s.store_d(p, v) }
    }
    #[inline(always)]
    unsafe fn store_n<S: Simd>(s: S, p: *mut Self, n: usize, v: S::D) {
        let part = s.to_array_d(v);
        // SAFETY: at most 16 of the caller's n elements, and an array of 16.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), p, n.min(LANES)) }
    }
    #[inline(always)]
    fn fma<S: Simd>(s: S, a: S::D, b: S::D, c: S::D) -> S::D {
        s.fma_d(a, b, c)
    }
    #[inline(always)]
    fn relu<S: Simd>(s: S, x: S::D) -> S::D {
        let mut lanes = s.to_array_d(x);
        for lane in &mut lanes {
            *lane = relu(*lane);
        }
        // SAFETY: an array of 16.
        unsafe { s.load_d(lanes.as_ptr()) }
    }
    #[inline(always)]
    fn v_plus<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.add_d(a, b)
    }
    #[inline(always)]
    fn v_minus<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.sub_d(a, b)
    }
    #[inline(always)]
    fn v_clip<S: Simd>(s: S, x: S::D, low: Self, high: Self) -> S::D {
        let mut lanes = s.to_array_d(x);
        for lane in &mut lanes {
            let bounded = if *lane < low { low } else { *lane };
            *lane = if bounded > high { high } else { bounded };
        }
        // SAFETY: an array of 16.
        unsafe { s.load_d(lanes.as_ptr()) }
    }
    #[inline(always)]
    fn fma_one(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn scaled(alpha: Self, x: Self) -> Self {
        alpha * x
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}
