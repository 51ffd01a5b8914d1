//! `Array` in Python.

use crate::array::{Array, element_count};
use crate::dtype::Bool;
use crate::error::Error;
use crate::for_dtype;
use crate::kernels::movement::copy_into;
use crate::python::convert;
use crate::python::errors::raise;
use crate::python::{buffer, numpy};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

/// Elements of one dtype with a shape and strides over shared, reference-counted storage.
///
/// Shapes, strides and offsets count elements. The buffer protocol, `numpy()` and DLPack give views
/// without copying; NumPy views are read-only.
#[pyclass(name = "Array", module = "onemodel_kernels", frozen, weakref)]
pub struct PyArray(pub Array);

/// A number of any dtype as a Python object.
trait Item {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
    /// Reads a Python number; floats truncate toward zero in integer dtypes as a C cast does.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>
    where
        Self: Sized;
}

macro_rules! item {
    ($($t:ty),*) => {$(
        impl Item for $t {
            fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                Ok(self.into_pyobject(py)?.into_any())
            }
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract()
            }
        }
    )*};
}
item!(u8, u16, u32, u64, i8, i16, i32, i64, f64);

impl Item for f32 {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(f64::from(self).into_pyobject(py)?.into_any())
    }
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(value.extract::<f64>()? as Self)
    }
}

macro_rules! half_item {
    ($($t:ty),*) => {$(
        impl Item for $t {
            fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
                Ok(self.to_f64().into_pyobject(py)?.into_any())
            }
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                Ok(Self::from_f64(value.extract::<f64>()?))
            }
        }
    )*};
}
half_item!(half::f16, half::bf16);

impl Item for Bool {
    fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.get().into_pyobject(py)?.to_owned().into_any())
    }
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(value.is_truthy()?.into())
    }
}

fn nested<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    if array.rank() == 0 {
        return for_dtype!(array.dtype(), T => {
            // SAFETY: a 0-d array has one element.
            unsafe { *array.as_ptr::<T>() }.object(py)
        });
    }
    let items = (0..array.shape()[0])
        .map(|i| nested(py, &array.select(0, i as i64).map_err(raise)?))
        .collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

fn writable(array: &Array, what: &str) -> PyResult<()> {
    if array.storage().read_only() {
        return Err(raise(Error::usage(what, "a writable array", "one over read-only memory")));
    }
    Ok(())
}

#[pymethods]
impl PyArray {
    /// An array of a NumPy array or anything `numpy.asarray` takes; copies unless `copy=False`.
    #[staticmethod]
    #[pyo3(signature = (a, copy = true))]
    fn from_numpy(a: &Bound<'_, PyAny>, copy: bool) -> PyResult<Self> {
        buffer::from_numpy(a, copy).map(Self)
    }

    /// A view of bytes that somebody else keeps: read-only, no copy.
    #[staticmethod]
    #[pyo3(signature = (buffer, dtype, shape, offset = 0))]
    fn from_buffer(
        buffer: &Bound<'_, PyAny>,
        dtype: &str,
        shape: Vec<usize>,
        offset: usize,
    ) -> PyResult<Self> {
        let dtype = convert::dtype("from_buffer", dtype)?;
        buffer::from_buffer(buffer, dtype, &shape, offset).map(Self)
    }

