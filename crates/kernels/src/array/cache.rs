//! Freed blocks are kept for the next array of the same size class: asking the system for aligned or
//! large memory costs more than most kernels. Each thread keeps a few small ones for itself, and all
//! threads share the rest; both are bounded, and what was used longest ago makes room.

use super::lock::ForkLock;
use super::storage::ALIGNMENT;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::{RefCell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that one thread keeps for itself at most, and the largest block among them.
const OWN_BYTES: usize = 8 << 20;
const OWN_BLOCK: usize = 1 << 20;
/// Bytes that the process keeps for all threads at most, and the largest block among them.
const SHARED_BYTES: usize = 256 << 20;
const SHARED_BLOCK: usize = 64 << 20;
/// Blocks of one class that are kept at most.
const KEPT_COUNT: usize = 64;
/// Four classes for each power of two from 2^6 to 2^26.
const CLASSES: usize = 4 * 21;

/// Free blocks by class, at most `limit` bytes of them.
struct Bins {
    blocks: [Vec<NonNull<u8>>; CLASSES],
    /// When a class was last asked for or filled.
    used: [u64; CLASSES],
    now: u64,
    bytes: usize,
    limit: usize,
}

impl Bins {
    const fn new(limit: usize) -> Self {
        let blocks = [const { Vec::new() }; CLASSES];
        Self { blocks, used: [0; CLASSES], now: 0, bytes: 0, limit }
    }

    fn touch(&mut self, class: usize) {
        self.now += 1;
        self.used[class] = self.now;
    }

    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        self.touch(class);
        let block = self.blocks[class].pop()?;
        self.bytes -= class_bytes(class);
        Some(block)
    }

    /// Keeps the block; `false` when it has no place here.
    fn put(&mut self, class: usize, block: NonNull<u8>) -> bool {
        let bin = &mut self.blocks[class];
        let room = bin.len() < KEPT_COUNT && self.bytes + class_bytes(class) <= self.limit;
        if !room || bin.try_reserve(1).is_err() {
            return false;
        }
        bin.push(block);
        self.bytes += class_bytes(class);
        self.touch(class);
        true
    }

    /// Takes out the class that was used longest ago, where there is no room for one more block.
    fn evict(&mut self, class: usize) -> Option<Blocks> {
        if self.blocks[class].len() >= KEPT_COUNT || self.bytes + class_bytes(class) <= self.limit {
            return None;
        }
        let filled = (0..CLASSES).filter(|&c| !self.blocks[c].is_empty());
        let oldest = filled.min_by_key(|&c| self.used[c])?;
        self.bytes -= self.blocks[oldest].len() * class_bytes(oldest);
        Some(Blocks { class: oldest, blocks: std::mem::take(&mut self.blocks[oldest]) })
    }

    /// Takes out everything.
    fn drain(&mut self) -> [Blocks; CLASSES] {
        self.bytes = 0;
        std::array::from_fn(|class| Blocks {
            class,
            blocks: std::mem::take(&mut self.blocks[class]),
        })
    }
}

/// Free blocks of one class that go back to the system when dropped.
struct Blocks {
    class: usize,
    blocks: Vec<NonNull<u8>>,
}

impl Drop for Blocks {
    fn drop(&mut self) {
        for block in &self.blocks {
            // SAFETY: blocks of a bin were allocated with their class's size, and nobody else has
            // them.
            unsafe { to_system(block.as_ptr(), class_bytes(self.class)) };
        }
    }
}

/// The bins of one thread, which end with it.
struct Own(Bins);

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.0.drain());
    }
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own(Bins::new(OWN_BYTES))) };
}

/// The bins of all threads.
struct Shared {
    held: ForkLock,
    watched: AtomicBool,
    bins: UnsafeCell<Bins>,
}

// SAFETY: the bins are reached through `with` alone, which one thread at a time passes.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    held: ForkLock::new(),
    watched: AtomicBool::new(false),
    bins: UnsafeCell::new(Bins::new(SHARED_BYTES)),
};

impl Shared {
    /// Calls `work`, which must not panic, on the bins.
    fn with<R>(&self, work: impl FnOnce(&mut Bins) -> R) -> R {
        if !self.watched.load(Ordering::Relaxed) {
            watch_forks();
        }
        let _held = self.held.hold();
        // SAFETY: the lock is held.
        work(unsafe { &mut *self.bins.get() })
    }
}

