//! Reductions: for each output one row of elements, folded in 16 lanes.
//!
//! The row of an output holds its elements in row-major order of the reduced axes. Lane l takes
//! elements l, l + 16, … from the identity on; then lanes l and l + 8 are merged, then + 4, + 2, + 1.
//! Where the outputs are neighbours in memory the same lanes are kept for many outputs at a time, so
//! the layout never shows in the bits.

use crate::array::{Array, Dims, StridedLoop, Strides};
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernels::blocks::{Slot, Source, computed};
use crate::kernels::cast::to_odd_f32;
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::transpose::gather_columns;
use crate::parallel;
use crate::simd::{LANES, PlainLoop, vectorized, vectorized_wide};
use half::{bf16, f16};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// How elements are folded.
pub(crate) trait Fold<T>: Copy + Send + Sync {
    type Acc: Copy + Send;
    type Out: Store;
    /// Whether every order gives the same bits, so that the lanes need not be kept.
    const ANY_ORDER: bool = false;
    fn start(self) -> Self::Acc;
    fn step(self, acc: Self::Acc, x: T) -> Self::Acc;
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result of a row of `count` elements.
    fn finish(self, acc: Self::Acc, count: usize) -> Self::Out;
}

/// A result that is rounded once to an output's dtype.
pub(crate) trait Store: Copy {
    /// # Safety
    /// `index` lies inside the contiguous array, which nobody else writes there.
    unsafe fn store(self, out: &Array, index: usize);

    /// Stores neighbours from `index` on.
    ///
    /// # Safety
    /// As for one.
    #[inline(always)]
    unsafe fn store_all(values: &[Self], out: &Array, index: usize) {
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { value.store(out, index + i) };
        }
    }
}

impl Store for f64 {
    #[inline(always)]
    unsafe fn store(self, out: &Array, index: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match out.dtype() {
                DType::F64 => *out.as_mut_ptr::<f64>().add(index) = self,
                DType::F16 => *out.as_mut_ptr::<f16>().add(index) = f16::from_f32(to_odd_f32(self)),
                DType::BF16 => {
                    *out.as_mut_ptr::<bf16>().add(index) = bf16::from_f32(to_odd_f32(self))
                }
                _ => *out.as_mut_ptr::<f32>().add(index) = self as f32,
            }
        }
    }

    #[inline(always)]
    unsafe fn store_all(values: &[Self], out: &Array, index: usize) {
        if out.dtype() == DType::F32 {
            let to = out.as_mut_ptr::<f32>();
            for (i, value) in values.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { *to.add(index + i) = *value as f32 };
            }
            return;
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { value.store(out, index + i) };
        }
    }
}

impl Store for f32 {
    #[inline(always)]
    unsafe fn store(self, out: &Array, index: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match out.dtype() {
                DType::F16 => *out.as_mut_ptr::<f16>().add(index) = f16::from_f32(self),
                DType::BF16 => *out.as_mut_ptr::<bf16>().add(index) = bf16::from_f32(self),
                _ => *out.as_mut_ptr::<f32>().add(index) = self,
            }
        }
    }

    #[inline(always)]
    unsafe fn store_all(values: &[Self], out: &Array, index: usize) {
        if out.dtype() == DType::F32 {
            let to = out.as_mut_ptr::<f32>();
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to.add(index), values.len()) }
            return;
        }
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { value.store(out, index + i) };
        }
    }
}

macro_rules! store {
    ($($t:ty),*) => {$(
        impl Store for $t {
            #[inline(always)]
            unsafe fn store(self, out: &Array, index: usize) {
                // SAFETY: the caller's promise.
                unsafe { *out.as_mut_ptr::<$t>().add(index) = self }
            }

            #[inline(always)]
            unsafe fn store_all(values: &[Self], out: &Array, index: usize) {
                let to = out.as_mut_ptr::<$t>();
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to.add(index), values.len()) }
            }
        }
    )*};
}
store!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The array itself, or its halves widened to f32.
pub(crate) fn widened(x: &Array) -> Result<Cow<'_, Array>> {
    let dtype = computed(x.dtype());
    if dtype == x.dtype() {
        return Ok(Cow::Borrowed(x));
    }
    let out = Array::uninit("cast", dtype, x.shape())?;
    elementwise::map(&[x], std::slice::from_ref(&out), CHEAP, Halves::Widened, &|s: &Span<'_>| {
        s.output::<f32>(0).copy_from_slice(s.input(0));
    });
    Ok(Cow::Owned(out))
}

