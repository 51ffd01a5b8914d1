//! GroupNormalization with its gradient, and InstanceNormalization (a group for each channel): over
//! the channels of a group and the spatial axes, with a scale and a bias for each channel. The
//! arithmetic is that of `norm_rows`.

use crate::array::{Array, Dims, Meta};
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
    Coefficients, GradientInput, GradientRow, GradientSums, NormaliseChannel, Statistics,
};
use crate::parallel;
use crate::simd::{LANES, dispatch};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry {
        name: "GroupNormalization",
        build: |a| {
            let groups = Some(groups("GroupNormalization", a.int_required("num_groups")?)?);
            let epsilon = a.float("epsilon", 1e-5)?;
            Ok(Arc::new(Forward { name: "GroupNormalization", groups, epsilon }))
        },
    },
    Entry {
        name: "InstanceNormalization",
        build: |a| {
            let epsilon = a.float("epsilon", 1e-5)?;
            Ok(Arc::new(Forward { name: "InstanceNormalization", groups: None, epsilon }))
        },
    },
    Entry {
        name: "GroupNormGrad",
        build: |a| {
            Ok(Arc::new(Gradient { groups: groups(GRADIENT, a.int_required("num_groups")?)? }))
        },
    },
];

const GRADIENT: &str = "GroupNormGrad";

fn groups(name: &str, value: i64) -> Result<usize> {
    usize::try_from(value)
        .ok()
        .filter(|&g| g > 0)
        .ok_or_else(|| Error::attribute(name, "num_groups of at least 1", value.to_string()))
}

fn check(name: &str, inputs: &Inputs<'_>, groups: usize, per_channel: &[usize]) -> Result<()> {
    let x = inputs.get(0);
    check_float(name, x.dtype)?;
    let channels = x.shape.get(1).copied().unwrap_or(0);
    if x.rank() < 2 || groups == 0 || channels % groups != 0 {
        return Err(Error::shape(
            name,
            format!("an input (N, C, …) with C a multiple of {groups}"),
            format!("{:?}", x.shape),
        ));
    }
    for &i in per_channel {
        if inputs.get(i).shape[..] != [channels] {
            let got = format!("{:?}", inputs.get(i).shape);
            return Err(Error::shape(name, format!("input {i} of shape [{channels}]"), got));
        }
    }
    Ok(())
}

/// (x, scale, bias) -> (y, mean, inv_std), the statistics of shape (N, groups); `groups` is `None`
/// for InstanceNormalization, which gives y alone.
struct Forward {
    name: &'static str,
    groups: Option<usize>,
    epsilon: f64,
}

impl Kernel for Forward {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name, inputs, 3, 3)?;
        let x = inputs.get(0);
        check(self.name, &inputs, self.groups.unwrap_or(1), &[1, 2])?;
        inputs.same_dtype(&[0, 1, 2])?;
        let Some(groups) = self.groups else { return Ok(smallvec![x.clone()]) };
        let shape = Dims::from_slice(&[x.shape[0], groups]);
        let statistic = Meta { dtype: computed(x.dtype), shape };
        Ok(smallvec![x.clone(), statistic.clone(), statistic])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| {
            let i: Vec<Cow<'_, Array>> =
                i.iter().map(|a| a.to_contiguous()).collect::<Result<_>>()?;
            match i[0].dtype() {
                DType::F64 => self.compute::<f64>(&i, out),
                _ => self.compute::<f32>(&i, out),
            }
            Ok(())
        })
    }

    fn single_output(&self) -> bool {
        self.groups.is_none()
    }
}

/// Sizes of a grouped (N, C, …) array.
#[derive(Clone, Copy)]
struct Layout {
    channels: usize,
    groups: usize,
    plane: usize,
    rows: usize,
}

impl Layout {
    fn new(x: &Array, groups: Option<usize>) -> Self {
        let channels = x.shape()[1];
        let groups = groups.unwrap_or(channels);
        let plane = x.shape()[2..].iter().product();
        Self { channels, groups, plane, rows: x.shape()[0] * groups }
    }

    /// Channels of a group.
    fn width(self) -> usize {
        self.channels / self.groups.max(1)
    }

    fn row(self) -> usize {
        self.width() * self.plane
    }

    /// The first channel of a row.
    fn first(self, row: usize) -> usize {
        row % self.groups * self.width()
    }
}

