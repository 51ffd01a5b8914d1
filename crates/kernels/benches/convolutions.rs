//! Convolutions of 3 by 3 taps by the chain and as `fast` allows, with constant weights:
//! `cargo bench --bench convolutions -- [threads]`.

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

/// The network, channels in and out, rows and columns.
const SHAPES: &[(&str, usize, usize, usize, usize)] = &[
    ("resnet18", 64, 64, 56, 56),
    ("resnet18", 128, 128, 28, 28),
    ("resnet18", 256, 256, 14, 14),
    ("resnet18", 512, 512, 7, 7),
    ("unet", 16, 16, 256, 256),
    ("unet", 32, 16, 256, 256),
    ("unet", 16, 32, 128, 128),
    ("unet", 32, 32, 128, 128),
    ("unet", 64, 32, 128, 128),
    ("unet", 32, 64, 64, 64),
    ("unet", 64, 64, 64, 64),
    ("unet", 128, 64, 64, 64),
    ("unet", 64, 128, 32, 32),
    ("unet", 128, 128, 32, 32),
    ("crnn", 32, 64, 16, 160),
    ("crnn", 64, 128, 8, 80),
    ("crnn", 128, 128, 4, 80),
];

fn bound(fast: i64, w: &Array) -> Arc<dyn Kernel> {
    let values = BTreeMap::from([
        ("pads".to_string(), Attribute::Ints(vec![1; 4])),
        ("fast".to_string(), Attribute::Int(fast)),
    ]);
    let kernel = build("Conv", values).expect("a known kernel");
    kernel.bind(&[None, Some(w), None]).expect("fitting weights").expect("packed weights")
}

fn main() {
    let threads = threads();
    set_num_threads(threads);
    println!("{} threads {threads}", isa().name());
    for &(net, inputs, outputs, rows, columns) in SHAPES {
        let x = random(&[1, inputs, rows, columns], 1);
        let (w, b) = (random(&[outputs, inputs, 3, 3], 2), random(&[outputs], 3));
        let kernels = [bound(0, &w), bound(1, &w)];
        let operations = (18 * inputs * outputs * rows * columns) as f64;
        let repeat = ((2e9 / operations) as usize).clamp(1, 4000);
        let mut best = [f64::MAX; 2];
        for _ in 0..6 {
            for (kernel, best) in kernels.iter().zip(&mut best) {
                let inputs = [Some(&x), Some(&w), Some(&b)];
                let time = seconds(repeat, || {
                    black_box(call(&**kernel, &inputs).expect("a result"));
                });
                *best = best.min(time);
            }
        }
        println!(
            "{net:9} {inputs:4} to {outputs:4} at {rows:3} x {columns:3}: chain {:8.1} us ({:4.0} GFLOP/s)  fast {:8.1} us  ratio {:.2}",
            best[0] * 1e6,
            operations / best[0] / 1e9,
            best[1] * 1e6,
            best[1] / best[0]
        );
    }
}
