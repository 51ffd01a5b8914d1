//! Freed blocks are kept for the next array of the same size class: asking the system for aligned or
//! large memory costs more than most kernels.

use super::storage::ALIGNMENT;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Bytes that one thread keeps at most, and the largest block it keeps.
const KEPT_BYTES: usize = 256 << 20;
const KEPT_BLOCK: usize = 64 << 20;
/// Blocks of one class that a thread keeps at most.
const KEPT_COUNT: usize = 64;
/// Four classes for each power of two from 2^6 to 2^26.
const CLASSES: usize = 4 * 21;

struct Cache {
    bins: [Vec<NonNull<u8>>; CLASSES],
    bytes: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> =
        const { RefCell::new(Cache { bins: [const { Vec::new() }; CLASSES], bytes: 0 }) };
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Cache {
    fn flush(&mut self) {
        for (class, bin) in self.bins.iter_mut().enumerate() {
            for block in bin.drain(..) {
                // SAFETY: blocks of a bin were allocated with their class's size.
                unsafe { dealloc(block.as_ptr(), layout(class_bytes(class))) };
            }
        }
        self.bytes = 0;
    }
}

const fn class_bytes(class: usize) -> usize {
    (1 << (6 + class / 4)) / 4 * (4 + class % 4)
}

/// The smallest class that holds `bytes`; `None` above the largest kept block.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes > KEPT_BLOCK {
        return None;
    }
    let bytes = bytes.max(ALIGNMENT);
    let power = (bytes.ilog2() as usize).max(6);
    let quarter = (1usize << power) / 4;
    let steps = (bytes - (1 << power)).div_ceil(quarter);
    Some((power - 6) * 4 + steps)
}

fn layout(bytes: usize) -> Layout {
    // SAFETY: the alignment is a power of two and callers bound the size by isize::MAX.
    unsafe { Layout::from_size_align_unchecked(bytes.max(1), ALIGNMENT) }
}

/// A block of at least `bytes`, which must be at most `isize::MAX - 64`; null when the system
/// refuses.
pub(super) fn allocate(bytes: usize, zeroed: bool) -> *mut u8 {
    let class = class_of(bytes);
    if let Some(class) = class {
        let block = CACHE
            .try_with(|cache| {
                let mut cache = cache.try_borrow_mut().ok()?;
                let block = cache.bins[class].pop()?;
                cache.bytes -= class_bytes(class);
                Some(block)
            })
            .ok()
            .flatten();
        if let Some(block) = block {
            if zeroed {
                // SAFETY: the block holds its class's bytes, at least these.
                unsafe { block.as_ptr().write_bytes(0, bytes) };
            }
            return block.as_ptr();
        }
    }
    let whole = layout(class.map_or(bytes, class_bytes));
    // SAFETY: the layout's size is not zero.
    let system = || unsafe { if zeroed { alloc_zeroed(whole) } else { alloc(whole) } };
    let first = system();
    if first.is_null() {
        let _ = CACHE.try_with(|cache| cache.try_borrow_mut().map(|mut c| c.flush()));
        return system();
    }
    first
}

/// Takes back a block of `allocate(bytes, _)`.
///
/// # Safety
/// `block` came from `allocate` with the same `bytes` and is not used afterwards.
pub(super) unsafe fn release(block: NonNull<u8>, bytes: usize) {
    let class = class_of(bytes);
    if let Some(class) = class {
        let size = class_bytes(class);
        let kept = CACHE.try_with(|cache| {
            let Ok(mut cache) = cache.try_borrow_mut() else { return false };
            let room = cache.bins[class].len() < KEPT_COUNT && cache.bytes + size <= KEPT_BYTES;
            if room {
                cache.bins[class].push(block);
                cache.bytes += size;
            }
            room
        });
        if kept == Ok(true) {
            return;
        }
    }
    // SAFETY: allocated with this layout.
    unsafe { dealloc(block.as_ptr(), layout(class.map_or(bytes, class_bytes))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        let mut last = 0;
        for bytes in (0..5000).chain([65_536, 65_537, KEPT_BLOCK - 1, KEPT_BLOCK]) {
            let class = class_of(bytes).unwrap();
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class_bytes(class) <= (bytes + bytes / 4).max(64) + 64, "{bytes}");
            assert!(class < CLASSES && class >= last);
            last = class;
        }
        assert!(class_of(KEPT_BLOCK + 1).is_none());
    }

    #[test]
    fn a_freed_block_comes_back() {
        let block = NonNull::new(allocate(1000, false)).unwrap();
        // SAFETY: just allocated with this size.
        unsafe {
            block.as_ptr().write_bytes(7, 1000);
            release(block, 1000);
        }
        let again = allocate(1010, true);
        assert_eq!(again, block.as_ptr());
        // SAFETY: holds 1010 bytes.
        assert!(unsafe { std::slice::from_raw_parts(again, 1010) }.iter().all(|&b| b == 0));
        // SAFETY: as above.
        unsafe { release(block, 1010) };
    }
}
