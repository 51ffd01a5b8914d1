//! Expand and Tile.

use super::copy_into;
use crate::array::{Array, Dims, Meta, broadcast, element_count};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] =
    &[Entry { name: "Expand", build: Expand::build }, Entry { name: "Tile", build: Tile::build }];

/// The input broadcast together with `shape` (which may itself have extents of 1), copied.
struct Expand {
    shape: Vec<usize>,
}

impl Expand {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { shape: attributes.sizes_required("shape")? }))
    }
}

impl Kernel for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let shape = broadcast(self.name(), &x.shape, &self.shape)?;
        element_count(self.name(), &shape, x.dtype)?;
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        copy_into(x, &outputs[0]);
        Ok(())
    }
}

/// Axis `i` of the input `repeats[i]` times, one copy after the other.
struct Tile {
    repeats: Vec<usize>,
}

impl Tile {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { repeats: attributes.sizes_required("repeats")? }))
    }
}

impl Kernel for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        if self.repeats.len() != x.rank() {
            return Err(Error::attribute(
                self.name(),
                format!("repeats for each of the {} axes", x.rank()),
                format!("{:?}", self.repeats),
            ));
        }
        let mut shape = Dims::new();
        for (&d, &r) in x.shape.iter().zip(&self.repeats) {
            shape.push(d.checked_mul(r).ok_or_else(|| {
                let got = format!("{:?} times {:?}", x.shape, self.repeats);
                Error::memory(self.name(), "extents that fit 64 bits", got)
            })?);
        }
        element_count(self.name(), &shape, x.dtype)?;
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        // Repeated axes become (repeat, extent) pairs of which the first is broadcast.
        let (mut split, mut extra) = (Dims::new(), Vec::new());
        for (&d, &r) in x.shape().iter().zip(&self.repeats) {
            if r != 1 {
                extra.push(split.len() as i64);
                split.push(r);
            }
            split.push(d);
        }
        copy_into(&x.unsqueeze(&extra)?, &out.reshape(&split)?);
        Ok(())
    }
}
