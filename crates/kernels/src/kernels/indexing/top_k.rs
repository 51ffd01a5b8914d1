//! TopK.

use super::order::Key;
use crate::array::{Array, Meta, normalize_axis};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::parallel;
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
        let indices = Meta::new(crate::dtype::DType::I64, &values.shape);
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
        crate::for_dtype!(x.dtype(), T => {
            let from = x.as_slice::<T>();
            let values = outputs[0].as_mut_ptr::<T>() as usize;
            let indices = outputs[1].as_mut_ptr::<i64>() as usize;
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
                        // SAFETY: elements of this row of the outputs.
                        unsafe {
                            *(values as *mut T).add(to) = from[at(j as usize)];
                            *(indices as *mut i64).add(to) = j as i64;
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
