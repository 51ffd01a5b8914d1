//! 16 lanes in one register (f64: two).

use super::{Isa, LANES, PlainLoop, Simd, WithSimd};
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub struct Avx512(());

/// Runs `op` with these instructions.
///
/// # Safety
/// The CPU has the features named here.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,fma,avx2")]
pub unsafe fn run<O: WithSimd>(op: O) -> O::Output {
    op.run(Avx512(()))
}

/// Runs a plain loop compiled with these instructions.
///
/// # Safety
/// The CPU has the features named here.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,fma,avx2")]
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

impl Simd for Avx512 {
    const ISA: Isa = Isa::Avx512;
    const GEMM_ROWS: usize = 14;
    const GEMM_VECTORS: usize = 2;
    type F = __m512;
    type I = __m512i;
    type D = [__m512d; 2];
    type M = __mmask16;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        registers!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, p: *const f32) -> Self::F {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32, v: Self::F) {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::F {
        // SAFETY: masked to the caller's n elements; the CPU as in `registers`.
        unsafe { _mm512_maskz_loadu_ps(self.mask_first(n), p) }
    }
    #[inline(always)]
    unsafe fn store_n(self, p: *mut f32, n: usize, v: Self::F) {
        // SAFETY: masked to the caller's n elements; the CPU as in `registers`.
        unsafe { _mm512_mask_storeu_ps(p, self.mask_first(n), v) }
    }
    #[inline(always)]
    unsafe fn load_even(self, p: *const f32) -> Self::F {
        let each =
            registers!(_mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 14, 12, 10, 8, 6, 4, 2, 0));
        // SAFETY: the last load ends at element 30; the CPU as in `registers`.
        unsafe { _mm512_permutex2var_ps(self.load(p), each, self.load(p.add(LANES - 1))) }
    }
    #[inline(always)]
    fn to_array(self, v: Self::F) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        // SAFETY: an array of 16; the CPU as in `registers`.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), v) };
        out
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        registers!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        registers!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        registers!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        registers!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        registers!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        registers!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        registers!(_mm512_abs_ps(a))
    }
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        registers!(_mm512_xor_ps(a, _mm512_set1_ps(-0.0)))
    }
    #[inline(always)]
    fn floor(self, a: Self::F) -> Self::F {
        registers!(_mm512_roundscale_ps::<9>(a))
    }
    #[inline(always)]
    fn ceil(self, a: Self::F) -> Self::F {
        registers!(_mm512_roundscale_ps::<10>(a))
    }
    #[inline(always)]
    fn trunc(self, a: Self::F) -> Self::F {
        registers!(_mm512_roundscale_ps::<11>(a))
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        registers!(_mm512_roundscale_ps::<8>(a))
    }
    #[inline(always)]
    fn copysign(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let sign = _mm512_set1_ps(-0.0);
            _mm512_or_ps(_mm512_andnot_ps(sign, a), _mm512_and_ps(sign, b))
        }
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        registers!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        registers!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b))
    }
    #[inline(always)]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        registers!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b))
    }
    #[inline(always)]
    fn is_nan(self, a: Self::F) -> Self::M {
        registers!(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a))
    }
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        registers!(_mm512_mask_blend_ps(m, b, a))
    }
    #[inline(always)]
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M {
        a & b
    }
    #[inline(always)]
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M {
        a | b
    }
    #[inline(always)]
    fn mask_not(self, a: Self::M) -> Self::M {
        !a
    }
    #[inline(always)]
    fn mask_bits(self, m: Self::M) -> u16 {
        m
    }
    #[inline(always)]
    fn mask_first(self, n: usize) -> Self::M {
        ((1u32 << n.min(LANES)) - 1) as u16
    }
    #[inline(always)]
    fn mask_of(self, bits: u16) -> Self::M {
        bits
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        registers!(_mm512_set1_epi32(x))
    }
    #[inline(always)]
    unsafe fn load_i(self, p: *const i32) -> Self::I {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_low(self, p: *mut u16, n: usize, v: Self::I) {
        // Narrowing stores are slow on some CPUs, so the vector is narrowed before.
        // SAFETY: masked to the caller's n elements; the CPU as in `registers`.
        unsafe {
            let low = _mm512_cvtepi32_epi16(v);
            if n == LANES {
                _mm256_storeu_si256(p.cast(), low);
            } else {
                _mm256_mask_storeu_epi16(p.cast(), self.mask_first(n), low);
            }
        }
    }
    #[inline(always)]
    unsafe fn store_i(self, p: *mut i32, v: Self::I) {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_or_si512(a, b))
    }
    #[inline(always)]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn shl_i<const N: i32>(self, a: Self::I) -> Self::I {
        registers!(_mm512_sll_epi32(a, _mm_cvtsi32_si128(N)))
    }
    #[inline(always)]
    fn shr_i<const N: i32>(self, a: Self::I) -> Self::I {
        registers!(_mm512_sra_epi32(a, _mm_cvtsi32_si128(N)))
    }
    #[inline(always)]
    fn shr_u<const N: i32>(self, a: Self::I) -> Self::I {
        registers!(_mm512_srl_epi32(a, _mm_cvtsi32_si128(N)))
    }
    #[inline(always)]
    fn lt_i(self, a: Self::I, b: Self::I) -> Self::M {
        registers!(_mm512_cmplt_epi32_mask(a, b))
    }
    #[inline(always)]
    fn eq_i(self, a: Self::I, b: Self::I) -> Self::M {
        registers!(_mm512_cmpeq_epi32_mask(a, b))
    }
    #[inline(always)]
    fn select_i(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I {
        registers!(_mm512_mask_blend_epi32(m, b, a))
    }
    #[inline(always)]
    fn bits(self, a: Self::F) -> Self::I {
        registers!(_mm512_castps_si512(a))
    }
    #[inline(always)]
    fn from_bits(self, a: Self::I) -> Self::F {
        registers!(_mm512_castsi512_ps(a))
    }
    #[inline(always)]
    fn to_int(self, a: Self::F) -> Self::I {
        registers!(_mm512_cvtps_epi32(a))
    }
    #[inline(always)]
    fn from_int(self, a: Self::I) -> Self::F {
        registers!(_mm512_cvtepi32_ps(a))
    }
    #[inline(always)]
    fn scale_by_power(self, a: Self::F, _: Self::I, whole: Self::F) -> Self::F {
        // The instruction has the same single rounding.
        registers!(_mm512_scalef_ps(a, whole))
    }
    #[inline(always)]
    fn splat_d(self, x: f64) -> Self::D {
        registers!([_mm512_set1_pd(x); 2])
    }
    #[inline(always)]
    unsafe fn load_d(self, p: *const f64) -> Self::D {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe { [_mm512_loadu_pd(p), _mm512_loadu_pd(p.add(8))] }
    }
    #[inline(always)]
    unsafe fn store_d(self, p: *mut f64, v: Self::D) {
        // SAFETY: the caller's 16 elements; the CPU as in `registers`.
        unsafe {
            _mm512_storeu_pd(p, v[0]);
            _mm512_storeu_pd(p.add(8), v[1]);
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
        registers!([_mm512_add_pd(a[0], b[0]), _mm512_add_pd(a[1], b[1])])
    }
    #[inline(always)]
    fn sub_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([_mm512_sub_pd(a[0], b[0]), _mm512_sub_pd(a[1], b[1])])
    }
    #[inline(always)]
    fn mul_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([_mm512_mul_pd(a[0], b[0]), _mm512_mul_pd(a[1], b[1])])
    }
    #[inline(always)]
    fn div_d(self, a: Self::D, b: Self::D) -> Self::D {
        registers!([_mm512_div_pd(a[0], b[0]), _mm512_div_pd(a[1], b[1])])
    }
    #[inline(always)]
    fn fma_d(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D {
        registers!([_mm512_fmadd_pd(a[0], b[0], c[0]), _mm512_fmadd_pd(a[1], b[1], c[1])])
    }
    #[inline(always)]
    fn widen(self, a: Self::F) -> Self::D {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let high = _mm512_extractf32x8_ps::<1>(a);
            [_mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(high)]
        }
    }
    #[inline(always)]
    fn narrow(self, a: Self::D) -> Self::F {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(a[0]));
            _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(a[1]))
        }
    }
    #[inline(always)]
    fn tree_add_d(self, v: Self::D) -> f64 {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let eight = _mm512_add_pd(v[0], v[1]);
            let low = _mm512_castpd512_pd256(eight);
            let four = _mm256_add_pd(low, _mm512_extractf64x4_pd::<1>(eight));
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
    #[inline(always)]
    fn tree_add(self, v: Self::F) -> f32 {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let low = _mm512_castps512_ps256(v);
            let eight = _mm256_add_ps(low, _mm512_extractf32x8_ps::<1>(v));
            let low = _mm256_castps256_ps128(eight);
            let four = _mm_add_ps(low, _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    fn tree_max_of_numbers(self, v: Self::F) -> f32 {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let low = _mm512_castps512_ps256(v);
            let eight = _mm256_max_ps(low, _mm512_extractf32x8_ps::<1>(v));
            let low = _mm256_castps256_ps128(eight);
            let four = _mm_max_ps(low, _mm256_extractf128_ps::<1>(eight));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    fn tree_max(self, v: Self::F) -> f32 {
        // SAFETY: the CPU as in `registers`; no memory is touched.
        unsafe {
            let (x, y) = (_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
            let m =
                _mm256_cmp_ps_mask::<_CMP_GT_OQ>(x, y) | _mm256_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let eight = _mm256_mask_blend_ps(m, y, x);
            let larger = |x, y| {
                let m = _mm_cmp_ps_mask::<_CMP_GT_OQ>(x, y) | _mm_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                _mm_mask_blend_ps(m, y, x)
            };
            let four = larger(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = larger(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(larger(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    // The instructions give their second operand where the comparison does not hold.
    #[inline(always)]
    fn at_least(self, x: Self::F, bound: Self::F) -> Self::F {
        registers!(_mm512_max_ps(bound, x))
    }
    #[inline(always)]
    fn at_most(self, x: Self::F, bound: Self::F) -> Self::F {
        registers!(_mm512_min_ps(bound, x))
    }
}
