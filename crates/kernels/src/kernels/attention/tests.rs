//! Results against the formula in f64, and bits between instruction sets, threads, layouts and the
//! queries beside one.

use super::FusedAttention;
use crate::array::Array;
use crate::dtype::DType;
use crate::kernel::{Kernel, infer_for};
use crate::kernels::gemm::tests::isas;
use crate::parallel::set_num_threads;

/// Evenly distributed numbers in [-1, 1).
fn uniform(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 11) as f64 / (1u64 << 52) as f64 - 1.0) as f32
        })
        .collect()
}

fn array(shape: &[usize], data: &[f32]) -> Array {
    Array::from_slice(shape, data).unwrap()
}

fn random(shape: &[usize], seed: u64, factor: f32) -> Array {
    let data: Vec<f32> = uniform(shape.iter().product(), seed).iter().map(|x| x * factor).collect();
    array(shape, &data)
}

fn attention(scale: Option<f32>, causal: bool) -> FusedAttention {
    FusedAttention { scale, causal }
}

fn run(kernel: &FusedAttention, x: [&Array; 3], mask: Option<&Array>) -> Array {
    let metas = infer_for(kernel, &[Some(x[0]), Some(x[1]), Some(x[2]), mask]).unwrap();
    let out = Array::for_meta("test", metas[0].clone()).unwrap();
    kernel.run(&[Some(x[0]), Some(x[1]), Some(x[2]), mask], std::slice::from_ref(&out)).unwrap();
    out
}

fn bits(x: &Array) -> Vec<u32> {
    let canonical = |x: &f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    x.as_slice::<f32>().iter().map(canonical).collect()
}

/// The whole stack of matrices, broadcast, as f64.
fn wide(x: &Array, shape: &[usize]) -> Vec<f64> {
    let whole = x.expand(shape).unwrap().copy().unwrap();
    whole.as_slice::<f32>().iter().map(|&x| f64::from(x)).collect()
}

