//! The forward pass of one layer.

use super::activation::Gate;
use super::sequence::{Cell, Direction, Sizes, rows_of_part};
use super::step::{Rows, Step};
use super::weights::Weights;
use super::{gru, lstm, rnn};
use crate::error::Result;
use crate::kernels::gemm::matrix::{Matrix, Shared};
use crate::kernels::gemm::microkernel::Start;
use crate::kernels::gemm::packing::PackedB;
use crate::kernels::gemm::product::{Product, Right, try_for_each};
use crate::scratch::Scratch;
use crate::simd::{dispatch, isa};

/// The operands of a forward pass. All arrays are contiguous.
pub(super) struct Forward<'a, E> {
    pub(super) operator: &'static str,
    pub(super) cell: Cell,
    pub(super) sizes: Sizes,
    pub(super) directions: &'a [Direction],
    pub(super) clip: Option<f64>,
    /// (T, B, I).
    pub(super) x: *const E,
    /// (D, B, H), or null for zeros.
    pub(super) h0: *const E,
    pub(super) c0: *const E,
    pub(super) lengths: Option<&'a [usize]>,
    /// Peephole weights (D, 3H), or null.
    pub(super) peephole: *const E,
    /// Element (t, b, d, j) at `t * y_step + b * y_row + d * y_direction + j`.
    pub(super) y: *mut E,
    pub(super) y_step: usize,
    pub(super) y_row: usize,
    pub(super) y_direction: usize,
    /// (D, B, H).
    pub(super) h_n: *mut E,
    pub(super) c_n: *mut E,
    /// (D, T, B, saved blocks * H), or null when nothing is kept.
    pub(super) saved: *mut E,
}

/// A part of the batch in one direction.
struct Part<E> {
    direction: usize,
    first: usize,
    rows: usize,
    /// Of step 0, row 0 of the batch.
    gates: *mut E,
    stride: usize,
}

