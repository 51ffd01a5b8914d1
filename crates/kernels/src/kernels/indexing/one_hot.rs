//! OneHot.

use super::index;
use crate::array::{Array, Meta, element_count};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "OneHot", build: OneHot::build }];

/// A new axis of extent `depth`: `values[1]` at the index, `values[0]` elsewhere. Indices count from
/// the end when negative; as ONNX says, one outside `[-depth, depth)` gives `values[0]` throughout.
struct OneHot {
    axis: i64,
    depth: usize,
}

impl OneHot {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let axis = attributes.int("axis", -1)?;
        let depth = attributes.int_required("depth")?;
        let depth = usize::try_from(depth)
            .map_err(|_| Error::attribute("OneHot", "depth not negative", depth.to_string()))?;
        Ok(Arc::new(Self { axis, depth }))
    }

    fn axis(&self, rank: usize) -> Result<usize> {
        crate::array::normalize_axis(self.name(), self.axis, rank + 1)
    }
}

impl Kernel for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 2)?;
        let (indices, values) = (inputs.get(0), inputs.get(1));
        if indices.dtype == DType::Bool || matches!(indices.dtype, DType::F16 | DType::BF16) {
            let expected = "indices of integers, float32 or float64";
            return Err(Error::dtype(self.name(), expected, indices.dtype.name()));
        }
        if values.shape.as_slice() != [2] {
            let got = format!("{:?}", values.shape);
            return Err(Error::shape(self.name(), "values (off, on) of shape [2]", got));
        }
        let mut shape = indices.shape.clone();
        shape.insert(self.axis(indices.rank())?, self.depth);
        element_count(self.name(), &shape, values.dtype)?;
        Ok(smallvec![Meta { dtype: values.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(indices), Some(values)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let axis = self.axis(indices.rank())?;
        let inner: usize = indices.shape()[axis..].iter().product();
        let chosen = index::values(indices);
        let values = values.to_contiguous()?;
        let depth = self.depth as i64;
        for_size!(values.dtype(), T => {
            let pair = values.as_slice::<T>();
            // SAFETY: the kernel's own output, contiguous.
            let out = unsafe { outputs[0].as_mut_slice::<T>() };
            out.fill(pair[0]);
            for (i, &at) in chosen.iter().enumerate() {
                let at = if at < 0 { at + depth } else { at };
                if (0..depth).contains(&at) {
                    out[(i / inner * self.depth + at as usize) * inner + i % inner] = pair[1];
                }
            }
        });
        Ok(())
    }
}
