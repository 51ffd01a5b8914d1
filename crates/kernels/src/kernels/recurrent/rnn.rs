//! One step of a plain RNN, forward and backward.

use super::activation::{Activation, Gate, clip};
use crate::simd::{LANES, Simd, WithSimd};

/// Rows of one step: `h' = f(gate)`.
#[derive(Clone, Copy)]
pub(super) struct Step<E> {
    pub(super) rows: usize,
    pub(super) hidden: usize,
    pub(super) function: Activation,
    pub(super) clip: Option<f64>,
    pub(super) gates: *mut E,
    pub(super) stride: usize,
    pub(super) keep: bool,
    pub(super) h: *mut E,
    pub(super) y: *mut E,
    pub(super) y_row: usize,
    pub(super) lengths: *const usize,
    pub(super) t: usize,
}

impl<E: Gate> WithSimd for Step<E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.hidden;
        for row in 0..self.rows {
            // SAFETY: row `row` of the step's memory, columns below `hidden`.
            unsafe {
                let gates = self.gates.add(row * self.stride);
                let y = self.y.add(row * self.y_row);
                if !self.lengths.is_null() && self.t >= *self.lengths.add(row) {
                    std::slice::from_raw_parts_mut(y, n).fill(E::default());
                    if self.keep {
                        std::slice::from_raw_parts_mut(gates, n).fill(E::default());
                    }
                    continue;
                }
                let h = self.h.add(row * n);
                let mut j = 0;
                while j < n {
                    let count = (n - j).min(LANES);
                    let v = clip::<E, S>(s, E::part(s, gates.add(j), count), self.clip);
                    let new = self.function.apply::<E, S>(s, v);
                    E::put(s, h.add(j), count, new);
                    E::put(s, y.add(j), count, new);
                    if self.keep {
                        E::put(s, gates.add(j), count, new);
                    }
                    j += LANES;
                }
            }
        }
    }
}

/// One row of one step backward, with `e = dy + dh`: for tanh `d = e * (1 - h * h)`, for relu e
/// where h is above 0 and +0 elsewhere.
#[derive(Clone, Copy)]
pub(super) struct BackStep<E> {
    pub(super) hidden: usize,
    pub(super) relu: bool,
    pub(super) saved: *const E,
    pub(super) dy: *const E,
    pub(super) dh: *const E,
    pub(super) dgates: *mut E,
}

impl<E: Gate> BackStep<E> {
    #[inline(always)]
    pub(super) unsafe fn row<S: Simd>(self, s: S) {
        let one = E::splat(s, E::from_f64(1.0));
        let mut j = 0;
        while j < self.hidden {
            let count = (self.hidden - j).min(LANES);
            // SAFETY: columns `j..j + count` of one row of each operand.
            unsafe {
                let h = E::part(s, self.saved.add(j), count);
                let mut e = E::part(s, self.dh.add(j), count);
                if !self.dy.is_null() {
                    e = E::add(s, E::part(s, self.dy.add(j), count), e);
                }
                if self.relu {
                    E::put(s, self.dgates.add(j), count, e);
                    for k in j..j + count {
                        if *self.saved.add(k) <= E::default() {
                            *self.dgates.add(k) = E::default();
                        }
                    }
                } else {
                    let slope = E::sub(s, one, E::mul(s, h, h));
                    E::put(s, self.dgates.add(j), count, E::mul(s, e, slope));
                }
            }
            j += LANES;
        }
    }
}
