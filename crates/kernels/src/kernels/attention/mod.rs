//! Attention of one kernel: softmax(scale q kᵀ + mask) v without the matrix of scores in memory.
//!
//! For each query, keys are taken in tiles of 256: scores are chains over the features from +0.0, then
//! one multiplication by the scale, or one fma with the mask. The maximum m runs over the tiles; with
//! every new one the sum and the accumulators are multiplied by e^(old m - new m). e^(score - m) is
//! summed over the tile's keys in order, and the chain of each output goes on over them; the outputs
//! are multiplied by 1 / sum once, at the end. Each query has this order whatever the instruction set,
//! the threads and the queries beside it, but it is not that of MatMul, Softmax and MatMul: the
//! results differ from theirs by rounding, so that exact mode has no use for this kernel.

mod block;
mod few;
#[cfg(test)]
mod tests;
mod values;
mod workspace;

use crate::array::{Array, Dims, Meta, Strides, broadcast};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::{Matrix, Shared};
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::simd::{Isa, isa};
use block::ROWS;

use smallvec::smallvec;
use std::sync::Arc;
use workspace::{Head, Sizes, Workspace};

const NAME: &str = "FusedAttention";

pub(crate) const KERNELS: &[Entry] =
    &[Entry { name: "FusedAttention", build: |a| Ok(Arc::new(FusedAttention::new(a)?)) }];

/// `y[…, i, :] = Σⱼ softmaxⱼ(scale q[…, i, :]·k[…, j, :] + mask[…, i, j]) v[…, j, :]` for (q, k, v,
/// mask?) of f32, leading axes broadcast; `scale` is 1 / √D unless given. With `causal`, query i sees
/// the keys up to i only: the others are not read, except that their values may make it NaN where they
/// are not finite. A query whose keys are all masked by -inf is NaN, one without any keys 0.
struct FusedAttention {
    scale: Option<f32>,
    causal: bool,
}

impl FusedAttention {
    fn new(attributes: &mut Attributes) -> Result<Self> {
        let scale = attributes.float_opt("scale")?.map(|scale| scale as f32);
        Ok(Self { scale, causal: attributes.flag("causal", false)? })
    }
}

fn leading(shape: &[usize]) -> &[usize] {
    &shape[..shape.len() - 2]
}

/// The leading axes of the output.
fn batch(q: &[usize], k: &[usize], v: &[usize]) -> Result<Dims> {
    broadcast(NAME, &broadcast(NAME, leading(q), leading(k))?, leading(v))
}

impl Kernel for FusedAttention {
    fn name(&self) -> &'static str {
        NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(NAME, inputs, 3, 4)?;
        let dtype =
            inputs.same_dtype(&[0, 1, 2, 3][..if inputs.opt(3).is_some() { 4 } else { 3 }])?;
        if dtype != DType::F32 {
            return Err(Error::dtype(
                NAME,
                "float32 (MatMul and Softmax take others)",
                dtype.name(),
            ));
        }
        let (q, k, v) = (&inputs.get(0).shape, &inputs.get(1).shape, &inputs.get(2).shape);
        let fit = q.len() >= 2
            && k.len() >= 2
            && v.len() >= 2
            && q[q.len() - 1] == k[k.len() - 1]
            && k[k.len() - 2] == v[v.len() - 2];
        if !fit {
            return Err(Error::shape(
                NAME,
                "queries (…, L, D), keys (…, S, D) and values (…, S, E)",
                format!("{q:?}, {k:?} and {v:?}"),
            ));
        }
        let mut shape = batch(q, k, v)?;
        let (queries, keys) = (q[q.len() - 2], k[k.len() - 2]);
        if let Some(mask) = inputs.opt(3) {
            let mut scores = shape.clone();
            scores.extend([queries, keys]);
            if broadcast(NAME, &mask.shape, &scores)? != scores {
                return Err(Error::shape(
                    NAME,
                    format!("a mask that broadcasts to {scores:?}"),
                    format!("{:?}", mask.shape),
                ));
            }
        }
        shape.extend([queries, v[v.len() - 1]]);
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(q), Some(k), Some(v)) = (inputs[0], inputs[1], inputs[2]) else { return Ok(()) };
        let mask = inputs.get(3).copied().flatten();
        self.attend(isa(), [q, k, v], mask, &outputs[0])
    }
}

