//! The one strided copy under all movement kernels: long runs by memcpy, transpositions in tiles.

use crate::array::{Array, StridedLoop, broadcast_strides};
use crate::dtype::Element;
use crate::for_size;
use crate::parallel;
use smallvec::SmallVec;

/// Elements below which a copy is not worth a second thread.
const PARALLEL: usize = 1 << 16;
/// Elements of one part of a parallel copy.
const GRAIN: usize = 1 << 15;
/// Side of the square tile in which two axes are exchanged.
const TILE: usize = 32;

#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    src: isize,
    dst: isize,
}

/// Pointers that threads write through at disjoint places.
#[derive(Clone, Copy)]
struct Pointers<T>(*const T, *mut T);
// SAFETY: every part of a copy reads shared elements and writes elements of its own.
unsafe impl<T> Send for Pointers<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Pointers<T> {}

impl<T> Pointers<T> {
    fn get(self) -> (*const T, *mut T) {
        (self.0, self.1)
    }
}

/// Copies `src`, broadcast to `dst`'s shape, into `dst`. The dtypes have one size and the arrays
/// do not overlap.
pub(crate) fn copy_into(src: &Array, dst: &Array) {
    if dst.size() == 0 {
        return;
    }
    for_size!(dst.dtype(), T => copy_typed::<T>(src, dst));
}

fn merged_axes(src: &Array, dst: &Array) -> SmallVec<[Axis; 6]> {
    let from = broadcast_strides(src, dst.shape());
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    for (k, &extent) in dst.shape().iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let axis = Axis { extent, src: from[k], dst: dst.strides()[k] };
        match axes.last_mut() {
            Some(last)
                if last.src == axis.src * extent as isize
                    && last.dst == axis.dst * extent as isize =>
            {
                *last = Axis { extent: last.extent * extent, ..axis };
            }
            _ => axes.push(axis),
        }
    }
    axes
}

fn copy_typed<T: Element>(src: &Array, dst: &Array) {
    let pointers = Pointers(src.as_ptr::<T>(), dst.as_mut_ptr::<T>());
    let axes = merged_axes(src, dst);
    let Some(&inner) = axes.last() else {
        // SAFETY: both arrays have their one element.
        unsafe { *pointers.1 = *pointers.0 };
        return;
    };
    let total = dst.size();
    if inner.dst == 1 && inner.src == 1 {
        return copy_runs(&axes, total, pointers);
    }
    if inner.dst == 1 && inner.src != 0 && inner.extent >= 4 {
        let crossed = axes[..axes.len() - 1].iter().position(|a| a.src == 1 && a.extent >= 4);
        if let Some(crossed) = crossed {
            return copy_crossed(&axes, crossed, total, pointers);
        }
    }
    copy_elementwise(&axes, total, pointers);
}

fn walk_of(axes: &[Axis]) -> StridedLoop<2> {
    let shape: SmallVec<[usize; 6]> = axes.iter().map(|a| a.extent).collect();
    let src: SmallVec<[isize; 6]> = axes.iter().map(|a| a.src).collect();
    let dst: SmallVec<[isize; 6]> = axes.iter().map(|a| a.dst).collect();
    StridedLoop::new(&shape, [&src, &dst])
}

fn copy_runs<T: Element>(axes: &[Axis], total: usize, pointers: Pointers<T>) {
    let walk = walk_of(axes);
    let n = walk.inner;
    if total < PARALLEL {
        let (p, q) = pointers.get();
        walk.for_each(0, walk.runs(), |[a, b]| {
            // SAFETY: a run of both arrays.
            unsafe { std::ptr::copy_nonoverlapping(p.offset(a), q.offset(b), n) };
        });
        return;
    }
    if walk.runs() == 1 {
        parallel::for_ranges(n, GRAIN, |range| {
            let (p, q) = pointers.get();
            // SAFETY: a piece of the only run, which starts at both arrays' first elements.
            unsafe {
                let (p, q) = (p.add(range.start), q.add(range.start));
                std::ptr::copy_nonoverlapping(p, q, range.len());
            }
        });
        return;
    }
    parallel::for_ranges(walk.runs(), (GRAIN / n).max(1), |runs| {
        let (p, q) = pointers.get();
        walk.for_each(runs.start, runs.end, |[a, b]| {
            // SAFETY: a run of both arrays.
            unsafe { std::ptr::copy_nonoverlapping(p.offset(a), q.offset(b), n) };
        });
    });
}

/// The source is dense along an outer axis and the target along the inner one: square tiles keep
/// both sides in cache lines.
fn copy_crossed<T: Element>(axes: &[Axis], crossed: usize, total: usize, pointers: Pointers<T>) {
    let last = axes.len() - 1;
    let (rows, cols) = (axes[crossed], axes[last]);
    let others: SmallVec<[Axis; 6]> =
        (0..last).filter(|&k| k != crossed).map(|k| axes[k]).collect();
    let planes: usize = others.iter().map(|a| a.extent).product();
    let strips = rows.extent.div_ceil(TILE);
    let strip = |index: usize| {
        let (p, q) = pointers.get();
        let (mut plane, row0) = (index / strips, index % strips * TILE);
        let (mut from, mut to) = (0isize, 0isize);
        for axis in others.iter().rev() {
            let at = (plane % axis.extent) as isize;
            plane /= axis.extent;
            from += at * axis.src;
            to += at * axis.dst;
        }
        let row1 = (row0 + TILE).min(rows.extent);
        for col0 in (0..cols.extent).step_by(TILE) {
            let col1 = (col0 + TILE).min(cols.extent);
            for row in row0..row1 {
                // SAFETY: indices below the extents of both arrays.
                unsafe {
                    let s = p.offset(from + row as isize);
                    let d = q.offset(to + row as isize * rows.dst);
                    for col in col0..col1 {
                        *d.add(col) = *s.offset(col as isize * cols.src);
                    }
                }
            }
        }
    };
    let count = planes * strips;
    let grain = if total < PARALLEL { count } else { (count * GRAIN / total).max(1) };
    parallel::for_ranges(count, grain, |range| range.for_each(&strip));
}

fn copy_elementwise<T: Element>(axes: &[Axis], total: usize, pointers: Pointers<T>) {
    let walk = walk_of(axes);
    let runs = walk.runs();
    let grain = if total < PARALLEL { runs } else { (GRAIN / walk.inner).max(1) };
    let [ss, ds] = walk.inner_strides;
    parallel::for_ranges(runs, grain, |range| {
        let (p, q) = pointers.get();
        walk.for_each(range.start, range.end, |[a, b]| {
            // SAFETY: every offset is an element of its array.
            unsafe {
                let (p, q) = (p.offset(a), q.offset(b));
                if ss == 0 && ds == 1 {
                    std::slice::from_raw_parts_mut(q, walk.inner).fill(*p);
                } else {
                    for i in 0..walk.inner as isize {
                        *q.offset(i * ds) = *p.offset(i * ss);
                    }
                }
            }
        });
    });
}
