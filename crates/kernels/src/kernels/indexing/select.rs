//! NonZero, Compress and Unique: the output shapes depend on the values.

use super::order::{keys, zero_key};
use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas, Outputs};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "NonZero", build: |_| Ok(Arc::new(NonZero)) },
    Entry { name: "Compress", build: Compress::build },
    Entry { name: "Unique", build: Unique::build },
];

fn unknown(operator: &str) -> Error {
    let expected = "to be called on arrays, since its output shapes depend on their values";
    Error::unsupported(operator, expected, "a question for the shapes beforehand")
}

/// The inputs' types, checked as every kernel's are.
fn checked<'a>(
    operator: &'static str,
    inputs: &[Option<&'a Array>],
    count: usize,
) -> Result<Vec<&'a Array>> {
    let metas: Vec<Option<Meta>> = inputs.iter().map(|a| a.map(Array::meta)).collect();
    let refs: Vec<Option<&Meta>> = metas.iter().map(Option::as_ref).collect();
    Inputs::new(operator, &refs, count, count)?;
    Ok(inputs.iter().copied().flatten().collect())
}

/// The coordinates of the elements that are not 0 (NaN is not), one column for each in row-major
/// order: int64 of (rank, count); a scalar counts as one axis.
struct NonZero;

impl Kernel for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    fn infer(&self, _inputs: &[Option<&Meta>]) -> Result<Metas> {
        Err(unknown(self.name()))
    }

    fn run(&self, _inputs: &[Option<&Array>], _outputs: &[Array]) -> Result<()> {
        Err(unknown(self.name()))
    }

    fn run_dynamic(&self, inputs: &[Option<&Array>]) -> Option<Result<Outputs>> {
        Some(self.compute(inputs))
    }
}

impl NonZero {
    fn compute(&self, inputs: &[Option<&Array>]) -> Result<Outputs> {
        let x = checked(self.name(), inputs, 1)?[0];
        let zero = zero_key(x.dtype());
        let places: Vec<usize> = keys(x)
            .into_iter()
            .enumerate()
            .filter_map(|(i, key)| (key != zero).then_some(i))
            .collect();
        let shape = if x.rank() == 0 { &[1][..] } else { x.shape() };
        let out = Array::uninit(self.name(), DType::I64, &[shape.len(), places.len()])?;
        // SAFETY: freshly allocated.
        let to = unsafe { out.as_mut_slice::<i64>() };
        let strides = crate::array::contiguous_strides(shape);
        for axis in 0..shape.len() {
            let row = &mut to[axis * places.len()..(axis + 1) * places.len()];
            for (t, &place) in row.iter_mut().zip(&places) {
                *t = (place / strides[axis] as usize % shape[axis]) as i64;
            }
        }
        Ok(smallvec![out])
    }
}

/// The slices of `x` along `axis` (without it: the elements, row-major) where the 1-D condition
/// holds; the condition may be shorter than the axis.
struct Compress {
    axis: Option<i64>,
}

impl Compress {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { axis: attributes.int_opt("axis")? }))
    }

    fn compute(&self, inputs: &[Option<&Array>]) -> Result<Outputs> {
        let given = checked(self.name(), inputs, 2)?;
        let (x, condition) = (given[0], given[1]);
        if condition.dtype() != DType::Bool || condition.rank() != 1 {
            let got = format!("{} {:?}", condition.dtype().name(), condition.shape());
            return Err(Error::dtype(self.name(), "a condition of bool with one axis", got));
        }
        let x = x.to_contiguous()?.into_owned();
        let (x, axis) = match self.axis {
            None => (x.reshape(&[x.size()])?, 0),
            Some(axis) => {
                let axis = normalize_axis(self.name(), axis, x.rank())?;
                (x, axis)
            }
        };
        if condition.size() > x.shape()[axis] {
            return Err(Error::shape(
                self.name(),
                format!("a condition of at most {} elements", x.shape()[axis]),
                format!("{}", condition.size()),
            ));
        }
        let chosen: Vec<usize> = keys(condition)
            .into_iter()
            .enumerate()
            .filter_map(|(i, key)| (key != 0).then_some(i))
            .collect();
        Ok(smallvec![take(self.name(), &x, axis, &chosen)?])
    }
}

