//! Pad and its gradient.

use super::copy_into;
use crate::array::{Array, Dims, Meta, StridedLoop, element_count, normalize_axis};
use crate::attributes::{Attributes, Number};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] =
    &[Entry { name: "Pad", build: Pad::build }, Entry { name: "PadGrad", build: PadGrad::build }];

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

impl Mode {
    /// The element of an axis of `n` that stands at `i`, which may lie outside `0..n`.
    fn source(self, i: i64, n: i64) -> i64 {
        match self {
            Self::Edge | Self::Constant => i.clamp(0, n - 1),
            Self::Wrap => i.rem_euclid(n),
            Self::Reflect if n == 1 => 0,
            Self::Reflect => {
                let at = i.rem_euclid(2 * (n - 1));
                if at < n { at } else { 2 * (n - 1) - at }
            }
        }
    }
}

/// What both kernels share: how many elements each axis gains or, where negative, loses.
struct Amounts {
    operator: &'static str,
    pads: Vec<i64>,
    axes: Option<Vec<i64>>,
    mode: Mode,
}

/// One axis: what is cut from the input first, then what is added.
#[derive(Clone, Copy, Default)]
struct Side {
    cut: (i64, i64),
    add: (i64, i64),
}

impl Amounts {
    fn read(attributes: &mut Attributes) -> Result<Self> {
        let modes = [Mode::Constant, Mode::Reflect, Mode::Edge, Mode::Wrap];
        Ok(Self {
            operator: attributes.operator(),
            pads: attributes.ints_required("pads")?,
            axes: attributes.ints_opt("axes")?,
            mode: modes[attributes.choice("mode", &["constant", "reflect", "edge", "wrap"], 0)?],
        })
    }

    /// The sides of each axis and the padded shape.
    fn apply(&self, shape: &[usize], dtype: DType) -> Result<(Vec<Side>, Dims)> {
        let every: Vec<i64> = (0..shape.len() as i64).collect();
        let axes = self.axes.as_ref().unwrap_or(&every);
        if self.pads.len() != 2 * axes.len() {
            return Err(Error::attribute(
                self.operator,
                format!("two pads for each of {} axes, all begins before all ends", axes.len()),
                format!("{:?}", self.pads),
            ));
        }
        let mut sides = vec![Side::default(); shape.len()];
        let mut out = Dims::from_slice(shape);
        let mut seen = vec![false; shape.len()];
        for (i, &axis) in axes.iter().enumerate() {
            let axis = normalize_axis(self.operator, axis, shape.len())?;
            if std::mem::replace(&mut seen[axis], true) {
                let got = format!("{axes:?}");
                return Err(Error::attribute(self.operator, "each axis once", got));
            }
            let (begin, end) = (self.pads[i], self.pads[i + axes.len()]);
            let n = shape[axis] as i128;
            let kept = n + i128::from(begin.min(0)) + i128::from(end.min(0));
            let total = n + i128::from(begin) + i128::from(end);
            if kept < 0 {
                return Err(Error::shape(
                    self.operator,
                    format!("to cut at most the {n} elements of axis {axis}"),
                    format!("pads {begin} and {end}"),
                ));
            }
            if kept == 0 && total > 0 && self.mode != Mode::Constant {
                return Err(Error::shape(
                    self.operator,
                    format!("at least one element on axis {axis} to repeat"),
                    format!("an extent of {n} and pads {begin} and {end}"),
                ));
            }
            sides[axis] =
                Side { cut: (-begin.min(0), -end.min(0)), add: (begin.max(0), end.max(0)) };
            out[axis] = usize::try_from(total).unwrap_or(usize::MAX);
        }
        element_count(self.operator, &out, dtype)?;
        Ok((sides, out))
    }
}

/// The part of the input that is kept.
fn cropped(x: &Array, sides: &[Side]) -> Result<Array> {
    let mut view = x.clone();
    for (axis, side) in sides.iter().enumerate() {
        let stop = x.shape()[axis] as i64 - side.cut.1;
        view = view.slice(axis as i64, side.cut.0, stop, 1)?;
    }
    Ok(view)
}

/// The part of the padded array that holds the input.
fn interior(out: &Array, sides: &[Side]) -> Result<Array> {
    let mut view = out.clone();
    for (axis, side) in sides.iter().enumerate() {
        let stop = out.shape()[axis] as i64 - side.add.1;
        view = view.slice(axis as i64, side.add.0, stop, 1)?;
    }
    Ok(view)
}

/// Elements added at both ends of the axes (all begins of `pads`, then all ends), or cut where a
/// pad is negative; cutting comes first. `mode` says what is added: `value`, or elements of the
/// input by repeating its border (edge), mirroring without it (reflect) or starting again (wrap).
struct Pad {
    amounts: Amounts,
    value: Number,
}

impl Pad {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let amounts = Amounts::read(attributes)?;
        let value = attributes.number_opt("value")?.unwrap_or(Number::Int(0));
        Ok(Arc::new(Self { amounts, value }))
    }
}

