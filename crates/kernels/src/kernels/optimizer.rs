//! Optimiser steps, written in place through `run_into`, and the norm of many gradients.

use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, Piece, Term, for_lanes, tree};
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "SgdStep", build: SgdStep::build },
    Entry { name: "AdamWStep", build: AdamWStep::build },
    Entry { name: "GlobalNorm", build: |_| Ok(Arc::new(GlobalNorm)) },
];

/// Elements of one part of a step.
const GRAIN: usize = 1 << 15;

trait Float: Lane {
    /// The square of a number in f64, rounded once, in a sum.
    const SQUARE: Term;
}

impl Float for f32 {
    // The product of two f32 is exact in f64, with or without fma.
    const SQUARE: Term = Term::Deviation(0.0);
}

impl Float for f64 {
    const SQUARE: Term = Term::RoundedSquare;
}

fn check_same(operator: &str, inputs: &Inputs<'_>, indices: &[usize]) -> Result<Meta> {
    let first = inputs.get(0);
    if !matches!(first.dtype, DType::F32 | DType::F64) {
        return Err(Error::dtype(operator, "float32 or float64", first.dtype.name()));
    }
    for &i in indices {
        if let Some(meta) = inputs.opt(i)
            && meta != first
        {
            return Err(Error::shape(
                operator,
                format!("input {i} like input 0: {} {:?}", first.dtype.name(), first.shape),
                format!("{} {:?}", meta.dtype.name(), meta.shape),
            ));
        }
    }
    Ok(first.clone())
}

fn rate(attributes: &mut Attributes, name: &'static str, default: Option<f64>) -> Result<f64> {
    let value = match default {
        Some(default) => attributes.float(name, default)?,
        None => attributes.float_required(name)?,
    };
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::attribute(attributes.operator(), format!("{name} to be finite"), value.to_string()))
}

/// What a step makes of `N` numbers of an element: the `W` that are stored.
trait Rule<T: Lane, const N: usize, const W: usize>: Copy + Sync {
    fn apply<S: Simd>(self, s: S, values: [T::V<S>; N]) -> [T::V<S>; W];
}

/// Applies the rule to each element. An output may be an input's memory.
fn update<T: Lane, R: Rule<T, N, W>, const N: usize, const W: usize>(
    rule: R,
    from: [*const T; N],
    to: [*mut T; W],
    size: usize,
) {
    let job = Shared::new((from, to));
    parallel::for_ranges(size, GRAIN, |range| {
        let (from, to) = job.get();
        dispatch(Update { rule, from, to, range });
    });
}

struct Update<T, R, const N: usize, const W: usize> {
    rule: R,
    from: [*const T; N],
    to: [*mut T; W],
    range: std::ops::Range<usize>,
}

impl<T: Lane, R: Rule<T, N, W>, const N: usize, const W: usize> WithSimd for Update<T, R, N, W> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let start = self.range.start;
        // SAFETY: contiguous arrays that hold the range; an output that is an input's memory is
        // written after its elements were read.
        unsafe {
            for_lanes!(self.range.len(), |i, count| {
                let mut values = [T::splat(s, T::ZERO); N];
                for k in 0..N {
                    values[k] = T::get(s, self.from[k].add(start + i), count);
                }
                let results = self.rule.apply(s, values);
                for k in 0..W {
                    T::put(s, self.to[k].add(start + i), count, results[k]);
                }
            });
        }
    }
}

/// Stochastic gradient descent as PyTorch computes it, one rounding for each operation:
/// `g = g + weight_decay * p` (if not 0); with momentum `b = momentum * b + (1 - dampening) * g`,
/// or `b = g` when no buffer is given (the first step), and then `g = g + momentum * b` (nesterov)
/// or `g = b`; `p = p - lr * g`. Inputs p, g and the optional buffer; outputs p and, with momentum,
/// the buffer. Coefficients are rounded to the dtype once.
struct SgdStep {
    lr: f64,
    momentum: f64,
    dampening: f64,
    weight_decay: f64,
    nesterov: bool,
}

