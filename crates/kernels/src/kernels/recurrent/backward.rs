//! The backward pass of one layer: through time for the gates, then whole products for the weights.

use super::activation::Gate;
use super::sequence::{Before, Cell, Direction, Sizes, before, rows_of_part};
use super::{gru, lstm, rnn};
use crate::error::Result;
use crate::kernels::gemm::matrix::{Matrix, Shared};
use crate::kernels::gemm::microkernel::Start;
use crate::kernels::gemm::packing::PackedB;
use crate::kernels::gemm::product::{Product, Right, try_for_each};
use crate::scratch::Scratch;
use crate::simd::{PlainLoop, Simd, WithSimd, dispatch, isa, vectorized_wide};

/// Rows of a sequence from which the weights' gradients are computed transposed.
const LONG: usize = 2048;

/// Where the gradients of one direction's parameters go.
#[derive(Clone, Copy)]
pub(super) struct Gradients<E> {
    pub(super) ih: *mut E,
    pub(super) hh: *mut E,
    /// Both, or both null.
    pub(super) b_ih: *mut E,
    pub(super) b_hh: *mut E,
}

/// The operands of a backward pass; all arrays are contiguous, absent ones null. Shapes are those
/// of [`super::forward::Forward`], y being (T, B, D * H).
pub(super) struct Backward<'a, E> {
    pub(super) operator: &'static str,
    pub(super) cell: Cell,
    pub(super) relu: bool,
    pub(super) sizes: Sizes,
    pub(super) directions: &'a [Direction],
    pub(super) x: *const E,
    pub(super) h0: *const E,
    pub(super) c0: *const E,
    pub(super) lengths: Option<&'a [usize]>,
    pub(super) y: *const E,
    pub(super) saved: *const E,
    pub(super) dy: *const E,
    pub(super) dh_n: *const E,
    pub(super) dc_n: *const E,
    /// Of each direction, (GH, I) and (GH, H).
    pub(super) ih: &'a [*const E],
    pub(super) hh: &'a [*const E],
    pub(super) dx: *mut E,
    pub(super) dh0: *mut E,
    pub(super) dc0: *mut E,
    pub(super) gradients: &'a [Gradients<E>],
}

/// Rows of one step of one direction.
struct Step<'a, E> {
    pass: &'a Backward<'a, E>,
    direction: usize,
    first: usize,
    rows: usize,
    t: usize,
    /// Row (t, b) of the direction at `(t * batch + b) * blocks * hidden`.
    dgates: *mut E,
    dh: *const E,
    dc: *mut E,
    next: *mut E,
}

impl<E: Gate> WithSimd for Step<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for row in 0..self.rows {
            // SAFETY: a row of the part.
            unsafe { self.row(s, row) };
        }
    }
}

/// The sums of rows, each a chain from +0.0.
struct ColumnSums<'a, E> {
    from: *const E,
    rows: usize,
    stride: usize,
    to: &'a mut [E],
}

impl<E: Gate> PlainLoop for ColumnSums<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.to.fill(E::default());
        for row in 0..self.rows {
            for j in 0..self.to.len() {
                // SAFETY: every row has the sums' columns.
                let x = unsafe { *self.from.add(row * self.stride + j) };
                self.to[j] = self.to[j].add(x);
            }
        }
    }
}

