//! IndexAdd: the gradient of Gather.

use super::index;
use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::movement::copy_into;
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "IndexAdd", build: IndexAdd::build }];

/// `x` with the slices of `src` added along `axis` at `index`: `src` has the shape that
/// `Gather(x, index, axis)` gives. Slices are added in the order of `index` (row-major), one
/// rounding for each addition; integers wrap.
struct IndexAdd {
    axis: i64,
}

impl IndexAdd {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { axis: attributes.int("axis", 0)? }))
    }
}

/// Columns of one part: every part walks all indices, over columns of its own.
const COLUMNS: usize = 256;

fn add_rows<T: Element>(
    out: &Array,
    src: &Array,
    rows: &[usize],
    extent: usize,
    width: usize,
    add: impl Fn(T, T) -> T + Sync,
) {
    let outer = out.size().checked_div(extent * width).unwrap_or(0);
    let job = Shared::new((out.as_mut_ptr::<T>(), src.as_ptr::<T>()));
    let strips = width.div_ceil(COLUMNS);
    let work = |part: usize| {
        let (o, first) = (part / strips, part % strips * COLUMNS);
        let columns = COLUMNS.min(width - first);
        for (i, &row) in rows.iter().enumerate() {
            let (to, from) = job.get();
            // SAFETY: rows of the two contiguous arrays; no other part has these columns.
            let (to, from) = unsafe {
                let to = to.add((o * extent + row) * width + first);
                let from = from.add((o * rows.len() + i) * width + first);
                (
                    std::slice::from_raw_parts_mut(to, columns),
                    std::slice::from_raw_parts(from, columns),
                )
            };
            for (t, &f) in to.iter_mut().zip(from) {
                *t = add(*t, f);
            }
        }
    };
    let parts = outer * strips;
    let grain = if src.size() < 1 << 16 { parts } else { 1 };
    parallel::for_ranges(parts, grain, |range| range.for_each(work));
}

impl Kernel for IndexAdd {
    fn name(&self) -> &'static str {
        "IndexAdd"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 3, 3)?;
        let (x, at, src) = (inputs.get(0), inputs.get(1), inputs.get(2));
        let dtype = inputs.same_dtype(&[0, 2])?;
        if !(dtype.is_int() || matches!(dtype, DType::F32 | DType::F64)) {
            let expected = "an integer dtype, float32 or float64";
            return Err(Error::dtype(self.name(), expected, dtype.name()));
        }
        index::check_dtype(self.name(), at)?;
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let mut want = Dims::from_slice(&x.shape[..axis]);
        want.extend_from_slice(&at.shape);
        want.extend_from_slice(&x.shape[axis + 1..]);
        if src.shape != want {
            return Err(Error::shape(
                self.name(),
                format!("src of shape {want:?} for x {:?} and index {:?}", x.shape, at.shape),
                format!("{:?}", src.shape),
            ));
        }
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), Some(at), Some(src)) = (inputs[0], inputs[1], inputs[2]) else {
            return Ok(());
        };
        let out = &outputs[0];
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let extent = x.shape()[axis];
        let rows = index::resolved(self.name(), at, axis, extent)?;
        let src = src.to_contiguous()?;
        if x.as_bytes_ptr() != out.as_bytes_ptr() {
            copy_into(x, out);
        }
        let width: usize = x.shape()[axis + 1..].iter().product();
        match out.dtype() {
            DType::F32 => add_rows::<f32>(out, &src, &rows, extent, width, |a, b| a + b),
            DType::F64 => add_rows::<f64>(out, &src, &rows, extent, width, |a, b| a + b),
            other => match other.size() {
                1 => add_rows::<u8>(out, &src, &rows, extent, width, u8::wrapping_add),
                2 => add_rows::<u16>(out, &src, &rows, extent, width, u16::wrapping_add),
                4 => add_rows::<u32>(out, &src, &rows, extent, width, u32::wrapping_add),
                _ => add_rows::<u64>(out, &src, &rows, extent, width, u64::wrapping_add),
            },
        }
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}
