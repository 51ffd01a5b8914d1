//! The forward-backward sums of connectionist temporal classification for one sequence.

use crate::math::{exp_f64, log_f64};

/// `log(exp(a) + exp(b))` with the larger one taken out: `m + ln(exp(a - m) + exp(b - m))`.
fn log_add(a: f64, b: f64) -> f64 {
    let (m, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || m.is_nan() {
        return m;
    }
    if low.is_nan() {
        return low;
    }
    m + log_f64(1.0 + exp_f64(low - m))
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

    fn label(&self, state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] }
    }

    /// Whether a path may come to `state` from two states below: not to a blank, and not between
    /// two equal labels.
    fn skips(&self, state: usize) -> bool {
        state >= 3 && state % 2 == 1 && self.label(state) != self.label(state - 2)
    }

    /// `alpha[t, s]`: the log of the sum over all paths of rows `0..=t` that end in state `s`.
    fn forward(&self, alpha: &mut [f64]) {
        let n = self.states();
        alpha.fill(f64::NEG_INFINITY);
        for (s, a) in alpha.iter_mut().enumerate().take(n.min(2)) {
            *a = (self.log_prob)(0, self.label(s));
        }
        for t in 1..self.steps {
            let (earlier, row) = alpha[(t - 1) * n..(t + 1) * n].split_at_mut(n);
            for s in 0..n {
                let mut sum = earlier[s];
                if s >= 1 {
                    sum = log_add(sum, earlier[s - 1]);
                }
                if self.skips(s) {
                    sum = log_add(sum, earlier[s - 2]);
                }
                row[s] = sum + (self.log_prob)(t, self.label(s));
            }
        }
    }

    /// `beta[s]` of row `t` from that of row `t + 1`: the log of the sum over all continuations
    /// after row `t`, which itself is not counted.
    fn backward(&self, t: usize, later: &[f64], row: &mut [f64]) {
        let n = self.states();
        let from = |s: usize| later[s] + (self.log_prob)(t + 1, self.label(s));
        for (s, entry) in row.iter_mut().enumerate() {
            let mut sum = from(s);
            if s + 1 < n {
                sum = log_add(sum, from(s + 1));
            }
            if s + 2 < n && self.skips(s + 2) {
                sum = log_add(sum, from(s + 2));
            }
            *entry = sum;
        }
    }

    /// The negative log-likelihood. `alpha` holds `steps * states` elements.
    pub(super) fn loss(&self, alpha: &mut [f64]) -> f64 {
        let n = self.states();
        if self.steps == 0 {
            return if self.labels.is_empty() { 0.0 } else { f64::INFINITY };
        }
        self.forward(alpha);
        let last = &alpha[(self.steps - 1) * n..self.steps * n];
        let total = if n > 1 { log_add(last[n - 1], last[n - 2]) } else { last[0] };
        -total
    }

    /// Adds to `occupancy[t, c]` (rows of `classes`, zeroed before) the probability that the path
    /// is in class `c` at row `t`, states in ascending order. `alpha` is as [`Lattice::loss`] left
    /// it; `beta` holds `2 * states` elements.
    pub(super) fn occupancy(
        &self,
        alpha: &[f64],
        loss: f64,
        beta: &mut [f64],
        classes: usize,
        occupancy: &mut [f64],
    ) {
        let n = self.states();
        let (mut row, mut later) = beta.split_at_mut(n);
        for t in (0..self.steps).rev() {
            if t + 1 == self.steps {
                row.fill(f64::NEG_INFINITY);
                row[n - 1] = 0.0;
                if n > 1 {
                    row[n - 2] = 0.0;
                }
            } else {
                std::mem::swap(&mut row, &mut later);
                self.backward(t, later, row);
            }
            for s in 0..n {
                let share = exp_f64(alpha[t * n + s] + row[s] + loss);
                occupancy[t * classes + self.label(s)] += share;
            }
        }
    }
}
