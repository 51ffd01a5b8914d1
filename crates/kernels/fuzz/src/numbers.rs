//! Numbers that arithmetic trips over, and arrays of any layout.

use arbitrary::{Result, Unstructured};
use onemodel_kernels::array::Array;
use onemodel_kernels::dtype::DType;

/// Small ones most of the time, else limits of the integer types and their neighbours.
pub fn integer(u: &mut Unstructured) -> Result<i64> {
    const LIMITS: [i64; 12] = [
        i64::MIN,
        i64::MIN + 1,
        i64::MAX,
        i64::MAX - 1,
        i64::MAX / 2,
        1 << 62,
        1 << 32,
        (1 << 31) - 1,
        -(1 << 31),
        1 << 16,
        1000,
        -1000,
    ];
    match u.int_in_range(0..=9u8)? {
        0 => Ok(*u.choose(&LIMITS)?),
        1..=3 => u.int_in_range(-3..=40),
        _ => u.int_in_range(-1..=4),
    }
}

/// An extent, at most a few most of the time.
pub fn extent(u: &mut Unstructured) -> Result<usize> {
    const LIMITS: [usize; 7] =
        [usize::MAX, usize::MAX / 2, isize::MAX as usize, 1 << 62, 1 << 33, 1 << 31, 1 << 20];
    match u.int_in_range(0..=19u8)? {
        0 => Ok(*u.choose(&LIMITS)?),
        1 => u.int_in_range(0..=300),
        2..=4 => u.int_in_range(0..=40),
        _ => u.int_in_range(0..=5),
    }
}

pub fn shape(u: &mut Unstructured, most: usize) -> Result<Vec<usize>> {
    let rank = if u.ratio(1, 30)? { u.int_in_range(0..=40)? } else { u.int_in_range(0..=most)? };
    (0..rank).map(|_| extent(u)).collect()
}

pub fn dtype(u: &mut Unstructured) -> Result<DType> {
    Ok(*u.choose(&DType::ALL)?)
}

/// The array itself, or the same elements reversed, turned, repeated or with gaps.
pub fn relaid(u: &mut Unstructured, array: Array) -> Result<Array> {
    let rank = array.rank();
    if rank == 0 || array.size() == 0 {
        return Ok(array);
    }
    let axis = u.int_in_range(0..=rank - 1)?;
    let n = array.shape()[axis] as i64;
    let view = match u.int_in_range(0..=5u8)? {
        0 => array.slice(axis as i64, n - 1, -1, -1),
        1 => {
            let axes: Vec<i64> = (0..rank as i64).rev().collect();
            array.permute(&axes).and_then(|turned| turned.copy()).and_then(|c| c.permute(&axes))
        }
        2 => array.select(axis as i64, 0).and_then(|one| {
            let axes = [axis as i64];
            one.unsqueeze(&axes)?.expand(array.shape())
        }),
        3 => {
            let mut doubled = array.shape().to_vec();
            doubled[axis] *= 2;
            Array::zeros("fuzz", array.dtype(), &doubled)
                .and_then(|wide| wide.slice(axis as i64, 1, 2 * n, 2))
        }
        _ => return Ok(array),
    };
    Ok(view.expect("a view of existing elements"))
}
