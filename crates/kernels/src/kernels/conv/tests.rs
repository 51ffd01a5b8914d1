//! Bits of the convolutions and their gradients against plain loops over the definition.

use super::forward::{Conv, Direction};
use super::geometry::WindowAttributes;
use super::grad_weight::GradWeight;
use crate::array::Array;
use crate::kernels::gemm::real::{Real, relu};
use crate::kernels::gemm::tests::{Bits, first_difference, isas, values};
use crate::parallel::set_num_threads;
use proptest::prelude::*;

/// One two-axis convolution; one and three axes are reached by extents and by `deep`.
#[derive(Debug, Clone)]
struct Case {
    images: usize,
    groups: usize,
    inputs: usize,
    outputs: usize,
    sizes: Vec<usize>,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    pads: Vec<usize>,
    extra: Vec<usize>,
    bias: bool,
    relu: bool,
    wild: bool,
    seed: u64,
}

/// All index tuples below `extents`, in row-major order.
fn indices(extents: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in extents {
        all = all
            .into_iter()
            .flat_map(|prefix: Vec<usize>| {
                (0..n).map(move |i| {
                    let mut next = prefix.clone();
                    next.push(i);
                    next
                })
            })
            .collect();
    }
    all
}

fn flat(index: &[usize], extents: &[usize]) -> usize {
    index.iter().zip(extents).fold(0, |acc, (&i, &n)| acc * n + i)
}

impl Case {
    fn attributes(&self) -> WindowAttributes {
        WindowAttributes::of(&self.strides, &self.pads, &self.dilations)
    }

    fn output_sizes(&self) -> Option<Vec<usize>> {
        let window = self.attributes().window("test", &self.kernel).unwrap();
        window.output("test", &self.sizes, false).ok().map(|d| d.to_vec())
    }

    /// For every output position and tap the input that is read, if it is inside.
    fn reads(&self, out: &[usize]) -> Vec<Option<usize>> {
        let mut reads = Vec::new();
        for p in indices(out) {
            for k in indices(&self.kernel) {
                let at: Option<Vec<usize>> = (0..p.len())
                    .map(|a| {
                        let at = (p[a] * self.strides[a] + k[a] * self.dilations[a]) as isize
                            - self.pads[a] as isize;
                        usize::try_from(at).ok().filter(|&at| at < self.sizes[a])
                    })
                    .collect();
                reads.push(at.map(|at| flat(&at, &self.sizes)));
            }
        }
        reads
    }

    /// For every position of `sizes` and tap the element of `g` that reaches it: none where the
    /// stride skips it, and a zero where `g` has ended.
    fn arrivals(&self, g_sizes: &[usize], sizes: &[usize]) -> Vec<Option<Option<usize>>> {
        let mut arrivals = Vec::new();
        for p in indices(sizes) {
            for tap in indices(&self.kernel) {
                let distance: Vec<isize> = (0..p.len())
                    .map(|a| (p[a] + self.pads[a]) as isize - (tap[a] * self.dilations[a]) as isize)
                    .collect();
                let strides = || self.strides.iter().map(|&s| s as isize);
                let meets = distance.iter().zip(strides()).all(|(d, s)| d.rem_euclid(s) == 0);
                arrivals.push(meets.then(|| {
                    let at: Option<Vec<usize>> = distance
                        .iter()
                        .zip(strides())
                        .zip(g_sizes)
                        .map(|((d, s), &n)| {
                            usize::try_from(d.div_euclid(s)).ok().filter(|&t| t < n)
                        })
                        .collect();
                    at.map(|at| flat(&at, g_sizes))
                }));
            }
        }
        arrivals
    }

    fn forward<E: Real>(&self, x: &[E], w: &[E], b: &[E], out: &[usize], reversed: bool) -> Vec<E> {
        let mut y = Vec::new();
        let size = self.sizes.iter().product::<usize>();
        let taps = self.kernel.iter().product::<usize>();
        let (reads, steps) = (self.reads(out), self.inputs * taps);
        for n in 0..self.images {
            for o in 0..self.groups * self.outputs {
                let first = (n * self.groups + o / self.outputs) * self.inputs;
                for from in reads.chunks(taps) {
                    let mut acc = if self.bias { b[o] } else { E::default() };
                    for step in 0..steps {
                        let step = if reversed { steps - 1 - step } else { step };
                        let (c, k) = (step / taps, step % taps);
                        let value = from[k].map_or(E::default(), |at| x[(first + c) * size + at]);
                        acc = E::fma_one(value, w[o * steps + step], acc);
                    }
                    y.push(if self.relu { relu(acc) } else { acc });
                }
            }
        }
        y
    }

