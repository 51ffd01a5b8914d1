//! Bits of the products against a plain triple loop, on every instruction set and thread count.

use super::matrix::Matrix;
use super::microkernel::Start;
use super::packing::PackedB;
use super::product::{Product, Right};
use super::real::{Real, relu};
use crate::parallel::set_num_threads;
use crate::simd::{Isa, isa};
use proptest::prelude::*;

/// The instruction sets this machine (or the forced one) can run.
pub(crate) fn isas() -> Vec<Isa> {
    crate::simd::available()
}

/// Reproducible values with zeros of both signs, denormals, large magnitudes and, when asked,
/// infinities and NaN.
pub(crate) fn values<E: Real>(n: usize, seed: u64, wild: bool) -> Vec<E> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let x = (state >> 11) as f64 / (1u64 << 53) as f64 * 4.0 - 2.0;
            E::from_f64(match state % 97 {
                0 => 0.0,
                1 => -0.0,
                2 => 1e-41,
                3 => x * 1e18,
                4 if wild => f64::INFINITY,
                5 if wild => f64::NEG_INFINITY,
                6 if wild => f64::NAN,
                _ => x,
            })
        })
        .collect()
}

pub(crate) trait Bits {
    fn same(self, other: Self) -> bool;
}

impl Bits for f32 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}

impl Bits for f64 {
    fn same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
    }
}

pub(crate) fn first_difference<E: Bits + Copy>(a: &[E], b: &[E]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).position(|(x, y)| !x.same(*y))
}

#[derive(Debug, Clone, Copy)]
struct Case {
    m: usize,
    n: usize,
    k: usize,
    trans_a: bool,
    trans_b: bool,
    start: usize,
    relu: bool,
    wild: bool,
    seed: u64,
}

impl Case {
    fn a_at(&self, i: usize, k: usize) -> usize {
        if self.trans_a { k * self.m + i } else { i * self.k + k }
    }
    fn b_at(&self, k: usize, j: usize) -> usize {
        if self.trans_b { j * self.k + k } else { k * self.n + j }
    }
    fn start_of<E: Real>(&self, bias: &[E], i: usize, j: usize) -> E {
        match self.start {
            0 => E::default(),
            1 => bias[i],
            2 => bias[j],
            _ => bias[i * self.n + j],
        }
    }

    fn reference<E: Real>(&self, a: &[E], b: &[E], bias: &[E], reversed: bool) -> Vec<E> {
        let mut c = Vec::with_capacity(self.m * self.n);
        for i in 0..self.m {
            for j in 0..self.n {
                let mut acc = self.start_of(bias, i, j);
                for step in 0..self.k {
                    let k = if reversed { self.k - 1 - step } else { step };
                    acc = E::fma_one(a[self.a_at(i, k)], b[self.b_at(k, j)], acc);
                }
                c.push(if self.relu { relu(acc) } else { acc });
            }
        }
        c
    }

    fn computed<E: Real>(&self, isa: Isa, a: &[E], b: &[E], bias: &[E], packed: bool) -> Vec<E> {
        let mut c = vec![E::from_f64(7.0); self.m * self.n];
        let a = Matrix::new(a.as_ptr(), self.k as isize, 1);
        let b = Matrix::new(b.as_ptr(), self.n as isize, 1);
        let a = if self.trans_a { Matrix::new(a.ptr, 1, self.m as isize) } else { a };
        let b = if self.trans_b { Matrix::new(b.ptr, 1, self.k as isize) } else { b };
        let ptr = bias.as_ptr();
        // SAFETY: the vectors have the sizes of the case.
        unsafe {
            let bound = PackedB::new("test", isa, b, self.k, self.n).unwrap();
            let product = Product {
                m: self.m,
                n: self.n,
                k: self.k,
                a,
                b: if packed { Right::Packed(&bound) } else { Right::Matrix(b) },
                start: match self.start {
                    0 => Start::Zero,
                    1 => Start::Rows { ptr, stride: 1 },
                    2 => Start::Load { ptr, stride: 0 },
                    _ => Start::Load { ptr, stride: self.n as isize },
                },
                c: c.as_mut_ptr(),
                c_rows: self.n as isize,
                c_columns: 1,
                relu: self.relu,
                epilogue: None,
            };
            product.run("test", isa).unwrap();
        }
        c
    }

