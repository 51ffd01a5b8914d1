//! The forward-backward sums of connectionist temporal classification for one sequence.

use crate::math::{exp_f64, log_f64};
use crate::simd::{PlainLoop, vectorized_wide};

/// `log(exp(a) + exp(b))` with the larger one taken out: `m + ln(exp(a - m) + exp(b - m))`; of nothing
/// beside -inf, and NaN beside NaN.
#[inline(always)]
fn log_add(a: f64, b: f64) -> f64 {
    let (m, low) = if a > b { (a, b) } else { (b, a) };
    let sum = m + log_f64(1.0 + exp_f64(low - m));
    let sum = if low.is_nan() { low } else { sum };
    if (low == f64::NEG_INFINITY) | m.is_nan() { m } else { sum }
}

/// States of a vector. Rows of states are padded to a multiple, so that none is left to a scalar loop.
const VECTOR: usize = 8;

/// `row[s] = log(exp(a[s]) + exp(b[s]) + exp(c[s]))` from the left, c where a path may skip a state;
/// then `add[s]` is added, if given. A multiple of [`VECTOR`] states.
struct Sums<'a> {
    a: &'a [f64],
    b: &'a [f64],
    c: &'a [f64],
    skips: &'a [bool],
    add: Option<&'a [f64]>,
    row: &'a mut [f64],
}

impl PlainLoop for Sums<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.row.len();
        let (a, b, c) = (&self.a[..n], &self.b[..n], &self.c[..n]);
        let skips = &self.skips[..n];
        for s in 0..n {
            let skipped = if skips[s] { c[s] } else { f64::NEG_INFINITY };
            self.row[s] = log_add(log_add(a[s], b[s]), skipped);
        }
        if let Some(add) = self.add {
            for (entry, add) in self.row.iter_mut().zip(add) {
                *entry += *add;
            }
        }
    }
}

/// `shares[s] = exp(a[s] + b[s] + c)`.
struct Shares<'a> {
    a: &'a [f64],
    b: &'a [f64],
    c: f64,
    shares: &'a mut [f64],
}

impl PlainLoop for Shares<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((share, a), b) in self.shares.iter_mut().zip(self.a).zip(self.b) {
            *share = exp_f64(*a + *b + self.c);
        }
    }
}

/// One sequence: `steps` rows of `classes` log-probabilities and the labels between which blanks
/// may stand (state `2i` is a blank, state `2i + 1` label `i`).
pub(super) struct Lattice<'a, P: Fn(usize, usize) -> f64> {
    pub log_prob: P,
    pub steps: usize,
    pub labels: &'a [usize],
    pub blank: usize,
}

impl<P: Fn(usize, usize) -> f64> Lattice<'_, P> {
    fn states(&self) -> usize {
        2 * self.labels.len() + 1
    }

    /// The length of a row of states with its padding. What stands there comes from real states
    /// and goes to none.
    pub(super) fn row(&self) -> usize {
        self.states().next_multiple_of(VECTOR)
    }

    fn label(&self, state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] }
    }

    /// Whether a path may come to `state` from two states below: not to a blank, and not between
    /// two equal labels.
    fn skips(&self, state: usize) -> bool {
        state >= 3 && state % 2 == 1 && self.label(state) != self.label(state - 2)
    }

    /// Which states of a row a path may come to from two states below; two more follow that no path
    /// comes to.
    fn skipped(&self) -> Vec<bool> {
        let n = self.states();
        (0..self.row() + 2).map(|s| s < n && self.skips(s)).collect()
    }

    fn emissions(&self, t: usize, to: &mut [f64]) {
        for (s, entry) in to.iter_mut().enumerate().take(self.states()) {
            *entry = (self.log_prob)(t, self.label(s));
        }
    }

    /// `alpha[t, s]`: the log of the sum over all paths of rows `0..=t` that end in state `s`.
    fn forward(&self, alpha: &mut [f64]) {
        let n = self.row();
        alpha.fill(f64::NEG_INFINITY);
        for (s, a) in alpha.iter_mut().enumerate().take(self.states().min(2)) {
            *a = (self.log_prob)(0, self.label(s));
        }
        let (skips, mut emitted) = (self.skipped(), vec![0.0; n]);
        // Two impossible states stand below the first.
        let mut earlier = vec![f64::NEG_INFINITY; n + 2];
        for t in 1..self.steps {
            earlier[2..].copy_from_slice(&alpha[(t - 1) * n..t * n]);
            self.emissions(t, &mut emitted);
            vectorized_wide(Sums {
                a: &earlier[2..],
                b: &earlier[1..],
                c: &earlier,
                skips: &skips,
                add: Some(&emitted),
                row: &mut alpha[t * n..(t + 1) * n],
            });
        }
    }

    /// The negative log-likelihood. `alpha` holds `steps` rows.
    pub(super) fn loss(&self, alpha: &mut [f64]) -> f64 {
        let n = self.states();
        if self.steps == 0 {
            return if self.labels.is_empty() { 0.0 } else { f64::INFINITY };
        }
        self.forward(alpha);
        let last = &alpha[(self.steps - 1) * self.row()..];
        let total = if n > 1 { log_add(last[n - 1], last[n - 2]) } else { last[0] };
        -total
    }

    /// Adds to `occupancy[t, c]` (rows of `classes`, zeroed before) the probability that the path
    /// is in class `c` at row `t`, states in ascending order. `alpha` is as [`Lattice::loss`] left
    /// it; `beta` holds two rows.
    pub(super) fn occupancy(
        &self,
        alpha: &[f64],
        loss: f64,
        beta: &mut [f64],
        classes: usize,
        occupancy: &mut [f64],
    ) {
        let (n, width) = (self.states(), self.row());
        let (row, shares) = beta.split_at_mut(width);
        let skips = self.skipped();
        // All states above the last are impossible.
        let mut later = vec![f64::NEG_INFINITY; width + 2];
        for t in (0..self.steps).rev() {
            if t + 1 == self.steps {
                row.fill(f64::NEG_INFINITY);
                row[n - 1] = 0.0;
                if n > 1 {
                    row[n - 2] = 0.0;
                }
            } else {
                // The log of the sum over all continuations after row t, which is not counted.
                for (s, (to, beta)) in later[..n].iter_mut().zip(&*row).enumerate() {
                    *to = *beta + (self.log_prob)(t + 1, self.label(s));
                }
                vectorized_wide(Sums {
                    a: &later,
                    b: &later[1..],
                    c: &later[2..],
                    skips: &skips[2..],
                    add: None,
                    row,
                });
            }
            let a = &alpha[t * width..(t + 1) * width];
            vectorized_wide(Shares { a, b: row, c: loss, shares });
            for (s, share) in shares.iter().enumerate().take(n) {
                occupancy[t * classes + self.label(s)] += share;
            }
        }
    }
}
