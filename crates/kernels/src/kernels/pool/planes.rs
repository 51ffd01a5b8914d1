//! What all pools share: planes of an input, the windows of each output, and the taps inside.

use crate::array::Dims;
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernels::conv::geometry::{AXES, Window, WindowAttributes, extended};
use crate::kernels::gemm::product::{self, parts_of};
use crate::parallel;

/// The attributes of a pool.
#[derive(Debug, Clone)]
pub(super) struct PoolAttributes {
    kernel: Vec<usize>,
    window: WindowAttributes,
    ceil: bool,
}

/// Pooling of planes (one for each image and channel) of three spatial axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planes {
    pub(super) count: usize,
    pub(super) window: Window,
    pub(super) sizes: [usize; AXES],
    pub(super) output: [usize; AXES],
}

impl PoolAttributes {
    /// Reads `kernel_shape`, `strides`, `pads`, `dilations` and `ceil_mode`.
    ///
    /// # Errors
    /// As the attribute getters.
    pub(super) fn read(attributes: &mut Attributes) -> Result<Self> {
        Ok(Self {
            kernel: attributes.sizes_required("kernel_shape")?,
            window: WindowAttributes::read(attributes)?,
            ceil: attributes.flag("ceil_mode", false)?,
        })
    }

    /// The output's shape for an input (N, C, spatial…).
    ///
    /// # Errors
    /// `Shape` or `Attribute` when the window does not fit.
    pub(super) fn output_shape(&self, operator: &str, input: &[usize]) -> Result<Dims> {
        let window = self.window.window(operator, &self.kernel)?;
        if input.len() != self.kernel.len() + 2 {
            return Err(Error::shape(
                operator,
                format!("an input (N, C, spatial…) for the kernel {:?}", self.kernel),
                format!("{input:?}"),
            ));
        }
        let mut shape = Dims::from_slice(&input[..2]);
        shape.extend_from_slice(&window.output(operator, &input[2..], self.ceil)?);
        Ok(shape)
    }

    /// The planes of an input whose output shape has been inferred.
    ///
    /// # Errors
    /// As `output_shape`.
    pub(super) fn planes(
        &self,
        operator: &str,
        input: &[usize],
        output: &[usize],
    ) -> Result<Planes> {
        Ok(Planes {
            count: input[0] * input[1],
            window: self.window.window(operator, &self.kernel)?,
            sizes: extended(&input[2..]),
            output: extended(&output[2..]),
        })
    }
}

impl Planes {
    pub(super) fn input_size(&self) -> usize {
        self.sizes.iter().product()
    }

    pub(super) fn output_size(&self) -> usize {
        self.output.iter().product()
    }

    /// Runs `task` on ranges of planes, on the pool when there is enough work.
    pub(super) fn for_each(&self, task: impl Fn(std::ops::Range<usize>) + Sync) {
        let parts = self.parts();
        parallel::for_each(parts, |part| {
            task(self.count * part / parts..self.count * (part + 1) / parts);
        });
    }

    /// As [`Self::for_each`] for a fallible task.
    ///
    /// # Errors
    /// What a part reports.
    pub(super) fn try_for_each(
        &self,
        task: impl Fn(std::ops::Range<usize>) -> Result<()> + Sync,
    ) -> Result<()> {
        let parts = self.parts();
        product::try_for_each(parts, |part| {
            task(self.count * part / parts..self.count * (part + 1) / parts)
        })
    }

    fn parts(&self) -> usize {
        let work = self.count * (self.output_size() * self.window.taps() + self.input_size());
        parts_of(work.saturating_mul(4)).min(self.count.max(1))
    }

    /// The input position of tap `k` of output `p` on an axis, if it is inside.
    #[inline(always)]
    pub(super) fn position(&self, axis: usize, p: usize, k: usize) -> Option<usize> {
        let w = &self.window;
        let at = (p * w.strides[axis] + k * w.dilations[axis]).wrapping_sub(w.begins[axis]);
        (at < self.sizes[axis]).then_some(at)
    }

    /// The outputs on the last axis whose tap `k` is inside: `first..end`.
    #[inline(always)]
    pub(super) fn columns(&self, k: usize) -> (usize, usize) {
        let w = &self.window;
        let (offset, stride) = (k * w.dilations[2], w.strides[2]);
        let first = w.begins[2].saturating_sub(offset).div_ceil(stride);
        let end = (self.sizes[2] + w.begins[2]).saturating_sub(offset).div_ceil(stride);
        let end = end.min(self.output[2]);
        (first.min(end), end)
    }

    /// Positions of a window inside the padded input, and inside the input itself.
    pub(super) fn window_counts(&self, axis: usize, p: usize) -> (usize, usize) {
        let w = &self.window;
        let padded = self.sizes[axis] + w.begins[axis] + w.ends[axis];
        let start = p * w.strides[axis];
        let (mut all, mut inside) = (0, 0);
        for k in 0..w.kernel[axis] {
            let at = start + k * w.dilations[axis];
            all += usize::from(at < padded);
            inside += usize::from(at >= w.begins[axis] && at - w.begins[axis] < self.sizes[axis]);
        }
        (all, inside)
    }
}
