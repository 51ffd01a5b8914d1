//! Batch normalisation over the channel axis 1.
//!
//! A channel's elements form one row in (batch, spatial) order, folded by 16 lanes in f64: mean =
//! sum / n, then var = sum fma(d, d) / n of d = x - mean, both unrounded; inv_std = 1 / sqrt(var +
//! epsilon) in f64. The output is fma(x - mean, scale inv_std, bias) with the coefficients rounded to
//! the dtype, and the gradient `a (g - k) - …` as written at its function.

use crate::array::{Array, Dims, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::channel_sums;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::epilogue::{Before, Step};
use crate::kernels::fold::{Rows, Store};
use crate::kernels::function::check_float;
use crate::kernels::gemm::half_precision::is_half;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, Term, for_lanes, tree};
use crate::kernels::sums;
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::marker::PhantomData;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry {
        name: "BatchNormalization",
        build: |a| Ok(Arc::new(Inference { epsilon: a.float("epsilon", 1e-5)? })),
    },
    Entry {
        name: "BatchNormTrain",
        build: |a| Ok(Arc::new(Train { epsilon: a.float("epsilon", 1e-5)? })),
    },
    Entry { name: "BatchNormGrad", build: |_| Ok(Arc::new(Grad)) },
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
    planes::<T, Affine, 1, 3>([&x], [mean, a, bias], out);
    Ok(())
}

/// An element's output from its `N` inputs and its channel's `K` coefficients.
trait Formula<const N: usize, const K: usize>: Copy {
    fn at<T: Lane, S: Simd>(s: S, x: [T::V<S>; N], c: [T::V<S>; K]) -> T::V<S>;
}

#[derive(Clone, Copy)]
struct Affine;

impl Formula<1, 3> for Affine {
    #[inline(always)]
    fn at<T: Lane, S: Simd>(s: S, [x]: [T::V<S>; 1], [mean, a, b]: [T::V<S>; 3]) -> T::V<S> {
        T::v_fma(s, T::v_sub(s, x, mean), a, b)
    }
}

/// `a fma(-(x - mean), q, g - k)`.
#[derive(Clone, Copy)]
struct InputGradient;

impl Formula<2, 4> for InputGradient {
    #[inline(always)]
    fn at<T: Lane, S: Simd>(s: S, [x, g]: [T::V<S>; 2], [m, k, q, a]: [T::V<S>; 4]) -> T::V<S> {
        let d = T::v_neg(s, T::v_sub(s, x, m));
        T::v_mul(s, a, T::v_fma(s, d, q, T::v_sub(s, g, k)))
    }
}

/// The formula over contiguous (N, C, …) arrays. An input may be the output.
fn planes<T: Lane, F: Formula<N, K>, const N: usize, const K: usize>(
    inputs: [&Array; N],
    coefficients: [&[f64]; K],
    out: &Array,
) {
    if out.size() == 0 {
        return;
    }
    let channels = out.shape()[1];
    let plane: usize = out.shape()[2..].iter().product();
    let pointers = Shared::new((inputs.map(|x| x.as_ptr::<T>()), out.as_mut_ptr::<T>()));
    // Short planes are computed a whole sample at a time, with the coefficients repeated.
    let repeats = plane < LANES;
    let (length, copies) = if repeats { (channels * plane, plane) } else { (plane, 1) };
    let values = coefficients.map(|c| {
        c.iter().flat_map(|&v| std::iter::repeat_n(T::from_f64(v), copies)).collect::<Vec<T>>()
    });
    let grain = (CHEAP / length).max(1);
    parallel::for_ranges(out.size() / length, grain, |range| {
        let at = range.start * length;
        let (ins, to) = pointers.get();
        // SAFETY: the parts lie inside the contiguous arrays.
        let (ins, to) = unsafe { (ins.map(|p| p.add(at)), to.add(at)) };
        let c = values.each_ref().map(Vec::as_slice);
        let (first, count, n) = (range.start % channels, range.len(), length);
        if repeats {
            let c = c.map(<[T]>::as_ptr);
            dispatch(Samples::<T, F, N, K> { ins, c, to, count, n, formula: PhantomData });
        } else {
            dispatch(Planes::<T, F, N, K> { ins, c, to, first, count, n, formula: PhantomData });
        }
    });
}

/// `count` planes of `n` elements, the first one of channel `first`.
struct Planes<'a, T, F, const N: usize, const K: usize> {
    ins: [*const T; N],
    c: [&'a [T]; K],
    to: *mut T,
    first: usize,
    count: usize,
    n: usize,
    formula: PhantomData<F>,
}

