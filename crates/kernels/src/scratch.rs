//! Reusable working memory for packing and partial results.

use crate::array::{ALIGNMENT, cache};
use crate::dtype::Element;
use crate::error::{Error, Result};
use std::ptr::NonNull;

/// Working memory that goes back to the kept blocks when dropped.
pub struct Scratch {
    block: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the block is plain bytes that this value alone holds.
unsafe impl Send for Scratch {}

impl Scratch {
    /// At least `bytes` of 64-byte-aligned memory with unspecified content.
    ///
    /// # Errors
    /// `Memory` when it cannot be allocated.
    pub fn new(operator: &str, bytes: usize) -> Result<Self> {
        let refused =
            || Error::memory(operator, "working memory", format!("no room for {bytes} bytes"));
        let whole = bytes.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(refused)?;
        if whole > isize::MAX as usize - ALIGNMENT {
            return Err(refused());
        }
        let block = NonNull::new(cache::allocate(whole, false)).ok_or_else(refused)?;
        Ok(Self { block, bytes: whole })
    }

    /// The memory as elements of `T`.
    #[allow(clippy::should_implement_trait)]
    pub fn as_mut<T: Element>(&mut self) -> &mut [T] {
        let n = self.bytes / size_of::<T>();
        // SAFETY: aligned to 64, exclusively borrowed, and any bytes are valid for an Element.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().cast::<T>(), n) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated with this size, and released once.
        unsafe { cache::release(self.block, self.bytes) }
    }
}
