//! Kernels compiled elsewhere: what they are handed, and how they refuse.

use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::compiled::{Call, Function, Values};
use onemodel_kernels::error::ErrorKind;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::slice;

/// y = scale * x + shift[i], and fails where "mode" is "fail". An absent shift counts as zeros.
unsafe extern "C" fn affine(call: *const Call) -> i32 {
    // SAFETY: the tests call this with one or two f32 inputs of one size and one output of it.
    unsafe {
        let call = &*call;
        let mut scale = 1.0;
        for value in slice::from_raw_parts(call.attributes, call.attributes_count as usize) {
            match CStr::from_ptr(value.name).to_str().unwrap_or("") {
                "scale" => scale = *value.floats.add(value.count as usize - 1) as f32,
                "mode" if CStr::from_ptr(value.text) == c"fail" => {
                    let text = c"as asked".to_bytes_with_nul();
                    std::ptr::copy_nonoverlapping(text.as_ptr(), call.message.cast(), text.len());
                    return 7;
                }
                "mode" => return 9,
                _ => {}
            }
        }
        let x = &**call.inputs;
        assert_eq!((x.code, x.bits, x.lanes, x.ndim), (2, 32, 1, 2));
        assert!(x.strides.is_null());
        let size: i64 = slice::from_raw_parts(x.shape, 2).iter().product();
        let size = size as usize;
        let shift = if call.inputs_count > 1 { *call.inputs.add(1) } else { std::ptr::null() };
        let x = slice::from_raw_parts(x.data.cast::<f32>(), size);
        let y = slice::from_raw_parts_mut((**call.outputs).data.cast::<f32>(), size);
        for i in 0..size {
            let by = if shift.is_null() { 0.0 } else { *(*shift).data.cast::<f32>().add(i) };
            y[i] = scale * x[i] + by;
        }
    }
    0
}

const FUNCTION: Function = affine;

fn values(entries: &[(&str, Attribute)]) -> Values {
    let map: BTreeMap<_, _> = entries.iter().map(|(n, a)| ((*n).to_string(), a.clone())).collect();
    Values::new("affine", map).expect("these attributes fit")
}

fn run(values: &Values, inputs: &[Option<&Array>]) -> onemodel_kernels::error::Result<Vec<f32>> {
    let shape = inputs[0].expect("x is there").shape().to_vec();
    let y = Array::from_slice(&shape, &vec![0.0f32; shape.iter().product()])?;
    // SAFETY: `affine` takes what the tests give.
    unsafe { values.call("affine", FUNCTION, inputs, std::slice::from_ref(&y))? };
    // SAFETY: y is contiguous f32 of this size.
    Ok(unsafe { slice::from_raw_parts(y.as_ptr::<f32>(), y.size()) }.to_vec())
}

fn matrix() -> Array {
    Array::from_slice(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).expect("six numbers")
}

#[test]
fn attributes_and_absent_inputs_arrive() {
    let x = matrix();
    let scaled = values(&[("scale", Attribute::Float(2.0))]);
    assert_eq!(run(&scaled, &[Some(&x), None]).unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    let last = values(&[("scale", Attribute::Floats(vec![9.0, 3.0]))]);
    assert_eq!(run(&last, &[Some(&x)]).unwrap()[5], 15.0);
    assert_eq!(run(&values(&[]), &[Some(&x), Some(&x)]).unwrap()[5], 10.0);
}

#[test]
fn strided_inputs_are_handed_over_contiguous() {
    let turned = matrix().permute(&[1, 0]).expect("two axes");
    assert_eq!(run(&values(&[]), &[Some(&turned)]).unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
}

#[test]
fn a_refusal_carries_the_kernels_message_or_its_number() {
    let x = matrix();
    let fails = values(&[("mode", Attribute::Str("fail".into()))]);
    let error = run(&fails, &[Some(&x)]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.to_string().contains("as asked"), "{error}");
    let silent = values(&[("mode", Attribute::Str("other".into()))]);
    assert!(run(&silent, &[Some(&x)]).unwrap_err().to_string().contains("status 9"));
}

#[test]
fn attributes_that_c_cannot_hold_are_refused() {
    for attribute in [Attribute::Str("a\0b".into()), Attribute::Strs(vec!["a".into()])] {
        let map = BTreeMap::from([("mode".to_string(), attribute)]);
        assert_eq!(Values::new("affine", map).err().map(|e| e.kind), Some(ErrorKind::Attribute));
    }
}
