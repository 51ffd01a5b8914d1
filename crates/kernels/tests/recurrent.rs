//! Recurrent layers against loops written out, and their gradients against finite differences.

mod calling;

use calling::{array, bits, int, numbers, singles, text, try_run};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::math;
use onemodel_kernels::parallel::set_num_threads;
use onemodel_kernels::simd::{Isa, Simd, WithSimd, dispatch_on};

/// One f32 through a function of the scalar body.
struct Lane {
    x: f32,
    tanh: bool,
}

impl WithSimd for Lane {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let x = s.splat(self.x);
        s.to_array(if self.tanh { math::tanh(s, x) } else { math::sigmoid(s, x) })[0]
    }
}

fn tanh(x: f32) -> f32 {
    dispatch_on(Isa::Scalar, Lane { x, tanh: true })
}

fn sigmoid(x: f32) -> f32 {
    dispatch_on(Isa::Scalar, Lane { x, tanh: false })
}

#[derive(Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
}

/// A chain over x, then over h.
fn chain(start: f32, w: &[f32], x: &[f32], u: &[f32], h: &[f32]) -> f32 {
    let acc = w.iter().zip(x).fold(start, |acc, (w, x)| x.mul_add(*w, acc));
    u.iter().zip(h).fold(acc, |acc, (u, h)| h.mul_add(*u, acc))
}

/// An LSTM of one direction by its definition; returns y.
fn lstm(s: Sizes, x: &[f32], p: [&[f32]; 4], lengths: &[usize], reverse: bool) -> Vec<f32> {
    let (n, i_n) = (s.hidden, s.input);
    let mut y = vec![0.0; s.steps * s.batch * n];
    for b in 0..s.batch {
        let (mut h, mut c) = (vec![0.0f32; n], vec![0.0f32; n]);
        for k in 0..lengths[b] {
            let t = if reverse { lengths[b] - 1 - k } else { k };
            let row = &x[(t * s.batch + b) * i_n..][..i_n];
            let gate = |j: usize| {
                let (w, u) = (&p[0][j * i_n..][..i_n], &p[1][j * n..][..n]);
                chain(p[2][j] + p[3][j], w, row, u, &h)
            };
            let pre: Vec<f32> = (0..4 * n).map(gate).collect();
            for j in 0..n {
                let (i, f) = (sigmoid(pre[j]), sigmoid(pre[n + j]));
                let (g, o) = (tanh(pre[2 * n + j]), sigmoid(pre[3 * n + j]));
                c[j] = f.mul_add(c[j], i * g);
                h[j] = o * tanh(c[j]);
            }
            y[(t * s.batch + b) * n..][..n].copy_from_slice(&h);
        }
    }
    y
}

fn layer_inputs(s: Sizes, gates: usize, directions: usize) -> (Array, Vec<Array>) {
    let n = s.hidden;
    let x = array(&[s.steps, s.batch, s.input], &singles(s.steps * s.batch * s.input, 1, 1.0));
    let mut weights = Vec::new();
    for d in 0..directions as u64 {
        let rows = gates * n;
        weights.push(array(&[rows, s.input], &singles(rows * s.input, 10 + d, 0.8)));
        weights.push(array(&[rows, n], &singles(rows * n, 20 + d, 0.8)));
        weights.push(array(&[rows], &singles(rows, 30 + d, 0.5)));
        weights.push(array(&[rows], &singles(rows, 40 + d, 0.5)));
    }
    (x, weights)
}

fn given(arrays: &[Array]) -> impl Iterator<Item = Option<&Array>> {
    arrays.iter().map(Some)
}

