//! The floating-point types of the matrix kernels, each as vectors of 16 logical lanes.

use crate::kernels::lanes::Lane;
use crate::simd::{Isa, LANES, Simd};

/// f32 or f64 with what the tiles of chains of fused multiply-adds need beside the operations of
/// [`Lane`]; every method is one IEEE-754 operation per lane.
pub(crate) trait Real: Lane {
    /// Vectors of 16 lanes that the accumulators of a tile may fill on `isa`.
    fn accumulators(isa: Isa) -> usize;
    /// Rows of the largest tile on `isa`.
    fn rows(isa: Isa) -> usize;
    /// Vectors side by side in a packed panel on `isa`.
    fn vectors(isa: Isa) -> usize;

    /// As [`Simd::load_even`].
    ///
    /// # Safety
    /// The elements that it addresses exist.
    unsafe fn load_even<S: Simd>(s: S, p: *const Self) -> Self::V<S>;
    /// `x < 0 ? 0 : x`.
    fn relu<S: Simd>(s: S, x: Self::V<S>) -> Self::V<S>;
    /// `x < low ? low : x`, then `x > high ? high : x`.
    fn v_clip<S: Simd>(s: S, x: Self::V<S>, low: Self, high: Self) -> Self::V<S>;
    /// One rounding.
    fn fma_one(a: Self, b: Self, c: Self) -> Self;
}

/// `x < 0 ? 0 : x`: NaN and -0.0 stay.
#[inline(always)]
pub(crate) fn relu<E: Real>(x: E) -> E {
    if x < E::default() { E::default() } else { x }
}

impl Real for f32 {
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
    unsafe fn load_even<S: Simd>(s: S, p: *const Self) -> S::F {
        // SAFETY: the caller's promise.
        unsafe { s.load_even(p) }
    }
    #[inline(always)]
    fn relu<S: Simd>(s: S, x: S::F) -> S::F {
        s.relu(x)
    }
    #[inline(always)]
    fn v_clip<S: Simd>(s: S, x: S::F, low: Self, high: Self) -> S::F {
        s.at_most(s.at_least(x, s.splat(low)), s.splat(high))
    }
    #[inline(always)]
    fn fma_one(a: Self, b: Self, c: Self) -> Self {
        a.mul_add(b, c)
    }
}

impl Real for f64 {
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
    fn relu<S: Simd>(s: S, x: S::D) -> S::D {
        let mut lanes = s.to_array_d(x);
        for lane in &mut lanes {
            *lane = relu(*lane);
        }
        // SAFETY: an array of 16.
        unsafe { s.load_d(lanes.as_ptr()) }
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
}
