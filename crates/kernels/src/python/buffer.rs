//! The buffer protocol in both directions, and NumPy through it.

use crate::array::{Array, Dims, Storage, Strides, element_count, reach};
use crate::dtype::DType;
use crate::error::Error;
use crate::python::array::PyArray;
use crate::python::errors::raise;
use crate::python::numpy;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;
use std::sync::Arc;

const FROM_NUMPY: &str = "from_numpy";

/// A `Py_buffer` that is released, with the interpreter attached, when dropped.
struct Held(Box<ffi::Py_buffer>);

// SAFETY: only read after construction; released with the interpreter attached.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        // During interpreter shutdown the exporter is gone with the process.
        let _ = Python::try_attach(|_| {
            // SAFETY: filled by PyObject_GetBuffer and released once.
            unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
        });
    }
}

impl Held {
    fn new(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `view` is a valid place for the exporter to fill.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Self(view))
    }
}

const fn format(dtype: DType) -> &'static CStr {
    match dtype {
        DType::Bool => c"?",
        DType::U8 => c"B",
        DType::U16 | DType::BF16 => c"H",
        DType::U32 => c"I",
        DType::U64 => c"Q",
        DType::I8 => c"b",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
    }
}

/// Shape and strides in bytes, alive as long as the exported view.
struct Exported {
    _shape_and_strides: Box<[ffi::Py_ssize_t]>,
}