/// From now on a fork waits until no thread is at the shared blocks or makes a late copy.
pub fn watch_forks() {
    if SHARED.watched.swap(true, Ordering::Relaxed) {
        return;
    }
    #[cfg(unix)]
    {
        // A thread that makes a late copy may free blocks, so that lock comes first.
        extern "C" fn before() {
            super::storage::LATE.lock();
            SHARED.held.lock();
        }
        extern "C" fn after() {
            SHARED.held.unlock();
            super::storage::LATE.unlock();
        }
        // SAFETY: the handlers store to atomics, which is allowed between fork and exec.
        unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        }
    }
}

/// Bytes of freed blocks that are kept for all threads and for the calling one.
#[must_use]
pub fn cached_bytes() -> usize {
    let own = OWN.try_with(|own| own.try_borrow().map_or(0, |own| own.0.bytes));
    own.unwrap_or(0) + SHARED.with(|bins| bins.bytes)
}

/// Gives the blocks that are kept for all threads and for the calling one back to the system.
pub fn release_cached() {
    let _ = OWN.try_with(|own| own.try_borrow_mut().map(|mut own| own.0.drain()));
    drop(SHARED.with(Bins::drain));
}

const fn class_bytes(class: usize) -> usize {
    (1 << (6 + class / 4)) / 4 * (4 + class % 4)
}

