//! 16 lanes in two registers (f64: four).

use super::{Isa, LANES, PlainLoop, Simd, WithSimd};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub struct Avx2(());

/// Runs `op` with these instructions.
///
/// # Safety
/// The CPU has the features named here.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn run<O: WithSimd>(op: O) -> O::Output {
    op.run(Avx2(()))
}

/// Runs a plain loop compiled with these instructions.
///
/// # Safety
/// The CPU has the features named here.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn run_plain<L: PlainLoop>(body: L) -> L::Output {
    body.run()
}

/// Instructions that touch registers alone.
macro_rules! registers {
    ($instructions:expr) => {
        // SAFETY: a value of this type exists only inside `run`, whose caller has probed the CPU.
        unsafe { $instructions }
    };
}

impl Simd for Avx2 {
    const ISA: Isa = Isa::Avx2;
    const GEMM_ROWS: usize = 6;
    const GEMM_VECTORS: usize = 1;
    type F = [__m256; 2];
    type I = [__m256i; 2];
    type D = [__m256d; 4];
    type M = [__m256; 2];

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        registers!([_mm256_set1_ps(x); 2])
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { [_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))] }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe {
            _mm256_storeu_ps(p, v[0]);
            _mm256_storeu_ps(p.add(8), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::F {
        if n >= LANES {
            // SAFETY: n is at least 16.
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
    unsafe fn load_even(self, p: *const f32) -> Self::F {
        // SAFETY: the last load ends at element 30; the CPU as in `registers`.
        unsafe {
            let low = _mm256_shuffle_ps::<0x88>(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8)));
            let [third, fourth] = [_mm256_loadu_ps(p.add(16)), _mm256_loadu_ps(p.add(23))];
            // The fourth begins at an odd element.
            let high = _mm256_shuffle_ps::<0xd8>(third, fourth);
            let in_order = |v| _mm256_permute4x64_pd::<0xd8>(_mm256_castps_pd(v));
            [_mm256_castpd_ps(in_order(low)), _mm256_castpd_ps(in_order(high))]
        }
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
        registers!([_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        registers!([_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        registers!([_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        registers!([_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        registers!([_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])])
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        registers!([_mm256_sqrt_ps(a[0]), _mm256_sqrt_ps(a[1])])
    }
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            [_mm256_andnot_ps(sign, a[0]), _mm256_andnot_ps(sign, a[1])]
        }
    }
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            [_mm256_xor_ps(sign, a[0]), _mm256_xor_ps(sign, a[1])]
        }
    }
    #[inline(always)]
    fn floor(self, a: Self::F) -> Self::F {
        registers!([_mm256_round_ps::<9>(a[0]), _mm256_round_ps::<9>(a[1])])
    }
    #[inline(always)]
    fn ceil(self, a: Self::F) -> Self::F {
        registers!([_mm256_round_ps::<10>(a[0]), _mm256_round_ps::<10>(a[1])])
    }
    #[inline(always)]
    fn trunc(self, a: Self::F) -> Self::F {
        registers!([_mm256_round_ps::<11>(a[0]), _mm256_round_ps::<11>(a[1])])
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        registers!([_mm256_round_ps::<8>(a[0]), _mm256_round_ps::<8>(a[1])])
    }
    #[inline(always)]
    fn copysign(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            [
                _mm256_or_ps(_mm256_andnot_ps(sign, a[0]), _mm256_and_ps(sign, b[0])),
                _mm256_or_ps(_mm256_andnot_ps(sign, a[1]), _mm256_and_ps(sign, b[1])),
            ]
        }
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [_mm256_cmp_ps::<_CMP_LT_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_LT_OQ>(a[1], b[1])]
        }
    }
    #[inline(always)]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [_mm256_cmp_ps::<_CMP_LE_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_LE_OQ>(a[1], b[1])]
        }
    }
    #[inline(always)]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [_mm256_cmp_ps::<_CMP_EQ_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_EQ_OQ>(a[1], b[1])]
        }
    }
    #[inline(always)]
    fn is_nan(self, a: Self::F) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [_mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], a[0]), _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], a[1])]
        }
    }
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        registers!([_mm256_blendv_ps(b[0], a[0], m[0]), _mm256_blendv_ps(b[1], a[1], m[1])])
    }
    #[inline(always)]
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M {
        registers!([_mm256_and_ps(a[0], b[0]), _mm256_and_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M {
        registers!([_mm256_or_ps(a[0], b[0]), _mm256_or_ps(a[1], b[1])])
    }
    #[inline(always)]
    fn mask_not(self, a: Self::M) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
            [_mm256_xor_ps(ones, a[0]), _mm256_xor_ps(ones, a[1])]
        }
    }
    #[inline(always)]
    fn mask_bits(self, m: Self::M) -> u16 {
        registers!((_mm256_movemask_ps(m[0]) | (_mm256_movemask_ps(m[1]) << 8)) as u16)
    }
    #[inline(always)]
    fn mask_first(self, n: usize) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let n = _mm256_set1_epi32(n.min(LANES) as i32);
            let low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
            [
                _mm256_castsi256_ps(_mm256_cmpgt_epi32(n, low)),
                _mm256_castsi256_ps(_mm256_cmpgt_epi32(n, high)),
            ]
        }
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        registers!([_mm256_set1_epi32(x); 2])
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(8).cast())] }
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe {
            _mm256_storeu_si256(p.cast(), v[0]);
            _mm256_storeu_si256(p.add(8).cast(), v[1]);
        }
    }
    #[inline(always)]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])])
    }
    #[inline(always)]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])])
    }
    #[inline(always)]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_mullo_epi32(a[0], b[0]), _mm256_mullo_epi32(a[1], b[1])])
    }
    #[inline(always)]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])])
    }
    #[inline(always)]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])])
    }
    #[inline(always)]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!([_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])])
    }
    #[inline(always)]
    fn shl_i<const N: i32>(self, a: Self::I) -> Self::I {
        registers!([_mm256_slli_epi32::<N>(a[0]), _mm256_slli_epi32::<N>(a[1])])
    }
    #[inline(always)]
    fn shr_i<const N: i32>(self, a: Self::I) -> Self::I {
        registers!([_mm256_srai_epi32::<N>(a[0]), _mm256_srai_epi32::<N>(a[1])])
    }
    #[inline(always)]
    fn shr_u<const N: i32>(self, a: Self::I) -> Self::I {
        registers!([_mm256_srli_epi32::<N>(a[0]), _mm256_srli_epi32::<N>(a[1])])
    }
    #[inline(always)]
    fn lt_i(self, a: Self::I, b: Self::I) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [
                _mm256_castsi256_ps(_mm256_cmpgt_epi32(b[0], a[0])),
                _mm256_castsi256_ps(_mm256_cmpgt_epi32(b[1], a[1])),
            ]
        }
    }
    #[inline(always)]
    fn eq_i(self, a: Self::I, b: Self::I) -> Self::M {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [
                _mm256_castsi256_ps(_mm256_cmpeq_epi32(a[0], b[0])),
                _mm256_castsi256_ps(_mm256_cmpeq_epi32(a[1], b[1])),
            ]
        }
    }
    #[inline(always)]
    fn select_i(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [
                _mm256_blendv_epi8(b[0], a[0], _mm256_castps_si256(m[0])),
                _mm256_blendv_epi8(b[1], a[1], _mm256_castps_si256(m[1])),
            ]
        }
    }
    #[inline(always)]
    fn bits(self, a: Self::F) -> Self::I {
        registers!([_mm256_castps_si256(a[0]), _mm256_castps_si256(a[1])])
    }
    #[inline(always)]
    fn from_bits(self, a: Self::I) -> Self::F {
        registers!([_mm256_castsi256_ps(a[0]), _mm256_castsi256_ps(a[1])])
    }
    #[inline(always)]
    fn to_int(self, a: Self::F) -> Self::I {
        registers!([_mm256_cvtps_epi32(a[0]), _mm256_cvtps_epi32(a[1])])
    }
    #[inline(always)]
    fn from_int(self, a: Self::I) -> Self::F {
        registers!([_mm256_cvtepi32_ps(a[0]), _mm256_cvtepi32_ps(a[1])])
    }
    #[inline(always)]
    fn splat_d(self, x: f64) -> Self::D {
        registers!([_mm256_set1_pd(x); 4])
    }
    #[inline(always)]
    unsafe fn load_d(self, p: *const f64) -> Self::D {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe {
            [
                _mm256_loadu_pd(p),
                _mm256_loadu_pd(p.add(4)),
                _mm256_loadu_pd(p.add(8)),
                _mm256_loadu_pd(p.add(12)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn store_d(self, p: *mut f64, v: Self::D) {
        for (k, part) in v.into_iter().enumerate() {
            // SAFETY: the caller's 16 elements; the CPU as in `registers`.
            unsafe { _mm256_storeu_pd(p.add(4 * k), part) };
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
        registers!([
            _mm256_add_pd(a[0], b[0]),
            _mm256_add_pd(a[1], b[1]),
            _mm256_add_pd(a[2], b[2]),
            _mm256_add_pd(a[3], b[3])
        ])
    }
    #[inline(always)]
    fn sub_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([
            _mm256_sub_pd(a[0], b[0]),
            _mm256_sub_pd(a[1], b[1]),
            _mm256_sub_pd(a[2], b[2]),
            _mm256_sub_pd(a[3], b[3])
        ])
    }
    #[inline(always)]
    fn mul_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([
            _mm256_mul_pd(a[0], b[0]),
            _mm256_mul_pd(a[1], b[1]),
            _mm256_mul_pd(a[2], b[2]),
            _mm256_mul_pd(a[3], b[3])
        ])
    }
    #[inline(always)]
    fn div_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([
            _mm256_div_pd(a[0], b[0]),
            _mm256_div_pd(a[1], b[1]),
            _mm256_div_pd(a[2], b[2]),
            _mm256_div_pd(a[3], b[3])
        ])
    }
    #[inline(always)]
    fn fma_d(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
        registers!([
            _mm256_fmadd_pd(a[0], b[0], c[0]),
            _mm256_fmadd_pd(a[1], b[1], c[1]),
            _mm256_fmadd_pd(a[2], b[2], c[2]),
            _mm256_fmadd_pd(a[3], b[3], c[3])
        ])
    }
    #[inline(always)]
    fn widen(self, a: Self::F) -> Self::D {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            [
                _mm256_cvtps_pd(_mm256_castps256_ps128(a[0])),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a[0])),
                _mm256_cvtps_pd(_mm256_castps256_ps128(a[1])),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a[1])),
            ]
        }
    }
    #[inline(always)]
    fn narrow(self, a: Self::D) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let p = |k: usize| _mm256_cvtpd_ps(a[k]);
            [_mm256_set_m128(p(1), p(0)), _mm256_set_m128(p(3), p(2))]
        }
    }
    #[inline(always)]
    fn tree_add_d(self, v: Self::D) -> f64 {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let four = _mm256_add_pd(_mm256_add_pd(v[0], v[2]), _mm256_add_pd(v[1], v[3]));
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
    // The instructions give their second operand where the comparison does not hold.
    #[inline(always)]
    fn at_least(self, x: Self::F, bound: Self::F) -> Self::F {
        registers!([_mm256_max_ps(bound[0], x[0]), _mm256_max_ps(bound[1], x[1])])
    }
    #[inline(always)]
    fn at_most(self, x: Self::F, bound: Self::F) -> Self::F {
        registers!([_mm256_min_ps(bound[0], x[0]), _mm256_min_ps(bound[1], x[1])])
    }
}
