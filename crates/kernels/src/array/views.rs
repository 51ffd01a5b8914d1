//! Views: new shapes and strides over the same storage. No element moves.

use super::{Array, Dims, Meta, Strides, broadcast, element_count, normalize_axis, strided};
use crate::error::{Error, Result};
use smallvec::SmallVec;

impl Array {
    fn view(&self, shape: Dims, strides: Strides, offset: usize) -> Self {
        let size = shape.iter().product();
        let meta = Meta { dtype: self.meta.dtype, shape };
        Self { storage: self.storage.clone(), meta, strides, offset, size }
    }

    /// The offset of the element with these indices on these axes, or of the first if there is none.
    fn moved<const N: usize>(&self, indices: [(i64, usize); N]) -> usize {
        if self.size == 0 {
            return self.offset;
        }
        let steps = indices.iter().map(|&(index, axis)| index as isize * self.strides[axis]);
        self.offset.wrapping_add_signed(steps.sum())
    }

    /// The same elements in row-major order under another shape, when that needs no copy.
    ///
    /// # Errors
    /// `Shape` when the element counts differ or the strides cannot express the shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        let size = element_count("reshape", shape, self.meta.dtype)?;
        if size != self.size {
            return Err(Error::shape(
                "reshape",
                format!("a shape of {} elements", self.size),
                format!("{shape:?} ({size} elements) from {:?}", self.meta.shape),
            ));
        }
        if self.is_contiguous() {
            let strides = super::contiguous_strides(shape);
            return Ok(self.view(Dims::from_slice(shape), strides, self.offset));
        }
        self.strided_reshape(shape).ok_or_else(|| {
            Error::shape(
                "reshape",
                "strides that can express the new shape without a copy (call contiguous first)",
                format!("{shape:?} from {:?} with strides {:?}", self.meta.shape, self.strides),
            )
        })
    }

    fn strided_reshape(&self, shape: &[usize]) -> Option<Self> {
        let mut strides: Strides = SmallVec::from_elem(1, shape.len());
        // Axes of extent 1 carry no information about memory.
        let old: SmallVec<[(usize, isize); 6]> = self
            .shape()
            .iter()
            .zip(&self.strides)
            .filter(|&(&d, _)| d != 1)
            .map(|(&d, &s)| (d, s))
            .collect();
        let (mut i, mut j) = (0, 0);
        while i < old.len() {
            // One group: the fewest old and new axes of equal element count.
            let (mut have, mut want) = (old[i].0, 1);
            let first = i;
            let start = j;
            while have != want {
                if want < have {
                    want *= *shape.get(j)?;
                    j += 1;
                } else {
                    i += 1;
                    have *= old.get(i)?.0;
                }
            }
            for k in first..i {
                if old[k].1 != old[k + 1].1 * old[k + 1].0 as isize {
                    return None;
                }
            }
            let mut step = old[i].1;
            for k in (start..j).rev() {
                strides[k] = step;
                step *= shape[k] as isize;
            }
            i += 1;
        }
        Some(self.view(Dims::from_slice(shape), strides, self.offset))
    }

    /// Reorders the axes: axis `i` of the result is axis `axes[i]` of the input.
    ///
    /// # Errors
    /// `Attribute` when `axes` is not a permutation.
    pub fn permute(&self, axes: &[i64]) -> Result<Self> {
        let rank = self.rank();
        let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
        let (mut shape, mut strides) = (Dims::new(), Strides::new());
        for &a in axes {
            let axis = normalize_axis("permute", a, rank)?;
            if std::mem::replace(&mut seen[axis], true) {
                break;
            }
            shape.push(self.meta.shape[axis]);
            strides.push(self.strides[axis]);
        }
        if shape.len() != rank || axes.len() != rank {
            return Err(Error::attribute(
                "permute",
                format!("each of {rank} axes once"),
                format!("{axes:?}"),
            ));
        }
        Ok(self.view(shape, strides, self.offset))
    }

    /// Elements `start, start + step, …` before (for negative steps: after) `stop` of one axis.
    /// `start` is in `[0, extent]`; `stop` in `[-1, extent]`, -1 being before the first element.
    ///
    /// # Errors
    /// `Bounds` or `Attribute` for a range outside the axis or a zero step.
    pub fn slice(&self, axis: i64, start: i64, stop: i64, step: i64) -> Result<Self> {
        const OP: &str = "slice";
        let axis = normalize_axis(OP, axis, self.rank())?;
        let n = self.meta.shape[axis] as i64;
        if step == 0 {
            return Err(Error::attribute(OP, "a step other than 0", "step 0"));
        }
        let inside = (0..=n).contains(&start) && (-1..=n).contains(&stop);
        // Bounded before any arithmetic, so that nothing below overflows.
        let span = match (inside, step > 0) {
            (false, _) => 0,
            (true, true) => stop - start,
            (true, false) => start - stop,
        };
        let count = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
        if !inside || (count > 0 && start == n) {
            return Err(Error::bounds(
                OP,
                format!("elements of an axis of {n} (0 <= start <= {n}, -1 <= stop <= {n})"),
                format!("start {start}, stop {stop}, step {step}"),
            ));
        }
        let (mut shape, mut strides) = (self.meta.shape.clone(), self.strides.clone());
        shape[axis] = count as usize;
        let first = if count > 0 { start } else { 0 };
        // Where nothing moves a stride may be any number.
        if count > 1 && self.size > 0 {
            strides[axis] *= step as isize;
        }
        Ok(self.view(shape, strides, self.moved([(first, axis)])))
    }

    /// Element `index` of one axis; the axis goes. Negative indices count from the end.
    ///
    /// # Errors
    /// `Bounds` outside the axis.
    pub fn select(&self, axis: i64, index: i64) -> Result<Self> {
        let axis = normalize_axis("select", axis, self.rank())?;
        let n = self.meta.shape[axis] as i64;
        if !(-n..n).contains(&index) {
            return Err(Error::bounds(
                "select",
                format!("an index in [-{n}, {n}) on axis {axis}"),
                format!("{index}"),
            ));
        }
        let index = if index < 0 { index + n } else { index };
        let (mut shape, mut strides) = (self.meta.shape.clone(), self.strides.clone());
        shape.remove(axis);
        strides.remove(axis);
        Ok(self.view(shape, strides, self.moved([(index, axis)])))
    }

    /// Stretches axes of extent 1, and new leading axes, to `shape` by stride 0.
    ///
    /// # Errors
    /// `Shape` when the shape is not reachable by broadcasting.
    pub fn expand(&self, shape: &[usize]) -> Result<Self> {
        element_count("expand", shape, self.meta.dtype)?;
        let reached = broadcast("expand", &self.meta.shape, shape)?;
        if reached.as_slice() != shape {
            return Err(Error::shape(
                "expand",
                format!("a shape that {:?} broadcasts to", self.meta.shape),
                format!("{shape:?}"),
            ));
        }
        let strides = strided::broadcast_strides(self, shape);
        Ok(self.view(Dims::from_slice(shape), strides, self.offset))
    }

    /// Drops axes of extent 1.
    ///
    /// # Errors
    /// `Shape` when one of them has another extent, `Bounds` when it does not exist.
    pub fn squeeze(&self, axes: &[i64]) -> Result<Self> {
        let mut drop: SmallVec<[bool; 6]> = SmallVec::from_elem(false, self.rank());
        for &a in axes {
            let axis = normalize_axis("squeeze", a, self.rank())?;
            if self.meta.shape[axis] != 1 {
                return Err(Error::shape(
                    "squeeze",
                    format!("extent 1 at axis {axis}"),
                    format!("{:?}", self.meta.shape),
                ));
            }
            drop[axis] = true;
        }
        let keep = |i: &usize| !drop[*i];
        let shape = (0..self.rank()).filter(keep).map(|i| self.meta.shape[i]).collect();
        let strides = (0..self.rank()).filter(keep).map(|i| self.strides[i]).collect();
        Ok(self.view(shape, strides, self.offset))
    }

    /// Inserts axes of extent 1 at the given positions of the result.
    ///
    /// # Errors
    /// `Bounds` or `Attribute` for positions that do not exist or repeat.
    pub fn unsqueeze(&self, axes: &[i64]) -> Result<Self> {
        let rank = self.rank() + axes.len();
        let mut fresh: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
        for &a in axes {
            let axis = normalize_axis("unsqueeze", a, rank)?;
            if std::mem::replace(&mut fresh[axis], true) {
                return Err(Error::attribute("unsqueeze", "each axis once", format!("{axes:?}")));
            }
        }
        let (mut shape, mut strides) = (Dims::new(), Strides::new());
        let mut from = 0;
        for &new in &fresh {
            if new {
                shape.push(1);
                strides.push(1);
            } else {
                shape.push(self.meta.shape[from]);
                strides.push(self.strides[from]);
                from += 1;
            }
        }
        element_count("unsqueeze", &shape, self.meta.dtype)?;
        Ok(self.view(shape, strides, self.offset))
    }

    /// The diagonal of two axes, moved to a new last axis.
    ///
    /// # Errors
    /// `Attribute` when the axes coincide, `Bounds` when one does not exist.
    pub fn diagonal(&self, offset: i64, axis1: i64, axis2: i64) -> Result<Self> {
        const OP: &str = "diagonal";
        let (a, b) =
            (normalize_axis(OP, axis1, self.rank())?, normalize_axis(OP, axis2, self.rank())?);
        if a == b {
            return Err(Error::attribute(OP, "two different axes", format!("{axis1} and {axis2}")));
        }
        let (rows, cols) = (self.meta.shape[a] as i64, self.meta.shape[b] as i64);
        let (r0, c0) = if offset >= 0 { (0, offset) } else { (offset.saturating_neg(), 0) };
        let count = (rows.saturating_sub(r0)).min(cols.saturating_sub(c0)).max(0);
        let step = self.strides[a].saturating_add(self.strides[b]);
        let first = if count == 0 { [(0, a), (0, b)] } else { [(r0, a), (c0, b)] };
        let (mut shape, mut strides) = (Dims::new(), Strides::new());
        for i in (0..self.rank()).filter(|&i| i != a && i != b) {
            shape.push(self.meta.shape[i]);
            strides.push(self.strides[i]);
        }
        shape.push(count as usize);
        strides.push(step);
        Ok(self.view(shape, strides, self.moved(first)))
    }
}
