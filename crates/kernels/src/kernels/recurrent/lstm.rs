//! One step of an LSTM, forward and backward.

use super::activation::{Activation, Gate, clip};
use super::step::{Columns, Row, Rows};
use crate::simd::{LANES, Simd};

/// The cell's part of a step: `i = σ(i)`, `f = σ(f)`, `g = tanh(g)`, `o = σ(o)`, then
/// `c' = fma(f, c, i * g)` and `h' = o * tanh(c')`; c' is kept after the gates.
#[derive(Clone, Copy)]
pub(super) struct Forward<E> {
    pub(super) order: [usize; 4],
    pub(super) functions: [Activation; 3],
    pub(super) clip: Option<f64>,
    /// Rows of `hidden`.
    pub(super) c: *mut E,
    /// Peephole weights of i, o and f (ONNX's P), or null.
    pub(super) peephole: *const E,
}

impl<E: Gate> Columns<E> for Forward<E> {
    #[inline(always)]
    unsafe fn columns<S: Simd>(self, s: S, rows: &Rows<E>, row: Row<E>, j: usize, count: usize) {
        let n = rows.hidden;
        let gates = row.gates;
        let [i, f, g, o] = self.order;
        let (i, f, g, o) = (i * n + j, f * n + j, g * n + j, o * n + j);
        let [of_gates, of_g, of_c] = self.functions;
        // SAFETY: columns `j..j + count` of one row of each operand.
        unsafe {
            let c = self.c.add(row.number * n);
            let old = E::get(s, c.add(j), count);
            let peep = |v: E::V<S>, which: usize, c: E::V<S>| {
                if self.peephole.is_null() {
                    return v;
                }
                E::v_fma(s, E::get(s, self.peephole.add(which * n + j), count), c, v)
            };
            let gate = |at: usize| E::get(s, gates.add(at), count);
            let i_value = clip::<E, S>(s, peep(gate(i), 0, old), self.clip);
            let i_value = of_gates.apply::<E, S>(s, i_value);
            let f_value = clip::<E, S>(s, peep(gate(f), 2, old), self.clip);
            let f_value = of_gates.apply::<E, S>(s, f_value);
            let g_value = of_g.apply::<E, S>(s, clip::<E, S>(s, gate(g), self.clip));
            let new = E::v_fma(s, f_value, old, E::v_mul(s, i_value, g_value));
            let o_value = clip::<E, S>(s, peep(gate(o), 1, new), self.clip);
            let o_value = of_gates.apply::<E, S>(s, o_value);
            let squashed = of_c.apply::<E, S>(s, new);
            let out = E::v_mul(s, o_value, squashed);
            E::put(s, c.add(j), count, new);
            E::put(s, row.h.add(j), count, out);
            E::put(s, row.y.add(j), count, out);
            if rows.keep {
                for (at, value) in [(i, i_value), (f, f_value), (g, g_value), (o, o_value)] {
                    E::put(s, gates.add(at), count, value);
                }
                E::put(s, gates.add(4 * n + j), count, new);
            }
        }
    }
}

/// One row of one step backward, for the standard functions. With `e = dy + dh` (left out: +0),
/// `t = tanh(c')` and `k = fma(e * o, 1 - t * t, dc)`:
/// `do = e * t * (o * (1 - o))`, `di = k * g * (i * (1 - i))`, `df = k * c * (f * (1 - f))`,
/// `dg = k * i * (1 - g * g)`, each product from the left, and the new `dc = k * f`.
#[derive(Clone, Copy)]
pub(super) struct BackStep<E> {
    pub(super) hidden: usize,
    pub(super) saved: *const E,
    /// The c before the step, or null for zeros.
    pub(super) c_before: *const E,
    /// The gradient of y, or null.
    pub(super) dy: *const E,
    pub(super) dh: *const E,
    pub(super) dc: *mut E,
    pub(super) dgates: *mut E,
}

impl<E: Gate> BackStep<E> {
    #[inline(always)]
    pub(super) unsafe fn row<S: Simd>(self, s: S) {
        let n = self.hidden;
        let one = E::splat(s, E::from_f64(1.0));
        let mut j = 0;
        while j < n {
            let count = (n - j).min(LANES);
            // SAFETY: columns `j..j + count` of one row of each operand.
            unsafe {
                let gate = |block: usize| E::get(s, self.saved.add(block * n + j), count);
                let (i, f, g, o) = (gate(0), gate(1), gate(2), gate(3));
                let t = E::tanh(s, gate(4));
                let mut e = E::get(s, self.dh.add(j), count);
                if !self.dy.is_null() {
                    e = E::v_add(s, E::get(s, self.dy.add(j), count), e);
                }
                let slope = E::v_sub(s, one, E::v_mul(s, t, t));
                let k = E::v_fma(s, E::v_mul(s, e, o), slope, E::get(s, self.dc.add(j), count));
                let before = if self.c_before.is_null() {
                    E::splat(s, E::default())
                } else {
                    E::get(s, self.c_before.add(j), count)
                };
                let bell = |v: E::V<S>| E::v_mul(s, v, E::v_sub(s, one, v));
                let di = E::v_mul(s, E::v_mul(s, k, g), bell(i));
                let df = E::v_mul(s, E::v_mul(s, k, before), bell(f));
                let dg = E::v_mul(s, E::v_mul(s, k, i), E::v_sub(s, one, E::v_mul(s, g, g)));
                let d_o = E::v_mul(s, E::v_mul(s, e, t), bell(o));
                for (block, value) in [di, df, dg, d_o].into_iter().enumerate() {
                    E::put(s, self.dgates.add(block * n + j), count, value);
                }
                E::put(s, self.dc.add(j), count, E::v_mul(s, k, f));
            }
            j += LANES;
        }
    }
}
