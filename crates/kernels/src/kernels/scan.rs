//! CumSum: one addition after the other along an axis; floats in f64, each result rounded once.

use crate::array::{Array, Meta, normalize_axis};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::number::{Number, for_number};
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry {
    name: "CumSum",
    build: |a| {
        Ok(Arc::new(CumSum {
            axis: a.int("axis", 0)?,
            exclusive: a.flag("exclusive", false)?,
            reverse: a.flag("reverse", false)?,
        }))
    },
}];

struct CumSum {
    axis: i64,
    /// Whether an element is left out of its own sum.
    exclusive: bool,
    reverse: bool,
}

impl Kernel for CumSum {
    fn name(&self) -> &'static str {
        "CumSum"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("CumSum", inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype("CumSum", "a numeric dtype", x.dtype.name()));
        }
        normalize_axis("CumSum", self.axis, x.rank())?;
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis("CumSum", self.axis, x.rank())?;
        in_full_precision(&[x], outputs, |x, out| {
            let x = x[0].to_contiguous()?;
            match x.dtype() {
                DType::F32 => self.along::<f32, f64>(&x, &out[0], axis, f64::from, |s| s as f32),
                DType::F64 => self.along::<f64, f64>(&x, &out[0], axis, |v| v, |s| s),
                dtype => for_number!(dtype, T => {
                    self.along::<T, T>(&x, &out[0], axis, |v| v, |s| s);
                }),
            }
            Ok(())
        })
    }
}

struct Lines<T>(*const T, *mut T);
// SAFETY: parts write disjoint lines.
unsafe impl<T> Sync for Lines<T> {}

impl CumSum {
    fn along<T: Element, A: Number>(
        &self,
        x: &Array,
        out: &Array,
        axis: usize,
        widen: impl Fn(T) -> A + Sync,
        round: impl Fn(A) -> T + Sync,
    ) {
        let length = out.shape()[axis];
        let inner: usize = out.shape()[axis + 1..].iter().product();
        if out.size() == 0 {
            return;
        }
        let lines = Lines(x.as_ptr::<T>(), out.as_mut_ptr::<T>());
        // Neighbouring lines are summed together, row after row.
        let width = inner.min(256);
        let tiles = inner.div_ceil(width);
        let outer = out.size() / (length * inner);
        let grain = (CHEAP / (length * width)).max(1);
        parallel::for_ranges(outer * tiles, grain, |range| {
            let lines = &lines;
            let mut sums = vec![A::ZERO; width];
            for part in range {
                let first = part % tiles * width;
                let n = width.min(inner - first);
                sums[..n].fill(A::ZERO);
                for step in 0..length {
                    let row = if self.reverse { length - 1 - step } else { step };
                    let at = (part / tiles * length + row) * inner + first;
                    for (i, sum) in sums[..n].iter_mut().enumerate() {
                        // SAFETY: inside the two contiguous arrays.
                        unsafe {
                            let with = sum.add(widen(*lines.0.add(at + i)));
                            *lines.1.add(at + i) = round(if self.exclusive { *sum } else { with });
                            *sum = with;
                        }
                    }
                }
            }
        });
    }
}
