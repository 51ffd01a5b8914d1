//! Operators that move elements, against index arithmetic written out.

mod calling;

use calling::{array, int, ints, run, text, try_run};
use onemodel_kernels::array::Array;
use onemodel_kernels::error::ErrorKind;
use onemodel_kernels::parallel::set_num_threads;
use proptest::prelude::*;

/// The element numbers of a shape, as i32.
fn counted(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    array(shape, &(0..n as i32).collect::<Vec<_>>())
}

fn coordinates(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        out[axis] = position % shape[axis];
        position /= shape[axis];
    }
    out
}

fn position(at: &[usize], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |p, (&i, &n)| p * n + i)
}

fn shape_and_order() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    prop::collection::vec(0usize..9, 0..5).prop_flat_map(|shape| {
        let axes: Vec<usize> = (0..shape.len()).collect();
        (Just(shape), Just(axes).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn transpose_moves_every_element((shape, order) in shape_and_order()) {
        let x = counted(&shape);
        let perm: Vec<i64> = order.iter().map(|&a| a as i64).collect();
        let out = &run("Transpose", &[("perm", ints(&perm))], &[&x])[0];
        let want: Vec<usize> = order.iter().map(|&a| shape[a]).collect();
        prop_assert_eq!(out.shape(), &want[..]);
        for (i, &value) in out.as_slice::<i32>().iter().enumerate() {
            let to = coordinates(i, &want);
            let mut from = vec![0; shape.len()];
            for (k, &axis) in order.iter().enumerate() {
                from[axis] = to[k];
            }
            prop_assert_eq!(value as usize, position(&from, &shape));
        }
    }

    #[test]
    fn slices_follow_the_steps(
        n in 0i64..9, start in -12i64..12, end in -12i64..12, step in -4i64..5,
    ) {
        prop_assume!(step != 0);
        let x = counted(&[2, n as usize]);
        let attributes = [
            ("starts", ints(&[start])), ("ends", ints(&[end])),
            ("axes", ints(&[-1])), ("steps", ints(&[step])),
        ];
        let out = &run("Slice", &attributes, &[&x])[0];
        let place = |v: i64| if v < 0 { v + n } else { v };
        let mut want = Vec::new();
        if n > 0 {
            let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
            let mut at = place(start).clamp(if step > 0 { 0 } else { low.max(0) }, high);
            let stop = place(end).clamp(low, high);
            while if step > 0 { at < stop } else { at > stop } {
                want.push(at as i32);
                at += step;
            }
        }
        prop_assert_eq!(out.shape(), &[2, want.len()][..]);
        prop_assert_eq!(&out.as_slice::<i32>()[..want.len()], &want[..]);
    }

    #[test]
    fn concat_undoes_split(sizes in prop::collection::vec(0usize..5, 1..5), axis in 0usize..3) {
        let mut shape = vec![3, 4, 2];
        shape[axis] = sizes.iter().sum();
        let x = counted(&shape);
        let split: Vec<i64> = sizes.iter().map(|&s| s as i64).collect();
        let attributes = [("axis", int(axis as i64)), ("split", ints(&split))];
        let parts = run("Split", &attributes, &[&x]);
        let refs: Vec<&Array> = parts.iter().collect();
        let back = &run("Concat", &[("axis", int(axis as i64 - 3))], &refs)[0];
        prop_assert_eq!(back.shape(), x.shape());
        prop_assert_eq!(back.as_slice::<i32>(), x.as_slice::<i32>());
    }

    #[test]
    fn pads_repeat_by_their_mode(
        n in 1i64..6, begin in -3i64..9, end in -3i64..9, mode in 0usize..4,
    ) {
        let (cut, kept) = ((-begin).max(0), n + begin.min(0) + end.min(0));
        prop_assume!(kept >= 1);
        let name = ["constant", "reflect", "edge", "wrap"][mode];
        let x = counted(&[n as usize]);
        let attributes = [("pads", ints(&[begin, end])), ("mode", text(name)), ("value", int(-7))];
        let out = &run("Pad", &attributes, &[&x])[0];
        for (i, &value) in out.as_slice::<i32>().iter().enumerate() {
            let at = i as i64 - begin.max(0);
            let inside = (0..kept).contains(&at);
            let source = match name {
                _ if inside => at,
                "edge" => at.clamp(0, kept - 1),
                "wrap" => at.rem_euclid(kept),
                "reflect" if kept > 1 => {
                    let m = at.rem_euclid(2 * (kept - 1));
                    m.min(2 * (kept - 1) - m)
                }
                _ => 0,
            };
            let want = if name == "constant" && !inside { -7 } else { (source + cut) as i32 };
            prop_assert_eq!(value, want);
        }
    }
}

#[test]
fn large_copies_are_the_same_on_two_threads() {
    let x = counted(&[70, 40, 50]);
    for perm in [[2, 1, 0], [0, 2, 1], [1, 0, 2], [2, 0, 1]] {
        set_num_threads(1);
        let one = run("Transpose", &[("perm", ints(&perm))], &[&x]);
        set_num_threads(2);
        let two = run("Transpose", &[("perm", ints(&perm))], &[&x]);
        assert_eq!(one[0].as_slice::<i32>(), two[0].as_slice::<i32>());
    }
}

#[test]
fn every_dtype_keeps_its_bits() {
    let strange = [f32::from_bits(0x7fc0_1234), -0.0, f32::from_bits(1), f32::NEG_INFINITY];
    let x = array(&[2, 2], &strange);
    let out = &run("Transpose", &[], &[&x])[0];
    let got: Vec<u32> = out.as_slice::<f32>().iter().map(|v| v.to_bits()).collect();
    let want: Vec<u32> = [0, 2, 1, 3].map(|i: usize| strange[i].to_bits()).to_vec();
    assert_eq!(got, want);
}

#[test]
fn impossible_requests_are_errors() {
    let x = counted(&[2, 3]);
    let kind = |name: &str, attributes: &[(&str, onemodel_kernels::attributes::Attribute)]| {
        try_run(name, attributes, &[Some(&x)]).err().map(|e| e.kind)
    };
    assert_eq!(kind("Transpose", &[("perm", ints(&[0, 0]))]), Some(ErrorKind::Attribute));
    assert_eq!(kind("Split", &[("split", ints(&[1, 2]))]), Some(ErrorKind::Shape));
    assert_eq!(kind("Tile", &[("repeats", ints(&[i64::MAX, 2]))]), Some(ErrorKind::Memory));
    assert_eq!(
        kind("Expand", &[("shape", ints(&[1 << 40, 1 << 40, 1, 1]))]),
        Some(ErrorKind::Memory)
    );
    assert_eq!(kind("Pad", &[("pads", ints(&[-5, 0, 0, 0]))]), Some(ErrorKind::Shape));
    assert_eq!(kind("Pad", &[("pads", ints(&[i64::MAX, 0, 0, 0]))]), Some(ErrorKind::Memory));
    let range = [("limit", int(i64::MAX)), ("delta", int(1))];
    assert!(try_run("Range", &range, &[]).is_err_and(|e| e.kind == ErrorKind::Memory));
    let range = [("limit", int(5)), ("delta", int(0))];
    assert!(try_run("Range", &range, &[]).is_err_and(|e| e.kind == ErrorKind::Attribute));
}
