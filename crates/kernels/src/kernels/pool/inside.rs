//! f32 maxima of windows that all lie inside the plane: sixteen outputs of a row at a time, read where
//! they lie.

use super::best::{Maxima, Places};
use super::places::Indices;
use super::planes::Planes;
use crate::error::Result;
use crate::kernels::gemm::microkernel::prefetch;
use crate::kernels::lanes::Lane;
use crate::scratch::Scratch;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::SmallVec;

/// Computes some planes, if their windows have two axes, take every column or every second one, and
/// reach no padding; else returns false. With `indices` the places in the whole input as well.
///
/// # Errors
/// `Memory` for the copy of the last elements.
///
/// # Safety
/// x and y hold all planes, and indices one place for each output.
pub(super) unsafe fn run(
    operator: &str,
    p: &Planes,
    range: std::ops::Range<usize>,
    x: *const f32,
    y: *mut f32,
    indices: Option<Indices>,
) -> Result<bool> {
    let w = &p.window;
    let ends = |axis: usize| {
        (p.output[axis] - 1) * w.strides[axis] + (w.kernel[axis] - 1) * w.dilations[axis]
    };
    let flat = w.kernel[0] == 1 && p.sizes[0] == 1 && p.output[0] == 1;
    let inside = w.begins == [0; 3] && ends(1) < p.sizes[1] && ends(2) < p.sizes[2];
    if !flat || !inside || w.strides[2] > 2 || p.input_size() > 1 << 30 {
        return Ok(false);
    }
    let mut taps = SmallVec::new();
    for i in 0..w.kernel[1] {
        for j in 0..w.kernel[2] {
            taps.push(i * w.dilations[1] * p.sizes[2] + j * w.dilations[2]);
        }
    }
    let reach = taps.last().copied().unwrap_or(0) + 2 * LANES;
    let mut scratch = Scratch::new(operator, reach * size_of::<f32>())?;
    let end = &mut scratch.as_mut::<f32>()[..reach];
    end.fill(0.0);
    dispatch(Job { p, taps: &taps, range, x, y, indices, end });
    Ok(true)
}

/// Elements of an input that the second-level cache may still hold.
const NEAR: usize = 1 << 19;

struct Job<'a> {
    p: &'a Planes,
    taps: &'a SmallVec<[usize; 16]>,
    range: std::ops::Range<usize>,
    x: *const f32,
    y: *mut f32,
    indices: Option<Indices>,
    /// Room for what is left of the input where a vector would reach behind it.
    end: &'a mut [f32],
}

impl WithSimd for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (p, [_, oh, ow]) = (self.p, self.p.output);
        let (input, all) = (p.input_size(), p.count * p.input_size());
        let [_, down, right] = p.window.strides;
        let far = all > NEAR;
        for plane in self.range {
            for h in 0..oh {
                if far {
                    // What the output row after the next reads.
                    let next = plane * input + (h + 2) * down * p.sizes[2];
                    ask(self.x.wrapping_add(next), down * p.sizes[2]);
                }
                let mut w = 0;
                while w < ow {
                    let n = LANES.min(ow - w);
                    let inside = h * down * p.sizes[2] + w * right;
                    let at = plane * input + inside;
                    let to = plane * oh * ow + h * ow + w;
                    // SAFETY: `n` windows inside the plane; where whole vectors would not be, they
                    // are read from a copy of all that is left.
                    unsafe {
                        let mut from = self.x.add(at);
                        if at + self.end.len() > all {
                            let end = self.end.as_mut_ptr();
                            std::ptr::copy_nonoverlapping(from, end, all - at);
                            from = end;
                        }
                        let tile = Tile { taps: self.taps, from, y: self.y.add(to), n };
                        let base = (plane * input) as i64;
                        match (self.indices, right) {
                            (None, 1) => tile.maxima::<S, 1>(s),
                            (None, _) => tile.maxima::<S, 2>(s),
                            (Some(i), 1) => tile.places::<S, 1>(s, inside, base, (i, to)),
                            (Some(i), _) => tile.places::<S, 2>(s, inside, base, (i, to)),
                        }
                    }
                    w += LANES;
                }
            }
        }
    }
}

/// Asks for `n` elements ahead of their use.
#[inline(never)]
fn ask(x: *const f32, n: usize) {
    for i in (0..n).step_by(LANES) {
        prefetch(x.wrapping_add(i));
    }
}

/// From the first of sixteen outputs to each of them.
struct Steps<const STEP: usize>;

impl<const STEP: usize> Steps<STEP> {
    const LANES: [i32; LANES] = {
        let mut steps = [0; LANES];
        let mut l = 0;
        while l < LANES {
            steps[l] = (l * STEP) as i32;
            l += 1;
        }
        steps
    };
}

/// `n` neighbouring outputs.
struct Tile<'a> {
    taps: &'a [usize],
    from: *const f32,
    y: *mut f32,
    n: usize,
}

impl Tile<'_> {
    #[inline(always)]
    unsafe fn load<S: Simd, const STEP: usize>(&self, s: S, tap: usize) -> S::F {
        // SAFETY: the caller's vectors.
        unsafe {
            let from = self.from.add(tap);
            if STEP == 2 { s.load_even(from) } else { s.load(from) }
        }
    }

    #[inline(always)]
    unsafe fn maxima<S: Simd, const STEP: usize>(&self, s: S) {
        let mut maxima = Maxima::new(s);
        // SAFETY: the caller's vectors and `n` outputs.
        unsafe {
            for &tap in self.taps {
                maxima.take(s, self.load::<S, STEP>(s, tap));
            }
            f32::put(s, self.y, self.n, maxima.found(s));
        }
    }

    /// The maxima and their places, where output 0's first tap is `first` elements into a plane that
    /// begins at `base`.
    #[inline(always)]
    unsafe fn places<S: Simd, const STEP: usize>(
        &self,
        s: S,
        first: usize,
        base: i64,
        (indices, to): (Indices, usize),
    ) {
        // SAFETY: the caller's vectors, `n` outputs and `n` indices, and an array of 16.
        unsafe {
            let start = s.add_i(s.splat_i(first as i32), s.load_i(Steps::<STEP>::LANES.as_ptr()));
            let mut places = Places::new(s, start);
            for &tap in self.taps {
                let place = s.add_i(start, s.splat_i(tap as i32));
                places.take(s, self.load::<S, STEP>(s, tap), place);
            }
            f32::put(s, self.y, self.n, places.best);
            indices.put_lanes(s, to, self.n, places.place, base);
        }
    }
}
