//! Results beside the sums in f64, and bits between instruction sets, threads and batches.

use super::super::forward::{Conv, Direction};
use super::super::geometry::WindowAttributes;
use super::{OUT, pays};
use crate::array::Array;
use crate::attributes::Attribute;
use crate::kernel::{Kernel, call, fuse};
use crate::kernels::gemm::tests::isas;
use crate::parallel::set_num_threads;
use crate::registry::build;
use std::collections::BTreeMap;
use std::sync::Arc;

fn uniform(shape: &[usize], seed: u64, low: f64, high: f64) -> Array {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let data: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (low + (high - low) * (state >> 11) as f64 / (1u64 << 53) as f64) as f32
        })
        .collect();
    Array::from_slice(shape, &data).unwrap()
}

fn bits(x: &Array) -> Vec<u32> {
    x.as_slice::<f32>().iter().map(|x| x.to_bits()).collect()
}

/// A case: images, channels in and out, rows and columns, padding (top, left, bottom, right).
#[derive(Debug, Clone, Copy)]
struct Case {
    images: usize,
    channels: (usize, usize),
    sizes: (usize, usize),
    pads: [usize; 4],
}

const CASES: &[Case] = &[
    Case { images: 1, channels: (16, 16), sizes: (16, 16), pads: [1; 4] },
    Case { images: 2, channels: (17, 35), sizes: (19, 23), pads: [1; 4] },
    Case { images: 1, channels: (32, 48), sizes: (3, 200), pads: [1; 4] },
    Case { images: 3, channels: (20, 16), sizes: (70, 6), pads: [0, 2, 1, 0] },
    Case { images: 1, channels: (64, 64), sizes: (57, 58), pads: [0; 4] },
    Case { images: 1, channels: (16, 24), sizes: (2, 3), pads: [9, 14, 8, 11] },
    Case { images: 9, channels: (16, 16), sizes: (65, 67), pads: [1; 4] },
    Case { images: 1, channels: (130, 40), sizes: (14, 14), pads: [1; 4] },
];

impl Case {
    fn x(&self, low: f64, high: f64) -> Array {
        uniform(&[self.images, self.channels.0, self.sizes.0, self.sizes.1], 1, low, high)
    }

    fn w(&self) -> Array {
        uniform(&[self.channels.1, self.channels.0, 3, 3], 2, -1.0, 1.0)
    }

    fn output(&self) -> [usize; 2] {
        let [top, left, bottom, right] = self.pads;
        [self.sizes.0 + top + bottom - 2, self.sizes.1 + left + right - 2]
    }

    fn kernel(&self, fast: i64) -> Arc<dyn Kernel> {
        let pads = self.pads.iter().map(|&p| p as i64).collect();
        let values = BTreeMap::from([
            ("pads".to_string(), Attribute::Ints(pads)),
            ("fast".to_string(), Attribute::Int(fast)),
        ]);
        build("Conv", values).unwrap()
    }

    fn bound(&self, fast: i64, w: &Array) -> Arc<dyn Kernel> {
        self.kernel(fast).bind(&[None, Some(w), None]).unwrap().unwrap()
    }

    fn oracle(&self, x: &Array, w: &Array, b: &Array) -> Vec<f64> {
        let (inputs, outputs) = self.channels;
        let (height, width) = self.sizes;
        let [rows, columns] = self.output();
        let (x, w) = (x.as_slice::<f32>(), w.as_slice::<f32>());
        let mut y = Vec::new();
        for n in 0..self.images {
            for o in 0..outputs {
                for i in 0..rows {
                    for j in 0..columns {
                        let mut sum = f64::from(b.as_slice::<f32>()[o]);
                        for c in 0..inputs {
                            for k in 0..9 {
                                let at = (i + k / 3).wrapping_sub(self.pads[0]);
                                let to = (j + k % 3).wrapping_sub(self.pads[1]);
                                if at < height && to < width {
                                    let x = x[((n * inputs + c) * height + at) * width + to];
                                    let w = w[(o * inputs + c) * 9 + k];
                                    sum = f64::from(x).mul_add(f64::from(w), sum);
                                }
                            }
                        }
                        y.push(sum);
                    }
                }
            }
        }
        y
    }
}

