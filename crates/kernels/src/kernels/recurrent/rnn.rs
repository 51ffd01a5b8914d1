//! One step of a plain RNN, forward and backward.

use super::activation::{Activation, Gate, clip};
use super::step::{Columns, Row, Rows};
use crate::simd::{LANES, Simd};

/// The cell's part of a step: `h' = f(gate)`.
#[derive(Clone, Copy)]
pub(super) struct Forward {
    pub(super) function: Activation,
    pub(super) clip: Option<f64>,
}

impl<E: Gate> Columns<E> for Forward {
    #[inline(always)]
    unsafe fn columns<S: Simd>(self, s: S, rows: &Rows<E>, row: Row<E>, j: usize, count: usize) {
        // SAFETY: columns `j..j + count` of one row of each operand.
        unsafe {
            let v = clip::<E, S>(s, E::get(s, row.gates.add(j), count), self.clip);
            let new = self.function.apply::<E, S>(s, v);
            E::put(s, row.h.add(j), count, new);
            E::put(s, row.y.add(j), count, new);
            if rows.keep {
                E::put(s, row.gates.add(j), count, new);
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
                let h = E::get(s, self.saved.add(j), count);
                let mut e = E::get(s, self.dh.add(j), count);
                if !self.dy.is_null() {
                    e = E::v_add(s, E::get(s, self.dy.add(j), count), e);
                }
                if self.relu {
                    E::put(s, self.dgates.add(j), count, e);
                    for k in j..j + count {
                        if *self.saved.add(k) <= E::default() {
                            *self.dgates.add(k) = E::default();
                        }
                    }
                } else {
                    let slope = E::v_sub(s, one, E::v_mul(s, h, h));
                    E::put(s, self.dgates.add(j), count, E::v_mul(s, e, slope));
                }
            }
            j += LANES;
        }
    }
}
