//! Random kernels: a stream is a function of seed, counter and position.

mod calling;

use calling::{bits, float, int, ints, run, text, try_run};
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::error::ErrorKind;
use onemodel_kernels::parallel::set_num_threads;

fn drawn(name: &str, shape: &[i64], extra: &[(&str, Attribute)]) -> Vec<u32> {
    let mut attributes = vec![("shape", ints(shape)), ("seed", int(7)), ("counter", int(3))];
    attributes.extend_from_slice(extra);
    bits(&run(name, &attributes, &[])[0])
}

#[test]
fn numbers_depend_on_their_position_alone() {
    for name in ["RandomUniform", "RandomNormal"] {
        set_num_threads(1);
        let one = drawn(name, &[40_001], &[]);
        set_num_threads(2);
        assert_eq!(one, drawn(name, &[40_001], &[]));
        assert_eq!(one[..77], drawn(name, &[7, 11], &[])[..]);
        let other = [("shape", ints(&[77])), ("seed", int(7)), ("counter", int(4))];
        assert_ne!(one[..77], bits(&run(name, &other, &[])[0])[..]);
    }
}

#[test]
fn the_first_numbers_of_a_stream_stay_what_they_are() {
    let uniform: Vec<f32> =
        drawn("RandomUniform", &[3], &[]).into_iter().map(f32::from_bits).collect();
    let normal: Vec<f32> =
        drawn("RandomNormal", &[3], &[]).into_iter().map(f32::from_bits).collect();
    let expected = (UNIFORM, NORMAL);
    assert_eq!((uniform.as_slice(), normal.as_slice()), (&expected.0[..], &expected.1[..]));
}

const UNIFORM: [f32; 3] = [0.592_580_2, 0.123_782_87, 0.162_713_41];
const NORMAL: [f32; 3] = [0.728_884, 0.717_820_35, -1.543_246];

#[test]
fn moments_are_those_of_the_distributions() {
    let n = 200_000;
    let shape = [("shape", ints(&[n])), ("seed", int(1)), ("dtype", text("float64"))];
    let moments = |name: &str| {
        let out = run(name, &shape, &[]).swap_remove(0);
        let x = out.as_slice::<f64>();
        let mean = x.iter().sum::<f64>() / n as f64;
        (mean, x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64)
    };
    // Five standard errors.
    let (mean, variance) = moments("RandomUniform");
    assert!((mean - 0.5).abs() < 3.3e-3 && (variance - 1.0 / 12.0).abs() < 1e-3);
    let (mean, variance) = moments("RandomNormal");
    assert!(mean.abs() < 1.2e-2 && (variance - 1.0).abs() < 1.6e-2);
}

#[test]
fn bounds_hold() {
    let narrow = [("low", float(1.0)), ("high", float(1.0 + 1.2e-7))];
    let uniform = drawn("RandomUniform", &[1000], &narrow);
    assert!(uniform.iter().all(|&b| b == 1f32.to_bits()));
    let attributes =
        [("shape", ints(&[1000])), ("seed", int(0)), ("low", int(-2)), ("high", int(3))];
    let whole = run("RandomIntegers", &attributes, &[]).swap_remove(0);
    let mut seen = whole.as_slice::<i64>().to_vec();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [-2, -1, 0, 1, 2]);
    let permutation = run("RandomPermutation", &[("n", int(100)), ("seed", int(5))], &[]);
    let mut order = permutation[0].as_slice::<i64>().to_vec();
    assert_ne!(order, (0..100).collect::<Vec<_>>());
    order.sort_unstable();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
    let wrong = [("shape", ints(&[2])), ("seed", int(0)), ("p", float(1.5))];
    let error = try_run("RandomBernoulli", &wrong, &[]).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Attribute);
}
