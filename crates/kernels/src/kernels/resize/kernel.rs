//! The Resize operator.

use super::coordinates::{Axis, Mode, Nearest, Options, Taps, Transformation};
use super::pass::resample;
use crate::array::{Array, Dims, Meta, element_count, normalize_axis};
use crate::attributes::{Attributes, Number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, narrow, widened};
use crate::kernels::gemm::real::Real;
use crate::kernels::number::{Number as Arithmetic, for_number};
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "Resize", build: Resize::build }];

const OP: &str = "Resize";

/// The input resampled to `sizes`, or by `scales` (`floor(extent * scale)`), on `axes` (all by
/// default). Coordinates (in f32 where scales are given, else in f64) and weights (in f64) follow
/// ONNX's formulas; weights are rounded once to the dtype; axes are resampled in ascending order, each by one chain of fused multiply-adds over its
/// taps. Nearest takes every dtype and moves elements only. Halves are computed in f32 and rounded
/// once at the end; integers in f64, and cut off towards zero. With `antialias` linear and cubic
/// filters widen when they shrink.
struct Resize {
    options: Options,
    axes: Option<Vec<i64>>,
    sizes: Option<Vec<usize>>,
    scales: Option<Vec<f64>>,
    roi: Option<Vec<f64>>,
    extrapolation: f64,
}