impl<T: Lane, F: Formula<N, K>, const N: usize, const K: usize> WithSimd
    for Planes<'_, T, F, N, K>
{
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (mut channel, channels) = (self.first, self.c[0].len());
        for plane in 0..self.count {
            self.plane(s, plane * self.n, channel);
            channel = if channel + 1 == channels { 0 } else { channel + 1 };
        }
    }
}

impl<T: Lane, F: Formula<N, K>, const N: usize, const K: usize> Planes<'_, T, F, N, K> {
    #[inline(always)]
    fn plane<S: Simd>(&self, s: S, at: usize, channel: usize) {
        let mut c = [T::splat(s, T::ZERO); K];
        // Iterators over arrays by value are not taken apart.
        for k in 0..K {
            c[k] = T::splat(s, self.c[k][channel]);
        }
        // SAFETY: the caller's arrays hold `n` elements.
        unsafe {
            for_lanes!(self.n, |i, count| {
                let mut x = [T::splat(s, T::ZERO); N];
                for k in 0..N {
                    x[k] = T::get(s, self.ins[k].add(at + i), count);
                }
                T::put(s, self.to.add(at + i), count, F::at::<T, S>(s, x, c));
            });
        }
    }
}

/// `count` samples of `n` elements, with a coefficient for each of these.
struct Samples<T, F, const N: usize, const K: usize> {
    ins: [*const T; N],
    c: [*const T; K],
    to: *mut T,
    count: usize,
    n: usize,
    formula: PhantomData<F>,
}

impl<T: Lane, F: Formula<N, K>, const N: usize, const K: usize> WithSimd for Samples<T, F, N, K> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for sample in 0..self.count {
            self.sample(s, sample * self.n);
        }
    }
}

impl<T: Lane, F: Formula<N, K>, const N: usize, const K: usize> Samples<T, F, N, K> {
    #[inline(always)]
    fn sample<S: Simd>(&self, s: S, at: usize) {
        // SAFETY: the caller's arrays, and the repeated coefficients, hold `n` elements.
        unsafe {
            for_lanes!(self.n, |i, count| {
                let mut x = [T::splat(s, T::ZERO); N];
                for k in 0..N {
                    x[k] = T::get(s, self.ins[k].add(at + i), count);
                }
                let mut c = [T::splat(s, T::ZERO); K];
                for k in 0..K {
                    c[k] = T::get(s, self.c[k].add(i), count);
                }
                T::put(s, self.to.add(at + i), count, F::at::<T, S>(s, x, c));
            });
        }
    }
}

fn channel_axes(rank: usize) -> Vec<usize> {
    (0..rank).filter(|&a| a != 1).collect()
}