impl Forward {
    fn compute<T: Lane + Store>(&self, inputs: &[Cow<'_, Array>], out: &[Array]) {
        let x = inputs[0].as_slice::<T>();
        let (scale, bias) = (inputs[1].as_slice::<T>(), inputs[2].as_slice::<T>());
        let layout = Layout::new(&inputs[0], self.groups);
        let n = layout.row();
        let y = Shared::new(out[0].as_mut_ptr::<T>());
        let epsilon = self.epsilon;
        parallel::for_ranges(layout.rows, (CHEAP / n.max(1)).max(1), |range| {
            for row in range {
                let all = &x[row * n..(row + 1) * n];
                let (mean, r) = dispatch(Statistics { x: all, centred: true, epsilon });
                if self.groups.is_some() {
                    // SAFETY: each row is stored by one part.
                    unsafe {
                        mean.store(&out[1], row);
                        r.store(&out[2], row);
                    }
                }
                for k in 0..layout.width() {
                    let c = layout.first(row) + k;
                    let at = row * n + k * layout.plane;
                    dispatch(NormaliseChannel {
                        x: &x[at..at + layout.plane],
                        // SAFETY: each row is written by one part.
                        y: unsafe { std::slice::from_raw_parts_mut(y.get().add(at), layout.plane) },
                        mean: T::from_f64(mean),
                        r: T::from_f64(r),
                        scale: scale[c],
                        bias: bias[c],
                    });
                }
            }
        });
    }
}

/// (x, scale, mean, inv_std, g) -> (dx, dscale, db).
struct Gradient {
    groups: usize,
}

impl Kernel for Gradient {
    fn name(&self) -> &'static str {
        GRADIENT
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(GRADIENT, inputs, 5, 5)?;
        check(GRADIENT, &inputs, self.groups, &[1])?;
        inputs.same_dtype(&[0, 1, 4])?;
        let (x, scale, g) = (inputs.get(0), inputs.get(1), inputs.get(4));
        if g.shape != x.shape {
            let got = format!("{:?} and {:?}", x.shape, g.shape);
            return Err(Error::shape(GRADIENT, "x and g of one shape", got));
        }
        for i in [2, 3] {
            let meta = inputs.get(i);
            if meta.shape[..] != [x.shape[0], self.groups] || meta.dtype != computed(x.dtype) {
                return Err(Error::shape(
                    GRADIENT,
                    format!(
                        "input {i} as {} {:?}",
                        computed(x.dtype).name(),
                        [x.shape[0], self.groups]
                    ),
                    format!("{} {:?}", meta.dtype.name(), meta.shape),
                ));
            }
        }
        Ok(smallvec![x.clone(), scale.clone(), scale.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let arrays: Vec<&Array> = inputs.iter().copied().flatten().collect();
        in_full_precision(&arrays, outputs, |i, out| {
            let i: Vec<Cow<'_, Array>> =
                i.iter().map(|a| a.to_contiguous()).collect::<Result<_>>()?;
            match i[0].dtype() {
                DType::F64 => self.compute::<f64>(&i, out),
                _ => self.compute::<f32>(&i, out),
            }
            Ok(())
        })
    }

    fn single_output(&self) -> bool {
        false
    }
}

impl Gradient {
    fn compute<T: Lane + Store>(&self, inputs: &[Cow<'_, Array>], out: &[Array]) {
        let [x, scale, mean, inverse, g] = [0, 1, 2, 3, 4].map(|k| inputs[k].as_slice::<T>());
        let layout = Layout::new(&inputs[0], Some(self.groups));
        let (n, plane) = (layout.row(), layout.plane);
        let part = |row: usize, k: usize, scale: T| {
            let at = row * n + k * plane;
            let (x, g) = (&x[at..at + plane], &g[at..at + plane]);
            GradientRow { x, g, mean: mean[row], r: inverse[row], scale: Coefficients::One(scale) }
        };
        let dx = Shared::new(out[0].as_mut_ptr::<T>());
        parallel::for_ranges(layout.rows, (CHEAP / n.max(1)).max(1), |range| {
            for row in range {
                let mut sums = [[0.0; LANES]; 2];
                for k in 0..layout.width() {
                    let part = part(row, k, scale[layout.first(row) + k]);
                    let phase = k * plane % LANES;
                    dispatch(GradientSums { row: part, phase, sums: &mut sums });
                }
                let k1 = T::from_f64(tree(sums[0]) / n as f64);
                let k2 = T::from_f64(tree(sums[1]) / n as f64);
                for k in 0..layout.width() {
                    let at = row * n + k * plane;
                    // SAFETY: each row is written by one part.
                    let dx = unsafe { std::slice::from_raw_parts_mut(dx.get().add(at), plane) };
                    let row = part(row, k, scale[layout.first(row) + k]);
                    dispatch(GradientInput { row, k1, k2, dx });
                }
            }
        });
        let samples = inputs[0].shape()[0];
        let grain = (CHEAP / (samples * plane).max(1)).max(1);
        parallel::for_ranges(layout.channels, grain, |range| {
            for c in range {
                let mut sums = [[0.0; LANES]; 2];
                let width = layout.width();
                for sample in 0..samples {
                    let row = sample * layout.groups + c / width;
                    let phase = sample * plane % LANES;
                    let row = part(row, c % width, T::ONE);
                    dispatch(GradientSums { row, phase, sums: &mut sums });
                }
                // SAFETY: each channel is stored by one part.
                unsafe {
                    tree(sums[1]).store(&out[1], c);
                    tree(sums[0]).store(&out[2], c);
                }
            }
        });
    }
}
