//! AveragePool, LpPool and the gradient of AveragePool.

use super::planes::{Planes, PoolAttributes};
use super::windows::{self, Task};
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::gemm::matrix::Shared;
use crate::math::pow_f64;
use crate::simd::{PlainLoop, Simd, WithSimd, dispatch, vectorized};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// What is folded over a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// Sum, then one division by the number of positions.
    Mean { include_pad: bool },
    /// `(Σ |x|^p)^(1/p)`.
    Norm { p: u32 },
}

/// Prepares AveragePool.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let include_pad = attributes.flag("count_include_pad", false)?;
    let pool = PoolAttributes::read(attributes)?;
    Ok(Arc::new(FoldPool { pool, fold: Fold::Mean { include_pad } }))
}

/// Prepares LpPool.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_lp(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let p = attributes.int("p", 2)?;
    let Some(p) = u32::try_from(p).ok().filter(|&p| (1..=64).contains(&p)) else {
        return Err(Error::attribute("LpPool", "p from 1 to 64", p.to_string()));
    };
    Ok(Arc::new(FoldPool { pool: PoolAttributes::read(attributes)?, fold: Fold::Norm { p } }))
}

/// AveragePool: `acc = 0`, then `acc = acc + x` over the window's taps inside the input in window
/// order, then one division by their number; with `count_include_pad` by the number of window positions
/// inside the padded input.
///
/// LpPool: `|x|^p` by repeated products (p = 2: one fma), added in window order, then the root: none for
/// p = 1, the square root for p = 2, square roots again for powers of two, else the power 1/p in f64.
struct FoldPool {
    pool: PoolAttributes,
    fold: Fold,
}

/// f32 or f64 as pools use them.
pub(super) trait Float: crate::kernels::gemm::real::Real {
    fn over(self, count: usize) -> Self;
    fn root(self, p: u32) -> Self;
}

macro_rules! float {
    ($($t:ty),*) => {
        $(impl Float for $t {
            #[inline(always)]
            fn over(self, count: usize) -> Self {
                self / count as Self
            }
            fn root(self, p: u32) -> Self {
                let mut x = self;
                let mut rest = p;
                while rest % 2 == 0 {
                    x = x.sqrt();
                    rest /= 2;
                }
                if rest == 1 { x } else { pow_f64(f64::from(x), 1.0 / f64::from(rest)) as Self }
            }
        })*
    };
}
float!(f32, f64);

struct Rows<'a, T> {
    planes: &'a Planes,
    range: std::ops::Range<usize>,
    fold: Fold,
    x: *const T,
    y: *mut T,
}

impl<T: Float> WithSimd for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let p = self.planes;
        let [od, oh, ow] = p.output;
        let [kd, kh, kw] = p.window.kernel;
        let (stride, input) = (p.window.strides[2], p.input_size());
        let counts = Counts::new(p, self.fold);
        for plane in self.range {
            for row in 0..od * oh {
                let (d, h) = (row / oh, row % oh);
                // SAFETY: rows of the planes of this part; tap positions are inside the plane.
                let (x, y) = unsafe {
                    let to = self.y.add((plane * od * oh + row) * ow);
                    (
                        std::slice::from_raw_parts(self.x.add(plane * input), input),
                        std::slice::from_raw_parts_mut(to, ow),
                    )
                };
                y.fill(T::default());
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
                        let x = &x[begin + offset..];
                        add_tap(self.fold, x, &mut y[first..end], stride);
                    }
                }
                finish(self.fold, y, &counts, d, h);
            }
        }
    }
}

#[inline(always)]
fn add_tap<T: Float>(fold: Fold, x: &[T], y: &mut [T], stride: usize) {
    match fold {
        Fold::Mean { .. } if stride == 1 => {
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = T::add(*y, x));
        }
        Fold::Mean { .. } => {
            y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, &x)| *y = T::add(*y, x));
        }
        Fold::Norm { p: 2 } => {
            y.iter_mut()
                .zip(x.iter().step_by(stride))
                .for_each(|(y, &x)| *y = T::fma_one(x, x, *y));
        }
        Fold::Norm { p } => {
            for (y, &x) in y.iter_mut().zip(x.iter().step_by(stride)) {
                let x = x.abs();
                let power = (1..p).fold(x, |power, _| power.mul(x));
                *y = T::add(*y, power);
            }
        }
    }
}

