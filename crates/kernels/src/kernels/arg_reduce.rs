//! The position of the greatest or least element along an axis.

use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::fold::widened;
use crate::kernels::number::Number;
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "ArgMax", build: |a| ArgReduce::build(a, true) },
    Entry { name: "ArgMin", build: |a| ArgReduce::build(a, false) },
];

/// Elements that one part of the work looks at.
const GRAIN: usize = 1 << 15;

/// Output: int64. Elements are compared in ascending order of their position: the first of equal
/// ones wins (the last, with `select_last_index`), and a NaN wins over every number.
struct ArgReduce {
    greatest: bool,
    axis: i64,
    keepdims: bool,
    last: bool,
}

impl ArgReduce {
    fn build(attributes: &mut Attributes, greatest: bool) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self {
            greatest,
            axis: attributes.int("axis", 0)?,
            keepdims: attributes.flag("keepdims", true)?,
            last: attributes.flag("select_last_index", false)?,
        }))
    }

    fn fill<T: Number>(&self, x: &Array, axis: usize, out: &Array) {
        let length = x.shape()[axis];
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let source = x.as_slice::<T>();
        let target = out.as_mut_ptr::<i64>() as usize;
        parallel::for_ranges(out.size(), (GRAIN / length).max(1), |range| {
            for index in range {
                let row = index / inner * inner * length + index % inner;
                let (mut best, mut at) = (source[row], 0);
                for i in 1..length {
                    let value = source[row + i * inner];
                    let ahead = if self.greatest { best < value } else { value < best };
                    let tied = self.last && (value == best || value.is_nan());
                    if (!best.is_nan() && (ahead || value.is_nan())) || tied {
                        (best, at) = (value, i);
                    }
                }
                // SAFETY: each part writes its own range of the output.
                unsafe { *(target as *mut i64).add(index) = at as i64 };
            }
        });
    }
}

impl Kernel for ArgReduce {
    fn name(&self) -> &'static str {
        if self.greatest { "ArgMax" } else { "ArgMin" }
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype(self.name(), "numbers", "bool"));
        }
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let mut shape = x.shape.clone();
        if shape[axis] == 0 && x.shape.iter().enumerate().all(|(i, &d)| i == axis || d > 0) {
            return Err(Error::shape(
                self.name(),
                format!("at least one element along axis {axis}"),
                format!("{:?}", x.shape),
            ));
        }
        if self.keepdims {
            shape[axis] = 1;
        } else {
            shape.remove(axis);
        }
        Ok(smallvec![Meta { dtype: DType::I64, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), [out]) = (inputs[0], outputs) else { return Ok(()) };
        if out.size() == 0 {
            return Ok(());
        }
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let wide = widened(x)?;
        let x = wide.to_contiguous()?;
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
    }
}
