//! One step of a GRU, forward and backward.

use super::activation::{Activation, Gate, clip};
use super::step::{Columns, Row, Rows};
use crate::simd::{LANES, Simd};

/// What a pass over the rows does: the n gate of a GRU whose r multiplies h needs r before its own
/// product.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase {
    /// `r = σ(r)`, `z = σ(z)`, `scaled = r * h`; the gates hold the values afterwards.
    Reset,
    /// `n = tanh(n)`, then h'.
    Update,
    /// `r = σ(r)`, `z = σ(z)`, `n = tanh(fma(r, product, n))`, then h'.
    Whole,
}

/// The cell's part of a step: `h' = fma(z, h, (1 - z) * n)`.
#[derive(Clone, Copy)]
pub(super) struct Forward<E> {
    pub(super) phase: Phase,
    pub(super) order: [usize; 2],
    pub(super) functions: [Activation; 3],
    pub(super) clip: Option<f64>,
    /// The product of h with the n block, or r * h; row r at `product + r * product_row`.
    pub(super) product: *mut E,
    pub(super) product_row: usize,
}

impl<E: Gate> Columns<E> for Forward<E> {
    #[inline(always)]
    fn writes(self) -> bool {
        self.phase != Phase::Reset
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(self, s: S, rows: &Rows<E>, row: Row<E>, j: usize, count: usize) {
        let n = rows.hidden;
        let (gates, h) = (row.gates, row.h);
        let [r, z] = self.order;
        let (r, z) = (r * n + j, z * n + j);
        let [of_gates, of_n, _] = self.functions;
        // SAFETY: columns `j..j + count` of one row of each operand.
        unsafe {
            let product = self.product.add(row.number * self.product_row);
            let gate = |at: usize| E::get(s, gates.add(at), count);
            let old = E::get(s, h.add(j), count);
            let (mut r_value, mut z_value, mut n_value) = (gate(r), gate(z), gate(2 * n + j));
            if self.phase != Phase::Update {
                r_value = of_gates.apply::<E, S>(s, clip::<E, S>(s, r_value, self.clip));
                z_value = of_gates.apply::<E, S>(s, clip::<E, S>(s, z_value, self.clip));
            }
            if self.phase == Phase::Reset {
                E::put(s, gates.add(z), count, z_value);
                E::put(s, product.add(j), count, E::v_mul(s, r_value, old));
                return;
            }
            if self.phase == Phase::Whole {
                n_value = E::v_fma(s, r_value, E::get(s, product.add(j), count), n_value);
            }
            let n_value = of_n.apply::<E, S>(s, clip::<E, S>(s, n_value, self.clip));
            let one = E::splat(s, E::from_f64(1.0));
            let fresh = E::v_mul(s, E::v_sub(s, one, z_value), n_value);
            let new = E::v_fma(s, z_value, old, fresh);
            E::put(s, h.add(j), count, new);
            E::put(s, row.y.add(j), count, new);
            if rows.keep {
                E::put(s, gates.add(r), count, r_value);
                E::put(s, gates.add(z), count, z_value);
                E::put(s, gates.add(2 * n + j), count, n_value);
            }
        }
    }
}

/// One row of one step backward, for `reset_after` and the standard functions. With
/// `e = dy + dh` and p the product of h with the n block: `dn = e * (1 - z) * (1 - n * n)`,
/// `dr = dn * p * (r * (1 - r))`, `dz = e * (h - n) * (z * (1 - z))`, each product from the left;
/// the gradient of p is `dn * r`, and that of h starts from `e * z`.
#[derive(Clone, Copy)]
pub(super) struct BackStep<E> {
    pub(super) hidden: usize,
    pub(super) saved: *const E,
    pub(super) h_before: *const E,
    pub(super) dy: *const E,
    pub(super) dh: *const E,
    /// Where the gradient of h starts from.
    pub(super) direct: *mut E,
    /// Blocks dr, dz, dn and the gradient of p.
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
                let (r, z, new, p) = (gate(0), gate(1), gate(2), gate(3));
                let mut e = E::get(s, self.dh.add(j), count);
                if !self.dy.is_null() {
                    e = E::v_add(s, E::get(s, self.dy.add(j), count), e);
                }
                let before = if self.h_before.is_null() {
                    E::splat(s, E::default())
                } else {
                    E::get(s, self.h_before.add(j), count)
                };
                let bell = |v: E::V<S>| E::v_mul(s, v, E::v_sub(s, one, v));
                let slope = E::v_sub(s, one, E::v_mul(s, new, new));
                let dn = E::v_mul(s, E::v_mul(s, e, E::v_sub(s, one, z)), slope);
                let dr = E::v_mul(s, E::v_mul(s, dn, p), bell(r));
                let dz = E::v_mul(s, E::v_mul(s, e, E::v_sub(s, before, new)), bell(z));
                let dp = E::v_mul(s, dn, r);
                for (block, value) in [dr, dz, dn, dp].into_iter().enumerate() {
                    E::put(s, self.dgates.add(block * n + j), count, value);
                }
                E::put(s, self.direct.add(j), count, E::v_mul(s, e, z));
            }
            j += LANES;
        }
    }
}
