//! CumSum: one addition after the other along an axis; floats in f64, each result rounded once.

use crate::array::{Array, Meta, normalize_axis};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::along::in_full_precision;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::number::{Number, for_number};
use crate::parallel;
use crate::simd::{PlainLoop, vectorized};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry {
    name: "CumSum",
    build: |a| {
        Ok(Arc::new(CumSum {
            axis: a.int("axis", 0)?,
            exclusive: a.flag("exclusive", false)?,
            reverse: a.flag("reverse", false)?,
        }))
    },
}];

struct CumSum {
    axis: i64,
    /// Whether an element is left out of its own sum.
    exclusive: bool,
    reverse: bool,
}

impl Kernel for CumSum {
    fn name(&self) -> &'static str {
        "CumSum"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("CumSum", inputs, 1, 1)?;
        let x = inputs.get(0);
        if x.dtype == DType::Bool {
            return Err(Error::dtype("CumSum", "a numeric dtype", x.dtype.name()));
        }
        normalize_axis("CumSum", self.axis, x.rank())?;
        Ok(smallvec![x.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis("CumSum", self.axis, x.rank())?;
        in_full_precision(&[x], outputs, |x, out| {
            let x = x[0].to_contiguous()?;
            match x.dtype() {
                DType::F32 => self.along::<f32, f64>(&x, &out[0], axis, f64::from, |s| s as f32),
                DType::F64 => self.along::<f64, f64>(&x, &out[0], axis, |v| v, |s| s),
                dtype => for_number!(dtype, T => {
                    self.along::<T, T>(&x, &out[0], axis, |v| v, |s| s);
                }),
            }
            Ok(())
        })
    }
}

/// Lines that are summed side by side when their elements are neighbours.
const SIDE: usize = 8;

impl CumSum {
    fn along<T: Element, A: Number>(
        &self,
        x: &Array,
        out: &Array,
        axis: usize,
        widen: impl Fn(T) -> A + Copy + Sync,
        round: impl Fn(A) -> T + Copy + Sync,
    ) {
        let length = out.shape()[axis];
        let inner: usize = out.shape()[axis + 1..].iter().product();
        if out.size() == 0 {
            return;
        }
        let (exclusive, reverse) = (self.exclusive, self.reverse);
        let arrays = Shared::new((x.as_ptr::<T>(), out.as_mut_ptr::<T>()));
        let outer = out.size() / (length * inner);
        if inner == 1 {
            let grain = (CHEAP / (length * SIDE)).max(1);
            parallel::for_ranges(outer.div_ceil(SIDE), grain, |range| {
                for group in range {
                    let first = group * SIDE;
                    let n = SIDE.min(outer - first);
                    let (x, y) = arrays.get();
                    // SAFETY: `n` lines of the two contiguous arrays, which do not overlap.
                    let (x, y) = unsafe {
                        let at = first * length;
                        (
                            std::slice::from_raw_parts(x.add(at), n * length),
                            std::slice::from_raw_parts_mut(y.add(at), n * length),
                        )
                    };
                    let lines = Lines { x, y, length, exclusive, reverse, widen, round };
                    if n == SIDE {
                        lines.run::<A, SIDE>();
                    } else {
                        let pairs = lines.x.chunks(length).zip(lines.y.chunks_mut(length));
                        for (x, y) in pairs {
                            Lines { x, y, length, exclusive, reverse, widen, round }.run::<A, 1>();
                        }
                    }
                }
            });
            return;
        }
        // Neighbouring lines are summed together, row after row.
        let width = inner.min(1024);
        let tiles = inner.div_ceil(width);
        let grain = (CHEAP / (length * width)).max(1);
        parallel::for_ranges(outer * tiles, grain, |range| {
            let mut sums = vec![A::ZERO; width];
            for part in range {
                let first = part % tiles * width;
                let sums = &mut sums[..width.min(inner - first)];
                sums.fill(A::ZERO);
                for step in 0..length {
                    let row = if reverse { length - 1 - step } else { step };
                    let at = (part / tiles * length + row) * inner + first;
                    let (x, y) = arrays.get();
                    // SAFETY: inside the two contiguous arrays, which do not overlap.
                    let (x, y) = unsafe {
                        (
                            std::slice::from_raw_parts(x.add(at), sums.len()),
                            std::slice::from_raw_parts_mut(y.add(at), sums.len()),
                        )
                    };
                    vectorized(Row { x, y, sums, exclusive, widen, round });
                }
            }
        });
    }
}

/// Lines that follow each other.
struct Lines<'a, T, W, R> {
    x: &'a [T],
    y: &'a mut [T],
    length: usize,
    exclusive: bool,
    reverse: bool,
    widen: W,
    round: R,
}

impl<T: Element, W, R> Lines<'_, T, W, R> {
    /// Sums `N` lines at a time, so that one's addition need not wait for another's.
    fn run<A: Number, const N: usize>(self)
    where
        W: Fn(T) -> A,
        R: Fn(A) -> T,
    {
        let length = self.length;
        assert!(self.x.len() == N * length && self.y.len() == N * length);
        let mut sums = [A::ZERO; N];
        for step in 0..length {
            let i = if self.reverse { length - 1 - step } else { step };
            for (line, sum) in sums.iter_mut().enumerate() {
                let at = line * length + i;
                let with = sum.add((self.widen)(self.x[at]));
                self.y[at] = (self.round)(if self.exclusive { *sum } else { with });
                *sum = with;
            }
        }
    }
}

/// The next elements of lines side by side.
struct Row<'a, T, A, W, R> {
    x: &'a [T],
    y: &'a mut [T],
    sums: &'a mut [A],
    exclusive: bool,
    widen: W,
    round: R,
}

impl<T: Element, A: Number, W: Fn(T) -> A, R: Fn(A) -> T> PlainLoop for Row<'_, T, A, W, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, y), sum) in self.x.iter().zip(self.y).zip(self.sums) {
            let with = sum.add((self.widen)(*x));
            *y = (self.round)(if self.exclusive { *sum } else { with });
            *sum = with;
        }
    }
}
