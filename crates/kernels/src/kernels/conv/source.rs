//! The source of a convolution as a plane of evenly spaced positions.
//!
//! Each channel is copied once with its padding, split into one plane for each phase of the stride, so
//! that a tap is a constant offset and neighbouring outputs read neighbouring elements.

use super::geometry::{AXES, Class};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernels::short_copy::copy_short;
use crate::simd::{PlainLoop, vectorized_wide};
use smallvec::SmallVec;

/// What a layout may look like.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The source itself, where it needs no padding.
    pub(crate) in_place: bool,
    /// One plane for each phase of the stride; else one plane, whose readers step over it.
    pub(crate) phases: bool,
}

impl Form {
    /// For readers of neighbouring elements.
    pub(crate) const NEIGHBOURS: Self = Self { in_place: true, phases: true };
}

/// Phases of one axis that some tap reads; most often one.
type Phases = SmallVec<[usize; 4]>;

/// The layout of one channel of the copied source.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Source position of padded position 0.
    low: [isize; AXES],
    /// Source extents.
    pub(crate) sizes: [usize; AXES],
    /// Distance of the source positions of one plane.
    source_step: [usize; AXES],
    phases: [Phases; AXES],
    /// Extents of one phase's plane.
    pub(crate) extents: [usize; AXES],
    /// Elements of one channel.
    pub(crate) channel: usize,
    /// Whether the source itself has this layout, so that nothing is copied.
    pub(crate) in_place: bool,
}

impl Layout {
    /// The layout that serves all classes.
    ///
    /// # Errors
    /// `Memory` when offsets of `channels` of them do not fit 32 bits.
    pub(crate) fn new(
        operator: &str,
        classes: &[Class],
        sizes: [usize; AXES],
        source_step: [usize; AXES],
        channels: usize,
        form: Form,
    ) -> Result<Self> {
        let mut low = [isize::MAX; AXES];
        let mut high = [isize::MIN; AXES];
        for class in classes {
            for axis in 0..AXES {
                let last = class.count[axis].saturating_sub(1) * source_step[axis];
                for &(_, shift) in &class.taps[axis] {
                    low[axis] = low[axis].min(shift);
                    high[axis] = high[axis].max(shift + last as isize);
                }
            }
        }
        for axis in 0..AXES {
            if low[axis] > high[axis] {
                (low[axis], high[axis]) = (0, 0);
            }
        }
        let inside = (0..AXES).all(|a| low[a] >= 0 && high[a] < sizes[a] as isize);
        let in_place = form.in_place && inside && source_step == [1; AXES];
        let source_step = if form.phases { source_step } else { [1; AXES] };
        let phases: [Phases; AXES] = std::array::from_fn(|axis| {
            let mut used = Phases::new();
            for (_, shift) in classes.iter().flat_map(|c| &c.taps[axis]) {
                let phase = (shift - low[axis]) as usize % source_step[axis];
                if !used.contains(&phase) {
                    used.push(phase);
                }
            }
            used.sort_unstable();
            used
        });
        let extents: [usize; AXES] = if in_place {
            low = [0; AXES];
            sizes
        } else {
            std::array::from_fn(|a| ((high[a] - low[a]) as usize + 1).div_ceil(source_step[a]))
        };
        let channel = extents
            .iter()
            .chain(phases.iter().map(SmallVec::len).collect::<SmallVec<[usize; 3]>>().iter())
            .try_fold(1usize, |acc, &n| acc.checked_mul(n));
        let channel = channel
            .filter(|c| c.checked_mul(channels).is_some_and(|all| all < u32::MAX as usize / 2));
        let Some(channel) = channel else {
            return Err(Error::memory(
                operator,
                "a padded input of fewer than 2^31 elements for each image and group",
                format!("{channels} channels of {extents:?}"),
            ));
        };
        Ok(Self { low, sizes, source_step, phases, extents, channel, in_place })
    }

