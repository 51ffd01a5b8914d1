//! Reductions over axes, and SumTo.
//!
//! Every row is folded by the 16 lanes of `fold`. Floats are summed and multiplied in f64 (products
//! into a sum by fma) and rounded once to the dtype; integers wrap in their own width. The result of
//! an empty row is the identity (0, 1, false, true), NaN for a mean; a maximum or minimum of nothing
//! is an error. Max and min are NaN where an element is; -0.0 is below +0.0.

use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::blocks::{Slot, Source, computed};
use crate::kernels::fold::{self, Fold, Rows, Store, widened};
use crate::kernels::lanes::{Lane, Term};
use crate::kernels::movement::copy_into;
use crate::kernels::number::{Number, for_number};
use crate::kernels::sums::sums;
use crate::{math, parallel};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

macro_rules! entry {
    ($name:expr, $kind:ident) => {
        Entry { name: $name, build: |a| Ok(Arc::new(Reduce::new($name, Kind::$kind, a)?)) }
    };
}

pub(crate) const KERNELS: &[Entry] = &[
    entry!("ReduceSum", Sum),
    entry!("ReduceMean", Mean),
    entry!("ReduceMax", Max),
    entry!("ReduceMin", Min),
    entry!("ReduceProd", Product),
    entry!("ReduceL1", Absolute),
    entry!("ReduceL2", Norm),
    entry!("ReduceSumSquare", Squares),
    entry!("ReduceLogSum", LogSum),
    entry!("ReduceLogSumExp", LogSumExp),
    entry!("ReduceAny", Any),
    entry!("ReduceAll", All),
    Entry {
        name: "SumTo",
        build: |a| Ok(Arc::new(SumTo { shape: a.sizes_required("shape")?.into() })),
    },
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    Product,
    Absolute,
    Norm,
    Squares,
    LogSum,
    LogSumExp,
    Any,
    All,
}

struct Reduce {
    name: &'static str,
    kind: Kind,
    /// Empty: all axes, or none with `noop`.
    axes: Vec<i64>,
    keep: bool,
    noop: bool,
}

impl Reduce {
    fn new(name: &'static str, kind: Kind, a: &mut Attributes) -> Result<Self> {
        Ok(Self {
            name,
            kind,
            axes: a.ints_opt("axes")?.unwrap_or_default(),
            keep: a.flag("keepdims", true)?,
            noop: a.flag("noop_with_empty_axes", false)?,
        })
    }

    fn axes(&self, rank: usize) -> Result<SmallVec<[usize; 6]>> {
        if self.axes.is_empty() {
            return Ok(if self.noop { SmallVec::new() } else { (0..rank).collect() });
        }
        let mut axes: SmallVec<[usize; 6]> = SmallVec::new();
        for &axis in &self.axes {
            axes.push(normalize_axis(self.name, axis, rank)?);
        }
        axes.sort_unstable();
        if axes.windows(2).any(|w| w[0] == w[1]) {
            let got = format!("{:?} for rank {rank}", self.axes);
            return Err(Error::attribute(self.name, "distinct axes", got));
        }
        Ok(axes)
    }

    fn check(&self, dtype: DType) -> Result<()> {
        let (fits, expected) = match self.kind {
            Kind::Any | Kind::All => (dtype == DType::Bool, "bool"),
            Kind::Max | Kind::Min => (true, "any dtype"),
            _ => (dtype != DType::Bool, "a numeric dtype"),
        };
        if fits { Ok(()) } else { Err(Error::dtype(self.name, expected, dtype.name())) }
    }
}

impl Kernel for Reduce {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 1, 1)?;
        let x = inputs.get(0);
        self.check(x.dtype)?;
        let axes = self.axes(x.rank())?;
        let mut shape = Dims::new();
        for (axis, &d) in x.shape.iter().enumerate() {
            if !axes.contains(&axis) {
                shape.push(d);
            } else if self.keep {
                shape.push(1);
            }
        }
        let empty = axes.iter().any(|&a| x.shape[a] == 0) && !shape.contains(&0);
        if empty && matches!(self.kind, Kind::Max | Kind::Min) {
            let got = format!("shape {:?} reduced over axes {axes:?}", x.shape);
            return Err(Error::shape(self.name, "at least one element for each result", got));
        }
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axes = self.axes(x.rank())?;
        let x = widened(x)?;
        let rows = Rows::new(&x, &axes)?;
        let out = &outputs[0];
        match computed(x.dtype()) {
            DType::F32 => self.float::<f32>(&rows, out),
            DType::F64 => self.float::<f64>(&rows, out),
            DType::Bool => match self.kind {
                Kind::Any | Kind::Max => fold::fold::<u8, _>(Truth { any: true }, &rows, out),
                _ => fold::fold::<u8, _>(Truth { any: false }, &rows, out),
            },
            dtype => {
                for_number!(dtype, T => if !T::FLOAT { self.integer::<T>(&rows, out) });
            }
        }
        Ok(())
    }
}