/// An array split into outputs (the kept axes) and rows (the reduced axes).
pub(crate) struct Rows {
    /// The kept axes, then the reduced ones.
    pub view: Array,
    pub outputs: usize,
    pub count: usize,
    kept: usize,
}

impl Rows {
    /// `axes` are sorted and distinct.
    pub(crate) fn new(x: &Array, axes: &[usize]) -> Result<Self> {
        let kept = (0..x.rank()).filter(|a| !axes.contains(a));
        let order: Vec<i64> = kept.chain(axes.iter().copied()).map(|a| a as i64).collect();
        let view = x.permute(&order)?;
        let kept = x.rank() - axes.len();
        let outputs = view.shape()[..kept].iter().product();
        let count = view.shape()[kept..].iter().product();
        Ok(Self { view, outputs, count, kept })
    }

    /// Number of outputs of a part, by size alone.
    pub(crate) fn grain(&self) -> usize {
        (CHEAP / self.count.max(1)).max(1)
    }

    /// The extent of the innermost kept axis if its elements are neighbours and a row's are not.
    pub(crate) fn columns(&self) -> Option<usize> {
        let shape = self.view.shape();
        let strides = self.view.strides();
        let inner = |range: Range<usize>| range.rev().find(|&a| shape[a] != 1);
        let column = inner(0..self.kept)?;
        let row = inner(self.kept..shape.len())?;
        (strides[column] == 1 && strides[row] != 1).then_some(shape[column])
    }

    /// How many outputs are folded together, side by side; `None` for one row after the other.
    pub(crate) fn tiles(&self) -> Option<Tiles> {
        match self.columns() {
            Some(width) if width >= 4 && self.count > 1 => Some(Tiles::Neighbours(width)),
            _ if (2..=SHORT).contains(&self.count)
                && self.outputs >= LANES
                && self.view.is_contiguous() =>
            {
                Some(Tiles::Turned)
            }
            _ => None,
        }
    }
}

/// The most elements of a row for which many rows are turned into columns.
const SHORT: usize = 32;
/// How many rows are turned at a time.
const TURNED: usize = 64;

/// Outputs that are folded side by side.
#[derive(Clone, Copy)]
pub(crate) enum Tiles {
    /// So many outputs are neighbours in memory.
    Neighbours(usize),
    /// Short rows that follow each other are turned into columns first.
    Turned,
}

/// Folds every row of `rows` into `out`.
pub(crate) fn fold<T: Element, F: Fold<T>>(f: F, rows: &Rows, out: &Array) {
    if rows.outputs == 0 {
        return;
    }
    match rows.tiles() {
        Some(tiles) => fold_columns::<T, F>(f, rows, tiles, out),
        None => parallel::for_ranges(rows.outputs, rows.grain(), |range| {
            fold_rows::<T, F>(f, rows, range, out);
        }),
    }
}

fn fold_rows<T: Element, F: Fold<T>>(f: F, rows: &Rows, range: Range<usize>, out: &Array) {
    let source = Source::rows(&rows.view);
    let mut slot = Slot::new();
    for output in range {
        let result = fold_row(f, &source, output, rows.count, &mut slot);
        // SAFETY: each output is stored by one part.
        unsafe { result.store(out, output) };
    }
}

/// The result of one row.
pub(crate) fn fold_row<T: Element, F: Fold<T>>(
    f: F,
    source: &Source<'_>,
    output: usize,
    count: usize,
    slot: &mut Slot,
) -> F::Out {
    let mut lanes = [f.start(); LANES];
    source.pieces::<T>(output * count, count, slot, |x| {
        let piece = Piece { f, lanes: &mut lanes, x };
        if F::ANY_ORDER { vectorized_wide(piece) } else { vectorized(piece) }
    });
    f.finish(tree(f, lanes), count)
}

