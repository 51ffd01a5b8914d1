//! Convolutions with one input and one output channel in each group: eight rows of one vector at a
//! time, each tap's row read where it lies.

use super::engine::Convolution;
use super::geometry::AXES;
use super::source::{Form, Layout, copy_row};
use crate::kernels::epilogue::{Area, Finish, Tail};
use crate::kernels::gemm::real::Real;
use crate::simd::{LANES, Simd, WithSimd};

/// Output rows of one tile; rows below the last one are computed on what lies behind the copy and
/// not stored.
pub(super) const ROWS: usize = 8;
/// The step of convolutions whose taps are every second element of every second row.
const BY_TWO: [usize; AXES] = [1, 2, 2];
/// Rows of a tile when fewer are left.
const FEW: usize = 4;

/// The units (images times channels) of one part.
pub(super) struct Depthwise<'a, E> {
    pub(super) convolution: &'a Convolution<'a, E>,
    pub(super) layout: &'a Layout,
    /// One weight for each tap, group after group.
    pub(super) weights: *const E,
    pub(super) table: *const u32,
    /// Room for one padded channel and [`slack`] behind it.
    pub(super) copy: *mut E,
    pub(super) units: (usize, usize),
}

/// How the channels are copied: rows of which every second element is read stay whole.
pub(super) fn form(source_step: [usize; AXES]) -> Form {
    Form { in_place: false, phases: source_step != BY_TWO }
}

/// Elements that tiles may read behind the copied channel.
pub(super) fn slack(layout: &Layout) -> usize {
    2 * (ROWS * layout.extents[2] + LANES)
}

impl<E: Real> WithSimd for Depthwise<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let c = self.convolution;
        let taps = c.classes[0].tap_count();
        let [depth, height, width] = c.destination_sizes;
        let [_, pitch_height, pitch] = self.layout.extents;
        let size: usize = c.source_sizes.iter().product();
        let three = taps == 9 && self.is_square(3, pitch);
        let by_two = c.source_step == BY_TWO;
        let apart = if by_two { 2 } else { 1 };
        let finish = c.epilogue.map(|e| e.finish);
        let (mut rows, mut step) = (Vec::new(), 1);
        self.layout.for_rows(|from, every, to, count| {
            step = every;
            rows.push(Row { from, to, count });
        });
        // SAFETY: the copy's room; its padding stays as it is for all units.
        unsafe {
            let room = self.layout.channel + slack(self.layout);
            std::slice::from_raw_parts_mut(self.copy, room).fill(E::default());
        }
        for unit in self.units.0..self.units.1 {
            let group = unit % c.groups;
            // SAFETY: the convolution's addresses; the copy has slack behind it.
            unsafe {
                self.fill(s, &rows, step, c.source.add(unit * size));
                let weights = self.weights.add(group * taps);
                let start = c.bias.map_or(E::default(), |bias| *bias.add(group));
                let to = c.destination.add(unit * depth * height * width);
                let mut t = Tile {
                    from: self.copy,
                    weights,
                    start,
                    to,
                    pitch,
                    width,
                    rows: 0,
                    n: 0,
                    relu: c.relu,
                    finish: finish.map(|f| f.at(group)),
                };
                for d in 0..depth {
                    let mut h = 0;
                    while h < height {
                        let few = height - h <= FEW;
                        t.rows = (height - h).min(ROWS);
                        let mut column = 0;
                        while column < width {
                            t.n = (width - column).min(LANES);
                            t.from = self
                                .copy
                                .add((d * pitch_height + apart * h) * pitch + apart * column);
                            t.to = to.add((d * height + h) * width + column);
                            let table = self.table;
                            match (three, by_two, few) {
                                (true, false, true) => t.three::<S, FEW, 1>(s),
                                (true, false, false) => t.three::<S, ROWS, 1>(s),
                                (true, true, true) => t.three::<S, FEW, 2>(s),
                                (true, true, false) => t.three::<S, ROWS, 2>(s),
                                (false, false, true) => t.any::<S, FEW, 1>(s, table, taps),
                                (false, false, false) => t.any::<S, ROWS, 1>(s, table, taps),
                                (false, true, true) => t.any::<S, FEW, 2>(s, table, taps),
                                (false, true, false) => t.any::<S, ROWS, 2>(s, table, taps),
                            }
                            if let Some(Tail { rest: Some(rest), .. }) = c.epilogue {
                                let (at, stride, n) = (t.to.cast(), width, t.n);
                                let (rows, channel, channel_step) = (t.rows, group, 0);
                                let area = Area { at, stride, rows, n, channel, channel_step };
                                rest.apply(S::ISA, area);
                            }
                            column += LANES;
                        }
                        h += ROWS;
                    }
                }
            }
        }
    }
}

