//! Range and EyeLike: tensors made from numbers.

use crate::array::{Array, Dims, Meta, element_count};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Range", build: Range::build },
    Entry { name: "EyeLike", build: EyeLike::build },
];

#[derive(Clone, Copy)]
enum Steps {
    Int { start: i64, delta: i64 },
    Float { start: f64, delta: f64 },
}

/// `start + i * delta` for i from 0 while below `limit` (above it for a negative `delta`).
/// Integers wrap exactly; floats are computed as an f64 product and an f64 sum, rounded once to
/// the dtype.
struct Range {
    steps: Steps,
    count: usize,
    dtype: DType,
}

impl Range {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "Range";
        let dtype = attributes.dtype_opt("dtype")?.unwrap_or(DType::I64);
        let (steps, count) = if dtype.is_int() {
            let start = attributes.int("start", 0)?;
            let limit = attributes.int_required("limit")?;
            let delta = attributes.int("delta", 1)?;
            if delta == 0 {
                return Err(Error::attribute(OP, "delta other than 0", "0"));
            }
            let span = i128::from(limit) - i128::from(start);
            let forward = (span > 0) == (delta > 0) && span != 0;
            let count = if forward { (span.abs() - 1) / i128::from(delta).abs() + 1 } else { 0 };
            (Steps::Int { start, delta }, usize::try_from(count).unwrap_or(usize::MAX))
        } else if dtype.is_float() {
            let start = attributes.float("start", 0.0)?;
            let limit = attributes.float_required("limit")?;
            let delta = attributes.float("delta", 1.0)?;
            let count = ((limit - start) / delta).ceil();
            if count.is_nan() || !start.is_finite() || !delta.is_finite() {
                return Err(Error::attribute(
                    OP,
                    "finite start and delta, delta other than 0",
                    format!("start {start}, limit {limit}, delta {delta}"),
                ));
            }
            // `as` saturates, so that a huge count is refused by its bytes.
            (Steps::Float { start, delta }, count.max(0.0) as usize)
        } else {
            return Err(Error::dtype(OP, "a number", dtype.name()));
        };
        element_count(OP, &[count], dtype)?;
        Ok(Arc::new(Self { steps, count, dtype }))
    }
}

fn fill<T: crate::dtype::Element>(out: &Array, value: impl Fn(usize) -> T) {
    // SAFETY: the kernel's own output, contiguous.
    let out = unsafe { out.as_mut_slice::<T>() };
    for (i, x) in out.iter_mut().enumerate() {
        *x = value(i);
    }
}

impl Kernel for Range {
    fn name(&self) -> &'static str {
        "Range"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta::new(self.dtype, &[self.count])])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        match self.steps {
            Steps::Int { start, delta } => {
                let at = |i: usize| start.wrapping_add(delta.wrapping_mul(i as i64));
                match self.dtype.size() {
                    1 => fill(out, |i| at(i) as u8),
                    2 => fill(out, |i| at(i) as u16),
                    4 => fill(out, |i| at(i) as u32),
                    _ => fill(out, |i| at(i) as u64),
                }
            }
            Steps::Float { start, delta } => {
                let at = |i: usize| start + i as f64 * delta;
                match self.dtype {
                    DType::F16 => fill(out, |i| half::f16::from_f64(at(i))),
                    DType::BF16 => fill(out, |i| half::bf16::from_f64(at(i))),
                    DType::F32 => fill(out, |i| at(i) as f32),
                    _ => fill(out, at),
                }
            }
        }
        Ok(())
    }
}

/// 1 where `column - row == k`, 0 elsewhere, in the 2-D `shape`.
struct EyeLike {
    k: i64,
    dtype: DType,
    shape: Vec<usize>,
}

impl EyeLike {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let dtype = attributes.dtype_opt("dtype")?.unwrap_or(DType::F32);
        let k = attributes.int("k", 0)?;
        let shape = attributes.sizes_required("shape")?;
        if shape.len() != 2 {
            return Err(Error::attribute("EyeLike", "a shape of 2 axes", format!("{shape:?}")));
        }
        Ok(Arc::new(Self { k, dtype, shape }))
    }

    /// The bits of 1.
    fn one(&self) -> u64 {
        match self.dtype {
            DType::F16 => u64::from(half::f16::ONE.to_bits()),
            DType::BF16 => u64::from(half::bf16::ONE.to_bits()),
            DType::F32 => u64::from(1f32.to_bits()),
            DType::F64 => 1f64.to_bits(),
            _ => 1,
        }
    }
}

impl Kernel for EyeLike {
    fn name(&self) -> &'static str {
        "EyeLike"
    }

    /// An input, when given, is not read.
    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 1)?;
        Ok(smallvec![Meta { dtype: self.dtype, shape: Dims::from_slice(&self.shape) }])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        let (rows, cols) = (self.shape[0] as i64, self.shape[1] as i64);
        for_size!(self.dtype, T => {
            // SAFETY: the kernel's own output, contiguous.
            let data = unsafe { out.as_mut_slice::<T>() };
            data.fill(0);
            let first = self.k.checked_neg().unwrap_or(i64::MAX).max(0);
            let last = rows.min(cols.saturating_sub(self.k));
            for row in first..last {
                data[(row * cols + row + self.k) as usize] = self.one() as T;
            }
        });
        Ok(())
    }
}
