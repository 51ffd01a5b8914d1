//! ArgMax and ArgMin: the first (or last) place of a row's extremum, which is its first NaN if it has
//! one. Zeros of both signs are equal.

use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store, fold_row, widened};
use crate::kernels::number::{Number, for_number};
use crate::kernels::reduce::{Maximum, Minimum};
use crate::parallel;
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
