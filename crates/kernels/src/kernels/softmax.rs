//! Softmax, LogSoftmax and their gradients along one axis.
//!
//! m is the row's maximum, e = e^(x - m) rounded to the dtype, and sums run in f64 through 16 lanes
//! and their tree. Softmax is e times (1 / sum) rounded to the dtype; LogSoftmax (x - m) - log(sum)
//! with the logarithm rounded. A row with a NaN, or of nothing but -inf, is NaN.

use crate::array::{Array, Meta, normalize_axis};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::{in_full_precision, map_rows};
use crate::kernels::function::check_float;
use crate::kernels::lanes::{Lane, for_lanes, tree};
use crate::kernels::softmax_columns::Columns;
use crate::math;
use crate::simd::{LANES, PlainLoop, Simd, WithSimd, dispatch, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

macro_rules! entry {
    ($name:expr, $log:expr, $grad:expr) => {
        Entry {
            name: $name,
            build: |a| {
                let axis = a.int("axis", -1)?;
                Ok(Arc::new(Softmax { name: $name, axis, log: $log, gradient: $grad }))
            },
        }
    };
}

pub(crate) const KERNELS: &[Entry] = &[
    entry!("Softmax", false, false),
    entry!("LogSoftmax", true, false),
    entry!("SoftmaxGrad", false, true),
    entry!("LogSoftmaxGrad", true, true),
];

/// The gradients take (y, g): `y (g - sum(g y))`, and `g - e^y sum(g)` by one fma.
struct Softmax {
    name: &'static str,
    axis: i64,
    log: bool,
    gradient: bool,
}

impl Kernel for Softmax {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let count = if self.gradient { 2 } else { 1 };
        let inputs = Inputs::new(self.name, inputs, count, count)?;
        let x = inputs.get(0);
        check_float(self.name, x.dtype)?;
        normalize_axis(self.name, self.axis, x.rank())?;
        if self.gradient {
            inputs.same_dtype(&[0, 1])?;
            let g = inputs.get(1);
            if g.shape != x.shape {
                let got = format!("{:?} and {:?}", x.shape, g.shape);
                return Err(Error::shape(self.name, "two equal shapes", got));
            }
        }
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis(self.name, self.axis, x.rank())?;
        let (name, log) = (self.name, self.log);
        let columns = Columns { name, log, gradient: self.gradient };
        if !self.gradient {
            return in_full_precision(&[x], outputs, |x, out| match x[0].dtype() {
                DType::F64 => {
                    map_rows::<f64, 1>(name, [&x[0]], &out[0], axis, &|[x], y, n, rows| {
                        vectorized(Row64 { x, y, n, rows, log });
                    })
                }
                _ if columns.run(&[&x[0]], &out[0], axis)? => Ok(()),
                _ => map_rows::<f32, 1>(name, [&x[0]], &out[0], axis, &|[x], y, n, rows| {
                    dispatch(Row { x, y, n, rows, log });
                }),
            });
        }
        let Some(g) = inputs[1] else { return Ok(()) };
        in_full_precision(&[x, g], outputs, |i, out| match i[0].dtype() {
            DType::F64 => {
                map_rows::<f64, 2>(name, [&i[0], &i[1]], &out[0], axis, &|[y, g], d, n, rows| {
                    vectorized(Grad64 { y, g, d, n, rows, log });
                })
            }
            _ if columns.run(&[&i[0], &i[1]], &out[0], axis)? => Ok(()),
            _ => map_rows::<f32, 2>(name, [&i[0], &i[1]], &out[0], axis, &|[y, g], d, n, rows| {
                dispatch(Grad { y, g, d, n, rows, log });
            }),
        })
    }

    fn in_place(&self) -> &[(usize, usize)] {
        if self.gradient { &[(0, 0), (1, 0)] } else { &[(0, 0)] }
    }
}

