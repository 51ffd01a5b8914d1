//! Bits of the pools against plain loops over their definitions.

use crate::array::Array;
use crate::attributes::Attribute;
use crate::kernel::call;
use crate::kernels::gemm::tests::{Bits, first_difference, values};
use crate::parallel::set_num_threads;
use crate::registry::build;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A pool over (N, C, H, W).
#[derive(Debug, Clone)]
struct Case {
    planes: [usize; 2],
    sizes: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 4],
    ceil: bool,
    include: bool,
    wild: bool,
    seed: u64,
}

impl Case {
    fn attributes(&self, more: &[(&str, Attribute)]) -> BTreeMap<String, Attribute> {
        let list = |values: &[usize]| Attribute::Ints(values.iter().map(|&v| v as i64).collect());
        let own = [
            ("kernel_shape", list(&self.kernel)),
            ("strides", list(&self.strides)),
            ("dilations", list(&self.dilations)),
            ("pads", list(&self.pads)),
            ("ceil_mode", Attribute::Int(i64::from(self.ceil))),
        ];
        own.iter().chain(more).map(|(k, v)| ((*k).to_string(), v.clone())).collect()
    }

    fn run(&self, name: &str, inputs: &[&Array], more: &[(&str, Attribute)]) -> Vec<Array> {
        let kernel = build(name, self.attributes(more)).unwrap();
        let inputs: Vec<_> = inputs.iter().map(|x| Some(*x)).collect();
        call(&*kernel, &inputs).unwrap().into_vec()
    }

    fn shape(&self, sizes: [usize; 2]) -> Vec<usize> {
        [self.planes, sizes].concat()
    }

    fn output(&self) -> Option<[usize; 2]> {
        let mut out = [0; 2];
        for (a, out) in out.iter_mut().enumerate() {
            let reach = self.dilations[a] * (self.kernel[a] - 1) + 1;
            let (begin, end) = (self.pads[a], self.pads[2 + a]);
            let room = (self.sizes[a] + begin + end).checked_sub(reach)?;
            *out = room / self.strides[a] + 1;
            let further = *out * self.strides[a];
            if self.ceil && room % self.strides[a] != 0 && further < self.sizes[a] + begin {
                *out += 1;
            }
        }
        Some(out)
    }

    /// The places of a window inside the plane in order, and its positions in the padded input.
    fn places(&self, p: [usize; 2]) -> (Vec<usize>, usize) {
        let (mut places, mut padded) = (Vec::new(), 0);
        for i in 0..self.kernel[0] {
            for j in 0..self.kernel[1] {
                let at = |a: usize, k: usize| p[a] * self.strides[a] + k * self.dilations[a];
                let (y, x) = (at(0, i), at(1, j));
                let limit = |a: usize| self.sizes[a] + self.pads[a] + self.pads[2 + a];
                padded += usize::from(y < limit(0) && x < limit(1));
                let (y, x) = (y.wrapping_sub(self.pads[0]), x.wrapping_sub(self.pads[1]));
                if y < self.sizes[0] && x < self.sizes[1] {
                    places.push(y * self.sizes[1] + x);
                }
            }
        }
        (places, padded)
    }