    fn check<E: Real + Bits>(&self) {
        let a = values::<E>(self.m * self.k, self.seed, self.wild);
        let b = values::<E>(self.k * self.n, self.seed + 1, self.wild);
        let size = [0, self.m, self.n, self.m * self.n][self.start];
        let bias = values::<E>(size, self.seed + 2, self.wild);
        let want = self.reference(&a, &b, &bias, false);
        for isa in isas() {
            for packed in [false, true] {
                let got = self.computed(isa, &a, &b, &bias, packed);
                let difference = first_difference(&want, &got);
                assert_eq!(difference, None, "{self:?} on {isa:?}, packed {packed}");
            }
        }
    }
}

fn cases(limit: usize) -> impl Strategy<Value = Case> {
    let extents = (1..limit, 1..limit, 0..limit);
    (extents, any::<(bool, bool, bool, bool)>(), 0..4usize, any::<u32>()).prop_map(
        |((m, n, k), (trans_a, trans_b, relu, wild), start, seed)| Case {
            m,
            n,
            k,
            trans_a,
            trans_b,
            start,
            relu,
            wild,
            seed: u64::from(seed),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        max_shrink_iters: 50,
        ..Default::default()
    })]

    #[test]
    fn small_products_have_the_chain_bits(case in cases(80)) {
        case.check::<f32>();
        case.check::<f64>();
    }
}

const LARGE: Case = Case {
    m: 179,
    n: 277,
    k: 777,
    trans_a: false,
    trans_b: true,
    start: 2,
    relu: false,
    wild: false,
    seed: 3,
};

#[test]
fn blocks_and_threads_change_no_bit() {
    for threads in [1, 2] {
        set_num_threads(threads);
        LARGE.check::<f32>();
        LARGE.check::<f64>();
        Case { trans_a: true, trans_b: false, start: 3, relu: true, ..LARGE }.check::<f32>();
        Case { m: 3, n: 3000, k: 600, trans_b: false, ..LARGE }.check::<f32>();
        Case { m: 1, n: 2049, k: 1000, ..LARGE }.check::<f32>();
        Case { m: 2049, n: 1, k: 1000, start: 1, ..LARGE }.check::<f32>();
        Case { m: 2049, n: 3, k: 300, start: 3, ..LARGE }.check::<f32>();
    }
}

#[test]
fn reversed_order_has_other_bits() {
    let a = values::<f32>(LARGE.m * LARGE.k, 1, false);
    let b = values::<f32>(LARGE.k * LARGE.n, 2, false);
    let bias = values::<f32>(LARGE.n, 3, false);
    let want = LARGE.reference(&a, &b, &bias, true);
    let got = LARGE.computed(isa(), &a, &b, &bias, false);
    assert!(first_difference(&want, &got).is_some());
}

#[test]
fn a_row_alone_equals_the_row_in_a_batch() {
    let a = values::<f32>(LARGE.m * LARGE.k, 1, true);
    let b = values::<f32>(LARGE.k * LARGE.n, 2, true);
    let bias = values::<f32>(LARGE.n, 3, true);
    let all = LARGE.computed(isa(), &a, &b, &bias, true);
    for row in [0, 13, 14, 100, 178] {
        let one = Case { m: 1, ..LARGE };
        let alone = one.computed(isa(), &a[row * LARGE.k..(row + 1) * LARGE.k], &b, &bias, false);
        let there = &all[row * LARGE.n..(row + 1) * LARGE.n];
        assert_eq!(first_difference(there, &alone), None, "row {row}");
    }
}
