//! DLPack in both directions, by the layout of dlpack.h (versions 0.8 and 1.0).

use crate::array::{Array, Storage, reach};
use crate::compiled::code;
use crate::dtype::DType;
use crate::error::Error;
use crate::python::array::PyArray;
use crate::python::errors::raise;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const FLAG_READ_ONLY: u64 = 1;
const FLAG_COPIED: u64 = 2;

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// Keeps the exported array and its numbers.
struct Context {
    array: Array,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn context(array: Array) -> (Tensor, *mut c_void) {
    let shape = array.shape().iter().map(|&d| d as i64).collect();
    let strides = array.strides().iter().map(|&s| s as i64).collect();
    let (type_code, bits) = code(array.dtype());
    let mut held = Box::new(Context { array, shape, strides });
    let tensor = Tensor {
        data: held.array.as_bytes_ptr().cast_mut().cast(),
        device_type: 1,
        device_id: 0,
        ndim: held.shape.len() as i32,
        code: type_code,
        bits,
        lanes: 1,
        shape: held.shape.as_mut_ptr(),
        strides: held.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    (tensor, Box::into_raw(held).cast())
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were made in `export` and the consumer calls this once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

unsafe extern "C" fn free_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter on our capsule; a consumed one was renamed and is skipped.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule over the array's memory. Consumers of version 1.0 get it flagged read-only; older ones
/// cannot express that and get a copy.
pub fn export<'py>(
    slf: &Bound<'py, PyArray>,
    max_version: Option<(u32, u32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let versioned = max_version.is_some_and(|(major, _)| major >= 1);
    let copied = copy == Some(true) || !versioned;
    if copied && copy == Some(false) {
        return Err(PyBufferError::new_err(
            "__dlpack__: expected a consumer of DLPack 1.0 or permission to copy, got copy=False \
             from an older consumer, which could write into memory that is read-only",
        ));
    }
    let array = if copied {
        slf.get().0.copy().map_err(raise)?
    } else {
        // Not every consumer heeds the flag.
        slf.get().0.storage().expose();
        slf.get().0.clone()
    };
    let (tensor, context) = context(array);
    // SAFETY: the capsule owns the box until a consumer takes it over.
    let capsule = unsafe {
        if versioned {
            let managed = Box::into_raw(Box::new(ManagedVersioned {
                major: 1,
                minor: 0,
                context,
                deleter: Some(delete_versioned),
                flags: if copied { FLAG_COPIED } else { FLAG_READ_ONLY },
                tensor,
            }));
            ffi::PyCapsule_New(managed.cast(), NAME_VERSIONED.as_ptr(), Some(free_capsule))
        } else {
            let managed =
                Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(delete) }));
            ffi::PyCapsule_New(managed.cast(), NAME.as_ptr(), Some(free_capsule))
        }
    };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// A producer's tensor; its deleter runs when the last array over it goes.
enum Taken {
    Old(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: the pointer is used only by `drop`.
unsafe impl Send for Taken {}
// SAFETY: as above.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: taken from a capsule that was renamed, so that the deleter is ours to call. Some
        // producers' deleters touch Python objects, hence the attach.
        let _ = Python::try_attach(|_| unsafe {
            match self {
                Self::Old(m) => {
                    if let Some(deleter) = (**m).deleter {
                        deleter(*m);
                    }
                }
                Self::Versioned(m) => {
                    if let Some(deleter) = (**m).deleter {
                        deleter(*m);
                    }
                }
            }
        });
    }
}

fn dtype_of(tensor: &Tensor) -> Option<DType> {
    if tensor.lanes != 1 {
        return None;
    }
    DType::ALL.into_iter().find(|&d| code(d) == (tensor.code, tensor.bits))
}

/// An array over a producer's memory.
pub fn import(source: &Bound<'_, PyAny>) -> PyResult<Array> {
    const OP: &str = "from_dlpack";
    let py = source.py();
    let device: (i32, i32) = source.call_method0("__dlpack_device__")?.extract()?;
    if device.0 != 1 {
        let got = format!("device type {}", device.0);
        return Err(raise(Error::unsupported(OP, "memory of the CPU (device type 1)", got)));
    }
    let options = pyo3::types::PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    let capsule = match source.call_method("__dlpack__", (), Some(&options)) {
        Ok(capsule) => capsule,
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
            source.call_method0("__dlpack__")?
        }
        Err(e) => return Err(e),
    };
    let raw = capsule.as_ptr();
    // SAFETY: the capsule's name says what it points to; renaming it takes ownership.
    let (tensor, read_only, taken) = unsafe {
        if ffi::PyCapsule_IsValid(raw, NAME_VERSIONED.as_ptr()) == 1 {
            let m: *mut ManagedVersioned =
                ffi::PyCapsule_GetPointer(raw, NAME_VERSIONED.as_ptr()).cast();
            if (*m).major != 1 {
                let got = format!("version {}.{}", (*m).major, (*m).minor);
                return Err(raise(Error::unsupported(OP, "DLPack version 1", got)));
            }
            ffi::PyCapsule_SetName(raw, USED_VERSIONED.as_ptr());
            (&(*m).tensor, (*m).flags & FLAG_READ_ONLY != 0, Taken::Versioned(m))
        } else if ffi::PyCapsule_IsValid(raw, NAME.as_ptr()) == 1 {
            let m: *mut Managed = ffi::PyCapsule_GetPointer(raw, NAME.as_ptr()).cast();
            ffi::PyCapsule_SetName(raw, USED.as_ptr());
            (&(*m).tensor, false, Taken::Old(m))
        } else {
            return Err(PyBufferError::new_err(
                "from_dlpack: expected an unused DLPack capsule, got another object",
            ));
        }
    };
    let dtype = dtype_of(tensor).ok_or_else(|| {
        let got =
            format!("type code {}, {} bits, {} lanes", tensor.code, tensor.bits, tensor.lanes);
        raise(Error::dtype(OP, "a real number or bool of one lane", got))
    })?;
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    // SAFETY: the producer gives `ndim` numbers.
    let numbers = |p: *mut i64| unsafe { std::slice::from_raw_parts(p, rank) }.to_vec();
    let shape: Vec<usize> = if rank == 0 {
        Vec::new()
    } else {
        numbers(tensor.shape).into_iter().map(|d| d as usize).collect()
    };
    let size = crate::array::element_count(OP, &shape, dtype).map_err(raise)?;
    let strides: Vec<isize> = if tensor.strides.is_null() || rank == 0 {
        crate::array::contiguous_strides(&shape).to_vec()
    } else {
        numbers(tensor.strides).into_iter().map(|s| s as isize).collect()
    };
    let (low, high) = reach(&shape, &strides);
    let count = if size == 0 { 0 } else { (high - low + 1) as usize };
    let at = tensor.byte_offset as isize + low * dtype.size() as isize;
    let start = tensor.data.cast::<u8>().wrapping_offset(at);
    if !(start as usize).is_multiple_of(dtype.size()) {
        return Err(raise(Error::unsupported(OP, "aligned memory", "an address between elements")));
    }
    let start = NonNull::new(start).unwrap_or(NonNull::<u64>::dangling().cast());
    // SAFETY: the producer keeps the memory until the deleter runs.
    let storage =
        unsafe { Storage::external(start, count * dtype.size(), read_only, Box::new(taken)) };
    Array::from_parts(Arc::new(storage), dtype, &shape, &strides, (-low) as usize).map_err(raise)
}
