//! The layout in which OneModel calls compiled kernels, version 1. Copy this file as it is.

use std::ffi::{CStr, c_char, c_void};
use std::slice;

/// A float in `DLTensor`'s dtype.
pub const FLOAT: u8 = 2;

/// `DLTensor`: contiguous, on the CPU.
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    pub code: u8,
    pub bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

impl Tensor {
    /// The number of elements.
    ///
    /// # Safety
    /// The tensor comes from a running call.
    pub unsafe fn size(&self) -> usize {
        let rank = usize::try_from(self.ndim).unwrap_or(0);
        // SAFETY: `shape` holds `ndim` extents.
        let shape = unsafe { slice::from_raw_parts(self.shape, rank) };
        shape.iter().map(|&extent| extent as usize).product()
    }
}

#[repr(C)]
pub struct Value {
    name: *const c_char,
    kind: i32,
    count: i64,
    ints: *const i64,
    floats: *const f64,
    text: *const c_char,
}

#[repr(C)]
pub struct Call {
    inputs: *const *const Tensor,
    inputs_count: i64,
    outputs: *const *const Tensor,
    outputs_count: i64,
    attributes: *const Value,
    attributes_count: i64,
    message: *mut c_char,
    message_bytes: i64,
}

impl Call {
    /// An input that must be there.
    ///
    /// # Safety
    /// `index` is below the number of inputs that the operator's facts require.
    pub unsafe fn input(&self, index: usize) -> &Tensor {
        // SAFETY: the caller's word, and pointers of a running call are valid.
        unsafe { &**self.inputs.add(index) }
    }

    /// An output.
    ///
    /// # Safety
    /// `index` is below the number of outputs.
    pub unsafe fn output(&self, index: usize) -> &Tensor {
        // SAFETY: as above.
        unsafe { &**self.outputs.add(index) }
    }

    /// The float attribute of that name; integers count as floats.
    ///
    /// # Safety
    /// The call is running.
    pub unsafe fn float(&self, name: &CStr) -> Option<f64> {
        let count = usize::try_from(self.attributes_count).unwrap_or(0);
        for index in 0..count {
            // SAFETY: there are `count` attributes, their names and numbers live during the call.
            unsafe {
                let value = &*self.attributes.add(index);
                if CStr::from_ptr(value.name) == name {
                    return match value.kind {
                        0 => Some(*value.ints as f64),
                        1 => Some(*value.floats),
                        _ => None,
                    };
                }
            }
        }
        None
    }

    /// Leaves a message for the exception; give its result back.
    ///
    /// # Safety
    /// The call is running.
    pub unsafe fn refuse(&self, text: &str) -> i32 {
        let room = usize::try_from(self.message_bytes).unwrap_or(0);
        let count = text.len().min(room.saturating_sub(1));
        // SAFETY: `message` has `message_bytes` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.message.cast(), count);
            *self.message.add(count) = 0;
        }
        1
    }
}
