//! Fused kernels against the same kernels one after the other, bit for bit.

mod calling;

use calling::{array, float, ints, prepare};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::kernel::{Kernel, call, fuse};
use proptest::prelude::*;
use std::sync::Arc;

/// Numbers of both signs with a zero, a NaN and an infinity among them.
fn numbers(shape: &[usize], seed: u64) -> Array {
    let n: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values: Vec<f32> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match state >> 56 {
                0 => f32::NAN,
                1 => f32::INFINITY,
                2 => -0.0,
                _ => ((state >> 40) as f32 / 8_388_608.0 - 1.0) * 3.0,
            }
        })
        .collect();
    array(shape, &values)
}

/// A kernel, the position of the chain's value, and its other inputs: known or not.
struct Next {
    kernel: Arc<dyn Kernel>,
    at: usize,
    known: Vec<Option<Array>>,
    open: Option<Array>,
}

fn next(which: u8, shape: &[usize], axis: usize, seed: u64) -> Next {
    let make = |name: &str, attributes: &[(&str, Attribute)]| prepare(name, attributes).unwrap();
    let alone = |kernel| Next { kernel, at: 0, known: vec![None], open: None };
    let channels = shape[axis];
    let wide: Vec<usize> = (0..shape.len()).map(|i| if i == axis { channels } else { 1 }).collect();
    let with = |name: &str, at: usize, other: Option<Array>| {
        let mut known = vec![None, None];
        let open = if other.is_none() { Some(numbers(shape, seed + 7)) } else { None };
        known[1 - at] = other;
        Next { kernel: make(name, &[]), at, known, open }
    };
    match which {
        0 => alone(make("Relu", &[])),
        1 => alone(make("Clip", &[("min", float(-0.5)), ("max", float(1.5))])),
        2 => alone(make("Gelu", &[])),
        3 => alone(make("Tanh", &[])),
        4 => with("Add", 0, None),
        5 => with("Add", 1, None),
        6 => with("Sub", 1, None),
        7 => with("Mul", 0, Some(numbers(&[1], seed))),
        8 => with("Div", 1, Some(numbers(&wide, seed))),
        9 => with("Mul", 1, Some(numbers(&wide, seed))),
        _ => {
            let per = |k: u64| {
                let positive: Vec<f32> = numbers(&[channels], seed + k)
                    .as_slice::<f32>()
                    .iter()
                    .map(|x| x.abs())
                    .collect();
                Some(array(&[channels], &positive))
            };
            let known = vec![None, per(1), per(2), per(3), per(4)];
            Next { kernel: make("BatchNormalization", &[]), at: 0, known, open: None }
        }
    }
}

fn bits(a: &Array) -> Vec<u32> {
    a.as_slice::<f32>().iter().map(|x| if x.is_nan() { f32::NAN } else { *x }.to_bits()).collect()
}

/// Runs the chain both ways; returns how many kernels were fused.
fn compare(
    first: Arc<dyn Kernel>,
    inputs: &[&Array],
    axis: Option<usize>,
    steps: &[(u8, u64)],
) -> usize {
    let mut arguments: Vec<Option<&Array>> = inputs.iter().map(|a| Some(*a)).collect();
    let mut apart = call(&*first, &arguments).unwrap().remove(0);
    let own = apart.shape().to_vec();
    // The others see a product's output with an axis more, as those of a layer above rank 2 do.
    let shape =
        if axis.is_none() && own.len() == 2 { [&[1], &own[..]].concat() } else { own.clone() };
    apart = apart.reshape(&shape).unwrap();
    let axis = axis.unwrap_or(shape.len() - 1);
    let mut fused = first;
    let nexts: Vec<Next> = steps
        .iter()
        .map(|&(which, seed)| {
            next(if axis != 1 && which > 9 { 9 } else { which }, &shape, axis, seed)
        })
        .collect();
    for n in &nexts {
        let known: Vec<Option<&Array>> = n.known.iter().map(Option::as_ref).collect();
        fused = fuse(&fused, inputs.len(), &own, &n.kernel, n.at, &known, &shape).unwrap();
        let mut given = known;
        given[n.at] = Some(&apart);
        if let Some(open) = &n.open {
            given[1 - n.at] = Some(open);
            arguments.push(Some(open));
        }
        let made = call(&*n.kernel, &given).unwrap().remove(0);
        apart = made;
    }
    let together = call(&*fused, &arguments).unwrap().remove(0);
    assert_eq!(together.shape(), apart.shape());
    assert_eq!(bits(&together), bits(&apart));
    nexts.len()
}

