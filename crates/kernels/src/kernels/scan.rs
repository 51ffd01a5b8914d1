//! Running sums along an axis.

use crate::array::{Array, Meta, normalize_axis};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::number::Number;
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry {
    name: "CumSum",
    build: |a| {
        Ok(Arc::new(CumSum {
            axis: a.int_required("axis")?,
            exclusive: a.flag("exclusive", false)?,
            reverse: a.flag("reverse", false)?,
        }))
    },
}];

/// Elements that one part of the work adds.
const GRAIN: usize = 1 << 14;

/// `y[i] = x[0] + … + x[i]`, added one after the other in the dtype of the elements from +0
/// (`exclusive` leaves out `x[i]`, `reverse` runs from the end); half precision is added in f32 and
/// rounded once for each output.
struct CumSum {
    axis: i64,
    exclusive: bool,
    reverse: bool,
}

impl CumSum {
    fn fill<T: Number>(&self, x: &Array, axis: usize, out: &Array) {
        let length = x.shape()[axis];
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let source = x.as_slice::<T>();
        let target = out.as_mut_ptr::<T>() as usize;
        parallel::for_ranges(out.size() / length, (GRAIN / length).max(1), |range| {
            for index in range {
                let row = index / inner * inner * length + index % inner;
                let mut sum = T::ZERO;
                for step in 0..length {
                    let i = if self.reverse { length - 1 - step } else { step };
                    let at = row + i * inner;
                    let after = sum.add(source[at]);
                    // SAFETY: each part writes its own rows of the output.
                    unsafe {
                        *(target as *mut T).add(at) = if self.exclusive { sum } else { after };
                    }
                    sum = after;
                }
            }
        });
    }
}

impl Kernel for CumSum {
    fn name(&self) -> &'static str {
        "CumSum"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype(self.name(), "numbers", "bool"));
        }
        normalize_axis(self.name(), self.axis, x.rank())?;
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        if x.size() == 0 {
            return Ok(());
        }
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        in_full_precision(&[x], outputs, |inputs, outputs| {
            let x = inputs[0].to_contiguous()?;
            let out = &outputs[0];
            match x.dtype() {
                DType::F32 => self.fill::<f32>(&x, axis, out),
                DType::F64 => self.fill::<f64>(&x, axis, out),
                DType::U8 => self.fill::<u8>(&x, axis, out),
                DType::U16 => self.fill::<u16>(&x, axis, out),
                DType::U32 => self.fill::<u32>(&x, axis, out),
                DType::U64 => self.fill::<u64>(&x, axis, out),
                DType::I8 => self.fill::<i8>(&x, axis, out),
                DType::I16 => self.fill::<i16>(&x, axis, out),
                DType::I32 => self.fill::<i32>(&x, axis, out),
                DType::I64 => self.fill::<i64>(&x, axis, out),
                DType::Bool | DType::F16 | DType::BF16 => {}
            }
            Ok(())
        })
    }
}