#[derive(Clone, Copy)]
struct Row {
    x: *const f32,
    y: *mut f32,
    n: usize,
    rows: usize,
    log: bool,
}

/// Rows at least this long are computed one by one, so that one at a time is in the nearer caches.
const LONG: usize = 2048;

impl WithSimd for Row {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut row = 0;
        // Two rows at a time: one's vectors fill the waits for the other's reductions.
        while self.n < LONG && row + 2 <= self.rows {
            self.rows_from::<S, 2>(s, row);
            row += 2;
        }
        while row < self.rows {
            self.rows_from::<S, 1>(s, row);
            row += 1;
        }
    }
}

impl Row {
    #[inline(always)]
    fn rows_from<S: Simd, const R: usize>(self, s: S, row: usize) {
        let Self { n, log, .. } = self;
        let whole = n - n % LANES;
        let tail = n - whole;
        let lowest = s.splat(f32::NEG_INFINITY);
        // SAFETY: rows of `n` elements; each element of x is read before its place in y is written.
        unsafe {
            let mut x = [self.x; R];
            let mut y = [self.y; R];
            for r in 0..R {
                x[r] = x[r].add((row + r) * n);
                y[r] = y[r].add((row + r) * n);
            }
            // A NaN shows in the sum, and the sign of a zero maximum nowhere, so that neither the
            // order of these comparisons nor their NaN rule matters.
            let mut max = [[lowest; 4]; R];
            let mut i = 0;
            while i + 4 * LANES <= whole {
                for r in 0..R {
                    for k in 0..4 {
                        max[r][k] = s.at_least(s.load(x[r].add(i + k * LANES)), max[r][k]);
                    }
                }
                i += 4 * LANES;
            }
            while i < whole {
                for r in 0..R {
                    max[r][0] = s.at_least(s.load(x[r].add(i)), max[r][0]);
                }
                i += LANES;
            }
            let mut shift = [lowest; R];
            for r in 0..R {
                let max = &mut max[r];
                if tail > 0 {
                    let v = s.load_n(x[r].add(whole), tail);
                    let v = s.select(s.mask_first(tail), v, lowest);
                    max[1] = s.at_least(v, max[1]);
                }
                let pairs = (s.at_least(max[0], max[1]), s.at_least(max[2], max[3]));
                shift[r] = s.splat(s.tree_max_of_numbers(s.at_least(pairs.0, pairs.1)));
            }
            let mut sum = [s.splat_d(0.0); R];
            let mut i = 0;
            while i < whole {
                for r in 0..R {
                    let d = s.sub(s.load(x[r].add(i)), shift[r]);
                    let e = math::exp_of_nonpositive(s, d);
                    if !log {
                        s.store(y[r].add(i), e);
                    }
                    sum[r] = s.add_d(sum[r], s.widen(e));
                }
                i += LANES;
            }
            let mut last = [lowest; R];
            for r in 0..R {
                if tail > 0 {
                    let d = s.sub(s.load_n(x[r].add(whole), tail), shift[r]);
                    let e = math::exp_of_nonpositive(s, d);
                    let e = s.select(s.mask_first(tail), e, s.splat(0.0));
                    if !log {
                        s.store_n(y[r].add(whole), tail, e);
                    }
                    sum[r] = s.add_d(sum[r], s.widen(e));
                }
                let sum = s.tree_add_d(sum[r]);
                let value = if log { math::log_f64(sum) as f32 } else { (1.0 / sum) as f32 };
                last[r] = s.splat(value);
            }
            for_lanes!(n, |i, count| {
                for r in 0..R {
                    let v = if log {
                        let d = s.sub(f32::get(s, x[r].add(i), count), shift[r]);
                        s.sub(d, last[r])
                    } else {
                        s.mul(f32::get(s, y[r].add(i).cast_const(), count), last[r])
                    };
                    f32::put(s, y[r].add(i), count, v);
                }
            });
        }
    }
}