/// Fills a read-only view of the array. bfloat16 is exported as uint16.
pub unsafe fn fill_view(
    slf: &Bound<'_, PyArray>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("Array: expected a buffer view to fill, got null"));
    }
    // A consumer that looks at `obj` after a failure must find null.
    // SAFETY: checked above.
    unsafe { (*view).obj = std::ptr::null_mut() };
    if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err(
            "Array: expected a request for read-only memory, got one for writable memory (copy first)",
        ));
    }
    let array = &slf.get().0;
    let strided = flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES;
    if !strided && !array.is_contiguous() {
        return Err(PyBufferError::new_err(
            "Array: expected a consumer of strided memory, got one of contiguous memory (call contiguous first)",
        ));
    }
    let rank = array.rank();
    let size = array.dtype().size();
    let numbers: Box<[ffi::Py_ssize_t]> = array
        .shape()
        .iter()
        .map(|&d| d as ffi::Py_ssize_t)
        .chain(array.strides().iter().map(|&s| s * size as isize))
        .collect();
    let exported = Box::new(Exported { _shape_and_strides: numbers });
    let at = exported._shape_and_strides.as_ptr().cast_mut();
    // SAFETY: `view` is valid; every pointer stored lives until `release_view` or, for the data,
    // as long as `obj`.
    unsafe {
        (*view).buf = array.as_bytes_ptr().cast_mut().cast();
        (*view).len = (array.size() * size) as ffi::Py_ssize_t;
        (*view).readonly = 1;
        (*view).itemsize = size as ffi::Py_ssize_t;
        (*view).format = if flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT {
            format(array.dtype()).as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        };
        (*view).ndim = rank as c_int;
        (*view).shape =
            if flags & ffi::PyBUF_ND == ffi::PyBUF_ND { at } else { std::ptr::null_mut() };
        (*view).strides = if strided { at.add(rank) } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(exported).cast();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Frees what `fill_view` allocated.
pub unsafe fn release_view(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` came from Box::into_raw in `fill_view`.
    unsafe { drop(Box::from_raw((*view).internal.cast::<Exported>())) };
}

fn dtype_of(format: &CStr, itemsize: usize) -> Option<DType> {
    let text = format.to_bytes();
    let code = match text {
        [b'@' | b'=' | b'<', code] | [code] => *code,
        _ => return None,
    };
    let signed = matches!(code, b'b' | b'h' | b'i' | b'l' | b'q' | b'n');
    match (code, itemsize) {
        (b'?', 1) => Some(DType::Bool),
        (b'e', 2) => Some(DType::F16),
        (b'f', 4) => Some(DType::F32),
        (b'd', 8) => Some(DType::F64),
        (b'b' | b'h' | b'i' | b'l' | b'q' | b'n' | b'B' | b'H' | b'I' | b'L' | b'Q' | b'N', n) => {
            match (signed, n) {
                (true, 1) => Some(DType::I8),
                (true, 2) => Some(DType::I16),
                (true, 4) => Some(DType::I32),
                (true, 8) => Some(DType::I64),
                (false, 1) => Some(DType::U8),
                (false, 2) => Some(DType::U16),
                (false, 4) => Some(DType::U32),
                (false, 8) => Some(DType::U64),
                _ => None,
            }
        }
        _ => None,
    }
}

/// An array of whatever `numpy.asarray` accepts.
pub fn from_numpy(source: &Bound<'_, PyAny>, copy: bool) -> PyResult<Array> {
    if numpy::is_ndarray(source)?
        && let Some(array) = from_exporter(source, None)?
    {
        return if copy { array.copy().map_err(raise) } else { Ok(array) };
    }
    let py = source.py();
    let array = numpy::numpy(py)?.asarray.bind(py).call1((source,))?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let (array, special) = if name == "bfloat16" {
        (array.call_method1("view", ("uint16",))?, Some(DType::BF16))
    } else {
        let native: bool = array.getattr("dtype")?.getattr("isnative")?.extract()?;
        let native = if native {
            array
        } else {
            let order = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
            array.call_method1("astype", (order,))?
        };
        (native, None)
    };
    let unknown = || raise(Error::dtype(FROM_NUMPY, "a numeric or bool array", name.clone()));
    let array = match from_exporter(&array, special)? {
        Some(found) => found,
        None => {
            let dense = array.call_method0("copy")?;
            from_exporter(&dense, special)?.ok_or_else(unknown)?
        }
    };
    if copy { array.copy().map_err(raise) } else { Ok(array) }
}

/// An array over the memory of an exporter of strided buffers; `None` for elements of another kind
/// than ours, or ones that lie between our addresses.
pub fn from_exporter(source: &Bound<'_, PyAny>, special: Option<DType>) -> PyResult<Option<Array>> {
    let flags = ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT;
    let Ok(held) = Held::new(source, flags) else { return Ok(None) };
    let view = &held.0;
    let itemsize = view.itemsize as usize;
    let format = if view.format.is_null() {
        c"B"
    } else {
        // SAFETY: a format is a NUL-terminated string owned by the exporter.
        unsafe { CStr::from_ptr(view.format.cast::<c_char>()) }
    };
    let Some(dtype) = special.or_else(|| dtype_of(format, itemsize)) else { return Ok(None) };
    let rank = view.ndim as usize;
    let read = |p: *mut ffi::Py_ssize_t| -> SmallVec<[isize; 8]> {
        if rank == 0 {
            SmallVec::new()
        } else {
            // SAFETY: the exporter gives `ndim` numbers, as asked by PyBUF_STRIDES.
            SmallVec::from_slice(unsafe { std::slice::from_raw_parts(p, rank) })
        }
    };
    let shape: Dims = read(view.shape).into_iter().map(|d| d as usize).collect();
    let byte_strides = read(view.strides);
    let uneven = byte_strides.iter().any(|s| s % itemsize as isize != 0)
        || !(view.buf as usize).is_multiple_of(itemsize);
    if uneven {
        return Ok(None);
    }
    let strides: Strides = byte_strides.iter().map(|s| s / itemsize as isize).collect();
    let size = element_count(FROM_NUMPY, &shape, dtype).map_err(raise)?;
    let readonly = view.readonly != 0;
    let (low, high) = reach(&shape, &strides);
    let count = if size == 0 { 0 } else { (high - low + 1) as usize };
    // SAFETY: strides reach from the first element down to `low`, all inside the exporter's memory.
    let start = unsafe { view.buf.cast::<u8>().offset(low * itemsize as isize) };
    let start = NonNull::new(start).unwrap_or(NonNull::<u64>::dangling().cast());
    // SAFETY: `held` keeps the memory; `count` elements lie between the extremes.
    let storage = unsafe { Storage::external(start, count * itemsize, readonly, Box::new(held)) };
    Array::from_parts(Arc::new(storage), dtype, &shape, &strides, (-low) as usize)
        .map(Some)
        .map_err(raise)
}

/// A read-only array over part of a bytes-like object.
pub fn from_buffer(
    source: &Bound<'_, PyAny>,
    dtype: DType,
    shape: &[usize],
    offset: usize,
) -> PyResult<Array> {
    const OP: &str = "from_buffer";
    let held = Held::new(source, ffi::PyBUF_SIMPLE)?;
    let bytes = element_count(OP, shape, dtype).map_err(raise)? * dtype.size();
    let length = held.0.len as usize;
    if offset.checked_add(bytes).is_none_or(|end| end > length) {
        return Err(raise(Error::bounds(
            OP,
            format!("{bytes} bytes at offset {offset}"),
            format!("a buffer of {length} bytes"),
        )));
    }
    // SAFETY: checked to lie inside the buffer.
    let start = unsafe { held.0.buf.cast::<u8>().add(offset) };
    let aligned = (start as usize).is_multiple_of(dtype.size());
    let start = NonNull::new(start).unwrap_or(NonNull::<u64>::dangling().cast());
    if !aligned {
        let array = Array::uninit(OP, dtype, shape).map_err(raise)?;
        // SAFETY: both sides hold `bytes` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(start.as_ptr(), array.as_bytes_ptr().cast_mut(), bytes);
        }
        return Ok(array);
    }
    // SAFETY: `held` keeps the memory alive.
    let storage = unsafe { Storage::external(start, bytes, true, Box::new(held)) };
    let strides = crate::array::contiguous_strides(shape);
    Array::from_parts(Arc::new(storage), dtype, shape, &strides, 0).map_err(raise)
}
