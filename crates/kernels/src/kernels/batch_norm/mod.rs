//! Batch normalisation over the channel axis 1.
//!
//! A channel's elements form one row in (batch, spatial) order, folded by 16 lanes in f64: mean =
//! sum / n, then var = sum fma(d, d) / n of d = x - mean, both unrounded; inv_std = 1 / sqrt(var +
//! epsilon) in f64. The output is fma(x - mean, scale inv_std, bias) with the coefficients rounded to
//! the dtype, and the gradient `a (g - k) - …` as written at its function.

mod channel_sums;
mod gradient;
mod planes;
mod train;

use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::epilogue::{Before, Step};
use crate::kernels::function::check_float;
use crate::kernels::gemm::half_precision::is_half;
use crate::kernels::lanes::Lane;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry {
        name: "BatchNormalization",
        build: |a| Ok(Arc::new(Inference { epsilon: a.float("epsilon", 1e-5)? })),
    },
    Entry {
        name: "BatchNormTrain",
        build: |a| Ok(Arc::new(train::Train { epsilon: a.float("epsilon", 1e-5)? })),
    },
    Entry { name: "BatchNormGrad", build: |_| Ok(Arc::new(gradient::Grad)) },
];

/// Checks that input 0 has a channel axis and that the inputs `per_channel` have one value for each
/// channel.
fn check(name: &str, inputs: &Inputs<'_>, per_channel: &[usize]) -> Result<usize> {
    let x = inputs.get(0);
    check_float(name, x.dtype)?;
    if x.rank() < 2 {
        return Err(Error::shape(name, "an input (N, C, …)", format!("{:?}", x.shape)));
    }
    let channels = x.shape[1];
    for &i in per_channel {
        let meta = inputs.get(i);
        check_float(name, meta.dtype)?;
        if meta.shape.as_slice() != [channels] {
            return Err(Error::shape(
                name,
                format!("input {i} of shape [{channels}]"),
                format!("{:?}", meta.shape),
            ));
        }
    }
    Ok(channels)
}

/// `fma(x - mean, scale / sqrt(var + epsilon), bias)`.
struct Inference {
    epsilon: f64,
}

impl Kernel for Inference {
    fn name(&self) -> &'static str {
        "BatchNormalization"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 5, 5)?;
        check(self.name(), &inputs, &[1, 2, 3, 4])?;
        inputs.same_dtype(&[0, 1, 2])?;
        Ok(smallvec![inputs.get(0).clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| {
            let [scale, bias, mean, var] = [1, 2, 3, 4].map(|k| values(&i[k]));
            let a = coefficients(&scale, &var, self.epsilon);
            match i[0].dtype() {
                DType::F64 => affine::<f64>(&i[0], &mean, &a, &bias, &out[0]),
                _ => affine::<f32>(&i[0], &mean, &a, &bias, &out[0]),
            }
        })
    }

    fn as_step(&self, before: &Before<'_>) -> Option<Step> {
        let [scale, bias, mean, var] = [1, 2, 3, 4].map(|i| before.constants.get(i).copied()?);
        let (scale, bias, mean, var) = (scale?, bias?, mean?, var?);
        let fits = |a: &Array| a.shape() == [before.shape[1]] && !is_half(a.dtype());
        let given = [scale, bias, mean, var];
        if before.at != 0 || before.axis != Some(1) || !given.iter().all(|a| fits(a)) {
            return None;
        }
        let [scale, bias, mean, var] = given.map(values);
        let rounded = |v: &[f64]| v.iter().map(|&x| x as f32).collect();
        let factor = coefficients(&scale, &var, self.epsilon);
        let (mean, factor, offset) = (rounded(&mean), rounded(&factor), rounded(&bias));
        Some(Step::Affine { mean, factor, offset })
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

/// `scale / sqrt(var + epsilon)` of each channel.
fn coefficients(scale: &[f64], var: &[f64], epsilon: f64) -> Vec<f64> {
    scale.iter().zip(var).map(|(s, v)| s / (v + epsilon).sqrt()).collect()
}

/// The elements as f64.
fn values(a: &Array) -> Vec<f64> {
    let source = Source::rows(a);
    let mut slot = Slot::new();
    let mut out = Vec::with_capacity(a.size());
    match a.dtype() {
        DType::F64 => source.pieces::<f64>(0, a.size(), &mut slot, |x| out.extend_from_slice(x)),
        _ => source.pieces::<f32>(0, a.size(), &mut slot, |x| {
            out.extend(x.iter().copied().map(f64::from));
        }),
    }
    out
}

/// `fma(x - mean, a, bias)` for each channel, the coefficients rounded to T.
fn affine<T: Lane>(x: &Array, mean: &[f64], a: &[f64], bias: &[f64], out: &Array) -> Result<()> {
    let x = x.to_contiguous()?;
    planes::planes::<T, planes::Affine, 1, 3>([&x], [mean, a, bias], out);
    Ok(())
}

fn channel_axes(rank: usize) -> Vec<usize> {
    (0..rank).filter(|&a| a != 1).collect()
}