impl Resize {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const TRANSFORMATIONS: [(&str, Transformation); 6] = [
            ("half_pixel", Transformation::HalfPixel),
            ("half_pixel_symmetric", Transformation::HalfPixelSymmetric),
            ("pytorch_half_pixel", Transformation::PytorchHalfPixel),
            ("align_corners", Transformation::AlignCorners),
            ("asymmetric", Transformation::Asymmetric),
            ("tf_crop_and_resize", Transformation::CropAndResize),
        ];
        let rules =
            [Nearest::RoundPreferFloor, Nearest::RoundPreferCeil, Nearest::Floor, Nearest::Ceil];
        let rule = rules[attributes.choice(
            "nearest_mode",
            &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
            0,
        )?];
        let modes = [Mode::Nearest(rule), Mode::Linear, Mode::Cubic];
        let mode = modes[attributes.choice("mode", &["nearest", "linear", "cubic"], 0)?];
        let names = TRANSFORMATIONS.map(|(name, _)| name);
        let chosen = attributes.choice("coordinate_transformation_mode", &names, 0)?;
        let options = Options {
            mode,
            transformation: TRANSFORMATIONS[chosen].1,
            cubic: attributes.float("cubic_coeff_a", -0.75)?,
            exclude_outside: attributes.flag("exclude_outside", false)?,
            antialias: attributes.flag("antialias", false)?,
        };
        let resize = Self {
            options,
            axes: attributes.ints_opt("axes")?,
            sizes: attributes.sizes_opt("sizes")?,
            scales: attributes.floats_opt("scales")?,
            roi: attributes.floats_opt("roi")?,
            extrapolation: attributes.float("extrapolation_value", 0.0)?,
        };
        if resize.sizes.is_none() && resize.scales.is_none() {
            return Err(Error::attribute(OP, "sizes or scales", "neither"));
        }
        if let Some(scales) = &resize.scales
            && scales.iter().any(|s| !s.is_finite() || *s <= 0.0)
        {
            let got = format!("{scales:?}");
            return Err(Error::attribute(OP, "finite scales above 0", got));
        }
        if options.transformation == Transformation::CropAndResize && resize.roi.is_none() {
            return Err(Error::attribute(OP, "a roi for tf_crop_and_resize", "none"));
        }
        Ok(Arc::new(resize))
    }

    /// The resampled axes with their numbers, in ascending order.
    fn plan(&self, shape: &[usize]) -> Result<Vec<(usize, Axis)>> {
        let every: Vec<i64> = (0..shape.len() as i64).collect();
        let axes = self.axes.as_ref().unwrap_or(&every);
        let n = axes.len();
        let lists = [
            self.sizes.as_ref().map(Vec::len),
            self.scales.as_ref().map(Vec::len),
            self.roi.as_ref().map(|r| r.len() / 2),
        ];
        if lists.iter().flatten().any(|&l| l != n) {
            return Err(Error::attribute(
                OP,
                format!("one size or scale (and two roi entries) for each of {n} axes"),
                format!("{:?}, {:?}, {:?}", self.sizes, self.scales, self.roi),
            ));
        }
        let mut plan = Vec::new();
        for (i, &axis) in axes.iter().enumerate() {
            let axis = normalize_axis(OP, axis, shape.len())?;
            if plan.iter().any(|&(other, _)| other == axis) {
                return Err(Error::attribute(OP, "each axis once", format!("{axes:?}")));
            }
            let scale = self.scales.as_ref().map(|s| s[i]);
            let input = shape[axis];
            let output = match (&self.sizes, scale) {
                (Some(sizes), _) => sizes[i],
                (None, Some(scale)) => (input as f32 * scale as f32).floor() as usize,
                (None, None) => input,
            };
            if input == 0 && output > 0 {
                return Err(Error::shape(
                    OP,
                    format!("elements on axis {axis} to resample to {output}"),
                    format!("{shape:?}"),
                ));
            }
            let roi = self.roi.as_ref().map_or((0.0, 1.0), |r| (r[i], r[i + n]));
            plan.push((axis, Axis { input, output, scale, roi }));
        }
        plan.sort_by_key(|&(axis, _)| axis);
        Ok(plan)
    }

    /// Whether an axis changes nothing.
    fn is_identity(&self, axis: &Axis) -> bool {
        axis.input == axis.output
            && axis.scale.is_none_or(|s| s == 1.0)
            && self.options.transformation != Transformation::CropAndResize
    }

    /// Axis after axis, each into a new array, the last into `out`.
    fn passes(
        &self,
        x: &Array,
        out: &Array,
        pass: impl Fn(&Array, &Array, &Taps, [usize; 3]),
    ) -> Result<()> {
        let plan = self.plan(x.shape())?;
        let active: Vec<_> = plan.iter().filter(|(_, axis)| !self.is_identity(axis)).collect();
        if active.is_empty() {
            crate::kernels::movement::copy_into(x, out);
            return Ok(());
        }
        let mut current = x.clone();
        // Where no number is computed the order is free, and later axes first move less.
        let nearest = matches!(self.options.mode, Mode::Nearest(_));
        let mut order: Vec<_> = active.iter().collect();
        if nearest {
            order.reverse();
        }
        for (number, (axis, sizes)) in order.into_iter().enumerate() {
            let mut shape = Dims::from_slice(current.shape());
            shape[*axis] = sizes.output;
            let next = if number + 1 == active.len() {
                out.clone()
            } else {
                Array::uninit(OP, current.dtype(), &shape)?
            };
            let outer = shape[..*axis].iter().product();
            let inner = shape[axis + 1..].iter().product();
            pass(&current, &next, &sizes.taps(&self.options), [outer, sizes.input, inner]);
            current = next;
        }
        Ok(())
    }

    fn weighted<E: Real>(&self, x: &Array, out: &Array) -> Result<()> {
        self.passes(x, out, |x, out, taps, [outer, input, inner]| {
            // SAFETY: contiguous arrays of these extents.
            unsafe { resample(x.as_ptr::<E>(), out.as_mut_ptr::<E>(), taps, outer, input, inner) };
        })?;
        self.extrapolate(x.shape(), out)
    }

    /// Nearest: rows are moved, whatever they hold.
    fn nearest(&self, x: &Array, out: &Array) -> Result<()> {
        self.passes(x, out, |x, out, taps, [_, input, inner]| {
            for_size!(x.dtype(), T => {
                // SAFETY: this pass's own target, contiguous.
                let to = unsafe { out.as_mut_slice::<T>() };
                let from = x.as_slice::<T>();
                let places = taps.index.len();
                if inner == 1 {
                    vectorized(Pick { from, to, index: &taps.index, input });
                    return;
                }
                for (row, target) in to.chunks_exact_mut(inner.max(1)).enumerate() {
                    let start = (row / places * input + taps.index[row % places]) * inner;
                    target.copy_from_slice(&from[start..start + inner]);
                }
            });
        })?;
        self.extrapolate(x.shape(), out)
    }

    /// Puts the extrapolation value where a coordinate lies outside the input.
    fn extrapolate(&self, shape: &[usize], out: &Array) -> Result<()> {
        if self.options.transformation != Transformation::CropAndResize {
            return Ok(());
        }
        let bits = Number::Float(self.extrapolation).bits(out.dtype());
        for (axis, sizes) in self.plan(shape)? {
            let inner: usize = out.shape()[axis + 1..].iter().product();
            let outside = sizes.taps(&self.options).outside;
            for_size!(out.dtype(), T => {
                // SAFETY: the kernel's own output, contiguous.
                let to = unsafe { out.as_mut_slice::<T>() };
                for (row, target) in to.chunks_exact_mut(inner.max(1)).enumerate() {
                    if outside[row % outside.len()] {
                        target.fill(bits as T);
                    }
                }
            });
        }
        Ok(())
    }

    fn through_f64(&self, x: &Array, out: &Array) -> Result<()> {
        let wide = Array::uninit(OP, DType::F64, x.shape())?;
        let result = Array::uninit(OP, DType::F64, out.shape())?;
        for_number!(x.dtype(), T => {
            // SAFETY: freshly allocated arrays and the kernel's own output.
            unsafe {
                for (y, x) in wide.as_mut_slice::<f64>().iter_mut().zip(x.as_slice::<T>()) {
                    *y = Arithmetic::to_f64(*x);
                }
                self.weighted::<f64>(&wide, &result)?;
                for (y, x) in out.as_mut_slice::<T>().iter_mut().zip(result.as_slice::<f64>()) {
                    *y = Arithmetic::from_f64(*x);
                }
            }
        });
        Ok(())
    }
}

