//! f16 to f32 and back, with the CPU's instructions where it has them.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// The f32 of each half, exactly.
pub(crate) fn widen(from: &[f16], to: &mut [f32]) {
    assert!(from.len() == to.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: just checked.
        return unsafe { f16c::widen(from, to) };
    }
    from.convert_to_f32_slice(to);
}

/// Each f32 rounded to nearest even.
pub(crate) fn narrow(from: &[f32], to: &mut [f16]) {
    assert!(from.len() == to.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: just checked.
        return unsafe { f16c::narrow(from, to) };
    }
    to.convert_from_f32_slice(from);
}

#[cfg(target_arch = "x86_64")]
mod f16c {
    use half::f16;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen(from: &[f16], to: &mut [f32]) {
        let (wholes, rest) = from.as_chunks::<8>();
        let (places, left) = to.as_chunks_mut::<8>();
        for (x, y) in wholes.iter().zip(places) {
            // SAFETY: eight elements each.
            unsafe {
                _mm256_storeu_ps(
                    y.as_mut_ptr(),
                    _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast())),
                )
            }
        }
        for (x, y) in rest.iter().zip(left) {
            let half = _mm_cvtsi32_si128(i32::from(x.to_bits()));
            *y = _mm_cvtss_f32(_mm_cvtph_ps(half));
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow(from: &[f32], to: &mut [f16]) {
        let (wholes, rest) = from.as_chunks::<8>();
        let (places, left) = to.as_chunks_mut::<8>();
        for (x, y) in wholes.iter().zip(places) {
            // SAFETY: eight elements each.
            unsafe {
                let half =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr()));
                _mm_storeu_si128(y.as_mut_ptr().cast(), half);
            }
        }
        for (x, y) in rest.iter().zip(left) {
            let half = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(*x));
            *y = f16::from_bits(_mm_extract_epi16::<0>(half) as u16);
        }
    }
}
