//! Shape arithmetic that cannot overflow silently.

use crate::dtype::DType;
use crate::error::{Error, Result};
use smallvec::SmallVec;

pub type Dims = SmallVec<[usize; 6]>;
pub type Strides = SmallVec<[isize; 6]>;

/// The most axes an array may have.
pub const MAX_RANK: usize = 32;

/// Number of elements of a shape.
///
/// # Errors
/// `Memory` when the product, or its bytes, passes the address space; `Shape` above [`MAX_RANK`].
pub fn element_count(operator: &str, dims: &[usize], dtype: DType) -> Result<usize> {
    if dims.len() > MAX_RANK {
        return Err(Error::shape(
            operator,
            format!("at most {MAX_RANK} axes"),
            format!("{} axes", dims.len()),
        ));
    }
    let overflow = || {
        Error::memory(
            operator,
            "an element count whose bytes fit the address space",
            format!("shape {dims:?} of {}", dtype.name()),
        )
    };
    // A zero extent makes the count zero whatever the others are; the others must still multiply
    // without overflow, since strides are computed from them.
    let product = dims
        .iter()
        .filter(|&&d| d != 0)
        .try_fold(1usize, |acc, &d| acc.checked_mul(d))
        .ok_or_else(overflow)?;
    let bytes = product.checked_mul(dtype.size()).ok_or_else(overflow)?;
    if bytes > isize::MAX as usize {
        return Err(overflow());
    }
    Ok(if dims.contains(&0) { 0 } else { product })
}

/// Row-major strides in elements of a shape that [`element_count`] accepts.
#[must_use]
pub fn contiguous_strides(dims: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(1, dims.len());
    let mut step = 1isize;
    for axis in (0..dims.len()).rev() {
        strides[axis] = step;
        step *= dims[axis].max(1) as isize;
    }
    strides
}

/// The shape of two arrays broadcast together, aligned at the right.
///
/// # Errors
/// `Shape` when two extents differ and neither is 1.
pub fn broadcast(operator: &str, a: &[usize], b: &[usize]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let mut out: Dims = SmallVec::from_elem(1, rank);
    for i in 0..rank {
        let x = if i + a.len() >= rank { a[i + a.len() - rank] } else { 1 };
        let y = if i + b.len() >= rank { b[i + b.len() - rank] } else { 1 };
        out[i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => {
                return Err(Error::shape(
                    operator,
                    "shapes that broadcast (each pair of extents equal, or one of them 1)",
                    format!("{a:?} and {b:?}"),
                ));
            }
        };
    }
    Ok(out)
}

/// Normalises an axis that may count from the end.
///
/// # Errors
/// `Bounds` outside `-rank..rank`.
pub fn normalize_axis(operator: &str, axis: i64, rank: usize) -> Result<usize> {
    let r = rank as i64;
    if (-r..r).contains(&axis) {
        Ok((if axis < 0 { axis + r } else { axis }) as usize)
    } else {
        Err(Error::bounds(
            operator,
            format!("an axis in [-{rank}, {rank})"),
            format!("axis {axis}"),
        ))
    }
}

/// The offsets of the lowest and the highest element from the first one; zeros if there is none.
#[must_use]
pub fn reach(shape: &[usize], strides: &[isize]) -> (isize, isize) {
    let (mut low, mut high) = (0, 0);
    if shape.contains(&0) {
        return (low, high);
    }
    for (&d, &s) in shape.iter().zip(strides) {
        let reach = (d as isize - 1) * s;
        if reach < 0 { low += reach } else { high += reach }
    }
    (low, high)
}