impl<E: Real> Depthwise<'_, E> {
    /// Whether the taps are `k` neighbours in each of `k` neighbouring rows of the copy.
    fn is_square(&self, k: usize, pitch: usize) -> bool {
        // SAFETY: the table has an entry for each of the `k * k` taps.
        (0..k * k).all(|t| unsafe { *self.table.add(t) } as usize == t / k * pitch + t % k)
    }

    /// Copies a channel's elements between the padding.
    #[inline(always)]
    unsafe fn fill<S: Simd>(&self, s: S, rows: &[Row], step: usize, source: *const E) {
        for row in rows {
            // SAFETY: the row exists on both sides.
            unsafe {
                let (from, to) = (source.add(row.from), self.copy.add(row.to));
                if step == 1 {
                    let mut i = 0;
                    while i + LANES <= row.count {
                        E::store(s, to.add(i), E::load(s, from.add(i)));
                        i += LANES;
                    }
                    if i < row.count {
                        let n = row.count - i;
                        E::store_n(s, to.add(i), n, E::load_n(s, from.add(i), n));
                    }
                } else {
                    copy_row(from, step, to, row.count);
                }
            }
        }
    }
}

/// A row between the padding: offsets in the source and in the copy.
struct Row {
    from: usize,
    to: usize,
    count: usize,
}

/// `rows` rows of `n` outputs.
struct Tile<E> {
    from: *const E,
    weights: *const E,
    start: E,
    to: *mut E,
    pitch: usize,
    width: usize,
    rows: usize,
    n: usize,
    relu: bool,
    finish: Option<Finish<E>>,
}

impl<E: Real> Tile<E> {
    /// Sixteen elements, `BY` apart (1 or 2).
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn load<S: Simd, const BY: usize>(s: S, from: *const E) -> E::V<S> {
        // SAFETY: the caller's promise.
        unsafe { if BY == 2 { E::load_even(s, from) } else { E::load(s, from) } }
    }

    /// Taps by the table, of outputs that lie `BY` apart in the copy.
    #[inline(always)]
    unsafe fn any<S: Simd, const R: usize, const BY: usize>(
        &self,
        s: S,
        table: *const u32,
        taps: usize,
    ) {
        let mut acc = [E::splat(s, self.start); R];
        // SAFETY: the copy's rows and the slack behind them.
        unsafe {
            for tap in 0..taps {
                let w = E::splat(s, *self.weights.add(tap));
                let x = self.from.add(*table.add(tap) as usize);
                for r in 0..R {
                    let x = Self::load::<S, BY>(s, x.add(BY * r * self.pitch));
                    acc[r] = E::v_fma(s, x, w, acc[r]);
                }
            }
            self.store::<S, R>(s, acc);
        }
    }

    /// Three by three neighbours, of outputs that lie `BY` apart in the copy: each row of the copy is
    /// read once for the rows of outputs that need it.
    #[inline(always)]
    unsafe fn three<S: Simd, const R: usize, const BY: usize>(&self, s: S) {
        let mut acc = [E::splat(s, self.start); R];
        // SAFETY: nine weights; the copy's rows and the slack behind them.
        unsafe {
            let mut w = [E::splat(s, self.start); 9];
            for t in 0..9 {
                w[t] = E::splat(s, *self.weights.add(t));
            }
            macro_rules! rows {
                ($($i:literal)*) => {$(
                    if $i < BY * (R - 1) + 3 {
                        let row = self.from.add($i * self.pitch);
                        let x = [
                            Self::load::<S, BY>(s, row),
                            Self::load::<S, BY>(s, row.add(1)),
                            Self::load::<S, BY>(s, row.add(2)),
                        ];
                        for r in 0..R {
                            if $i >= BY * r && $i - BY * r < 3 {
                                for j in 0..3 {
                                    acc[r] = E::v_fma(s, x[j], w[3 * ($i - BY * r) + j], acc[r]);
                                }
                            }
                        }
                    }
                )*};
            }
            rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
            self.store::<S, R>(s, acc);
        }
    }

    #[inline(always)]
    unsafe fn store<S: Simd, const R: usize>(&self, s: S, mut acc: [E::V<S>; R]) {
        if let Some(finish) = &self.finish {
            if let Some(affine) = finish.affine {
                // SAFETY: the tile's channel.
                let [mean, factor, offset] = unsafe { finish.channel(s, affine, 0) };
                for r in 0..R {
                    acc[r] = E::v_fma(s, E::v_sub(s, acc[r], mean), factor, offset);
                }
            }
            if let Some(distance) = finish.residual {
                let from = self.to.wrapping_offset(distance).cast_const();
                for r in 0..R {
                    if r < self.rows {
                        // SAFETY: the other input has elements where the outputs are.
                        let other =
                            unsafe { E::load_n(s, from.wrapping_add(r * self.width), self.n) };
                        acc[r] = E::v_add(s, acc[r], other);
                    }
                }
            }
            if let Some([low, high]) = finish.clip {
                for r in 0..R {
                    acc[r] = E::v_clip(s, acc[r], low, high);
                }
            }
        }
        if self.relu {
            for r in 0..R {
                acc[r] = E::relu(s, acc[r]);
            }
        }
        for r in 0..R {
            if r == self.rows {
                return;
            }
            let to = self.to.wrapping_add(r * self.width);
            // SAFETY: one of the tile's rows.
            unsafe {
                if self.n == LANES {
                    E::store(s, to, acc[r]);
                } else {
                    E::store_n(s, to, self.n, acc[r]);
                }
            }
        }
    }
}