/// Rows of picked elements.
struct Pick<'a, T> {
    from: &'a [T],
    to: &'a mut [T],
    index: &'a [usize],
    input: usize,
}

impl<T: Copy> PlainLoop for Pick<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        assert!(self.index.iter().all(|&i| i < self.input));
        let targets = self.to.chunks_exact_mut(self.index.len());
        for (from, to) in self.from.chunks_exact(self.input).zip(targets) {
            for (to, &i) in to.iter_mut().zip(self.index) {
                // SAFETY: just checked.
                *to = unsafe { *from.get_unchecked(i) };
            }
        }
    }
}

impl Kernel for Resize {
    fn name(&self) -> &'static str {
        OP
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(OP, inputs, 1, 1)?.get(0);
        if x.dtype == DType::Bool && !matches!(self.options.mode, Mode::Nearest(_)) {
            return Err(Error::dtype(OP, "numbers for linear and cubic", "bool"));
        }
        let mut shape = x.shape.clone();
        for (axis, sizes) in self.plan(&x.shape)? {
            shape[axis] = sizes.output;
        }
        element_count(OP, &shape, x.dtype)?;
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        let x = x.to_contiguous()?;
        match x.dtype() {
            _ if matches!(self.options.mode, Mode::Nearest(_)) => self.nearest(&x, out),
            DType::F32 => self.weighted::<f32>(&x, out),
            DType::F64 => self.weighted::<f64>(&x, out),
            dtype if is_half(dtype) => {
                let wide = widened(OP, &x)?;
                let result = Array::uninit(OP, DType::F32, out.shape())?;
                self.weighted::<f32>(&wide, &result)?;
                narrow(&result, out);
                Ok(())
            }
            _ => self.through_f64(&x, out),
        }
    }
}
