//! Slice.

use super::copy_into;
use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "Slice", build: Slice::build }];

/// For each of `axes` the elements `start`, `start + step`, … before (for negative steps: after)
/// `end`. Negative starts and ends count from the end of the axis; ends outside it are moved to
/// its border, as ONNX says. A start or end of `i64::MAX` or `i64::MIN` is therefore open.
struct Slice {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
}

impl Slice {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let slice = Self {
            starts: attributes.ints_required("starts")?,
            ends: attributes.ints_required("ends")?,
            axes: attributes.ints_opt("axes")?,
            steps: attributes.ints_opt("steps")?,
        };
        let n = slice.starts.len();
        let same = |list: &Option<Vec<i64>>| list.as_ref().is_none_or(|l| l.len() == n);
        if slice.ends.len() != n || !same(&slice.axes) || !same(&slice.steps) {
            return Err(Error::attribute(
                "Slice",
                "starts, ends, axes and steps of one length",
                format!(
                    "{:?}, {:?}, {:?}, {:?}",
                    slice.starts, slice.ends, slice.axes, slice.steps
                ),
            ));
        }
        if slice.steps.iter().flatten().any(|&s| s == 0) {
            return Err(Error::attribute("Slice", "steps other than 0", "a step of 0"));
        }
        Ok(Arc::new(slice))
    }

    /// (axis, start, stop, step) with 0 <= start <= extent and -1 <= stop <= extent.
    fn parts(&self, shape: &[usize]) -> Result<Vec<(usize, i64, i64, i64)>> {
        let mut parts: Vec<(usize, i64, i64, i64)> = Vec::with_capacity(self.starts.len());
        for i in 0..self.starts.len() {
            let axis = self.axes.as_ref().map_or(i as i64, |a| a[i]);
            let axis = normalize_axis("Slice", axis, shape.len())?;
            if parts.iter().any(|&(other, ..)| other == axis) {
                return Err(Error::attribute("Slice", "each axis once", format!("{axis} twice")));
            }
            let n = shape[axis] as i64;
            let step = self.steps.as_ref().map_or(1, |s| s[i]);
            let from_end = |v: i64| if v < 0 { v.saturating_add(n) } else { v };
            let (start, stop) = (from_end(self.starts[i]), from_end(self.ends[i]));
            parts.push(if step > 0 {
                (axis, start.clamp(0, n), stop.clamp(0, n), step)
            } else {
                (axis, start.clamp(0, (n - 1).max(0)), stop.clamp(-1, (n - 1).max(-1)), step)
            });
        }
        Ok(parts)
    }
}

fn count(start: i64, stop: i64, step: i64) -> usize {
    let span = if step > 0 { stop - start } else { start - stop };
    if span <= 0 { 0 } else { ((span - 1) as u64 / step.unsigned_abs() + 1) as usize }
}

impl Kernel for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let mut shape = x.shape.clone();
        for (axis, start, stop, step) in self.parts(&x.shape)? {
            shape[axis] = if x.shape[axis] == 0 { 0 } else { count(start, stop, step) };
        }
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        if outputs[0].size() == 0 {
            return Ok(());
        }
        let mut view = x.clone();
        for (axis, start, stop, step) in self.parts(x.shape())? {
            // Steps past the axis select one element; the view takes them at the axis's length.
            let n = x.shape()[axis] as i64;
            view = view.slice(axis as i64, start, stop, step.clamp(-n.max(1), n.max(1)))?;
        }
        copy_into(&view, &outputs[0]);
        Ok(())
    }
}
