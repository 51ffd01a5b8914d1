//! DepthToSpace and SpaceToDepth.

use super::copy_into;
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "DepthToSpace", build: Blocks::build_space },
    Entry { name: "SpaceToDepth", build: Blocks::build_depth },
];

/// Channels of (N, C, H, W) moved into blocks of `blocksize` by `blocksize` places, or back. With
/// mode DCR the block's place is the outer part of the channel number, with CRD the inner one;
/// SpaceToDepth is the inverse of DCR.
struct Blocks {
    to_space: bool,
    size: usize,
    inner: bool,
}

impl Blocks {
    fn size(attributes: &mut Attributes) -> Result<usize> {
        let size = attributes.int_required("blocksize")?;
        usize::try_from(size).ok().filter(|&s| s >= 1).ok_or_else(|| {
            let operator = attributes.operator();
            Error::attribute(operator, "a blocksize of at least 1", size.to_string())
        })
    }

    fn build_space(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let size = Self::size(attributes)?;
        let inner = attributes.choice("mode", &["DCR", "CRD"], 0)? == 1;
        Ok(Arc::new(Self { to_space: true, size, inner }))
    }

    fn build_depth(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { to_space: false, size: Self::size(attributes)?, inner: false }))
    }
}

impl Kernel for Blocks {
    fn name(&self) -> &'static str {
        if self.to_space { "DepthToSpace" } else { "SpaceToDepth" }
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let [n, c, h, w] = x.shape[..] else {
            return Err(Error::shape(self.name(), "(N, C, H, W)", format!("{:?}", x.shape)));
        };
        let b = self.size;
        let overflow = || {
            let got = format!("{:?} with blocks of {b}", x.shape);
            Error::memory(self.name(), "extents that fit 64 bits", got)
        };
        let square = b.checked_mul(b).ok_or_else(overflow)?;
        let fits = if self.to_space { c % square == 0 } else { h % b == 0 && w % b == 0 };
        if !fits {
            let what = if self.to_space { "channels" } else { "rows and columns" };
            let by = if self.to_space { square } else { b };
            return Err(Error::shape(
                self.name(),
                format!("{what} that are multiples of {by}"),
                format!("{:?}", x.shape),
            ));
        }
        let times = |a: usize, b: usize| a.checked_mul(b).ok_or_else(overflow);
        let shape = if self.to_space {
            [n, c / square, times(h, b)?, times(w, b)?]
        } else {
            [n, times(c, square)?, h / b, w / b]
        };
        Ok(smallvec![Meta::new(x.dtype, &shape)])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        let x = x.to_contiguous()?;
        let b = self.size;
        // Only the larger side is split, so that both have six axes.
        let spread = |s: &[usize]| [s[0], s[1], s[2] / b, b, s[3] / b, b];
        if self.to_space {
            let [n, c, h, _, w, _] = spread(out.shape());
            let (shape, order) = if self.inner {
                ([n, c, b, b, h, w], [0, 1, 4, 2, 5, 3])
            } else {
                ([n, b, b, c, h, w], [0, 3, 4, 1, 5, 2])
            };
            copy_into(&x.reshape(&shape)?.permute(&order)?, &out.reshape(&spread(out.shape()))?);
        } else {
            let shape = spread(x.shape());
            let [n, c, h, _, w, _] = shape;
            let to = out.reshape(&[n, b, b, c, h, w])?;
            copy_into(&x.reshape(&shape)?.permute(&[0, 3, 5, 1, 2, 4])?, &to);
        }
        Ok(())
    }
}
