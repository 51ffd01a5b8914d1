//! ArgMax and ArgMin: the first (or last) place of a row's extremum, which is its first NaN if it has
//! one. Zeros of both signs are equal.

use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store, Tiles, fold_row, widened};
use crate::kernels::number::{Number, for_number};
use crate::kernels::reduce::{Maximum, Minimum};
use crate::parallel;
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

macro_rules! entry {
    ($name:expr, $largest:expr) => {
        Entry {
            name: $name,
            build: |a| {
                Ok(Arc::new(ArgExtremum {
                    name: $name,
                    largest: $largest,
                    axis: a.int("axis", 0)?,
                    keep: a.flag("keepdims", true)?,
                    last: a.flag("select_last_index", false)?,
                }))
            },
        }
    };
}

pub(crate) const KERNELS: &[Entry] = &[entry!("ArgMax", true), entry!("ArgMin", false)];

struct ArgExtremum {
    name: &'static str,
    largest: bool,
    axis: i64,
    keep: bool,
    last: bool,
}

impl Kernel for ArgExtremum {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype(self.name, "a numeric dtype", x.dtype.name()));
        }
        let axis = normalize_axis(self.name, self.axis, x.rank())?;
        if x.shape[axis] == 0 {
            let got = format!("shape {:?}", x.shape);
            return Err(Error::shape(self.name, format!("elements along axis {axis}"), got));
        }
        let mut shape: Dims = x.shape.clone();
        if self.keep {
            shape[axis] = 1;
        } else {
            shape.remove(axis);
        }
        Ok(smallvec![Meta { dtype: DType::I64, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis(self.name, self.axis, x.rank())?;
        let x = widened(x)?;
        let rows = Rows::new(&x, &[axis])?;
        for_number!(x.dtype(), T => self.find::<T>(&rows, &outputs[0]));
        Ok(())
    }
}

impl ArgExtremum {
    fn find<T: Number + Store>(&self, rows: &Rows, out: &Array) {
        match rows.tiles() {
            Some(tiles) if u32::try_from(rows.count).is_ok() => {
                self.find_side_by_side::<T>(rows, tiles, out);
            }
            _ => self.find_rows::<T>(rows, out),
        }
    }

    fn find_side_by_side<T: Number + Store>(&self, rows: &Rows, tiles: Tiles, out: &Array) {
        let (largest, last) = (self.largest, self.last);
        rows.for_each_tile::<T>(tiles, TILE, &|first, n, base, steps| {
            let (mut best, mut places) = ([T::ZERO; TILE], [0u32; TILE]);
            let (best, places) = (&mut best[..n], &mut places[..n]);
            let mut row = 0;
            steps.batches(&mut |offsets| {
                let (best, places) = (&mut *best, &mut *places);
                vectorized(Columns { base, offsets, row, best, places, largest, last });
                row += offsets.len() as u32;
            });
            for (i, &place) in places.iter().enumerate() {
                // SAFETY: each output is stored by one part.
                unsafe { i64::from(place).store(out, first + i) };
            }
        });
    }

    fn find_rows<T: Number + Store>(&self, rows: &Rows, out: &Array) {
        parallel::for_ranges(rows.outputs, rows.grain(), |range| {
            let source = Source::rows(&rows.view);
            let mut slot = Slot::new();
            for i in range {
                let best = if self.largest {
                    fold_row::<T, _>(Maximum, &source, i, rows.count, &mut slot)
                } else {
                    fold_row::<T, _>(Minimum, &source, i, rows.count, &mut slot)
                };
                let hit = |x: &T| *x == best || best.is_nan() && x.is_nan();
                let (mut seen, mut found) = (0, None);
                source.pieces::<T>(i * rows.count, rows.count, &mut slot, |x| {
                    if self.last && !best.is_nan() {
                        found = x.iter().rposition(hit).map(|p| seen + p).or(found);
                    } else if found.is_none() {
                        found = x.iter().position(hit).map(|p| seen + p);
                    }
                    seen += x.len();
                });
                // SAFETY: each output is stored by one part.
                unsafe { (found.unwrap_or(0) as i64).store(out, i) };
            }
        });
    }
}

/// Outputs that are found side by side.
const TILE: usize = 64;

/// Some rows of outputs side by side, from row number `row` on, after the best so far.
struct Columns<'a, T> {
    base: *const T,
    offsets: &'a [isize],
    row: u32,
    best: &'a mut [T],
    places: &'a mut [u32],
    largest: bool,
    last: bool,
}

impl<T: Number> PlainLoop for Columns<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.best.len();
        for (row, offset) in (self.row..).zip(self.offsets) {
            // SAFETY: `n` neighbouring elements of the array.
            let x = unsafe { std::slice::from_raw_parts(self.base.offset(*offset), n) };
            if row == 0 {
                self.best.copy_from_slice(x);
                continue;
            }
            let (largest, last) = (self.largest, self.last);
            for ((x, best), place) in x.iter().zip(&mut *self.best).zip(&mut *self.places) {
                let (a, b) = if largest { (*best, *x) } else { (*x, *best) };
                let better = if last { a <= b } else { a < b };
                let take = better | x.is_nan() & !best.is_nan();
                *best = if take { *x } else { *best };
                *place = if take { row } else { *place };
            }
        }
    }
}