impl<E: Gate> Step<'_, E> {
    #[inline(always)]
    unsafe fn row<S: Simd>(&self, s: S, row: usize) {
        let pass = self.pass;
        let Sizes { steps, batch, hidden, .. } = pass.sizes;
        let (d, b) = (self.direction, self.first + row);
        let width = pass.directions.len() * hidden;
        let length = pass.lengths.map_or(steps, |l| l[b]);
        let earlier = before(self.t, length, pass.directions[d].reverse);
        let blocks = pass.blocks() * hidden;
        let saved_row = pass.cell.saved() * hidden;
        // SAFETY: each address is a row of its operand.
        unsafe {
            let dgates = self.dgates.add((self.t * batch + b) * blocks);
            let Some(state) = pass.state_before(earlier, d, b) else {
                std::slice::from_raw_parts_mut(dgates, blocks).fill(E::default());
                return;
            };
            let saved = pass.saved.add(((d * steps + self.t) * batch + b) * saved_row);
            let dy = if pass.dy.is_null() {
                pass.dy
            } else {
                pass.dy.add((self.t * batch + b) * width + d * hidden)
            };
            let dh = self.dh.add(row * hidden);
            match pass.cell {
                Cell::Lstm(_) => {
                    let c_before = match earlier {
                        Before::Step(p) => {
                            pass.saved.add(((d * steps + p) * batch + b) * saved_row + 4 * hidden)
                        }
                        _ if pass.c0.is_null() => pass.c0,
                        _ => pass.c0.add((d * batch + b) * hidden),
                    };
                    let dc = self.dc.add(row * hidden);
                    lstm::BackStep { hidden, saved, c_before, dy, dh, dc, dgates }.row(s);
                }
                Cell::Gru { .. } => {
                    let direct = self.next.add(row * hidden);
                    gru::BackStep { hidden, saved, h_before: state, dy, dh, direct, dgates }.row(s);
                }
                Cell::Rnn => {
                    rnn::BackStep { hidden, relu: pass.relu, saved, dy, dh, dgates }.row(s);
                }
            }
        }
    }
}

