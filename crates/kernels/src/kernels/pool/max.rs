//! MaxPool.

use super::inside;
use super::places::{Form, Indices};
use super::planes::{Planes, PoolAttributes};
use super::windows::{self, Task};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, narrow, widened};
use crate::kernels::gemm::matrix::Shared;
use crate::scratch::Scratch;
use crate::simd::{Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::sync::Arc;

/// An element that can be compared.
pub(super) trait Ordered: Element + PartialOrd {
    const LOWEST: Self;
}

macro_rules! ordered {
    ($($t:ty: $lowest:expr),*) => {
        $(impl Ordered for $t { const LOWEST: Self = $lowest; })*
    };
}
ordered!(u8: u8::MIN, u16: u16::MIN, u32: u32::MIN, u64: u64::MIN, i8: i8::MIN, i16: i16::MIN,
    i32: i32::MIN, i64: i64::MIN, f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY);

/// Prepares MaxPool.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let with_indices = attributes.flag("with_indices", true)?;
    let form = match attributes.choice("indices_in", &["input", "plane"], 0)? {
        _ if !with_indices => Form::None,
        0 => Form::Input,
        _ => Form::Plane,
    };
    Ok(Arc::new(MaxPool { pool: PoolAttributes::read(attributes)?, form }))
}

/// `y = max` of each window and the flat index of the place in the whole input: the first of equal
/// ones in window order (zeros of both signs are equal); the first NaN wins. A window that lies in the
/// padding alone gives the lowest value and index -1. Without `with_indices` y is the only output.
/// With `indices_in` plane the places are those inside a plane, as uint16 (uint32 where a plane has
/// more than 65535 elements), of which the largest number stands for none.
struct MaxPool {
    pool: PoolAttributes,
    form: Form,
}

struct Rows<'a, T> {
    planes: &'a Planes,
    range: std::ops::Range<usize>,
    x: *const T,
    y: *mut T,
    indices: Option<Indices>,
    /// Places inside the plane, for one output row; `u32::MAX` for none.
    places: &'a mut [u32],
    /// The first input column of each output's window, `u32::MAX` for none.
    columns: &'a [u32],
}

impl<T: Ordered> WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let p = self.planes;
        let [od, oh, ow] = p.output;
        let [kd, kh, kw] = p.window.kernel;
        let (stride, input) = (p.window.strides[2], p.input_size());
        for plane in self.range {
            for row in 0..od * oh {
                let (d, h) = (row / oh, row % oh);
                // SAFETY: rows of the planes of this part; tap positions are inside the plane.
                unsafe {
                    let x = std::slice::from_raw_parts(self.x.add(plane * input), input);
                    let to = (plane * od * oh + row) * ow;
                    let y = std::slice::from_raw_parts_mut(self.y.add(to), ow);
                    let places = &mut self.places[..ow];
                    y.fill(T::LOWEST);
                    let first_of = |axis: usize, o: usize| {
                        (0..p.window.kernel[axis]).find_map(|k| p.position(axis, o, k))
                    };
                    match first_of(0, d).zip(first_of(1, h)) {
                        Some((i, j)) => {
                            let begin = ((i * p.sizes[1] + j) * p.sizes[2]) as u32;
                            for (place, &column) in places.iter_mut().zip(self.columns) {
                                let outside = column == u32::MAX;
                                *place = if outside { column } else { begin + column };
                            }
                        }
                        None => places.fill(u32::MAX),
                    }
                    for tap in 0..kd * kh {
                        let at = p.position(0, d, tap / kh).zip(p.position(1, h, tap % kh));
                        let Some((i, j)) = at else { continue };
                        let begin = (i * p.sizes[1] + j) * p.sizes[2];
                        for k in 0..kw {
                            let (first, end) = p.columns(k);
                            if first == end {
                                continue;
                            }
                            let offset =
                                first * stride + k * p.window.dilations[2] - p.window.begins[2];
                            let from = begin + offset;
                            let (y, places) = (&mut y[first..end], &mut places[first..end]);
                            match stride {
                                1 => fold::<T, 1>(&x[from..], y, places, from, 1),
                                2 => fold::<T, 2>(&x[from..], y, places, from, 2),
                                _ => fold::<T, 0>(&x[from..], y, places, from, stride),
                            }
                        }
                    }
                    let Some(indices) = self.indices else { continue };
                    let base = (plane * input) as i64;
                    indices.put(to, places, base);
                }
            }
        }
    }
}

