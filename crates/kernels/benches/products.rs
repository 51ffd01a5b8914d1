//! GFLOP/s of products and convolutions beside the FMA peak of the same run:
//! `cargo bench --bench products -- [threads]`.

mod measuring;

use measuring::{random, seconds, threads};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::kernel::{Kernel, call};
use onemodel_kernels::parallel::set_num_threads;
use onemodel_kernels::registry::build;
use onemodel_kernels::simd::{Simd, WithSimd, dispatch, isa};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

struct Peak {
    rounds: usize,
    factor: f32,
}

impl WithSimd for Peak {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let x = s.splat(self.factor);
        let mut acc =
            [s.splat(0.1), s.splat(0.2), s.splat(0.3), s.splat(0.4), s.splat(0.5), s.splat(0.6)];
        let mut more = acc;
        for _ in 0..self.rounds {
            for a in &mut acc {
                *a = s.fma(*a, x, x);
            }
            for a in &mut more {
                *a = s.fma(*a, x, x);
            }
        }
        acc.iter().chain(&more).map(|a| s.tree_add(*a)).sum()
    }
}

/// GFLOP/s of one thread.
fn peak() -> f64 {
    let rounds = 400_000;
    let best = (0..5)
        .map(|_| {
            seconds(1, || {
                black_box(dispatch(Peak { rounds, factor: black_box(0.7) }));
            })
        })
        .fold(f64::MAX, f64::min);
    rounds as f64 * 12.0 * 32.0 / best / 1e9
}

fn kernel(name: &str, attributes: &[(&str, &[i64])]) -> Arc<dyn Kernel> {
    let values: BTreeMap<String, Attribute> = attributes
        .iter()
        .map(|(k, v)| {
            let v = if v.len() == 1 { Attribute::Int(v[0]) } else { Attribute::Ints(v.to_vec()) };
            ((*k).to_string(), v)
        })
        .collect();
    build(name, values).expect("a known kernel")
}

/// Best time of a call, in seconds: enough repetitions for about 40 ms, in three rounds.
fn measure(kernel: &dyn Kernel, inputs: &[Option<&Array>], operations: f64) -> f64 {
    let repeat = ((4e9 / operations) as usize).clamp(1, 4000);
    let mut best = f64::MAX;
    for _ in 0..4 {
        let t = seconds(repeat, || {
            black_box(call(kernel, inputs).expect("fitting inputs"));
        });
        best = best.min(t);
    }
    best
}

fn report(label: &str, kernel: &dyn Kernel, inputs: &[Option<&Array>], operations: f64, peak: f64) {
    let constants: Vec<_> =
        inputs.iter().enumerate().map(|(i, x)| if i == 0 { None } else { *x }).collect();
    let plain = measure(kernel, inputs, operations);
    let bound = kernel.bind(&constants).expect("fitting constants");
    let bound = bound.map(|b| measure(&*b, inputs, operations));
    let rate =
        |t: f64| format!("{:6.1} GF {:3.0}%", operations / t / 1e9, operations / t / peak / 1e7);
    let bound = bound.map_or(String::new(), |t| format!("  bound {} {:9.1} us", rate(t), t * 1e6));
    println!("{label:34} {} {:9.1} us{bound}", rate(plain), plain * 1e6);
}

fn main() {
    let threads = threads();
    let filter =
        std::env::args().skip(1).find(|a| a.parse::<usize>().is_err() && !a.starts_with('-'));
    let wanted = |name: &str| filter.as_deref().is_none_or(|f| name.contains(f));
    set_num_threads(threads);
    let one = peak();
    let peak = one * threads as f64;
    println!("{} threads {threads}, FMA peak {one:.0} GFLOP/s a thread", isa().name());
    let products: &[(usize, usize, usize)] = &[
        (128, 128, 128),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (128, 384, 384),
        (128, 1536, 384),
        (128, 384, 1536),
        (1, 768, 768),
        (8, 768, 768),
        (1, 3072, 768),
        (8, 3072, 768),
        (64, 10, 512),
        (32, 512, 128),
        (4, 4, 4),
    ];
    for &(m, n, k) in products {
        let (a, b, w) = (random(&[m, k], 1), random(&[k, n], 1), random(&[n, k], 1));
        let operations = 2.0 * m as f64 * n as f64 * k as f64;
        if wanted("MatMul") {
            let label = format!("MatMul {m}x{n}x{k}");
            report(&label, &*kernel("MatMul", &[]), &[Some(&a), Some(&b)], operations, peak);
        }
        if wanted("Linear") {
            let label = format!("Linear {m}x{n}x{k}");
            report(&label, &*kernel("Linear", &[]), &[Some(&a), Some(&w)], operations, peak);
        }
    }
    if wanted("batched") {
        for (a, b) in [([12, 128, 32], [12, 32, 128]), ([12, 128, 128], [12, 128, 32])] {
            let operations = 2.0 * (a[0] * a[1] * a[2] * b[2]) as f64;
            let label = format!("batched {a:?} {b:?}");
            let (a, b) = (random(&a, 1), random(&b, 1));
            report(&label, &*kernel("MatMul", &[]), &[Some(&a), Some(&b)], operations, peak);
        }
    }
}
