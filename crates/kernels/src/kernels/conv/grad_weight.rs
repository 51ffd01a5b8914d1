//! ConvGradWeight: the gradient of a convolution with respect to its weights.

use super::by_inputs;
use super::few;
use super::geometry::{Window, WindowAttributes, extended, forward_class};
use super::outer::Job;
use super::source::{Form, Layout};
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::real::Real;
use crate::simd::{Isa, isa};
use smallvec::smallvec;
use std::sync::Arc;

const NAME: &str = "ConvGradWeight";

/// `dw[o, c, k] = Σ g[n, o, p] x[n, c, p * stride + k * dilation - pad]`: one chain from +0.0 over
/// (n, output axes) ascending; positions outside x count as +0.0.
pub(super) struct GradWeight {
    weight_shape: Vec<usize>,
    attributes: WindowAttributes,
    group: usize,
}

/// Prepares ConvGradWeight.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let group = attributes.int("group", 1)?;
    let Some(group) = usize::try_from(group).ok().filter(|&g| g > 0) else {
        return Err(Error::attribute(NAME, "group of at least 1", group.to_string()));
    };
    Ok(Arc::new(GradWeight {
        weight_shape: attributes.sizes_required("weight_shape")?,
        attributes: WindowAttributes::read(attributes)?,
        group,
    }))
}

impl GradWeight {
    #[cfg(test)]
    pub(super) fn of(weight_shape: Vec<usize>, attributes: WindowAttributes, group: usize) -> Self {
        Self { weight_shape, attributes, group }
    }

    fn window(&self) -> Result<Window> {
        if self.weight_shape.len() < 3 {
            let got = format!("{:?}", self.weight_shape);
            return Err(Error::attribute(NAME, "a weight_shape of at least 3 axes", got));
        }
        self.attributes.window(NAME, &self.weight_shape[2..])
    }

    pub(super) fn compute<E: Real>(
        &self,
        isa: Isa,
        g: &Array,
        x: &Array,
        out: &Array,
    ) -> Result<()> {
        let window = self.window()?;
        let (g, x) = (g.to_contiguous()?, x.to_contiguous()?);
        // SAFETY: the output of the running kernel.
        unsafe { out.as_mut_slice::<E>() }.fill(E::default());
        if out.size() == 0 || g.size() == 0 {
            return Ok(());
        }
        let output = extended(&g.shape()[2..]);
        let class = forward_class(&window, output);
        let sizes = extended(&x.shape()[2..]);
        let channels = self.weight_shape[1];
        let classes = std::slice::from_ref(&class);
        let form = Form::NEIGHBOURS;
        let layout = Layout::new(NAME, classes, sizes, window.strides, channels, form)?;
        let m = self.weight_shape[0] / self.group;
        let job = Job {
            layout: &layout,
            class: &class,
            images: g.shape()[0],
            groups: self.group,
            m,
            channels,
            taps: window.taps(),
            output,
            panels: RowPanels::new::<E>(isa, m),
            g: g.as_ptr::<E>(),
            x: x.as_ptr(),
            dw: out.as_mut_ptr(),
        };
        if by_inputs::fits(&job) && !few::fits(&job) {
            return by_inputs::run(&job, isa, sizes, window.strides);
        }
        job.run(isa)
    }
}

impl Kernel for GradWeight {
    fn name(&self) -> &'static str {
        NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(NAME, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        if !dtype.is_float() {
            return Err(Error::dtype(NAME, "floating-point inputs", dtype.name()));
        }
        let (g, x, w) = (&inputs.get(0).shape, &inputs.get(1).shape, &self.weight_shape);
        let window = self.window()?;
        let fits = g.len() == w.len()
            && x.len() == w.len()
            && g[0] == x[0]
            && g[1] == w[0]
            && w[0] % self.group == 0
            && x[1] == w[1] * self.group
            && window.output(NAME, &x[2..], false)?[..] == g[2..];
        if !fits {
            return Err(Error::shape(
                NAME,
                format!("the output gradient and input of a convolution with weights {w:?}"),
                format!("{:?} and {:?}", &g[..], &x[..]),
            ));
        }
        Ok(smallvec![Meta { dtype, shape: Dims::from_slice(w) }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(g), Some(x)) = (inputs[0], inputs[1]) else { return Ok(()) };
        match g.dtype() {
            DType::F32 => self.compute::<f32>(isa(), g, x, &outputs[0]),
            DType::F64 => self.compute::<f64>(isa(), g, x, &outputs[0]),
            dtype if is_half(dtype) => {
                through_f32(NAME, inputs, &outputs[0], |i, o| self.run(i, o))
            }
            _ => Ok(()),
        }
    }
}
