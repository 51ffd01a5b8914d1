//! The one strided copy under all movement kernels: long runs by memcpy, transpositions in tiles.

use crate::array::{Array, StridedLoop, broadcast_strides};
use crate::dtype::Element;
use crate::for_size;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::transpose::gather_columns;
use crate::parallel;
use crate::simd::{PlainLoop, vectorized};
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

type Pointers<T> = Shared<(*const T, *mut T)>;

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
    let pointers = Shared::new((src.as_ptr::<T>(), dst.as_mut_ptr::<T>()));
    let axes = merged_axes(src, dst);
    let Some(&inner) = axes.last() else {
        let (from, to) = pointers.get();
        // SAFETY: both arrays have their one element.
        unsafe { *to = *from };
        return;
    };
    let total = dst.size();
    if inner.dst == 1 && inner.src == 1 {
        return copy_runs(&axes, total, pointers);
    }
    if inner.dst == 1 && inner.src != 0 {
        let crossed = axes[..axes.len() - 1].iter().position(|a| a.src == 1 && a.extent >= 4);
        if let Some(crossed) = crossed {
            return copy_crossed(&axes, crossed, total, pointers);
        }
    }
    if inner.dst == 1 && inner.src == 0 {
        return short_runs(&axes, total, pointers);
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
    if walk.runs() == 1 {
        let grain = if total < PARALLEL { total } else { GRAIN };
        parallel::for_ranges(n, grain, |range| {
            let (p, q) = pointers.get();
            // SAFETY: a piece of the only run, which starts at both arrays' first elements.
            unsafe {
                let (p, q) = (p.add(range.start), q.add(range.start));
                std::ptr::copy_nonoverlapping(p, q, range.len());
            }
        });
        return;
    }
    if n * size_of::<T>() <= SHORT_RUN {
        return short_runs(axes, total, pointers);
    }
    let grain = if total < PARALLEL { walk.runs() } else { (GRAIN / n).max(1) };
    parallel::for_ranges(walk.runs(), grain, |runs| {
        let (p, q) = pointers.get();
        walk.for_each(runs.start, runs.end, |[a, b]| {
            // SAFETY: a run of both arrays.
            unsafe { std::ptr::copy_nonoverlapping(p.offset(a), q.offset(b), n) };
        });
    });
}

/// Bytes of a run that is copied without a call.
const SHORT_RUN: usize = 1024;

/// Runs of the innermost axis, which is dense in the target and dense or one element in the source;
/// those of the axis before it together.
fn short_runs<T: Element>(axes: &[Axis], total: usize, pointers: Pointers<T>) {
    let (outer, inner) = axes.split_at(axes.len() - 1);
    let run = inner[0];
    let (rows, outer) =
        outer.split_last().map_or((Axis { extent: 1, src: 0, dst: 0 }, outer), |(r, o)| (*r, o));
    let groups: usize = outer.iter().map(|a| a.extent).product();
    // A group without runs after each other is cut, so that threads find parts of it.
    let piece = rows.extent.min((GRAIN / run.extent).max(1));
    let pieces = rows.extent.div_ceil(piece);
    let walk = walk_of(outer);
    let walk_runs = |group: usize| {
        let mut found = [0; 2];
        let (n, [ss, ds]) = (walk.inner, walk.inner_strides);
        walk.for_each(group / n, group / n + 1, |[a, b]| {
            let at = (group % n) as isize;
            found = [a + at * ss, b + at * ds];
        });
        found
    };
    let grain =
        if total < PARALLEL { groups * pieces } else { (GRAIN / (piece * run.extent)).max(1) };
    parallel::for_ranges(groups * pieces, grain, |range| {
        for part in range {
            let first = part % pieces * piece;
            let [a, b] = walk_runs(part / pieces);
            let start = first as isize;
            vectorized(ShortRuns {
                pointers,
                at: [a + start * rows.src, b + start * rows.dst],
                rows: piece.min(rows.extent - first),
                steps: [rows.src, rows.dst],
                n: run.extent,
                still: run.src == 0 && run.extent > 1,
            });
        }
    });
}

/// `rows` runs of `n` elements, or of copies of one.
struct ShortRuns<T> {
    pointers: Pointers<T>,
    at: [isize; 2],
    rows: usize,
    steps: [isize; 2],
    n: usize,
    still: bool,
}

impl<T: Element> PlainLoop for ShortRuns<T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (p, q) = self.pointers.get();
        let (n, bytes) = (self.n, self.n * size_of::<T>());
        for row in 0..self.rows as isize {
            // SAFETY: runs of both arrays.
            unsafe {
                let p = p.offset(self.at[0] + row * self.steps[0]);
                let q = q.offset(self.at[1] + row * self.steps[1]);
                if self.still {
                    let value = *p;
                    for i in 0..n {
                        *q.add(i) = value;
                    }
                } else {
                    copy_bytes(p.cast(), q.cast(), bytes);
                }
            }
        }
    }
}

