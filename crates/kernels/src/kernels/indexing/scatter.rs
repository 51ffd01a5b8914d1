//! ScatterElements and ScatterND: updates are combined in the row-major order of the indices.

use super::index;
use crate::array::{Array, Dims, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::half_precision::{is_half, through_f32};
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::movement::copy_into;
use crate::kernels::number::{Number, for_number};
use crate::parallel;
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

    /// Combines rows of `width` elements, an update and an element at a time.
    fn apply<T: Number>(self, rows: &Rows<'_, T>) {
        match self {
            Self::None => rows.combine(|_, b| b),
            Self::Add => rows.combine(Number::add),
            Self::Mul => rows.combine(Number::mul),
            Self::Max => rows.combine(Number::maximum),
            Self::Min => rows.combine(Number::minimum),
        }
    }
}

/// Rows of `width` neighbours, each with the number of the row that it goes to.
struct Rows<'a, T> {
    to: Shared<*mut T>,
    from: &'a [T],
    places: &'a [usize],
    width: usize,
    /// So many rows after each other have places that no others have.
    group: usize,
}

/// Elements of a row that one part combines.
const COLUMNS: usize = 1 << 10;
/// Elements from which on there is more than one part.
const MANY: usize = 1 << 15;

impl<T: Element> Rows<'_, T> {
    /// Each part walks its rows in order, over columns of its own or places that no other part has.
    fn combine(&self, f: impl Fn(T, T) -> T + Sync) {
        let Self { from, places, width, group, .. } = *self;
        if width == 1 {
            let grain = (MANY / group).max(1);
            parallel::for_ranges(places.len() / group, grain, |groups| {
                let to = self.to.get();
                let range = groups.start * group..groups.end * group;
                for (&place, &update) in places[range.clone()].iter().zip(&from[range]) {
                    // SAFETY: a place inside the output that no other part combines.
                    unsafe { *to.add(place) = f(*to.add(place), update) };
                }
            });
            return;
        }
        let strips = width.div_ceil(COLUMNS);
        let grain = if from.len() < MANY { strips } else { 1 };
        parallel::for_ranges(strips, grain, |range| {
            let (first, end) = (range.start * COLUMNS, (range.end * COLUMNS).min(width));
            for (row, &place) in from.chunks_exact(width).zip(places) {
                // SAFETY: a row inside the output, with columns that no other part combines.
                let to = unsafe {
                    let to = self.to.get().add(place * width + first);
                    std::slice::from_raw_parts_mut(to, end - first)
                };
                for (to, &update) in to.iter_mut().zip(&row[first..end]) {
                    *to = f(*to, update);
                }
            }
        });
    }
}

fn copy_unless_same(data: &Array, out: &Array) {
    if data.as_bytes_ptr() != out.as_bytes_ptr() {
        copy_into(data, out);
    }
}

/// Combines rows of `width` elements into `out`, which holds the data already.
fn scatter(
    reduction: Reduction,
    out: &Array,
    updates: &Array,
    places: &[usize],
    (width, group): (usize, usize),
) {
    if reduction == Reduction::None {
        for_size!(out.dtype(), T => {
            let to = Shared::new(out.as_mut_ptr::<T>());
            Rows { to, from: updates.as_slice::<T>(), places, width, group }.combine(|_, b| b);
        });
        return;
    }
    // Halves come here widened.
    for_number!(out.dtype(), T => {
        let to = Shared::new(out.as_mut_ptr::<T>());
        reduction.apply(&Rows { to, from: updates.as_slice::<T>(), places, width, group });
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
        let mut places = index::resolved(self.name(), indices, axis, data.shape()[axis])?;
        copy_unless_same(data, out);
        let step = out.strides()[axis] as usize;
        index::Bases::new(indices.shape(), out.strides(), axis).for_each_run(
            |first, n, base, next| {
                let mut base = base as usize;
                for place in &mut places[first..first + n] {
                    *place = base + *place * step;
                    base += next as usize;
                }
            },
        );
        let updates = updates.to_contiguous()?;
        // Off the first axis its indices have parts of the output of their own.
        let group = if axis == 0 { places.len() } else { places.len() / indices.shape()[0] };
        scatter(self.reduction, out, &updates, &places, (1, group));
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
        if width > 0 {
            scatter(self.reduction, out, &updates, &rows, (width, rows.len().max(1)));
        }
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
