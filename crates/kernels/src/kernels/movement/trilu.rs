//! Trilu.

use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "Trilu", build: Trilu::build }];

/// The upper (or lower) triangle of the last two axes: element (i, j) is kept where `j - i >= k`
/// (lower: `j - i <= k`), all others are +0.
struct Trilu {
    k: i64,
    upper: bool,
}

impl Trilu {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { k: attributes.int("k", 0)?, upper: attributes.flag("upper", true)? }))
    }
}

impl Kernel for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        if x.rank() < 2 {
            let got = format!("{:?}", x.shape);
            return Err(Error::shape(self.name(), "at least 2 axes", got));
        }
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let x = x.to_contiguous()?;
        let out = &outputs[0];
        let (rows, cols) = (out.shape()[out.rank() - 2], out.shape()[out.rank() - 1]);
        for_size!(out.dtype(), T => {
            let (from, to) = (x.as_ptr::<T>(), out.as_mut_ptr::<T>());
            for row in 0..out.size().checked_div(cols).unwrap_or(0) {
                let first = ((row % rows) as i64).saturating_add(self.k);
                // Columns [0, cut) belong to the lower part.
                let edge = if self.upper { first } else { first.saturating_add(1) };
                let cut = edge.clamp(0, cols as i64) as usize;
                let (keep, clear) =
                    if self.upper { (cut..cols, 0..cut) } else { (0..cut, cut..cols) };
                // SAFETY: a row of both contiguous arrays; equal memory is copied onto itself.
                unsafe {
                    let (from, to) = (from.add(row * cols), to.add(row * cols));
                    std::ptr::copy(from.add(keep.start), to.add(keep.start), keep.len());
                    to.add(clear.start).write_bytes(0, clear.len());
                }
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}