    /// The transposed convolution of `g` to extents `sizes`, with weights (g channels, channels, k).
    fn transposed<E: Real>(
        &self,
        g: &[E],
        w: &[E],
        b: Option<&[E]>,
        g_sizes: &[usize],
        sizes: &[usize],
    ) -> Vec<E> {
        let mut y = Vec::new();
        let size = g_sizes.iter().product::<usize>();
        let taps = self.kernel.iter().product::<usize>();
        let arrivals = self.arrivals(g_sizes, sizes);
        for n in 0..self.images {
            for channel in 0..self.groups * self.inputs {
                let (group, c) = (channel / self.inputs, channel % self.inputs);
                for from in arrivals.chunks(taps) {
                    let mut acc = b.map_or(E::default(), |b| b[channel]);
                    for o in group * self.outputs..(group + 1) * self.outputs {
                        let plane = (n * self.groups * self.outputs + o) * size;
                        for (k, at) in from.iter().enumerate() {
                            let Some(at) = at else { continue };
                            let value = at.map_or(E::default(), |at| g[plane + at]);
                            acc = E::fma_one(value, w[(o * self.inputs + c) * taps + k], acc);
                        }
                    }
                    y.push(acc);
                }
            }
        }
        y
    }

    fn grad_weight<E: Real>(&self, g: &[E], x: &[E], out: &[usize]) -> Vec<E> {
        let mut y = Vec::new();
        let (size, plane) = (self.sizes.iter().product::<usize>(), out.iter().product::<usize>());
        let taps = self.kernel.iter().product::<usize>();
        let reads = self.reads(out);
        for o in 0..self.groups * self.outputs {
            for c in 0..self.inputs {
                for tap in 0..taps {
                    let mut acc = E::default();
                    for n in 0..self.images {
                        let channel = (n * self.groups + o / self.outputs) * self.inputs + c;
                        let row = (n * self.groups * self.outputs + o) * plane;
                        for p in 0..plane {
                            let at = reads[p * taps + tap];
                            let value = at.map_or(E::default(), |at| x[channel * size + at]);
                            acc = E::fma_one(g[row + p], value, acc);
                        }
                    }
                    y.push(acc);
                }
            }
        }
        y
    }

    fn shape(&self, channels: usize, sizes: &[usize]) -> Vec<usize> {
        [&[self.images, self.groups * channels], sizes].concat()
    }

