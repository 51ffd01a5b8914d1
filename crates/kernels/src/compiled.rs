//! Kernels compiled outside this crate, called through one C function.
//!
//! The function has the type [`Function`]. Tensors are `DLPack`'s `DLTensor`: on the CPU, contiguous
//! in row-major order (`strides` is null), with the data at `data`. The layout of every structure
//! here is part of [`ABI`]: a change of one raises it.

use crate::array::Array;
use crate::attributes::Attribute;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

/// The version of the layout below; a library says which one it was built for.
pub const ABI: u32 = 1;

/// Bytes that a kernel may write as its message, the closing zero included.
pub const MESSAGE_BYTES: usize = 512;

/// `DLTensor` of dlpack.h.
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *const i64,
    pub strides: *const i64,
    pub byte_offset: u64,
}

/// One attribute. `kind` is 0 for integers and 1 for floats (`count` of them, at `ints` or
/// `floats`), 2 for a text (at `text`, closed by a zero).
#[repr(C)]
pub struct Value {
    pub name: *const c_char,
    pub kind: i32,
    pub count: i64,
    pub ints: *const i64,
    pub floats: *const f64,
    pub text: *const c_char,
}

/// All that a kernel gets. An absent input is a null pointer.
#[repr(C)]
pub struct Call {
    pub inputs: *const *const Tensor,
    pub inputs_count: i64,
    pub outputs: *const *const Tensor,
    pub outputs_count: i64,
    pub attributes: *const Value,
    pub attributes_count: i64,
    pub message: *mut c_char,
    pub message_bytes: i64,
}

/// Writes the outputs and returns 0, or writes a message and returns another number.
///
/// It is called from any thread, from several at once, and must not unwind.
pub type Function = unsafe extern "C" fn(*const Call) -> i32;

/// The code and bits of a dtype in `DLPack`.
#[must_use]
pub const fn code(dtype: DType) -> (u8, u8) {
    let bits = (dtype.size() * 8) as u8;
    match dtype {
        DType::Bool => (6, 8),
        DType::BF16 => (4, bits),
        DType::F16 | DType::F32 | DType::F64 => (2, bits),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => (1, bits),
        _ => (0, bits),
    }
}

fn extents(array: &Array) -> Vec<i64> {
    array.shape().iter().map(|&extent| extent as i64).collect()
}

fn tensor(array: &Array, shape: &[i64]) -> Tensor {
    let (code, bits) = code(array.dtype());
    Tensor {
        data: array.as_bytes_ptr().cast_mut().cast(),
        device_type: 1,
        device_id: 0,
        ndim: shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: shape.as_ptr(),
        strides: ptr::null(),
        byte_offset: 0,
    }
}

fn value(name: &CStr, attribute: &Attribute, text: Option<&CString>) -> Value {
    let mut value = Value {
        name: name.as_ptr(),
        kind: 0,
        count: 1,
        ints: ptr::null(),
        floats: ptr::null(),
        text: ptr::null(),
    };
    match attribute {
        Attribute::Int(number) => value.ints = number,
        Attribute::Ints(numbers) => {
            value.count = numbers.len() as i64;
            value.ints = numbers.as_ptr();
        }
        Attribute::Float(number) => {
            value.kind = 1;
            value.floats = number;
        }
        Attribute::Floats(numbers) => {
            value.kind = 1;
            value.count = numbers.len() as i64;
            value.floats = numbers.as_ptr();
        }
        Attribute::Str(_) | Attribute::Strs(_) => {
            value.kind = 2;
            value.text = text.map_or(ptr::null(), |text| text.as_ptr());
        }
    }
    value
}

/// The attributes in C's form, made once for a prepared kernel.
pub struct Values {
    values: BTreeMap<String, Attribute>,
    names: Vec<CString>,
    texts: Vec<Option<CString>>,
}

impl Values {
    /// # Errors
    /// `Attribute` for a list of texts, or a text with a zero inside.
    pub fn new(operator: &str, values: BTreeMap<String, Attribute>) -> Result<Self> {
        let closed = |text: &str| {
            CString::new(text)
                .map_err(|_| Error::attribute(operator, "a text without a zero byte", text))
        };
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for (name, attribute) in &values {
            names.push(closed(name)?);
            texts.push(match attribute {
                Attribute::Str(text) => Some(closed(text)?),
                Attribute::Strs(_) => {
                    return Err(Error::attribute(
                        operator,
                        format!("{name} of a compiled kernel to be numbers or one text"),
                        "a list of texts",
                    ));
                }
                _ => None,
            });
        }
        Ok(Self { values, names, texts })
    }

    /// Calls `function`; outputs are contiguous, inputs are copied where they are not.
    ///
    /// # Errors
    /// `Usage` with the kernel's message when it returns another number than 0.
    ///
    /// # Safety
    /// `function` is a [`Function`] that keeps to its contract.
    pub unsafe fn call(
        &self,
        operator: &str,
        function: Function,
        inputs: &[Option<&Array>],
        outputs: &[Array],
    ) -> Result<()> {
        let mut held: Vec<Option<Array>> = Vec::with_capacity(inputs.len());
        for input in inputs {
            held.push(match input {
                Some(array) if array.is_contiguous() => Some((*array).clone()),
                Some(array) => Some(array.copy()?),
                None => None,
            });
        }
        let shapes: Vec<Vec<i64>> =
            held.iter().map(|array| array.as_ref().map(extents).unwrap_or_default()).collect();
        let tensors: Vec<Option<Tensor>> = held
            .iter()
            .zip(&shapes)
            .map(|(array, shape)| array.as_ref().map(|array| tensor(array, shape)))
            .collect();
        let read: Vec<*const Tensor> =
            tensors.iter().map(|t| t.as_ref().map_or(ptr::null(), ptr::from_ref)).collect();
        let out_shapes: Vec<Vec<i64>> = outputs.iter().map(extents).collect();
        let out_tensors: Vec<Tensor> =
            outputs.iter().zip(&out_shapes).map(|(array, shape)| tensor(array, shape)).collect();
        let written: Vec<*const Tensor> = out_tensors.iter().map(ptr::from_ref).collect();
        let values: Vec<Value> = self
            .values
            .values()
            .zip(&self.names)
            .zip(&self.texts)
            .map(|((attribute, name), text)| value(name, attribute, text.as_ref()))
            .collect();
        let mut message = [0u8; MESSAGE_BYTES];
        let call = Call {
            inputs: read.as_ptr(),
            inputs_count: read.len() as i64,
            outputs: written.as_ptr(),
            outputs_count: written.len() as i64,
            attributes: values.as_ptr(),
            attributes_count: values.len() as i64,
            message: message.as_mut_ptr().cast(),
            message_bytes: MESSAGE_BYTES as i64,
        };
        // SAFETY: every pointer in `call` lives until after the call; the rest is the caller's word.
        let status = unsafe { function(&raw const call) };
        if status == 0 {
            return Ok(());
        }
        message[MESSAGE_BYTES - 1] = 0;
        let text = CStr::from_bytes_until_nul(&message).unwrap_or_default().to_string_lossy();
        let got = if text.is_empty() { format!("status {status}") } else { text.into_owned() };
        Err(Error::usage(operator, "a call that the kernel accepts", got))
    }
}
