//! What the random kernels share: the stream's attributes and walking its blocks.

use super::philox::philox;
use crate::array::{Array, Dims, element_count};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::parallel;

/// Blocks of four words in one part.
const GRAIN: usize = 1 << 12;

/// One stream of words: the key is `seed`, the counter of block i is i in its low half and
/// `counter` in its high half. A generator that advances `counter` by one for each draw therefore
/// never repeats a word.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    seed: u64,
    counter: u64,
}

impl Stream {
    pub(super) fn read(attributes: &mut Attributes) -> Result<Self> {
        let seed = attributes.int_required("seed")?.cast_unsigned();
        Ok(Self { seed, counter: attributes.int("counter", 0)?.cast_unsigned() })
    }

    #[inline]
    pub(super) fn block(self, index: u64) -> [u32; 4] {
        let (low, high) = (index as u32, (index >> 32) as u32);
        let (c0, c1) = (self.counter as u32, (self.counter >> 32) as u32);
        philox([low, high, c0, c1], [self.seed as u32, (self.seed >> 32) as u32])
    }

    /// Word pair `index` as one number: words 2 i and 2 i + 1, the first one low.
    #[inline]
    pub(super) fn wide(self, index: u64) -> u64 {
        wide(self.block(index / 2), (index % 2) as usize)
    }

    /// Fills `out` with `N` elements for each block.
    pub(super) fn fill<T: Element, const N: usize>(
        self,
        out: &Array,
        convert: impl Fn([u32; 4]) -> [T; N] + Sync,
    ) {
        let (to, size) = (Shared::new(out.as_mut_ptr::<T>()), out.size());
        parallel::for_ranges(size.div_ceil(N), GRAIN, |range| {
            for block in range {
                let values = convert(self.block(block as u64));
                let start = block * N;
                for (i, value) in values.into_iter().enumerate().take(size - start) {
                    // SAFETY: elements of this block alone, inside the output.
                    unsafe { *to.get().add(start + i) = value };
                }
            }
        });
    }
}

/// Half `half` of a block as one number.
#[inline]
pub(super) fn wide(words: [u32; 4], half: usize) -> u64 {
    u64::from(words[2 * half]) | u64::from(words[2 * half + 1]) << 32
}

/// The top 24 bits over 2^24: in [0, 1), exact in f32.
#[inline]
pub(super) fn unit32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The top 53 bits over 2^53: in [0, 1), exact in f64.
#[inline]
pub(super) fn unit64(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// The attributes `shape` and `dtype`.
pub(super) fn shape_and_dtype(
    attributes: &mut Attributes,
    default: DType,
) -> Result<(Dims, DType)> {
    let shape: Dims = attributes.sizes_required("shape")?.into_iter().collect();
    let dtype = attributes.dtype_opt("dtype")?.unwrap_or(default);
    element_count(attributes.operator(), &shape, dtype)?;
    Ok((shape, dtype))
}
