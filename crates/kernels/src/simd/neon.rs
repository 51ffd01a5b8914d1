//! 16 lanes in four registers (f64: eight). Every AArch64 CPU has these instructions.

use super::{Isa, LANES, Simd};
use std::arch::aarch64::*;
use std::array::from_fn;

#[derive(Clone, Copy)]
pub struct Neon;

/// One instruction for each register.
macro_rules! each {
    ($k:ident => $instruction:expr) => {
        // SAFETY: the target's baseline has NEON, and no instruction given here touches memory.
        from_fn(|$k| unsafe { $instruction })
    };
}

impl Simd for Neon {
    const ISA: Isa = Isa::Neon;
    const GEMM_ROWS: usize = 6;
    const GEMM_VECTORS: usize = 1;
    type F = [float32x4_t; 4];
    type I = [int32x4_t; 4];
    type D = [float64x2_t; 8];
    type M = [uint32x4_t; 4];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        each!(_k => vdupq_n_f32(x))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        // SAFETY: the caller's 16 elements.
        from_fn(|k| unsafe { vld1q_f32(p.add(4 * k)) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        for (k, part) in v.into_iter().enumerate() {
            // SAFETY: the caller's 16 elements.
            unsafe { vst1q_f32(p.add(4 * k), part) };
        }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::F {
        if n >= LANES {
            // SAFETY: the caller's 16 elements.
            return unsafe { self.load(p) };
        }
        let mut part = [0.0f32; LANES];
        // SAFETY: the caller's n elements, and an array of 16.
        unsafe {
            std::ptr::copy_nonoverlapping(p, part.as_mut_ptr(), n);
            self.load(part.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize, v: Self::F) {
        let part = self.to_array(v);
        // SAFETY: the caller's n elements, at most 16.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), p, n.min(LANES)) }
    }
    #[inline(always)]
    fn to_array(self, v: Self::F) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: an array of 16.
        unsafe { self.store(out.as_mut_ptr(), v) };
        out
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vaddq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vsubq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vmulq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vdivq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        each!(k => vfmaq_f32(c[k], a[k], b[k]))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        each!(k => vsqrtq_f32(a[k]))
    }
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        each!(k => vabsq_f32(a[k]))
    }
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        each!(k => vnegq_f32(a[k]))
    }
    #[inline(always)]
    fn floor(self, a: Self::F) -> Self::F {
        each!(k => vrndmq_f32(a[k]))
    }
    #[inline(always)]
    fn ceil(self, a: Self::F) -> Self::F {
        each!(k => vrndpq_f32(a[k]))
    }
    #[inline(always)]
    fn trunc(self, a: Self::F) -> Self::F {
        each!(k => vrndq_f32(a[k]))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        each!(k => vrndnq_f32(a[k]))
    }
    #[inline(always)]
    fn copysign(self, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vbslq_f32(vdupq_n_u32(1 << 31), b[k], a[k]))
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        each!(k => vcltq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        each!(k => vcleq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        each!(k => vceqq_f32(a[k], b[k]))
    }
    #[inline(always)]
    fn is_nan(self, a: Self::F) -> Self::M {
        each!(k => vmvnq_u32(vceqq_f32(a[k], a[k])))
    }
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        each!(k => vbslq_f32(m[k], a[k], b[k]))
    }
    #[inline(always)]
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M {
        each!(k => vandq_u32(a[k], b[k]))
    }
    #[inline(always)]
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M {
        each!(k => vorrq_u32(a[k], b[k]))
    }
    #[inline(always)]
    fn mask_not(self, a: Self::M) -> Self::M {
        each!(k => vmvnq_u32(a[k]))
    }
    #[inline(always)]
    fn mask_bits(self, m: Self::M) -> u16 {
        let bit = [1u32, 2, 4, 8];
        m.into_iter().enumerate().fold(0, |all, (k, part)| {
            // SAFETY: the target's baseline has NEON, and the array holds four elements.
            let four = unsafe { vaddvq_u32(vandq_u32(part, vld1q_u32(bit.as_ptr()))) };
            all | (four as u16) << (4 * k)
        })
    }
    #[inline(always)]
    fn mask_first(self, n: usize) -> Self::M {
        let lane: [u32; LANES] = from_fn(|l| l as u32);
        let n = n.min(LANES) as u32;
        // SAFETY: the target's baseline has NEON, and four lanes exist from 4 k on.
        from_fn(|k| unsafe { vcltq_u32(vld1q_u32(lane.as_ptr().add(4 * k)), vdupq_n_u32(n)) })
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        each!(_k => vdupq_n_s32(x))
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        // SAFETY: the caller's 16 elements.
        from_fn(|k| unsafe { vld1q_s32(p.add(4 * k)) })
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        for (k, part) in v.into_iter().enumerate() {
            // SAFETY: the caller's 16 elements.
            unsafe { vst1q_s32(p.add(4 * k), part) };
        }
    }
    #[inline(always)]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vaddq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vsubq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vmulq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vandq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vorrq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        each!(k => veorq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn shl_i<const N: i32>(self, a: Self::I) -> Self::I {
        each!(k => vshlq_n_s32::<N>(a[k]))
    }
    #[inline(always)]
    fn shr_i<const N: i32>(self, a: Self::I) -> Self::I {
        each!(k => vshrq_n_s32::<N>(a[k]))
    }
    #[inline(always)]
    fn shr_u<const N: i32>(self, a: Self::I) -> Self::I {
        each!(k => vreinterpretq_s32_u32(vshrq_n_u32::<N>(vreinterpretq_u32_s32(a[k]))))
    }
    #[inline(always)]
    fn lt_i(self, a: Self::I, b: Self::I) -> Self::M {
        each!(k => vcltq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn eq_i(self, a: Self::I, b: Self::I) -> Self::M {
        each!(k => vceqq_s32(a[k], b[k]))
    }
    #[inline(always)]
    fn select_i(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        each!(k => vbslq_s32(m[k], a[k], b[k]))
    }
    #[inline(always)]
    fn bits(self, a: Self::F) -> Self::I {
        each!(k => vreinterpretq_s32_f32(a[k]))
    }
    #[inline(always)]
    fn from_bits(self, a: Self::I) -> Self::F {
        each!(k => vreinterpretq_f32_s32(a[k]))
    }
    #[inline(always)]
    fn to_int(self, a: Self::F) -> Self::I {
        // The instruction saturates and turns NaN into 0: above the range and for NaN the result is
        // replaced, below it saturation is the result wanted.
        each!(k => {
            let below = vcltq_f32(a[k], vdupq_n_f32(2_147_483_648.0));
            vbslq_s32(below, vcvtnq_s32_f32(a[k]), vdupq_n_s32(i32::MIN))
        })
    }
    #[inline(always)]
    fn from_int(self, a: Self::I) -> Self::F {
        each!(k => vcvtq_f32_s32(a[k]))
    }
    #[inline(always)]
    fn splat_d(self, x: f64) -> Self::D {
        each!(_k => vdupq_n_f64(x))
    }
    #[inline(always)]
    unsafe fn load_d(self, p: *const f64) -> Self::D {
        // SAFETY: the caller's 16 elements.
        from_fn(|k| unsafe { vld1q_f64(p.add(2 * k)) })
    }
    #[inline(always)]
    unsafe fn store_d(self, p: *mut f64, v: Self::D) {
        for (k, part) in v.into_iter().enumerate() {
            // SAFETY: the caller's 16 elements.
            unsafe { vst1q_f64(p.add(2 * k), part) };
        }
    }
    #[inline(always)]
    fn to_array_d(self, v: Self::D) -> [f64; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: an array of 16.
        unsafe { self.store_d(out.as_mut_ptr(), v) };
        out
    }
    #[inline(always)]
    fn add_d(self, a: Self::D, b: Self::D) -> Self::D {
        each!(k => vaddq_f64(a[k], b[k]))
    }
    #[inline(always)]
    fn sub_d(self, a: Self::D, b: Self::D) -> Self::D {
        each!(k => vsubq_f64(a[k], b[k]))
    }
    #[inline(always)]
    fn mul_d(self, a: Self::D, b: Self::D) -> Self::D {
        each!(k => vmulq_f64(a[k], b[k]))
    }
    #[inline(always)]
    fn div_d(self, a: Self::D, b: Self::D) -> Self::D {
        each!(k => vdivq_f64(a[k], b[k]))
    }
    #[inline(always)]
    fn fma_d(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
        each!(k => vfmaq_f64(c[k], a[k], b[k]))
    }
    #[inline(always)]
    fn widen(self, a: Self::F) -> Self::D {
        each!(k => if k % 2 == 0 {
            vcvt_f64_f32(vget_low_f32(a[k / 2]))
        } else {
            vcvt_high_f64_f32(a[k / 2])
        })
    }
    #[inline(always)]
    fn narrow(self, a: Self::D) -> Self::F {
        each!(k => vcvt_high_f32_f64(vcvt_f32_f64(a[2 * k]), a[2 * k + 1]))
    }
    #[inline(always)]
    fn tree_add(self, v: Self::F) -> f32 {
        // SAFETY: the target's baseline has NEON.
        unsafe {
            let four = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
            vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)))
        }
    }
    #[inline(always)]
    fn tree_add_d(self, v: Self::D) -> f64 {
        let eight: [float64x2_t; 4] = each!(k => vaddq_f64(v[k], v[k + 4]));
        let four: [float64x2_t; 2] = each!(k => vaddq_f64(eight[k], eight[k + 2]));
        // SAFETY: the target's baseline has NEON.
        unsafe { vpaddd_f64(vaddq_f64(four[0], four[1])) }
    }
}