/// The smallest class that holds `bytes`; `None` above the largest kept block.
fn class_of(bytes: usize) -> Option<usize> {
    if bytes > SHARED_BLOCK {
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

/// Whether a block is mapped by itself. The C library maps the first large blocks too, but once one
/// is freed it cuts the next from the pools of its threads, where small blocks behind them keep the
/// memory from going back: a process that makes models of ever other sizes grew without end.
const fn mapped(bytes: usize) -> bool {
    cfg!(unix) && bytes > OWN_BLOCK
}

/// A page of the system's large kind.
#[cfg(unix)]
const LARGE_PAGE: usize = 2 << 20;

/// A new mapping of zeros, which begins with a large page where it holds one.
#[cfg(unix)]
fn map(bytes: usize) -> Option<*mut libc::c_void> {
    let spare = if bytes < LARGE_PAGE { 0 } else { LARGE_PAGE };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the system's choice, of which the pages before and behind
    // the block are given back.
    unsafe {
        let begin = libc::mmap(std::ptr::null_mut(), bytes + spare, protection, flags, -1, 0);
        if begin == libc::MAP_FAILED {
            return None;
        }
        if spare == 0 {
            return Some(begin);
        }
        let before = begin.align_offset(LARGE_PAGE);
        let block = begin.wrapping_byte_add(before);
        if before > 0 {
            libc::munmap(begin, before);
        }
        if before < spare {
            libc::munmap(block.wrapping_byte_add(bytes), spare - before);
        }
        Some(block)
    }
}

/// Memory of the system; null when it refuses.
fn from_system(bytes: usize, zeroed: bool) -> *mut u8 {
    #[cfg(unix)]
    if mapped(bytes) {
        let Some(block) = map(bytes) else { return std::ptr::null_mut() };
        // Large pages are touched once for every two megabytes, and found again sooner. A refusal
        // changes nothing else.
        #[cfg(target_os = "linux")]
        // SAFETY: the mapping that was just made.
        unsafe {
            libc::madvise(block, bytes, libc::MADV_HUGEPAGE);
        }
        return block.cast();
    }
    // SAFETY: the layout's size is not zero.
    unsafe { if zeroed { alloc_zeroed(layout(bytes)) } else { alloc(layout(bytes)) } }
}

/// # Safety
/// `block` came from `from_system` with the same `bytes` and is not used afterwards.
unsafe fn to_system(block: *mut u8, bytes: usize) {
    #[cfg(unix)]
    if mapped(bytes) {
        // SAFETY: a whole mapping of this size.
        unsafe { libc::munmap(block.cast(), bytes) };
        return;
    }
    // SAFETY: allocated with this layout.
    unsafe { dealloc(block, layout(bytes)) }
}

fn take(class: usize) -> Option<NonNull<u8>> {
    if class_bytes(class) <= OWN_BLOCK {
        let own = OWN.try_with(|own| own.try_borrow_mut().ok()?.0.take(class));
        if let Ok(Some(block)) = own {
            return Some(block);
        }
    }
    SHARED.with(|bins| bins.take(class))
}

/// A block of at least `bytes`, which must be at most `isize::MAX - 64`; null when the system
/// refuses.
pub(crate) fn allocate(bytes: usize, zeroed: bool) -> *mut u8 {
    let class = class_of(bytes);
    if let Some(block) = class.and_then(take) {
        if zeroed {
            // SAFETY: the block holds its class's bytes, at least these.
            unsafe { block.as_ptr().write_bytes(0, bytes) };
        }
        return block.as_ptr();
    }
    let whole = class.map_or(bytes, class_bytes);
    let first = from_system(whole, zeroed);
    if first.is_null() {
        release_cached();
        return from_system(whole, zeroed);
    }
    first
}

/// Takes back a block of `allocate(bytes, _)`.
///
/// # Safety
/// `block` came from `allocate` with the same `bytes` and is not used afterwards.
pub(crate) unsafe fn release(block: NonNull<u8>, bytes: usize) {
    let class = class_of(bytes);
    if let Some(class) = class {
        if class_bytes(class) <= OWN_BLOCK {
            let kept = OWN.try_with(|own| {
                let Ok(mut own) = own.try_borrow_mut() else { return (None, false) };
                (own.0.evict(class), own.0.put(class, block))
            });
            if let Ok((_, true)) = kept {
                return;
            }
        }
        // What was evicted goes back to the system after the lock is given up.
        let (_evicted, kept) = SHARED.with(|bins| (bins.evict(class), bins.put(class, block)));
        if kept {
            return;
        }
    }
    // SAFETY: allocated with this size.
    unsafe { to_system(block.as_ptr(), class.map_or(bytes, class_bytes)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        let mut last = 0;
        for bytes in (0..5000).chain([65_536, 65_537, SHARED_BLOCK - 1, SHARED_BLOCK]) {
            let class = class_of(bytes).unwrap();
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class_bytes(class) <= (bytes + bytes / 4).max(64) + 64, "{bytes}");
            assert!(class < CLASSES && class >= last);
            last = class;
        }
        assert!(class_of(SHARED_BLOCK + 1).is_none());
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

    fn block_of(class: usize) -> NonNull<u8> {
        NonNull::new(from_system(class_bytes(class), false)).unwrap()
    }

    #[test]
    fn bins_keep_their_limit_and_what_was_used_last() {
        let (old, new) = (class_of(1 << 12).unwrap(), class_of(1 << 14).unwrap());
        let mut bins = Bins::new(1 << 16);
        for _ in 0..8 {
            assert!(bins.evict(old).is_none());
            assert!(bins.put(old, block_of(old)));
        }
        assert_eq!(bins.bytes, 1 << 15);
        for round in 0..10 {
            drop(bins.evict(new));
            let block = block_of(new);
            if !bins.put(new, block) {
                drop(Blocks { class: new, blocks: vec![block] });
            }
            assert!(bins.bytes <= bins.limit, "{round}");
        }
        assert!(bins.take(old).is_none());
        let block = bins.take(new).unwrap();
        drop(Blocks { class: new, blocks: vec![block] });
        assert_eq!(bins.bytes % (1 << 14), 0);
        drop(bins.drain());
        assert_eq!(bins.bytes, 0);
        assert!(bins.take(new).is_none());
    }

    #[test]
    fn a_class_keeps_a_bounded_number_of_blocks() {
        let class = class_of(64).unwrap();
        let mut bins = Bins::new(1 << 20);
        let kept = (0..2 * KEPT_COUNT).filter(|_| {
            let block = block_of(class);
            let kept = bins.put(class, block);
            if !kept {
                drop(Blocks { class, blocks: vec![block] });
            }
            kept
        });
        assert_eq!(kept.count(), KEPT_COUNT);
        drop(bins.drain());
    }

    #[test]
    fn threads_share_large_blocks_within_one_bound() {
        let work = || {
            for round in 0..200 {
                let bytes = OWN_BLOCK + 1 + (round % 7) * (3 << 20);
                let block = NonNull::new(allocate(bytes, false)).unwrap();
                // SAFETY: just allocated with this size, and nobody else has it.
                unsafe {
                    let ends = [block.as_ptr(), block.as_ptr().add(bytes - 1)];
                    for (mark, end) in ends.into_iter().enumerate() {
                        end.write(mark as u8 + 7);
                    }
                    std::thread::yield_now();
                    assert_eq!([ends[0].read(), ends[1].read()], [7, 8]);
                    release(block, bytes);
                }
                assert!(cached_bytes() <= OWN_BYTES + SHARED_BYTES);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(work);
            }
        });
    }
}
