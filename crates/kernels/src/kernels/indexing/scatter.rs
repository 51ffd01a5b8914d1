//! ScatterElements and ScatterND: updates are combined in the row-major order of the indices.

use super::index;
use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::movement::copy_into;
use crate::kernels::number::{Number, for_number};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "ScatterElements", build: ScatterElements::build },
    Entry { name: "ScatterND", build: ScatterND::build },
];

/// How an update meets the element. `Max` and `Min` propagate NaN. Halves are combined in f32 and
/// rounded once at the end; integers wrap.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

impl Reduction {
    fn read(attributes: &mut Attributes) -> Result<Self> {
        let all = [Self::None, Self::Add, Self::Mul, Self::Max, Self::Min];
        Ok(all[attributes.choice("reduction", &["none", "add", "mul", "max", "min"], 0)?])
    }

    fn check(self, operator: &str, dtype: DType) -> Result<()> {
        if self != Self::None && dtype == DType::Bool {
            return Err(Error::dtype(operator, "numbers for a reduction", "bool"));
        }
        Ok(())
    }

    /// Combines where `places` says, an update and an element at a time.
    fn apply<T: Number>(self, to: &mut [T], from: &[T], places: impl Iterator<Item = usize>) {
        match self {
            Self::None => combine(to, from, places, |_, b| b),
            Self::Add => combine(to, from, places, Number::add),
            Self::Mul => combine(to, from, places, Number::mul),
            Self::Max => combine(to, from, places, Number::maximum),
            Self::Min => combine(to, from, places, Number::minimum),
        }
    }
}

fn combine<T: Element>(
    to: &mut [T],
    from: &[T],
    places: impl Iterator<Item = usize>,
    f: impl Fn(T, T) -> T,
) {
    for (place, &update) in places.zip(from) {
        to[place] = f(to[place], update);
    }
}

fn copy_unless_same(data: &Array, out: &Array) {
    if data.as_bytes_ptr() != out.as_bytes_ptr() {
        copy_into(data, out);
    }
}

/// Runs `place` updates into `out`, which holds the data already.
fn scatter<I: Iterator<Item = usize>>(
    reduction: Reduction,
    out: &Array,
    updates: &Array,
    places: impl Fn() -> I,
) {
    if reduction == Reduction::None {
        for_size!(out.dtype(), T => {
            // SAFETY: the kernel's own output, contiguous.
            let to = unsafe { out.as_mut_slice::<T>() };
            combine(to, updates.as_slice::<T>(), places(), |_, b| b);
        });
        return;
    }
    for_number!(out.dtype(), T => {
        // SAFETY: as above; halves come here widened.
        let to = unsafe { out.as_mut_slice::<T>() };
        reduction.apply(to, updates.as_slice::<T>(), places());
    });
}

/// `data` with `out[i, …, indices[i, j, …], …] = reduction(that, updates[i, j, …])`, the index in
/// place of coordinate `axis`; for all indices in row-major order.
struct ScatterElements {
    axis: i64,
    reduction: Reduction,
}

impl ScatterElements {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let axis = attributes.int("axis", 0)?;
        Ok(Arc::new(Self { axis, reduction: Reduction::read(attributes)? }))
    }

    fn typed(&self, data: &Array, indices: &Array, updates: &Array, out: &Array) -> Result<()> {
        if indices.size() == 0 {
            copy_unless_same(data, out);
            return Ok(());
        }
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        let chosen = index::resolved(self.name(), indices, axis, data.shape()[axis])?;
        copy_unless_same(data, out);
        let step = out.strides()[axis] as usize;
        let mut places = Vec::with_capacity(chosen.len());
        index::Bases::new(indices.shape(), out.strides(), axis)
            .for_each(|i, base| places.push(base as usize + chosen[i] * step));
        let updates = updates.to_contiguous()?;
        scatter(self.reduction, out, &updates, || places.iter().copied());
        Ok(())
    }
}

impl Kernel for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 3, 3)?;
        let (data, indices, updates) = (inputs.get(0), inputs.get(1), inputs.get(2));
        let dtype = inputs.same_dtype(&[0, 2])?;
        self.reduction.check(self.name(), dtype)?;
        index::check_dtype(self.name(), indices)?;
        let axis = normalize_axis(self.name(), self.axis, data.rank())?;
        index::check_elements(self.name(), data, indices, axis)?;
        if updates.shape != indices.shape {
            return Err(Error::shape(
                self.name(),
                format!("updates of the indices' shape {:?}", indices.shape),
                format!("{:?}", updates.shape),
            ));
        }
        Ok(smallvec![data.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(data), Some(indices), Some(updates)) = (inputs[0], inputs[1], inputs[2]) else {
            return Ok(());
        };
        let out = &outputs[0];
        if self.reduction != Reduction::None && is_half(out.dtype()) {
            return through_f32(self.name(), &[Some(data), Some(updates)], out, |wide, out| {
                let (Some(data), Some(updates)) = (wide[0], wide[1]) else { return Ok(()) };
                self.typed(data, indices, updates, &out[0])
            });
        }
        self.typed(data, indices, updates, out)
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}

/// `data` with the slice that each index tuple (in the last axis of `indices`) names combined with
/// a slice of `updates`; tuples in row-major order.
struct ScatterND {
    reduction: Reduction,
}

impl ScatterND {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { reduction: Reduction::read(attributes)? }))
    }

    fn typed(&self, data: &Array, indices: &Array, updates: &Array, out: &Array) -> Result<()> {
        let rows = index::tuples(self.name(), indices, data.shape(), 0)?;
        copy_unless_same(data, out);
        let depth = indices.shape()[indices.rank() - 1];
        let width: usize = data.shape()[depth..].iter().product();
        let updates = updates.to_contiguous()?;
        scatter(self.reduction, out, &updates, || {
            rows.iter().flat_map(move |&row| row * width..(row + 1) * width)
        });
        Ok(())
    }
}

impl Kernel for ScatterND {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 3, 3)?;
        let (data, indices, updates) = (inputs.get(0), inputs.get(1), inputs.get(2));
        let dtype = inputs.same_dtype(&[0, 2])?;
        self.reduction.check(self.name(), dtype)?;
        index::check_dtype(self.name(), indices)?;
        let depth = index::tuple_length(self.name(), data, indices, 0)?;
        let mut want = Dims::from_slice(&indices.shape[..indices.rank() - 1]);
        want.extend_from_slice(&data.shape[depth..]);
        if updates.shape != want {
            return Err(Error::shape(
                self.name(),
                format!(
                    "updates {want:?} for data {:?} and indices {:?}",
                    data.shape, indices.shape
                ),
                format!("{:?}", updates.shape),
            ));
        }
        Ok(smallvec![data.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(data), Some(indices), Some(updates)) = (inputs[0], inputs[1], inputs[2]) else {
            return Ok(());
        };
        let out = &outputs[0];
        if self.reduction != Reduction::None && is_half(out.dtype()) {
            return through_f32(self.name(), &[Some(data), Some(updates)], out, |wide, out| {
                let (Some(data), Some(updates)) = (wide[0], wide[1]) else { return Ok(()) };
                self.typed(data, indices, updates, &out[0])
            });
        }
        self.typed(data, indices, updates, out)
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0)]
    }
}
