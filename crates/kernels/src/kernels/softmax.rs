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
        if !self.gradient {
            return in_full_precision(&[x], outputs, |x, out| match x[0].dtype() {
                DType::F64 => map_rows::<f64, 1>(name, [&x[0]], &out[0], axis, &|[x], y, n| {
                    vectorized(Row64 { x, y, n, log });
                }),
                _ => map_rows::<f32, 1>(name, [&x[0]], &out[0], axis, &|[x], y, n| {
                    dispatch(Row { x, y, n, log });
                }),
            });
        }
        let Some(g) = inputs[1] else { return Ok(()) };
        in_full_precision(&[x, g], outputs, |i, out| match i[0].dtype() {
            DType::F64 => {
                map_rows::<f64, 2>(name, [&i[0], &i[1]], &out[0], axis, &|[y, g], d, n| {
                    vectorized(Grad64 { y, g, d, n, log });
                })
            }
            _ => map_rows::<f32, 2>(name, [&i[0], &i[1]], &out[0], axis, &|[y, g], d, n| {
                dispatch(Grad { y, g, d, n, log });
            }),
        })
    }

    fn in_place(&self) -> &[(usize, usize)] {
        if self.gradient { &[(0, 0), (1, 0)] } else { &[(0, 0)] }
    }
}

struct Row {
    x: *const f32,
    y: *mut f32,
    n: usize,
    log: bool,
}

impl WithSimd for Row {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { x, y, n, log } = self;
        let whole = n - n % LANES;
        let tail = n - whole;
        let lowest = s.splat(f32::NEG_INFINITY);
        // SAFETY: rows of `n` elements; each element of x is read before its place in y is written.
        unsafe {
            // A NaN shows in the sum, and the sign of a zero maximum nowhere, so that neither the
            // order of these comparisons nor their NaN rule matters.
            let mut max = [lowest; 4];
            let mut i = 0;
            while i + 4 * LANES <= whole {
                for (k, max) in max.iter_mut().enumerate() {
                    *max = s.at_least(s.load(x.add(i + k * LANES)), *max);
                }
                i += 4 * LANES;
            }
            while i < whole {
                max[0] = s.at_least(s.load(x.add(i)), max[0]);
                i += LANES;
            }
            if tail > 0 {
                let v = s.load_n(x.add(whole), tail);
                let v = s.select(s.mask_first(tail), v, lowest);
                max[1] = s.at_least(v, max[1]);
            }
            let pairs = (s.at_least(max[0], max[1]), s.at_least(max[2], max[3]));
            let m = s.tree_max(s.at_least(pairs.0, pairs.1));
            let shift = s.splat(m);
            let mut sum = s.splat_d(0.0);
            let mut i = 0;
            while i < whole {
                let d = s.sub(s.load(x.add(i)), shift);
                let e = math::exp(s, d);
                s.store(y.add(i), if log { d } else { e });
                sum = s.add_d(sum, s.widen(e));
                i += LANES;
            }
            if tail > 0 {
                let d = s.sub(s.load_n(x.add(whole), tail), shift);
                let e = s.select(s.mask_first(tail), math::exp(s, d), s.splat(0.0));
                s.store_n(y.add(whole), tail, if log { d } else { e });
                sum = s.add_d(sum, s.widen(e));
            }
            let sum = s.tree_add_d(sum);
            let last = if log { math::log_f64(sum) as f32 } else { (1.0 / sum) as f32 };
            let last = s.splat(last);
            for_lanes!(n, |i, count| {
                let v = f32::get(s, y.add(i), count);
                let v = if log { s.sub(v, last) } else { s.mul(v, last) };
                f32::put(s, y.add(i), count, v);
            });
        }
    }
}

struct Row64 {
    x: *const f64,
    y: *mut f64,
    n: usize,
    log: bool,
}

impl PlainLoop for Row64 {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { x, y, n, log } = self;
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

struct Grad {
    y: *const f32,
    g: *const f32,
    d: *mut f32,
    n: usize,
    log: bool,
}

impl WithSimd for Grad {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { y, g, d, n, log } = self;
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

struct Grad64 {
    y: *const f64,
    g: *const f64,
    d: *mut f64,
    n: usize,
    log: bool,
}

impl PlainLoop for Grad64 {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { y, g, d, n, log } = self;
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