    /// A contiguous array with every element `value`.
    #[staticmethod]
    fn full(shape: Vec<usize>, value: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Self> {
        let dtype = convert::dtype("full", dtype)?;
        element_count("full", &shape, dtype).map_err(raise)?;
        let array = Self(Array::uninit("full", dtype, &shape).map_err(raise)?);
        copy_into(&array.element(value)?, &array.0);
        Ok(array)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        convert::dtype_name(py, self.0.dtype())
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.0.dtype().size()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.0.size() * self.0.dtype().size()
    }

    /// Of the first element in the storage, in elements.
    #[getter]
    fn offset(&self) -> usize {
        self.0.offset()
    }

    #[getter]
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Counts the writes into the storage, through any view.
    #[getter]
    fn version(&self) -> u64 {
        self.0.storage().version()
    }

    /// Equal for arrays that share storage while both live.
    #[getter]
    fn storage_id(&self) -> usize {
        self.0.storage().id()
    }

    /// Number of arrays (and exported buffers, and late copies that are not made yet) on the storage.
    #[getter]
    fn storage_refs(&self) -> usize {
        std::sync::Arc::strong_count(self.0.storage())
    }

    #[getter]
    fn read_only(&self) -> bool {
        self.0.storage().read_only()
    }

    fn __repr__(&self) -> String {
        format!("Array(shape={:?}, dtype={})", self.0.shape(), self.0.dtype().name())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0.shape().first().copied().ok_or_else(|| {
            pyo3::exceptions::PyTypeError::new_err("len: expected an axis, got a 0-d Array")
        })
    }

    /// The value of an array of one element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.size() != 1 {
            let got = format!("shape {:?}", self.0.shape());
            return Err(raise(Error::shape("item", "an array of one element", got)));
        }
        for_dtype!(self.0.dtype(), T => {
            // SAFETY: the array has one element.
            unsafe { *self.0.as_ptr::<T>() }.object(py)
        })
    }

    /// Nested lists of Python numbers; a number for a 0-d array.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        nested(py, &self.0)
    }

    /// The elements' bytes in row-major order.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let dense = self.0.to_contiguous().map_err(raise)?;
        let bytes = dense.size() * dense.dtype().size();
        // SAFETY: contiguous, so the bytes are in one run.
        let slice = unsafe { std::slice::from_raw_parts(dense.as_bytes_ptr(), bytes) };
        Ok(PyBytes::new(py, slice))
    }

    /// A read-only NumPy view without a copy.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        numpy::to_numpy(slf)
    }

    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view = numpy::to_numpy(slf)?;
        let options = PyDict::new(slf.py());
        options.set_item("copy", copy.unwrap_or(false))?;
        match dtype {
            Some(dtype) => view.call_method("astype", (dtype,), Some(&options)),
            None if copy == Some(true) => view.call_method0("copy"),
            None => Ok(view),
        }
    }

    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (stream, dl_device);
        crate::python::dlpack::export(slf, max_version, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// An array over the memory of a DLPack producer, without a copy.
    #[staticmethod]
    fn from_dlpack(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        crate::python::dlpack::import(source).map(Self)
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: the interpreter passes a valid view to fill.
        unsafe { buffer::fill_view(&slf, view, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut pyo3::ffi::Py_buffer) {
        // SAFETY: the view was filled by `fill_view` and is released once.
        unsafe { buffer::release_view(view) }
    }

    /// The same elements under another shape; raises ShapeError when that needs a copy.
    fn reshape(&self, shape: Vec<usize>) -> PyResult<Self> {
        self.0.reshape(&shape).map(Self).map_err(raise)
    }

    /// The same elements under another shape: a view where possible, else a copy.
    fn view_or_copy(&self, shape: Vec<usize>) -> PyResult<Self> {
        if let Ok(view) = self.0.reshape(&shape) {
            return Ok(Self(view));
        }
        let dense = self.0.to_contiguous().map_err(raise)?;
        dense.reshape(&shape).map(Self).map_err(raise)
    }

    /// A view with reordered axes.
    fn permute(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.0.permute(&axes).map(Self).map_err(raise)
    }

    /// A view of elements start, start + step, … of one axis, before `stop`.
    ///
    /// A step beyond 64 bits reaches no second element and counts as the largest one.
    fn slice(&self, axis: i64, start: i64, stop: i64, step: &Bound<'_, PyAny>) -> PyResult<Self> {
        let step = match step.extract::<i64>() {
            Err(e) if e.is_instance_of::<PyOverflowError>(step.py()) => {
                if step.lt(0)? {
                    i64::MIN
                } else {
                    i64::MAX
                }
            }
            other => other?,
        };
        self.0.slice(axis, start, stop, step).map(Self).map_err(raise)
    }

    /// A view of one index of an axis, which goes.
    fn select(&self, axis: i64, index: i64) -> PyResult<Self> {
        self.0.select(axis, index).map(Self).map_err(raise)
    }

    /// A view that repeats axes of extent 1.
    fn expand(&self, shape: Vec<usize>) -> PyResult<Self> {
        self.0.expand(&shape).map(Self).map_err(raise)
    }

    /// A view without the given axes of extent 1.
    fn squeeze(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.0.squeeze(&axes).map(Self).map_err(raise)
    }

    /// A view with new axes of extent 1.
    fn unsqueeze(&self, axes: Vec<i64>) -> PyResult<Self> {
        self.0.unsqueeze(&axes).map(Self).map_err(raise)
    }

    /// A view of a diagonal, as a new last axis.
    #[pyo3(signature = (offset = 0, axis1 = 0, axis2 = 1))]
    fn diagonal(&self, offset: i64, axis1: i64, axis2: i64) -> PyResult<Self> {
        self.0.diagonal(offset, axis1, axis2).map(Self).map_err(raise)
    }

    /// The array itself when contiguous, else a contiguous copy.
    fn contiguous(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().0.is_contiguous() {
            return Ok(slf);
        }
        let copy = slf.get().copy()?;
        Bound::new(slf.py(), copy)
    }

    /// A contiguous copy in new storage.
    fn copy(&self) -> PyResult<Self> {
        self.0.copy().map(Self).map_err(raise)
    }

    /// A contiguous copy in new storage whose elements are copied as late as possible.
    ///
    /// It is the copy that `copy` would make now: an array that is a whole storage is copied when
    /// somebody needs the copy's elements, or before the next write into that storage through any
    /// of its arrays. All else is copied at once: views, arrays below 4096 bytes, and memory that
    /// others may write (shared by `from_numpy(copy=False)` or DLPack, or known by `data_ptr`).
    fn late_copy(&self) -> PyResult<Self> {
        self.0.late_copy().map(Self).map_err(raise)
    }

    /// The address of the first element, for code that reads or writes there by itself.
    fn data_ptr(&self) -> usize {
        self.0.storage().expose();
        self.0.as_bytes_ptr() as usize
    }

    /// Writes `source`, broadcast to this shape and of the same dtype; bumps the version.
    fn copy_from(&self, source: &Bound<'_, Self>) -> PyResult<()> {
        writable(&self.0, "copy_from")?;
        let source = &source.get().0;
        if source.dtype() != self.0.dtype() {
            let (want, got) = (self.0.dtype().name(), source.dtype().name());
            return Err(raise(Error::dtype("copy_from", want, got)));
        }
        source.expand(self.0.shape()).map_err(raise)?;
        if self.0.overlaps(source) {
            let copy = source.copy().map_err(raise)?;
            let _write = self.0.storage().write();
            copy_into(&copy, &self.0);
        } else {
            let _write = self.0.storage().write();
            copy_into(source, &self.0);
        }
        Ok(())
    }

    /// Writes `value` into every element; bumps the version.
    fn fill(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        writable(&self.0, "fill")?;
        let element = self.element(value)?;
        let _write = self.0.storage().write();
        copy_into(&element, &self.0);
        Ok(())
    }

    /// Whether the two arrays may share elements.
    fn overlaps(&self, other: &Bound<'_, Self>) -> bool {
        self.0.overlaps(&other.get().0)
    }
}

impl PyArray {
    /// A number as a 0-d array of this dtype.
    fn element(&self, value: &Bound<'_, PyAny>) -> PyResult<Array> {
        let dtype = self.0.dtype();
        let one = Array::uninit("fill", dtype, &[]).map_err(raise)?;
        for_dtype!(dtype, T => {
            let element = <T as Item>::read(value).map_err(|_| {
                let got = value.repr().map_or_else(|_| "an object".into(), |r| r.to_string());
                raise(Error::attribute("fill", format!("a number that fits {}", dtype.name()), got))
            })?;
            // SAFETY: a fresh 0-d array has one element.
            unsafe { *one.as_mut_ptr::<T>() = element };
        });
        Ok(one)
    }
}
