//! One axis of a resize: every output row is a weighted sum of input rows.

use super::coordinates::Taps;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::real::Real;
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};

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
                if self.inner == 1 {
                    let mut acc = E::default();
                    for (&at, &w) in index.iter().zip(weights) {
                        acc = E::fma_one(w, *base.add(at), acc);
                    }
                    *out = acc;
                    continue;
                }
                let mut j = 0;
                while j < self.inner {
                    let n = (self.inner - j).min(LANES);
                    let mut acc = E::splat(s, E::default());
                    for (&at, &w) in index.iter().zip(weights) {
                        let v = E::load_n(s, base.add(at * self.inner + j), n);
                        acc = E::fma(s, E::splat(s, w), v, acc);
                    }
                    E::store_n(s, out.add(j), n, acc);
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
    let rows = outer * taps.outside.len();
    let job = Shared::new((x, out));
    let grain = ((1 << 14) / (inner * taps.taps.max(1)).max(1)).max(1);
    parallel::for_ranges(rows, grain, |range| {
        let (x, out) = job.get();
        let (start, end) = (range.start, range.end);
        dispatch(Rows { x, out, taps, weights: &weights, input, inner, start, end });
    });
}
