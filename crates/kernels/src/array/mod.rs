//! [`Array`]: a dtype, a shape, strides and an offset over shared [`Storage`].

pub(crate) mod cache;
mod lock;
mod shape;
mod storage;
mod strided;
mod views;

pub use cache::{cached_bytes, release_cached};
pub use shape::{
    Dims, MAX_RANK, Strides, broadcast, contiguous_strides, element_count, normalize_axis, reach,
};
pub use storage::{ALIGNMENT, Storage, Write};
pub use strided::{StridedLoop, broadcast_strides};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernels::movement::copy_into;
use std::borrow::Cow;
use std::sync::Arc;

/// A view of shared storage: the one data structure of the eager layer and of the session.
///
/// Invariant: every element that the shape and strides address lies inside the storage.
#[derive(Clone)]
pub struct Array {
    storage: Arc<Storage>,
    meta: Meta,
    strides: Strides,
    /// Of the first element, in elements.
    offset: usize,
    size: usize,
}

/// The dtype and shape of an input or output, without data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub dtype: DType,
    pub shape: Dims,
}

impl Meta {
    #[must_use]
    pub fn new(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: Dims::from_slice(shape) }
    }

    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    #[must_use]
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Array {
    /// A new contiguous array whose elements must be written before they are read.
    ///
    /// # Errors
    /// `Memory` when the size overflows or the allocation fails, `Shape` for too many axes.
    pub fn uninit(operator: &str, dtype: DType, shape: &[usize]) -> Result<Self> {
        let size = element_count(operator, shape, dtype)?;
        let storage = Arc::new(Storage::uninit(size * dtype.size())?);
        Ok(Self::over(storage, dtype, shape, 0, size))
    }

    /// As [`Array::uninit`], for an inferred output.
    ///
    /// # Errors
    /// As [`Array::uninit`].
    pub fn for_meta(operator: &str, meta: Meta) -> Result<Self> {
        let size = element_count(operator, &meta.shape, meta.dtype)?;
        let storage = Arc::new(Storage::uninit(size * meta.dtype.size())?);
        let strides = contiguous_strides(&meta.shape);
        Ok(Self { storage, meta, strides, offset: 0, size })
    }

    /// A new contiguous array of zeros.
    ///
    /// # Errors
    /// As [`Array::uninit`].
    pub fn zeros(operator: &str, dtype: DType, shape: &[usize]) -> Result<Self> {
        let size = element_count(operator, shape, dtype)?;
        let storage = Arc::new(Storage::zeroed(size * dtype.size())?);
        Ok(Self::over(storage, dtype, shape, 0, size))
    }

    /// A contiguous copy of a slice.
    ///
    /// # Errors
    /// `Shape` when the slice's length is not the shape's element count.
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Result<Self> {
        let out = Self::uninit("from_slice", T::DTYPE, shape)?;
        if out.size != data.len() {
            return Err(Error::shape(
                "from_slice",
                format!("{} elements for shape {shape:?}", out.size),
                format!("{}", data.len()),
            ));
        }
        // SAFETY: freshly allocated, contiguous, of this length and type.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), out.as_mut_ptr(), data.len()) };
        Ok(out)
    }

    fn over(
        storage: Arc<Storage>,
        dtype: DType,
        shape: &[usize],
        offset: usize,
        size: usize,
    ) -> Self {
        Self {
            storage,
            meta: Meta::new(dtype, shape),
            strides: contiguous_strides(shape),
            offset,
            size,
        }
    }

    /// A view of `storage` with explicit strides and offset, in elements.
    ///
    /// # Errors
    /// `Bounds` when some element would lie outside the storage.
    pub fn from_parts(
        storage: Arc<Storage>,
        dtype: DType,
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Result<Self> {
        const OP: &str = "array view";
        let size = element_count(OP, shape, dtype)?;
        if strides.len() != shape.len() {
            return Err(Error::shape(
                OP,
                "a stride for each axis",
                format!("{strides:?} for {shape:?}"),
            ));
        }
        let outside = || {
            Error::bounds(
                OP,
                format!("elements inside a storage of {} bytes", storage.len()),
                format!("shape {shape:?}, strides {strides:?}, offset {offset}"),
            )
        };
        let (mut low, mut high) = (offset as i128, offset as i128);
        let limit = storage.len() / dtype.size();
        if size > 0 {
            for (&d, &s) in shape.iter().zip(strides) {
                let reach = (d as i128 - 1) * s as i128;
                if reach < 0 { low += reach } else { high += reach }
            }
            if low < 0 || high >= limit as i128 {
                return Err(outside());
            }
        }
        // Strides and offsets that reach no element are any numbers: sums of these and their bytes
        // do not overflow.
        let most = limit.max(1 << 48) as isize;
        Ok(Self {
            storage,
            meta: Meta::new(dtype, shape),
            strides: strides.iter().map(|&s| s.clamp(-most, most)).collect(),
            offset: offset.min(limit),
            size,
        })
    }

    #[must_use]
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.meta.shape
    }

    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    #[must_use]
    pub fn rank(&self) -> usize {
        self.meta.shape.len()
    }

    /// Number of elements.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    #[must_use]
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    #[must_use]
    pub fn meta(&self) -> Meta {
        self.meta.clone()
    }

    #[must_use]
    pub fn as_meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether the elements lie in row-major order without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        if self.size <= 1 {
            return true;
        }
        let mut step = 1isize;
        for (&d, &s) in self.meta.shape.iter().zip(&self.strides).rev() {
            if d != 1 {
                if s != step {
                    return false;
                }
                step *= d as isize;
            }
        }
        true
    }

    /// Address of the first element.
    #[must_use]
    pub fn as_ptr<T: Element>(&self) -> *const T {
        self.as_mut_ptr()
    }

    /// Address of the first element, for writing. The caller upholds that nobody else accesses
    /// the written elements at the same time.
    #[must_use]
    pub fn as_mut_ptr<T: Element>(&self) -> *mut T {
        debug_assert!(T::DTYPE.size() == self.meta.dtype.size());
        if self.size == 0 {
            // The offset of an empty view may lie past the end.
            return self.storage.as_ptr().cast::<T>();
        }
        // SAFETY: the invariant keeps the offset inside the storage.
        unsafe { self.storage.as_ptr().cast::<T>().add(self.offset) }
    }

    /// Address of the first element's first byte.
    #[must_use]
    pub fn as_bytes_ptr(&self) -> *const u8 {
        let at = if self.size == 0 { 0 } else { self.offset * self.meta.dtype.size() };
        // SAFETY: the invariant keeps the offset inside the storage.
        unsafe { self.storage.as_ptr().add(at) }
    }

    /// The elements of a contiguous array.
    ///
    /// # Panics
    /// In debug builds when the array is not contiguous or of another element size.
    #[must_use]
    pub fn as_slice<T: Element>(&self) -> &[T] {
        debug_assert!(self.is_contiguous() && T::DTYPE.size() == self.meta.dtype.size());
        // SAFETY: contiguous, inside the storage, and of this element size.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.size) }
    }

    /// The elements of a contiguous output array.
    ///
    /// # Safety
    /// No other reference to these elements may be in use while the slice lives: kernels get this
    /// from the checks of `run_checked` and from the planner's disjoint arena blocks.
    #[must_use]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice<T: Element>(&self) -> &mut [T] {
        debug_assert!(self.is_contiguous() && T::DTYPE.size() == self.meta.dtype.size());
        // SAFETY: contiguous and inside the storage; exclusivity is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.size) }
    }

    /// The array itself when contiguous, else a contiguous copy.
    ///
    /// # Errors
    /// `Memory` when the copy cannot be allocated.
    pub fn to_contiguous(&self) -> Result<Cow<'_, Self>> {
        if self.is_contiguous() { Ok(Cow::Borrowed(self)) } else { Ok(Cow::Owned(self.copy()?)) }
    }

    /// A contiguous copy in new storage.
    ///
    /// # Errors
    /// `Memory` when the copy cannot be allocated.
    pub fn copy(&self) -> Result<Self> {
        let out = Self::uninit("copy", self.meta.dtype, &self.meta.shape)?;
        copy_into(self, &out);
        Ok(out)
    }

    /// As [`Array::copy`], but the elements of an array that is a whole storage are copied when
    /// somebody needs them, or before the next write into that storage: see [`Storage`].
    ///
    /// # Errors
    /// `Memory` when the copy cannot be allocated.
    pub fn late_copy(&self) -> Result<Self> {
        /// Below this a copy is as short as the promise of one.
        const LATE_BYTES: usize = 4096;
        let bytes = self.storage.len();
        if bytes < LATE_BYTES || !self.is_contiguous() || self.byte_range() != (0, bytes) {
            return self.copy();
        }
        let storage = Storage::late_copy(&self.storage)?;
        Ok(Self {
            storage,
            meta: self.meta.clone(),
            strides: contiguous_strides(&self.meta.shape),
            offset: 0,
            size: self.size,
        })
    }

    /// The byte range `[start, end)` inside the storage that the elements touch.
    #[must_use]
    pub fn byte_range(&self) -> (usize, usize) {
        if self.size == 0 {
            return (0, 0);
        }
        let (low, high) = reach(&self.meta.shape, &self.strides);
        let at =
            |element: isize| (self.offset as isize + element) as usize * self.meta.dtype.size();
        (at(low), at(high + 1))
    }

    /// Whether the two arrays may share elements.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if !Arc::ptr_eq(&self.storage, &other.storage) {
            return false;
        }
        let (a, b) = (self.byte_range(), other.byte_range());
        a.0 < b.1 && b.0 < a.1
    }
}
