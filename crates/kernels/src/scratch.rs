//! Reusable per-thread working memory for packing and partial results.

use crate::array::ALIGNMENT;
use crate::error::Result;
use std::cell::RefCell;

thread_local! {
    static FREE: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; ALIGNMENT]);

struct Block(Vec<Line>);

/// Working memory of one thread; returns to the thread's free list when dropped.
pub struct Scratch(Option<Block>);

impl Scratch {
    /// At least `bytes` of 64-byte-aligned memory with unspecified content.
    ///
    /// # Errors
    /// `Memory` when it cannot be allocated.
    pub fn new(operator: &str, bytes: usize) -> Result<Self> {
        let lines = bytes.div_ceil(ALIGNMENT).max(1);
        let mut block = FREE.with_borrow_mut(|free| {
            let fit = free.iter().position(|b| b.0.len() >= lines);
            fit.map(|i| free.swap_remove(i)).or_else(|| free.pop()).unwrap_or(Block(Vec::new()))
        });
        if block.0.len() < lines {
            let more = lines - block.0.len();
            block.0.try_reserve_exact(more).map_err(|_| {
                crate::error::Error::memory(
                    operator,
                    "working memory",
                    format!("no room for {bytes} bytes"),
                )
            })?;
            block.0.resize(lines, Line([0; ALIGNMENT]));
        }
        Ok(Self(Some(block)))
    }

    /// The memory as elements of `T`.
    ///
    /// # Panics
    /// Never: the block is present until drop.
    #[allow(clippy::should_implement_trait)]
    pub fn as_mut<T: crate::dtype::Element>(&mut self) -> &mut [T] {
        let lines = &mut self.0.as_mut().expect("present until drop").0;
        let n = lines.len() * ALIGNMENT / size_of::<T>();
        // SAFETY: aligned to 64, exclusively borrowed, and any bytes are valid for an Element.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<T>(), n) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(block) = self.0.take() {
            // During thread shutdown the list may be gone already; then the block is just freed.
            let _ = FREE.try_with(|free| {
                if let Ok(mut free) = free.try_borrow_mut()
                    && free.len() < 8
                {
                    free.push(block);
                }
            });
        }
    }
}
