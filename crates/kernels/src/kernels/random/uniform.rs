//! RandomUniform and RandomBernoulli.

use super::draws::{Stream, shape_and_dtype, unit32, unit64, wide};
use crate::array::{Array, Dims, Meta};
use crate::attributes::{Attributes, Number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use half::{bf16, f16};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "RandomUniform", build: RandomUniform::build },
    Entry { name: "RandomBernoulli", build: RandomBernoulli::build },
];

/// Numbers drawn evenly from [low, high). Element i of f32 takes word i: its top 24 bits over 2^24
/// are u, and the element is `low + (high - low) * u`, two roundings, moved to the last number
/// below `high` where rounding reaches it. f64 takes two words and 53 bits; f16 and bf16 are the
/// f32 number rounded.
struct RandomUniform {
    stream: Stream,
    low: f64,
    high: f64,
    shape: Dims,
    dtype: DType,
}

impl RandomUniform {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "RandomUniform";
        let (shape, dtype) = shape_and_dtype(attributes, DType::F32)?;
        let (low, high) = (attributes.float("low", 0.0)?, attributes.float("high", 1.0)?);
        if !dtype.is_float() {
            return Err(Error::dtype(OP, "a float dtype", dtype.name()));
        }
        if !(low <= high && (high - low).is_finite()) {
            return Err(Error::attribute(OP, "low <= high, both finite", format!("{low}, {high}")));
        }
        Ok(Arc::new(Self { stream: Stream::read(attributes)?, low, high, shape, dtype }))
    }
}

impl Kernel for RandomUniform {
    fn name(&self) -> &'static str {
        "RandomUniform"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta { dtype: self.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        let (low, high) = (self.low as f32, self.high as f32);
        let single = move |word: u32| {
            let x = low + (high - low) * unit32(word);
            if x >= high && low < high { high.next_down() } else { x }
        };
        match self.dtype {
            DType::F16 => self.stream.fill(out, |w| w.map(|w| f16::from_f32(single(w)))),
            DType::BF16 => self.stream.fill(out, |w| w.map(|w| bf16::from_f32(single(w)))),
            DType::F32 => self.stream.fill(out, |w| w.map(single)),
            _ => self.stream.fill(out, |words| {
                [0, 1].map(|half| {
                    let x = self.low + (self.high - self.low) * unit64(wide(words, half));
                    if x >= self.high && self.low < self.high { self.high.next_down() } else { x }
                })
            }),
        }
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }
}

/// 1 with probability `p`, else 0, in any dtype (bool by default): element i is 1 where word i over
/// 2^32 is below `p`.
struct RandomBernoulli {
    stream: Stream,
    p: f64,
    shape: Dims,
    dtype: DType,
}

impl RandomBernoulli {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let (shape, dtype) = shape_and_dtype(attributes, DType::Bool)?;
        let p = attributes.float("p", 0.5)?;
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::attribute("RandomBernoulli", "p in [0, 1]", p.to_string()));
        }
        Ok(Arc::new(Self { stream: Stream::read(attributes)?, p, shape, dtype }))
    }
}

impl Kernel for RandomBernoulli {
    fn name(&self) -> &'static str {
        "RandomBernoulli"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta { dtype: self.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let one = Number::Int(1).bits(self.dtype);
        let p = self.p;
        for_size!(self.dtype, T => self.stream.fill(&outputs[0], move |words| {
            words.map(|w| if f64::from(w) * (1.0 / 4_294_967_296.0) < p { one as T } else { 0 })
        }));
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }
}
