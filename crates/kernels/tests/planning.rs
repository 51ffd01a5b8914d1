//! Random plans against the same calls one after the other, bit for bit.

mod calling;

use calling::{array, ints, prepare};
use onemodel_kernels::array::Array;
use onemodel_kernels::kernel::{Kernel, call};
use onemodel_kernels::planning::Draft;
use proptest::prelude::*;
use std::sync::Arc;

const SIDE: usize = 6;

/// What one step of a random plan does to earlier values, chosen by number.
#[derive(Debug, Clone)]
struct Step {
    what: u8,
    first: usize,
    second: usize,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (0u8..8, any::<usize>(), any::<usize>());
    prop::collection::vec(one.prop_map(|(what, first, second)| Step { what, first, second }), 1..24)
}

fn kernels() -> Vec<Arc<dyn Kernel>> {
    let plain = ["Add", "Relu", "Mul", "MatMul", "Neg"].map(|name| prepare(name, &[]).unwrap());
    let turned = prepare("Transpose", &[("perm", ints(&[1, 0]))]).unwrap();
    plain.into_iter().chain([turned]).collect()
}

fn numbers(seed: usize) -> Array {
    let values: Vec<f32> =
        (0..SIDE * SIDE).map(|i| ((i * 37 + seed * 11) % 17) as f32 / 4.0 - 2.0).collect();
    array(&[SIDE, SIDE], &values)
}

proptest! {
    #[test]
    fn plans_have_the_bits_of_single_calls(
        steps in steps(),
        wanted in prop::collection::vec(any::<usize>(), 1..4),
    ) {
        let kernels = kernels();
        let weight = numbers(3);
        let mut draft = Draft::new();
        // Each value as the draft knows it, and as single calls make it.
        let mut values = vec![
            (draft.input(numbers(1).meta()), numbers(1)),
            (draft.input(numbers(2).meta()), numbers(2)),
            (draft.constant(weight.clone()), weight),
        ];
        for Step { what, first, second } in steps {
            let (a, x) = values[first % values.len()].clone();
            let (b, y) = values[second % values.len()].clone();
            match what {
                6 => {
                    let turned = x.reshape(&[SIDE / 2, 2 * SIDE]).unwrap().reshape(&[SIDE, SIDE]);
                    let view = draft.view(a, &[SIDE / 2, 2 * SIDE], 0).unwrap();
                    values.push((draft.view(view, &[SIDE, SIDE], 0).unwrap(), turned.unwrap()));
                }
                7 => {
                    // The same row for all: a view from an offset on, spread by an addition.
                    let row = second % SIDE;
                    let at = row as i64;
                    let shown = x.slice(0, at, at + 1, 1).unwrap();
                    let view = draft.view(a, &[1, SIDE], row * SIDE).unwrap();
                    let sum = draft.call(&kernels[0], &[Some(view), Some(b)], "Add").unwrap();
                    let made = call(&*kernels[0], &[Some(&shown), Some(&y)]).unwrap();
                    values.push((sum[0], made[0].clone()));
                }
                _ => {
                    let kernel = &kernels[usize::from(what)];
                    let binary = matches!(kernel.name(), "Add" | "Mul" | "MatMul");
                    let (ids, given) = if binary {
                        (vec![Some(a), Some(b)], vec![Some(&x), Some(&y)])
                    } else {
                        (vec![Some(a)], vec![Some(&x)])
                    };
                    let made = draft.call(kernel, &ids, kernel.name()).unwrap();
                    values.push((made[0], call(&**kernel, &given).unwrap()[0].clone()));
                }
            }
        }
        let results: Vec<_> = wanted.iter().map(|w| values[w % values.len()].clone()).collect();
        let ids: Vec<usize> = results.iter().map(|(id, _)| *id).collect();
        let (program, labels) = draft.finish(&ids).unwrap();
        prop_assert_eq!(labels.len(), program.calls().len());
        for _ in 0..2 {
            let made = program.run(&[numbers(1), numbers(2)]).unwrap();
            for (k, (got, (_, want))) in made.iter().zip(&results).enumerate() {
                let bits = |a: &Array| -> Vec<u32> {
                    let dense = a.to_contiguous().unwrap();
                    dense.as_slice::<f32>().iter().map(|x| x.to_bits()).collect()
                };
                prop_assert_eq!(bits(got), bits(want));
                prop_assert!(made[..k].iter().all(|other| !other.overlaps(got)));
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut draft = Draft::new();
    let x = draft.input(numbers(0).meta());
    let add = prepare("Add", &[]).unwrap();
    assert!(draft.view(x, &[SIDE, SIDE], 1).is_err());
    assert!(draft.view(x, &[usize::MAX, 2], 0).is_err());
    assert!(draft.view(9, &[1], 0).is_err());
    assert!(draft.call(&add, &[Some(x)], "Add").is_err());
    assert!(draft.call(&add, &[Some(x), Some(7)], "Add").is_err());
    assert!(draft.finish(&[4]).is_err());
}
