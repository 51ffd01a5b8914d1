//! Functions of a channel's coefficients over the planes of (N, C, …) arrays.

use super::channel_sums;
use crate::array::Array;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, for_lanes};
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use std::marker::PhantomData;

/// An element's output from its `N` inputs and its channel's `K` coefficients.
pub(super) trait Formula<const N: usize, const K: usize>: Copy {
    fn at<T: Lane, S: Simd>(s: S, x: [T::V<S>; N], c: [T::V<S>; K]) -> T::V<S>;
}

#[derive(Clone, Copy)]
pub(super) struct Affine;

impl Formula<1, 3> for Affine {
    #[inline(always)]
    fn at<T: Lane, S: Simd>(s: S, [x]: [T::V<S>; 1], [mean, a, b]: [T::V<S>; 3]) -> T::V<S> {
        T::v_fma(s, T::v_sub(s, x, mean), a, b)
    }
}

/// `a fma(-(x - mean), q, g - k)`.
#[derive(Clone, Copy)]
pub(super) struct InputGradient;

impl Formula<2, 4> for InputGradient {
    #[inline(always)]
    fn at<T: Lane, S: Simd>(s: S, [x, g]: [T::V<S>; 2], [m, k, q, a]: [T::V<S>; 4]) -> T::V<S> {
        let d = T::v_neg(s, T::v_sub(s, x, m));
        T::v_mul(s, a, T::v_fma(s, d, q, T::v_sub(s, g, k)))
    }
}

/// The formula over contiguous (N, C, …) arrays. An input may be the output.
pub(super) fn planes<T: Lane, F: Formula<N, K>, const N: usize, const K: usize>(
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

/// The formula over the planes of channels from `first` on, as many as each coefficient has values. An
/// input may be the output.
pub(super) fn channels<T: Lane, F: Formula<N, K>, const N: usize, const K: usize>(
    planes: channel_sums::Planes,
    first: usize,
    ins: [*const T; N],
    c: [&[T]; K],
    to: *mut T,
) {
    for at in planes.starts(first) {
        let (count, n) = (c[0].len(), planes.plane());
        let (ins, to) = (ins.map(|p| p.wrapping_add(at)), to.wrapping_add(at));
        dispatch(Planes::<T, F, N, K> { ins, c, to, first: 0, count, n, formula: PhantomData });
    }
}
