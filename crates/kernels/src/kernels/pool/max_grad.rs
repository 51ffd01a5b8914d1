//! The gradient of MaxPool.

use super::places::{bounds, check};
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::product::try_for_each;
use smallvec::smallvec;
use std::sync::Arc;

/// Prepares MaxPoolGrad.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(MaxPoolGrad { input_shape: attributes.sizes_required("input_shape")? }))
}

/// `dx[indices[p]] += g[p]` from +0.0, for p ascending, indices in either form of MaxPool; that of
/// none adds nothing.
struct MaxPoolGrad {
    input_shape: Vec<usize>,
}

impl MaxPoolGrad {
    fn compute<T: Element + std::ops::AddAssign>(
        &self,
        g: &Array,
        indices: &Array,
        out: &Array,
    ) -> Result<()> {
        let (g, indices) = (g.to_contiguous()?, indices.to_contiguous()?);
        let planes = g.shape()[0] * g.shape()[1];
        if planes == 0 {
            return Ok(());
        }
        let (from, to) = (g.size() / planes, out.size() / planes);
        let job = Shared::new(out.as_mut_ptr::<T>());
        let parts = crate::kernels::gemm::product::parts_of(4 * (g.size() + out.size()));
        let parts = parts.min(planes);
        try_for_each(parts, |part| {
            for plane in planes * part / parts..planes * (part + 1) / parts {
                // SAFETY: planes are disjoint parts of the output.
                let dx = unsafe { std::slice::from_raw_parts_mut(job.get().add(plane * to), to) };
                let range = plane * from..(plane + 1) * from;
                let g = &g.as_slice::<T>()[range.clone()];
                let failed = match indices.dtype() {
                    DType::U16 => scatter(dx, g, &indices.as_slice::<u16>()[range], 0),
                    DType::U32 => scatter(dx, g, &indices.as_slice::<u32>()[range], 0),
                    _ => scatter(dx, g, &indices.as_slice::<i64>()[range], plane * to),
                };
                if let Some(index) = failed {
                    return Err(bounds("MaxPoolGrad", indices.dtype(), plane, to, index));
                }
            }
            Ok(())
        })
    }
}

/// A place as it is stored.
trait Place: Copy {
    const NONE: Self;
    fn number(self) -> i64;
}

macro_rules! place {
    ($($t:ty: $none:expr),*) => {
        $(impl Place for $t {
            const NONE: Self = $none;
            #[inline(always)]
            fn number(self) -> i64 {
                self as i64
            }
        })*
    };
}
place!(i64: -1, u16: u16::MAX, u32: u32::MAX);

/// `dx[places[p] - base] += g[p]` from +0.0; the first place outside, if there is one.
fn scatter<T: Element + std::ops::AddAssign, P: Place>(
    dx: &mut [T],
    g: &[T],
    places: &[P],
    base: usize,
) -> Option<i64> {
    dx.fill(T::default());
    for (&g, &place) in g.iter().zip(places) {
        let number = place.number();
        if let Some(dx) = dx.get_mut((number as usize).wrapping_sub(base)) {
            *dx += g;
        } else if number != P::NONE.number() {
            return Some(number);
        }
    }
    None
}

impl Kernel for MaxPoolGrad {
    fn name(&self) -> &'static str {
        "MaxPoolGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("MaxPoolGrad", inputs, 2, 2)?;
        let (g, indices) = (inputs.get(0), inputs.get(1));
        if !matches!(g.dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype("MaxPoolGrad", "float32 or float64", g.dtype.name()));
        }
        check("MaxPoolGrad", indices)?;
        let input = &self.input_shape;
        if g.shape != indices.shape
            || g.rank() < 3
            || g.rank() != input.len()
            || g.shape[..2] != input[..2]
        {
            return Err(Error::shape(
                "MaxPoolGrad",
                format!("a gradient and indices of one shape, pooled from {input:?}"),
                format!("{:?} and {:?}", &g.shape[..], &indices.shape[..]),
            ));
        }
        Ok(smallvec![Meta { dtype: g.dtype, shape: Dims::from_slice(input) }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(g), Some(indices)) = (inputs[0], inputs[1]) else { return Ok(()) };
        match g.dtype() {
            DType::F32 => self.compute::<f32>(g, indices, &outputs[0]),
            _ => self.compute::<f64>(g, indices, &outputs[0]),
        }
    }
}
