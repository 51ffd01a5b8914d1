//! TopK.

use super::order::Key;
use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::parallel;
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "TopK", build: TopK::build }];

/// The `k` greatest (or least) elements of each row along `axis` and their indices (int64), best
/// first. Equal elements come by index; NaN counts as greater than everything. Rows are sorted with
/// `sorted=0` too, since that order is as good as any.
struct TopK {
    axis: i64,
    k: usize,
    largest: bool,
}

impl TopK {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let k = attributes.int_required("k")?;
        let axis = attributes.int("axis", -1)?;
        let largest = attributes.flag("largest", true)?;
        attributes.flag("sorted", true)?;
        let k = usize::try_from(k)
            .map_err(|_| Error::attribute("TopK", "k not negative", k.to_string()))?;
        Ok(Arc::new(Self { axis, k, largest }))
    }
}

/// The first `k` of `pairs` in order.
fn select(pairs: &mut [(u64, u64)], k: usize) {
    if k == 0 {
        return;
    }
    if k < pairs.len() {
        pairs.select_nth_unstable(k - 1);
    }
    // Pairs differ in their second halves, so the unstable sort has one possible result.
    pairs[..k].sort_unstable();
}

/// Elements that are compared with the worst of the best so far at a time.
const BLOCK: usize = 64;
/// The most elements that are kept in order while a row is read.
const KEPT: usize = 64;

/// TopK of f32 rows of fewer than 2^32 elements, with the key in the upper half of one number and
/// the index in the lower.
fn singles(x: &Array, outputs: &[Array], axis: usize, k: usize, largest: bool) {
    let n = x.shape()[axis];
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let from = x.as_slice::<f32>();
    let places = Shared::new((outputs[0].as_mut_ptr::<f32>(), outputs[1].as_mut_ptr::<i64>()));
    parallel::for_ranges(x.size() / n, (1 << 14) / n + 1, |range| {
        let (mut row_values, mut best) = (Vec::new(), Vec::new());
        for row in range {
            let (o, i) = (row / inner, row % inner);
            let values = if inner == 1 {
                &from[row * n..(row + 1) * n]
            } else {
                row_values.clear();
                row_values.extend((0..n).map(|j| from[(o * n + j) * inner + i]));
                &row_values[..]
            };
            best.clear();
            if k <= KEPT {
                vectorized(KeepBest { x: values, k, largest, best: &mut best });
            } else {
                best.extend((0..).zip(values).map(|(j, &v)| packed(v, j, largest)));
                if k < n {
                    best.select_nth_unstable(k - 1);
                }
                best[..k].sort_unstable();
            }
            for (rank, &pair) in best[..k].iter().enumerate() {
                let (to, j) = ((o * k + rank) * inner + i, pair as u32);
                let (to_values, indices) = places.get();
                // SAFETY: elements of this row of the outputs.
                unsafe {
                    *to_values.add(to) = values[j as usize];
                    *indices.add(to) = i64::from(j);
                }
            }
        }
    });
}

/// Ascending with the rank: better elements, and of equal ones earlier ones, are less.
#[inline(always)]
fn packed(x: f32, index: u32, largest: bool) -> u64 {
    u64::from(order(x, largest)) << 32 | u64::from(index)
}

/// Less for better elements; equal for zeros of both signs and for all NaNs.
#[inline(always)]
fn order(x: f32, largest: bool) -> u32 {
    // Adding +0 makes -0 positive.
    let bits = (x + 0.0).to_bits();
    let up = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    let up = if x.is_nan() { u32::MAX } else { up };
    if largest { !up } else { up }
}

/// The first `k` in order, kept sorted while the row is read.
struct KeepBest<'a> {
    x: &'a [f32],
    k: usize,
    largest: bool,
    best: &'a mut Vec<u64>,
}

impl PlainLoop for KeepBest<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Self { x, k, largest, best } = self;
        for (block, first) in x.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            if best.len() == k {
                // Later elements lose against equal ones.
                let worst = (best[k - 1] >> 32) as u32;
                let better = block.iter().fold(false, |any, &v| any | (order(v, largest) < worst));
                if !better {
                    continue;
                }
            }
            for (&v, j) in block.iter().zip(first..) {
                let pair = packed(v, j, largest);
                if best.len() == k {
                    if best[k - 1] < pair {
                        continue;
                    }
                    best.pop();
                }
                let mut at = best.len();
                best.push(pair);
                while at > 0 && best[at - 1] > pair {
                    best[at] = best[at - 1];
                    at -= 1;
                }
                best[at] = pair;
            }
        }
    }
}

impl Kernel for TopK {
    fn name(&self) -> &'static str {
        "TopK"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let x = Inputs::new(self.name(), inputs, 1, 1)?.get(0);
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        if self.k > x.shape[axis] {
            return Err(Error::shape(
                self.name(),
                format!("k at most the extent {} of axis {axis}", x.shape[axis]),
                self.k.to_string(),
            ));
        }
        let mut values = x.clone();
        values.shape[axis] = self.k;
        let indices = Meta::new(DType::I64, &values.shape);
        Ok(smallvec![values, indices])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        if outputs[0].size() == 0 {
            return Ok(());
        }
        let axis = normalize_axis(self.name(), self.axis, x.rank())?;
        let x = x.to_contiguous()?;
        let n = x.shape()[axis];
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let rows = x.size() / n;
        let (k, largest) = (self.k, self.largest);
        if x.dtype() == DType::F32 && u32::try_from(n).is_ok() {
            singles(&x, outputs, axis, k, largest);
            return Ok(());
        }
        crate::for_dtype!(x.dtype(), T => {
            let from = x.as_slice::<T>();
            let places = Shared::new((
                outputs[0].as_mut_ptr::<T>(),
                outputs[1].as_mut_ptr::<i64>(),
            ));
            parallel::for_ranges(rows, (1 << 14) / n.max(1) + 1, |range| {
                let mut pairs = Vec::with_capacity(n);
                for row in range {
                    let (o, i) = (row / inner, row % inner);
                    let at = |j: usize| (o * n + j) * inner + i;
                    pairs.clear();
                    pairs.extend((0..n).map(|j| {
                        let key = from[at(j)].key();
                        (if largest { !key } else { key }, j as u64)
                    }));
                    select(&mut pairs, k);
                    for (rank, &(_, j)) in pairs[..k].iter().enumerate() {
                        let to = (o * k + rank) * inner + i;
                        let (values, indices) = places.get();
                        // SAFETY: elements of this row of the outputs.
                        unsafe {
                            *values.add(to) = from[at(j as usize)];
                            *indices.add(to) = j as i64;
                        }
                    }
                }
            });
        });
        Ok(())
    }

    fn single_output(&self) -> bool {
        false
    }
}
