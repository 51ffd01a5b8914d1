//! Concat and Split.

use super::copy_into;
use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] =
    &[Entry { name: "Concat", build: Concat::build }, Entry { name: "Split", build: Split::build }];

/// The inputs one after the other along `axis`; all other extents are equal.
struct Concat {
    axis: i64,
}

impl Concat {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { axis: attributes.int_required("axis")? }))
    }
}

impl Kernel for Concat {
    fn name(&self) -> &'static str {
        "Concat"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let count = inputs.len().max(1);
        let metas = Inputs::new(self.name(), inputs, count, count)?;
        let every: Vec<usize> = (0..count).collect();
        let dtype = metas.same_dtype(&every)?;
        let mut shape = metas.get(0).shape.clone();
        let axis = normalize_axis(self.name(), self.axis, shape.len())?;
        for i in 1..count {
            let other = &metas.get(i).shape;
            let fits = other.len() == shape.len()
                && (0..shape.len()).all(|k| k == axis || other[k] == shape[k]);
            if !fits {
                return Err(Error::shape(
                    self.name(),
                    format!("input {i} to have the extents of input 0 but for axis {axis}"),
                    format!("{other:?} beside {:?}", metas.get(0).shape),
                ));
            }
            shape[axis] = shape[axis].checked_add(other[axis]).ok_or_else(|| {
                Error::memory(self.name(), "an extent that fits 64 bits", "a larger one")
            })?;
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        let axis = normalize_axis(self.name(), self.axis, out.rank())?;
        let mut start = 0;
        for input in inputs.iter().flatten() {
            let stop = start + input.shape()[axis];
            copy_into(input, &out.slice(axis as i64, start as i64, stop as i64, 1)?);
            start = stop;
        }
        Ok(())
    }
}

/// The input cut along `axis` into parts of the extents `split`.
struct Split {
    axis: i64,
    sizes: Vec<usize>,
}

impl Split {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let axis = attributes.int("axis", 0)?;
        Ok(Arc::new(Self { axis, sizes: attributes.sizes_required("split")? }))
    }
}

impl Kernel for Split {
    fn name(&self) -> &'static str {
        "Split"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let total = self.sizes.iter().try_fold(0usize, |sum, &s| sum.checked_add(s));
        if total != Some(x.shape[axis]) {
            return Err(Error::shape(
                self.name(),
                format!("split to add up to the extent {} of axis {axis}", x.shape[axis]),
                format!("{:?}", self.sizes),
            ));
        }
        let part = |&size: &usize| {
            let mut shape = x.shape.clone();
            shape[axis] = size;
            Meta { dtype: x.dtype, shape }
        };
        Ok(self.sizes.iter().map(part).collect())
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let mut start = 0;
        for (out, &size) in outputs.iter().zip(&self.sizes) {
            let stop = start + size;
            copy_into(&x.slice(self.axis, start as i64, stop as i64, 1)?, out);
            start = stop;
        }
        Ok(())
    }

    fn single_output(&self) -> bool {
        false
    }
}
