//! What follows a product or a convolution while its tile is still in the nearest cache.
//!
//! Each step is the arithmetic of the kernel it stands for, rounded by itself, so that fused and
//! separate kernels agree in every bit.

use crate::array::Array;
use crate::dtype::DType;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements of the largest tile.
const TILE: usize = 28 * LANES;

/// A function on slices of f32.
pub trait Floats: Send + Sync {
    fn floats(&self, x: &[f32], y: &mut [f32]);
}

/// Which way round an operation of two numbers reads the chain's result `x` and the operand `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Add,
    /// `x - b`.
    Sub,
    /// `b - x`.
    SubFrom,
    Mul,
    /// `x / b`.
    Div,
    /// `b / x`.
    DivInto,
}

/// The other number of an operation.
#[derive(Clone)]
pub enum Operand {
    Scalar(f32),
    /// One for each channel.
    Channel(Arc<[f32]>),
    /// The additional input of this index, laid out as the output.
    Input(usize),
}

/// One step.
#[derive(Clone)]
pub enum Step {
    /// `x < 0 ? 0 : x`.
    Relu,
    /// `x < min ? min : x`, then `x > max ? max : x`.
    Clip {
        min: f32,
        max: f32,
    },
    Combine(Operation, Operand),
    /// `fma(x - mean, factor, offset)` of the channel.
    Affine {
        mean: Arc<[f32]>,
        factor: Arc<[f32]>,
        offset: Arc<[f32]>,
    },
    Map(Arc<dyn Floats>),
}

/// The axis of the output along which channels lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelAxis {
    /// Axis 1 of (N, C, spatial…).
    Second,
    Last,
}

impl ChannelAxis {
    /// The channel axis of an output of shape `own` that is seen as `shape`; `None` where no axis of
    /// that shape holds just the channels.
    #[must_use]
    pub fn seen_in(self, shape: &[usize], own: &[usize]) -> Option<usize> {
        let axis = match self {
            Self::Second => 1,
            Self::Last => shape.len().checked_sub(1)?,
        };
        let from_own = match self {
            Self::Second => own.get(1..)?,
            Self::Last => own.last_chunk::<1>()?,
        };
        let seen = shape.get(axis..)?;
        let count = |extents: &[usize]| extents.iter().product::<usize>();
        (seen.first()? == from_own.first()? && count(seen) == count(from_own)).then_some(axis)
    }
}

/// What a kernel needs to know of the kernel before it to become a step.
pub struct Before<'a> {
    /// Position, among its own inputs, of the value that the chain makes.
    pub at: usize,
    /// Its inputs that are constant.
    pub constants: &'a [Option<&'a Array>],
    /// The index that its one other input gets when it is known at run time only.
    pub input: usize,
    /// The output's shape and channel axis, if one of its axes holds the channels.
    pub shape: &'a [usize],
    pub axis: Option<usize>,
}

impl Before<'_> {
    /// The values of a constant: one, or one for each channel. `None` for anything else.
    pub fn operand(&self, constant: &Array) -> Option<Operand> {
        if constant.dtype() != DType::F32 || constant.rank() > self.shape.len() {
            return None;
        }
        let dense = constant.to_contiguous().ok()?;
        // SAFETY: contiguous f32 elements.
        let values = unsafe { std::slice::from_raw_parts(dense.as_ptr::<f32>(), dense.size()) };
        if let [one] = values {
            return Some(Operand::Scalar(*one));
        }
        let axis = self.axis?;
        let lead = self.shape.len() - constant.rank();
        let along = constant
            .shape()
            .iter()
            .enumerate()
            .all(|(i, &d)| d == if lead + i == axis { self.shape[axis] } else { 1 });
        (along && lead <= axis).then(|| Operand::Channel(values.into()))
    }
}

/// The steps of one run.
pub struct Epilogue<'a> {
    pub steps: &'a [Step],
    /// First elements of the additional inputs.
    pub inputs: SmallVec<[*const f32; 2]>,
    pub destination: *const f32,
    /// Whether channels are the columns of a tile.
    pub by_columns: bool,
}

// SAFETY: parts read the inputs and steps, which nobody writes.
unsafe impl Sync for Epilogue<'_> {}

/// A tile of the destination: `rows` by `n` elements from `at`, and its first channel.
#[derive(Clone, Copy)]
pub struct Area {
    pub at: *mut f32,
    pub stride: usize,
    pub rows: usize,
    pub n: usize,
    pub channel: usize,
    /// Distance of the channels of neighbouring rows: 1, or 0 where all rows are of one channel.
    pub channel_step: usize,
}

