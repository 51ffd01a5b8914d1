//! GlobalAveragePool and GlobalMaxPool: one value for each plane.

use super::average::Float;
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::fold::{Rows, Store, fold};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::product::parts_of;
use crate::kernels::lanes::{Lane, for_lanes};
use crate::kernels::number::Number;
use crate::kernels::reduce::Maximum;
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::sync::Arc;

/// Prepares GlobalAveragePool.
///
/// # Errors
/// None.
pub(super) fn build_average(_: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Global { mean: true }))
}

/// Prepares GlobalMaxPool.
///
/// # Errors
/// None.
pub(super) fn build_max(_: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Global { mean: false }))
}

/// GlobalAveragePool: 16 lanes, lane l adding elements l, l + 16, … from +0.0, then the tree over the
/// lanes (l and l + 8, + 4, + 2, + 1), then one division by the number of elements.
///
/// GlobalMaxPool: the greatest element, as ReduceMax finds it.
struct Global {
    mean: bool,
}

struct Planes<T> {
    size: usize,
    x: *const T,
    y: *mut T,
    range: (usize, usize),
}

impl<T: Float> WithSimd for Planes<T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for plane in self.range.0..self.range.1 {
            // SAFETY: planes of this part.
            let (x, y) = unsafe {
                let x = self.x.add(plane * self.size);
                (std::slice::from_raw_parts(x, self.size), &mut *self.y.add(plane))
            };
            *y = mean(x);
        }
    }
}

#[inline(always)]
fn mean<T: Float>(x: &[T]) -> T {
    let mut lanes = [T::default(); LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            lanes[l] = T::add(lanes[l], chunk[l]);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(tail) {
        *lane = T::add(*lane, x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = T::add(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0].over(x.len())
}

/// The means of f32 planes.
struct Means {
    size: usize,
    x: *const f32,
    y: *mut f32,
    range: (usize, usize),
}

impl WithSimd for Means {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for plane in self.range.0..self.range.1 {
            // SAFETY: planes of this part.
            unsafe {
                let x = self.x.add(plane * self.size);
                let mut sum = s.splat(0.0);
                // Beyond the end +0.0 is added to sums that began with it, which changes none.
                for_lanes!(self.size, |i, count| {
                    sum = s.add(sum, f32::get(s, x.add(i), count));
                });
                *self.y.add(plane) = s.tree_add(sum).over(self.size);
            }
        }
    }
}

impl Global {
    fn compute<T: Float + Number + Store>(&self, x: &Array, y: &Array) -> Result<()> {
        let planes = y.size();
        if planes == 0 {
            return Ok(());
        }
        if !self.mean {
            let axes: Vec<usize> = (2..x.rank()).collect();
            fold::<T, _>(Maximum, &Rows::new(x, &axes)?, y);
            return Ok(());
        }
        let x = x.to_contiguous()?;
        let size = x.size() / planes;
        let job = Shared::new((x.as_ptr::<T>(), y.as_mut_ptr::<T>()));
        let parts = parts_of(4 * x.size()).min(planes);
        parallel::for_each(parts, |part| {
            let (x, y) = job.get();
            let range = (planes * part / parts, planes * (part + 1) / parts);
            if T::DTYPE == DType::F32 {
                dispatch(Means { size, x: x.cast(), y: y.cast(), range });
            } else {
                dispatch(Planes { size, x, y, range });
            }
        });
        Ok(())
    }
}

impl Kernel for Global {
    fn name(&self) -> &'static str {
        if self.mean { "GlobalAveragePool" } else { "GlobalMaxPool" }
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 1, 1)?;
        let x = inputs.get(0);
        if !x.dtype.is_float() {
            return Err(Error::dtype(self.name(), "floating-point numbers", x.dtype.name()));
        }
        if x.rank() < 3 || x.shape[2..].contains(&0) {
            return Err(Error::shape(
                self.name(),
                "an input (N, C, spatial…) with at least one element in each plane",
                format!("{:?}", &x.shape[..]),
            ));
        }
        let mut shape = x.shape.clone();
        shape[2..].fill(1);
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        match x.dtype() {
            DType::F32 => self.compute::<f32>(x, &outputs[0]),
            DType::F64 => self.compute::<f64>(x, &outputs[0]),
            dtype if is_half(dtype) => {
                through_f32(self.name(), inputs, &outputs[0], |i, o| self.run(i, o))
            }
            _ => Ok(()),
        }
    }
}
