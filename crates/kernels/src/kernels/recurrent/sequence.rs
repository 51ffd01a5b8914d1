//! The sizes of a recurrent layer and the memory it works on.

use super::activation::Activation;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Which cell, with the places of its gates among the weight rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    /// The block numbers of the gates i, f, g and o.
    Lstm([usize; 4]),
    /// The block numbers of r and z; n is block 2. `reset_after` says that r multiplies the
    /// product with h, not h itself.
    Gru {
        order: [usize; 2],
        reset_after: bool,
    },
    Rnn,
}

pub(super) const LSTM_TORCH: Cell = Cell::Lstm([0, 1, 2, 3]);
pub(super) const LSTM_ONNX: Cell = Cell::Lstm([0, 2, 3, 1]);
pub(super) const GRU_TORCH: Cell = Cell::Gru { order: [0, 1], reset_after: true };

impl Cell {
    /// Blocks of weight rows.
    pub(super) fn gates(self) -> usize {
        match self {
            Self::Lstm(_) => 4,
            Self::Gru { .. } => 3,
            Self::Rnn => 1,
        }
    }

    /// Blocks that are kept of each step for the gradient: the gates after their functions, then
    /// the LSTM's new c, or the GRU's product of h with the n block.
    pub(super) fn saved(self) -> usize {
        match self {
            Self::Lstm(_) => 5,
            Self::Gru { .. } => 4,
            Self::Rnn => 1,
        }
    }

    pub(super) fn has_cell_state(self) -> bool {
        matches!(self, Self::Lstm(_))
    }
}

/// One direction of a layer.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    pub(super) reverse: bool,
    /// LSTM: of i, f, o; of g; of c. GRU: of r, z; of n. RNN: of h.
    pub(super) functions: [Activation; 3],
}

/// Sizes: T steps, B rows, I inputs, H hidden units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) input: usize,
    pub(super) hidden: usize,
}

/// Whether and from where row `b` has a state before step `t`.
#[derive(Clone, Copy)]
pub(super) enum Before {
    /// The row takes no part in the step.
    Inactive,
    Initial,
    Step(usize),
}

/// The step before `t` of a row of `length` steps.
pub(super) fn before(t: usize, length: usize, reverse: bool) -> Before {
    match () {
        () if t >= length => Before::Inactive,
        () if reverse && t + 1 < length => Before::Step(t + 1),
        () if !reverse && t > 0 => Before::Step(t - 1),
        () => Before::Initial,
    }
}

/// The lengths of the rows, each in `[0, steps]`.
pub(super) fn read_lengths(
    operator: &str,
    lengths: Option<&Array>,
    steps: usize,
) -> Result<Option<Vec<usize>>> {
    let Some(lengths) = lengths else { return Ok(None) };
    let array = lengths.to_contiguous()?;
    let values: Vec<i64> = match array.dtype() {
        DType::I32 => array.as_slice::<i32>().iter().map(|&v| i64::from(v)).collect(),
        _ => array.as_slice::<i64>().to_vec(),
    };
    let checked: Result<Vec<usize>> = values
        .into_iter()
        .enumerate()
        .map(|(b, v)| {
            if (0..=steps as i64).contains(&v) {
                return Ok(v as usize);
            }
            Err(Error::bounds(
                operator,
                format!("sequence lengths in [0, {steps}]"),
                format!("{v} for row {b}"),
            ))
        })
        .collect();
    checked.map(Some)
}

/// Rows of the batch that one part of the work takes: a function of the batch alone.
pub(super) fn rows_of_part(batch: usize) -> usize {
    if batch <= 32 { batch.max(1) } else { batch.div_ceil(batch.div_ceil(32)) }
}
