//! Convolutions with one input and one output channel in each group: four rows of one vector at a time,
//! each tap's row read where it lies.

use super::engine::Convolution;
use super::source::Layout;
use crate::kernels::epilogue::{Area, Finish, Tail};
use crate::kernels::gemm::real::Real;
use crate::simd::{LANES, Simd, WithSimd};

/// Output rows of one tile.
const ROWS: usize = 4;

/// The units (images times channels) of one part.
pub(super) struct Depthwise<'a, E> {
    pub(super) convolution: &'a Convolution<'a, E>,
    pub(super) layout: &'a Layout,
    /// One weight for each tap, group after group.
    pub(super) weights: *const E,
    pub(super) table: *const u32,
    pub(super) copy: *mut E,
    pub(super) units: (usize, usize),
}

impl<E: Real> WithSimd for Depthwise<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let c = self.convolution;
        let taps = c.classes[0].tap_count();
        let [depth, height, width] = c.destination_sizes;
        let [_, pitch_height, pitch] = self.layout.extents;
        let finish = c.epilogue.map(|e| e.finish);
        for unit in self.units.0..self.units.1 {
            let group = unit % c.groups;
            // SAFETY: the convolution's addresses; the copy has slack behind it.
            unsafe {
                c.copy_source(self.layout, unit, self.copy, 0, 1);
                let weights = self.weights.add(group * taps);
                let finish = finish.map(|f| f.at(group));
                let start = c.bias.map_or(E::default(), |bias| *bias.add(group));
                let to = c.destination.add(unit * depth * height * width);
                for d in 0..depth {
                    let mut h = 0;
                    while h < height {
                        let rows = if height - h >= ROWS { ROWS } else { 1 };
                        let from = self.copy.add((d * pitch_height + h) * pitch).cast_const();
                        let to = to.add((d * height + h) * width);
                        let mut column = 0;
                        while column < width {
                            let n = (width - column).min(LANES);
                            let (from, to) = (from.add(column), to.add(column));
                            let strides = (pitch, width);
                            if rows == ROWS {
                                self.tile::<S, ROWS>(
                                    s, from, weights, taps, start, to, strides, n, finish,
                                );
                            } else {
                                self.tile::<S, 1>(
                                    s, from, weights, taps, start, to, strides, n, finish,
                                );
                            }
                            if let Some(Tail { rest: Some(rest), .. }) = c.epilogue {
                                let (at, stride) = (to.cast(), width);
                                let (channel, channel_step) = (group, 0);
                                let area = Area { at, stride, rows, n, channel, channel_step };
                                rest.apply(S::ISA, area);
                            }
                            column += LANES;
                        }
                        h += rows;
                    }
                }
            }
        }
    }
}

impl<E: Real> Depthwise<'_, E> {
    #[inline(always)]
    unsafe fn tile<S: Simd, const R: usize>(
        &self,
        s: S,
        from: *const E,
        weights: *const E,
        taps: usize,
        start: E,
        to: *mut E,
        (pitch, width): (usize, usize),
        n: usize,
        finish: Option<Finish<E>>,
    ) {
        let mut acc = [E::splat(s, start); R];
        // SAFETY: the caller's rows; whole vectors may be read, `n` elements are written.
        unsafe {
            for tap in 0..taps {
                let w = E::splat(s, *weights.add(tap));
                let x = from.add(*self.table.add(tap) as usize);
                for r in 0..R {
                    acc[r] = E::fma(s, E::load(s, x.add(r * pitch)), w, acc[r]);
                }
            }
            if let Some(finish) = finish {
                for (r, y) in acc.iter_mut().enumerate() {
                    let to = to.add(r * width);
                    *y = finish.on::<S>(s, *y, |p| E::splat(s, *p), to, n);
                }
            }
            for (r, y) in acc.iter_mut().enumerate() {
                if self.convolution.relu {
                    *y = E::relu(s, *y);
                }
                let to = to.add(r * width);
                if n == LANES { E::store(s, to, *y) } else { E::store_n(s, to, n, *y) }
            }
        }
    }
}