#[test]
fn lstm_is_the_written_formula_bit_for_bit() {
    for (steps, batch, input, hidden) in [(5, 3, 4, 5), (3, 1, 19, 17), (2, 40, 3, 16)] {
        let s = Sizes { steps, batch, input, hidden };
        let (x, weights) = layer_inputs(s, 4, 2);
        let lengths: Vec<usize> = (0..batch).map(|b| 1 + (b * 7 + 2) % steps).collect();
        let listed: Vec<i64> = lengths.iter().map(|&l| l as i64).collect();
        let listed = array(&[batch], &listed);
        let mut inputs = vec![Some(&x), None, None, Some(&listed)];
        inputs.extend(given(&weights));
        let attributes = [("hidden_size", int(hidden as i64)), ("directions", int(2))];
        let mut y = Vec::new();
        for threads in [1, 2] {
            set_num_threads(threads);
            let out = try_run("LSTMLayer", &attributes, &inputs).unwrap();
            y.push(bits(&out[0]));
        }
        assert_eq!(y[0], y[1]);
        for d in 0..2 {
            let p: Vec<&[f32]> = weights[4 * d..4 * d + 4].iter().map(|w| w.as_slice()).collect();
            let want = lstm(s, x.as_slice(), [p[0], p[1], p[2], p[3]], &lengths, d == 1);
            for (i, w) in want.iter().enumerate() {
                let at = i / hidden * 2 * hidden + d * hidden + i % hidden;
                assert_eq!(y[0][at], w.to_bits(), "element {i} of direction {d}");
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_batch() {
    let s = Sizes { steps: 4, batch: 37, input: 6, hidden: 20 };
    for (name, gates, states) in [("LSTMLayer", 4, 2), ("GRULayer", 3, 1), ("RNNLayer", 1, 1)] {
        let (x, weights) = layer_inputs(s, gates, 1);
        let attributes = [("hidden_size", int(s.hidden as i64))];
        let layer = |x: &Array| {
            let mut inputs = vec![Some(x)];
            inputs.resize(2 + states, None);
            inputs.extend(given(&weights));
            try_run(name, &attributes, &inputs).unwrap().swap_remove(0)
        };
        let all = layer(&x);
        for b in [0, 17, 36] {
            let alone = layer(&x.slice(1, b, b + 1, 1).unwrap());
            let row = all.slice(1, b, b + 1, 1).unwrap().copy().unwrap();
            assert_eq!(bits(&alone), bits(&row), "{name}, row {b}");
        }
    }
}

/// The scalar `Σ weight * output` of a layer over f64 inputs.
fn objective(name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Array>]) -> f64 {
    let refs: Vec<Option<&Array>> = inputs.iter().map(Option::as_ref).collect();
    let out = try_run(name, attributes, &refs).unwrap();
    out[..out.len() - 1]
        .iter()
        .enumerate()
        .map(|(k, a)| {
            let weights = numbers(a.size(), 90 + k as u64, 1.0);
            a.as_slice::<f64>().iter().zip(weights).map(|(x, w)| x * w).sum::<f64>()
        })
        .sum()
}

fn check_gradient(name: &str, gates: usize, states: usize, extra: &[(&str, Attribute)]) {
    let (t, b, i, h, d) = (4, 3, 2, 3, 2);
    let mut attributes = vec![("hidden_size", int(h as i64)), ("directions", int(d as i64))];
    attributes.extend_from_slice(extra);
    let filled = |shape: &[usize], seed: u64| {
        Some(array(shape, &numbers(shape.iter().product(), seed, 0.9)))
    };
    let mut inputs = vec![filled(&[t, b, i], 1)];
    for k in 0..states {
        inputs.push(filled(&[d, b, h], 2 + k as u64));
    }
    inputs.push(Some(array(&[b], &[4i64, 2, 1])));
    for k in 0..d as u64 {
        let rows = gates * h;
        inputs.push(filled(&[rows, i], 10 + k));
        inputs.push(filled(&[rows, h], 20 + k));
        inputs.push(filled(&[rows], 30 + k));
        inputs.push(filled(&[rows], 40 + k));
    }
    let refs: Vec<Option<&Array>> = inputs.iter().map(Option::as_ref).collect();
    let outputs = try_run(name, &attributes, &refs).unwrap();
    let slopes: Vec<Array> = outputs[..outputs.len() - 1]
        .iter()
        .enumerate()
        .map(|(k, a)| array(a.shape(), &numbers(a.size(), 90 + k as u64, 1.0)))
        .collect();
    let mut all: Vec<Option<&Array>> = given(&slopes).collect();
    all.extend_from_slice(&refs);
    all.extend(given(&outputs));
    let found = try_run(&format!("{name}Grad"), &attributes, &all).unwrap();
    let differentiable = (0..inputs.len()).filter(|&k| k != 1 + states);
    for (gradient, k) in found.iter().zip(differentiable) {
        let values = inputs[k].clone().unwrap();
        for e in 0..values.size() {
            let mut moved = inputs.clone();
            let mut at = |step: f64| {
                let mut data = values.as_slice::<f64>().to_vec();
                data[e] += step;
                moved[k] = Some(array(values.shape(), &data));
                objective(name, &attributes, &moved)
            };
            let step = 1e-5;
            let slope = (at(step) - at(-step)) / (2.0 * step);
            let got = gradient.as_slice::<f64>()[e];
            // Central differences of a smooth function are off by about step².
            assert!((slope - got).abs() < 1e-8, "{name}, input {k}[{e}]: {got}, slope {slope}");
        }
    }
}

#[test]
fn gradients_are_slopes() {
    check_gradient("LSTMLayer", 4, 2, &[]);
    check_gradient("GRULayer", 3, 1, &[]);
    check_gradient("RNNLayer", 1, 1, &[]);
    check_gradient("RNNLayer", 1, 1, &[("nonlinearity", text("relu"))]);
}

#[test]
fn no_steps_leave_the_states() {
    let s = Sizes { steps: 0, batch: 2, input: 3, hidden: 4 };
    let (x, weights) = layer_inputs(s, 4, 1);
    let h0 = array(&[1, 2, 4], &singles(8, 5, 1.0));
    let mut inputs = vec![Some(&x), Some(&h0), None, None];
    inputs.extend(given(&weights));
    let out = try_run("LSTMLayer", &[("hidden_size", int(4))], &inputs).unwrap();
    assert_eq!(out[0].shape(), [0, 2, 4]);
    assert_eq!(bits(&out[1]), bits(&h0));
}
