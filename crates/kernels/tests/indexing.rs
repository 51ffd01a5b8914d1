//! Operators that choose and place elements by index.

mod calling;

use calling::{array, bits, int, run, singles, text, try_run};
use onemodel_kernels::error::ErrorKind;
use onemodel_kernels::parallel::set_num_threads;
use proptest::prelude::*;

proptest! {
    #[test]
    fn gather_takes_rows(
        rows in 1i64..6, width in 0usize..5, picks in prop::collection::vec(-6i64..6, 0..8),
    ) {
        let data: Vec<i32> = (0..(rows as usize * width) as i32).collect();
        let x = array(&[rows as usize, width], &data);
        let at = array(&[picks.len()], &picks);
        let result = try_run("Gather", &[], &[Some(&x), Some(&at)]);
        if picks.iter().any(|&p| !(-rows..rows).contains(&p)) {
            prop_assert_eq!(result.err().map(|e| e.kind), Some(ErrorKind::Bounds));
            return Ok(());
        }
        let out = &result.unwrap()[0];
        for (i, &p) in picks.iter().enumerate() {
            let row = p.rem_euclid(rows) as usize;
            let got = &out.as_slice::<i32>()[i * width..(i + 1) * width];
            prop_assert_eq!(got, &data[row * width..(row + 1) * width]);
        }
    }

    #[test]
    fn scatters_combine_in_index_order(
        picks in prop::collection::vec(0i64..5, 1..20), seed in 0u64..99, reduction in 0usize..5,
    ) {
        let name = ["none", "add", "mul", "max", "min"][reduction];
        let start = singles(5, seed, 2.0);
        let updates = singles(picks.len(), seed + 1, 2.0);
        let mut want = start.clone();
        for (&p, &u) in picks.iter().zip(&updates) {
            let w = &mut want[p as usize];
            *w = match name {
                "none" => u,
                "add" => *w + u,
                "mul" => *w * u,
                "max" => w.max(u),
                _ => w.min(u),
            };
        }
        let inputs =
            [array(&[5], &start), array(&[picks.len()], &picks), array(&[picks.len()], &updates)];
        let refs = [&inputs[0], &inputs[1], &inputs[2]];
        let out = &run("ScatterElements", &[("reduction", text(name))], &refs)[0];
        prop_assert_eq!(out.as_slice::<f32>(), &want[..]);
        let tuples = array(&[picks.len(), 1], &picks);
        let refs = [&inputs[0], &tuples, &inputs[2]];
        let out = &run("ScatterND", &[("reduction", text(name))], &refs)[0];
        prop_assert_eq!(out.as_slice::<f32>(), &want[..]);
        if name == "add" {
            let refs = [&inputs[0], &inputs[1], &inputs[2]];
            let out = &run("IndexAdd", &[], &refs)[0];
            prop_assert_eq!(out.as_slice::<f32>(), &want[..]);
        }
    }

    #[test]
    fn the_best_come_in_order(values in prop::collection::vec(-3i32..4, 1..30), k in 0usize..30) {
        let k = k.min(values.len());
        for largest in [0, 1] {
            let x = array(&[values.len()], &values);
            let attributes = [("k", int(k as i64)), ("largest", int(largest))];
            let out = run("TopK", &attributes, &[&x]);
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by_key(|&i| if largest == 1 { -values[i] } else { values[i] });
            let want: Vec<i64> = order[..k].iter().map(|&i| i as i64).collect();
            prop_assert_eq!(out[1].as_slice::<i64>(), &want[..]);
            let want: Vec<i32> = order[..k].iter().map(|&i| values[i]).collect();
            prop_assert_eq!(out[0].as_slice::<i32>(), &want[..]);
        }
    }
}

#[test]
fn index_add_is_the_same_on_two_threads() {
    let (rows, width, picks) = (30, 700, 400);
    let x = array(&[rows, width], &singles(rows * width, 1, 1.0));
    let at: Vec<i64> = (0..picks).map(|i| (i * i % rows) as i64).collect();
    let at = array(&[picks], &at);
    let src = array(&[picks, width], &singles(picks * width, 2, 1.0));
    set_num_threads(1);
    let one = run("IndexAdd", &[], &[&x, &at, &src]);
    set_num_threads(2);
    let two = run("IndexAdd", &[], &[&x, &at, &src]);
    assert_eq!(bits(&one[0]), bits(&two[0]));
}

#[test]
fn nan_is_the_greatest_and_equal_ones_come_by_index() {
    let x = array(&[5], &[0.0f32, f32::NAN, -0.0, f32::INFINITY, f32::NAN]);
    let out = run("TopK", &[("k", int(5))], &[&x]);
    assert_eq!(out[1].as_slice::<i64>(), [1, 4, 3, 0, 2]);
    let out = run("TopK", &[("k", int(5)), ("largest", int(0))], &[&x]);
    assert_eq!(out[1].as_slice::<i64>(), [0, 2, 3, 1, 4]);
}

#[test]
fn shapes_that_depend_on_values() {
    let x = array(&[2, 3], &[0i32, 5, 0, -1, 0, 2]);
    let out = run("NonZero", &[], &[&x]);
    assert_eq!(out[0].shape(), [2, 3]);
    assert_eq!(out[0].as_slice::<i64>(), [0, 1, 1, 1, 0, 2]);
    let x = array(&[6], &[3i64, 1, 3, 2, 1, 1]);
    let out = run("Unique", &[], &[&x]);
    assert_eq!(out[0].as_slice::<i64>(), [1, 2, 3]);
    assert_eq!(out[1].as_slice::<i64>(), [1, 3, 0]);
    assert_eq!(out[2].as_slice::<i64>(), [2, 0, 2, 1, 0, 0]);
    assert_eq!(out[3].as_slice::<i64>(), [3, 1, 2]);
    let out = run("Unique", &[("sorted", int(0))], &[&x]);
    assert_eq!(out[0].as_slice::<i64>(), [3, 1, 2]);
}