impl<E: Gate> Backward<'_, E> {
    /// Blocks of a row of gate gradients; a GRU has a fourth one for the product of h with n.
    fn blocks(&self) -> usize {
        if matches!(self.cell, Cell::Gru { .. }) { 4 } else { self.cell.gates() }
    }

    /// The row of h before a step (null for zeros); `None` where the row takes no part.
    unsafe fn state_before(&self, earlier: Before, d: usize, b: usize) -> Option<*const E> {
        let Sizes { batch, hidden, .. } = self.sizes;
        let width = self.directions.len() * hidden;
        // SAFETY: a row of y or of the initial state.
        unsafe {
            match earlier {
                Before::Inactive => None,
                Before::Step(p) => Some(self.y.add((p * batch + b) * width + d * hidden)),
                Before::Initial if self.h0.is_null() => Some(self.h0),
                Before::Initial => Some(self.h0.add((d * batch + b) * hidden)),
            }
        }
    }

    pub(super) fn run(&self) -> Result<()> {
        let Sizes { steps, batch, hidden, .. } = self.sizes;
        let op = self.operator;
        let columns = self.cell.gates() * hidden;
        let per_direction = steps * batch * self.blocks() * hidden;
        let mut scratch = Scratch::new(op, self.directions.len() * per_direction * size_of::<E>())?;
        let dgates = scratch.as_mut::<E>().as_mut_ptr();
        let mut packed = Vec::with_capacity(self.hh.len());
        for &hh in self.hh {
            let matrix = Matrix::new(hh, hidden as isize, 1);
            // SAFETY: hh is (gates * H, H).
            packed.push(unsafe { PackedB::new(op, isa(), matrix, columns, hidden)? });
        }
        let rows = rows_of_part(batch);
        let chunks = batch.div_ceil(rows);
        let job = Shared::new((std::ptr::from_ref(self), dgates, packed.as_ptr()));
        try_for_each(self.directions.len() * chunks, |part| {
            let (this, dgates, packed) = job.get();
            let (d, first) = (part / chunks, part % chunks * rows);
            // SAFETY: all outlive the region; parts write rows of their own.
            unsafe {
                let dgates = dgates.add(d * per_direction);
                (*this).through_time(d, first, rows.min(batch - first), dgates, &*packed.add(d))
            }
        })?;
        let x = self.masked_x()?;
        for d in 0..self.directions.len() {
            let dgates = dgates.wrapping_add(d * per_direction);
            // SAFETY: the operands' rows are those of the pass.
            unsafe { self.parameters(d, dgates, x.as_ref().map_or(self.x, |x| x.as_ptr()))? };
        }
        Ok(())
    }

    /// # Safety
    /// The rows belong to no other thread.
    unsafe fn through_time(
        &self,
        d: usize,
        first: usize,
        rows: usize,
        dgates: *mut E,
        hh: &PackedB<E>,
    ) -> Result<()> {
        let Sizes { steps, batch, hidden, .. } = self.sizes;
        let state = rows * hidden;
        let mut scratch = Scratch::new(self.operator, 3 * state * size_of::<E>())?;
        let mut dh = scratch.as_mut::<E>().as_mut_ptr();
        let dc = dh.wrapping_add(state);
        let mut next = dh.wrapping_add(2 * state);
        let own = (d * batch + first) * hidden;
        let blocks = self.blocks() * hidden;
        let is_gru = matches!(self.cell, Cell::Gru { .. });
        // SAFETY: the scratch holds three states, the other operands the rows of the part.
        unsafe {
            for (to, from) in [(dh, self.dh_n), (dc, self.dc_n)] {
                if from.is_null() {
                    std::slice::from_raw_parts_mut(to, state).fill(E::default());
                } else {
                    std::ptr::copy_nonoverlapping(from.add(own), to, state);
                }
            }
            for s in (0..steps).rev() {
                let t = if self.directions[d].reverse { steps - 1 - s } else { s };
                std::slice::from_raw_parts_mut(next, state).fill(E::default());
                dispatch(Step { pass: self, direction: d, first, rows, t, dgates, dh, dc, next });
                let a = dgates.add((t * batch + first) * blocks).cast_const();
                let start = if is_gru {
                    Start::Load { ptr: next.cast_const(), stride: hidden as isize }
                } else {
                    Start::Zero
                };
                self.chain(a, rows, hh, start, next, is_gru)?;
                match self.lengths {
                    None => std::mem::swap(&mut dh, &mut next),
                    Some(lengths) => {
                        for row in (0..rows).filter(|r| t < lengths[first + r]) {
                            let (from, to) = (next.add(row * hidden), dh.add(row * hidden));
                            std::ptr::copy_nonoverlapping(from, to, hidden);
                        }
                    }
                }
            }
            std::ptr::copy_nonoverlapping(dh, self.dh0.add(own), state);
            if !self.dc0.is_null() {
                std::ptr::copy_nonoverlapping(dc, self.dc0.add(own), state);
            }
        }
        Ok(())
    }

    /// `next = start + dgates hh`, over all gate rows ascending. A GRU's last block is that of the
    /// product, which stands behind the gates' own three.
    unsafe fn chain(
        &self,
        a: *const E,
        rows: usize,
        hh: &PackedB<E>,
        start: Start<E>,
        next: *mut E,
        is_gru: bool,
    ) -> Result<()> {
        let hidden = self.sizes.hidden;
        let blocks = self.blocks() * hidden;
        // SAFETY: as the caller's.
        unsafe {
            let mut gathered;
            let (a, stride) = if is_gru {
                gathered = Scratch::new(self.operator, rows * 3 * hidden * size_of::<E>())?;
                let to = gathered.as_mut::<E>().as_mut_ptr();
                for row in 0..rows {
                    let (from, to) = (a.add(row * blocks), to.add(row * 3 * hidden));
                    std::ptr::copy_nonoverlapping(from, to, 2 * hidden);
                    let (from, to) = (from.add(3 * hidden), to.add(2 * hidden));
                    std::ptr::copy_nonoverlapping(from, to, hidden);
                }
                (to.cast_const(), 3 * hidden)
            } else {
                (a, blocks)
            };
            Product {
                m: rows,
                n: hidden,
                k: hh.k,
                a: Matrix::new(a, stride as isize, 1),
                b: Right::Packed(hh),
                start,
                c: next,
                c_rows: hidden as isize,
                c_columns: 1,
                relu: false,
                epilogue: None,
            }
            .run(self.operator, isa())
        }
    }

    /// x with zeros where a row takes no part, so that 0 * inf cannot come into the weights'
    /// gradients; `None` when all rows are full.
    fn masked_x(&self) -> Result<Option<crate::array::Array>> {
        let Some(lengths) = self.lengths else { return Ok(None) };
        let Sizes { steps, batch, input, .. } = self.sizes;
        let out = crate::array::Array::zeros(self.operator, E::DTYPE, &[steps, batch, input])?;
        let to = out.as_mut_ptr::<E>();
        for t in 0..steps {
            for b in (0..batch).filter(|&b| t < lengths[b]) {
                let at = (t * batch + b) * input;
                // SAFETY: a row of both.
                unsafe { std::ptr::copy_nonoverlapping(self.x.add(at), to.add(at), input) };
            }
        }
        Ok(Some(out))
    }

    /// The gradients of x and of one direction's parameters. dx takes the directions' gate rows
    /// one after the other in one chain; the weights' chains run over (t, b) ascending.
    unsafe fn parameters(&self, d: usize, dgates: *mut E, x: *const E) -> Result<()> {
        let Sizes { steps, batch, input, hidden } = self.sizes;
        let (all, blocks) = (steps * batch, (self.blocks() * hidden) as isize);
        let columns = self.cell.gates() * hidden;
        let op = self.operator;
        let gradients = self.gradients[d];
        let width = |n: usize| n as isize;
        // SAFETY: dgates has `all` rows of `blocks` elements; the others are as documented.
        unsafe {
            let rows = Matrix::new(dgates.cast_const(), blocks, 1);
            let ih = Matrix::new(self.ih[d], width(input), 1);
            let start = if d == 0 {
                Start::Zero
            } else {
                Start::Load { ptr: self.dx.cast_const(), stride: width(input) }
            };
            let product = Product {
                m: all,
                n: input,
                k: columns,
                a: rows,
                b: Right::Matrix(ih),
                start,
                c: self.dx,
                c_rows: width(input),
                c_columns: 1,
                relu: false,
                epilogue: None,
            };
            product.run(op, isa())?;
            // A product of many rows is written transposed, so that both operands are read by rows.
            let weights = |inputs: Matrix<E>, m: usize, gates: Matrix<E>, n: usize, c| {
                let turned = all >= LONG;
                Product {
                    m: if turned { m } else { n },
                    n: if turned { n } else { m },
                    k: all,
                    a: if turned { inputs } else { gates }.transposed(),
                    b: Right::Matrix(if turned { gates } else { inputs }),
                    start: Start::Zero,
                    c,
                    c_rows: if turned { 1 } else { m as isize },
                    c_columns: if turned { m as isize } else { 1 },
                    relu: false,
                    epilogue: None,
                }
            };
            let inputs = Matrix::new(x, width(input), 1);
            weights(inputs, input, rows, columns, gradients.ih).run(op, isa())?;

            let mut scratch = Scratch::new(op, all * hidden * size_of::<E>())?;
            let states = scratch.as_mut::<E>().as_mut_ptr();
            self.states_before(d, states);
            let states = Matrix::new(states.cast_const(), width(hidden), 1);
            let apart = matches!(self.cell, Cell::Gru { .. });
            let first = if apart { 2 * hidden } else { columns };
            weights(states, hidden, rows, first, gradients.hh).run(op, isa())?;
            if apart {
                let last = Matrix::new(dgates.add(3 * hidden).cast_const(), blocks, 1);
                let to = gradients.hh.add(first * hidden);
                weights(states, hidden, last, hidden, to).run(op, isa())?;
            }
            if !gradients.b_ih.is_null() {
                let sum = |first: usize, count: usize, to: *mut E| {
                    let from = dgates.add(first).cast_const();
                    let to = std::slice::from_raw_parts_mut(to, count);
                    vectorized_wide(ColumnSums { from, rows: all, stride: blocks as usize, to });
                };
                sum(0, columns, gradients.b_ih);
                std::ptr::copy_nonoverlapping(gradients.b_ih, gradients.b_hh, first);
                if apart {
                    sum(3 * hidden, hidden, gradients.b_hh.add(first));
                }
            }
        }
        Ok(())
    }

    /// h before each step, (T, B, H), zeros where a row takes no part.
    unsafe fn states_before(&self, d: usize, out: *mut E) {
        let Sizes { steps, batch, hidden, .. } = self.sizes;
        for t in 0..steps {
            for b in 0..batch {
                let length = self.lengths.map_or(steps, |l| l[b]);
                let earlier = before(t, length, self.directions[d].reverse);
                // SAFETY: a row of `out`; the state's row has `hidden` elements.
                unsafe {
                    let to = out.add((t * batch + b) * hidden);
                    match self.state_before(earlier, d, b) {
                        Some(state) if !state.is_null() => {
                            std::ptr::copy_nonoverlapping(state, to, hidden);
                        }
                        _ => std::slice::from_raw_parts_mut(to, hidden).fill(E::default()),
                    }
                }
            }
        }
    }
}