impl Reduce {
    fn float<T: Lane + Store>(&self, rows: &Rows, out: &Array) {
        match self.kind {
            Kind::Sum => sums::<T>(Term::Value, rows, out, |s, _| s),
            Kind::Mean => sums::<T>(Term::Value, rows, out, |s, n| s / n),
            Kind::LogSum => sums::<T>(Term::Value, rows, out, |s, _| math::log_f64(s)),
            Kind::Absolute => sums::<T>(Term::Magnitude, rows, out, |s, _| s),
            Kind::Squares => sums::<T>(Term::Deviation(0.0), rows, out, |s, _| s),
            Kind::Norm => sums::<T>(Term::Deviation(0.0), rows, out, |s, _| s.sqrt()),
            Kind::Product => fold::fold::<T, _>(Product, rows, out),
            Kind::Max => fold::fold::<T, _>(Maximum, rows, out),
            Kind::Min => fold::fold::<T, _>(Minimum, rows, out),
            Kind::LogSumExp => log_sum_exp::<T>(rows, |i, y| {
                // SAFETY: each output is stored once.
                unsafe { y.store(out, i) };
            }),
            Kind::Any | Kind::All => {}
        }
    }

    fn integer<T: Number + Store>(&self, rows: &Rows, out: &Array) {
        match self.kind {
            Kind::Sum => fold::fold::<T, _>(Wrapping { map: |x: T| x, by: |s: T, _| s }, rows, out),
            Kind::Mean => {
                let by = |s: T, n| s.div(T::from_f64(n));
                fold::fold::<T, _>(Wrapping { map: |x: T| x, by }, rows, out);
            }
            Kind::Absolute => {
                fold::fold::<T, _>(Wrapping { map: |x: T| x.abs(), by: |s: T, _| s }, rows, out);
            }
            Kind::Squares => {
                fold::fold::<T, _>(Wrapping { map: |x: T| x.mul(x), by: |s: T, _| s }, rows, out);
            }
            Kind::Norm => {
                let by = |s: T, _| T::from_f64(s.to_f64().sqrt());
                fold::fold::<T, _>(Wrapping { map: |x: T| x.mul(x), by }, rows, out);
            }
            Kind::LogSum => {
                let by = |s: T, _| T::from_f64(math::log_f64(s.to_f64()));
                fold::fold::<T, _>(Wrapping { map: |x: T| x, by }, rows, out);
            }
            Kind::Product => fold::fold::<T, _>(WrappingProduct, rows, out),
            Kind::Max => fold::fold::<T, _>(Maximum, rows, out),
            Kind::Min => fold::fold::<T, _>(Minimum, rows, out),
            Kind::LogSumExp => log_sum_exp::<T>(rows, |i, y| {
                // SAFETY: each output is stored once.
                unsafe { T::from_f64(y).store(out, i) };
            }),
            Kind::Any | Kind::All => {}
        }
    }
}

#[derive(Clone, Copy)]
struct Product;