    fn check<E: Real + Bits>(&self) {
        let Some(out) = self.output_sizes() else { return };
        let x_shape = self.shape(self.inputs, &self.sizes);
        let y_shape = self.shape(self.outputs, &out);
        let w_shape = [&[self.groups * self.outputs, self.inputs], &self.kernel[..]].concat();
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let x = values::<E>(count(&x_shape), self.seed, self.wild);
        let w = values::<E>(count(&w_shape), self.seed + 1, self.wild);
        let b = values::<E>(self.groups * self.outputs, self.seed + 2, self.wild);
        let g = values::<E>(count(&y_shape), self.seed + 3, self.wild);
        let c = values::<E>(self.groups * self.inputs, self.seed + 4, self.wild);
        let array = |shape: &[usize], data: &[E]| Array::from_slice(shape, data).unwrap();
        let (xa, wa, ga) = (array(&x_shape, &x), array(&w_shape, &w), array(&y_shape, &g));
        let ba = array(&[b.len()], &b);
        let ca = array(&[c.len()], &c);
        let forward = self.forward(&x, &w, &b, &out, false);
        let grad_input = self.transposed(&g, &w, None, &out, &self.sizes);
        let grad_weight = self.grad_weight(&g, &x, &out);
        let window = self.attributes().window("test", &self.kernel).unwrap();
        let wide = window.transposed_output("test", &out, &self.extra).map(|d| d.to_vec());
        let conv = |direction| Conv::of(direction, self.attributes(), self.groups, self.relu);
        for isa in isas() {
            let check = |name: &str, want: &[E], got: &Array| {
                let at = first_difference(want, got.as_slice::<E>());
                assert_eq!(at, None, "{name} of {self:?} on {isa:?}");
            };
            let y = Array::uninit("test", E::DTYPE, &y_shape).unwrap();
            let bias = self.bias.then_some(&ba);
            conv(Direction::Forward).compute::<E>(isa, &xa, &wa, bias, &y, None).unwrap();
            check("Conv", &forward, &y);
            let dx = Array::uninit("test", E::DTYPE, &x_shape).unwrap();
            let direction = Direction::GradInput { input_shape: x_shape.clone() };
            let back = Conv::of(direction, self.attributes(), self.groups, false);
            back.compute::<E>(isa, &ga, &wa, None, &dx, None).unwrap();
            check("ConvGradInput", &grad_input, &dx);
            if let Ok(sizes) = &wide {
                let want = self.transposed(&g, &w, Some(&c), &out, sizes);
                let shape = self.shape(self.inputs, sizes);
                let up = Array::uninit("test", E::DTYPE, &shape).unwrap();
                let direction = Direction::Transposed { output_padding: self.extra.clone() };
                let conv = Conv::of(direction, self.attributes(), self.groups, false);
                conv.compute::<E>(isa, &ga, &wa, Some(&ca), &up, None).unwrap();
                check("ConvTranspose", &want, &up);
            }
            let dw = Array::uninit("test", E::DTYPE, &w_shape).unwrap();
            let grad = GradWeight::of(w_shape.clone(), self.attributes(), self.groups);
            grad.compute::<E>(isa, &ga, &xa, &dw).unwrap();
            check("ConvGradWeight", &grad_weight, &dw);
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let channels = (1..4usize, 1..4usize, 1..7usize, 1..20usize);
    let flags = any::<(bool, bool, bool)>();
    (1..=3usize, channels, flags, any::<u32>()).prop_flat_map(
        |(axes, (images, groups, inputs, outputs), (bias, relu, wild), seed)| {
            let largest = [40, 18, 7][axes - 1];
            let list = |range: std::ops::Range<usize>, n| prop::collection::vec(range, n);
            (
                list(1..largest, axes),
                list(1..5, axes),
                list(1..4, axes),
                list(1..4, axes),
                list(0..4, 2 * axes),
                list(0..2, axes),
            )
                .prop_map(move |(sizes, kernel, strides, dilations, pads, extra)| {
                    Case {
                        images,
                        groups,
                        inputs,
                        outputs,
                        sizes,
                        kernel,
                        strides,
                        dilations,
                        pads,
                        extra,
                        bias,
                        relu,
                        wild,
                        seed: u64::from(seed),
                    }
                })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        max_shrink_iters: 50,
        ..Default::default()
    })]

    #[test]
    fn random_convolutions_have_the_chain_bits(case in cases()) {
        case.check::<f32>();
        case.check::<f64>();
    }
}

fn plain(images: usize, groups: usize, inputs: usize, outputs: usize, size: usize) -> Case {
    Case {
        images,
        groups,
        inputs,
        outputs,
        sizes: vec![size, size],
        kernel: vec![3, 3],
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![1; 4],
        extra: vec![0, 0],
        bias: true,
        relu: false,
        wild: false,
        seed: 5,
    }
}

#[test]
fn large_convolutions_have_the_chain_bits_with_one_and_two_threads() {
    for threads in [1, 2] {
        set_num_threads(threads);
        plain(1, 1, 33, 47, 28).check::<f32>();
        plain(9, 1, 16, 20, 14).check::<f32>();
        plain(2, 40, 1, 1, 30).check::<f32>();
        plain(1, 1, 260, 70, 7).check::<f32>();
        Case { relu: true, ..plain(1, 2, 12, 33, 20) }.check::<f64>();
        Case { kernel: vec![1, 1], pads: vec![0; 4], ..plain(2, 1, 70, 37, 19) }.check::<f32>();
        Case {
            kernel: vec![7, 7],
            strides: vec![2, 2],
            pads: vec![3; 4],
            ..plain(1, 1, 3, 40, 61)
        }
        .check::<f32>();
        Case {
            kernel: vec![1, 1],
            strides: vec![2, 2],
            pads: vec![0; 4],
            ..plain(1, 1, 30, 64, 28)
        }
        .check::<f32>();
    }
}

#[test]
fn depthwise_convolutions_by_two_have_the_chain_bits() {
    for size in [1, 6, 15, 34] {
        let by_two = Case { strides: vec![2, 2], ..plain(2, 7, 1, 1, size) };
        by_two.check::<f32>();
        Case { kernel: vec![5, 2], pads: vec![2, 1, 2, 1], relu: true, ..by_two.clone() }
            .check::<f32>();
        Case { dilations: vec![2, 2], pads: vec![2; 4], ..by_two }.check::<f64>();
    }
    Case { strides: vec![2, 1], ..plain(1, 9, 1, 1, 20) }.check::<f32>();
}

#[test]
fn weights_of_few_channels_have_the_chain_bits() {
    for outputs in [4, 6, 16] {
        let case = plain(3, 2, 3, outputs, 13);
        case.check::<f32>();
        Case { kernel: vec![5, 5], pads: vec![2; 4], ..case.clone() }.check::<f32>();
        Case { strides: vec![2, 1], dilations: vec![1, 2], pads: vec![0; 4], ..case }
            .check::<f64>();
    }
}

#[test]
fn weights_of_many_channels_have_the_chain_bits() {
    // Whole vectors of input channels, almost whole ones, and few weights for many output channels.
    for (groups, inputs, outputs) in [(1, 16, 20), (2, 30, 33), (1, 70, 17), (2, 2, 32), (1, 1, 47)]
    {
        let case = plain(3, groups, inputs, outputs, 11);
        case.check::<f32>();
        Case { sizes: vec![20, 17], pads: vec![2, 0, 1, 2], ..case.clone() }.check::<f32>();
        Case { strides: vec![2, 3], dilations: vec![2, 1], pads: vec![3; 4], ..case }
            .check::<f64>();
    }
}

#[test]
fn bands_of_rows_have_the_chain_bits() {
    let case = Case { sizes: vec![151, 97], ..plain(2, 1, 24, 5, 1) };
    case.check::<f32>();
    let wide = Case { sizes: vec![203, 120], pads: vec![2, 0, 1, 2], ..case.clone() };
    Case { strides: vec![2, 1], dilations: vec![3, 2], ..wide.clone() }.check::<f32>();
    Case { groups: 2, outputs: 2, ..wide }.check::<f64>();
}

/// Of the residues of a transposed convolution some have no outputs, and some have outputs without taps
/// where the source has ended.
#[test]
fn residues_without_outputs_or_taps_write_nothing_else() {
    for (outputs, groups) in [(5, 3), (70, 1)] {
        let empty = Case {
            sizes: vec![4, 4, 1],
            kernel: vec![1, 3, 3],
            strides: vec![1, 3, 3],
            dilations: vec![1, 1, 2],
            pads: vec![0, 0, 3, 2, 1, 1],
            extra: vec![1, 0, 0],
            ..plain(2, groups, 5, outputs, 1)
        };
        empty.check::<f32>();
        empty.check::<f64>();
        let no_taps = Case {
            sizes: vec![3, 20, 20],
            kernel: vec![1, 1, 3],
            strides: vec![2, 1, 1],
            dilations: vec![1; 3],
            pads: vec![1, 0, 0, 0, 0, 0],
            extra: vec![1, 0, 0],
            ..plain(1, groups, 20, outputs, 1)
        };
        no_taps.check::<f32>();
        Case { inputs: 1, outputs: 1, ..no_taps }.check::<f64>();
    }
}

#[test]
fn another_order_has_other_bits() {
    let case = plain(1, 1, 16, 16, 12);
    let x = values::<f32>(16 * 144, 1, false);
    let w = values::<f32>(16 * 16 * 9, 2, false);
    let b = values::<f32>(16, 3, false);
    let want = case.forward(&x, &w, &b, &[12, 12], false);
    let other = case.forward(&x, &w, &b, &[12, 12], true);
    assert!(first_difference(&want, &other).is_some());
}
