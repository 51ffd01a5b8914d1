//! The blocked matrix product.
//!
//! Every output element is one accumulator: `acc = start`, then `acc = fma(a[i, k], b[k, j], acc)` for
//! k ascending. Blocks of k store the accumulators to c and load them again, so tiles, blocks, packing
//! and threads change no bit.

use super::matrix::{Matrix, Shared};
use super::microkernel::{Aligned, IN_ORDER, Start, Tile, prefetch, span, tile};
use super::packing::{PackedB, RowPanels, pack_left, pack_right, panel_width};
use super::real::Real;
use crate::error::Result;
use crate::kernels::epilogue::{Area, Tail};
use crate::parallel;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};
use std::mem::MaybeUninit;

/// Steps of one block of k: a panel of a and a panel of b stay in the first-level cache.
const BLOCK_K: usize = 256;
/// Rows and columns of a block, for the second-level cache.
const BLOCK_ROWS: usize = 168;
const BLOCK_COLUMNS: usize = 512;
/// Operations (two for each fused multiply-add) of one part, and from how many on work is split.
const PART: usize = 1_000_000;
const SPLIT_FROM: usize = 2_000_000;
const MOST_PARTS: usize = 16;
/// Columns up to which vectors run along the rows instead.
const NARROW: usize = 4;
/// Elements from which on packing is worth a region of its own.
const PACK_SPLIT_FROM: usize = 1 << 14;

/// The right operand.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a, E> {
    Matrix(Matrix<E>),
    Packed(&'a PackedB<E>),
}

/// `c = relu?(start + a b)`, with a of m by k and b of k by n elements.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a, E> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: Matrix<E>,
    pub(crate) b: Right<'a, E>,
    pub(crate) start: Start<E>,
    pub(crate) c: *mut E,
    pub(crate) c_rows: isize,
    pub(crate) c_columns: isize,
    pub(crate) relu: bool,
    /// Steps on the finished rows; only where columns of c follow each other.
    pub(crate) epilogue: Option<Tail<'a, E>>,
}

/// How many parts some work is split into: a function of its size alone.
pub(crate) fn parts_of(operations: usize) -> usize {
    if operations < SPLIT_FROM { 1 } else { (operations / PART).clamp(2, MOST_PARTS) }
}

/// Whether vectors run along the rows of the output, so that no epilogue follows in its tiles.
pub(crate) fn is_narrow(m: usize, n: usize) -> bool {
    n <= NARROW && m >= LANES
}

#[derive(Clone, Copy)]
struct Block<'e, E> {
    k: usize,
    n: usize,
    panels: RowPanels,
    a: *const E,
    b: *const E,
    /// Distance between steps and between panels of b.
    step: isize,
    panel: isize,
    /// The last panel, where b itself cannot be read in whole vectors.
    tail: *const E,
    start: Start<E>,
    c: *mut E,
    c_rows: isize,
    c_columns: isize,
    relu: bool,
    epilogue: Option<Tail<'e, E>>,
    /// Row panels and column vectors of this part.
    rows: (usize, usize),
    vectors: (usize, usize),
}

