//! Reference-counted memory with a version counter, and copies of it that are made late.
//!
//! A late copy has memory of its own that holds nothing yet, and keeps its source alive. The bytes
//! are copied when somebody asks the copy for its memory, or before the source is written into,
//! whichever comes first: [`Storage::write`] is the one way to write into a storage that arrays
//! share. A copy that went before that is never made.

use super::cache;
use super::lock::ForkLock;
use crate::error::{Error, Result};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Alignment of every allocation: one cache line and one AVX-512 vector.
pub const ALIGNMENT: usize = 64;

enum Owner {
    Heap,
    /// Memory of somebody else, kept alive by this handle.
    External(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
}

/// Held around every use of [`Links`]. One lock for all: late copies are few and made once.
pub(super) static LATE: ForkLock = ForkLock::new();

/// Between a source and its late copies. Only a storage without a source has copies.
#[derive(Default)]
struct Links {
    copies: Vec<Weak<Storage>>,
    source: Option<Arc<Storage>>,
}

/// A block of bytes shared by arrays. Writers bump `version`, so that a reader who remembered the
/// version can tell that the bytes changed.
pub struct Storage {
    ptr: NonNull<u8>,
    bytes: usize,
    version: AtomicU64,
    read_only: bool,
    owner: Owner,
    /// Whether the bytes are still those of `links.source`; changes only under [`LATE`].
    pending: AtomicBool,
    /// Whether `links.copies` may name a storage that is pending.
    promised: AtomicBool,
    /// Whether code that knows of no [`Storage::write`] may write here.
    exposed: AtomicBool,
    /// Writes that are under way.
    writing: AtomicU32,
    links: UnsafeCell<Links>,
}

/// A write that is under way; its end bumps the version.
#[must_use = "the write ends when this is dropped"]
pub struct Write<'a>(&'a Storage);

impl Drop for Write<'_> {
    fn drop(&mut self) {
        self.0.version.fetch_add(1, Ordering::Relaxed);
        self.0.writing.fetch_sub(1, Ordering::SeqCst);
    }
}