/// The first steps of an epilogue where a tile applies them in registers: the affine map of its
/// channel, the sum with another input, the bounds.
#[derive(Clone, Copy)]
pub(crate) struct Finish<E> {
    /// Mean, factor and offset of each channel.
    pub affine: Option<[*const E; 3]>,
    /// Distance from an output to the element of the other input.
    pub residual: Option<isize>,
    pub clip: Option<[E; 2]>,
}

// SAFETY: parts read what it points to, which nobody writes.
unsafe impl<E: Sync> Sync for Finish<E> {}

impl<E> Finish<E> {
    /// The same for the channels from `channel` on.
    #[inline(always)]
    #[must_use]
    pub fn at(mut self, channel: usize) -> Self {
        self.affine = self.affine.map(|all| all.map(|p| p.wrapping_add(channel)));
        self
    }
}

/// An epilogue cut into what registers take and what is left.
pub(crate) struct Split<'a> {
    finish: Finish<f32>,
    rest: Option<Epilogue<'a>>,
    whole: &'a Epilogue<'a>,
}

/// An epilogue as tiles apply it.
#[derive(Clone, Copy)]
pub(crate) struct Tail<'a, E> {
    pub finish: Finish<E>,
    /// The steps behind it.
    pub rest: Option<&'a Epilogue<'a>>,
    /// All steps, for outputs that are not computed at their place but read another input there.
    pub whole: &'a Epilogue<'a>,
}

impl Split<'_> {
    #[must_use]
    pub(crate) fn tail(&self) -> Tail<'_, f32> {
        Tail { finish: self.finish, rest: self.rest.as_ref(), whole: self.whole }
    }
}

impl<'a> Epilogue<'a> {
    fn with_steps(&self, steps: &'a [Step]) -> Self {
        let (inputs, destination) = (self.inputs.clone(), self.destination);
        Self { steps, inputs, destination, by_columns: self.by_columns }
    }

    /// The steps that registers take, and the others.
    #[must_use]
    pub(crate) fn split(&'a self) -> Split<'a> {
        let mut steps = self.steps;
        let mut finish = Finish { affine: None, residual: None, clip: None };
        if let [Step::Affine { mean, factor, offset }, rest @ ..] = steps {
            finish.affine = Some([mean, factor, offset].map(|v| v.as_ptr()));
            steps = rest;
        }
        if let [Step::Combine(Operation::Add, Operand::Input(index)), rest @ ..] = steps {
            let distance = (self.inputs[*index] as isize).wrapping_sub(self.destination as isize);
            finish.residual = Some(distance / size_of::<f32>() as isize);
            steps = rest;
        }
        match steps {
            [Step::Relu, rest @ ..] => {
                // x < 0 ? 0 : x, and no upper bound.
                finish.clip = Some([0.0, f32::INFINITY]);
                steps = rest;
            }
            [Step::Clip { min, max }, rest @ ..] => {
                finish.clip = Some([*min, *max]);
                steps = rest;
            }
            _ => {}
        }
        let rest = (!steps.is_empty()).then(|| self.with_steps(steps));
        Split { finish, rest, whole: self }
    }

    /// Applies all steps to an area that holds finished chains.
    ///
    /// # Safety
    /// The area lies inside the destination, the inputs are laid out as the destination, and the
    /// steps hold a value for each channel.
    pub unsafe fn apply(&self, isa: Isa, area: Area) {
        dispatch_on(isa, Apply { epilogue: self, area });
    }
}

struct Apply<'a> {
    epilogue: &'a Epilogue<'a>,
    area: Area,
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for step in self.epilogue.steps {
            // SAFETY: the caller of `apply` promises the area, its inputs and its channels.
            unsafe {
                match step {
                    Step::Relu => self.each(s, |x, _, _, _| s.relu(x)),
                    Step::Clip { min, max } => {
                        let (low, high) = (s.splat(*min), s.splat(*max));
                        self.each(s, |x, _, _, _| {
                            let x = s.select(s.lt(x, low), low, x);
                            s.select(s.lt(high, x), high, x)
                        });
                    }
                    Step::Combine(operation, operand) => self.combine(s, *operation, operand),
                    Step::Affine { mean, factor, offset } => {
                        self.each(s, |x, r, j, n| {
                            let d = s.sub(x, self.channel(s, mean, r, j, n));
                            let (a, b) = (
                                self.channel(s, factor, r, j, n),
                                self.channel(s, offset, r, j, n),
                            );
                            s.fma(d, a, b)
                        });
                    }
                    Step::Map(f) => self.map(&**f),
                }
            }
        }
    }
}