impl<E: Real> WithSimd for Block<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = E::vectors(S::ISA);
        let tail_from =
            if self.tail.is_null() { usize::MAX } else { self.n / (width * LANES) * width };
        let row_blocks = (BLOCK_ROWS / E::rows(S::ISA)).max(1);
        let column_blocks = BLOCK_COLUMNS / LANES;
        let most = span(E::accumulators(S::ISA), self.panels.rows(0));
        let mut k0 = 0;
        loop {
            let steps = (self.k - k0).min(BLOCK_K);
            let last = k0 + steps == self.k;
            let mut j0 = self.vectors.0;
            while j0 < self.vectors.1 {
                let j1 = (j0 + column_blocks).min(self.vectors.1);
                let mut i0 = self.rows.0;
                while i0 < self.rows.1 {
                    let i1 = (i0 + row_blocks).min(self.rows.1);
                    let mut v = j0;
                    while v < j1 {
                        let left = if v < tail_from { tail_from.min(j1) - v } else { j1 - v };
                        // A power of two, as the tiles come.
                        let wide = 1usize << left.min(most).ilog2();
                        // What the next tiles read comes while those of these columns are computed.
                        let next = if v + wide < j1 { (v + wide, k0) } else { (j0, k0 + steps) };
                        let each = (width * LANES).div_ceil(i1 - i0);
                        for i in i0..i1 {
                            let rows = self.panels.rows(i);
                            let ahead = self.b_at::<S>(next).wrapping_add(each * (i - i0) * steps);
                            // SAFETY: the block's addresses cover these rows, steps and columns.
                            unsafe {
                                let ahead = (ahead, each as isize);
                                let tail = v >= tail_from;
                                self.tile(s, i, rows, v, wide, k0, steps, last, tail, ahead);
                            }
                        }
                        v += wide;
                    }
                    i0 = i1;
                }
                j0 = j1;
            }
            k0 += steps;
            if last {
                return;
            }
        }
    }
}

impl<E: Real> Block<'_, E> {
    /// Where a step of a vector of columns lies in b.
    #[inline(always)]
    fn b_at<S: Simd>(&self, (v, k): (usize, usize)) -> *const E {
        let width = E::vectors(S::ISA);
        let inside = (v % width * LANES) as isize;
        let at = (v / width) as isize * self.panel + inside + k as isize * self.step;
        self.b.wrapping_offset(at)
    }

    #[inline(always)]
    unsafe fn tile<S: Simd>(
        &self,
        s: S,
        i: usize,
        rows: usize,
        v: usize,
        wide: usize,
        k0: usize,
        steps: usize,
        last: bool,
        tail: bool,
        ahead: (*const E, isize),
    ) {
        const LARGEST: usize = 28 * LANES;
        let width = E::vectors(S::ISA);
        let (row, column) = (self.panels.start(i), v * LANES);
        let n = (self.n - column).min(wide * LANES);
        // SAFETY: inside the operands that `Product::run` was given or has packed.
        unsafe {
            let c = self.c.offset(row as isize * self.c_rows + column as isize * self.c_columns);
            let (b, step) = if tail {
                let inside = (v % width * LANES) as isize;
                let step = (width * LANES) as isize;
                (self.tail.offset(inside + k0 as isize * step), step)
            } else {
                (self.b_at::<S>((v, k0)), self.step)
            };
            // Only packed operands lie in the order in which they are read.
            let packed = self.step == (width * LANES) as isize;
            let (ahead, ahead_step) = if packed { ahead } else { (b, 0) };
            let mut t = Tile {
                k: steps,
                a: self.a.add(row * self.k + k0 * rows),
                b,
                step,
                table: std::ptr::null(),
                ahead,
                ahead_step,
                panel: self.panel,
                start: if k0 == 0 {
                    self.start.at(row, column)
                } else {
                    Start::Load { ptr: c, stride: self.c_rows }
                },
                c,
                c_stride: self.c_rows,
                n,
                relu: self.relu && last,
                finish: self.epilogue.filter(|_| last).map(|e| e.finish),
            };
            // Where columns of c do not follow each other, the tile goes through the stack.
            let through = self.c_columns != 1;
            let mut part = MaybeUninit::<Aligned<[E; LARGEST]>>::uninit();
            let part = part.as_mut_ptr().cast::<E>();
            let stride = wide * LANES;
            let place = |r: usize, j: usize| r as isize * self.c_rows + j as isize * self.c_columns;
            if through {
                t.c = part;
                t.c_stride = stride as isize;
                if k0 > 0 {
                    for r in 0..rows {
                        for j in 0..n {
                            *part.add(r * stride + j) = *c.offset(place(r, j));
                        }
                    }
                    t.start = Start::Load { ptr: part, stride: stride as isize };
                }
            } else {
                // The next tile's rows of c arrive while this one is computed.
                let next = c.wrapping_offset(rows as isize * self.c_rows);
                for r in 0..rows {
                    prefetch(next.wrapping_offset(r as isize * self.c_rows));
                }
            }
            tile::<S, E, IN_ORDER>(s, rows, wide, &t);
            if through {
                for r in 0..rows {
                    for j in 0..n {
                        *c.offset(place(r, j)) = *part.add(r * stride + j);
                    }
                }
            } else if let (Some(Tail { rest: Some(epilogue), .. }), true) = (self.epilogue, last) {
                let (at, stride) = (c.cast(), self.c_rows as usize);
                let area = Area { at, stride, rows, n, channel: column, channel_step: 0 };
                epilogue.apply(S::ISA, area);
            }
        }
    }
}

