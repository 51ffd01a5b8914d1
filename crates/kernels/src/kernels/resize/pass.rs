//! One axis of a resize: every output row is a weighted sum of input rows.

use super::coordinates::Taps;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::real::Real;
use crate::parallel;
use crate::simd::{LANES, PlainLoop, Simd, WithSimd, dispatch, vectorized};

/// Rows of `inner` elements: `out[o, j] = Σ weight * x[o, index]`, a chain of fused multiply-adds from
/// +0.0 over the taps ascending; a place with one tap of weight 1 is copied.
#[derive(Clone, Copy)]
struct Rows<'a, E> {
    x: *const E,
    out: *mut E,
    taps: &'a Taps,
    weights: &'a [E],
    input: usize,
    inner: usize,
    start: usize,
    end: usize,
}

impl<E: Real> WithSimd for Rows<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let places = self.taps.outside.len();
        let count = self.taps.taps;
        for row in self.start..self.end {
            let (outer, place) = (row / places, row % places);
            let taps = place * count..(place + 1) * count;
            let (index, weights) = (&self.taps.index[taps.clone()], &self.weights[taps]);
            // SAFETY: a row of the output and rows of the input.
            unsafe {
                let base = self.x.add(outer * self.input * self.inner);
                let out = self.out.add(row * self.inner);
                if count == 1 {
                    let from = base.add(index[0] * self.inner);
                    std::ptr::copy_nonoverlapping(from, out, self.inner);
                    continue;
                }
                let mut j = 0;
                while j < self.inner {
                    let n = (self.inner - j).min(LANES);
                    let mut acc = E::splat(s, E::default());
                    for (&at, &w) in index.iter().zip(weights) {
                        let p = base.add(at * self.inner + j);
                        let v = if n == LANES { E::load(s, p) } else { E::load_n(s, p, n) };
                        acc = E::v_fma(s, E::splat(s, w), v, acc);
                    }
                    if n == LANES {
                        E::store(s, out.add(j), acc);
                    } else {
                        E::store_n(s, out.add(j), n, acc);
                    }
                    j += LANES;
                }
            }
        }
    }
}

/// Resamples the middle axis of (outer, input, inner) elements at `x` into `out`.
///
/// # Safety
/// The operands have these sizes.
pub(super) unsafe fn resample<E: Real>(
    x: *const E,
    out: *mut E,
    taps: &Taps,
    outer: usize,
    input: usize,
    inner: usize,
) {
    let weights: Vec<E> = taps.weight.iter().map(|&w| E::from_f64(w)).collect();
    if inner == 1 && taps.taps > 1 {
        // SAFETY: the caller's promise.
        return unsafe { resample_rows(x, out, taps, &weights, outer, input) };
    }
    let rows = outer * taps.outside.len();
    let job = Shared::new((x, out));
    let grain = ((1 << 14) / (inner * taps.taps.max(1)).max(1)).max(1);
    parallel::for_ranges(rows, grain, |range| {
        let (x, out) = job.get();
        let (start, end) = (range.start, range.end);
        dispatch(Rows { x, out, taps, weights: &weights, input, inner, start, end });
    });
}

/// [`resample`] of the last axis: neighbouring outputs of a row together, tap after tap.
///
/// # Safety
/// As for [`resample`].
unsafe fn resample_rows<E: Real>(
    x: *const E,
    out: *mut E,
    taps: &Taps,
    weights: &[E],
    outer: usize,
    input: usize,
) {
    let (places, count) = (taps.outside.len(), taps.taps);
    assert!(taps.index.iter().all(|&i| i < input));
    // Tap after tap instead of place after place.
    let by_tap = |i: usize| i % places * count + i / places;
    let index: Vec<usize> = (0..places * count).map(|i| taps.index[by_tap(i)]).collect();
    let weights: Vec<E> = (0..places * count).map(|i| weights[by_tap(i)]).collect();
    let job = Shared::new((x, out));
    let grain = ((1 << 14) / (places * count)).max(1);
    parallel::for_ranges(outer, grain, |range| {
        let (x, out) = job.get();
        for row in range {
            // SAFETY: a row of the input and one of the output.
            let (x, out) = unsafe {
                (
                    std::slice::from_raw_parts(x.add(row * input), input),
                    std::slice::from_raw_parts_mut(out.add(row * places), places),
                )
            };
            vectorized(LastRow { x, out, index: &index, weights: &weights });
        }
    });
}

struct LastRow<'a, E> {
    x: &'a [E],
    out: &'a mut [E],
    index: &'a [usize],
    weights: &'a [E],
}

impl<E: Real> PlainLoop for LastRow<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let places = self.out.len();
        if self.index.len() == 2 * places {
            let (first, second) = self.index.split_at(places);
            let (w, v) = self.weights.split_at(places);
            for j in 0..places {
                // SAFETY: all indices are below the row's length.
                let (a, b) =
                    unsafe { (*self.x.get_unchecked(first[j]), *self.x.get_unchecked(second[j])) };
                self.out[j] = E::fma_one(v[j], b, E::fma_one(w[j], a, E::default()));
            }
            return;
        }
        self.out.fill(E::default());
        let taps = self.index.chunks_exact(places).zip(self.weights.chunks_exact(places));
        for (index, weights) in taps {
            for ((acc, &i), &w) in self.out.iter_mut().zip(index).zip(weights) {
                // SAFETY: as above.
                *acc = E::fma_one(w, unsafe { *self.x.get_unchecked(i) }, *acc);
            }
        }
    }
}