impl SgdStep {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let step = Self {
            lr: rate(attributes, "lr", None)?,
            momentum: rate(attributes, "momentum", Some(0.0))?,
            dampening: rate(attributes, "dampening", Some(0.0))?,
            weight_decay: rate(attributes, "weight_decay", Some(0.0))?,
            nesterov: attributes.flag("nesterov", false)?,
        };
        if step.nesterov && (step.momentum <= 0.0 || step.dampening != 0.0) {
            return Err(Error::attribute(
                "SgdStep",
                "nesterov with a positive momentum and no dampening",
                format!("momentum {}, dampening {}", step.momentum, step.dampening),
            ));
        }
        Ok(Arc::new(step))
    }

    fn typed<T: Float>(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(p), Some(g)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let (p, g) = (p.to_contiguous()?, g.to_contiguous()?);
        let (p, g) = (p.as_ptr::<T>(), g.as_ptr::<T>());
        let size = outputs[0].size();
        let out = outputs[0].as_mut_ptr::<T>();
        let rule = Sgd {
            lr: T::from_f64(self.lr),
            decay: (self.weight_decay != 0.0).then(|| T::from_f64(self.weight_decay)),
            momentum: T::from_f64(self.momentum),
            fresh: T::from_f64(1.0 - self.dampening),
            nesterov: self.nesterov,
        };
        if self.momentum == 0.0 {
            update(Plain(rule), [p, g], [out], size);
            return Ok(());
        }
        let outs = [out, outputs[1].as_mut_ptr::<T>()];
        match inputs.get(2).copied().flatten() {
            Some(buffer) => {
                let buffer = buffer.to_contiguous()?;
                update(Continued(rule), [p, g, buffer.as_ptr::<T>()], outs, size);
            }
            None => update(First(rule), [p, g], outs, size),
        }
        Ok(())
    }
}

/// The coefficients of a step of gradient descent.
#[derive(Clone, Copy)]
struct Sgd<T> {
    lr: T,
    decay: Option<T>,
    momentum: T,
    fresh: T,
    nesterov: bool,
}

impl<T: Float> Sgd<T> {
    #[inline(always)]
    fn decayed<S: Simd>(self, s: S, p: T::V<S>, g: T::V<S>) -> T::V<S> {
        match self.decay {
            Some(decay) => T::v_add(s, g, T::v_mul(s, T::splat(s, decay), p)),
            None => g,
        }
    }

    #[inline(always)]
    fn stepped<S: Simd>(self, s: S, p: T::V<S>, g: T::V<S>) -> T::V<S> {
        T::v_sub(s, p, T::v_mul(s, T::splat(s, self.lr), g))
    }

    /// The parameter and the buffer from the gradient and the new buffer.
    #[inline(always)]
    fn with_buffer<S: Simd>(self, s: S, p: T::V<S>, g: T::V<S>, b: T::V<S>) -> [T::V<S>; 2] {
        let g = if self.nesterov {
            T::v_add(s, g, T::v_mul(s, T::splat(s, self.momentum), b))
        } else {
            b
        };
        [self.stepped(s, p, g), b]
    }
}

/// Without momentum.
#[derive(Clone, Copy)]
struct Plain<T>(Sgd<T>);

impl<T: Float> Rule<T, 2, 1> for Plain<T> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, [p, g]: [T::V<S>; 2]) -> [T::V<S>; 1] {
        let g = self.0.decayed(s, p, g);
        [self.0.stepped(s, p, g)]
    }
}

/// The first step with momentum.
#[derive(Clone, Copy)]
struct First<T>(Sgd<T>);

impl<T: Float> Rule<T, 2, 2> for First<T> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, [p, g]: [T::V<S>; 2]) -> [T::V<S>; 2] {
        let g = self.0.decayed(s, p, g);
        self.0.with_buffer(s, p, g, g)
    }
}

/// A later step with momentum.
#[derive(Clone, Copy)]
struct Continued<T>(Sgd<T>);

