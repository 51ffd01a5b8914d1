//! Quantisation of a whole array to 8 bits by its own range: DynamicQuantizeLinear.

use crate::simd::{PlainLoop, vectorized};

/// The least and the greatest of the elements and 0; NaN counts for nothing.
struct Range<'a>(&'a [f32]);

impl PlainLoop for Range<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        const LANES: usize = 16;
        let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
        let chunks = self.0.chunks_exact(LANES);
        for (i, &x) in chunks.remainder().iter().enumerate() {
            low[i] = if x < low[i] { x } else { low[i] };
            high[i] = if x > high[i] { x } else { high[i] };
        }
        for chunk in chunks {
            for i in 0..LANES {
                low[i] = if chunk[i] < low[i] { chunk[i] } else { low[i] };
                high[i] = if chunk[i] > high[i] { chunk[i] } else { high[i] };
            }
        }
        (low.into_iter().fold(0.0, f32::min), high.into_iter().fold(0.0, f32::max))
    }
}

struct Centre<'a> {
    x: &'a [f32],
    scale: f32,
    zero: f32,
    out: &'a mut [i32],
}

impl PlainLoop for Centre<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, scale, zero, out } = self;
        for (out, &x) in out.iter_mut().zip(x) {
            let rounded = (x / scale).round_ties_even() + zero;
            // As the clamp of numbers, but NaN becomes 0.
            let bounded = if rounded >= 0.0 { rounded } else { 0.0 };
            let bounded = if bounded <= 255.0 { bounded } else { 255.0 };
            *out = (bounded - zero) as i32;
        }
    }
}

/// Writes `round(x / scale) + zero`, clipped to 0 … 255, less `zero`; returns the scale.
///
/// `scale = (max - min) / 255` over the elements and 0, or 1 when all are 0, and
/// `zero = round(clip(0 - min / scale, 0, 255))`; all rounding is to nearest, ties to even.
pub(super) fn centred(x: &[f32], out: &mut [i32]) -> f32 {
    let (low, high) = vectorized(Range(x));
    let scale = if high == low { 1.0 } else { (high - low) / 255.0 };
    let zero = (0.0 - low / scale).clamp(0.0, 255.0).round_ties_even();
    vectorized(Centre { x, scale, zero, out });
    scale
}

#[cfg(test)]
mod tests {
    use super::centred;

    #[test]
    fn the_range_includes_zero_and_ties_round_to_even() {
        let mut out = [0; 3];
        assert_eq!(centred(&[0.0, 255.0, 2.5], &mut out).to_bits(), 1f32.to_bits());
        assert_eq!(out, [0, 255, 2]);
        assert_eq!(centred(&[-255.0, -0.5, -1.5], &mut out).to_bits(), 1f32.to_bits());
        assert_eq!(out, [-255, 0, -2]);
    }

    #[test]
    fn zeros_and_nan_divide_by_nothing() {
        let mut out = [7; 2];
        assert_eq!(centred(&[0.0, 0.0], &mut out).to_bits(), 1f32.to_bits());
        assert_eq!(out, [0, 0]);
        centred(&[f32::NAN, 255.0], &mut out);
        assert_eq!(out, [0, 255]);
    }
}