/// Merges the lanes.
#[inline(always)]
fn tree<T, F: Fold<T>>(f: F, mut lanes: [F::Acc; LANES]) -> F::Acc {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = f.merge(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

struct Piece<'a, T, F: Fold<T>> {
    f: F,
    lanes: &'a mut [F::Acc; LANES],
    x: &'a [T],
}

impl<T: Copy, F: Fold<T>> PlainLoop for Piece<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if F::ANY_ORDER {
            self.lanes[0] = self.x.iter().fold(self.lanes[0], |acc, x| self.f.step(acc, *x));
            return;
        }
        let mut lanes = *self.lanes;
        let (whole, tail) = self.x.as_chunks::<LANES>();
        for x in whole {
            for l in 0..LANES {
                lanes[l] = self.f.step(lanes[l], x[l]);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(tail) {
            *lane = self.f.step(*lane, *x);
        }
        *self.lanes = lanes;
    }
}

/// Outputs whose lanes are kept at a time: 16 lanes of f64 for each fit the first cache.
const TILE: usize = 128;
/// The same where one lane is enough: long pieces of rows are read at the speed of memory.
const WIDE_TILE: usize = 1024;

fn fold_columns<T: Element, F: Fold<T>>(f: F, rows: &Rows, tiles: Tiles, out: &Array) {
    let store = |lanes: &[F::Acc], first: usize| {
        for (lanes, at) in lanes.chunks(LANES).zip((first..).step_by(LANES)) {
            let mut results = [f.finish(f.start(), rows.count); LANES];
            for (result, acc) in results.iter_mut().zip(lanes) {
                *result = f.finish(*acc, rows.count);
            }
            // SAFETY: each output is stored by one part.
            unsafe { Store::store_all(&results[..lanes.len()], out, at) };
        }
    };
    if F::ANY_ORDER {
        rows.for_each_tile::<T>(tiles, WIDE_TILE, &|first, n, base, steps| {
            let mut lanes = [const { MaybeUninit::<F::Acc>::uninit() }; WIDE_TILE];
            let lanes: *mut F::Acc = lanes.as_mut_ptr().cast();
            // SAFETY: the first `n` of the tile, written here.
            let lanes = unsafe {
                (0..n).for_each(|i| lanes.add(i).write(f.start()));
                std::slice::from_raw_parts_mut(lanes, n)
            };
            steps.batches(&mut |offsets| vectorized_wide(WideColumns { f, base, offsets, lanes }));
            store(lanes, first);
        });
        return;
    }
    rows.for_each_tile::<T>(tiles, TILE, &|first, n, base, steps| {
        let mut lanes = [f.start(); LANES * TILE];
        let lanes = &mut lanes[..LANES * n];
        steps.batches(&mut |offsets| vectorized(Columns { f, base, offsets, n, lanes }));
        vectorized(Merge::<T, F> { f, n, lanes, of: PhantomData });
        store(&lanes[..n], first);
    });
}

/// A body for some outputs side by side: the first one's number, how many, the address of the first
/// row's elements, and the offsets of all rows from there.
type TileBody<'a, T> = dyn Fn(usize, usize, *const T, &Offsets) + Sync + 'a;

impl Rows {
    /// Splits the outputs into tiles of at most `tile`.
    pub(crate) fn for_each_tile<T: Element>(
        &self,
        tiles: Tiles,
        tile: usize,
        body: &TileBody<'_, T>,
    ) {
        match tiles {
            Tiles::Neighbours(width) => self.for_each_column_tile(width, tile, body),
            Tiles::Turned => self.for_each_turned(tile.min(TURNED), body),
        }
    }

    fn for_each_turned<T: Element>(&self, tile: usize, body: &TileBody<'_, T>) {
        let count = self.count;
        let steps = offsets(&[count], &[TURNED as isize]);
        let base = Shared::new(self.view.as_ptr::<T>());
        let grain = (CHEAP / (count * tile)).max(1);
        parallel::for_ranges(self.outputs.div_ceil(tile), grain, |range| {
            let mut turned = [const { MaybeUninit::<T>::uninit() }; SHORT * TURNED];
            let to: *mut T = turned.as_mut_ptr().cast();
            for part in range {
                let first = part * tile;
                let n = tile.min(self.outputs - first);
                // SAFETY: rows of the contiguous array, and room for SHORT columns of TURNED.
                unsafe {
                    let column = |j: usize| base.get().add((first + j) * count);
                    gather_columns(to, TURNED, n, count, false, column);
                }
                body(first, n, to, &steps);
            }
        });
    }

    fn for_each_column_tile<T: Element>(&self, width: usize, tile: usize, body: &TileBody<'_, T>) {
        let tiles = width.div_ceil(tile);
        let (shape, strides) = (self.view.shape(), self.view.strides());
        let outer = self.outputs / width;
        // The kept axes but the innermost, and the reduced ones.
        let column = (0..self.kept).rev().find(|&a| shape[a] != 1).unwrap_or(0);
        let (mut outer_shape, mut outer_strides) = (Dims::new(), Strides::new());
        for a in (0..self.kept).filter(|&a| a != column) {
            outer_shape.push(shape[a]);
            outer_strides.push(strides[a]);
        }
        let starts = offsets(&outer_shape, &outer_strides);
        let steps = offsets(&shape[self.kept..], &strides[self.kept..]);
        let base = Shared::new(self.view.as_ptr::<T>());
        let grain = (CHEAP / (self.count * width.min(tile)).max(1)).max(1);
        parallel::for_ranges(outer * tiles, grain, |range| {
            for part in range {
                let (group, first) = (part / tiles, part % tiles * tile);
                // SAFETY: inside the array.
                let from = unsafe { base.get().offset(starts.at(group) + first as isize) };
                body(group * width + first, tile.min(width - first), from, &steps);
            }
        });
    }
}

/// The offsets of the elements of some axes in row-major order.
pub(crate) struct Offsets {
    walk: StridedLoop<1>,
}

fn offsets(shape: &[usize], strides: &[isize]) -> Offsets {
    Offsets { walk: StridedLoop::new(shape, [strides]) }
}

impl Offsets {
    fn at(&self, index: usize) -> isize {
        let mut found = 0;
        let inner = self.walk.inner;
        self.walk.for_each(index / inner, index / inner + 1, |[offset]| {
            found = offset + (index % inner) as isize * self.walk.inner_strides[0];
        });
        found
    }

    /// Calls `body` with the offsets in order, of which all parts but the last have a multiple of 16.
    pub(crate) fn batches(&self, body: &mut dyn FnMut(&[isize])) {
        let mut offsets = [0; 16 * LANES];
        let mut held = 0;
        let (inner, step) = (self.walk.inner, self.walk.inner_strides[0]);
        self.walk.for_each(0, self.walk.runs(), |[offset]| {
            for i in 0..inner as isize {
                offsets[held] = offset + i * step;
                held += 1;
                if held == offsets.len() {
                    body(&offsets);
                    held = 0;
                }
            }
        });
        if held > 0 {
            body(&offsets[..held]);
        }
    }
}

/// Folds some rows of outputs side by side, of which every order gives the same bits.
struct WideColumns<'a, T, F: Fold<T>> {
    f: F,
    base: *const T,
    offsets: &'a [isize],
    lanes: &'a mut [F::Acc],
}

