//! Two operands of one number type, walked together where each lies still or step by step along the
//! innermost axis: the common broadcasts run without gathering anything.

use crate::array::{Array, StridedLoop, broadcast_strides};
use crate::kernels::binary::Operation;
use crate::kernels::elementwise::CHEAP;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::number::Number;
use crate::parallel;
use crate::simd::{PlainLoop, vectorized_wide};

/// The shortest runs for which this pays.
const SHORTEST: usize = 16;
/// Runs that are handed over at a time.
const BATCH: usize = 64;

/// `out = operation(a, b)`, or false where the operands have another shape of walk. `out` is
/// contiguous, and an operand of its shape may be the same memory.
pub(crate) fn zip<T: Number, O: Operation>(
    operation: O,
    a: &Array,
    b: &Array,
    out: &Array,
) -> bool {
    if out.size() == 0 || out.dtype() != T::DTYPE {
        return out.size() == 0;
    }
    let arrays = Shared::new((a.as_ptr::<T>(), b.as_ptr::<T>(), out.as_mut_ptr::<T>()));
    walk(a, b, out, &|runs, n, still_a, still_b| {
        let (a, b, out) = arrays.get();
        vectorized_wide(Runs { operation, a, b, out, runs, n, still_a, still_b });
    })
}

/// Takes runs of `n` elements, whose starts are given for both operands and the output, and whether
/// the operands lie still.
type Flush<'a> = dyn Fn(&[[isize; 3]], usize, bool, bool) + Sync + 'a;

/// The runs of [`zip`], or false; in one copy for all numbers and operations.
fn walk(a: &Array, b: &Array, out: &Array, flush: &Flush<'_>) -> bool {
    let shape = out.shape();
    let (from_a, from_b) = (broadcast_strides(a, shape), broadcast_strides(b, shape));
    let walk = StridedLoop::new(shape, [&from_a, &from_b, out.strides()]);
    let n = walk.inner;
    let [still_a, still_b] = [walk.inner_strides[0], walk.inner_strides[1]].map(|step| step == 0);
    if walk.inner_strides[..2].iter().any(|step| !(0..=1).contains(step))
        || walk.runs() > 1 && n < SHORTEST
        || walk.inner_strides[2] != 1 && n > 1
    {
        return false;
    }
    // One long run is cut, and short ones are taken together.
    let piece = n.min(CHEAP);
    let pieces = n.div_ceil(piece);
    parallel::for_ranges(walk.runs() * pieces, (CHEAP / piece).max(1), |range| {
        if pieces > 1 {
            for at in range {
                let (run, first) = (at / pieces, at % pieces * piece);
                walk.for_each(run, run + 1, |[i, j, k]| {
                    let (i, j) = (i + moved(still_a, first), j + moved(still_b, first));
                    let start = [i, j, k + first as isize];
                    flush(&[start], piece.min(n - first), still_a, still_b);
                });
            }
            return;
        }
        let mut runs = [[0; 3]; BATCH];
        let mut held = 0;
        walk.for_each(range.start, range.end, |offsets| {
            runs[held] = offsets;
            held += 1;
            if held == BATCH {
                flush(&runs, n, still_a, still_b);
                held = 0;
            }
        });
        flush(&runs[..held], n, still_a, still_b);
    });
    true
}

fn moved(still: bool, by: usize) -> isize {
    if still { 0 } else { by as isize }
}

struct Runs<'a, T, O> {
    operation: O,
    a: *const T,
    b: *const T,
    out: *mut T,
    runs: &'a [[isize; 3]],
    n: usize,
    still_a: bool,
    still_b: bool,
}

impl<T: Number, O: Operation> PlainLoop for Runs<'_, T, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (f, n) = (self.operation, self.n);
        for &[i, j, k] in self.runs {
            // SAFETY: runs of the three arrays.
            unsafe {
                let (a, b, out) = (self.a.offset(i), self.b.offset(j), self.out.offset(k));
                // An operand in the output's place is read through it, so that the loop has no
                // memory to compare.
                let (own_a, own_b) = (a == out.cast_const(), b == out.cast_const());
                match (self.still_a, self.still_b) {
                    (false, false) if own_a && own_b => each(out, n, |_, x| f.apply(x, x)),
                    (false, false) if own_a => each(out, n, |l, x| f.apply(x, *b.add(l))),
                    (false, false) if own_b => each(out, n, |l, y| f.apply(*a.add(l), y)),
                    (false, false) => {
                        for l in 0..n {
                            *out.add(l) = f.apply(*a.add(l), *b.add(l));
                        }
                    }
                    (false, true) => {
                        let y = *b;
                        if own_a {
                            each(out, n, |_, x| f.apply(x, y));
                        } else {
                            for l in 0..n {
                                *out.add(l) = f.apply(*a.add(l), y);
                            }
                        }
                    }
                    (true, false) => {
                        let x = *a;
                        if own_b {
                            each(out, n, |_, y| f.apply(x, y));
                        } else {
                            for l in 0..n {
                                *out.add(l) = f.apply(x, *b.add(l));
                            }
                        }
                    }
                    (true, true) => {
                        let value = f.apply(*a, *b);
                        each(out, n, |_, _| value);
                    }
                }
            }
        }
    }
}

/// # Safety
/// `n` elements exist.
#[inline(always)]
unsafe fn each<T: Copy>(out: *mut T, n: usize, f: impl Fn(usize, T) -> T) {
    for l in 0..n {
        // SAFETY: the caller's promise.
        unsafe { *out.add(l) = f(l, *out.add(l)) };
    }
}