/// The slices of a contiguous array at `chosen` along `axis`.
fn take(operator: &str, x: &Array, axis: usize, chosen: &[usize]) -> Result<Array> {
    let mut shape = crate::array::Dims::from_slice(x.shape());
    shape[axis] = chosen.len();
    let out = Array::uninit(operator, x.dtype(), &shape)?;
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let n = x.shape()[axis];
    if out.size() == 0 {
        return Ok(out);
    }
    for_size!(x.dtype(), T => {
        // SAFETY: freshly allocated.
        let to = unsafe { out.as_mut_slice::<T>() };
        let from = x.as_slice::<T>();
        for (row, target) in to.chunks_exact_mut(inner).enumerate() {
            let start = (row / chosen.len() * n + chosen[row % chosen.len()]) * inner;
            target.copy_from_slice(&from[start..start + inner]);
        }
    });
    Ok(out)
}

impl Kernel for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    fn infer(&self, _inputs: &[Option<&Meta>]) -> Result<Metas> {
        Err(unknown(self.name()))
    }

    fn run(&self, _inputs: &[Option<&Array>], _outputs: &[Array]) -> Result<()> {
        Err(unknown(self.name()))
    }

    fn run_dynamic(&self, inputs: &[Option<&Array>]) -> Option<Result<Outputs>> {
        Some(self.compute(inputs))
    }
}

/// The distinct slices along `axis` (without it: the distinct elements), in ascending order (NaN
/// last, slices compared element by element) or, with `sorted=0`, by first appearance. Further
/// outputs, int64: where each was first, the number of the slice that each input slice is, and how
/// often each occurs. Zeros of both signs are equal, and so are NaN.
struct Unique {
    axis: Option<i64>,
    sorted: bool,
}

impl Unique {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let axis = attributes.int_opt("axis")?;
        Ok(Arc::new(Self { axis, sorted: attributes.flag("sorted", true)? }))
    }

    fn compute(&self, inputs: &[Option<&Array>]) -> Result<Outputs> {
        let x = checked(self.name(), inputs, 1)?[0].to_contiguous()?.into_owned();
        let (x, axis) = match self.axis {
            None => (x.reshape(&[x.size()])?, 0),
            Some(axis) => {
                let axis = normalize_axis(self.name(), axis, x.rank())?;
                (x, axis)
            }
        };
        let n = x.shape()[axis];
        // Slices as rows of keys: the axis moved to the front.
        let front: Vec<i64> = std::iter::once(axis)
            .chain((0..x.rank()).filter(|&a| a != axis))
            .map(|a| a as i64)
            .collect();
        let all = keys(&x.permute(&front)?);
        let width = all.len().checked_div(n).unwrap_or(0);
        let row = |i: usize| &all[i * width..(i + 1) * width];
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| row(a).cmp(row(b)));
        // Groups of equal slices in ascending order; the sort is stable, so the first comes first.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for i in order {
            match groups.last_mut() {
                Some(group) if row(group[0]) == row(i) => group.push(i),
                _ => groups.push(vec![i]),
            }
        }
        if !self.sorted {
            groups.sort_by_key(|g| g[0]);
        }
        let firsts: Vec<usize> = groups.iter().map(|g| g[0]).collect();
        let mut inverse = vec![0i64; n];
        for (g, group) in groups.iter().enumerate() {
            for &i in group {
                inverse[i] = g as i64;
            }
        }
        let first: Vec<i64> = firsts.iter().map(|&i| i as i64).collect();
        let counts: Vec<i64> = groups.iter().map(|g| g.len() as i64).collect();
        let mut outputs: Outputs = smallvec![take(self.name(), &x, axis, &firsts)?];
        for list in [first, inverse, counts] {
            outputs.push(Array::from_slice(&[list.len()], &list)?);
        }
        Ok(outputs)
    }
}

impl Kernel for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn infer(&self, _inputs: &[Option<&Meta>]) -> Result<Metas> {
        Err(unknown(self.name()))
    }

    fn run(&self, _inputs: &[Option<&Array>], _outputs: &[Array]) -> Result<()> {
        Err(unknown(self.name()))
    }

    fn run_dynamic(&self, inputs: &[Option<&Array>]) -> Option<Result<Outputs>> {
        Some(self.compute(inputs))
    }

    fn single_output(&self) -> bool {
        false
    }
}