impl<T: Copy, F: Fold<T>> PlainLoop for WideColumns<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (f, n) = (self.f, self.lanes.len());
        let (fours, rest) = self.offsets.as_chunks::<4>();
        // SAFETY: `n` neighbouring elements of the array.
        let row = |o: isize| unsafe { std::slice::from_raw_parts(self.base.offset(o), n) };
        for o in fours {
            let x = [row(o[0]), row(o[1]), row(o[2]), row(o[3])];
            for i in 0..n {
                let acc = f.step(f.step(self.lanes[i], x[0][i]), x[1][i]);
                self.lanes[i] = f.step(f.step(acc, x[2][i]), x[3][i]);
            }
        }
        for o in rest {
            for (acc, x) in self.lanes.iter_mut().zip(row(*o)) {
                *acc = f.step(*acc, *x);
            }
        }
    }
}

/// Folds some rows of `n` outputs side by side into their lanes, which lie `n` apart.
struct Columns<'a, T, F: Fold<T>> {
    f: F,
    base: *const T,
    offsets: &'a [isize],
    n: usize,
    lanes: &'a mut [F::Acc],
}

impl<T: Copy, F: Fold<T>> PlainLoop for Columns<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (f, n) = (self.f, self.n);
        for (row, offset) in self.offsets.iter().enumerate() {
            // SAFETY: `n` neighbouring elements of the array.
            let x = unsafe { std::slice::from_raw_parts(self.base.offset(*offset), n) };
            let lane = row % LANES;
            for (acc, x) in self.lanes[lane * n..(lane + 1) * n].iter_mut().zip(x) {
                *acc = f.step(*acc, *x);
            }
        }
    }
}

/// Merges the lanes, which lie `n` apart, into the first.
struct Merge<'a, T, F: Fold<T>> {
    f: F,
    n: usize,
    lanes: &'a mut [F::Acc],
    of: PhantomData<T>,
}

impl<T: Copy, F: Fold<T>> PlainLoop for Merge<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (f, n) = (self.f, self.n);
        let mut width = LANES / 2;
        while width > 0 {
            let (low, high) = self.lanes.split_at_mut(width * n);
            for (a, b) in low.iter_mut().zip(&high[..width * n]) {
                *a = f.merge(*a, *b);
            }
            width /= 2;
        }
    }
}
