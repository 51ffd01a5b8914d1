//! One forward step of any cell, row after row.

use super::activation::Gate;
use crate::simd::{LANES, Simd, WithSimd};

/// Where the rows of a step lie.
#[derive(Clone, Copy)]
pub(super) struct Rows<E> {
    pub(super) count: usize,
    pub(super) hidden: usize,
    /// Row r at `gates + r * stride`: the chains on entry and, when they are kept, the functions'
    /// values on exit.
    pub(super) gates: *mut E,
    pub(super) stride: usize,
    pub(super) keep: bool,
    /// State, rows of `hidden`.
    pub(super) h: *mut E,
    pub(super) y: *mut E,
    pub(super) y_row: usize,
    /// The rows' lengths, or null when all are full.
    pub(super) lengths: *const usize,
    pub(super) t: usize,
}

/// The addresses of one row.
#[derive(Clone, Copy)]
pub(super) struct Row<E> {
    pub(super) number: usize,
    pub(super) gates: *mut E,
    pub(super) h: *mut E,
    pub(super) y: *mut E,
}

/// What a cell does with a row.
pub(super) trait Columns<E: Gate>: Copy {
    /// Whether this pass writes y, which is 0 after a row's end.
    fn writes(self) -> bool {
        true
    }

    /// Computes the columns `j..j + count`.
    ///
    /// # Safety
    /// The row's memory is as [`Rows`] says.
    unsafe fn columns<S: Simd>(self, s: S, rows: &Rows<E>, row: Row<E>, j: usize, count: usize);
}

/// A step of the rows by the cell. Rows that have ended keep their state, and what is kept of them is
/// 0.
#[derive(Clone, Copy)]
pub(super) struct Step<E, C> {
    pub(super) rows: Rows<E>,
    pub(super) cell: C,
}

impl<E: Gate, C: Columns<E>> WithSimd for Step<E, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.rows;
        let n = rows.hidden;
        for number in 0..rows.count {
            // SAFETY: row `number` of the step's memory, columns below `hidden`.
            unsafe {
                let gates = rows.gates.add(number * rows.stride);
                let (h, y) = (rows.h.add(number * n), rows.y.add(number * rows.y_row));
                if !rows.lengths.is_null() && rows.t >= *rows.lengths.add(number) {
                    if self.cell.writes() {
                        std::slice::from_raw_parts_mut(y, n).fill(E::default());
                        if rows.keep {
                            std::slice::from_raw_parts_mut(gates, rows.stride).fill(E::default());
                        }
                    }
                    continue;
                }
                let row = Row { number, gates, h, y };
                let mut j = 0;
                while j < n {
                    self.cell.columns(s, &rows, row, j, (n - j).min(LANES));
                    j += LANES;
                }
            }
        }
    }
}
