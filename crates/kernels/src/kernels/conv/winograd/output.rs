//! The transform of the products into outputs: 16 tiles beside each other in the lanes.

use super::{A, B, IN, OUT, Slab, Winograd, point, six};
use crate::kernels::epilogue::Area;
use crate::simd::{LANES, Simd, WithSimd};

/// The transform of some channels.
pub(super) struct Output<'a> {
    pub(super) convolution: &'a Winograd<'a>,
    pub(super) slab: Slab,
    pub(super) channels: (usize, usize),
    /// Room for [`Output::bytes`].
    pub(super) lines: *mut f32,
}

fn pitch(slab: &Slab) -> usize {
    slab.across.next_multiple_of(LANES)
}

impl Output<'_> {
    /// Memory of a row of tiles in four phases for each of its four rows, of one row of outputs and of
    /// a tile's columns.
    pub(super) fn bytes(slab: &Slab) -> usize {
        ((OUT + 1) * OUT * pitch(slab) + OUT * IN * LANES) * size_of::<f32>()
    }
}

impl WithSimd for Output<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let slab = &self.slab;
        let pitch = pitch(slab);
        let Winograd { destination_sizes: [height, width], relu, epilogue, .. } = *self.convolution;
        let destinations = self.convolution.weights.destinations;
        let step = point(destinations, slab.columns);
        // SAFETY: the memory of `bytes`, the slab's outputs and the destination's channels.
        unsafe {
            let line = self.lines.add(OUT * OUT * pitch);
            let half = line.add(OUT * pitch);
            for channel in self.channels.0..self.channels.1 {
                let bias = self.convolution.bias.map_or(0.0, |bias| *bias.add(channel));
                let bias = s.splat(bias);
                let from = slab.outputs.add(channel * slab.columns).cast_const();
                let plane = (slab.image * destinations + channel) * height * width;
                let plane = self.convolution.destination.add(plane);
                for row in 0..slab.rows {
                    let mut tile = 0;
                    while tile < slab.across {
                        vertical(s, from.add(row * slab.across + tile), step, half);
                        horizontal(s, half, self.lines.add(tile), pitch, bias, relu);
                        tile += LANES;
                    }
                    let first = (slab.first + row) * OUT;
                    for y in first..(first + OUT).min(height) {
                        let from = self.lines.add((y - first) * OUT * pitch);
                        let to = plane.add(y * width);
                        if width == OUT * slab.across {
                            join(from, to, pitch, slab.across);
                        } else {
                            join(from, line, pitch, slab.across);
                            std::ptr::copy_nonoverlapping(line, to, width);
                        }
                    }
                }
                if let Some(tail) = epilogue {
                    let first = slab.first * OUT;
                    let rows = (slab.rows * OUT).min(height - first);
                    let (at, n) = (plane.add(first * width), rows * width);
                    let area = Area { at, stride: n, rows: 1, n, channel, channel_step: 0 };
                    tail.whole.apply(S::ISA, area);
                }
            }
        }
    }
}

/// `to[4 q + p] = from[p * pitch + q]` for `n` of q.
#[inline(always)]
unsafe fn join(from: *const f32, to: *mut f32, pitch: usize, n: usize) {
    // SAFETY: n elements of four phases, and 4 n of `to`.
    unsafe {
        for q in 0..n {
            *to.add(4 * q) = *from.add(q);
            *to.add(4 * q + 1) = *from.add(pitch + q);
            *to.add(4 * q + 2) = *from.add(2 * pitch + q);
            *to.add(4 * q + 3) = *from.add(3 * pitch + q);
        }
    }
}

/// Four outputs of six products.
#[inline(always)]
fn transform<S: Simd>(s: S, m: [S::F; IN]) -> [S::F; OUT] {
    let (sum_a, sum_b) = (s.add(m[1], m[2]), s.add(m[3], m[4]));
    let (rest_a, rest_b) = (s.sub(m[1], m[2]), s.sub(m[3], m[4]));
    [
        s.add(s.add(m[0], sum_a), sum_b),
        s.fma(s.splat(A), rest_a, s.mul(s.splat(B), rest_b)),
        s.fma(s.splat(A * A), sum_a, s.mul(s.splat(B * B), sum_b)),
        s.fma(s.splat(A * A * A), rest_a, s.fma(s.splat(B * B * B), rest_b, m[5])),
    ]
}

/// Down the six columns: `half[i * 6 + j]` is output row i, column j.
#[inline(always)]
unsafe fn vertical<S: Simd>(s: S, from: *const f32, step: usize, half: *mut f32) {
    for j in 0..IN {
        // SAFETY: 36 rows of the slab's outputs, and room for 24 vectors.
        unsafe {
            let from = from.add(j * step);
            let row = IN * step;
            let m = six(s, from, row);
            let t = transform(s, m);
            for i in 0..OUT {
                s.store(half.add((i * IN + j) * LANES), t[i]);
            }
        }
    }
}

/// Across the four rows: output (i, j) of 16 tiles to `to[(i * 4 + j) * pitch]`.
#[inline(always)]
unsafe fn horizontal<S: Simd>(
    s: S,
    half: *const f32,
    to: *mut f32,
    pitch: usize,
    bias: S::F,
    relu: bool,
) {
    for i in 0..OUT {
        // SAFETY: 24 vectors, and four phases of four rows.
        unsafe {
            let from = half.add(i * IN * LANES);
            let m = six(s, from, LANES);
            let t = transform(s, m);
            for j in 0..OUT {
                let y = s.add(t[j], bias);
                let y = if relu { s.relu(y) } else { y };
                s.store(to.add((i * OUT + j) * pitch), y);
            }
        }
    }
}
