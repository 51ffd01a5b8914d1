//! Reference-counted memory with a version counter.

use super::cache;
use crate::error::{Error, Result};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Alignment of every allocation: one cache line and one AVX-512 vector.
pub const ALIGNMENT: usize = 64;

enum Owner {
    Heap,
    /// Memory of somebody else, kept alive by this handle.
    External(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
}

/// A block of bytes shared by arrays. Writers bump `version`, so that a reader who remembered the
/// version can tell that the bytes changed.
pub struct Storage {
    ptr: NonNull<u8>,
    bytes: usize,
    version: AtomicU64,
    read_only: bool,
    owner: Owner,
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
        Ok(Self { ptr, bytes, version: AtomicU64::new(0), read_only: false, owner: Owner::Heap })
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
        Self { ptr, bytes, version: AtomicU64::new(0), read_only, owner: Owner::External(owner) }
    }

    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
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

    pub fn bump_version(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
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
