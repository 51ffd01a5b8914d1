//! Sums of floats in f64 over the rows of a reduction: the vectorised form of `fold` with the same
//! lanes and tree.

use crate::array::Array;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store, Tiles};
use crate::kernels::lanes::{
    Lane, NeighbouringRows, Piece, Term, add_term, for_lanes, for_term, tree, tree_of_vectors,
};
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use std::mem::MaybeUninit;

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
    match rows.tiles() {
        Some(tiles) => columns::<T>(term, rows, tiles, out, finish),
        None => parallel::for_ranges(rows.outputs, rows.grain(), |range| {
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
const TILE: usize = 256;

fn columns<T: Lane>(
    term: Term,
    rows: &Rows,
    tiles: Tiles,
    out: &Array,
    finish: impl Fn(f64, f64) -> f64 + Sync,
) {
    let count = rows.count as f64;
    rows.for_each_tile::<T>(tiles, TILE, &|first, n, base, steps| {
        let mut sums = [0.0; TILE];
        if rows.count <= LANES {
            steps.batches(&mut |offsets| dispatch(Few { term, base, offsets, n, sums: &mut sums }));
        } else {
            let mut lanes = [const { MaybeUninit::uninit() }; LANES * TILE];
            let mut begun = false;
            steps.batches(&mut |offsets| {
                dispatch(Columns { term, base, offsets, n, begun, lanes: &mut lanes });
                begun = true;
            });
            dispatch(Tree { lanes: &lanes, n, sums: &mut sums });
        }
        for sum in &mut sums[..n] {
            *sum = finish(*sum, count);
        }
        // SAFETY: each output is stored by one part.
        unsafe { Store::store_all(&sums[..n], out, first) };
    });
}

type Lanes = [MaybeUninit<f64>; LANES * TILE];

/// Adds the terms of some rows of `n` outputs side by side, from lane 0 on, to the outputs' lanes,
/// which lie `TILE` apart; lanes are written first unless `begun`.
struct Columns<'a, T> {
    term: Term,
    base: *const T,
    offsets: &'a [isize],
    n: usize,
    begun: bool,
    lanes: &'a mut Lanes,
}

impl<T: Lane> WithSimd for Columns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for_term!(self.term, |term| self.add(s, term));
    }
}

impl<T: Lane> Columns<'_, T> {
    #[inline(always)]
    fn add<S: Simd>(self, s: S, term: Term) {
        let (rows, lanes) = (self.offsets.len(), self.lanes.as_mut_ptr().cast::<f64>());
        for lane in 0..LANES {
            // SAFETY: a lane of `TILE`, a multiple of 16.
            let to = unsafe { lanes.add(lane * TILE) };
            let mut begun = self.begun;
            let mut row = lane;
            // Four rows of a lane at a time, in order, so that the lane is rarely read and written.
            while row < rows || !begun {
                let given = (rows.saturating_sub(row)).div_ceil(LANES).min(4);
                match given {
                    0 => self.add_rows::<S, 0>(s, term, to, row, begun),
                    1 => self.add_rows::<S, 1>(s, term, to, row, begun),
                    2 => self.add_rows::<S, 2>(s, term, to, row, begun),
                    3 => self.add_rows::<S, 3>(s, term, to, row, begun),
                    _ => self.add_rows::<S, 4>(s, term, to, row, begun),
                }
                begun = true;
                row += 4 * LANES;
            }
        }
    }

    /// Adds rows `row`, `row + 16`, … to a lane.
    #[inline(always)]
    fn add_rows<S: Simd, const R: usize>(
        &self,
        s: S,
        term: Term,
        to: *mut f64,
        row: usize,
        begun: bool,
    ) {
        let mut from = [self.base; R];
        for r in 0..R {
            // SAFETY: a row of the array.
            from[r] = unsafe { self.base.offset(self.offsets[row + r * LANES]) };
        }
        // SAFETY: `n` neighbouring elements of the array in each row, and `n` sums of the lane.
        unsafe {
            for_lanes!(self.n, |i, count| {
                let mut acc = if begun { s.load_d(to.add(i)) } else { s.splat_d(0.0) };
                for r in 0..R {
                    acc = add_term::<T, S>(s, term, acc, T::get(s, from[r].add(i), count));
                }
                s.store_d(to.add(i), acc);
            });
        }
    }
}

/// The sums of at most 16 rows: each lane has one element.
struct Few<'a, T> {
    term: Term,
    base: *const T,
    offsets: &'a [isize],
    n: usize,
    sums: &'a mut [f64; TILE],
}

impl<T: Lane> WithSimd for Few<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for_term!(self.term, |term| self.add(s, term));
    }
}

impl<T: Lane> Few<'_, T> {
    #[inline(always)]
    fn add<S: Simd>(self, s: S, term: Term) {
        let rows = self.offsets.len();
        let zero = s.splat_d(0.0);
        for_lanes!(self.n, |i, count| {
            let mut lanes = [zero; LANES];
            for row in 0..rows.min(LANES) {
                // SAFETY: `n` neighbouring elements of a row of the array.
                let x = unsafe { T::get(s, self.base.offset(self.offsets[row]).add(i), count) };
                lanes[row] = add_term::<T, S>(s, term, zero, x);
            }
            let sum = tree_of_vectors(s, lanes);
            // SAFETY: a tile is a multiple of 16.
            unsafe { s.store_d(self.sums.as_mut_ptr().add(i), sum) };
        });
    }
}

/// The fixed tree over the lanes of each output.
struct Tree<'a> {
    lanes: &'a Lanes,
    n: usize,
    sums: &'a mut [f64; TILE],
}

impl WithSimd for Tree<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut i = 0;
        while i < self.n {
            let mut lanes = [s.splat_d(0.0); LANES];
            for (l, lane) in lanes.iter_mut().enumerate() {
                // SAFETY: 16 outputs of the lane, written before; a tile is a multiple of 16.
                *lane = unsafe { s.load_d(self.lanes.as_ptr().add(l * TILE + i).cast()) };
            }
            let sum = tree_of_vectors(s, lanes);
            // SAFETY: as above.
            unsafe { s.store_d(self.sums.as_mut_ptr().add(i), sum) };
            i += LANES;
        }
    }
}
