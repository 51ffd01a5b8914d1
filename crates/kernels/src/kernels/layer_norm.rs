//! LayerNormalization and RMSNormalization over the axes from `axis` on, and their gradients. The
//! arithmetic is that of `norm_rows`.

use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::blocks::computed;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::fold::Store;
use crate::kernels::function::check_float;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::lanes::{Lane, tree};
use crate::kernels::norm_rows::{
    Coefficients, GradientColumns, GradientInput, GradientRow, GradientSums, NormaliseRows,
};
use crate::parallel;
use crate::simd::{LANES, dispatch};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::Arc;

macro_rules! entry {
    ($name:expr, $kernel:ident, $centred:expr) => {
        Entry { name: $name, build: |a| Ok(Arc::new($kernel(Rows::new($name, $centred, a)?))) }
    };
}

pub(crate) const KERNELS: &[Entry] = &[
    entry!("LayerNormalization", Forward, true),
    entry!("RMSNormalization", Forward, false),
    Entry {
        name: "LayerNormGrad",
        build: |a| Ok(Arc::new(Gradient(Rows::grad("LayerNormGrad", true, a)?))),
    },
    Entry {
        name: "RMSNormGrad",
        build: |a| Ok(Arc::new(Gradient(Rows::grad("RMSNormGrad", false, a)?))),
    },
];

struct Rows {
    name: &'static str,
    /// Whether the mean is subtracted.
    centred: bool,
    axis: i64,
    epsilon: f64,
}

impl Rows {
    fn new(name: &'static str, centred: bool, a: &mut Attributes) -> Result<Self> {
        Ok(Self { name, centred, axis: a.int("axis", -1)?, epsilon: a.float("epsilon", 1e-5)? })
    }

    fn grad(name: &'static str, centred: bool, a: &mut Attributes) -> Result<Self> {
        Ok(Self { name, centred, axis: a.int("axis", -1)?, epsilon: 0.0 })
    }

    /// Checks the input and the coefficients; returns the axis.
    fn check(&self, inputs: &Inputs<'_>, coefficients: &[usize]) -> Result<usize> {
        let x = inputs.get(0);
        check_float(self.name, x.dtype)?;
        let axis = normalize_axis(self.name, self.axis, x.rank())?;
        for &i in coefficients {
            let Some(meta) = inputs.opt(i) else { continue };
            if meta.shape[..] != x.shape[axis..] {
                return Err(Error::shape(
                    self.name,
                    format!("input {i} of shape {:?}", &x.shape[axis..]),
                    format!("{:?}", meta.shape),
                ));
            }
        }
        Ok(axis)
    }

    fn statistic(x: &Meta, axis: usize) -> Meta {
        let shape: Dims =
            x.shape.iter().enumerate().map(|(i, &d)| if i < axis { d } else { 1 }).collect();
        Meta { dtype: computed(x.dtype), shape }
    }
}

fn contiguous<'a>(arrays: &'a [Cow<'_, Array>]) -> Result<Vec<Cow<'a, Array>>> {
    arrays.iter().map(|a| a.to_contiguous()).collect()
}

struct Forward(Rows);

impl Kernel for Forward {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let most = if self.0.centred { 3 } else { 2 };
        let inputs = Inputs::new(self.0.name, inputs, 2, most)?;
        let axis = self.0.check(&inputs, &[1, 2])?;
        inputs.same_dtype(&[0, 1, 2])?;
        let x = inputs.get(0);
        let statistic = Rows::statistic(x, axis);
        Ok(if self.0.centred {
            smallvec![x.clone(), statistic.clone(), statistic]
        } else {
            smallvec![x.clone(), statistic]
        })
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| {
            let i = contiguous(i)?;
            match i[0].dtype() {
                DType::F64 => forward::<f64>(&self.0, &i, out),
                _ => forward::<f32>(&self.0, &i, out),
            }
            Ok(())
        })
    }

    fn single_output(&self) -> bool {
        false
    }
}

/// # Safety
/// The range lies inside the array and nobody else uses it.
unsafe fn slice<'a, T>(array: Shared<*mut T>, at: usize, n: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(array.get().add(at), n) }
}

