//! The innermost tile of a matrix product: `MR` rows by `V` vectors of accumulators in registers.

use super::real::Real;
use crate::kernels::epilogue::Finish;
use crate::simd::{LANES, Simd, WithSimd, dispatch_on};
use std::mem::MaybeUninit;

/// What an accumulator starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<E> {
    Zero,
    /// Row r starts from `*ptr.add(r * stride)` in all columns.
    Rows {
        ptr: *const E,
        stride: isize,
    },
    /// Row r, column c starts from `*ptr.add(r * stride + c)`; stride 0 repeats one row.
    Load {
        ptr: *const E,
        stride: isize,
    },
}

impl<E> Start<E> {
    /// The start of the tile whose first element is (`row`, `column`).
    #[inline(always)]
    pub(crate) fn at(self, row: usize, column: usize) -> Self {
        let row = row as isize;
        match self {
            Self::Zero => Self::Zero,
            Self::Rows { ptr, stride } => {
                Self::Rows { ptr: ptr.wrapping_offset(row * stride), stride }
            }
            Self::Load { ptr, stride } => {
                Self::Load { ptr: ptr.wrapping_offset(row * stride + column as isize), stride }
            }
        }
    }
}

/// Memory in which no vector crosses a cache line, so that loads need not wait for stores before
/// them.
#[repr(C, align(64))]
pub(crate) struct Aligned<T>(#[allow(dead_code)] T);

/// One tile: `c[r, j] = start[r, j]`, then `fma(a[k, r], b[k, j], c[r, j])` for k ascending.
#[derive(Clone, Copy)]
pub(crate) struct Tile<E> {
    pub(crate) k: usize,
    /// Packed: row r of step k at `a[k * rows + r]`; in [`A_BY_TABLE`] at `a[table[k] + r]`.
    pub(crate) a: *const E,
    /// Step k begins at `b + k * step`; in [`B_BY_TABLE`] at `b + table[k]`.
    pub(crate) b: *const E,
    pub(crate) step: isize,
    pub(crate) table: *const u32,
    /// But in [`B_BY_TABLE`], what is asked for while the tile is computed: at each step the line
    /// `ahead_step` elements further on.
    pub(crate) ahead: *const E,
    pub(crate) ahead_step: isize,
    /// Distance between panels when the tile spans several.
    pub(crate) panel: isize,
    pub(crate) start: Start<E>,
    pub(crate) c: *mut E,
    pub(crate) c_stride: isize,
    /// Valid columns; the tile reads whole vectors of b all the same.
    pub(crate) n: usize,
    pub(crate) relu: bool,
    /// Applied before the store; its channels are the columns in [`A_BY_TABLE`], else the rows.
    pub(crate) finish: Option<Finish<E>>,
}

/// Both operands are read step after step.
pub(crate) const IN_ORDER: u8 = 0;
/// Each step of b is found through the table.
pub(crate) const B_BY_TABLE: u8 = 1;
/// Each step of a is found through the table.
pub(crate) const A_BY_TABLE: u8 = 2;

/// Steps ahead that the lines of an operand found through the table are asked for.
const AHEAD: usize = 24;

#[inline(always)]
pub(crate) fn prefetch<E>(p: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, valid for any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

#[inline(always)]
unsafe fn micro<S: Simd, E: Real, const MR: usize, const V: usize, const MODE: u8>(
    s: S,
    t: &Tile<E>,
) {
    let width = E::vectors(S::ISA);
    let full = t.n >= V * LANES;
    // Partial columns pass through here, so that registers meet whole vectors only.
    let mut part = MaybeUninit::<Aligned<[[[E; LANES]; V]; MR]>>::uninit();
    let part = part.as_mut_ptr().cast::<E>();
    let part_stride = (V * LANES) as isize;
    let mut acc = [[E::splat(s, E::default()); V]; MR];
    // SAFETY: the caller's tile addresses existing elements, and partial vectors go through load_n
    // and store_n.
    unsafe {
        match t.start {
            Start::Zero => {}
            Start::Rows { ptr, stride } => {
                for r in 0..MR {
                    let x = E::splat(s, *ptr.offset(r as isize * stride));
                    for v in 0..V {
                        acc[r][v] = x;
                    }
                }
            }
            Start::Load { mut ptr, mut stride } => {
                if !full {
                    for r in 0..MR {
                        for v in 0..V {
                            let left = t.n.saturating_sub(v * LANES);
                            let from = ptr.wrapping_offset(r as isize * stride);
                            let x = E::load_n(s, from.wrapping_add(v * LANES), left.min(LANES));
                            E::store(s, part.add((r * V + v) * LANES), x);
                        }
                    }
                    (ptr, stride) = (part, part_stride);
                }
                for r in 0..MR {
                    for v in 0..V {
                        acc[r][v] = E::load(s, ptr.offset(r as isize * stride).add(v * LANES));
                    }
                }
            }
        }
        let mut a = t.a;
        let mut b = t.b;
        let mut ahead = t.ahead;
        for k in 0..t.k {
            // The table ends with AHEAD repeats, so that looking ahead stays inside it.
            let row = if MODE == B_BY_TABLE {
                let next = t.b.wrapping_add(*t.table.add(k + AHEAD) as usize);
                prefetch(next);
                if V > 1 {
                    prefetch(next.wrapping_add((V - 1) * LANES));
                }
                t.b.add(*t.table.add(k) as usize)
            } else {
                b
            };
            if MODE == A_BY_TABLE {
                prefetch(t.a.wrapping_add(*t.table.add(k + AHEAD) as usize));
                a = t.a.add(*t.table.add(k) as usize);
            }
            if MODE != B_BY_TABLE {
                prefetch(ahead);
                ahead = ahead.wrapping_offset(t.ahead_step);
            }
            let mut x = [E::splat(s, E::default()); V];
            for v in 0..V {
                let at = if MODE == B_BY_TABLE {
                    (v * LANES) as isize
                } else {
                    (v / width) as isize * t.panel + (v % width * LANES) as isize
                };
                x[v] = E::load(s, row.offset(at));
            }
            for r in 0..MR {
                let w = E::splat(s, *a.add(r));
                for v in 0..V {
                    acc[r][v] = E::v_fma(s, w, x[v], acc[r][v]);
                }
            }
            if MODE != A_BY_TABLE {
                a = a.add(MR);
            }
            b = b.wrapping_offset(t.step);
        }
        if t.relu {
            for r in 0..MR {
                for v in 0..V {
                    acc[r][v] = E::relu(s, acc[r][v]);
                }
            }
        }
        if let Some(finish) = &t.finish {
            let by_columns = MODE == A_BY_TABLE;
            if !full || by_columns && finish.affine.is_some() {
                // In a function of its own, which keeps this one small enough for its accumulators
                // to stay in registers.
                for r in 0..MR {
                    for v in 0..V {
                        E::store(s, part.add((r * V + v) * LANES), acc[r][v]);
                    }
                }
                let finished = Finished { tile: t, part, rows: MR, vectors: V, by_columns };
                return dispatch_on(S::ISA, finished);
            }
            if let Some([mean, factor, offset]) = finish.affine {
                for r in 0..MR {
                    let (m, f) = (E::splat(s, *mean.add(r)), E::splat(s, *factor.add(r)));
                    let o = E::splat(s, *offset.add(r));
                    for v in 0..V {
                        acc[r][v] = E::v_fma(s, E::v_sub(s, acc[r][v], m), f, o);
                    }
                }
            }
            if let Some(distance) = finish.residual {
                let from = t.c.wrapping_offset(distance).cast_const();
                for r in 0..MR {
                    let row = from.wrapping_offset(r as isize * t.c_stride);
                    for v in 0..V {
                        acc[r][v] = E::v_add(s, acc[r][v], E::load(s, row.add(v * LANES)));
                    }
                }
            }
            if let Some([low, high]) = finish.clip {
                for r in 0..MR {
                    for v in 0..V {
                        acc[r][v] = E::v_clip(s, acc[r][v], low, high);
                    }
                }
            }
        }
        let (to, stride) = if full { (t.c, t.c_stride) } else { (part, part_stride) };
        for r in 0..MR {
            for v in 0..V {
                E::store(s, to.offset(r as isize * stride).add(v * LANES), acc[r][v]);
            }
        }
        if !full {
            for r in 0..MR {
                for v in 0..V {
                    let left = t.n.saturating_sub(v * LANES);
                    let y = E::load(s, part.add((r * V + v) * LANES));
                    let to = t.c.wrapping_offset(r as isize * t.c_stride).wrapping_add(v * LANES);
                    E::store_n(s, to, left.min(LANES), y);
                }
            }
        }
    }
}

/// The finish of a tile whose accumulators are in `part`, and its store.
struct Finished<'a, E> {
    tile: &'a Tile<E>,
    part: *const E,
    rows: usize,
    vectors: usize,
    by_columns: bool,
}

impl<E: Real> WithSimd for Finished<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let t = self.tile;
        let Some(finish) = t.finish else { return };
        let mut j = 0;
        while j < self.vectors * LANES && j < t.n {
            let n = (t.n - j).min(LANES);
            let mut own = [E::splat(s, E::default()); 3];
            if let (Some(affine), true) = (finish.affine, self.by_columns) {
                // SAFETY: a value for each of the tile's columns.
                own = unsafe { finish.channels(s, affine, j, n) };
            }
            for r in 0..self.rows {
                // SAFETY: the tile's rows and columns, and a value for each of its rows.
                unsafe {
                    let to = t.c.wrapping_offset(r as isize * t.c_stride).wrapping_add(j);
                    if let (Some(affine), false) = (finish.affine, self.by_columns) {
                        own = finish.channel(s, affine, r);
                    }
                    let x = E::load(s, self.part.add(r * self.vectors * LANES + j));
                    let y = finish.on(s, x, own, to, n);
                    if n == LANES {
                        E::store(s, to, y);
                    } else {
                        E::store_n(s, to, n, y);
                    }
                }
            }
            j += LANES;
        }
    }
}

