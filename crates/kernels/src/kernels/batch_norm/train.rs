//! Batch normalisation by the batch's own statistics.

use super::channel_sums::{Planes, Statistics};
use super::planes::{Affine, channels};
use super::{affine, channel_axes, check, values};
use crate::array::{Array, Dims, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, Term};
use crate::kernels::sums;
use crate::parallel;
use crate::simd::dispatch;
use smallvec::smallvec;

/// (x, scale, bias) -> (y, mean, biased variance, 1 / sqrt(variance + epsilon)).
pub(super) struct Train {
    pub(super) epsilon: f64,
}

impl Kernel for Train {
    fn name(&self) -> &'static str {
        "BatchNormTrain"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 3, 3)?;
        let channels = check(self.name(), &inputs, &[1, 2])?;
        let dtype = inputs.same_dtype(&[0, 1, 2])?;
        let x = inputs.get(0);
        if x.size() == 0 {
            let got = format!("{:?}", x.shape);
            return Err(Error::shape(self.name(), "at least one element for each channel", got));
        }
        let each = Meta { dtype, shape: Dims::from_slice(&[channels]) };
        Ok(smallvec![x.clone(), each.clone(), each.clone(), each])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| match i[0].dtype() {
            DType::F64 => self.compute::<f64>(&i[0], &values(&i[1]), &values(&i[2]), out),
            _ => self.compute::<f32>(&i[0], &values(&i[1]), &values(&i[2]), out),
        })
    }

    fn single_output(&self) -> bool {
        false
    }
}

/// One f64 for each channel, written by parts.
pub(super) struct Slots(Vec<f64>);

impl Slots {
    pub(super) fn fill(
        channels: usize,
        grain: usize,
        f: impl Fn(std::ops::Range<usize>, &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let mut all = Self(vec![0.0; channels]);
        let p = Shared::new(all.0.as_mut_ptr());
        parallel::for_ranges(channels, grain, |range| {
            // SAFETY: ranges are disjoint and inside the vector.
            let part =
                unsafe { std::slice::from_raw_parts_mut(p.get().add(range.start), range.len()) };
            f(range, part);
        });
        all.0
    }
}

impl Train {
    fn compute<T: Lane>(
        &self,
        x: &Array,
        scale: &[f64],
        bias: &[f64],
        out: &[Array],
    ) -> Result<()> {
        if let Some(planes) = Planes::of(x) {
            self.by_groups::<T>(planes, x, scale, bias, out);
            return Ok(());
        }
        let rows = Rows::new(x, &channel_axes(x.rank()))?;
        let statistics = Slots::fill(2 * rows.outputs, 2 * rows.grain(), |range, part| {
            let source = Source::rows(&rows.view);
            let mut slot = Slot::new();
            for (k, pair) in part.chunks_exact_mut(2).enumerate() {
                let c = range.start / 2 + k;
                let n = rows.count as f64;
                let mean = sums::row::<T>(Term::Value, &source, c, rows.count, &mut slot) / n;
                let term = Term::Deviation(mean);
                pair[0] = mean;
                pair[1] = sums::row::<T>(term, &source, c, rows.count, &mut slot) / n;
            }
        });
        let mut coefficients = Vec::with_capacity(rows.outputs);
        for (c, pair) in statistics.chunks_exact(2).enumerate() {
            coefficients.push(self.store(c, [pair[0], pair[1]], scale[c], out));
        }
        let mean: Vec<f64> = statistics.iter().copied().step_by(2).collect();
        affine::<T>(x, &mean, &coefficients, bias, &out[0])
    }

    /// Statistics and outputs of a few channels at a time, so that the outputs are computed from
    /// what the sums left in the cache.
    fn by_groups<T: Lane>(
        &self,
        planes: Planes,
        x: &Array,
        scale: &[f64],
        bias: &[f64],
        out: &[Array],
    ) {
        let pointers = Shared::new((x.as_ptr::<T>(), out[0].as_mut_ptr::<T>()));
        planes.for_each_group::<T>(1, |first, count| {
            let (x, y) = pointers.get();
            let mut found = [0.0; 2 * Planes::MOST];
            let found = &mut found[..2 * count];
            dispatch(Statistics { planes, x, first, found: &mut *found });
            let mut c = [[T::ZERO; Planes::MOST]; 3];
            for (k, pair) in found.chunks_exact(2).enumerate() {
                let channel = first + k;
                let a = self.store(channel, [pair[0], pair[1]], scale[channel], out);
                c[0][k] = T::from_f64(pair[0]);
                c[1][k] = T::from_f64(a);
                c[2][k] = T::from_f64(bias[channel]);
            }
            let c = [&c[0][..count], &c[1][..count], &c[2][..count]];
            channels::<T, Affine, 1, 3>(planes, first, [x], c, y);
        });
    }

    /// Stores a channel's statistics; returns what its deviations are multiplied by.
    fn store(&self, channel: usize, [mean, variance]: [f64; 2], scale: f64, out: &[Array]) -> f64 {
        let inverse = 1.0 / (variance + self.epsilon).sqrt();
        // SAFETY: one place for each channel.
        unsafe {
            mean.store(&out[1], channel);
            variance.store(&out[2], channel);
            inverse.store(&out[3], channel);
        }
        scale * inverse
    }
}
