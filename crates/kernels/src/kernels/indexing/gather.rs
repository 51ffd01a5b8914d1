//! Gather, GatherElements and GatherND.

use super::index;
use crate::array::{Array, Dims, Meta, element_count, normalize_axis};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Gather", build: Gather::build },
    Entry { name: "GatherElements", build: GatherElements::build },
    Entry { name: "GatherND", build: GatherND::build },
];

/// Bytes that one part of a parallel gather moves.
const GRAIN: usize = 1 << 17;

/// Copies rows of `row` bytes: row `i` of `out` is row `source(i)` of `data`.
fn copy_rows(data: &Array, out: &Array, row: usize, source: impl Fn(usize) -> usize + Sync) {
    if out.size() == 0 {
        return;
    }
    let count = out.size() * out.dtype().size() / row;
    let job = Shared::new((data.as_bytes_ptr(), out.as_bytes_ptr().cast_mut()));
    parallel::for_ranges(count, (GRAIN / row).max(1), |range| {
        let (from, to) = job.get();
        if row == 4 {
            for i in range {
                // SAFETY: as below; rows of one element.
                unsafe {
                    let from = from.add(source(i) * 4).cast::<[u8; 4]>();
                    *to.add(i * 4).cast::<[u8; 4]>() = *from;
                }
            }
            return;
        }
        for i in range {
            // SAFETY: rows of the two contiguous arrays; every part writes rows of its own.
            unsafe {
                let from = from.add(source(i) * row);
                std::ptr::copy_nonoverlapping(from, to.add(i * row), row);
            }
        }
    });
}

/// `data` with axis `axis` replaced by the axes of `indices`: slices of `data` at the indices.
struct Gather {
    axis: i64,
}

impl Gather {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { axis: attributes.int("axis", 0)? }))
    }
}

impl Kernel for Gather {
    fn name(&self) -> &'static str {
        "Gather"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 2)?;
        let (data, indices) = (inputs.get(0), inputs.get(1));
        index::check_dtype(self.name(), indices)?;
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        let mut shape = Dims::from_slice(&data.shape[..axis]);
        shape.extend_from_slice(&indices.shape);
        shape.extend_from_slice(&data.shape[axis + 1..]);
        element_count(self.name(), &shape, data.dtype)?;
        Ok(smallvec![Meta { dtype: data.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(data), Some(indices)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        let extent = data.shape()[axis];
        let indices = index::resolved(self.name(), indices, axis, extent)?;
        let data = data.to_contiguous()?;
        let row = data.shape()[axis + 1..].iter().product::<usize>() * data.dtype().size();
        let n = indices.len();
        copy_rows(&data, &outputs[0], row, |i| i / n * extent + indices[i % n]);
        Ok(())
    }
}

/// One element for each index: `out[i, j, …] = data[i, …, indices[i, j, …], …]` with the index in
/// place of coordinate `axis`. The other extents of `indices` are at most those of `data`.
struct GatherElements {
    axis: i64,
}

impl GatherElements {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { axis: attributes.int("axis", 0)? }))
    }
}

impl Kernel for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 2)?;
        let (data, indices) = (inputs.get(0), inputs.get(1));
        index::check_dtype(self.name(), indices)?;
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        index::check_elements(self.name(), data, indices, axis)?;
        Ok(smallvec![Meta { dtype: data.dtype, shape: indices.shape.clone() }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(data), Some(indices)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        let chosen = index::resolved(self.name(), indices, axis, data.shape()[axis])?;
        let bases = index::Bases::new(out.shape(), data.strides(), axis);
        let step = data.strides()[axis];
        for_size!(out.dtype(), T => {
            let from = data.as_ptr::<T>();
            // SAFETY: the kernel's own output, contiguous.
            let to = unsafe { out.as_mut_slice::<T>() };
            bases.for_each_run(|first, n, base, next| {
                let pairs = to[first..first + n].iter_mut().zip(&chosen[first..first + n]);
                let mut base = base;
                for (to, &index) in pairs {
                    // SAFETY: coordinates inside data: the index is checked, the others are smaller.
                    *to = unsafe { *from.offset(base + index as isize * step) };
                    base += next;
                }
            });
        });
        Ok(())
    }
}

/// A slice of `data` for each index tuple in the last axis of `indices`; the first `batch_dims`
/// axes of both run in parallel.
struct GatherND {
    batch_dims: usize,
}

impl GatherND {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let batch_dims = attributes.int("batch_dims", 0)?;
        let batch_dims = usize::try_from(batch_dims).map_err(|_| {
            Error::attribute("GatherND", "batch_dims not negative", batch_dims.to_string())
        })?;
        Ok(Arc::new(Self { batch_dims }))
    }
}

impl Kernel for GatherND {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 2)?;
        let (data, indices) = (inputs.get(0), inputs.get(1));
        index::check_dtype(self.name(), indices)?;
        let depth = index::tuple_length(self.name(), data, indices, self.batch_dims)?;
        let mut shape = Dims::from_slice(&indices.shape[..indices.rank() - 1]);
        shape.extend_from_slice(&data.shape[self.batch_dims + depth..]);
        element_count(self.name(), &shape, data.dtype)?;
        Ok(smallvec![Meta { dtype: data.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(data), Some(indices)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let (batch, rank) = (self.batch_dims, indices.rank());
        let depth = indices.shape()[rank - 1];
        let mut rows = index::tuples(self.name(), indices, data.shape(), batch)?;
        let data = data.to_contiguous()?;
        let per_batch: usize = indices.shape()[batch..rank - 1].iter().product();
        let block: usize = data.shape()[batch..batch + depth].iter().product();
        for (i, row) in rows.iter_mut().enumerate() {
            *row += i / per_batch.max(1) * block;
        }
        let row = data.shape()[batch + depth..].iter().product::<usize>() * data.dtype().size();
        copy_rows(&data, &outputs[0], row, |i| rows[i]);
        Ok(())
    }
}