fn steps() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..11, 0u64..1000), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn convolution(
        n in 1usize..3, cin in 1usize..4, cout in 1usize..20, groups in prop::bool::ANY,
        h in 1usize..10, w in 1usize..24, k in 1usize..4, stride in 1i64..3, bias in prop::bool::ANY,
        steps in steps(), seed in 0u64..1000,
    ) {
        let (group, cin, cout) = if groups { (cin * 2, cin * 2, cin * 2) } else { (1, cin, cout) };
        let (h, w) = (h.max(k), w.max(k));
        let x = numbers(&[n, cin, h, w], seed);
        let weights = numbers(&[cout, cin / group, k, k], seed + 1);
        let b = numbers(&[cout], seed + 2);
        let pad = (k / 2) as i64;
        let conv = prepare("Conv", &[
            ("strides", ints(&[stride, stride])),
            ("pads", ints(&[pad, pad, pad, pad])),
            ("group", calling::int(group as i64)),
        ]).unwrap();
        let inputs: Vec<&Array> = if bias { vec![&x, &weights, &b] } else { vec![&x, &weights] };
        compare(conv, &inputs, Some(1), &steps);
    }

    #[test]
    fn product(
        m in 1usize..40, n in 1usize..70, k in 0usize..300, kind in 0u8..3, steps in steps(),
        seed in 0u64..1000,
    ) {
        let x = numbers(&[m, k], seed);
        let b = numbers(&[n], seed + 2);
        match kind {
            0 => {
                let w = numbers(&[n, k], seed + 1);
                compare(prepare("Linear", &[]).unwrap(), &[&x, &w, &b], None, &steps);
            }
            1 => {
                let w = numbers(&[k, n], seed + 1);
                compare(prepare("Gemm", &[]).unwrap(), &[&x, &w, &b], None, &steps);
            }
            _ => {
                let (x, w) = (numbers(&[3, m, k], seed), numbers(&[3, k, n], seed + 1));
                compare(prepare("MatMul", &[]).unwrap(), &[&x, &w], None, &steps);
            }
        }
    }
}

/// The last axis of a matrix times a vector holds rows: what is given for each of them follows.
#[test]
fn a_product_with_a_vector_takes_its_values_by_row() {
    for m in [1, 5, 16, 40] {
        let (x, v) = (numbers(&[m, 30], 3), numbers(&[30], 4));
        for which in 0..10 {
            compare(prepare("MatMul", &[]).unwrap(), &[&x, &v], None, &[(which, 5)]);
        }
        let x = numbers(&[3, m, 30], 6);
        compare(prepare("MatMul", &[]).unwrap(), &[&x, &v], None, &[(9, 7), (8, 8)]);
    }
}

/// Channels of another extent than the last axis of the view: nothing may be read by channel.
#[test]
fn a_view_that_moves_the_channels_takes_no_channel_step() {
    let gemm = prepare("Gemm", &[]).unwrap();
    let mul = prepare("Mul", &[]).unwrap();
    let per = numbers(&[4], 1);
    let scalar = numbers(&[1], 1);
    assert!(fuse(&gemm, 2, &[6, 8], &mul, 0, &[None, Some(&per)], &[6, 2, 4]).is_none());
    assert!(fuse(&gemm, 2, &[6, 8], &mul, 0, &[None, Some(&scalar)], &[6, 2, 4]).is_some());
    assert!(fuse(&gemm, 2, &[6, 8], &mul, 0, &[None, Some(&scalar)], &[6, 2, 5]).is_none());
}
