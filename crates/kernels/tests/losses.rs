//! CTC against a sum over all paths and finite differences; NLL against its definition.

mod calling;

use calling::{array, int, ints, numbers, run, try_run};
use onemodel_kernels::array::Array;
use onemodel_kernels::error::ErrorKind;
use onemodel_kernels::parallel::set_num_threads;

const BLANK: usize = 0;

/// -log of the sum over all paths that read `labels`.
fn over_all_paths(p: &[f64], steps: usize, classes: usize, labels: &[usize]) -> f64 {
    let mut total = 0.0;
    for code in 0..classes.pow(steps as u32) {
        let path: Vec<usize> = (0..steps).map(|t| code / classes.pow(t as u32) % classes).collect();
        let mut read = Vec::new();
        for (t, &c) in path.iter().enumerate() {
            if c != BLANK && (t == 0 || path[t - 1] != c) {
                read.push(c);
            }
        }
        if read == labels {
            total += path.iter().enumerate().map(|(t, &c)| p[t * classes + c]).sum::<f64>().exp();
        }
    }
    -total.ln()
}

struct Problem {
    steps: usize,
    classes: usize,
    scores: Vec<f64>,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
}

impl Problem {
    const LABELS: [&'static [usize]; 4] = [&[1, 1], &[2], &[], &[1, 2, 1]];
    const LENGTHS: [usize; 4] = [5, 3, 4, 2];

    fn new() -> Self {
        let (steps, classes) = (5, 3);
        let padded: Vec<i64> = Self::LABELS
            .iter()
            .flat_map(|l| (0..3).map(|i| l.get(i).map_or(1, |&v| v as i64)))
            .collect();
        let counts: Vec<i64> = Self::LABELS.iter().map(|l| l.len() as i64).collect();
        let lengths: Vec<i64> = Self::LENGTHS.iter().map(|&l| l as i64).collect();
        Self {
            steps,
            classes,
            scores: numbers(steps * 4 * classes, 3, 2.0),
            targets: array(&[4, 3], &padded),
            input_lengths: array(&[4], &lengths),
            target_lengths: array(&[4], &counts),
        }
    }

    fn solve(&self, scores: &[f64], zero: i64) -> (Vec<f64>, Vec<f64>) {
        let x = array(&[self.steps, 4, self.classes], scores);
        let inputs = [&x, &self.targets, &self.input_lengths, &self.target_lengths];
        let out = run("CTCLoss", &[("zero_infinity", int(zero))], &inputs);
        (out[0].as_slice::<f64>().to_vec(), out[1].as_slice::<f64>().to_vec())
    }
}

#[test]
fn ctc_sums_over_all_paths() {
    let p = Problem::new();
    let (losses, gradient) = p.solve(&p.scores, 0);
    for (b, loss) in losses.iter().enumerate().take(3) {
        let rows: Vec<f64> = (0..p.steps)
            .flat_map(|t| p.scores[(t * 4 + b) * p.classes..][..p.classes].to_vec())
            .collect();
        let want = over_all_paths(&rows, Problem::LENGTHS[b], p.classes, Problem::LABELS[b]);
        assert!((loss - want).abs() < 1e-12, "sample {b}: {loss} and {want}");
    }
    assert_eq!(losses[3], f64::INFINITY);
    for e in 0..p.scores.len() {
        if e / p.classes % 4 == 3 {
            continue;
        }
        let at = |step: f64| {
            let mut moved = p.scores.clone();
            moved[e] += step;
            p.solve(&moved, 0).0[..3].iter().sum::<f64>()
        };
        let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
        // Central differences are off by about the square of the step.
        assert!((gradient[e] - slope).abs() < 1e-8, "{e}: {} and {slope}", gradient[e]);
    }
}

#[test]
fn impossible_targets_give_infinity_or_nothing() {
    let p = Problem::new();
    let (_, gradient) = p.solve(&p.scores, 0);
    let of = |g: &[f64], t: usize| g[(t * 4 + 3) * p.classes..][..p.classes].to_vec();
    assert!((0..2).all(|t| of(&gradient, t).iter().all(|g| g.is_nan())));
    assert!((2..5).all(|t| of(&gradient, t).iter().all(|g| *g == 0.0)));
    let (losses, gradient) = p.solve(&p.scores, 1);
    assert_eq!(losses[3], 0.0);
    assert!((0..5).all(|t| of(&gradient, t).iter().all(|g| *g == 0.0)));
}

#[test]
fn ctc_is_the_same_on_two_threads_and_refuses_bad_targets() {
    let p = Problem::new();
    set_num_threads(1);
    let one = p.solve(&p.scores, 1);
    set_num_threads(2);
    assert_eq!(one, p.solve(&p.scores, 1));
    let x = array(&[5, 4, 3], &p.scores);
    for wrong in [0i64, 3, -1] {
        let targets = array(&[4, 3], &[wrong; 12]);
        let inputs = [Some(&x), Some(&targets), Some(&p.input_lengths), Some(&p.target_lengths)];
        let error = try_run("CTCLoss", &[], &inputs).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Bounds, "{wrong}");
    }
}

#[test]
fn nll_takes_the_target_with_its_weight() {
    let logp = array(&[2, 3], &[-0.5f32, -1.0, -2.0, -3.0, -0.25, -4.0]);
    let target = array(&[2], &[2i64, -100]);
    let weight = array(&[3], &[1.0f32, 2.0, 3.0]);
    let ignored = ("ignore_index", int(-100));
    let out = run("NllLoss", std::slice::from_ref(&ignored), &[&logp, &target, &weight]);
    assert_eq!(out[0].as_slice::<f32>(), [6.0, 0.0]);
    assert_eq!(out[1].as_slice::<f32>(), [3.0, 0.0]);
    let g = array(&[2], &[0.5f32, 7.0]);
    let attributes = [ignored, ("input_shape", ints(&[2, 3]))];
    let out = run("NllLossGrad", &attributes, &[&g, &target, &weight]);
    assert_eq!(out[0].as_slice::<f32>(), [0.0, 0.0, -1.5, 0.0, 0.0, 0.0]);
    let error = try_run("NllLoss", &[], &[Some(&logp), Some(&target)]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Bounds);
}