/// The matrices of one operand: the last two axes, and the strides of the leading ones as broadcast.
struct Stack {
    ptr: *const f32,
    strides: [isize; 2],
    batch: Strides,
}

impl Stack {
    /// `shape` is the whole of what the operand is broadcast to.
    fn new(x: &Array, shape: &[usize]) -> Self {
        let strides = crate::array::broadcast_strides(x, shape);
        let lead = shape.len() - 2;
        Self {
            ptr: x.as_ptr::<f32>(),
            strides: [strides[lead], strides[lead + 1]],
            batch: strides[..lead].into(),
        }
    }

    fn at(&self, batch: &[usize], index: usize) -> Matrix<f32> {
        let (mut rest, mut offset) = (index, 0);
        for axis in (0..batch.len()).rev() {
            offset += (rest % batch[axis]) as isize * self.batch[axis];
            rest /= batch[axis];
        }
        Matrix::new(self.ptr.wrapping_offset(offset), self.strides[0], self.strides[1])
    }
}

impl FusedAttention {
    fn attend(&self, isa: Isa, x: [&Array; 3], mask: Option<&Array>, out: &Array) -> Result<()> {
        let [q, k, v] = x;
        let batch = &batch(q.shape(), k.shape(), v.shape())?;
        let (queries, features) = (q.shape()[q.rank() - 2], q.shape()[q.rank() - 1]);
        let (keys, values) = (v.shape()[v.rank() - 2], v.shape()[v.rank() - 1]);
        if out.size() == 0 {
            return Ok(());
        }
        if keys == 0 {
            // SAFETY: the output of the running kernel.
            unsafe { out.as_mut_slice::<f32>() }.fill(0.0);
            return Ok(());
        }
        let stack = |x: &Array, rows: usize, columns: usize| {
            let mut shape = Dims::from_slice(batch);
            shape.extend([rows, columns]);
            Stack::new(x, &shape)
        };
        let q = stack(q, queries, features);
        let k = stack(k, keys, features);
        let v = stack(v, keys, values);
        let mask = mask.map(|mask| stack(mask, queries, keys));
        let scale = self.scale.unwrap_or_else(|| 1.0 / (features.max(1) as f32).sqrt());
        let sizes = Sizes { queries, keys, features, values, scale, causal: self.causal };

        let heads: usize = batch.iter().product();
        let blocks = queries.div_ceil(ROWS);
        let units = heads * blocks;
        let operations = 2 * heads * queries * keys * (features + values);
        let parts = parts_of(operations).min(units);
        let shared = Shared::new((&q, &k, &v, mask.as_ref(), out.as_mut_ptr::<f32>()));
        try_for_each(parts, |part| {
            let (q, k, v, mask, out) = shared.get();
            let mut work = Workspace::new(NAME, isa, sizes)?;
            let mut prepared = None;
            for unit in units * part / parts..units * (part + 1) / parts {
                let index = unit / blocks;
                let mut head = Head {
                    q: q.at(batch, index),
                    k: k.at(batch, index),
                    v: v.at(batch, index),
                    mask: mask.map(|mask| mask.at(batch, index)),
                    out: out.wrapping_add(index * queries * values),
                };
                // SAFETY: the arrays' own extents and strides; each unit has rows of the output of
                // its own, which overlap no input.
                unsafe {
                    work.arrange(NAME, &mut head, prepared == Some(index))?;
                    prepared = Some(index);
                    work.block(head, unit % blocks * ROWS);
                }
            }
            Ok(())
        })
    }
}
