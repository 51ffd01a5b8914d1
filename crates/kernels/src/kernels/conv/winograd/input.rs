//! The transform of the inputs: 16 tiles beside each other in the lanes.

use super::{A, B, IN, OUT, Slab, Winograd, point, six};
use crate::simd::{LANES, Simd, WithSimd};

/// The transform of some channels.
pub(super) struct Input<'a> {
    pub(super) convolution: &'a Winograd<'a>,
    pub(super) slab: Slab,
    pub(super) channels: (usize, usize),
    /// Room for [`Input::bytes`].
    pub(super) lines: *mut f32,
}

/// Elements of one phase of a row: each column of a row of tiles, whole vectors of them.
fn pitch(slab: &Slab) -> usize {
    (slab.across + 1).next_multiple_of(LANES) + LANES
}

impl Input<'_> {
    /// Memory of the rows of a channel in four phases each, one row as it is, and a tile's columns.
    pub(super) fn bytes(slab: &Slab) -> usize {
        let rows = OUT * slab.rows + IN - OUT;
        let floats = (rows + 1) * OUT * pitch(slab) + IN * IN * LANES;
        floats * size_of::<f32>()
    }
}

impl WithSimd for Input<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let slab = &self.slab;
        let pitch = pitch(slab);
        let rows = OUT * slab.rows + IN - OUT;
        // SAFETY: the memory of `bytes`, the source's channels and the slab's inputs.
        unsafe {
            let line = self.lines.add(rows * OUT * pitch);
            let half = line.add(OUT * pitch);
            std::slice::from_raw_parts_mut(line, OUT * pitch).fill(0.0);
            for channel in self.channels.0..self.channels.1 {
                self.phases(channel, line, pitch, rows);
                let sources = self.convolution.weights.sources;
                let step = point(sources, slab.columns);
                let to = slab.inputs.add(channel * slab.columns);
                for row in 0..slab.rows {
                    let mut tile = 0;
                    while tile < slab.across {
                        let from = self.lines.add(row * OUT * OUT * pitch + tile);
                        let at = row * slab.across + tile;
                        let n = (slab.tiles() - at).min(LANES);
                        vertical(s, from, pitch, half);
                        horizontal(s, half, to.add(at), step, n);
                        tile += LANES;
                    }
                }
                for at in 0..IN * IN {
                    let to = to.add(at * step);
                    for empty in slab.tiles()..slab.columns {
                        *to.add(empty) = 0.0;
                    }
                }
            }
        }
    }
}

impl Input<'_> {
    /// Copies the rows of a channel with their padding, column 4 q + p of a row to place q of phase p.
    #[inline(always)]
    unsafe fn phases(&self, channel: usize, line: *mut f32, pitch: usize, rows: usize) {
        let Winograd { source_sizes: [height, width], begins, .. } = *self.convolution;
        let sources = self.convolution.weights.sources;
        // SAFETY: rows inside the source, columns inside a line.
        unsafe {
            let plane =
                self.convolution.source.add((self.slab.image * sources + channel) * height * width);
            let columns = width.min((OUT * pitch).saturating_sub(begins[1]));
            for row in 0..rows {
                let to = self.lines.add(row * OUT * pitch);
                let y = (self.slab.first * OUT + row).wrapping_sub(begins[0]);
                if y >= height {
                    std::slice::from_raw_parts_mut(to, OUT * pitch).fill(0.0);
                    continue;
                }
                let from = plane.add(y * width);
                std::ptr::copy_nonoverlapping(from, line.add(begins[1]), columns);
                split(line, to, pitch);
            }
        }
    }
}

/// `to[p * n + q] = from[4 q + p]`.
#[inline(always)]
unsafe fn split(from: *const f32, to: *mut f32, n: usize) {
    // SAFETY: 4 n elements of both.
    unsafe {
        for q in 0..n {
            *to.add(q) = *from.add(4 * q);
            *to.add(n + q) = *from.add(4 * q + 1);
            *to.add(2 * n + q) = *from.add(4 * q + 2);
            *to.add(3 * n + q) = *from.add(4 * q + 3);
        }
    }
}

/// The transform of six vectors.
#[inline(always)]
fn transform<S: Simd>(s: S, d: [S::F; IN]) -> [S::F; IN] {
    let (a, b) = (s.splat(A), s.splat(B));
    let (minus_a2, minus_b2) = (s.splat(-A * A), s.splat(-B * B));
    let (product, minus_sum) = (s.splat(A * A * B * B), s.splat(-A * A - B * B));
    let even_a = s.fma(minus_b2, d[2], d[4]);
    let odd_a = s.mul(a, s.fma(minus_b2, d[1], d[3]));
    let even_b = s.fma(minus_a2, d[2], d[4]);
    let odd_b = s.mul(b, s.fma(minus_a2, d[1], d[3]));
    [
        s.fma(product, d[0], s.fma(minus_sum, d[2], d[4])),
        s.add(even_a, odd_a),
        s.sub(even_a, odd_a),
        s.add(even_b, odd_b),
        s.sub(even_b, odd_b),
        s.fma(product, d[1], s.fma(minus_sum, d[3], d[5])),
    ]
}

/// Down the six columns of 16 tiles: `half[i * 6 + j]` is row i, column j.
#[inline(always)]
unsafe fn vertical<S: Simd>(s: S, from: *const f32, pitch: usize, half: *mut f32) {
    for j in 0..IN {
        // SAFETY: six rows of four phases, and room for 36 vectors.
        unsafe {
            let from = from.add(j % OUT * pitch + j / OUT);
            let row = OUT * pitch;
            let d = six(s, from, row);
            let t = transform(s, d);
            for i in 0..IN {
                s.store(half.add((i * IN + j) * LANES), t[i]);
            }
        }
    }
}

/// Across the six rows: `to[(i * 6 + j) * step]` gets the `n` first lanes of row i, column j.
#[inline(always)]
unsafe fn horizontal<S: Simd>(s: S, half: *const f32, to: *mut f32, step: usize, n: usize) {
    for i in 0..IN {
        // SAFETY: 36 vectors, and n elements for each of them.
        unsafe {
            let from = half.add(i * IN * LANES);
            let d = six(s, from, LANES);
            let t = transform(s, d);
            let to = to.add(i * IN * step);
            if n == LANES {
                for j in 0..IN {
                    s.store(to.add(j * step), t[j]);
                }
            } else {
                for j in 0..IN {
                    s.store_n(to.add(j * step), n, t[j]);
                }
            }
        }
    }
}