/// # Safety
/// `n` bytes of each side exist and do not overlap.
#[inline(always)]
unsafe fn copy_bytes(p: *const u8, q: *mut u8, n: usize) {
    // SAFETY: the caller's promise; the last piece of a long run overlaps the one before.
    unsafe {
        let piece =
            |at: usize| q.add(at).cast::<[u8; 32]>().write(p.add(at).cast::<[u8; 32]>().read());
        if n >= 32 {
            let mut at = 0;
            while at + 32 <= n {
                piece(at);
                at += 32;
            }
            if at < n {
                piece(n - 32);
            }
            return;
        }
        let mut at = 0;
        while at + 8 <= n {
            q.add(at).cast::<[u8; 8]>().write(p.add(at).cast::<[u8; 8]>().read());
            at += 8;
        }
        while at < n {
            *q.add(at) = *p.add(at);
            at += 1;
        }
    }
}

/// The source is dense along an outer axis and the target along the inner one: square tiles keep
/// both sides in cache lines.
fn copy_crossed<T: Element>(axes: &[Axis], crossed: usize, total: usize, pointers: Pointers<T>) {
    let last = axes.len() - 1;
    let (rows, cols) = (axes[crossed], axes[last]);
    let others: SmallVec<[Axis; 6]> =
        (0..last).filter(|&k| k != crossed).map(|k| axes[k]).collect();
    let planes: usize = others.iter().map(|a| a.extent).product();
    // A few columns are taken row by row, many by tiles.
    let height = if cols.extent <= FEW { GRAIN / cols.extent } else { TILE };
    let strips = rows.extent.div_ceil(height);
    let strip = |index: usize| {
        let (p, q) = pointers.get();
        let (mut plane, row0) = (index / strips, index % strips * height);
        let (mut from, mut to) = (0isize, 0isize);
        for axis in others.iter().rev() {
            let at = (plane % axis.extent) as isize;
            plane /= axis.extent;
            from += at * axis.src;
            to += at * axis.dst;
        }
        let steps = height.min(rows.extent - row0);
        // SAFETY: indices below the extents of both arrays.
        unsafe {
            let p = p.offset(from + row0 as isize);
            let q = q.offset(to + row0 as isize * rows.dst);
            if cols.extent <= FEW {
                vectorized(Interleaved {
                    p,
                    q,
                    steps,
                    column: cols.src,
                    row: rows.dst,
                    columns: cols.extent,
                });
                return;
            }
            for col0 in (0..cols.extent).step_by(TILE) {
                let columns = TILE.min(cols.extent - col0);
                let column = |j: usize| p.offset((col0 + j) as isize * cols.src);
                if size_of::<T>() == 4 && rows.dst > 0 {
                    gather_columns(q.add(col0), rows.dst as usize, columns, steps, false, column);
                    continue;
                }
                for row in 0..steps {
                    let to = q.offset(row as isize * rows.dst).add(col0);
                    for j in 0..columns {
                        *to.add(j) = *column(j).add(row);
                    }
                }
            }
        }
    };
    let count = planes * strips;
    let grain = if total < PARALLEL { count } else { (count * GRAIN / total).max(1) };
    parallel::for_ranges(count, grain, |range| range.for_each(&strip));
}

/// The most columns that are interleaved row by row.
const FEW: usize = 4;

/// `q[i * row + j] = p[i + j * column]` for `steps` of i and `columns` of j.
struct Interleaved<T> {
    p: *const T,
    q: *mut T,
    steps: usize,
    columns: usize,
    column: isize,
    row: isize,
}

impl<T: Element> PlainLoop for Interleaved<T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match (self.columns, self.row) {
            (2, 2) => self.dense::<2>(),
            (3, 3) => self.dense::<3>(),
            (4, 4) => self.dense::<4>(),
            _ => {
                for i in 0..self.steps as isize {
                    for j in 0..self.columns as isize {
                        // SAFETY: elements of the two arrays.
                        unsafe {
                            *self.q.offset(i * self.row + j) = *self.p.offset(i + j * self.column);
                        }
                    }
                }
            }
        }
    }
}

impl<T: Element> Interleaved<T> {
    #[inline(always)]
    fn dense<const N: usize>(self) {
        let mut from = [self.p; N];
        for j in 0..N {
            // SAFETY: the first element of a column.
            from[j] = unsafe { self.p.offset(j as isize * self.column) };
        }
        for i in 0..self.steps {
            for j in 0..N {
                // SAFETY: elements of the two arrays.
                unsafe { *self.q.add(i * N + j) = *from[j].add(i) };
            }
        }
    }
}

fn copy_elementwise<T: Element>(axes: &[Axis], total: usize, pointers: Pointers<T>) {
    let walk = walk_of(axes);
    let runs = walk.runs();
    let grain = if total < PARALLEL { runs } else { (GRAIN / walk.inner).max(1) };
    let [ss, ds] = walk.inner_strides;
    parallel::for_ranges(runs, grain, |range| {
        let n = walk.inner;
        let (p, q) = pointers.get();
        walk.for_each(range.start, range.end, |[a, b]| {
            // SAFETY: every offset is an element of its array.
            unsafe {
                let (p, q) = (p.offset(a), q.offset(b));
                for i in 0..n as isize {
                    *q.offset(i * ds) = *p.offset(i * ss);
                }
            }
        });
    });
}
