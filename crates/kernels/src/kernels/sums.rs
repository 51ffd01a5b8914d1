//! Sums of floats in f64 over the rows of a reduction: the vectorised form of `fold` with the same
//! lanes and tree.

use crate::array::Array;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store};
use crate::kernels::lanes::{Lane, NeighbouringRows, Piece, Term, add_terms_each, tree};
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};

/// `finish(sum of terms, number of elements)` of every row into `out`.
pub(crate) fn sums<T: Lane>(
    term: Term,
    rows: &Rows,
    out: &Array,
    finish: impl Fn(f64, f64) -> f64 + Sync,
) {
    if rows.outputs == 0 {
        return;
    }
    let count = rows.count as f64;
    match rows.columns() {
        Some(width) if width >= 4 && rows.count > 1 => {
            columns::<T>(term, rows, width, |i, sum| {
                // SAFETY: each output is stored by one part.
                unsafe { finish(sum, count).store(out, i) };
            });
        }
        _ => parallel::for_ranges(rows.outputs, rows.grain(), |range| {
            let source = Source::rows(&rows.view);
            let mut slot = Slot::new();
            let mut found = [0.0; 64];
            let mut first = range.start;
            while first < range.end {
                let n = (range.end - first).min(found.len());
                if rows.view.is_contiguous() {
                    let all = rows.view.as_slice::<T>();
                    let x = &all[first * rows.count..(first + n) * rows.count];
                    dispatch(NeighbouringRows {
                        term,
                        x,
                        count: rows.count,
                        sums: &mut found[..n],
                    });
                } else {
                    for (i, sum) in found[..n].iter_mut().enumerate() {
                        *sum = row::<T>(term, &source, first + i, rows.count, &mut slot);
                    }
                }
                for (i, sum) in found[..n].iter().enumerate() {
                    // SAFETY: each output is stored by one part.
                    unsafe { finish(*sum, count).store(out, first + i) };
                }
                first += n;
            }
        }),
    }
}

/// The sum of the terms of one row.
pub(crate) fn row<T: Lane>(
    term: Term,
    source: &Source<'_>,
    output: usize,
    count: usize,
    slot: &mut Slot,
) -> f64 {
    let mut lanes = [0.0; LANES];
    source.pieces::<T>(output * count, count, slot, |x| {
        dispatch(Piece { term, lanes: &mut lanes, x });
    });
    tree(lanes)
}

/// Outputs whose lanes are kept at a time.
const TILE: usize = 128;

fn columns<T: Lane>(term: Term, rows: &Rows, width: usize, store: impl Fn(usize, f64) + Sync) {
    rows.for_each_tile::<T>(width, TILE, &|first, n, base, steps| {
        let mut lanes = [0.0; LANES * TILE];
        let mut offsets = [0; 16 * LANES];
        let mut held = 0;
        steps.for_each(|offset| {
            offsets[held] = offset;
            held += 1;
            if held == offsets.len() {
                dispatch(Columns { term, base, offsets: &offsets, n, lanes: &mut lanes });
                held = 0;
            }
        });
        dispatch(Columns { term, base, offsets: &offsets[..held], n, lanes: &mut lanes });
        let mut width = LANES / 2;
        while width > 0 {
            let (low, high) = lanes.split_at_mut(width * TILE);
            for (a, b) in low.iter_mut().zip(high) {
                *a += *b;
            }
            width /= 2;
        }
        for (i, sum) in lanes[..n].iter().enumerate() {
            store(first + i, *sum);
        }
    });
}

/// Adds the terms of some rows of `n` neighbouring columns, from lane 0 on, to the columns' lanes,
/// which lie `TILE` apart.
struct Columns<'a, T> {
    term: Term,
    base: *const T,
    offsets: &'a [isize],
    n: usize,
    lanes: &'a mut [f64; LANES * TILE],
}

impl<T: Lane> WithSimd for Columns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let lanes = self.lanes.as_mut_ptr();
        for (row, offset) in self.offsets.iter().enumerate() {
            // SAFETY: `n` neighbouring elements of the array, and `n` sums of the lane.
            unsafe {
                let (x, sums) = (self.base.offset(*offset), lanes.add(row % LANES * TILE));
                add_terms_each(s, self.term, sums, x, self.n);
            }
        }
    }
}
