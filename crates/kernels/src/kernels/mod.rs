//! The kernel families. Each module registers its operators in a `KERNELS` table.

use crate::kernel::Entry;

mod binary;
pub(crate) mod elementary;
mod gemm;
mod indexing;
mod losses;
mod movement;
mod optimizer;
mod random;

/// Every family's table.
pub(crate) const FAMILIES: &[&[Entry]] = &[
    binary::KERNELS,
    gemm::KERNELS,
    indexing::gather::KERNELS,
    indexing::index_add::KERNELS,
    losses::ctc::KERNELS,
    losses::nll::KERNELS,
    movement::concat::KERNELS,
    movement::expand::KERNELS,
    movement::pad::KERNELS,
    movement::range::KERNELS,
    movement::slice::KERNELS,
    movement::transpose::KERNELS,
    movement::trilu::KERNELS,
    optimizer::KERNELS,
    random::integers::KERNELS,
    random::normal::KERNELS,
    random::uniform::KERNELS,
];
