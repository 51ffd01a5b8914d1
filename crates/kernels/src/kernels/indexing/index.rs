//! Index arrays of int32 or int64, read and checked.

use crate::array::{Array, Dims, Meta, StridedLoop, Strides};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::number::for_number;
use crate::simd::{PlainLoop, vectorized};

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
            if step == 1 {
                // SAFETY: a run of the array, which holds no halves.
                let run = unsafe { std::slice::from_raw_parts(from.offset(at), walk.inner) };
                #[allow(clippy::unnecessary_cast)]
                out.extend(run.iter().map(|&value| value as i64));
                return;
            }
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
    let mut values = values(indices);
    if !vectorized(Wrap { values: &mut values, extent: extent as i64 }) {
        // Wrapping leaves alone what is out of range.
        for &v in &values {
            resolve(operator, v, axis, extent)?;
        }
    }
    Ok(values.into_iter().map(|v| v as usize).collect())
}

/// Counts negative indices from the end; whether all were in range.
struct Wrap<'a> {
    values: &'a mut [i64],
    extent: i64,
}

impl PlainLoop for Wrap<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let n = self.extent;
        let mut outside = false;
        for value in self.values {
            let wrapped = *value + if *value < 0 { n } else { 0 };
            let fits = (0 <= wrapped) & (wrapped < n);
            outside |= !fits;
            *value = if fits { wrapped } else { *value };
        }
        !outside
    }
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

    /// Calls `body` with the row-major position of the first of some neighbours, their number, the
    /// element offset of the first and the step to the next, in order.
    pub(super) fn for_each_run(&self, mut body: impl FnMut(usize, usize, isize, isize)) {
        let walk = StridedLoop::new(&self.shape, [&self.strides]);
        let step = walk.inner_strides[0];
        let mut position = 0;
        walk.for_each(0, walk.runs(), |[at]| {
            body(position, walk.inner, at, step);
            position += walk.inner;
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
    let mut rows = vec![0; values.len() / depth];
    for k in 0..depth {
        let extent = shape[batch_dims + k];
        let mut outside = false;
        for (row, tuple) in rows.iter_mut().zip(values.chunks_exact(depth)) {
            let wrapped = tuple[k].wrapping_add(if tuple[k] < 0 { extent as i64 } else { 0 });
            outside |= !(0..extent as i64).contains(&wrapped);
            *row = usize::wrapping_add(*row * extent, wrapped as usize);
        }
        if outside {
            for tuple in values.chunks_exact(depth) {
                resolve(operator, tuple[k], batch_dims + k, extent)?;
            }
        }
    }
    Ok(rows)
}