impl<E: Real> Product<'_, E> {
    /// Computes the product on the pool.
    ///
    /// # Errors
    /// `Memory` when there is no room to pack.
    ///
    /// # Safety
    /// The addresses cover the operands, the start and c; c overlaps none of them, except that a
    /// loaded start may be c itself.
    pub(crate) unsafe fn run(mut self, operator: &str, isa: Isa) -> Result<()> {
        if self.m == 0 || self.n == 0 {
            return Ok(());
        }
        if is_narrow(self.m, self.n)
            && self.epilogue.is_none()
            && let Some(turned) = self.turned()
        {
            self = turned;
        }
        let (m, n, k) = (self.m, self.n, self.k);
        let width = panel_width::<E>(isa);
        let column_panels = n.div_ceil(width);
        let panels = RowPanels::new::<E>(isa, m);

        let row_is_packed = m == 1 && self.a.columns == 1;
        let mut left =
            Scratch::new(operator, if row_is_packed { 0 } else { m * k * size_of::<E>() })?;
        let a = if row_is_packed {
            self.a.ptr
        } else {
            let dst = left.as_mut::<E>().as_mut_ptr();
            let job = Shared::new((dst, self.a));
            let each = (PACK_SPLIT_FROM / (m * k / panels.count).max(1)).max(1);
            parallel::for_ranges(panels.count, each, |range| {
                let (dst, a) = job.get();
                for panel in range {
                    // SAFETY: panels are disjoint parts of the scratch memory.
                    unsafe { pack_left(dst.add(panels.start(panel) * k), a, k, &panels, panel) };
                }
            });
            dst.cast_const()
        };

        let mut right;
        let mut tail = std::ptr::null();
        let (b, step, panel);
        match self.b {
            Right::Packed(packed) => {
                (b, step, panel) = (packed.ptr(), width as isize, (k * width) as isize);
            }
            Right::Matrix(matrix) if matrix.columns == 1 && panels.count == 1 => {
                (b, step, panel) = (matrix.ptr, matrix.rows, width as isize);
                if n % width != 0 {
                    right = Scratch::new(operator, k * width * size_of::<E>())?;
                    let dst = right.as_mut::<E>().as_mut_ptr();
                    // SAFETY: the last panel, into scratch memory of its size.
                    unsafe { pack_right(dst, isa, matrix, k, n, column_panels - 1) };
                    tail = dst.cast_const();
                }
            }
            Right::Matrix(matrix) => {
                right = Scratch::new(operator, column_panels * width * k * size_of::<E>())?;
                let dst = right.as_mut::<E>().as_mut_ptr();
                let job = Shared::new((dst, matrix));
                let each = (PACK_SPLIT_FROM / (width * k).max(1)).max(1);
                parallel::for_ranges(column_panels, each, |range| {
                    let (dst, matrix) = job.get();
                    for panel in range {
                        // SAFETY: panels are disjoint parts of the scratch memory.
                        unsafe {
                            pack_right(dst.add(panel * k * width), isa, matrix, k, n, panel);
                        }
                    }
                });
                (b, step, panel) = (dst.cast_const(), width as isize, (k * width) as isize);
            }
        }

        let wanted = parts_of(2 * m * n * k);
        let column_parts = wanted.min(column_panels);
        let row_parts = wanted.div_ceil(column_parts).min(panels.count);
        let whole = Block {
            k,
            n,
            panels,
            a,
            b,
            step,
            panel,
            tail,
            start: self.start,
            c: self.c,
            c_rows: self.c_rows,
            c_columns: self.c_columns,
            relu: self.relu,
            epilogue: self.epilogue,
            rows: (0, panels.count),
            vectors: (0, n.div_ceil(LANES)),
        };
        let job = Shared::new(whole);
        parallel::for_each(column_parts * row_parts, |part| {
            let mut block = job.get();
            let (i, j) = (part / column_parts, part % column_parts);
            let per = E::vectors(isa);
            block.rows = (panels.count * i / row_parts, panels.count * (i + 1) / row_parts);
            block.vectors = (
                column_panels * j / column_parts * per,
                (column_panels * (j + 1) / column_parts * per).min(n.div_ceil(LANES)),
            );
            dispatch_on(isa, block);
        });
        Ok(())
    }

    /// The same product seen as `cᵀ = bᵀ aᵀ`, so that vectors run along its longer side; `None` where
    /// b is packed already or the start has no such form.
    fn turned(&self) -> Option<Self> {
        let Right::Matrix(b) = self.b else { return None };
        let start = match self.start {
            Start::Zero => Start::Zero,
            Start::Rows { ptr, stride: 1 } => Start::Load { ptr, stride: 0 },
            Start::Load { ptr, stride: 0 } => Start::Rows { ptr, stride: 1 },
            Start::Rows { .. } | Start::Load { .. } => return None,
        };
        Some(Self {
            m: self.n,
            n: self.m,
            k: self.k,
            a: b.transposed(),
            b: Right::Matrix(self.a.transposed()),
            start,
            c: self.c,
            c_rows: self.c_columns,
            c_columns: self.c_rows,
            relu: self.relu,
            epilogue: self.epilogue,
        })
    }
}