/// (x, scale, bias) -> (y, mean, biased variance, 1 / sqrt(variance + epsilon)).
struct Train {
    epsilon: f64,
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
struct Slots(Vec<f64>);

impl Slots {
    fn fill(
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
    fn compute<T: Lane + Store>(
        &self,
        x: &Array,
        scale: &[f64],
        bias: &[f64],
        out: &[Array],
    ) -> Result<()> {
        let rows = Rows::new(x, &channel_axes(x.rank()))?;
        let planes = channel_sums::Planes::of(x);
        let statistics = Slots::fill(2 * rows.outputs, 2 * rows.grain(), |range, part| {
            if let Some(planes) = planes {
                let (x, first) = (x.as_ptr::<T>(), range.start / 2);
                return dispatch(channel_sums::Statistics { planes, x, first, found: part });
            }
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
        let mean: Vec<f64> = statistics.iter().copied().step_by(2).collect();
        let inverse: Vec<f64> = statistics
            .iter()
            .copied()
            .skip(1)
            .step_by(2)
            .map(|var| 1.0 / (var + self.epsilon).sqrt())
            .collect();
        for c in 0..rows.outputs {
            // SAFETY: one place for each channel.
            unsafe {
                mean[c].store(&out[1], c);
                statistics[2 * c + 1].store(&out[2], c);
                inverse[c].store(&out[3], c);
            }
        }
        let a: Vec<f64> = scale.iter().zip(&inverse).map(|(s, r)| s * r).collect();
        affine::<T>(x, &mean, &a, bias, &out[0])
    }
}

/// (x, scale, mean, inv_std, g) -> (dx, dscale, db) of training: with d = x - mean rounded to the
/// dtype, sums in f64 through 16 lanes, db = sum g, dscale = inv_std sum fma(g, d), and
/// dx = a fma(-d, q, g - k) with k = db / n, q = inv_std dscale / n and a = scale inv_std rounded.
struct Grad;

impl Kernel for Grad {
    fn name(&self) -> &'static str {
        "BatchNormGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 5, 5)?;
        check(self.name(), &inputs, &[1, 2, 3])?;
        inputs.same_dtype(&[0, 1, 2, 3, 4])?;
        let (x, g) = (inputs.get(0), inputs.get(4));
        if x.shape != g.shape {
            let got = format!("{:?} and {:?}", x.shape, g.shape);
            return Err(Error::shape(self.name(), "x and g of one shape", got));
        }
        let each = inputs.get(1);
        Ok(smallvec![x.clone(), each.clone(), each.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| match i[0].dtype() {
            DType::F64 => gradient::<f64>(&i[0], &i[4], [1, 2, 3].map(|k| values(&i[k])), out),
            _ => gradient::<f32>(&i[0], &i[4], [1, 2, 3].map(|k| values(&i[k])), out),
        })
    }

    fn single_output(&self) -> bool {
        false
    }
}

fn gradient<T: Lane + Store>(
    x: &Array,
    g: &Array,
    [scale, mean, inverse]: [Vec<f64>; 3],
    out: &[Array],
) -> Result<()> {
    let (x, g) = (x.to_contiguous()?, g.to_contiguous()?);
    let axes = channel_axes(x.rank());
    let (rows, rows_g) = (Rows::new(&x, &axes)?, Rows::new(&g, &axes)?);
    let n = rows.count;
    let whole = channel_sums::Planes::of(&x);
    let sums = Slots::fill(2 * rows.outputs, 2 * rows.grain(), |range, part| {
        if let Some(planes) = whole {
            let (x, g, first) = (x.as_ptr::<T>(), g.as_ptr::<T>(), range.start / 2);
            let means = &mean[..];
            dispatch(channel_sums::Moments { planes, x, g, means, first, found: &mut *part });
            for (k, pair) in part.chunks_exact_mut(2).enumerate() {
                pair[1] *= inverse[first + k];
            }
            return;
        }
        let (source, source_g) = (Source::rows(&rows.view), Source::rows(&rows_g.view));
        let (mut slot, mut slot_g) = (Slot::new(), Slot::new());
        for (k, pair) in part.chunks_exact_mut(2).enumerate() {
            let c = range.start / 2 + k;
            let mut lanes = [[0.0; LANES]; 2];
            let mut at = c * n;
            while at < (c + 1) * n {
                // The two arrays have one layout, so one length fits both.
                let len = source.piece(at, (c + 1) * n - at);
                let x = source.block(at, len, &mut slot, &mut (usize::MAX, 0)).cast::<T>();
                let g = source_g.block(at, len, &mut slot_g, &mut (usize::MAX, 0)).cast::<T>();
                dispatch(Moments { x, g, n: len, mean: T::from_f64(mean[c]), lanes: &mut lanes });
                at += len;
            }
            pair[0] = tree(lanes[0]);
            pair[1] = inverse[c] * tree(lanes[1]);
        }
    });
    let count = n as f64;
    let channels = rows.outputs;
    let column = |f: &dyn Fn(usize) -> f64| (0..channels).map(f).collect::<Vec<f64>>();
    for c in 0..channels {
        // SAFETY: one place for each channel.
        unsafe {
            sums[2 * c + 1].store(&out[1], c);
            sums[2 * c].store(&out[2], c);
        }
    }
    let k = column(&|c| sums[2 * c] / count);
    let q = column(&|c| inverse[c] * sums[2 * c + 1] / count);
    let a = column(&|c| scale[c] * inverse[c]);
    planes::<T, InputGradient, 2, 4>([&x, &g], [&mean, &k, &q, &a], &out[0]);
    Ok(())
}

/// Lanes of sum g and sum fma(g, x - mean).
struct Moments<'a, T> {
    x: *const T,
    g: *const T,
    n: usize,
    mean: T,
    lanes: &'a mut [[f64; LANES]; 2],
}

impl<T: Lane> WithSimd for Moments<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mean = T::splat(s, self.mean);
        let [sums, products] = self.lanes;
        // SAFETY: pieces of `n` elements, and arrays of 16.
        unsafe {
            let (mut sum, mut product) = (s.load_d(sums.as_ptr()), s.load_d(products.as_ptr()));
            for_lanes!(self.n, |i, count| {
                let g = T::widen(s, T::get(s, self.g.add(i), count));
                let d = T::widen(s, T::v_sub(s, T::get(s, self.x.add(i), count), mean));
                // Beyond the end g is 0, and adding 0 times a finite number changes no sum. An
                // infinite or NaN mean has made all sums NaN already.
                sum = s.add_d(sum, g);
                product = s.fma_d(g, d, product);
            });
            s.store_d(sums.as_mut_ptr(), sum);
            s.store_d(products.as_mut_ptr(), product);
        }
    }
}
