//! MatMulInteger with one matrix on the right.

use super::product::{Byte, Product, Zeros};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::scratch::Scratch;
use smallvec::smallvec;
use std::sync::Arc;

const NAME: &str = "MatMulInteger";

/// Inputs A (…, M, K), B (K, N), a_zero_point? (one number) and b_zero_point? (one number or N), of
/// int8 or uint8; output int32 (…, M, N), the exact sums of `(A - a_zero) * (B - b_zero)`.
struct MatMulInteger;

pub(super) fn build(_attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(MatMulInteger))
}

/// The elements of a contiguous array of int8 or uint8 as i32.
pub(super) fn whole(array: &Array, out: &mut [i32], zero: i32) {
    match array.dtype() {
        DType::I8 => {
            out.iter_mut().zip(array.as_slice::<i8>()).for_each(|(o, &x)| *o = x.whole() - zero);
        }
        _ => out.iter_mut().zip(array.as_slice::<u8>()).for_each(|(o, &x)| *o = x.whole() - zero),
    }
}

/// The one number in an array of int8 or uint8; 0 without an array.
pub(super) fn number(array: Option<&Array>) -> i32 {
    let mut found = [0];
    if let Some(array) = array {
        whole(array, &mut found, 0);
    }
    found[0]
}

fn is_byte(meta: &Meta) -> bool {
    matches!(meta.dtype, DType::I8 | DType::U8)
}

impl Kernel for MatMulInteger {
    fn name(&self) -> &'static str {
        NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let checked = Inputs::new(NAME, inputs, 2, 4)?;
        let (a, b) = (checked.get(0), checked.get(1));
        for meta in (0..4).filter_map(|i| checked.opt(i)) {
            if !is_byte(meta) {
                return Err(Error::dtype(NAME, "int8 or uint8", meta.dtype.name()));
            }
        }
        let ([.., rows, k], [depth, n]) = (&a.shape[..], &b.shape[..]) else {
            let got = format!("{:?} and {:?}", a.shape, b.shape);
            return Err(Error::shape(NAME, "A (…, M, K) and B (K, N)", got));
        };
        if k != depth {
            let got = format!("{:?} and {:?}", a.shape, b.shape);
            return Err(Error::shape(NAME, "as many columns of A as rows of B", got));
        }
        for (index, most) in [(2, 1), (3, *n)] {
            let Some(zero) = checked.opt(index) else { continue };
            let fits = zero.rank() <= 1 && (zero.size() == 1 || zero.size() == most);
            let side = if index == 2 { a } else { b };
            if !fits || zero.dtype != side.dtype {
                let got = format!("{} {:?}", zero.dtype.name(), zero.shape);
                let expected = format!("a zero point of {} and one number", side.dtype.name());
                return Err(Error::shape(NAME, expected, got));
            }
        }
        let mut shape = a.shape[..a.rank() - 2].to_vec();
        shape.extend([*rows, *n]);
        Ok(smallvec![Meta::new(DType::I32, &shape)])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let get = |i: usize| inputs.get(i).copied().flatten();
        let (Some(a), Some(b)) = (get(0), get(1)) else { return Ok(()) };
        let (a, b) = (a.to_contiguous()?, b.to_contiguous()?);
        let zeros = get(3).map(Array::to_contiguous).transpose()?;
        let [k, n] = [b.shape()[0], b.shape()[1]];
        let mut memory = Scratch::new(NAME, 4 * a.size())?;
        let x = &mut memory.as_mut::<i32>()[..a.size()];
        whole(&a, x, number(get(2)));
        // SAFETY: the output is this call's own.
        let out = unsafe { outputs[0].as_mut_slice::<i32>() };
        let rows = out.len().checked_div(n).unwrap_or(0);
        match b.dtype() {
            DType::I8 => multiply::<i8>((rows, k, n), x, &b, zeros.as_deref(), out),
            _ => multiply::<u8>((rows, k, n), x, &b, zeros.as_deref(), out),
        }
        Ok(())
    }
}

fn multiply<T: Byte>(
    (rows, k, n): (usize, usize, usize),
    x: &[i32],
    b: &Array,
    zeros: Option<&Array>,
    out: &mut [i32],
) {
    let zeros = match zeros {
        Some(zeros) if zeros.size() > 1 => Zeros::Each(zeros.as_slice::<T>()),
        other => Zeros::One(number(other)),
    };
    Product { rows, k, n, x, w: b.as_slice::<T>(), zeros }.run(out);
}