fn forward<T: Lane + Store>(rows: &Rows, inputs: &[Cow<'_, Array>], out: &[Array]) {
    let x = inputs[0].as_slice::<T>();
    let scale = inputs[1].as_slice::<T>();
    let bias = inputs.get(2).map(|b| b.as_slice::<T>());
    let n = scale.len();
    if x.is_empty() {
        for statistics in &out[1..] {
            // SAFETY: a fresh output of this dtype; the mean of no elements is 0/0.
            unsafe { slice(Shared::new(statistics.as_mut_ptr::<T>()), 0, statistics.size()) }
                .fill(T::from_f64(f64::NAN));
        }
        return;
    }
    let y = Shared::new(out[0].as_mut_ptr::<T>());
    let (centred, epsilon) = (rows.centred, rows.epsilon);
    let means = Shared::new(out[1].as_mut_ptr::<T>());
    let inverses = Shared::new(out[out.len() - 1].as_mut_ptr::<T>());
    parallel::for_ranges(x.len() / n, (CHEAP / n).max(1), |range| {
        let (first, rows) = (range.start, range.len());
        // SAFETY: each row is written by one part; statistics have the dtype of the computation.
        unsafe {
            dispatch(NormaliseRows {
                x: &x[first * n..(first + rows) * n],
                y: slice(y, first * n, rows * n),
                means: centred.then(|| slice(means, first, rows)),
                inverses: slice(inverses, first, rows),
                scale,
                bias,
                epsilon,
            });
        }
    });
}

/// (x, scale, mean, inv_std, g) -> (dx, dscale, db); without mean and db for root mean square.
struct Gradient(Rows);

impl Kernel for Gradient {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let count = if self.0.centred { 5 } else { 4 };
        let inputs = Inputs::new(self.0.name, inputs, count, count)?;
        let axis = self.0.check(&inputs, &[1])?;
        inputs.same_dtype(&[0, 1, count - 1])?;
        let (x, scale, g) = (inputs.get(0), inputs.get(1), inputs.get(count - 1));
        if g.shape != x.shape {
            let got = format!("{:?} and {:?}", x.shape, g.shape);
            return Err(Error::shape(self.0.name, "x and g of one shape", got));
        }
        let statistic = Rows::statistic(x, axis);
        for i in 2..count - 1 {
            let meta = inputs.get(i);
            if meta.size() != statistic.size() || meta.dtype != statistic.dtype {
                return Err(Error::shape(
                    self.0.name,
                    format!("input {i} as {} {:?}", statistic.dtype.name(), statistic.shape),
                    format!("{} {:?}", meta.dtype.name(), meta.shape),
                ));
            }
        }
        Ok(if self.0.centred {
            smallvec![x.clone(), scale.clone(), scale.clone()]
        } else {
            smallvec![x.clone(), scale.clone()]
        })
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| {
            let i = contiguous(i)?;
            match i[0].dtype() {
                DType::F64 => gradient::<f64>(self.0.centred, &i, out),
                _ => gradient::<f32>(self.0.centred, &i, out),
            }
            Ok(())
        })
    }

    fn single_output(&self) -> bool {
        false
    }
}

fn gradient<T: Lane + Store>(centred: bool, inputs: &[Cow<'_, Array>], out: &[Array]) {
    let (x, scale) = (inputs[0].as_slice::<T>(), inputs[1].as_slice::<T>());
    let mean = if centred { Some(inputs[2].as_slice::<T>()) } else { None };
    let inverse = inputs[inputs.len() - 2].as_slice::<T>();
    let g = inputs[inputs.len() - 1].as_slice::<T>();
    let n = scale.len();
    let count = x.len().checked_div(n).unwrap_or(0);
    let part = |row: usize, first: usize, width: usize| GradientRow {
        x: &x[row * n + first..][..width],
        g: &g[row * n + first..][..width],
        mean: mean.map_or(T::ZERO, |m| m[row]),
        r: inverse[row],
        scale: Coefficients::Each(&scale[first..first + width]),
    };
    let dx = Shared::new(out[0].as_mut_ptr::<T>());
    parallel::for_ranges(count, (CHEAP / n.max(1)).max(1), |range| {
        for i in range {
            let row = part(i, 0, n);
            let mut sums = [[0.0; LANES]; 2];
            dispatch(GradientSums { row, phase: 0, sums: &mut sums });
            let k1 = if centred { T::from_f64(tree(sums[0]) / n as f64) } else { T::ZERO };
            let k2 = T::from_f64(tree(sums[1]) / n as f64);
            // SAFETY: each row is written by one part.
            dispatch(GradientInput { row, k1, k2, dx: unsafe { slice(dx, i * n, n) } });
        }
    });
    const TILE: usize = 128;
    let grain = (CHEAP / (TILE * count.max(1))).max(1);
    parallel::for_ranges(n.div_ceil(TILE), grain, |range| {
        let mut lanes = vec![[0.0; TILE]; 2 * LANES];
        for tile in range {
            let first = tile * TILE;
            let width = TILE.min(n - first);
            lanes.fill([0.0; TILE]);
            let (dscale, db) = lanes.split_at_mut(LANES);
            for row in 0..count {
                let l = row % LANES;
                let (dscale, db) = (&mut dscale[l][..width], &mut db[l][..width]);
                dispatch(GradientColumns { row: part(row, first, width), dscale, db });
            }
            for i in 0..width {
                // SAFETY: each column is written by one part.
                unsafe {
                    let column = |lanes: &[[f64; TILE]]| tree(std::array::from_fn(|l| lanes[l][i]));
                    column(dscale).store(&out[1], first + i);
                    if centred {
                        column(db).store(&out[2], first + i);
                    }
                }
            }
        }
    });
}