/// The formula in f64 for q (B, L, D), k (B, S, D), v (B, S, E) and mask (B, L, S).
fn oracle(kernel: &FusedAttention, x: [&Array; 3], mask: Option<&Array>) -> Vec<f64> {
    let (q, k, v) = (x[0].shape(), x[1].shape(), x[2].shape());
    let batch = q[0].max(k[0]).max(v[0]);
    let (l, d, s, e) = (q[1], q[2], k[1], v[2]);
    let (qs, ks, vs) =
        (wide(x[0], &[batch, l, d]), wide(x[1], &[batch, s, d]), wide(x[2], &[batch, s, e]));
    let mask = mask.map(|mask| wide(mask, &[batch, l, s]));
    let scale = kernel.scale.map_or(1.0 / (d.max(1) as f64).sqrt(), f64::from);
    let mut out = Vec::new();
    for b in 0..batch {
        for i in 0..l {
            let seen = if kernel.causal { s.min(i + 1) } else { s };
            let scores: Vec<f64> = (0..seen)
                .map(|j| {
                    let dot: f64 =
                        (0..d).map(|f| qs[(b * l + i) * d + f] * ks[(b * s + j) * d + f]).sum();
                    dot * scale + mask.as_ref().map_or(0.0, |mask| mask[(b * l + i) * s + j])
                })
                .collect();
            let max =
                scores.iter().copied().fold(f64::NEG_INFINITY, |m, x| if x > m { x } else { m });
            let weights: Vec<f64> = scores.iter().map(|x| (x - max).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for c in 0..e {
                let total: f64 =
                    (0..seen).map(|j| weights[j] / sum * vs[(b * s + j) * e + c]).sum();
                out.push(total);
            }
        }
    }
    out
}

/// The largest difference beside the largest value; NaN must meet NaN.
fn difference(got: &Array, wanted: &[f64]) -> f64 {
    let got = got.as_slice::<f32>();
    assert_eq!(got.len(), wanted.len());
    let largest = wanted.iter().filter(|x| !x.is_nan()).fold(0.0f64, |m, x| m.max(x.abs()));
    let mut most = 0.0f64;
    for (i, (&x, &y)) in got.iter().zip(wanted).enumerate() {
        assert_eq!(x.is_nan(), y.is_nan(), "element {i}: {x} where {y} is expected");
        if !x.is_nan() {
            most = most.max((f64::from(x) - y).abs() / largest.max(f64::MIN_POSITIVE));
        }
    }
    most
}

/// Batch, queries, keys, features, values.
const SHAPES: &[(usize, usize, usize, usize, usize)] = &[
    (1, 1, 1, 1, 1),
    (2, 1, 300, 64, 64),
    (1, 5, 7, 3, 5),
    (3, 16, 16, 8, 16),
    (2, 17, 33, 13, 31),
    (1, 33, 256, 32, 48),
    (2, 70, 257, 7, 64),
    (1, 100, 600, 64, 65),
    (1, 300, 5, 16, 2),
    (2, 2, 270, 9, 7),
    (1, 35, 530, 16, 80),
    (1, 66, 64, 1, 16),
];

#[test]
fn it_is_the_formula() {
    // Scores up to about 4 lose some 4e-7 of a weight to their rounding, the two chains as much; a
    // result that came out near zero by cancellation is measured against the largest one.
    const BOUND: f64 = 3e-6;
    for &(b, l, s, d, e) in SHAPES {
        for causal in [false, true] {
            for scale in [None, Some(0.3), Some(-0.5), Some(0.0)] {
                let kernel = attention(scale, causal);
                let (q, k, v) = (
                    random(&[b, l, d], 1, 2.0),
                    random(&[b, s, d], 2, 1.0),
                    random(&[b, s, e], 3, 1.0),
                );
                for mask in
                    [None, Some([b, l, s]), Some([1, l, s]), Some([b, 1, s]), Some([1, l, 1])]
                {
                    let mask = mask.map(|shape| random(&shape, 4, 3.0));
                    let got = run(&kernel, [&q, &k, &v], mask.as_ref());
                    assert_eq!(got.shape(), [b, l, e]);
                    let most = difference(&got, &oracle(&kernel, [&q, &k, &v], mask.as_ref()));
                    assert!(most <= BOUND, "{most} for {b} {l} {s} {d} {e} {causal} {scale:?}");
                }
            }
        }
    }
}

#[test]
fn every_instruction_set_and_number_of_threads_has_the_same_bits() {
    for &(b, l, s, d, e) in SHAPES {
        for causal in [false, true] {
            let kernel = attention(None, causal);
            let (q, k, v) = (
                random(&[b, l, d], 1, 9.0),
                random(&[b, s, d], 2, 9.0),
                random(&[b, s, e], 3, 1.0),
            );
            let mut data = uniform(l * s, 4);
            data.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
            let mask = array(&[l, s], &data);
            for mask in [None, Some(&mask)] {
                set_num_threads(1);
                let wanted = bits(&run(&kernel, [&q, &k, &v], mask));
                for isa in isas() {
                    for threads in [1, 2] {
                        set_num_threads(threads);
                        let out = Array::uninit("test", DType::F32, &[b, l, e]).unwrap();
                        kernel.attend(isa, [&q, &k, &v], mask, &out).unwrap();
                        assert!(
                            bits(&out) == wanted,
                            "{isa:?} {threads} {b} {l} {s} {d} {e} {causal}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_query_has_the_bits_that_it_has_alone() {
    let (l, s, d, e) = (75, 300, 20, 24);
    let (q, k, v) =
        (random(&[3, l, d], 1, 4.0), random(&[3, s, d], 2, 1.0), random(&[3, s, e], 3, 1.0));
    let kernel = attention(None, false);
    let whole = run(&kernel, [&q, &k, &v], None);
    for (b, i) in [(0, 0), (1, 31), (1, 32), (2, 64), (2, 74)] {
        let only = |x: &Array| x.slice(0, b, b + 1, 1).unwrap();
        let query = only(&q).slice(1, i, i + 1, 1).unwrap();
        let alone = run(&kernel, [&query, &only(&k), &only(&v)], None);
        let at = (b as usize * l + i as usize) * e;
        assert_eq!(bits(&alone), bits(&whole)[at..at + e], "{b} {i}");
    }
}

#[test]
fn views_have_the_bits_of_copies() {
    let (b, h, l, s, d, e) = (2, 3, 40, 270, 16, 32);
    let kernel = attention(None, true);
    let heads = |x: Array| x.permute(&[0, 2, 1, 3]).unwrap();
    let q = heads(random(&[b, l, h, d], 1, 3.0));
    let v = heads(random(&[b, s, h, e], 3, 1.0));
    let turned =
        |shape: [usize; 4], seed| random(&shape, seed, 1.0).permute(&[0, 1, 3, 2]).unwrap();
    let backwards = |x: &Array| x.slice(2, x.shape()[2] as i64 - 1, -1, -1).unwrap();
    let shared = random(&[1, 1, s, d], 5, 1.0).expand(&[b, h, s, d]).unwrap();
    for k in [heads(random(&[b, s, h, d], 2, 1.0)), turned([b, h, d, s], 2), shared] {
        for v in [v.clone(), turned([b, h, e, s], 3), backwards(&v)] {
            for q in [q.clone(), turned([b, h, d, l], 1), backwards(&q)] {
                let mask = turned([1, h, s, l], 4);
                for mask in [None, Some(mask)] {
                    let copies = [q.copy().unwrap(), k.copy().unwrap(), v.copy().unwrap()];
                    let copied = mask.as_ref().map(|mask| mask.copy().unwrap());
                    let wanted =
                        run(&kernel, [&copies[0], &copies[1], &copies[2]], copied.as_ref());
                    assert_eq!(bits(&run(&kernel, [&q, &k, &v], mask.as_ref())), bits(&wanted));
                }
            }
        }
    }
}

#[test]
fn broadcast_heads_are_those_of_their_copies() {
    let kernel = attention(None, false);
    let (q, k, v) = (
        random(&[4, 2, 9, 8], 1, 3.0),
        random(&[2, 11, 8], 2, 1.0),
        random(&[4, 1, 11, 6], 3, 1.0),
    );
    let got = run(&kernel, [&q, &k, &v], None);
    let (k, v) = (k.expand(&[4, 2, 11, 8]).unwrap(), v.expand(&[4, 2, 11, 6]).unwrap());
    let wanted = run(&kernel, [&q, &k.copy().unwrap(), &v.copy().unwrap()], None);
    assert_eq!(bits(&got), bits(&wanted));
}

#[test]
fn masked_and_special_scores_are_those_of_softmax() {
    let (l, s, d, e) = (20, 530, 4, 18);
    let kernel = attention(None, false);
    let (q, v) = (random(&[1, l, d], 1, 1.0), random(&[1, s, e], 3, 1.0));
    let inf = f32::INFINITY;
    let mut keys = uniform(s * d, 2);
    // A key with a NaN or an infinity makes every query NaN; a mask of -inf does not save it from NaN.
    let mut mask = vec![0.0; l * s];
    mask[..s].fill(-inf);
    mask[s..s + 290].fill(-inf);
    mask[2 * s + 280..3 * s].fill(-inf);
    mask[3 * s + 1..4 * s].fill(-inf);
    mask[5 * s - 1] = inf;
    mask[5 * s] = f32::NAN;
    mask[6 * s + 400] = 1e30;
    mask[7 * s..8 * s].fill(-1e38);
    let mask = array(&[l, s], &mask);
    for planted in [None, Some(f32::NAN), Some(inf)] {
        if let Some(x) = planted {
            keys[270 * d] = x;
        }
        let k = array(&[1, s, d], &keys);
        let got = run(&kernel, [&q, &k, &v], Some(&mask));
        let nan: Vec<bool> =
            got.as_slice::<f32>().chunks(e).map(|row| row.iter().all(|x| x.is_nan())).collect();
        let any: Vec<bool> =
            got.as_slice::<f32>().chunks(e).map(|row| row.iter().any(|x| x.is_nan())).collect();
        assert_eq!(nan, any, "a query is NaN as a whole");
        let most = difference(&got, &oracle(&kernel, [&q, &k, &v], Some(&mask)));
        assert!(most <= 3e-6, "{most}");
        if planted.is_none() {
            assert_eq!(nan.iter().filter(|&&nan| nan).count(), 3, "{nan:?}");
            assert_eq!(bits(&got)[3 * e..4 * e], bits(&v)[..e], "the only key that query 3 sees");
            assert_eq!(bits(&got)[6 * e..7 * e], bits(&v)[400 * e..401 * e]);
        }
    }
}

#[test]
fn huge_scores_do_not_overflow() {
    // Scores of up to 1e9: all weight is on the largest one, except where two are equal.
    let (l, s, d) = (6, 700, 2);
    let q: Vec<f32> = (0..l).flat_map(|i| [1e5 * (i as f32 - 2.5), 0.0]).collect();
    let k: Vec<f32> = (0..s).flat_map(|j| [1e4 * (j as f32 / s as f32 - 0.5), 0.0]).collect();
    let (q, k, v) = (array(&[1, l, d], &q), array(&[1, s, d], &k), random(&[1, s, 16], 3, 1.0));
    let got = run(&attention(Some(1.0), false), [&q, &k, &v], None);
    for i in 0..l {
        let best = if i < 3 { 0 } else { s - 1 };
        assert_eq!(bits(&got)[i * 16..(i + 1) * 16], bits(&v)[best * 16..(best + 1) * 16]);
    }
}

#[test]
fn without_keys_the_result_is_zero_and_without_features_the_mean() {
    let empty = |shape: &[usize]| array(shape, &[]);
    let kernel = attention(None, false);
    let got =
        run(&kernel, [&random(&[2, 3, 4], 1, 1.0), &empty(&[2, 0, 4]), &empty(&[2, 0, 5])], None);
    assert_eq!((got.shape(), bits(&got)), (&[2, 3, 5][..], vec![0; 30]));
    let v = array(&[4, 1], &[1.0, 2.0, 3.0, 6.0]);
    let got = run(&kernel, [&empty(&[2, 0]), &empty(&[4, 0]), &v], None);
    assert_eq!(got.as_slice::<f32>(), [3.0, 3.0]);
    for (l, e) in [(0, 3), (2, 0)] {
        let x = [&random(&[l, 4], 1, 1.0), &random(&[5, 4], 2, 1.0), &random(&[5, e], 3, 1.0)];
        assert_eq!(run(&kernel, x, None).shape(), [l, e]);
    }
}

#[test]
fn earlier_keys_alone_are_those_of_a_mask() {
    let (l, s) = (300, 290);
    let (q, k, v) =
        (random(&[2, l, 24], 1, 3.0), random(&[2, s, 24], 2, 1.0), random(&[2, s, 16], 3, 1.0));
    let hidden: Vec<f32> =
        (0..l * s).map(|at| if at % s > at / s { f32::NEG_INFINITY } else { 0.0 }).collect();
    let mask = array(&[l, s], &hidden);
    let got = run(&attention(None, true), [&q, &k, &v], None);
    // fma(score, scale, 0) is the product rounded once.
    assert_eq!(bits(&got), bits(&run(&attention(None, false), [&q, &k, &v], Some(&mask))));
}

#[test]
fn what_does_not_fit_is_refused() {
    let kernel = attention(None, false);
    let (q, k, v) =
        (random(&[2, 3, 4], 1, 1.0), random(&[2, 5, 4], 2, 1.0), random(&[2, 5, 6], 3, 1.0));
    let infer = |x: [&Array; 3], mask: Option<&Array>| {
        let inputs = [Some(x[0]), Some(x[1]), Some(x[2]), mask];
        infer_for(&kernel, &inputs).map_err(|error| error.to_string())
    };
    let whole = |shape: &[usize]| random(shape, 4, 1.0);
    assert!(infer([&q, &k, &v], Some(&whole(&[3, 5]))).is_ok());
    for (x, mask) in [
        ([&q, &whole(&[2, 5, 3]), &v], None),
        ([&q, &k, &whole(&[2, 4, 6])], None),
        ([&q, &whole(&[3, 5, 4]), &v], None),
        ([&whole(&[4]), &k, &v], None),
        ([&q, &k, &v], Some(whole(&[3, 4]))),
        ([&q, &k, &v], Some(whole(&[2, 2, 3, 5]))),
        ([&q, &k, &v], Some(whole(&[2, 1, 3, 5]))),
    ] {
        let error = infer(x, mask.as_ref()).unwrap_err();
        assert!(error.starts_with("FusedAttention: expected "), "{error}");
    }
    let halves = Array::zeros("test", DType::F16, &[2, 5, 4]).unwrap();
    assert!(infer([&q, &halves, &v], None).unwrap_err().contains("float32"));
    assert!(kernel.infer(&[None, None, None]).is_err());
}
