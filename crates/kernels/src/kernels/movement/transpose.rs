//! Transpose.

use super::copy_into;
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "Transpose", build: Transpose::build }];

/// Axis `i` of the result is axis `perm[i]` of the input; without `perm` the axes are reversed.
/// Elements are copied.
struct Transpose {
    perm: Option<Vec<i64>>,
}

impl Transpose {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { perm: attributes.ints_opt("perm")? }))
    }

    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        let Some(perm) = &self.perm else { return Ok((0..rank).rev().collect()) };
        let mut seen = vec![false; rank];
        let axes: Vec<usize> = perm
            .iter()
            .filter_map(|&a| {
                let axis = crate::array::normalize_axis(self.name(), a, rank).ok()?;
                (!std::mem::replace(&mut seen[axis], true)).then_some(axis)
            })
            .collect();
        if axes.len() != rank || perm.len() != rank {
            return Err(Error::attribute(
                self.name(),
                format!("perm to name each of the {rank} axes once"),
                format!("{perm:?}"),
            ));
        }
        Ok(axes)
    }
}

impl Kernel for Transpose {
    fn name(&self) -> &'static str {
        "Transpose"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let shape: Dims = self.axes(x.rank())?.into_iter().map(|a| x.shape[a]).collect();
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axes: Vec<i64> = self.axes(x.rank())?.into_iter().map(|a| a as i64).collect();
        copy_into(&x.permute(&axes)?, &outputs[0]);
        Ok(())
    }
}
