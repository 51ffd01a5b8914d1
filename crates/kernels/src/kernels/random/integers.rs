//! RandomIntegers and RandomPermutation.

use super::draws::{Stream, shape_and_dtype, wide};
use crate::array::{Array, Dims, Meta, element_count};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "RandomIntegers", build: RandomIntegers::build },
    Entry { name: "RandomPermutation", build: RandomPermutation::build },
];

/// `floor(word * range / 2^64)`: a number below `range` whose probability is off by at most
/// `range / 2^64`.
fn below(word: u64, range: u64) -> u64 {
    ((u128::from(word) * u128::from(range)) >> 64) as u64
}

/// Integers drawn evenly from [low, high): element i takes the i-th pair of words.
struct RandomIntegers {
    stream: Stream,
    low: i64,
    range: u64,
    shape: Dims,
    dtype: DType,
}

impl RandomIntegers {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "RandomIntegers";
        let (shape, dtype) = shape_and_dtype(attributes, DType::I64)?;
        let (low, high) = (attributes.int("low", 0)?, attributes.int_required("high")?);
        if !dtype.is_int() {
            return Err(Error::dtype(OP, "an integer dtype", dtype.name()));
        }
        let bits = 8 * dtype.size() as u32;
        let (least, most) = if dtype.is_signed_int() {
            (-(1i128 << (bits - 1)), 1i128 << (bits - 1))
        } else {
            (0, 1i128 << bits)
        };
        if low >= high || i128::from(low) < least || i128::from(high) > most {
            return Err(Error::attribute(
                OP,
                format!("low < high, both of the range of {}", dtype.name()),
                format!("{low}, {high}"),
            ));
        }
        let range = high.wrapping_sub(low).cast_unsigned();
        Ok(Arc::new(Self { stream: Stream::read(attributes)?, low, range, shape, dtype }))
    }
}

impl Kernel for RandomIntegers {
    fn name(&self) -> &'static str {
        "RandomIntegers"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta { dtype: self.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (low, range) = (self.low.cast_unsigned(), self.range);
        for_size!(self.dtype, T => self.stream.fill(&outputs[0], move |words| {
            [0, 1].map(|half| low.wrapping_add(below(wide(words, half), range)) as T)
        }));
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }
}

/// The numbers 0 to n - 1 in random order, int64, by Fisher and Yates' exchange: for i from n - 1
/// down to 1, element i changes places with element `floor(w * (i + 1) / 2^64)`, w being word pair
/// n - 1 - i.
struct RandomPermutation {
    stream: Stream,
    n: usize,
}

impl RandomPermutation {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "RandomPermutation";
        let n = attributes.int_required("n")?;
        let n = usize::try_from(n)
            .map_err(|_| Error::attribute(OP, "n not negative", n.to_string()))?;
        element_count(OP, &[n], DType::I64)?;
        Ok(Arc::new(Self { stream: Stream::read(attributes)?, n }))
    }
}

impl Kernel for RandomPermutation {
    fn name(&self) -> &'static str {
        "RandomPermutation"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta::new(DType::I64, &[self.n])])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        // SAFETY: the kernel's own output, contiguous.
        let out = unsafe { outputs[0].as_mut_slice::<i64>() };
        for (i, x) in out.iter_mut().enumerate() {
            *x = i as i64;
        }
        for i in (1..self.n).rev() {
            let word = self.stream.wide((self.n - 1 - i) as u64);
            out.swap(i, below(word, i as u64 + 1) as usize);
        }
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }
}