#[test]
fn it_is_near_the_sums() {
    // The transforms enlarge the rounding of the chains over the channels about threefold; the bound
    // of fast arithmetic is 1e-5.
    const BOUND: f64 = 4e-6;
    for case in CASES {
        for (low, high) in [(-1.0, 1.0), (0.0, 1.0), (5.0, 6.0)] {
            let (x, w, b) =
                (case.x(low, high), case.w(), uniform(&[case.channels.1], 3, -1.0, 1.0));
            let kernel = case.bound(1, &w);
            let y = call(&*kernel, &[Some(&x), Some(&w), Some(&b)]).unwrap().remove(0);
            let [rows, columns] = case.output();
            assert_eq!(y.shape(), [case.images, case.channels.1, rows, columns]);
            let wanted = case.oracle(&x, &w, &b);
            let largest = wanted.iter().fold(0.0f64, |m, y| m.max(y.abs()));
            let most = y.as_slice::<f32>().iter().zip(&wanted);
            let most = most.map(|(x, y)| (f64::from(*x) - y).abs()).fold(0.0, f64::max) / largest;
            assert!(most <= BOUND, "{most} for {case:?}, inputs from {low} to {high}");
            // A case that the chain computes would show nothing.
            let exact =
                call(&*case.bound(0, &w), &[Some(&x), Some(&w), Some(&b)]).unwrap().remove(0);
            assert!(bits(&exact) != bits(&y), "{case:?}");
        }
    }
}

#[test]
fn every_instruction_set_and_number_of_threads_has_the_same_bits() {
    for case in CASES {
        let (x, w, b) = (case.x(-1.0, 1.0), case.w(), uniform(&[case.channels.1], 3, -1.0, 1.0));
        let mut wanted = None;
        for isa in isas() {
            for threads in [1, 2] {
                set_num_threads(threads);
                let window = WindowAttributes::of(&[], &case.pads, &[]);
                let kernel = Conv::of(Direction::Forward, window, 1, false).made_fast(&w);
                let [rows, columns] = case.output();
                let shape = [case.images, case.channels.1, rows, columns];
                let y = Array::uninit("test", x.dtype(), &shape).unwrap();
                kernel.single(isa, &x, &w, Some(&b), &y, None).unwrap();
                let found = bits(&y);
                assert!(wanted.get_or_insert_with(|| found.clone()) == &found, "{isa:?} {case:?}");
            }
        }
    }
}

#[test]
fn an_image_has_the_bits_that_it_has_alone() {
    for case in CASES.iter().filter(|case| case.images > 1) {
        let (x, w) = (case.x(-1.0, 1.0), case.w());
        let kernel = case.bound(1, &w);
        let all = call(&*kernel, &[Some(&x), Some(&w)]).unwrap().remove(0);
        let last = case.images as i64 - 1;
        let alone = x.slice(0, last, last + 1, 1).unwrap();
        let alone = call(&*kernel, &[Some(&alone), Some(&w)]).unwrap().remove(0);
        assert_eq!(bits(&alone), bits(&all.slice(0, last, last + 1, 1).unwrap().copy().unwrap()));
    }
}

#[test]
fn views_have_the_bits_of_copies() {
    let case = CASES[1];
    let (x, w) = (case.x(-1.0, 1.0), case.w());
    let wanted = call(&*case.bound(1, &w), &[Some(&x), Some(&w)]).unwrap().remove(0);
    let turned = |x: &Array, axes: &[i64]| {
        let copy = x.permute(axes).unwrap().copy().unwrap();
        let back: Vec<i64> =
            (0..4).map(|i| axes.iter().position(|&a| a == i).unwrap() as i64).collect();
        copy.permute(&back).unwrap()
    };
    let (x, w) = (turned(&x, &[0, 2, 3, 1]), turned(&w, &[2, 3, 1, 0]));
    assert!(!x.is_contiguous() && !w.is_contiguous());
    let got = call(&*case.bound(1, &w), &[Some(&x), Some(&w)]).unwrap().remove(0);
    assert_eq!(bits(&got), bits(&wanted));
}