    fn check(&self) {
        let Some(out) = self.output() else { return };
        let (planes, size) = (self.planes[0] * self.planes[1], self.sizes[0] * self.sizes[1]);
        let x = values::<f32>(planes * size, self.seed, self.wild);
        let g = values::<f32>(planes * out[0] * out[1], self.seed + 1, self.wild);
        let (mut best, mut indices, mut means) = (Vec::new(), Vec::new(), Vec::new());
        let mut norms = Vec::new();
        let (mut dx, mut da) = (vec![0.0f32; x.len()], vec![0.0f32; x.len()]);
        for plane in 0..planes {
            for p in 0..out[0] * out[1] {
                let (places, padded) = self.places([p / out[1], p % out[1]]);
                let (mut top, mut place) = (f32::NEG_INFINITY, None);
                let (mut sum, mut squares) = (0.0f32, 0.0f32);
                for &at in &places {
                    let value = x[plane * size + at];
                    if place.is_none() || value > top || value.is_nan() && !top.is_nan() {
                        (top, place) = (value, Some(at));
                    }
                    sum += value;
                    squares = value.mul_add(value, squares);
                }
                let count = if self.include { padded } else { places.len() };
                let share = g[plane * out[0] * out[1] + p];
                best.push(top);
                indices.push(place.map_or(-1, |at| (plane * size + at) as i64));
                means.push(sum / count as f32);
                norms.push(squares.sqrt());
                if let Some(at) = place {
                    dx[plane * size + at] += share;
                }
                for &at in &places {
                    da[plane * size + at] += share / count as f32;
                }
            }
        }
        let x = Array::from_slice(&self.shape(self.sizes), &x).unwrap();
        let g = Array::from_slice(&self.shape(out), &g).unwrap();
        let same = |name: &str, want: &[f32], got: &Array| {
            assert_eq!(first_difference(want, got.as_slice()), None, "{name} of {self:?}");
        };
        let include = [("count_include_pad", Attribute::Int(i64::from(self.include)))];
        let shape = self.shape(self.sizes).iter().map(|&d| d as i64).collect();
        let shape = ("input_shape", Attribute::Ints(shape));
        let max = self.run("MaxPool", &[&x], &[]);
        same("MaxPool", &best, &max[0]);
        assert_eq!(indices, max[1].as_slice::<i64>(), "indices of {self:?}");
        same("AveragePool", &means, &self.run("AveragePool", &[&x], &include)[0]);
        same("LpPool", &norms, &self.run("LpPool", &[&x], &[])[0]);
        let more = [include[0].clone(), shape.clone()];
        same("AveragePoolGrad", &da, &self.run("AveragePoolGrad", &[&g], &more)[0]);
        let grad = build("MaxPoolGrad", [(shape.0.to_string(), shape.1)].into()).unwrap();
        same("MaxPoolGrad", &dx, &call(&*grad, &[Some(&g), Some(&max[1])]).unwrap()[0]);
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let pair = |range: std::ops::Range<usize>| prop::array::uniform2(range);
    (
        (pair(1..3), pair(1..40), pair(1..4), pair(1..4), pair(1..3)),
        prop::array::uniform4(0..3usize),
        any::<(bool, bool, bool, u32)>(),
    )
        .prop_map(|((planes, sizes, kernel, strides, dilations), pads, flags)| Case {
            planes,
            sizes,
            kernel,
            strides,
            dilations,
            pads,
            ceil: flags.0,
            include: flags.1,
            wild: flags.2,
            seed: u64::from(flags.3),
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        max_shrink_iters: 50,
        ..Default::default()
    })]

    #[test]
    fn random_pools_have_the_defined_bits(case in cases()) {
        case.check();
    }
}

#[test]
fn many_planes_on_one_and_two_threads() {
    for threads in [1, 2] {
        set_num_threads(threads);
        let case = Case {
            planes: [8, 16],
            sizes: [64, 63],
            kernel: [2, 2],
            strides: [2, 2],
            dilations: [1, 1],
            pads: [0; 4],
            ceil: true,
            include: false,
            wild: true,
            seed: 1,
        };
        case.check();
    }
}

#[test]
fn global_pools_fold_whole_planes() {
    let x = values::<f32>(6 * 35, 4, false);
    let array = Array::from_slice(&[2, 3, 5, 7], &x).unwrap();
    let run = |name: &str| call(&*build(name, BTreeMap::new()).unwrap(), &[Some(&array)]).unwrap();
    let (mean, top) = (run("GlobalAveragePool"), run("GlobalMaxPool"));
    assert_eq!(mean[0].shape(), [2, 3, 1, 1]);
    for plane in 0..6 {
        let x = &x[plane * 35..(plane + 1) * 35];
        let mut lanes: [f32; 16] = std::array::from_fn(|l| 0.0 + x[l] + x[16 + l]);
        (0..3).for_each(|l| lanes[l] += x[32 + l]);
        for width in [8, 4, 2, 1] {
            (0..width).for_each(|l| lanes[l] += lanes[l + width]);
        }
        assert!((lanes[0] / 35.0).same(mean[0].as_slice::<f32>()[plane]));
        let best = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(best, top[0].as_slice::<f32>()[plane]);
    }
}

#[test]
fn foreign_indices_are_refused() {
    let g = Array::from_slice(&[1, 1, 1], &[1.0f32]).unwrap();
    let shape = Attribute::Ints(vec![1, 1, 4]);
    let grad = build("MaxPoolGrad", [("input_shape".to_string(), shape)].into()).unwrap();
    for (index, fine) in [(0, true), (3, true), (-1, true), (4, false), (-2, false)] {
        let indices = Array::from_slice(&[1, 1, 1], &[index as i64]).unwrap();
        assert_eq!(call(&*grad, &[Some(&g), Some(&indices)]).is_ok(), fine, "index {index}");
    }
}