#[inline(always)]
fn finish<T: Float>(fold: Fold, y: &mut [T], counts: &Counts, d: usize, h: usize) {
    match fold {
        Fold::Mean { .. } => {
            let rows = counts.axes[0][d] * counts.axes[1][h];
            for (y, &columns) in y.iter_mut().zip(&counts.axes[2]) {
                *y = y.over(rows * columns);
            }
        }
        Fold::Norm { p: 1 } => {}
        Fold::Norm { p } => y.iter_mut().for_each(|y| *y = y.root(p)),
    }
}

/// How many positions a mean divides by, axis by axis.
struct Counts {
    axes: [SmallVec<[usize; 32]>; 3],
}

impl Counts {
    fn new(planes: &Planes, fold: Fold) -> Self {
        let include = fold == Fold::Mean { include_pad: true };
        let axes = std::array::from_fn(|axis| {
            (0..planes.output[axis])
                .map(|p| {
                    let (all, inside) = planes.window_counts(axis, p);
                    if include { all } else { inside }
                })
                .collect()
        });
        Self { axes }
    }
}

impl Counts {
    fn numbers(&self, axis: usize) -> Vec<f32> {
        self.axes[axis].iter().map(|&count| count as f32).collect()
    }
}

impl FoldPool {
    fn compute<T: Float>(&self, x: &Array, y: &Array) -> Result<()> {
        let planes = self.pool.planes(self.name(), x.shape(), y.shape())?;
        if y.size() == 0 {
            return Ok(());
        }
        let x = x.to_contiguous()?;
        let job = Shared::new((x.as_ptr::<T>(), y.as_mut_ptr::<T>()));
        let counts = Counts::new(&planes, self.fold);
        let job = Shared::new((job.get(), std::ptr::from_ref(&counts)));
        planes.try_for_each(|range| {
            let ((x, y), counts) = job.get();
            // SAFETY: the counts outlive the region.
            let counts = unsafe { &*counts };
            if T::DTYPE == DType::F32 && matches!(self.fold, Fold::Mean { .. }) {
                let [rows, columns] = [1, 2].map(|axis| counts.numbers(axis));
                let task = Task::Mean { rows: &rows, columns: &columns };
                let (x, y) = (x.cast(), y.cast());
                // SAFETY: the planes of f32 arrays.
                if unsafe { windows::run(self.name(), &planes, range.clone(), x, y, task)? } {
                    return Ok(());
                }
            }
            dispatch(Rows { planes: &planes, range, fold: self.fold, x, y });
            Ok(())
        })
    }
}

impl Kernel for FoldPool {
    fn name(&self) -> &'static str {
        if matches!(self.fold, Fold::Mean { .. }) { "AveragePool" } else { "LpPool" }
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 1, 1)?;
        let x = inputs.get(0);
        if !x.dtype.is_float() {
            return Err(Error::dtype(self.name(), "floating-point numbers", x.dtype.name()));
        }
        let shape = self.pool.output_shape(self.name(), &x.shape)?;
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

/// Prepares AveragePoolGrad.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_grad(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(AverageGrad {
        input_shape: attributes.sizes_required("input_shape")?,
        include_pad: attributes.flag("count_include_pad", false)?,
        pool: PoolAttributes::read(attributes)?,
    }))
}

/// `dx[i] = Σ g[p] / count[p]` from +0.0 over the outputs p ascending whose window holds i; each
/// quotient is rounded, then added.
struct AverageGrad {
    input_shape: Vec<usize>,
    include_pad: bool,
    pool: PoolAttributes,
}

