//! FusedAttention beside MatMul, Mul, Softmax and MatMul on the same views of (N, L, heads, D):
//! `cargo bench --bench attention -- [threads]`.

mod measuring;

use measuring::{random, seconds, threads};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::kernel::{Kernel, call};
use onemodel_kernels::parallel::set_num_threads;
use onemodel_kernels::registry::build;
use onemodel_kernels::simd::isa;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

fn kernel(name: &str, attributes: &[(&str, i64)]) -> Arc<dyn Kernel> {
    let values: BTreeMap<String, Attribute> =
        attributes.iter().map(|(k, v)| ((*k).to_string(), Attribute::Int(*v))).collect();
    build(name, values).expect("a known kernel")
}

fn one(kernel: &dyn Kernel, inputs: &[&Array]) -> Array {
    let inputs: Vec<Option<&Array>> = inputs.iter().map(|x| Some(*x)).collect();
    call(kernel, &inputs).expect("fitting inputs").remove(0)
}

/// Name, batch, heads, queries, keys, features, and whether queries see earlier keys only.
type Shape = (&'static str, usize, usize, usize, usize, usize, bool);

const SHAPES: &[Shape] = &[
    ("encoder", 1, 6, 128, 128, 64, false),
    ("encoder, batch 8", 8, 12, 128, 128, 64, false),
    ("gpt", 1, 12, 64, 64, 64, true),
    ("vit", 1, 3, 197, 197, 64, false),
    ("small heads", 1, 12, 128, 128, 32, false),
    ("long", 1, 8, 2048, 2048, 64, false),
    ("long, causal", 1, 8, 2048, 2048, 64, true),
    ("one query", 1, 12, 1, 512, 64, false),
    ("short", 16, 4, 16, 16, 32, false),
];

fn main() {
    let threads = threads();
    set_num_threads(threads);
    println!("{} threads {threads}", isa().name());
    let (product, scaled, softmax, added) = (
        kernel("MatMul", &[]),
        kernel("Mul", &[]),
        kernel("Softmax", &[("axis", -1)]),
        kernel("Add", &[]),
    );
    for &(label, batch, heads, queries, keys, features, causal) in SHAPES {
        let view = |x: &Array, rows: usize| {
            let shape = [batch, rows, heads, features];
            x.reshape(&shape).and_then(|x| x.permute(&[0, 2, 1, 3])).expect("a view")
        };
        let width = heads * features;
        let q = view(&random(&[batch, queries, width], 1), queries);
        let k = view(&random(&[batch, keys, width], 2), keys);
        let v = view(&random(&[batch, keys, width], 3), keys);
        let turned = k.permute(&[0, 1, 3, 2]).expect("a view");
        let scale = Array::from_slice(&[], &[1.0 / (features as f32).sqrt()]).expect("one number");
        let hidden: Vec<f32> = (0..queries * keys)
            .map(|at| if at % keys > at / keys { f32::NEG_INFINITY } else { 0.0 })
            .collect();
        let mask = Array::from_slice(&[queries, keys], &hidden).expect("small enough");
        let whole = kernel("FusedAttention", &[("causal", i64::from(causal))]);
        let fused = || one(&*whole, &[&q, &k, &v]);
        let masked = || one(&*kernel("FusedAttention", &[]), &[&q, &k, &v, &mask]);
        let composed = || {
            let mut scores = one(&*scaled, &[&one(&*product, &[&q, &turned]), &scale]);
            if causal {
                scores = one(&*added, &[&scores, &mask]);
            }
            one(&*product, &[&one(&*softmax, &[&scores]), &v])
        };
        let operations = (4 * batch * heads * queries * keys * features) as f64;
        let repeat = ((2e9 / operations) as usize).clamp(1, 4000);
        let mut best = [f64::MAX; 3];
        for _ in 0..6 {
            best[0] = best[0].min(seconds(repeat, || drop(black_box(fused()))));
            best[1] = best[1].min(seconds(repeat, || drop(black_box(composed()))));
            best[2] = best[2].min(seconds(repeat, || drop(black_box(masked()))));
        }
        let rate = operations / best[0] / 1e9;
        println!(
            "{label:18} fused {:9.1} us ({rate:5.0} GFLOP/s)  composed {:9.1} us  ratio {:.2}  with a mask {:9.1} us",
            best[0] * 1e6,
            best[1] * 1e6,
            best[0] / best[1],
            best[2] * 1e6
        );
    }
}
