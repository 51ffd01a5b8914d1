//! The products of a weight gradient: output channels by taps, summed over images and positions.
//!
//! Blocks of output rows are packed one after another (the gradient as left operand, what the taps read
//! as right one) and continue the same accumulators, so the chain runs over (n, output axes) ascending.

use super::few;
use super::geometry::{AXES, Class};
use super::source::Layout;
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::microkernel::Start;
use crate::kernels::gemm::packing::{RowPanels, panel_width};
use crate::kernels::gemm::product::{Packed, parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::transpose::gather_columns;
use crate::parallel::num_threads;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES};

/// Positions that one block holds, if rows are not longer.
const BLOCK: usize = 256;
/// Elements that packing may read past the end of a copied source.
const SLACK: usize = 16;

/// One weight gradient: extents and addresses of contiguous tensors.
#[derive(Clone, Copy)]
pub(super) struct Job<'a, E> {
    pub(super) layout: &'a Layout,
    pub(super) class: &'a Class,
    pub(super) images: usize,
    pub(super) groups: usize,
    /// Output channels and input channels of one group.
    pub(super) m: usize,
    pub(super) channels: usize,
    pub(super) taps: usize,
    pub(super) output: [usize; AXES],
    pub(super) panels: RowPanels,
    pub(super) g: *const E,
    pub(super) x: *const E,
    pub(super) dw: *mut E,
}

/// What one part computes: groups, row panels and column panels.
#[derive(Clone, Copy)]
struct Part {
    groups: (usize, usize),
    rows: (usize, usize),
    columns: (usize, usize),
}

