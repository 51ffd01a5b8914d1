//! Reference-counted memory with a version counter.

use crate::error::{Error, Result};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Alignment of every allocation: one cache line and one AVX-512 vector.
pub const ALIGNMENT: usize = 64;

enum Owner {
    Heap(Layout),
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
    fn layout(bytes: usize) -> Result<Layout> {
        Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| {
            Error::memory("allocate", "a size below 2^63 bytes", format!("{bytes} bytes"))
        })
    }

    fn heap(bytes: usize, zeroed: bool) -> Result<Self> {
        let layout = Self::layout(bytes)?;
        // SAFETY: the layout has a non-zero size.
        let raw = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let ptr = NonNull::new(raw).ok_or_else(|| {
            Error::memory("allocate", "memory for the array", format!("no room for {bytes} bytes"))
        })?;
        Ok(Self {
            ptr,
            bytes,
            version: AtomicU64::new(0),
            read_only: false,
            owner: Owner::Heap(layout),
        })
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
        if let Owner::Heap(layout) = self.owner {
            // SAFETY: the pointer came from `alloc` with this layout and is freed once.
            unsafe { dealloc(self.ptr.as_ptr(), layout) }
        }
    }
}
