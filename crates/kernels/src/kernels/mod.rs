//! The kernel families. Each module registers its operators in a `KERNELS` table.

use crate::kernel::Entry;

mod activation;
mod activation_grad;
mod along;
mod arg_reduce;
mod attention;
mod batch_norm;
mod binary;
mod blocks;
mod broadcast;
mod cast;
mod clip;
mod comparison;
mod conv;
mod elementwise;
pub(crate) mod epilogue;
mod fold;
mod function;
pub(crate) mod fusion;
mod gemm;
mod group_norm;
mod halves;
mod indexing;
mod lanes;
mod layer_norm;
mod logical;
mod losses;
pub(crate) mod movement;
mod norm_rows;
mod number;
mod optimizer;
mod pool;
mod power;
mod quantized;
mod random;
mod recurrent;
mod reduce;
mod relu_mask;
mod resize;
mod scan;
mod select;
mod short_copy;
mod softmax;
mod softmax_columns;
mod sums;
mod unary;
mod variadic;

/// Every family's table.
pub(crate) const FAMILIES: &[&[Entry]] = &[
    activation::KERNELS,
    activation_grad::KERNELS,
    arg_reduce::KERNELS,
    attention::KERNELS,
    batch_norm::KERNELS,
    binary::KERNELS,
    cast::KERNELS,
    clip::KERNELS,
    comparison::KERNELS,
    conv::KERNELS,
    gemm::KERNELS,
    group_norm::KERNELS,
    indexing::gather::KERNELS,
    indexing::index_add::KERNELS,
    indexing::one_hot::KERNELS,
    indexing::scatter::KERNELS,
    indexing::select::KERNELS,
    indexing::top_k::KERNELS,
    layer_norm::KERNELS,
    logical::KERNELS,
    losses::ctc::KERNELS,
    losses::nll::KERNELS,
    movement::concat::KERNELS,
    movement::depth_space::KERNELS,
    movement::expand::KERNELS,
    movement::pad::KERNELS,
    movement::range::KERNELS,
    movement::slice::KERNELS,
    movement::transpose::KERNELS,
    movement::trilu::KERNELS,
    optimizer::KERNELS,
    pool::KERNELS,
    power::KERNELS,
    quantized::KERNELS,
    random::integers::KERNELS,
    random::normal::KERNELS,
    random::uniform::KERNELS,
    recurrent::KERNELS,
    reduce::KERNELS,
    relu_mask::KERNELS,
    resize::KERNELS,
    scan::KERNELS,
    select::KERNELS,
    softmax::KERNELS,
    unary::KERNELS,
    variadic::KERNELS,
];
