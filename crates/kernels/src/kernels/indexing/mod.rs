//! Operators that choose or place elements by index. An index outside its axis is an error that
//! names the index, the axis and the extent; negative ones count from the end.

pub(super) mod gather;
mod index;
pub(super) mod index_add;
pub(super) mod one_hot;
mod order;
pub(super) mod scatter;
pub(super) mod select;
pub(super) mod top_k;
