//! Optimiser steps, written in place through `run_into`, and the norm of many gradients.

use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::parallel;
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "SgdStep", build: SgdStep::build },
    Entry { name: "AdamWStep", build: AdamWStep::build },
    Entry { name: "GlobalNorm", build: |_| Ok(Arc::new(GlobalNorm)) },
];

/// Elements of one part of a step.
const GRAIN: usize = 1 << 15;

trait Float:
    Element
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
    fn sqrt(self) -> Self;
}

impl Float for f32 {
    fn of(x: f64) -> Self {
        x as Self
    }
    fn to(self) -> f64 {
        f64::from(self)
    }
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }
}

impl Float for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn to(self) -> f64 {
        self
    }
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }
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

/// Pointers to the same elements of several arrays, walked in parts.
#[derive(Clone, Copy)]
struct Elements<T, const N: usize>([*mut T; N]);
// SAFETY: parts touch disjoint ranges of elements.
unsafe impl<T, const N: usize> Sync for Elements<T, N> {}

impl<T: Float, const N: usize> Elements<T, N> {
    /// Calls `body` for each element index with the `N` values, which it may change; the first
    /// `written` are stored into the outputs.
    fn update<const W: usize>(
        self,
        outputs: [*mut T; W],
        size: usize,
        body: impl Fn([T; N]) -> [T; W] + Sync,
    ) {
        let outputs = Elements(outputs);
        parallel::for_ranges(size, GRAIN, |range| {
            let (ins, outs) = (&self, &outputs);
            for i in range {
                // SAFETY: contiguous arrays of `size` elements; an output that is an input's
                // memory is written after its element was read.
                unsafe {
                    let values = body(std::array::from_fn(|k| *ins.0[k].add(i)));
                    for (out, value) in outs.0.iter().zip(values) {
                        *out.add(i) = value;
                    }
                }
            }
        });
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
        let (p, g) = (p.as_mut_ptr::<T>(), g.as_mut_ptr::<T>());
        let size = outputs[0].size();
        let out = outputs[0].as_mut_ptr::<T>();
        let (lr, decay) = (T::of(self.lr), T::of(self.weight_decay));
        let decays = self.weight_decay != 0.0;
        let decayed = move |p: T, g: T| if decays { g + decay * p } else { g };
        if self.momentum == 0.0 {
            Elements([p, g]).update([out], size, |[p, g]| [p - lr * decayed(p, g)]);
            return Ok(());
        }
        let (momentum, fresh) = (T::of(self.momentum), T::of(1.0 - self.dampening));
        let nesterov = self.nesterov;
        let step =
            move |p: T, g: T, b: T| [p - lr * if nesterov { g + momentum * b } else { b }, b];
        let outs = [out, outputs[1].as_mut_ptr::<T>()];
        match inputs.get(2).copied().flatten() {
            Some(buffer) => {
                let buffer = buffer.to_contiguous()?;
                let b = buffer.as_mut_ptr::<T>();
                Elements([p, g, b]).update(outs, size, |[p, g, b]| {
                    let g = decayed(p, g);
                    step(p, g, momentum * b + fresh * g)
                });
            }
            None => Elements([p, g]).update(outs, size, |[p, g]| {
                let g = decayed(p, g);
                step(p, g, g)
            }),
        }
        Ok(())
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
        let size = outputs[0].size();
        let outs: [*mut T; 3] = std::array::from_fn(|k| outputs[k].as_mut_ptr::<T>());
        let keep = T::of(1.0 - self.lr * self.weight_decay);
        let decay = T::of(self.weight_decay);
        let (decoupled, decays) = (self.decoupled, self.weight_decay != 0.0);
        let (fresh1, beta2, fresh2) =
            (T::of(1.0 - self.beta1), T::of(self.beta2), T::of(1.0 - self.beta2));
        let size1 = T::of(self.lr / (1.0 - power(self.beta1, self.step)));
        let root2 = T::of((1.0 - power(self.beta2, self.step)).sqrt());
        let eps = T::of(self.eps);
        Elements(std::array::from_fn(|k| arrays[k].as_mut_ptr::<T>())).update(
            outs,
            size,
            |[p, g, m, v]: [T; 4]| {
                let p0 = if decoupled && decays { p * keep } else { p };
                let g = if !decoupled && decays { g + decay * p } else { g };
                let m = m + fresh1 * (g - m);
                let v = beta2 * v + (fresh2 * g) * g;
                let d = v.sqrt() / root2 + eps;
                [p0 - (size1 * m) / d, m, v]
            },
        );
        Ok(())
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

const LANES: usize = 16;
const BLOCK: usize = 1 << 16;

fn block_sum<T: Float>(block: &[T]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let chunks = block.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x.to() * x.to();
        }
    }
    for (lane, x) in lanes.iter_mut().zip(tail) {
        *lane += x.to() * x.to();
    }
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

fn square_sum<T: Float>(array: &Array) -> Result<f64> {
    let array = array.to_contiguous()?;
    let data = array.as_slice::<T>();
    let mut sums = vec![0.0f64; data.len().div_ceil(BLOCK)];
    let room = sums.as_mut_ptr() as usize;
    parallel::for_each(sums.len(), |i| {
        let block = &data[i * BLOCK..((i + 1) * BLOCK).min(data.len())];
        // SAFETY: element i is this part's own.
        unsafe { *(room as *mut f64).add(i) = block_sum(block) };
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