#[derive(Clone, Copy)]
struct Row64 {
    x: *const f64,
    y: *mut f64,
    n: usize,
    rows: usize,
    log: bool,
}

impl PlainLoop for Row64 {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for row in 0..self.rows {
            let at = row * self.n;
            // SAFETY: one of the rows.
            unsafe { Self { x: self.x.add(at), y: self.y.add(at), ..self }.row() }
        }
    }
}

impl Row64 {
    #[inline(always)]
    fn row(self) {
        let Self { x, y, n, log, .. } = self;
        // SAFETY: rows of `n` elements; each element of x is read before its place in y is written.
        unsafe {
            let mut m = f64::NEG_INFINITY;
            for i in 0..n {
                let v = *x.add(i);
                m = if m < v { v } else { m };
            }
            let mut lanes = [0.0; LANES];
            for i in 0..n {
                let d = *x.add(i) - m;
                let e = math::exp_f64(d);
                lanes[i % LANES] += e;
                *y.add(i) = if log { d } else { e };
            }
            let sum = tree(lanes);
            let last = if log { math::log_f64(sum) } else { 1.0 / sum };
            for i in 0..n {
                let v = y.add(i);
                *v = if log { *v - last } else { *v * last };
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Grad {
    y: *const f32,
    g: *const f32,
    d: *mut f32,
    n: usize,
    rows: usize,
    log: bool,
}

impl WithSimd for Grad {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for row in 0..self.rows {
            let at = row * self.n;
            // SAFETY: one of the rows.
            unsafe {
                Self { y: self.y.add(at), g: self.g.add(at), d: self.d.add(at), ..self }.row(s)
            }
        }
    }
}

impl Grad {
    #[inline(always)]
    fn row<S: Simd>(self, s: S) {
        let Self { y, g, d, n, log, .. } = self;
        // SAFETY: rows of `n` elements; elements are read before their place in d is written.
        unsafe {
            let mut sum = s.splat_d(0.0);
            for_lanes!(n, |i, count| {
                let g = s.widen(f32::get(s, g.add(i), count));
                sum = if log {
                    s.add_d(sum, g)
                } else {
                    s.fma_d(g, s.widen(f32::get(s, y.add(i), count)), sum)
                };
            });
            let sum = s.splat(s.tree_add_d(sum) as f32);
            for_lanes!(n, |i, count| {
                let (y, g) = (f32::get(s, y.add(i), count), f32::get(s, g.add(i), count));
                let v = if log {
                    s.fma(s.neg(math::exp(s, y)), sum, g)
                } else {
                    s.mul(y, s.sub(g, sum))
                };
                f32::put(s, d.add(i), count, v);
            });
        }
    }
}

#[derive(Clone, Copy)]
struct Grad64 {
    y: *const f64,
    g: *const f64,
    d: *mut f64,
    n: usize,
    rows: usize,
    log: bool,
}

impl PlainLoop for Grad64 {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for row in 0..self.rows {
            let at = row * self.n;
            // SAFETY: one of the rows.
            unsafe {
                Self { y: self.y.add(at), g: self.g.add(at), d: self.d.add(at), ..self }.row()
            }
        }
    }
}

impl Grad64 {
    #[inline(always)]
    fn row(self) {
        let Self { y, g, d, n, log, .. } = self;
        let mut lanes = [0.0; LANES];
        // SAFETY: rows of `n` elements; elements are read before their place in d is written.
        unsafe {
            for i in 0..n {
                let (y, g) = (*y.add(i), *g.add(i));
                let lane = &mut lanes[i % LANES];
                *lane = if log { *lane + g } else { g.mul_add(y, *lane) };
            }
            let sum = tree(lanes);
            for i in 0..n {
                let (y, g) = (*y.add(i), *g.add(i));
                *d.add(i) = if log { (-math::exp_f64(y)).mul_add(sum, g) } else { y * (g - sum) };
            }
        }
    }
}
