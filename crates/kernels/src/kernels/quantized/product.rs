//! Rows of centred 8-bit integers times a matrix of 8-bit integers, as exact 32-bit sums.

use crate::dtype::Element;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::product::parts_of;
use crate::parallel;
use crate::simd::{PlainLoop, vectorized_wide};

/// An 8-bit integer as it is stored.
pub(super) trait Byte: Element {
    fn whole(self) -> i32;
}

impl Byte for u8 {
    #[inline(always)]
    fn whole(self) -> i32 {
        i32::from(self)
    }
}

impl Byte for i8 {
    #[inline(always)]
    fn whole(self) -> i32 {
        i32::from(self)
    }
}

/// A zero point of the matrix: one for all columns, or one for each.
#[derive(Clone, Copy)]
pub(super) enum Zeros<'a, T> {
    One(i32),
    Each(&'a [T]),
}

/// `out[i][j] = Σ_p x[i][p] * (w[p][j] - zero[j])`.
pub(super) struct Product<'a, T> {
    pub(super) rows: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    /// `rows` times `k` numbers from -255 to 255: the left side without its zero point.
    pub(super) x: &'a [i32],
    /// `k` rows of `n`.
    pub(super) w: &'a [T],
    pub(super) zeros: Zeros<'a, T>,
}

const AT_ONCE: usize = 8;
/// Columns of which the sums stay in the nearest cache.
const COLUMNS: usize = 1024;

impl<T: Byte> Product<'_, T> {
    /// Writes the sums to `out`, `rows` times `n`.
    pub(super) fn run(&self, out: &mut [i32]) {
        debug_assert!(out.len() == self.rows * self.n && self.x.len() == self.rows * self.k);
        let parts = parts_of(2 * self.rows * self.n * self.k).min(self.n.div_ceil(64).max(1));
        let to = Shared::new(out.as_mut_ptr());
        parallel::for_each(parts, |part| {
            let (from, end) = (self.n * part / parts, self.n * (part + 1) / parts);
            for first in (from..end).step_by(COLUMNS) {
                let count = COLUMNS.min(end - first);
                for row in 0..self.rows {
                    // SAFETY: parts and tiles are disjoint columns of `out`.
                    let sums = unsafe {
                        std::slice::from_raw_parts_mut(to.get().add(row * self.n + first), count)
                    };
                    let x = &self.x[row * self.k..(row + 1) * self.k];
                    vectorized_wide(Row { product: self, x, first, sums });
                }
            }
        });
    }
}

/// One row of the left side over one tile of columns.
struct Row<'a, T> {
    product: &'a Product<'a, T>,
    x: &'a [i32],
    first: usize,
    sums: &'a mut [i32],
}

impl<T: Byte> PlainLoop for Row<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { product, x, first, sums } = self;
        let (n, w, count) = (product.n, product.w, sums.len());
        sums.fill(0);
        let mut p = 0;
        while p + AT_ONCE <= x.len() {
            let rows: [&[T]; AT_ONCE] =
                std::array::from_fn(|i| &w[(p + i) * n + first..(p + i) * n + first + count]);
            let c: [i32; AT_ONCE] = std::array::from_fn(|i| x[p + i]);
            for j in 0..count {
                let mut sum = sums[j];
                for i in 0..AT_ONCE {
                    sum = sum.wrapping_add(c[i].wrapping_mul(rows[i][j].whole()));
                }
                sums[j] = sum;
            }
            p += AT_ONCE;
        }
        for (p, &c) in x.iter().enumerate().skip(p) {
            let row = &w[p * n + first..p * n + first + count];
            for j in 0..count {
                sums[j] = sums[j].wrapping_add(c.wrapping_mul(row[j].whole()));
            }
        }
        let total = x.iter().fold(0i32, |sum, &c| sum.wrapping_add(c));
        match product.zeros {
            Zeros::One(0) => {}
            Zeros::One(zero) => {
                let less = zero.wrapping_mul(total);
                sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(less));
            }
            Zeros::Each(zeros) => {
                for (sum, zero) in sums.iter_mut().zip(&zeros[first..]) {
                    *sum = sum.wrapping_sub(zero.whole().wrapping_mul(total));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Byte, Product, Zeros};
    use proptest::prelude::*;

    fn naive<T: Byte>(p: &Product<'_, T>) -> Vec<i32> {
        let mut out = Vec::new();
        for i in 0..p.rows {
            for j in 0..p.n {
                let zero = match p.zeros {
                    Zeros::One(zero) => zero,
                    Zeros::Each(zeros) => zeros[j].whole(),
                };
                out.push(
                    (0..p.k).map(|q| p.x[i * p.k + q] * (p.w[q * p.n + j].whole() - zero)).sum(),
                );
            }
        }
        out
    }

    proptest! {
        #[test]
        fn sums_are_exact(
            rows in 0usize..4, k in 0usize..35, n in 0usize..70, zero in -128i32..128, seed: u64,
        ) {
            let byte = |i: usize| (seed.wrapping_mul(i as u64 + 1) >> 40) as u8;
            let x: Vec<i32> = (0..rows * k).map(|i| i32::from(byte(i)) * 2 - 255).collect();
            let signed: Vec<i8> = (0..k * n).map(|i| byte(i + 7) as i8).collect();
            let unsigned: Vec<u8> = (0..k * n).map(|i| byte(i + 9)).collect();
            let each: Vec<u8> = (0..n).map(byte).collect();
            let mut out = vec![1; rows * n];
            let p = Product { rows, k, n, x: &x, w: &signed, zeros: Zeros::One(zero) };
            p.run(&mut out);
            prop_assert_eq!(&out, &naive(&p));
            let p = Product { rows, k, n, x: &x, w: &unsigned, zeros: Zeros::Each(&each) };
            p.run(&mut out);
            prop_assert_eq!(&out, &naive(&p));
        }
    }

    #[test]
    fn large_products_are_split_without_a_change() {
        let (rows, k, n) = (3, 400, 2500);
        let x: Vec<i32> = (0..rows * k).map(|i| (i * 37 % 511) as i32 - 255).collect();
        let w: Vec<i8> = (0..k * n).map(|i| (i * 73 % 256) as u8 as i8).collect();
        let p = Product { rows, k, n, x: &x, w: &w, zeros: Zeros::One(-3) };
        let mut out = vec![0; rows * n];
        p.run(&mut out);
        assert_eq!(out, naive(&p));
    }
}
