//! f32 and f64 rows in vectors of 16 lanes, and sums of them in f64.

use crate::kernels::number::Number;
use crate::simd::{LANES, Simd, WithSimd};

/// A float with its vectors; each operation is one IEEE-754 operation per lane.
///
/// # Safety of the pointer methods
/// The addressed elements exist: 16 of them, or the first `n`.
#[allow(clippy::missing_safety_doc)]
pub(crate) trait Lane: Number {
    type V<S: Simd>: Copy;
    fn splat<S: Simd>(s: S, x: Self) -> Self::V<S>;
    unsafe fn load<S: Simd>(s: S, p: *const Self) -> Self::V<S>;
    /// The other lanes are +0.0.
    unsafe fn load_n<S: Simd>(s: S, p: *const Self, n: usize) -> Self::V<S>;
    unsafe fn store<S: Simd>(s: S, p: *mut Self, v: Self::V<S>);
    unsafe fn store_n<S: Simd>(s: S, p: *mut Self, n: usize, v: Self::V<S>);
    fn v_add<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    fn v_sub<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    fn v_mul<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    fn v_fma<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>, c: Self::V<S>) -> Self::V<S>;
    fn v_abs<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    fn v_div<S: Simd>(s: S, a: Self::V<S>, b: Self::V<S>) -> Self::V<S>;
    fn v_sqrt<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S>;
    /// Exact.
    fn widen<S: Simd>(s: S, v: Self::V<S>) -> S::D;

    /// -a, exactly.
    #[inline(always)]
    fn v_neg<S: Simd>(s: S, a: Self::V<S>) -> Self::V<S> {
        Self::v_mul(s, a, Self::splat(s, Self::ZERO.sub(Self::ONE)))
    }

    /// 16 elements, or the first `n`.
    #[inline(always)]
    unsafe fn get<S: Simd>(s: S, p: *const Self, n: usize) -> Self::V<S> {
        // SAFETY: the caller's promise.
        unsafe { if n == LANES { Self::load(s, p) } else { Self::load_n(s, p, n) } }
    }

    /// Stores 16 elements, or the first `n`.
    #[inline(always)]
    unsafe fn put<S: Simd>(s: S, p: *mut Self, n: usize, v: Self::V<S>) {
        // SAFETY: the caller's promise.
        unsafe { if n == LANES { Self::store(s, p, v) } else { Self::store_n(s, p, n, v) } }
    }
}

impl Lane for f32 {
    type V<S: Simd> = S::F;
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
    fn v_add<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.add(a, b)
    }
    #[inline(always)]
    fn v_sub<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.sub(a, b)
    }
    #[inline(always)]
    fn v_mul<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.mul(a, b)
    }
    #[inline(always)]
    fn v_fma<S: Simd>(s: S, a: S::F, b: S::F, c: S::F) -> S::F {
        s.fma(a, b, c)
    }
    #[inline(always)]
    fn v_abs<S: Simd>(s: S, a: S::F) -> S::F {
        s.abs(a)
    }
    #[inline(always)]
    fn v_div<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
        s.div(a, b)
    }
    #[inline(always)]
    fn v_sqrt<S: Simd>(s: S, a: S::F) -> S::F {
        s.sqrt(a)
    }
    #[inline(always)]
    fn widen<S: Simd>(s: S, v: S::F) -> S::D {
        s.widen(v)
    }
}

impl Lane for f64 {
    type V<S: Simd> = S::D;
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
        // SAFETY: the caller's promise; at most 16.
        unsafe {
            std::ptr::copy_nonoverlapping(p, part.as_mut_ptr(), n);
            s.load_d(part.as_ptr())
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
        // SAFETY: the caller's promise; at most 16.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), p, n) }
    }
    #[inline(always)]
    fn v_add<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.add_d(a, b)
    }
    #[inline(always)]
    fn v_sub<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.sub_d(a, b)
    }
    #[inline(always)]
    fn v_mul<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.mul_d(a, b)
    }
    #[inline(always)]
    fn v_fma<S: Simd>(s: S, a: S::D, b: S::D, c: S::D) -> S::D {
        s.fma_d(a, b, c)
    }
    #[inline(always)]
    fn v_div<S: Simd>(s: S, a: S::D, b: S::D) -> S::D {
        s.div_d(a, b)
    }
    #[inline(always)]
    fn v_sqrt<S: Simd>(s: S, a: S::D) -> S::D {
        let mut lanes = s.to_array_d(a);
        for x in &mut lanes {
            *x = x.sqrt();
        }
        // SAFETY: 16 elements.
        unsafe { s.load_d(lanes.as_ptr()) }
    }
    #[inline(always)]
    fn v_abs<S: Simd>(s: S, a: S::D) -> S::D {
        let mut lanes = s.to_array_d(a);
        for x in &mut lanes {
            *x = x.abs();
        }
        // SAFETY: 16 elements.
        unsafe { s.load_d(lanes.as_ptr()) }
    }
    #[inline(always)]
    fn widen<S: Simd>(_: S, v: S::D) -> S::D {
        v
    }
}

