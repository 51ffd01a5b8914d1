//! Conv, ConvTranspose and ConvGradInput: one engine, three readings of the same geometry.

use super::engine::Convolution;
use super::geometry::{
    Class, Window, WindowAttributes, extended, forward_class, transposed_classes,
};
use super::weights::{Channels, WeightStrides, Weights};
use super::winograd::{self, Transformed, Winograd};
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::epilogue::{ChannelAxis, Epilogue, Tail};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::relu_attribute;
use crate::once::SetOnce;
use crate::simd::{Isa, isa};
use smallvec::smallvec;
use std::sync::Arc;

/// Which way the weights are applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Direction {
    /// `y[n, o, p] = b[o] + Σ x[n, c, p * stride + k * dilation - pad] w[o, c, k]`.
    Forward,
    /// `y[n, o, p] = b[o] + Σ x[n, c, (p + pad - k * dilation) / stride] w[c, o, k]` over the taps whose
    /// position is a whole number; those outside x count as +0.0.
    Transposed { output_padding: Vec<usize> },
    /// The transposed one without bias, its output extents given.
    GradInput { input_shape: Vec<usize> },
}

/// A convolution in one direction.
///
/// One chain for each output: from the bias (or +0.0), `fma(x, w, acc)` over (channel in group of the
/// input, kernel axes) ascending. With `fast`, a Conv of f32 by constant weights of 3 by 3 taps is
/// computed by F(4×4, 3×3) where that is faster: within rounding of the chain, but an input that is
/// not finite reaches all 16 outputs of its tiles.
#[derive(Clone)]
pub(super) struct Conv {
    direction: Direction,
    attributes: WindowAttributes,
    group: usize,
    relu: bool,
    /// Whether another order of operations is allowed.
    fast: bool,
    bound: Option<Arc<Bound>>,
}

/// Constant weights in the forms that calls have asked for.
struct Bound {
    weights: Weights,
    transformed: SetOnce<Transformed>,
}

fn group_of(attributes: &mut Attributes) -> Result<usize> {
    let group = attributes.int("group", 1)?;
    usize::try_from(group).ok().filter(|&g| g > 0).ok_or_else(|| {
        Error::attribute(attributes.operator(), "group of at least 1", group.to_string())
    })
}

/// Prepares Conv.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Conv {
        direction: Direction::Forward,
        attributes: WindowAttributes::read(attributes)?,
        group: group_of(attributes)?,
        relu: relu_attribute(attributes)?,
        fast: attributes.flag("fast", false)?,
        bound: None,
    }))
}

/// Prepares ConvTranspose.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_transpose(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let output_padding = attributes.sizes_opt("output_padding")?.unwrap_or_default();
    Ok(Arc::new(Conv {
        direction: Direction::Transposed { output_padding },
        attributes: WindowAttributes::read(attributes)?,
        group: group_of(attributes)?,
        relu: relu_attribute(attributes)?,
        fast: false,
        bound: None,
    }))
}

/// Prepares ConvGradInput.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_grad_input(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let input_shape = attributes.sizes_required("input_shape")?;
    Ok(Arc::new(Conv {
        direction: Direction::GradInput { input_shape },
        attributes: WindowAttributes::read(attributes)?,
        group: group_of(attributes)?,
        relu: false,
        fast: false,
        bound: None,
    }))
}

impl Conv {
    #[cfg(test)]
    pub(super) fn of(
        direction: Direction,
        attributes: WindowAttributes,
        group: usize,
        relu: bool,
    ) -> Self {
        Self { direction, attributes, group, relu, fast: false, bound: None }
    }

    #[cfg(test)]
    pub(super) fn made_fast(self, w: &Array) -> Self {
        let bound = Bound { weights: self.weights(w), transformed: SetOnce::new() };
        Self { fast: true, bound: Some(Arc::new(bound)), ..self }
    }

