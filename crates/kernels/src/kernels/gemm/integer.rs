//! Integer matrix products: exact, wrapping in the operands' width, so any order gives the same bits.

use super::matrix::{Matrix, Shared};
use super::product::parts_of;
use crate::dtype::Element;
use crate::parallel;

/// Wrapping arithmetic of one integer type.
pub(crate) trait Integer: Element {
    fn mul_add(self, b: Self, acc: Self) -> Self;
    fn wrapping_times(self, b: Self) -> Self;
    fn wrapping_plus(self, b: Self) -> Self;
    fn from_i64(x: i64) -> Self;
}

macro_rules! integer {
    ($($t:ty),*) => {
        $(impl Integer for $t {
            #[inline(always)]
            fn mul_add(self, b: Self, acc: Self) -> Self {
                acc.wrapping_add(self.wrapping_mul(b))
            }
            #[inline(always)]
            fn wrapping_times(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn wrapping_plus(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn from_i64(x: i64) -> Self {
                x as Self
            }
        })*
    };
}
integer!(u8, u16, u32, u64, i8, i16, i32, i64);

/// `x < 0 ? 0 : x`.
pub(crate) fn relu_all<T: Integer + PartialOrd>(values: &mut [T]) {
    values.iter_mut().filter(|y| **y < T::default()).for_each(|y| *y = T::default());
}

/// Adds the product of a (m by k) and b (k by n) to the contiguous rows of c.
///
/// # Safety
/// The addresses cover the operands; c is disjoint from both.
pub(crate) unsafe fn multiply<T: Integer>(
    m: usize,
    n: usize,
    k: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    c: *mut T,
) {
    let parts = parts_of(4 * m * n * k).min(m.max(1));
    let job = Shared::new((a, b, c));
    parallel::for_each(parts, |part| {
        let (a, b, c) = job.get();
        for i in m * part / parts..m * (part + 1) / parts {
            // SAFETY: row i of c belongs to this part; all indices are inside the operands.
            unsafe {
                let row = std::slice::from_raw_parts_mut(c.add(i * n), n);
                for p in 0..k {
                    let x = *a.ptr.offset(i as isize * a.rows + p as isize * a.columns);
                    let from = b.ptr.offset(p as isize * b.rows);
                    if b.columns == 1 {
                        let from = std::slice::from_raw_parts(from, n);
                        for (y, &w) in row.iter_mut().zip(from) {
                            *y = x.mul_add(w, *y);
                        }
                    } else {
                        for (j, y) in row.iter_mut().enumerate() {
                            *y = x.mul_add(*from.offset(j as isize * b.columns), *y);
                        }
                    }
                }
            }
        }
    });
}