impl AverageGrad {
    fn compute<T: Float>(&self, g: &Array, out: &Array) -> Result<()> {
        let planes = self.pool.planes("AveragePoolGrad", out.shape(), g.shape())?;
        let g = g.to_contiguous()?;
        let counts = Counts::new(&planes, Fold::Mean { include_pad: self.include_pad });
        let job = Shared::new((g.as_ptr::<T>(), out.as_mut_ptr::<T>()));
        planes.for_each(|range| {
            for plane in range {
                let (input, output) = (planes.input_size(), planes.output_size());
                let (g, dx) = job.get();
                // SAFETY: planes are disjoint parts of the output.
                let (g, dx) = unsafe {
                    (
                        std::slice::from_raw_parts(g.add(plane * output), output),
                        std::slice::from_raw_parts_mut(dx.add(plane * input), input),
                    )
                };
                dx.fill(T::default());
                vectorized(Spread { planes: &planes, counts: &counts, g, dx });
            }
        });
        Ok(())
    }
}

/// One plane of the gradient.
struct Spread<'a, T> {
    planes: &'a Planes,
    counts: &'a Counts,
    g: &'a [T],
    dx: &'a mut [T],
}

impl<T: Float> PlainLoop for Spread<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let p = self.planes;
        let [od, oh, ow] = p.output;
        let [kd, kh, kw] = p.window.kernel;
        let (stride, dilation, begin) =
            (p.window.strides[2], p.window.dilations[2], p.window.begins[2]);
        let mut shares: SmallVec<[T; 256]> = smallvec![T::default(); ow];
        for row in 0..od * oh {
            let (d, h) = (row / oh, row % oh);
            let rows = self.counts.axes[0][d] * self.counts.axes[1][h];
            let g = &self.g[row * ow..(row + 1) * ow];
            for ((share, g), columns) in shares.iter_mut().zip(g).zip(&self.counts.axes[2]) {
                *share = g.over(rows * columns);
            }
            for tap in 0..kd * kh {
                let at = p.position(0, d, tap / kh).zip(p.position(1, h, tap % kh));
                let Some((a, b)) = at else { continue };
                let to = &mut self.dx[(a * p.sizes[1] + b) * p.sizes[2]..][..p.sizes[2]];
                // An element meets its outputs in ascending order when taps descend.
                for k in (0..kw).rev() {
                    let (first, end) = p.columns(k);
                    if first == end {
                        continue;
                    }
                    let to = &mut to[first * stride + k * dilation - begin..];
                    let shares = &shares[first..end];
                    match stride {
                        1 => to.iter_mut().zip(shares).for_each(|(x, &s)| *x = T::add(*x, s)),
                        _ => {
                            let places = to.iter_mut().step_by(stride);
                            places.zip(shares).for_each(|(x, &s)| *x = T::add(*x, s));
                        }
                    }
                }
            }
        }
    }
}

impl Kernel for AverageGrad {
    fn name(&self) -> &'static str {
        "AveragePoolGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        const NAME: &str = "AveragePoolGrad";
        let inputs = Inputs::new(NAME, inputs, 1, 1)?;
        let g = inputs.get(0);
        if !g.dtype.is_float() {
            return Err(Error::dtype(NAME, "floating-point numbers", g.dtype.name()));
        }
        let pooled = self.pool.output_shape(NAME, &self.input_shape)?;
        if pooled != g.shape {
            return Err(Error::shape(
                NAME,
                format!("a gradient of shape {:?}", &pooled[..]),
                format!("{:?}", &g.shape[..]),
            ));
        }
        Ok(smallvec![Meta { dtype: g.dtype, shape: Dims::from_slice(&self.input_shape) }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(g) = inputs[0] else { return Ok(()) };
        match g.dtype() {
            DType::F32 => self.compute::<f32>(g, &outputs[0]),
            DType::F64 => self.compute::<f64>(g, &outputs[0]),
            dtype if is_half(dtype) => {
                through_f32("AveragePoolGrad", inputs, &outputs[0], |i, o| self.run(i, o))
            }
            _ => Ok(()),
        }
    }
}
