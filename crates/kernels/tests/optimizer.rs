//! Optimiser steps against their formulas, in place, and the norm of many arrays.

mod calling;

use calling::{array, bits, float, int, into, run, singles, zeros_like};
use onemodel_kernels::parallel::set_num_threads;

#[test]
fn adam_follows_its_formula_in_place() {
    let n = 70_001;
    let (p, g) = (singles(n, 1, 1.0), singles(n, 2, 0.1));
    let attributes =
        |step| [("lr", float(1e-3)), ("weight_decay", float(0.1)), ("step", int(step))];
    let arrays = [array(&[n], &p), array(&[n], &vec![0f32; n]), array(&[n], &vec![0f32; n])];
    let gradient = array(&[n], &g);
    let (mut want, mut m, mut v) = (p, vec![0f32; n], vec![0f32; n]);
    for step in 1..=3 {
        set_num_threads(1 + step % 2);
        let inputs = [Some(&arrays[0]), Some(&gradient), Some(&arrays[1]), Some(&arrays[2])];
        into("AdamWStep", &attributes(step as i64), &arrays, &inputs).unwrap();
        let power = |b: f64| (0..step).fold(1.0, |acc, _| acc * b);
        let rate = (1e-3 / (1.0 - power(0.9))) as f32;
        let root = (1.0 - power(0.999)).sqrt() as f32;
        for i in 0..n {
            let kept = want[i] * (1.0 - 1e-3 * 0.1) as f32;
            m[i] += (1.0 - 0.9) as f32 * (g[i] - m[i]);
            v[i] = 0.999f32 * v[i] + ((1.0 - 0.999) as f32 * g[i]) * g[i];
            want[i] = kept - (rate * m[i]) / (v[i].sqrt() / root + 1e-8);
        }
    }
    assert_eq!(arrays[0].as_slice::<f32>(), &want[..]);
    assert_eq!(arrays[0].storage().version(), 3);
}

#[test]
fn momentum_starts_with_the_gradient() {
    let p = array(&[2], &[1.0f32, -2.0]);
    let g = array(&[2], &[0.5f32, 0.25]);
    let buffer = zeros_like(&p);
    let attributes = [("lr", float(0.5)), ("momentum", float(0.5)), ("dampening", float(0.5))];
    let outputs = [p.clone(), buffer.clone()];
    into("SgdStep", &attributes, &outputs, &[Some(&p), Some(&g), None]).unwrap();
    assert_eq!(buffer.as_slice::<f32>(), [0.5, 0.25]);
    assert_eq!(p.as_slice::<f32>(), [0.75, -2.125]);
    into("SgdStep", &attributes, &outputs, &[Some(&p), Some(&g), Some(&buffer)]).unwrap();
    assert_eq!(buffer.as_slice::<f32>(), [0.5, 0.25]);
    assert_eq!(p.as_slice::<f32>(), [0.5, -2.25]);
}

#[test]
fn the_norm_is_the_same_on_two_threads() {
    let a = array(&[300, 1000], &singles(300_000, 1, 1.0));
    let b = array(&[7], &singles(7, 2, 1.0));
    set_num_threads(1);
    let one = run("GlobalNorm", &[], &[&a, &b]);
    set_num_threads(2);
    let two = run("GlobalNorm", &[], &[&a, &b]);
    assert_eq!(bits(&one[0]), bits(&two[0]));
    let squares: f64 = [&a, &b]
        .iter()
        .flat_map(|x| x.as_slice::<f32>())
        .map(|&x| f64::from(x) * f64::from(x))
        .sum();
    let got = f64::from(one[0].as_slice::<f32>()[0]);
    // One rounding to f32 of a sum in f64.
    assert!((got - squares.sqrt()).abs() <= 6e-8 * got);
}