impl<E: Real> Finish<E> {
    /// The values of one channel, for all lanes.
    ///
    /// # Safety
    /// The channel exists.
    #[inline(always)]
    pub(crate) unsafe fn channel<S: Simd>(
        &self,
        s: S,
        [mean, factor, offset]: [*const E; 3],
        at: usize,
    ) -> [E::V<S>; 3] {
        // SAFETY: the caller's promise.
        unsafe {
            let splat = (*mean.add(at), *factor.add(at), *offset.add(at));
            [E::splat(s, splat.0), E::splat(s, splat.1), E::splat(s, splat.2)]
        }
    }

    /// The values of `n` channels from `at` on.
    #[inline(always)]
    unsafe fn channels<S: Simd>(
        &self,
        s: S,
        [mean, factor, offset]: [*const E; 3],
        at: usize,
        n: usize,
    ) -> [E::V<S>; 3] {
        // SAFETY: the caller's promise.
        unsafe {
            let (mean, factor, offset) = (mean.add(at), factor.add(at), offset.add(at));
            [E::load_n(s, mean, n), E::load_n(s, factor, n), E::load_n(s, offset, n)]
        }
    }

    /// The steps on `n` accumulators of outputs at `to`, with the values of their channels.
    ///
    /// # Safety
    /// The other input has elements where the outputs are.
    #[inline(always)]
    pub(crate) unsafe fn on<S: Simd>(
        &self,
        s: S,
        mut x: E::V<S>,
        [mean, factor, offset]: [E::V<S>; 3],
        to: *mut E,
        n: usize,
    ) -> E::V<S> {
        if self.affine.is_some() {
            x = E::v_fma(s, E::v_sub(s, x, mean), factor, offset);
        }
        if let Some(distance) = self.residual {
            let p = to.wrapping_offset(distance).cast_const();
            // SAFETY: the caller's promise.
            let other = unsafe { if n == LANES { E::load(s, p) } else { E::load_n(s, p, n) } };
            x = E::v_add(s, x, other);
        }
        if let Some([low, high]) = self.clip {
            x = E::v_clip(s, x, low, high);
        }
        x
    }
}

