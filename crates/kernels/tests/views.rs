//! Views address the elements they should: checked against index arithmetic on random shapes.

use onemodel_kernels::array::{Array, contiguous_strides};
use proptest::prelude::*;

fn counting(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    let data: Vec<i64> = (0..n as i64).collect();
    Array::from_slice(shape, &data).unwrap()
}

fn elements(a: &Array) -> Vec<i64> {
    a.copy().unwrap().as_slice::<i64>().to_vec()
}

/// All index tuples of a shape in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for &d in shape {
        out = out
            .into_iter()
            .flat_map(|prefix: Vec<usize>| {
                (0..d).map(move |i| prefix.iter().copied().chain([i]).collect())
            })
            .collect();
    }
    out
}

fn flat(shape: &[usize], index: &[usize]) -> i64 {
    let strides = contiguous_strides(shape);
    index.iter().zip(&strides).map(|(&i, &s)| i as i64 * s as i64).sum()
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..5, 0..5)
}

proptest! {
    #[test]
    fn permute_moves_axes((shape, axes) in shapes().prop_flat_map(|s| {
        let axes: Vec<i64> = (0..s.len() as i64).collect();
        (Just(s), Just(axes).prop_shuffle())
    })) {
        let view = counting(&shape).permute(&axes).unwrap();
        let want: Vec<i64> = indices(view.shape()).iter().map(|index| {
            let mut source = vec![0; shape.len()];
            for (k, &a) in axes.iter().enumerate() {
                source[a as usize] = index[k];
            }
            flat(&shape, &source)
        }).collect();
        prop_assert_eq!(elements(&view), want);
    }

    #[test]
    fn slice_is_python_range(n in 0usize..7, start in 0i64..8, stop in -1i64..8, step in -3i64..4) {
        let a = counting(&[2, n]);
        let mut want = Vec::new();
        let mut i = start;
        while step != 0 && (if step > 0 { i < stop } else { i > stop }) {
            want.push(i);
            i += step;
        }
        let fits = step != 0 && start <= n as i64 && stop <= n as i64
            && want.iter().all(|&i| i < n as i64);
        match a.slice(1, start, stop, step) {
            Ok(view) => {
                let rows: Vec<i64> = (0..2)
                    .flat_map(|r| want.iter().map(move |i| r * n as i64 + i).collect::<Vec<_>>())
                    .collect();
                prop_assert!(fits);
                prop_assert_eq!(elements(&view), rows);
            }
            Err(_) => prop_assert!(!fits),
        }
    }

    #[test]
    fn reshape_keeps_row_major_order(shape in shapes(), axes_seed in any::<u64>()) {
        let a = counting(&shape);
        // A transposed view: reshaping it is either refused or right.
        let mut axes: Vec<i64> = (0..shape.len() as i64).collect();
        if !axes.is_empty() {
            let k = (axes_seed % axes.len() as u64) as usize;
            axes.rotate_left(k);
        }
        let view = a.permute(&axes).unwrap();
        let flat_shape = [view.size()];
        if let Ok(r) = view.reshape(&flat_shape) {
            prop_assert_eq!(elements(&r), elements(&view));
        }
        let mut padded = vec![1];
        padded.extend_from_slice(view.shape());
        padded.push(1);
        let r = view.reshape(&padded).unwrap();
        prop_assert_eq!(elements(&r), elements(&view));
    }

    #[test]
    fn expand_repeats(shape in shapes(), lead in 1usize..4) {
        let a = counting(&shape);
        let mut wide = vec![lead];
        wide.extend_from_slice(&shape);
        let view = a.expand(&wide).unwrap();
        let want: Vec<i64> = (0..lead).flat_map(|_| elements(&a)).collect();
        prop_assert_eq!(elements(&view), want);
    }

    #[test]
    fn from_parts_never_reaches_outside(
        shape in prop::collection::vec(0usize..4, 0..3),
        strides in prop::collection::vec(-4isize..5, 0..3),
        offset in 0usize..12,
    ) {
        let base = counting(&[10]);
        if let Ok(view) = Array::from_parts(
            base.storage().clone(), base.dtype(), &shape, &strides, offset,
        ) {
            for v in elements(&view) {
                prop_assert!((0..10).contains(&v));
            }
        }
    }
}

#[test]
fn bad_views_are_errors() {
    let a = counting(&[2, 3]);
    assert!(a.permute(&[0, 0]).is_err());
    assert!(a.permute(&[0]).is_err());
    assert!(a.select(2, 0).is_err());
    assert!(a.select(0, 2).is_err());
    assert!(a.select(0, i64::MIN).is_err());
    assert!(a.squeeze(&[0]).is_err());
    assert!(a.unsqueeze(&[0, 0]).is_err());
    assert!(a.expand(&[3, 3]).is_err());
    assert!(a.expand(&[usize::MAX, 2, 3]).is_err());
    assert!(a.reshape(&[usize::MAX, usize::MAX]).is_err());
    assert!(a.diagonal(0, 1, -1).is_err());
    assert_eq!(elements(&a.diagonal(1, 0, 1).unwrap()), [1, 5]);
    assert!(elements(&a.diagonal(i64::MIN, 0, 1).unwrap()).is_empty());
}

#[test]
fn strides_that_reach_no_element_may_be_any_numbers() {
    let base = counting(&[6]);
    let over = |shape: &[usize], strides: &[isize], offset| {
        Array::from_parts(base.storage().clone(), base.dtype(), shape, strides, offset).unwrap()
    };
    let one = over(&[1, 1, 1], &[isize::MAX, isize::MAX, isize::MIN], 5);
    for view in [
        one.diagonal(0, 0, 1),
        one.diagonal(0, 1, 0).and_then(|view| view.diagonal(0, 0, 1)),
        one.select(2, 0),
        one.slice(0, 0, 1, i64::MAX),
    ] {
        assert_eq!(elements(&view.unwrap()), [5]);
    }
    let many = 1 << 59;
    let none = over(&[0, many, 1], &[isize::MAX, isize::MAX, isize::MIN], usize::MAX);
    for view in [
        none.slice(1, many as i64 - 1, -1, -1),
        none.slice(1, 1, many as i64, i64::MAX),
        none.select(1, -1),
        none.diagonal(-3, 1, 2),
        none.permute(&[1, 2, 0]).and_then(|turned| turned.diagonal(0, 0, 1)),
        Array::zeros("test", base.dtype(), &[0, 1, many]).unwrap().diagonal(0, 0, 1),
    ] {
        assert!(elements(&view.unwrap()).is_empty());
    }
}