// SAFETY: the block is plain bytes; all access goes through raw pointers whose users uphold the
// rule that nobody writes while another thread reads the same elements, as with any buffer that is
// shared through the Python buffer protocol.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    fn heap(bytes: usize, zeroed: bool) -> Result<Self> {
        let refused = || {
            Error::memory("allocate", "memory for the array", format!("no room for {bytes} bytes"))
        };
        if bytes > isize::MAX as usize - ALIGNMENT {
            return Err(refused());
        }
        let ptr = NonNull::new(cache::allocate(bytes, zeroed)).ok_or_else(refused)?;
        Ok(Self::over(ptr, bytes, false, Owner::Heap))
    }

    fn over(ptr: NonNull<u8>, bytes: usize, read_only: bool, owner: Owner) -> Self {
        Self {
            ptr,
            bytes,
            version: AtomicU64::new(0),
            read_only,
            owner,
            pending: AtomicBool::new(false),
            promised: AtomicBool::new(false),
            exposed: AtomicBool::new(false),
            writing: AtomicU32::new(0),
            links: UnsafeCell::default(),
        }
    }

    /// Allocates `bytes` of zeros.
    ///
    /// # Errors
    /// `Memory` when the size is not addressable or the allocator refuses.
    pub fn zeroed(bytes: usize) -> Result<Self> {
        Self::heap(bytes, true)
    }

    /// Allocates `bytes` whose content is unspecified until written.
    ///
    /// # Errors
    /// `Memory` when the size is not addressable or the allocator refuses.
    pub fn uninit(bytes: usize) -> Result<Self> {
        // Fresh pages come from the kernel as zeros and recycled ones hold old array bytes: both
        // are plain bytes, and every kernel writes its whole output.
        Self::heap(bytes, false)
    }

    /// Wraps memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `ptr` must be valid for reads of `bytes` (and writes unless `read_only`) while `owner` lives.
    pub unsafe fn external(
        ptr: NonNull<u8>,
        bytes: usize,
        read_only: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self::over(ptr, bytes, read_only, Owner::External(owner))
    }

    /// A storage with the bytes that `source` has now, copied as late as possible.
    ///
    /// Memory that others may write is copied at once, and so is memory that is being written.
    ///
    /// # Errors
    /// `Memory` when there is no room for the copy.
    pub fn late_copy(source: &Arc<Self>) -> Result<Arc<Self>> {
        cache::watch_forks();
        // A source has its bytes, so that a copy never waits for a chain of them.
        let _ = source.as_ptr();
        let mut copy = Self::uninit(source.bytes)?;
        *copy.pending.get_mut() = true;
        copy.links.get_mut().source = Some(source.clone());
        let copy = Arc::new(copy);
        if matches!(source.owner, Owner::External(_)) {
            copy.settle();
            return Ok(copy);
        }
        let held = LATE.hold();
        // SAFETY: the lock is held.
        let copies = unsafe { &mut (*source.links.get()).copies };
        if copies.len() == copies.capacity() {
            copies.retain(|known| known.strong_count() > 0);
        }
        copies.push(Arc::downgrade(&copy));
        source.promised.store(true, Ordering::SeqCst);
        drop(held);
        // A write that began before this sees no promise, one that begins after it keeps it.
        if source.writing.load(Ordering::SeqCst) > 0 || source.exposed.load(Ordering::SeqCst) {
            copy.settle();
        }
        Ok(copy)
    }

    /// Copies the bytes of the source, if that is still to be done.
    #[cold]
    fn settle(&self) {
        let held = LATE.hold();
        // SAFETY: the lock is held.
        let source = unsafe { self.take_bytes() };
        drop(held);
        // The source may end here, and with it what belongs to somebody else.
        drop(source);
    }

    /// Makes a late copy and gives back its source.
    ///
    /// # Safety
    /// The caller holds [`LATE`].
    unsafe fn take_bytes(&self) -> Option<Arc<Self>> {
        // SAFETY: the lock is held.
        let source = unsafe { &mut (*self.links.get()).source }.take()?;
        // SAFETY: two blocks of this size. Writers of the source wait for the lock, and nobody
        // reads the copy before it stops being pending.
        unsafe {
            std::ptr::copy_nonoverlapping(source.ptr.as_ptr(), self.ptr.as_ptr(), self.bytes);
        }
        self.pending.store(false, Ordering::Release);
        Some(source)
    }

    #[cold]
    fn keep_promises(&self) {
        let held = LATE.hold();
        // SAFETY: the lock is held.
        let promised = unsafe { std::mem::take(&mut (*self.links.get()).copies) };
        let copies: Vec<Arc<Self>> = promised.iter().filter_map(Weak::upgrade).collect();
        for copy in &copies {
            // SAFETY: the lock is held. The source is this storage, which the caller keeps.
            let _ = unsafe { copy.take_bytes() };
        }
        self.promised.store(false, Ordering::SeqCst);
        drop(held);
    }

    /// Begins a write: late copies get their bytes first. The end of the write bumps the version.
    pub fn write(&self) -> Write<'_> {
        self.writing.fetch_add(1, Ordering::SeqCst);
        if self.promised.load(Ordering::SeqCst) {
            self.keep_promises();
        }
        Write(self)
    }

    /// Notes that code that knows of no [`Storage::write`] may write here from now on.
    pub fn expose(&self) {
        self.exposed.store(true, Ordering::SeqCst);
        if self.promised.load(Ordering::SeqCst) {
            self.keep_promises();
        }
    }

    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        if self.pending.load(Ordering::Acquire) {
            self.settle();
        }
        self.ptr.as_ptr()
    }

    /// A number that no other storage has while this one lives, unless it is over the same memory.
    #[must_use]
    pub fn id(&self) -> usize {
        self.ptr.as_ptr() as usize
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn read_only(&self) -> bool {
        self.read_only
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if matches!(self.owner, Owner::Heap) {
            // SAFETY: the block came from `allocate` with this size and is released once.
            unsafe { cache::release(self.ptr, self.bytes) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_raw_parts;

    const BYTES: usize = 10_000;

    fn filled(byte: u8) -> Arc<Storage> {
        let storage = Storage::uninit(BYTES).unwrap();
        set(&storage, byte);
        Arc::new(storage)
    }

    fn set(storage: &Storage, byte: u8) {
        let _write = storage.write();
        // SAFETY: the block has this size.
        unsafe { storage.as_ptr().write_bytes(byte, BYTES) };
    }

    fn all(storage: &Storage, byte: u8) -> bool {
        // SAFETY: the block has this size.
        unsafe { from_raw_parts(storage.as_ptr(), BYTES) }.iter().all(|&b| b == byte)
    }

    fn promised(storage: &Storage) -> usize {
        let _held = LATE.hold();
        // SAFETY: the lock is held.
        unsafe { (*storage.links.get()).copies.len() }
    }

    fn pending(storage: &Storage) -> bool {
        storage.pending.load(Ordering::Acquire)
    }

    #[test]
    fn a_late_copy_has_the_bytes_of_its_time() {
        let source = filled(1);
        let (first, read) =
            (Storage::late_copy(&source).unwrap(), Storage::late_copy(&source).unwrap());
        assert!(all(&read, 1) && !pending(&read) && pending(&first));
        set(&source, 2);
        let second = Storage::late_copy(&source).unwrap();
        set(&source, 3);
        assert!(!pending(&first) && !pending(&second));
        assert!(all(&first, 1) && all(&read, 1) && all(&second, 2) && all(&source, 3));
        set(&first, 9);
        assert!(all(&source, 3) && all(&read, 1));
    }

    #[test]
    fn a_late_copy_outlives_its_source_and_lets_go_of_it() {
        let source = filled(4);
        let copy = Storage::late_copy(&source).unwrap();
        let again = Storage::late_copy(&copy).unwrap();
        assert_eq!(Arc::strong_count(&source), 1);
        assert_eq!(Arc::strong_count(&copy), 2);
        let copied = Storage::late_copy(&source).unwrap();
        assert_eq!(Arc::strong_count(&source), 2);
        drop((source, copy));
        assert!(all(&again, 4) && all(&copied, 4));
    }

    #[test]
    fn copies_that_went_leave_nothing() {
        let source = filled(5);
        for _ in 0..1000 {
            drop(Storage::late_copy(&source).unwrap());
        }
        assert!(promised(&source) < 8);
        set(&source, 6);
        assert!(promised(&source) == 0 && all(&source, 6));
    }

    #[test]
    fn memory_that_others_may_write_is_copied_at_once() {
        let source = filled(7);
        let before = Storage::late_copy(&source).unwrap();
        source.expose();
        assert!(!pending(&before));
        assert!(!pending(&Storage::late_copy(&source).unwrap()));
        let writing = filled(8);
        let write = writing.write();
        assert!(!pending(&Storage::late_copy(&writing).unwrap()));
        drop(write);
        assert!(pending(&Storage::late_copy(&writing).unwrap()));
        let mut foreign = vec![3u8; BYTES];
        let at = NonNull::new(foreign.as_mut_ptr()).unwrap();
        // SAFETY: the vector outlives the storage.
        let outside = Arc::new(unsafe { Storage::external(at, BYTES, false, Box::new(())) });
        let copy = Storage::late_copy(&outside).unwrap();
        foreign.fill(4);
        assert!(all(&copy, 3));
    }

    #[test]
    fn threads_that_read_and_write_see_whole_copies() {
        for round in 0..200u8 {
            let source = filled(round);
            let copies: Vec<_> = (0..4).map(|_| Storage::late_copy(&source).unwrap()).collect();
            std::thread::scope(|scope| {
                for copy in &copies {
                    scope.spawn(|| assert!(all(copy, round)));
                }
                scope.spawn(|| set(&source, round.wrapping_add(1)));
            });
            assert!(all(&source, round.wrapping_add(1)));
        }
    }
}