/// Runs the body for `i` of 0, 16, … with `count` of 16, and for the rest. A macro, so that the body
/// is compiled with the caller's instructions.
macro_rules! for_lanes {
    ($n:expr, |$i:ident, $count:ident| $body:expr) => {{
        let n: usize = $n;
        let whole = n - n % $crate::simd::LANES;
        let mut $i = 0;
        while $i < whole {
            let $count = $crate::simd::LANES;
            $body;
            $i += $crate::simd::LANES;
        }
        let $count = n - whole;
        if $count > 0 {
            $body;
        }
    }};
}
pub(crate) use for_lanes;

/// What an element adds to a lane's sum.
#[derive(Clone, Copy)]
pub(crate) enum Term {
    /// x.
    Value,
    /// |x|.
    Magnitude,
    /// (x - mean)² by fma.
    Deviation(f64),
    /// x x rounded to the dtype.
    RoundedSquare,
}

/// Compiles the expression for each kind of term, so that no loop inside it tests which one it is.
macro_rules! for_term {
    ($term:expr, |$kind:ident| $body:expr) => {
        match $term {
            $crate::kernels::lanes::Term::Value => {
                let $kind = $crate::kernels::lanes::Term::Value;
                $body
            }
            $crate::kernels::lanes::Term::Magnitude => {
                let $kind = $crate::kernels::lanes::Term::Magnitude;
                $body
            }
            $crate::kernels::lanes::Term::Deviation(mean) => {
                let $kind = $crate::kernels::lanes::Term::Deviation(mean);
                $body
            }
            $crate::kernels::lanes::Term::RoundedSquare => {
                let $kind = $crate::kernels::lanes::Term::RoundedSquare;
                $body
            }
        }
    };
}
pub(crate) use for_term;

#[inline(always)]
pub(crate) fn add_term<T: Lane, S: Simd>(s: S, term: Term, acc: S::D, x: T::V<S>) -> S::D {
    match term {
        Term::Value => s.add_d(acc, T::widen(s, x)),
        Term::Magnitude => s.add_d(acc, T::widen(s, T::v_abs(s, x))),
        Term::Deviation(mean) => {
            let d = s.sub_d(T::widen(s, x), s.splat_d(mean));
            s.fma_d(d, d, acc)
        }
        Term::RoundedSquare => s.add_d(acc, T::widen(s, T::v_mul(s, x, x))),
    }
}

/// Adds the terms of `n` elements to 16 lanes, from lane 0 on.
///
/// # Safety
/// The elements exist.
#[inline(always)]
unsafe fn add_terms<T: Lane, S: Simd>(
    s: S,
    term: Term,
    mut acc: S::D,
    x: *const T,
    n: usize,
) -> S::D {
    let whole = n - n % LANES;
    // SAFETY: below `n`, and an array of 16.
    unsafe {
        let mut i = 0;
        while i < whole {
            acc = add_term::<T, S>(s, term, acc, T::load(s, x.add(i)));
            i += LANES;
        }
        if i == n {
            return acc;
        }
        let with = add_term::<T, S>(s, term, acc, T::load_n(s, x.add(i), n - i));
        // Lanes without an element keep their sums.
        let mut lanes = s.to_array_d(acc);
        lanes[..n - i].copy_from_slice(&s.to_array_d(with)[..n - i]);
        s.load_d(lanes.as_ptr())
    }
}

/// The sum of the terms of one row.
///
/// # Safety
/// The elements exist.
#[inline(always)]
pub(crate) unsafe fn row_sum<T: Lane, S: Simd>(s: S, term: Term, x: *const T, n: usize) -> f64 {
    // SAFETY: the caller's promise.
    s.tree_add_d(unsafe { add_terms(s, term, s.splat_d(0.0), x, n) })
}

/// The fixed tree over 16 lanes.
#[inline(always)]
pub(crate) fn tree(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The same over 16 vectors, for each of their lanes.
#[inline(always)]
pub(crate) fn tree_of_vectors<S: Simd>(s: S, mut lanes: [S::D; LANES]) -> S::D {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = s.add_d(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// One piece of a row.
pub(crate) struct Piece<'a, T> {
    pub term: Term,
    pub lanes: &'a mut [f64; LANES],
    pub x: &'a [T],
}

impl<T: Lane> WithSimd for Piece<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (lanes, x, n) = (self.lanes, self.x.as_ptr(), self.x.len());
        // SAFETY: a slice of `n`.
        unsafe {
            let acc = s.load_d(lanes.as_ptr());
            let acc = for_term!(self.term, |term| add_terms(s, term, acc, x, n));
            s.store_d(lanes.as_mut_ptr(), acc);
        }
    }
}

/// The sums of the terms of neighbouring rows of `count` elements.
pub(crate) struct NeighbouringRows<'a, T> {
    pub term: Term,
    pub x: &'a [T],
    pub count: usize,
    pub sums: &'a mut [f64],
}

impl<T: Lane> WithSimd for NeighbouringRows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (i, sum) in self.sums.iter_mut().enumerate() {
            let x = &self.x[i * self.count..][..self.count];
            let (p, n) = (x.as_ptr(), x.len());
            // SAFETY: a slice of `n`.
            *sum = unsafe { for_term!(self.term, |term| row_sum(s, term, p, n)) };
        }
    }
}
