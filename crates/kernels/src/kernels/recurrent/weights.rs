//! The weights of one direction, packed for the products of all steps.

use super::activation::Gate;
use super::sequence::Cell;
use crate::array::Array;
use crate::error::Result;
use crate::kernels::gemm::matrix::Matrix;
use crate::kernels::gemm::microkernel::Start;
use crate::kernels::gemm::packing::PackedB;
use crate::simd::isa;

/// Packed weights and the starts of the chains.
pub(super) struct Weights<E> {
    /// All gates' columns, over x.
    pub(super) ih: PackedB<E>,
    /// All gates' columns, over h; of a GRU without its n block.
    pub(super) hh: PackedB<E>,
    /// The n block of a GRU.
    pub(super) hh_n: Option<PackedB<E>>,
    /// What the chains start from; empty for +0.0.
    bias: Vec<E>,
    /// What the product of h with the n block starts from, where it is a chain of its own.
    bias_n: Vec<E>,
}

/// The four parameters of one direction as contiguous arrays; both biases or none.
pub(super) struct Parameters<'a> {
    pub(super) ih: &'a Array,
    pub(super) hh: &'a Array,
    pub(super) bias: Option<(&'a Array, &'a Array)>,
}

impl<E: Gate> Weights<E> {
    pub(super) fn new(
        operator: &str,
        cell: Cell,
        (input, hidden): (usize, usize),
        p: &Parameters<'_>,
    ) -> Result<Self> {
        let isa = isa();
        let columns = cell.gates() * hidden;
        let continued = if matches!(cell, Cell::Gru { .. }) { 2 * hidden } else { columns };
        let (ih, hh) = (p.ih.as_ptr::<E>(), p.hh.as_ptr::<E>());
        // SAFETY: the arrays hold `columns` rows of `input` and of `hidden` elements.
        let (ih, hh, hh_n) = unsafe {
            let over = |ptr, k: usize| Matrix::new(ptr, 1, k as isize);
            let n = (continued < columns)
                .then(|| {
                    let n = over(hh.add(continued * hidden), hidden);
                    PackedB::new(operator, isa, n, hidden, hidden)
                })
                .transpose()?;
            (
                PackedB::new(operator, isa, over(ih, input), input, columns)?,
                PackedB::new(operator, isa, over(hh, hidden), hidden, continued)?,
                n,
            )
        };
        let apart = matches!(cell, Cell::Gru { reset_after: true, .. });
        let (mut bias, mut bias_n) = (Vec::new(), Vec::new());
        if let Some((b_ih, b_hh)) = p.bias {
            let (b_ih, b_hh) = (b_ih.as_slice::<E>(), b_hh.as_slice::<E>());
            bias = (0..columns)
                .map(|j| if apart && j >= continued { b_ih[j] } else { b_ih[j].add(b_hh[j]) })
                .collect();
            if apart {
                bias_n = b_hh[continued..].to_vec();
            }
        }
        Ok(Self { ih, hh, hh_n, bias, bias_n })
    }

    pub(super) fn has_bias(&self) -> bool {
        !self.bias.is_empty()
    }

    pub(super) fn start(&self) -> Start<E> {
        start(&self.bias)
    }

    pub(super) fn start_n(&self) -> Start<E> {
        start(&self.bias_n)
    }
}

fn start<E>(bias: &[E]) -> Start<E> {
    if bias.is_empty() { Start::Zero } else { Start::Load { ptr: bias.as_ptr(), stride: 0 } }
}