/// Folds one tap of a row into the maxima so far. `STEP` 0 stands for any stride.
#[inline(always)]
fn fold<T: Ordered, const STEP: usize>(
    x: &[T],
    y: &mut [T],
    places: &mut [u32],
    from: usize,
    stride: usize,
) {
    let step = if STEP == 0 { stride } else { STEP };
    let n = y.len();
    assert!(places.len() == n && x.len() > (n - 1) * step);
    let mut place = from as u32;
    for i in 0..n {
        // SAFETY: just checked.
        unsafe {
            let (value, best) = (*x.get_unchecked(i * step), y.get_unchecked_mut(i));
            #[allow(clippy::eq_op, clippy::neg_cmp_op_on_partial_ord)]
            let take = !(value <= *best) & (*best == *best);
            *best = if take { value } else { *best };
            let old = places.get_unchecked_mut(i);
            *old = if take { place } else { *old };
        }
        place = place.wrapping_add(step as u32);
    }
}

impl MaxPool {
    fn compute<T: Ordered>(&self, x: &Array, y: &Array, indices: Option<&Array>) -> Result<()> {
        let planes = self.pool.planes("MaxPool", x.shape(), y.shape())?;
        if y.size() == 0 {
            return Ok(());
        }
        let x = x.to_contiguous()?;
        let indices = indices.map(Indices::of);
        let job = Shared::new((x.as_ptr::<T>(), y.as_mut_ptr::<T>(), indices));
        let mut columns = Scratch::new("MaxPool", planes.output[2] * size_of::<u32>())?;
        let columns = &mut columns.as_mut::<u32>()[..planes.output[2]];
        for (o, column) in columns.iter_mut().enumerate() {
            let first = (0..planes.window.kernel[2]).find_map(|k| planes.position(2, o, k));
            *column = first.map_or(u32::MAX, |c| c as u32);
        }
        let columns = &*columns;
        planes.try_for_each(|range| {
            let (x, y, indices) = job.get();
            if T::DTYPE == DType::F32 {
                let task = match indices {
                    Some(indices) => Task::Place { indices },
                    None => Task::Maximum,
                };
                let (x, y) = (x.cast(), y.cast());
                // SAFETY: the planes of f32 arrays, and a place for each output.
                let done = unsafe {
                    inside::run("MaxPool", &planes, range.clone(), x, y, indices)?
                        || windows::run("MaxPool", &planes, range.clone(), x, y, task)?
                };
                if done {
                    return Ok(());
                }
            }
            let mut places = Scratch::new("MaxPool", planes.output[2] * size_of::<u32>())?;
            let places = places.as_mut::<u32>();
            dispatch(Rows { planes: &planes, range, x, y, indices, places, columns });
            Ok(())
        })
    }
}

impl Kernel for MaxPool {
    fn name(&self) -> &'static str {
        "MaxPool"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("MaxPool", inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype("MaxPool", "numbers", "bool"));
        }
        let shape = self.pool.output_shape("MaxPool", &x.shape)?;
        let plane =
            x.shape[2..].iter().try_fold(1u32, |acc, &d| acc.checked_mul(u32::try_from(d).ok()?));
        if plane.is_none_or(|p| p == u32::MAX) {
            let got = format!("{:?}", &x.shape[..]);
            return Err(Error::memory("MaxPool", "planes of fewer than 2^32 elements", got));
        }
        let plane = x.shape[2..].iter().product();
        let indices = Meta { dtype: self.form.dtype(plane), shape: shape.clone() };
        let mut outputs: Metas = smallvec![Meta { dtype: x.dtype, shape }];
        if self.form != Form::None {
            outputs.push(indices);
        }
        Ok(outputs)
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let (y, indices) = (&outputs[0], outputs.get(1));
        match x.dtype() {
            DType::F32 => self.compute::<f32>(x, y, indices),
            DType::F64 => self.compute::<f64>(x, y, indices),
            DType::U8 => self.compute::<u8>(x, y, indices),
            DType::U16 => self.compute::<u16>(x, y, indices),
            DType::U32 => self.compute::<u32>(x, y, indices),
            DType::U64 => self.compute::<u64>(x, y, indices),
            DType::I8 => self.compute::<i8>(x, y, indices),
            DType::I16 => self.compute::<i16>(x, y, indices),
            DType::I32 => self.compute::<i32>(x, y, indices),
            DType::I64 => self.compute::<i64>(x, y, indices),
            dtype if is_half(dtype) => {
                // Widening is exact and monotone, so the places are those of the narrow values.
                let wide = widened("MaxPool", x)?;
                let best = Array::uninit("MaxPool", DType::F32, y.shape())?;
                self.compute::<f32>(&wide, &best, indices)?;
                narrow(&best, y);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn single_output(&self) -> bool {
        self.form == Form::None
    }
}
