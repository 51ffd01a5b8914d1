//! The kernel families. Each module registers its operators in a `KERNELS` table.

use crate::kernel::Entry;

mod binary;
mod gemm;

/// Every family's table.
pub(crate) const FAMILIES: &[&[Entry]] = &[binary::KERNELS, gemm::KERNELS];