impl<E: Gate> Forward<'_, E> {
    pub(super) fn run(&self, weights: &[Weights<E>]) -> Result<()> {
        let Sizes { steps, batch, input, hidden } = self.sizes;
        let cell = self.cell;
        let keep = !self.saved.is_null();
        let stride = hidden * if keep { cell.saved() } else { cell.gates() };
        let all = steps * batch;
        let per_direction = all * stride;
        let room = if keep { 0 } else { self.directions.len() * per_direction * size_of::<E>() };
        let mut scratch = Scratch::new(self.operator, room)?;
        let gates = if keep { self.saved } else { scratch.as_mut::<E>().as_mut_ptr() };
        for (d, w) in weights.iter().enumerate() {
            let product = Product {
                m: all,
                n: cell.gates() * hidden,
                k: input,
                a: Matrix::new(self.x, input as isize, 1),
                b: Right::Packed(&w.ih),
                start: w.start(),
                c: gates.wrapping_add(d * per_direction),
                c_rows: stride as isize,
                c_columns: 1,
                relu: false,
                epilogue: None,
            };
            // SAFETY: x has `all` rows of `input`, the gates `all` rows of `stride` elements.
            unsafe { product.run(self.operator, isa())? };
        }
        let rows = rows_of_part(batch);
        let chunks = batch.div_ceil(rows);
        let job = Shared::new((std::ptr::from_ref(self), gates, std::ptr::from_ref(weights)));
        try_for_each(self.directions.len() * chunks, |part| {
            let (this, gates, weights) = job.get();
            let (d, first) = (part / chunks, part % chunks * rows);
            // SAFETY: both outlive the region; parts write rows of their own.
            unsafe {
                let part = Part {
                    direction: d,
                    first,
                    rows: rows.min(batch - first),
                    gates: gates.add(d * per_direction),
                    stride,
                };
                (*this).part(&part, &(&*weights)[d])
            }
        })
    }

    /// # Safety
    /// The part's rows belong to no other thread.
    unsafe fn part(&self, part: &Part<E>, weights: &Weights<E>) -> Result<()> {
        let Sizes { steps, batch, hidden, .. } = self.sizes;
        let state = part.rows * hidden;
        let mut scratch = Scratch::new(self.operator, 3 * state * size_of::<E>())?;
        let h = scratch.as_mut::<E>().as_mut_ptr();
        let (c, extra) = (h.wrapping_add(state), h.wrapping_add(2 * state));
        let own = (part.direction * batch + part.first) * hidden;
        // SAFETY: the scratch holds three states; initial and last states are (D, B, H).
        unsafe {
            for (to, from) in [(h, self.h0), (c, self.c0)] {
                if from.is_null() {
                    std::slice::from_raw_parts_mut(to, state).fill(E::default());
                } else {
                    std::ptr::copy_nonoverlapping(from.add(own), to, state);
                }
            }
            for s in 0..steps {
                let reverse = self.directions[part.direction].reverse;
                let t = if reverse { steps - 1 - s } else { s };
                self.step(part, weights, t, [h, c, extra])?;
            }
            std::ptr::copy_nonoverlapping(h, self.h_n.add(own), state);
            if !self.c_n.is_null() {
                std::ptr::copy_nonoverlapping(c, self.c_n.add(own), state);
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Forward::part`].
    unsafe fn step(
        &self,
        part: &Part<E>,
        weights: &Weights<E>,
        t: usize,
        [h, c, extra]: [*mut E; 3],
    ) -> Result<()> {
        let Sizes { batch, hidden, .. } = self.sizes;
        let (rows, stride) = (part.rows, part.stride);
        let keep = !self.saved.is_null();
        let functions = self.directions[part.direction].functions;
        let lengths = self.lengths.map_or(std::ptr::null(), |l| l[part.first..].as_ptr());
        let clip = self.clip;
        // SAFETY: rows `first..first + rows` of step t in each operand.
        unsafe {
            let gates = part.gates.add((t * batch + part.first) * stride);
            let y = self
                .y
                .add(t * self.y_step + part.first * self.y_row + part.direction * self.y_direction);
            let continued = Start::Load { ptr: gates.cast_const(), stride: stride as isize };
            self.product(h, rows, &weights.hh, continued, gates, stride)?;
            let step = Rows {
                count: rows,
                hidden,
                gates,
                stride,
                keep,
                h,
                y,
                y_row: self.y_row,
                lengths,
                t,
            };
            match (self.cell, &weights.hh_n) {
                (Cell::Lstm(order), _) => {
                    let peephole = if self.peephole.is_null() {
                        self.peephole
                    } else {
                        self.peephole.add(part.direction * 3 * hidden)
                    };
                    let cell = lstm::Forward { order, functions, clip, c, peephole };
                    dispatch(Step { rows: step, cell });
                }
                (Cell::Gru { order, reset_after }, Some(hh_n)) => {
                    let n_block = gates.add(2 * hidden);
                    let (product, product_row) =
                        if keep { (gates.add(3 * hidden), stride) } else { (extra, hidden) };
                    let pass = |phase| {
                        let cell =
                            gru::Forward { phase, order, functions, clip, product, product_row };
                        dispatch(Step { rows: step, cell });
                    };
                    if reset_after {
                        self.product(h, rows, hh_n, weights.start_n(), product, product_row)?;
                        pass(gru::Phase::Whole);
                    } else {
                        pass(gru::Phase::Reset);
                        let continued =
                            Start::Load { ptr: n_block.cast_const(), stride: stride as isize };
                        self.product(product, rows, hh_n, continued, n_block, stride)?;
                        pass(gru::Phase::Update);
                    }
                }
                _ => {
                    let cell = rnn::Forward { function: functions[0], clip };
                    dispatch(Step { rows: step, cell });
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// `a` holds `rows` rows of `hidden` elements, c `rows` rows of `b`'s columns.
    unsafe fn product(
        &self,
        a: *const E,
        rows: usize,
        b: &PackedB<E>,
        start: Start<E>,
        c: *mut E,
        c_rows: usize,
    ) -> Result<()> {
        let hidden = self.sizes.hidden;
        let product = Product {
            m: rows,
            n: b.n,
            k: hidden,
            a: Matrix::new(a, hidden as isize, 1),
            b: Right::Packed(b),
            start,
            c,
            c_rows: c_rows as isize,
            c_columns: 1,
            relu: false,
            epilogue: None,
        };
        // SAFETY: the caller's promise.
        unsafe { product.run(self.operator, isa()) }
    }
}
