//! Walking strided arrays: axes are merged where memory allows, the innermost one is a plain loop.

use super::{Array, Dims, Strides};
use smallvec::SmallVec;

/// The loop nest over `N` operands that share a shape: outer axes walked by an odometer, one inner
/// axis handed to the caller with a stride for each operand.
pub struct StridedLoop<const N: usize> {
    outer: Dims,
    outer_strides: SmallVec<[[isize; N]; 6]>,
    pub inner: usize,
    pub inner_strides: [isize; N],
}

impl<const N: usize> StridedLoop<N> {
    /// Merges neighbouring axes wherever all operands step evenly over them.
    #[must_use]
    pub fn new(shape: &[usize], strides: [&[isize]; N]) -> Self {
        let mut dims: Dims = SmallVec::new();
        let mut steps: SmallVec<[[isize; N]; 6]> = SmallVec::new();
        for axis in 0..shape.len() {
            let d = shape[axis];
            if d == 1 {
                continue;
            }
            let s: [isize; N] = std::array::from_fn(|k| strides[k][axis]);
            if let (Some(last), Some(prev)) = (dims.last_mut(), steps.last_mut())
                && (0..N).all(|k| prev[k] == s[k] * d as isize)
            {
                *last *= d;
                *prev = s;
                continue;
            }
            dims.push(d);
            steps.push(s);
        }
        let (inner, inner_strides) = match (dims.pop(), steps.pop()) {
            (Some(d), Some(s)) => (d, s),
            _ => (1, [0; N]),
        };
        Self { outer: dims, outer_strides: steps, inner, inner_strides }
    }

    /// Whether all runs are the same elements.
    #[must_use]
    pub fn repeats_one_run(&self) -> bool {
        self.outer_strides.iter().all(|s| s.iter().all(|&step| step == 0))
    }

    /// Number of inner runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.outer.iter().product()
    }

    /// Calls `body` with the element offset of each operand at the start of runs `start..end`.
    pub fn for_each(&self, start: usize, end: usize, mut body: impl FnMut([isize; N])) {
        if start >= end || self.inner == 0 {
            return;
        }
        let rank = self.outer.len();
        let mut index: Dims = SmallVec::from_elem(0, rank);
        let mut at = [0isize; N];
        let mut rest = start;
        for axis in (0..rank).rev() {
            index[axis] = rest % self.outer[axis];
            rest /= self.outer[axis];
            for (k, a) in at.iter_mut().enumerate() {
                *a += index[axis] as isize * self.outer_strides[axis][k];
            }
        }
        for _ in start..end {
            body(at);
            for axis in (0..rank).rev() {
                index[axis] += 1;
                for (k, a) in at.iter_mut().enumerate() {
                    *a += self.outer_strides[axis][k];
                }
                if index[axis] < self.outer[axis] {
                    break;
                }
                for (k, a) in at.iter_mut().enumerate() {
                    *a -= self.outer[axis] as isize * self.outer_strides[axis][k];
                }
                index[axis] = 0;
            }
        }
    }
}

/// Strides of `a` seen in `shape` by broadcasting (aligned at the right, stretched axes get 0).
#[must_use]
pub fn broadcast_strides(a: &Array, shape: &[usize]) -> Strides {
    let lead = shape.len() - a.rank();
    let mut out: Strides = SmallVec::from_elem(0, shape.len());
    for axis in 0..a.rank() {
        out[lead + axis] = if a.shape()[axis] == 1 { 0 } else { a.strides()[axis] };
    }
    out
}