impl<T: Float> Rule<T, 3, 2> for Continued<T> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, [p, g, b]: [T::V<S>; 3]) -> [T::V<S>; 2] {
        let rule = self.0;
        let g = rule.decayed(s, p, g);
        let kept = T::v_mul(s, T::splat(s, rule.momentum), b);
        let b = T::v_add(s, kept, T::v_mul(s, T::splat(s, rule.fresh), g));
        rule.with_buffer(s, p, g, b)
    }
}

impl Kernel for SgdStep {
    fn name(&self) -> &'static str {
        "SgdStep"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 3)?;
        let meta = check_same(self.name(), &inputs, &[1, 2])?;
        if self.momentum == 0.0 && inputs.opt(2).is_some() {
            return Err(Error::usage(self.name(), "no buffer without momentum", "a buffer"));
        }
        Ok(if self.momentum == 0.0 { smallvec![meta] } else { smallvec![meta.clone(), meta] })
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed::<f32>(inputs, outputs),
            _ => self.typed::<f64>(inputs, outputs),
        }
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (2, 1)]
    }

    fn single_output(&self) -> bool {
        self.momentum == 0.0
    }
}

/// Adam with (`decoupled`, the default) AdamW's weight decay, as PyTorch computes it, one rounding
/// for each operation: `p = p * (1 - lr * weight_decay)`, or, not decoupled,
/// `g = g + weight_decay * p`; `m = m + (1 - beta1) * (g - m)`;
/// `v = beta2 * v + ((1 - beta2) * g) * g`; `d = sqrt(v) / sqrt(1 - beta2^step) + eps`;
/// `p = p - ((lr / (1 - beta1^step)) * m) / d`. Coefficients are computed in f64 (powers by
/// squaring) and rounded to the dtype once. Inputs and outputs p, g, m, v and p, m, v.
struct AdamWStep {
    lr: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    weight_decay: f64,
    step: u64,
    decoupled: bool,
}

/// `base^exponent` by squaring, from the lowest bit.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

impl AdamWStep {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "AdamWStep";
        let step = attributes.int_required("step")?;
        let adam = Self {
            lr: rate(attributes, "lr", None)?,
            beta1: rate(attributes, "beta1", Some(0.9))?,
            beta2: rate(attributes, "beta2", Some(0.999))?,
            eps: rate(attributes, "eps", Some(1e-8))?,
            weight_decay: rate(attributes, "weight_decay", Some(0.01))?,
            step: step.max(1).cast_unsigned(),
            decoupled: attributes.flag("decoupled", true)?,
        };
        if step < 1 {
            return Err(Error::attribute(OP, "step at least 1", step.to_string()));
        }
        for (name, beta) in [("beta1", adam.beta1), ("beta2", adam.beta2)] {
            if !(0.0..1.0).contains(&beta) {
                return Err(Error::attribute(OP, format!("{name} in [0, 1)"), beta.to_string()));
            }
        }
        Ok(Arc::new(adam))
    }

    fn typed<T: Float>(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(p), Some(g), Some(m), Some(v)) = (inputs[0], inputs[1], inputs[2], inputs[3])
        else {
            return Ok(());
        };
        let arrays =
            [p.to_contiguous()?, g.to_contiguous()?, m.to_contiguous()?, v.to_contiguous()?];
        let outs: [*mut T; 3] = std::array::from_fn(|k| outputs[k].as_mut_ptr::<T>());
        let decays = self.weight_decay != 0.0;
        let keep = T::from_f64(1.0 - self.lr * self.weight_decay);
        let rule = Adam {
            keep: (self.decoupled && decays).then_some(keep),
            decay: (!self.decoupled && decays).then(|| T::from_f64(self.weight_decay)),
            fresh1: T::from_f64(1.0 - self.beta1),
            beta2: T::from_f64(self.beta2),
            fresh2: T::from_f64(1.0 - self.beta2),
            size1: T::from_f64(self.lr / (1.0 - power(self.beta1, self.step))),
            root2: T::from_f64((1.0 - power(self.beta2, self.step)).sqrt()),
            eps: T::from_f64(self.eps),
        };
        let from = std::array::from_fn(|k| arrays[k].as_ptr::<T>());
        update(rule, from, outs, outputs[0].size());
        Ok(())
    }
}