impl<T: Number> Fold<T> for Product {
    type Acc = f64;
    type Out = f64;
    #[inline(always)]
    fn start(self) -> f64 {
        1.0
    }
    #[inline(always)]
    fn step(self, acc: f64, x: T) -> f64 {
        acc * x.to_f64()
    }
    #[inline(always)]
    fn merge(self, a: f64, b: f64) -> f64 {
        a * b
    }
    #[inline(always)]
    fn finish(self, acc: f64, _: usize) -> f64 {
        acc
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Maximum;

impl<T: Number + Store> Fold<T> for Maximum {
    type Acc = T::Key;
    type Out = T;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn start(self) -> T::Key {
        T::LOWEST.upper_key()
    }
    #[inline(always)]
    fn step(self, acc: T::Key, x: T) -> T::Key {
        acc.max(x.upper_key())
    }
    #[inline(always)]
    fn merge(self, a: T::Key, b: T::Key) -> T::Key {
        a.max(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Key, _: usize) -> T {
        T::from_upper_key(acc)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Minimum;

impl<T: Number + Store> Fold<T> for Minimum {
    type Acc = T::Key;
    type Out = T;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn start(self) -> T::Key {
        T::HIGHEST.lower_key()
    }
    #[inline(always)]
    fn step(self, acc: T::Key, x: T) -> T::Key {
        acc.min(x.lower_key())
    }
    #[inline(always)]
    fn merge(self, a: T::Key, b: T::Key) -> T::Key {
        a.min(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Key, _: usize) -> T {
        T::from_lower_key(acc)
    }
}

/// A sum of mapped integers in their own width, then a function of it and the count.
#[derive(Clone, Copy)]
struct Wrapping<M, B> {
    map: M,
    by: B,
}

impl<T, M, B> Fold<T> for Wrapping<M, B>
where
    T: Number + Store,
    M: Fn(T) -> T + Copy + Send + Sync,
    B: Fn(T, f64) -> T + Copy + Send + Sync,
{
    type Acc = T;
    type Out = T;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn start(self) -> T {
        T::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        acc.add((self.map)(x))
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.add(b)
    }
    #[inline(always)]
    fn finish(self, acc: T, count: usize) -> T {
        (self.by)(acc, count as f64)
    }
}

#[derive(Clone, Copy)]
struct WrappingProduct;

impl<T: Number + Store> Fold<T> for WrappingProduct {
    type Acc = T;
    type Out = T;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn start(self) -> T {
        T::ONE
    }
    #[inline(always)]
    fn step(self, acc: T, x: T) -> T {
        acc.mul(x)
    }
    #[inline(always)]
    fn merge(self, a: T, b: T) -> T {
        a.mul(b)
    }
    #[inline(always)]
    fn finish(self, acc: T, _: usize) -> T {
        acc
    }
}

/// Whether any or all of the bytes are not 0.
#[derive(Clone, Copy)]
struct Truth {
    any: bool,
}

impl Fold<u8> for Truth {
    type Acc = u8;
    type Out = u8;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn start(self) -> u8 {
        u8::from(!self.any)
    }
    #[inline(always)]
    fn step(self, acc: u8, x: u8) -> u8 {
        let x = u8::from(x != 0);
        if self.any { acc | x } else { acc & x }
    }
    #[inline(always)]
    fn merge(self, a: u8, b: u8) -> u8 {
        if self.any { a | b } else { a & b }
    }
    #[inline(always)]
    fn finish(self, acc: u8, _: usize) -> u8 {
        acc
    }
}

/// m + log(sum of e^(x - m)) in f64 with m the maximum, or 0 where that is not finite.
fn log_sum_exp<T: Number + Store>(rows: &Rows, store: impl Fn(usize, f64) + Sync) {
    #[derive(Clone, Copy)]
    struct Exponentials {
        shift: f64,
    }
    impl<T: Number> Fold<T> for Exponentials {
        type Acc = f64;
        type Out = f64;
        #[inline(always)]
        fn start(self) -> f64 {
            0.0
        }
        #[inline(always)]
        fn step(self, acc: f64, x: T) -> f64 {
            acc + math::exp_f64(x.to_f64() - self.shift)
        }
        #[inline(always)]
        fn merge(self, a: f64, b: f64) -> f64 {
            a + b
        }
        #[inline(always)]
        fn finish(self, acc: f64, _: usize) -> f64 {
            self.shift + math::log_f64(acc)
        }
    }
    let grain = (rows.grain() / 8).max(1);
    parallel::for_ranges(rows.outputs, grain, |range| {
        let source = Source::rows(&rows.view);
        let mut slot = Slot::new();
        for i in range {
            let max = fold::fold_row::<T, _>(Maximum, &source, i, rows.count, &mut slot).to_f64();
            let shift = if rows.count > 0 && max.is_finite() { max } else { 0.0 };
            store(
                i,
                fold::fold_row::<T, _>(Exponentials { shift }, &source, i, rows.count, &mut slot),
            );
        }
    });
}

/// The sum over the axes along which `shape` was broadcast to the input: the gradient of
/// broadcasting. Floats are summed in f64.
struct SumTo {
    shape: Dims,
}

impl SumTo {
    fn axes(&self, x: &[usize]) -> SmallVec<[usize; 6]> {
        let lead = x.len() - self.shape.len();
        (0..x.len()).filter(|&a| a < lead || self.shape[a - lead] == 1 && x[a] != 1).collect()
    }
}

impl Kernel for SumTo {
    fn name(&self) -> &'static str {
        "SumTo"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("SumTo", inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype("SumTo", "a numeric dtype", x.dtype.name()));
        }
        let fits = x.rank() >= self.shape.len()
            && self.shape.iter().rev().zip(x.shape.iter().rev()).all(|(&s, &d)| s == d || s == 1);
        if !fits {
            return Err(Error::shape(
                "SumTo",
                format!("a shape that {:?} broadcasts to", self.shape),
                format!("{:?}", x.shape),
            ));
        }
        Ok(smallvec![Meta { dtype: x.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axes = self.axes(x.shape());
        let out = &outputs[0];
        if axes.is_empty() {
            copy_into(x, out);
            return Ok(());
        }
        let x = widened(x)?;
        let rows = Rows::new(&x, &axes)?;
        match x.dtype() {
            DType::F32 => sums::<f32>(Term::Value, &rows, out, |s, _| s),
            DType::F64 => sums::<f64>(Term::Value, &rows, out, |s, _| s),
            dtype => for_number!(dtype, T => {
                fold::fold::<T, _>(Wrapping { map: |x: T| x, by: |s: T, _| s }, &rows, out);
            }),
        }
        Ok(())
    }
}
