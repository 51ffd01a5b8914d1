//! The outputs of a class as runs of consecutive positions of the source's plane.

use super::geometry::{AXES, Class};
use crate::simd::LANES;

/// Runs of positions; the outputs of a run lie `pitch` apart in rows of `valid`.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub(super) count: usize,
    pub(super) length: usize,
    /// Plane position of run r: `r / per_depth * depth + r % per_depth * row`.
    per_depth: usize,
    depth: usize,
    row: usize,
    pub(super) pitch: usize,
    pub(super) valid: usize,
}

impl Runs {
    /// Rows that follow each other on both sides as one run for each depth, else a run for each row.
    pub(super) fn rows(class: &Class, extents: [usize; AXES], destination: [usize; AXES]) -> Self {
        let [depth, height, width] = class.count;
        let plane = extents[1] * extents[2];
        let packed = class.step == [1; AXES] && class.count == destination;
        let length = if packed && extents[2] == width { height * width } else { width };
        let per_depth = if length == width { height.max(1) } else { 1 };
        Self {
            count: depth * per_depth,
            length,
            per_depth,
            depth: plane,
            row: extents[2],
            pitch: length.max(1),
            valid: length,
        }
    }

    /// The faster runs for tiles of `panel` rows and at most `most` vectors: whole planes with the
    /// padding between their rows, or rows.
    pub(super) fn vectors(
        class: &Class,
        extents: [usize; AXES],
        destination: [usize; AXES],
        (panel, most): (usize, usize),
    ) -> Self {
        let rows = Self::rows(class, extents, destination);
        let [depth, height, width] = class.count;
        // Outputs without taps read nothing, so the source's plane says nothing about them.
        if rows.length != width || class.tap_count() == 0 {
            return rows;
        }
        let length = (height.max(1) - 1) * extents[2] + width;
        // Half-cycles of one step of a vector: multiply-adds, or loads (a broadcast for each row is
        // shared by the tile's vectors, and vectors often cross lines), or the latency of few chains.
        let each = |vectors: usize| {
            let side = vectors.clamp(1, most) as f64;
            let panel = panel as f64;
            panel.max(panel / side + 1.5).max(8.0 / side)
        };
        let (flat, in_row) = (length.div_ceil(LANES), width.div_ceil(LANES));
        let by_row = (height * in_row) as f64 * each(in_row);
        // Outputs of whole planes pass through the stack.
        if by_row <= 1.1 * flat as f64 * each(flat) {
            return rows;
        }
        let plane = extents[1] * extents[2];
        Self {
            count: depth,
            length,
            per_depth: 1,
            depth: plane,
            row: 0,
            pitch: extents[2],
            valid: width,
        }
    }

    /// The plane position of an element of a run.
    #[inline(always)]
    pub(super) fn position(&self, run: usize, at: usize) -> usize {
        run / self.per_depth * self.depth + run % self.per_depth * self.row + at
    }

    /// The destination offset of an element of a run.
    #[inline(always)]
    pub(super) fn offset(
        &self,
        class: &Class,
        sizes: [usize; AXES],
        run: usize,
        at: usize,
    ) -> usize {
        let height = run % self.per_depth + at / self.pitch;
        let d = class.first[0] + run / self.per_depth * class.step[0];
        let h = class.first[1] + height * class.step[1];
        let w = class.first[2] + at % self.pitch * class.step[2];
        (d * sizes[1] + h) * sizes[2] + w
    }
}