/// The coefficients of a step of Adam.
#[derive(Clone, Copy)]
struct Adam<T> {
    /// What is left of a parameter, or what is added to its gradient.
    keep: Option<T>,
    decay: Option<T>,
    fresh1: T,
    beta2: T,
    fresh2: T,
    size1: T,
    root2: T,
    eps: T,
}

impl<T: Float> Rule<T, 4, 3> for Adam<T> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, [p, g, m, v]: [T::V<S>; 4]) -> [T::V<S>; 3] {
        let times = |a: T, b: T::V<S>| T::v_mul(s, T::splat(s, a), b);
        let kept = match self.keep {
            Some(keep) => times(keep, p),
            None => p,
        };
        let g = match self.decay {
            Some(decay) => T::v_add(s, g, times(decay, p)),
            None => g,
        };
        let m = T::v_add(s, m, times(self.fresh1, T::v_sub(s, g, m)));
        let v = T::v_add(s, times(self.beta2, v), T::v_mul(s, times(self.fresh2, g), g));
        let root = T::v_div(s, T::v_sqrt(s, v), T::splat(s, self.root2));
        let d = T::v_add(s, root, T::splat(s, self.eps));
        [T::v_sub(s, kept, T::v_div(s, times(self.size1, m), d)), m, v]
    }
}

impl Kernel for AdamWStep {
    fn name(&self) -> &'static str {
        "AdamWStep"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 4, 4)?;
        let meta = check_same(self.name(), &inputs, &[1, 2, 3])?;
        Ok(std::iter::repeat_n(meta, 3).collect())
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed::<f32>(inputs, outputs),
            _ => self.typed::<f64>(inputs, outputs),
        }
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (2, 1), (3, 2)]
    }

    fn single_output(&self) -> bool {
        false
    }
}

/// The square root of the sum of all squares of all inputs, in the inputs' dtype. Each array is
/// taken in row-major order in blocks of 65,536; a block goes through 16 lanes (lane l taking
/// elements l, l + 16, …) in f64 and a fixed tree; block sums are added in order, then arrays' sums
/// in order; one square root, one rounding.
struct GlobalNorm;

const BLOCK: usize = 1 << 16;

fn block_sum<T: Float>(block: &[T]) -> f64 {
    let mut lanes = [0.0; LANES];
    dispatch(Piece { term: T::SQUARE, lanes: &mut lanes, x: block });
    tree(lanes)
}

fn square_sum<T: Float>(array: &Array) -> Result<f64> {
    let array = array.to_contiguous()?;
    let data = array.as_slice::<T>();
    let mut sums = vec![0.0f64; data.len().div_ceil(BLOCK)];
    let room = Shared::new(sums.as_mut_ptr());
    parallel::for_each(sums.len(), |i| {
        let block = &data[i * BLOCK..((i + 1) * BLOCK).min(data.len())];
        // SAFETY: element i is this part's own.
        unsafe { *room.get().add(i) = block_sum(block) };
    });
    Ok(sums.iter().fold(0.0, |acc, s| acc + s))
}

impl Kernel for GlobalNorm {
    fn name(&self) -> &'static str {
        "GlobalNorm"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let count = inputs.len().max(1);
        let inputs = Inputs::new(self.name(), inputs, count, count)?;
        let every: Vec<usize> = (0..count).collect();
        let dtype = inputs.same_dtype(&every)?;
        if !matches!(dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(self.name(), "float32 or float64", dtype.name()));
        }
        Ok(smallvec![Meta::new(dtype, &[])])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let mut total = 0.0;
        for array in inputs.iter().flatten() {
            total += match array.dtype() {
                DType::F32 => square_sum::<f32>(array)?,
                _ => square_sum::<f64>(array)?,
            };
        }
        let norm: f64 = f64::sqrt(total);
        // SAFETY: the kernel's own output of one element.
        unsafe {
            match outputs[0].dtype() {
                DType::F32 => *outputs[0].as_mut_ptr::<f32>() = norm as f32,
                _ => *outputs[0].as_mut_ptr::<f64>() = norm,
            }
        }
        Ok(())
    }
}