impl Kernel for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let (_, shape) = self.amounts.apply(&x.shape, x.dtype)?;
        Ok(smallvec![Meta { dtype: x.dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let out = &outputs[0];
        let (sides, _) = self.amounts.apply(x.shape(), x.dtype())?;
        if out.size() == 0 {
            return Ok(());
        }
        if self.amounts.mode == Mode::Constant {
            let bits = self.value.bits(out.dtype());
            for_size!(out.dtype(), T => {
                // SAFETY: the kernel's own output, contiguous.
                unsafe { out.as_mut_slice::<T>() }.fill(bits as T);
            });
            copy_into(&cropped(x, &sides)?, &interior(out, &sides)?);
            return Ok(());
        }
        copy_into(&cropped(x, &sides)?, &interior(out, &sides)?);
        // Axis by axis: slabs are copied where earlier axes are complete and later ones are not.
        for (axis, side) in sides.iter().enumerate() {
            let mut known = out.clone();
            for (later, s) in sides.iter().enumerate().skip(axis + 1) {
                let stop = out.shape()[later] as i64 - s.add.1;
                known = known.slice(later as i64, s.add.0, stop, 1)?;
            }
            let total = out.shape()[axis] as i64;
            let n = total - side.add.0 - side.add.1;
            let axis = axis as i64;
            for at in (0..side.add.0).chain(total - side.add.1..total) {
                let from = side.add.0 + self.amounts.mode.source(at - side.add.0, n);
                copy_into(
                    &known.slice(axis, from, from + 1, 1)?,
                    &known.slice(axis, at, at + 1, 1)?,
                );
            }
        }
        Ok(())
    }
}

/// The gradient of [`Pad`] for an input of `input_shape`: what was cut gets +0, what was repeated
/// gets the sum of its copies. The last axis is folded first; on each axis the element's own
/// gradient comes first, then its copies' by ascending position, one addition each.
struct PadGrad {
    amounts: Amounts,
    input_shape: Vec<usize>,
}

impl PadGrad {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let amounts = Amounts::read(attributes)?;
        // Accepted so that the attributes of Pad can be passed on; a constant has no gradient.
        attributes.number_opt("value")?;
        let input_shape = attributes.sizes_required("input_shape")?;
        Ok(Arc::new(Self { amounts, input_shape }))
    }
}

fn add_into<T: Element + std::ops::Add<Output = T>>(src: &Array, dst: &Array) {
    let walk = StridedLoop::new(dst.shape(), [src.strides(), dst.strides()]);
    let (p, q) = (src.as_ptr::<T>(), dst.as_mut_ptr::<T>());
    let [ss, ds] = walk.inner_strides;
    walk.for_each(0, walk.runs(), |[a, b]| {
        for i in 0..walk.inner as isize {
            // SAFETY: elements of arrays of one shape.
            unsafe {
                let q = q.offset(b + i * ds);
                *q = *q + *p.offset(a + i * ss);
            }
        }
    });
}

impl Kernel for PadGrad {
    fn name(&self) -> &'static str {
        "PadGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let g = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        if !matches!(g.dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(self.name(), "float32 or float64", g.dtype.name()));
        }
        let (_, padded) = self.amounts.apply(&self.input_shape, g.dtype)?;
        if padded != g.shape {
            return Err(Error::shape(
                self.name(),
                format!("a gradient of the padded shape {padded:?}"),
                format!("{:?}", g.shape),
            ));
        }
        Ok(smallvec![Meta::new(g.dtype, &self.input_shape)])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(g) = inputs[0] else { return Ok(()) };
        let out = &outputs[0];
        let (sides, _) = self.amounts.apply(&self.input_shape, g.dtype())?;
        let mut folded = g.clone();
        if self.amounts.mode == Mode::Constant {
            folded = interior(g, &sides)?;
        } else {
            for (axis, side) in sides.iter().enumerate().rev() {
                if side.add == (0, 0) {
                    continue;
                }
                let total = folded.shape()[axis] as i64;
                let n = total - side.add.0 - side.add.1;
                let axis = axis as i64;
                let sum = folded.slice(axis, side.add.0, side.add.0 + n, 1)?.copy()?;
                for at in (0..side.add.0).chain(total - side.add.1..total) {
                    let to = self.amounts.mode.source(at - side.add.0, n);
                    let from = folded.slice(axis, at, at + 1, 1)?;
                    let to = sum.slice(axis, to, to + 1, 1)?;
                    match out.dtype() {
                        DType::F32 => add_into::<f32>(&from, &to),
                        _ => add_into::<f64>(&from, &to),
                    }
                }
                folded = sum;
            }
        }
        if out.size() != folded.size() {
            for_size!(out.dtype(), T => {
                // SAFETY: the kernel's own output, contiguous.
                unsafe { out.as_mut_slice::<T>() }.fill(0);
            });
        }
        copy_into(&folded, &cropped(out, &sides)?);
        Ok(())
    }
}
