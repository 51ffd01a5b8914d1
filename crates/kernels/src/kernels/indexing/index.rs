//! Index arrays of int32 or int64, read and checked.

use crate::array::{Array, Dims, Meta, StridedLoop, Strides};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::number::for_number;

/// Fails unless the dtype may hold indices.
pub(super) fn check_dtype(operator: &str, meta: &Meta) -> Result<()> {
    if matches!(meta.dtype, DType::I32 | DType::I64) {
        return Ok(());
    }
    Err(Error::dtype(operator, "indices of int32 or int64", meta.dtype.name()))
}

/// The elements in row-major order; floats are cut off towards zero.
pub(super) fn values(indices: &Array) -> Vec<i64> {
    let mut out = Vec::with_capacity(indices.size());
    if indices.size() == 0 {
        return out;
    }
    let walk = StridedLoop::new(indices.shape(), [indices.strides()]);
    let step = walk.inner_strides[0];
    for_number!(indices.dtype(), T => {
        let from = indices.as_ptr::<T>();
        walk.for_each(0, walk.runs(), |[at]| {
            for i in 0..walk.inner as isize {
                // SAFETY: elements of the array, which holds no halves.
                let value = unsafe { *from.offset(at + i * step) };
                #[allow(clippy::unnecessary_cast)]
                out.push(value as i64);
            }
        });
    });
    out
}

/// One index in `0..extent`.
pub(super) fn resolve(operator: &str, value: i64, axis: usize, extent: usize) -> Result<usize> {
    let n = extent as i64;
    if (-n..n).contains(&value) {
        return Ok((if value < 0 { value + n } else { value }) as usize);
    }
    Err(Error::bounds(
        operator,
        format!("indices in [-{extent}, {extent}) on axis {axis} of extent {extent}"),
        format!("{value}"),
    ))
}

/// The elements in row-major order, each in `0..extent`.
pub(super) fn resolved(
    operator: &str,
    indices: &Array,
    axis: usize,
    extent: usize,
) -> Result<Vec<usize>> {
    values(indices).into_iter().map(|v| resolve(operator, v, axis, extent)).collect()
}

/// Fails unless `indices` has the rank of `data` and, off `axis`, extents not above those of it.
pub(super) fn check_elements(
    operator: &str,
    data: &Meta,
    indices: &Meta,
    axis: usize,
) -> Result<()> {
    let fits = data.rank() == indices.rank()
        && (0..data.rank()).all(|k| k == axis || indices.shape[k] <= data.shape[k]);
    if fits {
        return Ok(());
    }
    Err(Error::shape(
        operator,
        format!("indices of the rank of data and, off axis {axis}, not longer than it"),
        format!("indices {:?} for data {:?}", indices.shape, data.shape),
    ))
}

/// Walks the positions of an index array and gives, for each, where the other coordinates lead in
/// an array with the given strides.
pub(super) struct Bases {
    shape: Dims,
    strides: Strides,
}

impl Bases {
    pub(super) fn new(shape: &[usize], strides: &[isize], axis: usize) -> Self {
        let mut strides = Strides::from_slice(strides);
        strides[axis] = 0;
        Self { shape: Dims::from_slice(shape), strides }
    }

    /// Calls `body` with the row-major position and the element offset of each.
    pub(super) fn for_each(&self, mut body: impl FnMut(usize, isize)) {
        let walk = StridedLoop::new(&self.shape, [&self.strides]);
        let step = walk.inner_strides[0];
        let mut position = 0;
        walk.for_each(0, walk.runs(), |[at]| {
            for i in 0..walk.inner as isize {
                body(position, at + i * step);
                position += 1;
            }
        });
    }
}

/// The length of the index tuples of a GatherND or ScatterND.
pub(super) fn tuple_length(
    operator: &str,
    data: &Meta,
    indices: &Meta,
    batch_dims: usize,
) -> Result<usize> {
    let depth = indices.shape.last().copied().unwrap_or(0);
    let fits = indices.rank() > batch_dims
        && batch_dims + depth <= data.rank()
        && indices.shape[..batch_dims] == data.shape[..batch_dims];
    if fits {
        return Ok(depth);
    }
    Err(Error::shape(
        operator,
        format!("indices (…, n) with n naming axes of data after {batch_dims} common ones"),
        format!("indices {:?} for data {:?}", indices.shape, data.shape),
    ))
}

/// For each tuple the row-major number of the slice it names, within the axes that it names.
pub(super) fn tuples(
    operator: &str,
    indices: &Array,
    shape: &[usize],
    batch_dims: usize,
) -> Result<Vec<usize>> {
    let depth = indices.shape().last().copied().unwrap_or(0);
    if depth == 0 {
        return Ok(vec![0; indices.shape()[..indices.rank() - 1].iter().product()]);
    }
    let values = values(indices);
    values
        .chunks_exact(depth)
        .map(|tuple| {
            let mut row = 0;
            for (k, &value) in tuple.iter().enumerate() {
                let axis = batch_dims + k;
                row = row * shape[axis] + resolve(operator, value, axis, shape[axis])?;
            }
            Ok(row)
        })
        .collect()
}
