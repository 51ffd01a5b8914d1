//! Columns that lie along memory turned into the rows of a packed panel.

use crate::dtype::Element;

/// `to[k * width + j] = from[j][k]` for `steps` of k, where column j begins at `column(j)` and its
/// elements follow each other. Without `past`, nothing beyond `steps` elements of a column is read;
/// with it, up to 8 more may be.
///
/// # Safety
/// The columns exist as said, and `to` has room for `steps * width` elements.
pub(crate) unsafe fn gather_columns<E: Element>(
    to: *mut E,
    width: usize,
    columns: usize,
    steps: usize,
    past: bool,
    column: impl Fn(usize) -> *const E,
) {
    let mut j = 0;
    #[cfg(not(target_arch = "x86_64"))]
    let _ = past;
    #[cfg(target_arch = "x86_64")]
    if size_of::<E>() == 4 && crate::simd::isa() != crate::simd::Isa::Scalar && steps >= 4 {
        while j < columns {
            let count = (columns - j).min(8);
            // The last columns stand in for missing ones, whose results are not stored.
            let mut from = [std::ptr::null::<f32>(); 8];
            for (i, from) in from.iter_mut().enumerate() {
                *from = column(j + i.min(count - 1)).cast();
            }
            // SAFETY: the CPU has AVX2, and the caller's promise.
            unsafe {
                let done = avx2::strip(to.add(j).cast(), width, count, steps, past, &from);
                for i in 0..count {
                    let from = column(j + i);
                    for k in done..steps {
                        *to.add(k * width + j + i) = *from.add(k);
                    }
                }
            }
            j += count;
        }
        return;
    }
    while j < columns {
        let from = column(j);
        for k in 0..steps {
            // SAFETY: the caller's promise.
            unsafe { *to.add(k * width + j) = *from.add(k) };
        }
        j += 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Turns eight columns (`count` of them stored), eight steps at a time; returns the steps done.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn strip(
        to: *mut f32,
        width: usize,
        count: usize,
        steps: usize,
        past: bool,
        from: &[*const f32; 8],
    ) -> usize {
        let mut k = 0;
        // SAFETY: columns have `steps` elements, and 8 more when `past`.
        unsafe {
            while k + 8 <= steps || past && k < steps {
                let rows = (steps - k).min(8);
                let block = turned(from, k);
                for (i, row) in block.iter().enumerate().take(rows) {
                    store(to.add((k + i) * width), *row, count);
                }
                k += rows;
            }
        }
        k
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn turned(from: &[*const f32; 8], k: usize) -> [__m256; 8] {
        // SAFETY: eight elements from k on exist in each column.
        let [a, b, c, d, e, f, g, h] = unsafe {
            [
                _mm256_loadu_ps(from[0].add(k)),
                _mm256_loadu_ps(from[1].add(k)),
                _mm256_loadu_ps(from[2].add(k)),
                _mm256_loadu_ps(from[3].add(k)),
                _mm256_loadu_ps(from[4].add(k)),
                _mm256_loadu_ps(from[5].add(k)),
                _mm256_loadu_ps(from[6].add(k)),
                _mm256_loadu_ps(from[7].add(k)),
            ]
        };
        let (ab, ab2) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (cd, cd2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        let (ef, ef2) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
        let (gh, gh2) = (_mm256_unpacklo_ps(g, h), _mm256_unpackhi_ps(g, h));
        let low = [
            _mm256_shuffle_ps::<0x44>(ab, cd),
            _mm256_shuffle_ps::<0xEE>(ab, cd),
            _mm256_shuffle_ps::<0x44>(ab2, cd2),
            _mm256_shuffle_ps::<0xEE>(ab2, cd2),
        ];
        let high = [
            _mm256_shuffle_ps::<0x44>(ef, gh),
            _mm256_shuffle_ps::<0xEE>(ef, gh),
            _mm256_shuffle_ps::<0x44>(ef2, gh2),
            _mm256_shuffle_ps::<0xEE>(ef2, gh2),
        ];
        [
            _mm256_permute2f128_ps::<0x20>(low[0], high[0]),
            _mm256_permute2f128_ps::<0x20>(low[1], high[1]),
            _mm256_permute2f128_ps::<0x20>(low[2], high[2]),
            _mm256_permute2f128_ps::<0x20>(low[3], high[3]),
            _mm256_permute2f128_ps::<0x31>(low[0], high[0]),
            _mm256_permute2f128_ps::<0x31>(low[1], high[1]),
            _mm256_permute2f128_ps::<0x31>(low[2], high[2]),
            _mm256_permute2f128_ps::<0x31>(low[3], high[3]),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(to: *mut f32, row: __m256, count: usize) {
        // SAFETY: `count` elements are written.
        unsafe {
            if count == 8 {
                _mm256_storeu_ps(to, row);
                return;
            }
            let mut half = _mm256_castps256_ps128(row);
            let (mut to, mut left) = (to, count);
            if left >= 4 {
                _mm_storeu_ps(to, half);
                half = _mm256_extractf128_ps::<1>(row);
                to = to.add(4);
                left -= 4;
            }
            if left >= 2 {
                _mm_storel_pd(to.cast(), _mm_castps_pd(half));
                half = _mm_movehl_ps(half, half);
                to = to.add(2);
                left -= 2;
            }
            if left == 1 {
                _mm_store_ss(to, half);
            }
        }
    }
}
