//! The reference: 16 lanes in an array, one lane after another.
//!
//! On x86-64 and AArch64 every operation is a call: there this body only checks the vector ones, and
//! inlining it into each kernel would double the crate's build time. Elsewhere it is the fastest body.

use super::{Isa, LANES, Simd};

#[derive(Clone, Copy)]
pub struct Scalar;

#[cfg(target_arch = "x86_64")]
mod fused {
    use super::super::{LANES, fma_f32_software, has_fma};

    #[target_feature(enable = "fma")]
    fn fma(a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
    }

    #[target_feature(enable = "fma")]
    fn fma_d(a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
    }

    #[inline(never)]
    pub fn any(a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        if has_fma() {
            // SAFETY: just probed.
            return unsafe { fma(a, b, c) };
        }
        std::array::from_fn(|l| fma_f32_software(a[l], b[l], c[l]))
    }

    #[inline(never)]
    pub fn any_d(a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        if has_fma() {
            // SAFETY: just probed.
            return unsafe { fma_d(a, b, c) };
        }
        // Without the instruction this calls the C library's fma, which is correctly rounded.
        std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod fused {
    use super::super::LANES;

    #[inline(always)]
    pub fn any(a: [f32; LANES], b: [f32; LANES], c: [f32; LANES]) -> [f32; LANES] {
        std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
    }

    #[inline(always)]
    pub fn any_d(a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
    }
}

#[inline(always)]
fn map<T: Copy, R: Copy>(a: [T; LANES], f: impl Fn(T) -> R) -> [R; LANES] {
    std::array::from_fn(|l| f(a[l]))
}

#[inline(always)]
fn zip<T: Copy, R: Copy>(a: [T; LANES], b: [T; LANES], f: impl Fn(T, T) -> R) -> [R; LANES] {
    std::array::from_fn(|l| f(a[l], b[l]))
}

impl Simd for Scalar {
    const ISA: Isa = Isa::Scalar;
    const GEMM_ROWS: usize = 4;
    const GEMM_VECTORS: usize = 1;
    type F = [f32; LANES];
    type I = [i32; LANES];
    type D = [f64; LANES];
    type M = [bool; LANES];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::F>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::F {
        let mut v = [0.0; LANES];
        for (l, x) in v.iter_mut().enumerate().take(n) {
            // SAFETY: l is below n, the number of existing elements.
            *x = unsafe { *p.add(l) };
        }
        v
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize, v: Self::F) {
        for (l, x) in v.iter().enumerate().take(n) {
            // SAFETY: l is below n, the number of existing elements.
            unsafe { *p.add(l) = *x };
        }
    }
    #[inline(always)]
    fn to_array(self, v: Self::F) -> [f32; LANES] {
        v
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x + y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x - y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x * y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        fused::any(a, b, c)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn sqrt(self, a: Self::F) -> Self::F {
        map(a, f32::sqrt)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn abs(self, a: Self::F) -> Self::F {
        map(a, f32::abs)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn neg(self, a: Self::F) -> Self::F {
        map(a, |x| -x)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn floor(self, a: Self::F) -> Self::F {
        map(a, f32::floor)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn ceil(self, a: Self::F) -> Self::F {
        map(a, f32::ceil)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn trunc(self, a: Self::F) -> Self::F {
        map(a, f32::trunc)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn round(self, a: Self::F) -> Self::F {
        map(a, f32::round_ties_even)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn copysign(self, a: Self::F, b: Self::F) -> Self::F {
        zip(a, b, f32::copysign)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        zip(a, b, |x, y| x < y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        zip(a, b, |x, y| x <= y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        zip(a, b, |x, y| x == y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn is_nan(self, a: Self::F) -> Self::M {
        map(a, f32::is_nan)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        std::array::from_fn(|l| if m[l] { a[l] } else { b[l] })
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M {
        zip(a, b, |x, y| x & y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M {
        zip(a, b, |x, y| x | y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mask_not(self, a: Self::M) -> Self::M {
        map(a, |x| !x)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mask_bits(self, m: Self::M) -> u16 {
        m.iter().enumerate().fold(0, |acc, (l, &b)| acc | (u16::from(b) << l))
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mask_first(self, n: usize) -> Self::M {
        std::array::from_fn(|l| l < n)
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::I>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::I>().write_unaligned(v) }
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, i32::wrapping_add)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, i32::wrapping_sub)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, i32::wrapping_mul)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |x, y| x & y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |x, y| x | y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        zip(a, b, |x, y| x ^ y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn shl_i<const N: i32>(self, a: Self::I) -> Self::I {
        map(a, |x| x << N)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn shr_i<const N: i32>(self, a: Self::I) -> Self::I {
        map(a, |x| x >> N)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn shr_u<const N: i32>(self, a: Self::I) -> Self::I {
        map(a, |x| (x.cast_unsigned() >> N).cast_signed())
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn lt_i(self, a: Self::I, b: Self::I) -> Self::M {
        zip(a, b, |x, y| x < y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn eq_i(self, a: Self::I, b: Self::I) -> Self::M {
        zip(a, b, |x, y| x == y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn select_i(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        std::array::from_fn(|l| if m[l] { a[l] } else { b[l] })
    }
    #[inline(always)]
    fn bits(self, a: Self::F) -> Self::I {
        map(a, |x| x.to_bits().cast_signed())
    }
    #[inline(always)]
    fn from_bits(self, a: Self::I) -> Self::F {
        map(a, |x| f32::from_bits(x.cast_unsigned()))
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn to_int(self, a: Self::F) -> Self::I {
        map(a, |x| {
            let r = x.round_ties_even();
            if (-2_147_483_648.0..2_147_483_648.0).contains(&r) { r as i32 } else { i32::MIN }
        })
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn from_int(self, a: Self::I) -> Self::F {
        map(a, |x| x as f32)
    }
    #[inline(always)]
    fn splat_d(self, x: f64) -> Self::D {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load_d(self, p: *const f64) -> Self::D {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::D>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_d(self, p: *mut f64, v: Self::D) {
        // SAFETY: the caller's 16 elements.
        unsafe { p.cast::<Self::D>().write_unaligned(v) }
    }
    #[inline(always)]
    fn to_array_d(self, v: Self::D) -> [f64; LANES] {
        v
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn add_d(self, a: Self::D, b: Self::D) -> Self::D {
        zip(a, b, |x, y| x + y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn sub_d(self, a: Self::D, b: Self::D) -> Self::D {
        zip(a, b, |x, y| x - y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn mul_d(self, a: Self::D, b: Self::D) -> Self::D {
        zip(a, b, |x, y| x * y)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn div_d(self, a: Self::D, b: Self::D) -> Self::D {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    fn fma_d(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
        fused::any_d(a, b, c)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn widen(self, a: Self::F) -> Self::D {
        map(a, f64::from)
    }
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), inline(never))]
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), inline(always))]
    fn narrow(self, a: Self::D) -> Self::F {
        map(a, |x| x as f32)
    }
}