#[test]
fn steps_behind_it_have_the_bits_of_kernels_behind_it() {
    let plain = |name: &str| build(name, BTreeMap::new()).unwrap();
    for case in &CASES[..3] {
        let (x, w, b) = (case.x(-1.0, 1.0), case.w(), uniform(&[case.channels.1], 3, -1.0, 1.0));
        let kernel = case.bound(1, &w);
        let y = call(&*kernel, &[Some(&x), Some(&w), Some(&b)]).unwrap().remove(0);
        let other = uniform(y.shape(), 4, -9.0, 9.0);
        let sum = call(&*plain("Add"), &[Some(&y), Some(&other)]).unwrap().remove(0);
        let wanted = call(&*plain("Relu"), &[Some(&sum)]).unwrap().remove(0);
        let add = plain("Add");
        let (shape, none) = (y.shape(), [None, None]);
        let fused = fuse(&kernel, 3, shape, &add, 0, &none, shape).unwrap();
        let fused = fuse(&fused, 3, shape, &plain("Relu"), 0, &none[..1], shape).unwrap();
        let inputs = [Some(&x), Some(&w), Some(&b), Some(&other)];
        let got = call(&*fused, &inputs).unwrap().remove(0);
        assert_eq!(bits(&got), bits(&wanted), "{case:?}");
    }
}

#[test]
fn relu_is_the_kernel_behind_it() {
    let case = CASES[1];
    let (x, w) = (case.x(-1.0, 1.0), case.w());
    let mut values = BTreeMap::from([
        ("pads".to_string(), Attribute::Ints(vec![1; 4])),
        ("fast".to_string(), Attribute::Int(1)),
        ("activation".to_string(), Attribute::Str("relu".to_string())),
    ]);
    let kernel = build("Conv", values.clone()).unwrap().bind(&[None, Some(&w)]).unwrap().unwrap();
    let got = call(&*kernel, &[Some(&x), Some(&w)]).unwrap().remove(0);
    values.remove("activation");
    let y = call(&*case.bound(1, &w), &[Some(&x), Some(&w)]).unwrap().remove(0);
    let relu = build("Relu", BTreeMap::new()).unwrap();
    assert_eq!(bits(&got), bits(&call(&*relu, &[Some(&y)]).unwrap().remove(0)));
}

#[test]
fn what_has_another_form_is_the_chain() {
    let x = uniform(&[1, 32, 24, 24], 1, -1.0, 1.0);
    let run = |values: &[(&str, Vec<i64>)], w: &Array, fast: i64| {
        let mut all: BTreeMap<String, Attribute> =
            values.iter().map(|(k, v)| ((*k).to_string(), Attribute::Ints(v.clone()))).collect();
        if let Some(Attribute::Ints(group)) = all.remove("group") {
            all.insert("group".to_string(), Attribute::Int(group[0]));
        }
        all.insert("fast".to_string(), Attribute::Int(fast));
        let kernel = build("Conv", all).unwrap().bind(&[None, Some(w)]).unwrap().unwrap();
        bits(&call(&*kernel, &[Some(&x), Some(w)]).unwrap()[0])
    };
    let whole = uniform(&[32, 32, 3, 3], 2, -1.0, 1.0);
    let grouped = uniform(&[32, 16, 3, 3], 2, -1.0, 1.0);
    let wider = uniform(&[32, 32, 5, 5], 2, -1.0, 1.0);
    let few = uniform(&[8, 32, 3, 3], 2, -1.0, 1.0);
    for (values, w) in [
        (vec![("strides", vec![2, 2])], &whole),
        (vec![("dilations", vec![1, 2])], &whole),
        (vec![("group", vec![2])], &grouped),
        (vec![], &wider),
        (vec![], &few),
    ] {
        assert!(run(&values, w, 1) == run(&values, w, 0), "{values:?}");
    }
    assert!(run(&[], &whole, 1) != run(&[], &whole, 0));
    // Without constant weights nothing is transformed.
    let case = CASES[0];
    let (x, w) = (case.x(-1.0, 1.0), case.w());
    let y = |fast| bits(&call(&*case.kernel(fast), &[Some(&x), Some(&w)]).unwrap()[0]);
    assert_eq!(y(1), y(0));
}

#[test]
fn few_tiles_and_few_channels_do_not_pay() {
    assert!(pays(64, 64, [56, 56]) && pays(256, 256, [14, 14]));
    assert!(!pays(512, 512, [7, 7]) && !pays(3, 64, [224, 224]) && !pays(64, 8, [224, 224]));
    assert_eq!(OUT, 4);
}
