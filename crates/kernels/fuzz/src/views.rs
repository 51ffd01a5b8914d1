//! Chains of views over one storage.

use crate::numbers::{dtype, extent, integer, shape};
use arbitrary::{Result, Unstructured};
use onemodel_kernels::array::{Array, MAX_RANK};

/// Elements that are copied at most.
const COPIED: usize = 1 << 14;

fn integers(u: &mut Unstructured) -> Result<Vec<i64>> {
    let n = u.int_in_range(0..=5)?;
    (0..n).map(|_| integer(u)).collect()
}

/// Every element of the view lies inside its storage, and its size is that of its shape.
fn check(array: &Array) {
    assert!(array.rank() <= MAX_RANK && array.strides().len() == array.rank());
    let product = array.shape().iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    assert!(product == Some(array.size()) || array.shape().contains(&0) && array.size() == 0);
    let (start, end) = array.byte_range();
    assert!(start <= end && end <= array.storage().len(), "{start}..{end}");
    if array.size() > COPIED {
        return;
    }
    let Ok(copy) = array.copy() else { return };
    assert!(copy.is_contiguous() && copy.shape() == array.shape());
    let bytes = copy.as_bytes_ptr();
    // SAFETY: a contiguous array of this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, copy.size() * copy.dtype().size()) };
    std::hint::black_box(bytes.iter().fold(0u8, |a, &b| a ^ b));
}

/// # Errors
/// When the data ends.
pub fn run(data: &[u8]) -> Result<()> {
    let mut u = Unstructured::new(data);
    let Ok(mut array) = Array::zeros("fuzz", dtype(&mut u)?, &small(&mut u)?) else {
        return Ok(());
    };
    while !u.is_empty() {
        let next = match u.int_in_range(0..=10u8)? {
            0 => array.reshape(&shape(&mut u, 5)?),
            1 => array.permute(&integers(&mut u)?),
            2 => {
                let (axis, start) = (integer(&mut u)?, integer(&mut u)?);
                array.slice(axis, start, integer(&mut u)?, integer(&mut u)?)
            }
            3 => array.select(integer(&mut u)?, integer(&mut u)?),
            4 => array.expand(&shape(&mut u, 5)?),
            5 => array.squeeze(&integers(&mut u)?),
            6 => array.unsqueeze(&integers(&mut u)?),
            7 => array.diagonal(integer(&mut u)?, integer(&mut u)?, integer(&mut u)?),
            8 => {
                let shape = shape(&mut u, 4)?;
                let strides = (0..shape.len())
                    .map(|_| Ok(integer(&mut u)? as isize))
                    .collect::<Result<Vec<_>>>()?;
                let storage = array.storage().clone();
                Array::from_parts(storage, dtype(&mut u)?, &shape, &strides, extent(&mut u)?)
            }
            9 if !array.shape().is_empty() => {
                // A shape that broadcasting reaches.
                let mut wide = array.shape().to_vec();
                for d in &mut wide {
                    if *d == 1 {
                        *d = extent(&mut u)?;
                    }
                }
                wide.insert(0, extent(&mut u)?);
                array.expand(&wide)
            }
            _ if array.size() <= COPIED => array.copy(),
            _ => continue,
        };
        if let Ok(next) = next {
            array = next;
            check(&array);
        }
    }
    Ok(())
}

fn small(u: &mut Unstructured) -> Result<Vec<usize>> {
    let rank = u.int_in_range(0..=4)?;
    (0..rank).map(|_| u.int_in_range(0..=7)).collect()
}