impl Apply<'_> {
    /// Calls `f` with each vector, its row, its column and how many of its lanes count.
    #[inline(always)]
    unsafe fn each<S: Simd>(&self, s: S, f: impl Fn(S::F, usize, usize, usize) -> S::F) {
        let a = &self.area;
        for r in 0..a.rows {
            let row = a.at.wrapping_add(r * a.stride);
            let mut j = 0;
            // SAFETY: the area's elements.
            unsafe {
                while j + LANES <= a.n {
                    let p = row.add(j);
                    s.store(p, f(s.load(p), r, j, LANES));
                    j += LANES;
                }
                if j < a.n {
                    let (p, n) = (row.add(j), a.n - j);
                    s.store_n(p, n, f(s.load_n(p, n), r, j, n));
                }
            }
        }
    }

    /// The channel's value of a row, or those of `n` columns.
    #[inline(always)]
    unsafe fn channel<S: Simd>(&self, s: S, values: &[f32], r: usize, j: usize, n: usize) -> S::F {
        let a = &self.area;
        // SAFETY: a value for each channel.
        unsafe {
            if self.epilogue.by_columns {
                let p = values.as_ptr().add(a.channel + j);
                if n == LANES { s.load(p) } else { s.load_n(p, n) }
            } else {
                s.splat(*values.get_unchecked(a.channel + r * a.channel_step))
            }
        }
    }

    #[inline(always)]
    unsafe fn combine<S: Simd>(&self, s: S, operation: Operation, operand: &Operand) {
        // SAFETY: as `apply`.
        unsafe {
            match operation {
                Operation::Add => self.with(s, operand, |x, b| s.add(x, b)),
                Operation::Sub => self.with(s, operand, |x, b| s.sub(x, b)),
                Operation::SubFrom => self.with(s, operand, |x, b| s.sub(b, x)),
                Operation::Mul => self.with(s, operand, |x, b| s.mul(x, b)),
                Operation::Div => self.with(s, operand, |x, b| s.div(x, b)),
                Operation::DivInto => self.with(s, operand, |x, b| s.div(b, x)),
            }
        }
    }

    #[inline(always)]
    unsafe fn with<S: Simd>(&self, s: S, operand: &Operand, f: impl Fn(S::F, S::F) -> S::F) {
        // SAFETY: as `apply`.
        unsafe {
            match operand {
                Operand::Scalar(b) => {
                    let b = s.splat(*b);
                    self.each(s, |x, _, _, _| f(x, b));
                }
                Operand::Channel(values) => {
                    self.each(s, |x, r, j, n| f(x, self.channel(s, values, r, j, n)));
                }
                Operand::Input(index) => {
                    let start = self.area.at.cast_const().offset_from(self.epilogue.destination);
                    let from = self.epilogue.inputs[*index].offset(start);
                    self.each(s, |x, r, j, n| {
                        let p = from.add(r * self.area.stride + j);
                        f(x, if n == LANES { s.load(p) } else { s.load_n(p, n) })
                    });
                }
            }
        }
    }

    /// The function on all elements together, in pieces of a tile at most.
    unsafe fn map(&self, f: &dyn Floats) {
        let a = &self.area;
        let (mut x, mut y) = ([0f32; TILE], [0f32; TILE]);
        let columns = a.n.min(TILE);
        let rows = (TILE / columns.max(1)).max(1);
        let mut j = 0;
        while j < a.n {
            let n = columns.min(a.n - j);
            let mut r = 0;
            while r < a.rows {
                let count = rows.min(a.rows - r);
                // SAFETY: the area's elements.
                unsafe {
                    let row = |i: usize| a.at.add((r + i) * a.stride + j);
                    for i in 0..count {
                        std::ptr::copy_nonoverlapping(row(i), x.as_mut_ptr().add(i * n), n);
                    }
                    f.floats(&x[..count * n], &mut y[..count * n]);
                    for i in 0..count {
                        std::ptr::copy_nonoverlapping(y.as_ptr().add(i * n), row(i), n);
                    }
                }
                r += count;
            }
            j += n;
        }
    }
}