impl<E: Real> Job<'_, E> {
    pub(super) fn n(&self) -> usize {
        self.channels * self.taps
    }

    /// Elements of a copy of channels `c0..c1`.
    pub(super) fn copied(&self, c0: usize, c1: usize) -> usize {
        if self.layout.in_place { 0 } else { (c1 - c0) * self.layout.channel + SLACK }
    }

    /// Columns of a packed panel.
    fn width(&self, isa: Isa) -> usize {
        if self.n() <= LANES { LANES } else { panel_width::<E>(isa) }
    }

    /// Computes all weights on the pool.
    ///
    /// # Errors
    /// `Memory` when there is no room to pack.
    pub(super) fn run(&self, isa: Isa) -> Result<()> {
        if few::fits(self) {
            return few::run(self, isa);
        }
        let positions = self.images * self.output.iter().product::<usize>();
        let each = 2 * self.m * self.n() * positions;
        let column_panels = self.n().div_ceil(self.width(isa));
        let job = Shared::new(*self);
        let wanted = parts_of(each);
        if wanted == 1 {
            let parts = parts_of(each.saturating_mul(self.groups)).min(self.groups);
            return try_for_each(parts, |part| {
                let job = job.get();
                let groups = (job.groups * part / parts, job.groups * (part + 1) / parts);
                let rows = (0, job.panels.count);
                job.part(isa, Part { groups, rows, columns: (0, column_panels) })
            });
        }
        // Every part packs for itself, so few wide parts are best; each weight is a chain of its own,
        // so no bit depends on how many there are.
        let wanted = wanted.min(num_threads()).min(4);
        let by_columns = wanted.min(column_panels);
        let by_rows = (wanted / by_columns).clamp(1, self.panels.count);
        try_for_each(self.groups * by_columns * by_rows, |part| {
            let (group, rest) = (part / (by_columns * by_rows), part % (by_columns * by_rows));
            let (i, j) = (rest / by_columns, rest % by_columns);
            let job = job.get();
            let rows = job.panels.count;
            let part = Part {
                groups: (group, group + 1),
                rows: (rows * i / by_rows, rows * (i + 1) / by_rows),
                columns: (column_panels * j / by_columns, column_panels * (j + 1) / by_columns),
            };
            job.part(isa, part)
        })
    }

    fn part(&self, isa: Isa, part: Part) -> Result<()> {
        let width = self.width(isa);
        let (first, end) = (part.columns.0 * width, (part.columns.1 * width).min(self.n()));
        let (c0, c1) = (first / self.taps, end.div_ceil(self.taps));
        let [od, oh, ow] = self.output;
        let image_rows = od * oh;
        let rows_total = self.images * image_rows;
        let block_rows = (BLOCK / ow.max(1)).clamp(1, rows_total.max(1));
        let steps = block_rows * ow;
        let (r0, r1) = (self.panels.start(part.rows.0), self.panels.start(part.rows.1));
        let item = size_of::<E>();
        let mut copy = Scratch::new("ConvGradWeight", self.copied(c0, c1) * item)?;
        let mut left = Scratch::new("ConvGradWeight", (r1 - r0) * steps * item)?;
        let packed = (part.columns.1 - part.columns.0) * width * steps;
        let mut right = Scratch::new("ConvGradWeight", packed * item)?;
        let mut offsets = Scratch::new("ConvGradWeight", (end - first) * size_of::<u32>())?;
        let offsets = self.offsets(offsets.as_mut::<u32>(), first, end, c0);
        let copy = copy.as_mut::<E>().as_mut_ptr();
        let (left, right) = (left.as_mut::<E>().as_mut_ptr(), right.as_mut::<E>().as_mut_ptr());
        for group in part.groups.0..part.groups.1 {
            // SAFETY: the tensors have the job's extents, the scratch memory the sizes above.
            unsafe {
                let mut at_image = usize::MAX;
                let mut source = self.x;
                let mut row = 0;
                while row < rows_total {
                    let until = (row + block_rows).min(rows_total);
                    let steps = (until - row) * ow;
                    for r in row..until {
                        let (image, inside) = (r / image_rows, r % image_rows);
                        if image != at_image {
                            source = self.image(image, group, c0, c1, copy);
                            at_image = image;
                        }
                        let step = (r - row) * ow;
                        let g = self.g.add(
                            ((image * self.groups + group) * self.m * image_rows + inside) * ow,
                        );
                        self.pack_left(left, g, part.rows, r0, steps, step);
                        let (d, h) = (inside / oh, inside % oh);
                        let [_, height, pitch] = self.layout.extents;
                        let from = source.add((d * height + h) * pitch);
                        self.pack_right(right, from, offsets, width, steps, step);
                    }
                    let columns = self.n();
                    let c = self.dw.add(group * self.m * columns + first);
                    let start = if row == 0 {
                        Start::Zero
                    } else {
                        Start::Load { ptr: c, stride: columns as isize }
                    };
                    let product = Packed {
                        k: steps,
                        n: end - first,
                        panels: self.panels,
                        rows: part.rows,
                        a: left.wrapping_sub(r0 * steps),
                        b: right,
                        width,
                        start,
                        c,
                        c_rows: columns as isize,
                    };
                    product.run(isa);
                    row = until;
                }
            }
        }
        Ok(())
    }

    /// Where each column's tap reads, relative to channel `c0` of the source.
    pub(super) fn offsets<'t>(
        &self,
        to: &'t mut [u32],
        first: usize,
        end: usize,
        c0: usize,
    ) -> &'t [u32] {
        let [td, th, tw] = &self.class.taps;
        for column in first..end {
            let (c, tap) = (column / self.taps, column % self.taps);
            let shifts = [
                td[tap / (th.len() * tw.len())].1,
                th[tap / tw.len() % th.len()].1,
                tw[tap % tw.len()].1,
            ];
            let inside = self.layout.offset(shifts);
            to[column - first] = ((c - c0) * self.layout.channel + inside) as u32;
        }
        &to[..end - first]
    }

    /// Channels `c0..c1` of one image and group: in place, or copied with their padding.
    ///
    /// # Safety
    /// The job's tensors, and room for [`Self::copied`] elements.
    pub(super) unsafe fn image(
        &self,
        image: usize,
        group: usize,
        c0: usize,
        c1: usize,
        to: *mut E,
    ) -> *const E {
        let size: usize = self.layout.sizes.iter().product();
        // SAFETY: channels of the input; the copy has room for them and the slack.
        unsafe {
            let x = self.x.add((image * self.groups + group) * self.channels * size);
            if self.layout.in_place {
                return x.add(c0 * size);
            }
            for c in c0..c1 {
                self.layout.copy(x.add(c * size), to.add((c - c0) * self.layout.channel));
            }
            let end = to.add((c1 - c0) * self.layout.channel);
            std::slice::from_raw_parts_mut(end, SLACK).fill(E::default());
        }
        to
    }

    unsafe fn pack_left(
        &self,
        to: *mut E,
        g: *const E,
        rows: (usize, usize),
        r0: usize,
        steps: usize,
        step: usize,
    ) {
        let [od, oh, ow] = self.output;
        let positions = od * oh * ow;
        for panel in rows.0..rows.1 {
            let (start, height) = (self.panels.start(panel), self.panels.rows(panel));
            // SAFETY: one output row of each channel of the panel.
            unsafe {
                let to = to.add((start - r0) * steps + step * height);
                let from = g.add(start * positions);
                gather_columns(to, height, height, ow, false, |j| from.add(j * positions));
            }
        }
    }

    unsafe fn pack_right(
        &self,
        to: *mut E,
        from: *const E,
        offsets: &[u32],
        width: usize,
        steps: usize,
        step: usize,
    ) {
        let ow = self.output[2];
        for (panel, offsets) in offsets.chunks(width).enumerate() {
            // SAFETY: one output row of each tap; a copied source has slack behind it.
            unsafe {
                let to = to.add(panel * width * steps + step * width);
                let past = !self.layout.in_place;
                let column = |j: usize| from.add(offsets[j] as usize);
                gather_columns(to, width, offsets.len(), ow, past, column);
                if offsets.len() < width {
                    for k in 0..ow {
                        let missing = to.add(k * width + offsets.len());
                        std::slice::from_raw_parts_mut(missing, width - offsets.len())
                            .fill(E::default());
                    }
                }
            }
        }
    }
}