    /// Offset, inside a channel, of what output 0 reads at these shifts.
    pub(crate) fn offset(&self, shifts: [isize; AXES]) -> usize {
        let mut plane = 0;
        let mut inside = 0;
        for axis in 0..AXES {
            let position = (shifts[axis] - self.low[axis]) as usize;
            let phase = position % self.source_step[axis];
            let index = self.phases[axis].iter().position(|&p| p == phase).unwrap_or(0);
            plane = plane * self.phases[axis].len() + index;
            inside = inside * self.extents[axis] + position / self.source_step[axis];
        }
        plane * self.extents.iter().product::<usize>() + inside
    }

    /// Copies one channel, padding included.
    ///
    /// # Safety
    /// `source` holds the channel's elements, `to` has room for `channel` of them.
    pub(crate) unsafe fn copy<E: Element>(&self, source: *const E, to: *mut E) {
        // SAFETY: the channel's room, then the rows that lie inside both.
        unsafe {
            std::slice::from_raw_parts_mut(to, self.channel).fill(E::default());
            vectorized_wide(Rows { layout: self, source, to });
        }
    }

    /// Calls `f` with the source offset, the step, the offset in the copy and the length of every
    /// row that is not padding.
    #[inline(always)]
    pub(crate) fn for_rows(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        let [_, height, width] = self.sizes;
        let pitch = self.extents[2];
        let mut to = 0;
        let row = |axis: usize, phase: usize, q: usize| {
            (q * self.source_step[axis] + phase) as isize + self.low[axis]
        };
        for &pd in &self.phases[0] {
            for &ph in &self.phases[1] {
                for &pw in &self.phases[2] {
                    let columns = self.columns(pw);
                    for qd in 0..self.extents[0] {
                        let d = row(0, pd, qd);
                        for qh in 0..self.extents[1] {
                            let h = row(1, ph, qh);
                            let inside = (0..self.sizes[0] as isize).contains(&d)
                                && (0..height as isize).contains(&h);
                            if inside && columns.count > 0 {
                                let from = (d as usize * height + h as usize) * width;
                                let step = self.source_step[2];
                                f(from + columns.begin, step, to + columns.left, columns.count);
                            }
                            to += pitch;
                        }
                    }
                }
            }
        }
    }

    /// The columns of a row of one phase that lie inside the source.
    fn columns(&self, phase: usize) -> Columns {
        let (n, step) = (self.extents[2], self.source_step[2]);
        let first = self.low[2] + phase as isize;
        let left = if first >= 0 { 0 } else { first.unsigned_abs().div_ceil(step).min(n) };
        let begin = first + (left * step) as isize;
        let room = (self.sizes[2] as isize - begin).max(0) as usize;
        let count = room.div_ceil(step).min(n - left);
        Columns { left, begin: begin.max(0) as usize, count }
    }
}

struct Rows<'a, E> {
    layout: &'a Layout,
    source: *const E,
    to: *mut E,
}

impl<E: Element> PlainLoop for Rows<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.layout.for_rows(|from, step, to, count| {
            // SAFETY: the row exists on both sides.
            unsafe { copy_row(self.source.add(from), step, self.to.add(to), count) };
        });
    }
}

struct Columns {
    /// Padding before the first column.
    left: usize,
    /// Source column of the first one.
    begin: usize,
    count: usize,
}

/// Copies `n` elements, `step` apart in the source. Rows are short, so that calls would cost more than
/// moving a few groups.
#[inline(always)]
pub(super) unsafe fn copy_row<E: Element>(from: *const E, step: usize, to: *mut E, n: usize) {
    // SAFETY: the elements exist.
    unsafe {
        if step == 2 {
            const WIDE: usize = 16;
            let mut i = 0;
            // The next element exists, so all that lies before it does.
            while i + WIDE < n {
                let all = from.add(2 * i).cast::<[E; 2 * WIDE]>().read_unaligned();
                let mut even = [E::default(); WIDE];
                for j in 0..WIDE {
                    even[j] = all[2 * j];
                }
                to.add(i).cast::<[E; WIDE]>().write_unaligned(even);
                i += WIDE;
            }
            while i < n {
                *to.add(i) = *from.add(2 * i);
                i += 1;
            }
        } else if step > 2 {
            for i in 0..n {
                *to.add(i) = *from.add(step * i);
            }
        } else {
            copy_short(from, to, n);
        }
    }
}
