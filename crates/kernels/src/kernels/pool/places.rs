//! Where the places of maxima are stored, and how a gradient finds them again.

use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::simd::{LANES, Simd};

/// Which form the places have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// No output.
    None,
    /// int64, flat in the whole input; -1 for none.
    Input,
    /// Inside the plane, as uint16 where all its places are below 65535, else as uint32; the largest
    /// number for none.
    Plane,
}

impl Form {
    /// The dtype of places in planes of so many elements.
    pub(super) fn dtype(self, plane: usize) -> DType {
        match self {
            Self::Plane if plane <= usize::from(u16::MAX) => DType::U16,
            Self::Plane => DType::U32,
            Self::None | Self::Input => DType::I64,
        }
    }
}

/// The output that holds places.
#[derive(Clone, Copy)]
pub(super) enum Indices {
    Input(*mut i64),
    Short(*mut u16),
    Long(*mut u32),
}

impl Indices {
    pub(super) fn of(array: &Array) -> Self {
        match array.dtype() {
            DType::U16 => Self::Short(array.as_mut_ptr()),
            DType::U32 => Self::Long(array.as_mut_ptr()),
            _ => Self::Input(array.as_mut_ptr()),
        }
    }

    /// Stores the places inside a plane, `u32::MAX` for none, of neighbouring outputs from `at` on.
    /// The plane begins at `base` of the input.
    ///
    /// # Safety
    /// The output has these elements.
    #[inline(always)]
    pub(super) unsafe fn put(self, at: usize, places: &[u32], base: i64) {
        for l in 0..places.len() {
            let place = places[l];
            // SAFETY: the caller's promise.
            unsafe {
                match self {
                    Self::Input(to) => {
                        let found = base + i64::from(place);
                        *to.add(at + l) = if place == u32::MAX { -1 } else { found };
                    }
                    Self::Short(to) => *to.add(at + l) = place as u16,
                    Self::Long(to) => *to.add(at + l) = place,
                }
            }
        }
    }

    /// The same for the first `n` lanes of a vector, -1 for none.
    ///
    /// # Safety
    /// The output has these elements.
    #[inline(always)]
    pub(super) unsafe fn put_lanes<S: Simd>(
        self,
        s: S,
        at: usize,
        n: usize,
        places: S::I,
        base: i64,
    ) {
        // SAFETY: the caller's promise, and an array of 16.
        unsafe {
            if let Self::Short(to) = self {
                return s.store_low(to.add(at), n, places);
            }
            let mut lanes = Line([0; LANES]);
            s.store_i(lanes.0.as_mut_ptr().cast(), places);
            if n == LANES {
                self.put(at, &lanes.0, base);
            } else {
                self.put(at, &lanes.0[..n], base);
            }
        }
    }
}

/// A vector in one cache line: it is read back at once, which waits where the store crossed a line.
#[repr(align(64))]
struct Line([u32; LANES]);

/// What a gradient answers to a place outside of a plane of `to` elements.
pub(super) fn bounds(operator: &str, indices: DType, plane: usize, to: usize, got: i64) -> Error {
    let first = if indices == DType::I64 { plane * to } else { 0 };
    Error::bounds(
        operator,
        format!("indices of plane {plane} in {first}..{}", first + to),
        got.to_string(),
    )
}

/// Checks the dtype of places that a gradient is given.
///
/// # Errors
/// `Dtype`.
pub(super) fn check(operator: &str, indices: &Meta) -> Result<()> {
    if matches!(indices.dtype, DType::I64 | DType::U16 | DType::U32) {
        return Ok(());
    }
    Err(Error::dtype(operator, "indices of int64, uint16 or uint32", indices.dtype.name()))
}