/// Entries that a table holds beyond its steps.
pub(crate) const TABLE_TAIL: usize = AHEAD;

/// Vectors that a tile of `rows` rows spans at most: a power of two, so that few rows still keep
/// enough independent chains in flight.
#[inline(always)]
pub(crate) fn span(accumulators: usize, rows: usize) -> usize {
    match accumulators / rows {
        8.. if rows == 1 => 8,
        4.. if rows <= 7 => 4,
        2.. => 2,
        _ => 1,
    }
}

macro_rules! by_rows {
    ($s:expr, $S:ty, $E:ty, $T:expr, $tile:expr, $rows:expr, $v:expr, [$($r:literal)*]) => {
        match $rows {
            $($r => by_vectors!($s, $S, $E, $T, $tile, $r, $v),)*
            _ => unreachable!("a tile has at most as many rows as the instruction set allows"),
        }
    };
}

macro_rules! by_vectors {
    ($s:expr, $S:ty, $E:ty, $T:expr, $tile:expr, $r:literal, $v:expr) => {{
        // Combinations that do not fit the registers are never asked for; the constant condition
        // keeps their code out.
        let most = <$E>::accumulators(<$S>::ISA);
        // SAFETY: the promise of `tile`, in which alone this expands.
        unsafe {
            match $v {
                1 if $r <= most => micro::<$S, $E, $r, 1, $T>($s, $tile),
                2 if 2 * $r <= most => micro::<$S, $E, $r, 2, $T>($s, $tile),
                4 if $r <= 7 && 4 * $r <= most => micro::<$S, $E, $r, 4, $T>($s, $tile),
                8 if $r == 1 && most >= 8 => micro::<$S, $E, $r, 8, $T>($s, $tile),
                _ => unreachable!("a tile's vectors fit the registers"),
            }
        }
    }};
}

/// Computes a tile of `rows` by `vectors` (at most `span`).
///
/// # Safety
/// All addressed elements exist: `k * rows` of a, whole vectors of b at every step, `rows` by `n` of
/// c and of the start, and `k + TABLE_TAIL` entries where a table is used.
#[inline(always)]
pub(crate) unsafe fn tile<S: Simd, E: Real, const MODE: u8>(
    s: S,
    rows: usize,
    vectors: usize,
    t: &Tile<E>,
) {
    by_rows!(s, S, E, MODE, t, rows, vectors, [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
}
