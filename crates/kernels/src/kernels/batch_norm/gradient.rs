//! The gradients of batch normalisation by the batch's own statistics.

use super::channel_sums::{self, Planes};
use super::planes::{InputGradient, channels, planes};
use super::train::Slots;
use super::{channel_axes, check, values};
use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::blocks::{Slot, Source};
use crate::kernels::fold::{Rows, Store};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, for_lanes, tree};
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;

/// (x, scale, mean, inv_std, g) -> (dx, dscale, db) of training: with d = x - mean rounded to the
/// dtype, sums in f64 through 16 lanes, db = sum g, dscale = inv_std sum fma(g, d), and
/// dx = a fma(-d, q, g - k) with k = db / n, q = inv_std dscale / n and a = scale inv_std rounded.
pub(super) struct Grad;

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

    fn in_place(&self) -> &[(usize, usize)] {
        &[(4, 0)]
    }
}

/// The coefficients of a channel's elements, from sum g and inv_std sum fma(g, x - mean).
fn coefficients(
    [sum, product]: [f64; 2],
    count: f64,
    [scale, mean, inverse]: [f64; 3],
) -> [f64; 4] {
    [mean, sum / count, inverse * product / count, scale * inverse]
}

fn store(channel: usize, [sum, product]: [f64; 2], out: &[Array]) {
    // SAFETY: one place for each channel.
    unsafe {
        product.store(&out[1], channel);
        sum.store(&out[2], channel);
    }
}

fn gradient<T: Lane>(
    x: &Array,
    g: &Array,
    [scale, mean, inverse]: [Vec<f64>; 3],
    out: &[Array],
) -> Result<()> {
    let (x, g) = (x.to_contiguous()?, g.to_contiguous()?);
    let given = |c: usize| [scale[c], mean[c], inverse[c]];
    if let Some(planes) = Planes::of(&x) {
        // Sums and outputs of a few channels at a time, so that the outputs are computed from what
        // the sums left in the cache.
        let pointers = Shared::new((x.as_ptr::<T>(), g.as_ptr::<T>(), out[0].as_mut_ptr::<T>()));
        planes.for_each_group::<T>(2, |first, count| {
            let (x, g, dx) = pointers.get();
            let means = &mean[..];
            let mut found = [0.0; 2 * Planes::MOST];
            let found = &mut found[..2 * count];
            dispatch(channel_sums::Moments { planes, x, g, means, first, found: &mut *found });
            let mut c = [[T::ZERO; Planes::MOST]; 4];
            for (k, pair) in found.chunks_exact(2).enumerate() {
                let pair = [pair[0], inverse[first + k] * pair[1]];
                store(first + k, pair, out);
                let all = coefficients(pair, planes.count(), given(first + k));
                for (c, value) in c.iter_mut().zip(all) {
                    c[k] = T::from_f64(value);
                }
            }
            let c = [&c[0][..count], &c[1][..count], &c[2][..count], &c[3][..count]];
            channels::<T, InputGradient, 2, 4>(planes, first, [x, g], c, dx);
        });
        return Ok(());
    }
    let axes = channel_axes(x.rank());
    let (rows, rows_g) = (Rows::new(&x, &axes)?, Rows::new(&g, &axes)?);
    let n = rows.count;
    let sums = Slots::fill(2 * rows.outputs, 2 * rows.grain(), |range, part| {
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
    let mut columns = [const { Vec::new() }; 4];
    for (c, pair) in sums.chunks_exact(2).enumerate() {
        let pair = [pair[0], pair[1]];
        store(c, pair, out);
        for (column, value) in columns.iter_mut().zip(coefficients(pair, n as f64, given(c))) {
            column.push(value);
        }
    }
    let [m, k, q, a] = &columns;
    planes::<T, InputGradient, 2, 4>([&x, &g], [m, k, q, a], &out[0]);
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