    fn operator(&self) -> &'static str {
        match self.direction {
            Direction::Forward => "Conv",
            Direction::Transposed { .. } => "ConvTranspose",
            Direction::GradInput { .. } => "ConvGradInput",
        }
    }

    /// Channels of one group of the input and of the output.
    fn channels(&self, w: &[usize]) -> (usize, usize) {
        match self.direction {
            Direction::Forward => (w[1], w[0] / self.group),
            _ => (w[0] / self.group, w[1]),
        }
    }

    fn output_shape(&self, x: &[usize], w: &[usize]) -> Result<Dims> {
        let op = self.operator();
        if x.len() < 3 || w.len() != x.len() {
            return Err(Error::shape(
                op,
                "an input (N, C, spatial…) and weights of as many axes",
                format!("{x:?} and {w:?}"),
            ));
        }
        let window = self.attributes.window(op, &w[2..])?;
        let (inputs, outputs) = self.channels(w);
        let split = w[0].is_multiple_of(self.group);
        if !split || x[1] != inputs * self.group {
            return Err(Error::shape(
                op,
                format!("{} groups of equally many channels in input and weights", self.group),
                format!("{x:?} and {w:?}"),
            ));
        }
        let spatial = match &self.direction {
            Direction::Forward => window.output(op, &x[2..], false)?,
            Direction::Transposed { output_padding } => {
                if !output_padding.is_empty() && output_padding.len() != window.axes {
                    return Err(Error::attribute(
                        op,
                        format!("output_padding for {} spatial axes", window.axes),
                        format!("{output_padding:?}"),
                    ));
                }
                window.transposed_output(op, &x[2..], output_padding)?
            }
            Direction::GradInput { input_shape } => {
                let wrong = || {
                    Error::attribute(
                        op,
                        format!(
                            "the input_shape of a convolution with weights {w:?} and output {x:?}"
                        ),
                        format!("{input_shape:?}"),
                    )
                };
                if input_shape.len() != x.len()
                    || input_shape[0] != x[0]
                    || input_shape[1] != outputs * self.group
                    || window.output(op, &input_shape[2..], false)?[..] != x[2..]
                {
                    return Err(wrong());
                }
                Dims::from_slice(&input_shape[2..])
            }
        };
        let mut shape: Dims = smallvec![x[0], outputs * self.group];
        shape.extend_from_slice(&spatial);
        Ok(shape)
    }

    fn classes(&self, window: &Window, destination: [usize; 3]) -> Vec<Class> {
        match self.direction {
            Direction::Forward => vec![forward_class(window, destination)],
            _ => transposed_classes(window, destination),
        }
    }

    fn weights(&self, w: &Array) -> Weights {
        let (shape, s) = (w.shape(), w.strides());
        let (sources, destinations) = self.channels(shape);
        let mut taps = [0; 3];
        taps[3 - (shape.len() - 2)..].copy_from_slice(&s[2..]);
        let (destination, source, rows) = match self.direction {
            Direction::Forward => (s[0], s[1], destinations),
            _ => (s[1], s[0], sources),
        };
        let strides = WeightStrides { group: rows as isize * s[0], destination, source, taps };
        Weights::new(w, strides, Channels { groups: self.group, destinations, sources })
    }

    pub(super) fn compute<E: Real>(
        &self,
        isa: Isa,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
        out: &Array,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let op = self.operator();
        let window = self.attributes.window(op, &w.shape()[2..])?;
        let destination_sizes = extended(&out.shape()[2..]);
        let classes = self.classes(&window, destination_sizes);
        let own;
        let weights = if let Some(bound) = &self.bound {
            &bound.weights
        } else {
            own = self.weights(w);
            &own
        };
        let (sources, destinations) = self.channels(w.shape());
        let x = x.to_contiguous()?;
        let bias = bias.map(Array::to_contiguous).transpose()?;
        let forward = self.direction == Direction::Forward;
        let convolution = Convolution {
            operator: op,
            images: x.shape()[0],
            groups: self.group,
            sources,
            destinations,
            source_step: if forward { window.strides } else { [1; 3] },
            source_sizes: extended(&x.shape()[2..]),
            destination_sizes,
            classes: &classes,
            weights,
            bias: bias.as_ref().map(|b| b.as_ptr::<E>()),
            relu: self.relu,
            epilogue,
            source: x.as_ptr(),
            destination: out.as_mut_ptr(),
        };
        // SAFETY: contiguous arrays of the extents that `infer` has checked.
        unsafe { convolution.run(isa) }
    }
}