/// A product whose operands are packed already, for kernels that pack on their own.
#[derive(Clone, Copy)]
pub(crate) struct Packed<E> {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) panels: RowPanels,
    /// The row panels to compute.
    pub(crate) rows: (usize, usize),
    /// Row r of step k at `start(panel) * k_total + k * rows(panel)`, as [`pack_left`] writes it.
    pub(crate) a: *const E,
    /// Panels of `width` columns: 16 when n is at most 16, else [`panel_width`].
    pub(crate) b: *const E,
    pub(crate) width: usize,
    pub(crate) start: Start<E>,
    pub(crate) c: *mut E,
    pub(crate) c_rows: isize,
}

impl<E: Real> Packed<E> {
    /// Computes the rows on the calling thread.
    ///
    /// # Safety
    /// The addresses cover what they are said to hold; c may be the loaded start.
    pub(crate) unsafe fn run(self, isa: Isa) {
        dispatch_on(
            isa,
            Block {
                k: self.k,
                n: self.n,
                panels: self.panels,
                a: self.a,
                b: self.b,
                step: self.width as isize,
                panel: (self.k * self.width) as isize,
                tail: std::ptr::null(),
                start: self.start,
                c: self.c,
                c_rows: self.c_rows,
                c_columns: 1,
                relu: false,
                epilogue: None,
                rows: self.rows,
                vectors: (0, self.n.div_ceil(LANES)),
            },
        );
    }
}

/// Runs fallible parts on the pool and reports the first error by part number.
///
/// # Errors
/// What a part reports.
pub(crate) fn try_for_each(parts: usize, task: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let first = std::sync::Mutex::new(None);
    parallel::for_each(parts, |part| {
        if let Err(error) = task(part) {
            let mut slot = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if slot.as_ref().is_none_or(|(p, _)| part < *p) {
                *slot = Some((part, error));
            }
        }
    });
    match first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}
