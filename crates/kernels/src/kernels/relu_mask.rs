//! Relu that remembers which gradients pass, one bit for each element, so that a training step keeps
//! a thirty-second of the result for it.

use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{CHEAP, split};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, for_lanes};
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::ops::Range;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "ReluMask", build: |_| Ok(Arc::new(ReluMask)) },
    Entry { name: "ReluMaskGrad", build: |_| Ok(Arc::new(ReluMaskGrad)) },
];

/// Words of a mask for so many elements.
fn words(elements: usize) -> usize {
    elements.div_ceil(LANES)
}

fn require_f32(operator: &str, meta: &Meta) -> Result<()> {
    if meta.dtype == DType::F32 {
        return Ok(());
    }
    Err(Error::dtype(operator, "float32", meta.dtype.name()))
}

/// x -> (`x < 0 ? 0 : x`, mask). Bit l of word i of the mask, an uint16 for every 16 elements in
/// row-major order, is 0 where element 16 i + l of x is at most 0; NaN gives 1, and so do the bits
/// past the end.
struct ReluMask;

impl Kernel for ReluMask {
    fn name(&self) -> &'static str {
        "ReluMask"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("ReluMask", inputs, 1, 1)?;
        let x = inputs.get(0);
        require_f32("ReluMask", x)?;
        let size = x.shape.iter().product();
        Ok(smallvec![x.clone(), Meta::new(DType::U16, &[words(size)])])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let x = x.to_contiguous()?;
        let job = Shared::new((
            x.as_ptr::<f32>(),
            outputs[0].as_mut_ptr::<f32>(),
            outputs[1].as_mut_ptr::<u16>(),
        ));
        split(x.size(), CHEAP, |range| {
            let (x, y, mask) = job.get();
            dispatch(Forward { x, y, mask, range });
        });
        Ok(())
    }

    fn single_output(&self) -> bool {
        false
    }
}

struct Forward {
    x: *const f32,
    y: *mut f32,
    mask: *mut u16,
    range: Range<usize>,
}

impl WithSimd for Forward {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let zero = s.splat(0.0);
        // SAFETY: elements of the range, which begins with a word of the mask.
        unsafe {
            for_lanes!(self.range.len(), |i, count| {
                let at = self.range.start + i;
                let x = f32::get(s, self.x.add(at), count);
                f32::put(s, self.y.add(at), count, s.at_least(x, zero));
                let past = s.mask_not(s.mask_first(count));
                *self.mask.add(at / LANES) = !s.mask_bits(s.le(x, zero)) | s.mask_bits(past);
            });
        }
    }
}

/// (mask of [`ReluMask`], g) -> `bit ? g : 0`.
struct ReluMaskGrad;

impl Kernel for ReluMaskGrad {
    fn name(&self) -> &'static str {
        "ReluMaskGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("ReluMaskGrad", inputs, 2, 2)?;
        let (mask, g) = (inputs.get(0), inputs.get(1));
        require_f32("ReluMaskGrad", g)?;
        if mask.dtype != DType::U16 {
            return Err(Error::dtype("ReluMaskGrad", "a mask of uint16", mask.dtype.name()));
        }
        let count = words(g.shape.iter().product());
        if mask.shape[..] != [count] {
            return Err(Error::shape(
                "ReluMaskGrad",
                format!("a mask of {count} words for a gradient of shape {:?}", &g.shape[..]),
                format!("{:?}", &mask.shape[..]),
            ));
        }
        Ok(smallvec![g.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(mask), Some(g)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let (mask, g) = (mask.to_contiguous()?, g.to_contiguous()?);
        let job =
            Shared::new((mask.as_ptr::<u16>(), g.as_ptr::<f32>(), outputs[0].as_mut_ptr::<f32>()));
        split(g.size(), CHEAP, |range| {
            let (mask, g, dx) = job.get();
            dispatch(Backward { mask, g, dx, range });
        });
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(1, 0)]
    }
}

struct Backward {
    mask: *const u16,
    g: *const f32,
    dx: *mut f32,
    range: Range<usize>,
}

impl WithSimd for Backward {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let zero = s.splat(0.0);
        // SAFETY: elements of the range, which begins with a word of the mask.
        unsafe {
            for_lanes!(self.range.len(), |i, count| {
                let at = self.range.start + i;
                let passes = s.mask_of(*self.mask.add(at / LANES));
                let g = f32::get(s, self.g.add(at), count);
                f32::put(s, self.dx.add(at), count, s.select(passes, g, zero));
            });
        }
    }
}