impl Conv {
    /// As `compute`, by whichever method is faster where another order is allowed.
    pub(super) fn single(
        &self,
        isa: Isa,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
        out: &Array,
        epilogue: Option<Tail<'_, f32>>,
    ) -> Result<()> {
        let op = self.operator();
        let (xs, ws, ys) = (x.shape(), w.shape(), out.shape());
        let window = self.attributes.window(op, &ws[2..])?;
        let Some(bound) = self.bound.as_ref().filter(|_| {
            self.fast
                && self.group == 1
                && winograd::fits(&window)
                && winograd::pays(ws[1], ws[0], [ys[2], ys[3]])
        }) else {
            return self.compute::<f32>(isa, x, w, bias, out, epilogue);
        };
        let weights = match bound.transformed.get() {
            Some(weights) => weights,
            None => bound.transformed.set(Transformed::new(op, isa, w)?),
        };
        let x = x.to_contiguous()?;
        let bias = bias.map(Array::to_contiguous).transpose()?;
        let convolution = Winograd {
            operator: op,
            images: xs[0],
            weights,
            source: x.as_ptr(),
            destination: out.as_mut_ptr(),
            source_sizes: [xs[2], xs[3]],
            destination_sizes: [ys[2], ys[3]],
            begins: [window.begins[1], window.begins[2]],
            bias: bias.as_ref().map(|b| b.as_ptr::<f32>()),
            relu: self.relu,
            epilogue,
        };
        // SAFETY: contiguous arrays of the extents that `infer` has checked.
        unsafe { convolution.run(isa) }
    }
}

impl Kernel for Conv {
    fn name(&self) -> &'static str {
        self.operator()
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let op = self.operator();
        let most = if matches!(self.direction, Direction::GradInput { .. }) { 2 } else { 3 };
        let inputs = Inputs::new(op, inputs, 2, most)?;
        let dtype = inputs.same_dtype(&[0, 1, 2][..if inputs.opt(2).is_some() { 3 } else { 2 }])?;
        if !dtype.is_float() {
            return Err(Error::dtype(op, "floating-point inputs", dtype.name()));
        }
        let shape = self.output_shape(&inputs.get(0).shape, &inputs.get(1).shape)?;
        if let Some(bias) = inputs.opt(2)
            && bias.shape[..] != shape[1..2]
        {
            let expected = format!("a bias of shape [{}]", shape[1]);
            return Err(Error::shape(op, expected, format!("{:?}", &bias.shape[..])));
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), Some(w)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let bias = inputs.get(2).copied().flatten();
        match x.dtype() {
            DType::F32 => self.single(isa(), x, w, bias, &outputs[0], None),
            DType::F64 => self.compute::<f64>(isa(), x, w, bias, &outputs[0], None),
            dtype if is_half(dtype) => {
                through_f32(self.operator(), inputs, &outputs[0], |i, o| self.run(i, o))
            }
            _ => Ok(()),
        }
    }

    fn channel_axis(&self) -> Option<ChannelAxis> {
        (self.direction == Direction::Forward).then_some(ChannelAxis::Second)
    }

    fn run_with(
        &self,
        inputs: &[Option<&Array>],
        out: &Array,
        epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        let (x, w) = (inputs[0]?, inputs[1]?);
        let bias = inputs.get(2).copied().flatten();
        if self.relu {
            return None;
        }
        Some(self.single(isa(), x, w, bias, out, Some(epilogue.split().tail())))
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(Some(w)) = constants.get(1) else { return Ok(None) };
        let op = self.operator();
        if w.rank() < 3 || w.shape()[0] % self.group != 0 {
            let got = format!("{:?} in {} groups", w.shape(), self.group);
            return Err(Error::shape(op, "weights of at least 3 axes", got));
        }
        self.attributes.window(op, &w.shape()[2..])?;
        if !matches!(w.dtype(), DType::F32 | DType::F64) {
            return Ok(None);
        }
        // The classes' taps, and so the packed weights, do not depend on the extents of inputs.
        let bound = Bound { weights: self.weights(w), transformed: SetOnce::new() };
        Ok(Some(Arc::new(Self { bound: Some(Arc::new(bound)), ..self.clone() })))
    }
}
