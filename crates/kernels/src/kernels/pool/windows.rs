//! f32 pools of planes: sixteen outputs of a row at a time, from a copy of the plane with its
//! padding.
//!
//! The copy holds every row that a window reaches, with the columns of each remainder by the stride
//! together, so that one tap of neighbouring outputs is one vector. Padding holds what changes no
//! result: +0.0 for a sum that starts from +0.0, -inf for a maximum.

use super::best::{Maxima, Places};
use super::places::Indices;
use super::planes::Planes;
use crate::error::Result;
use crate::kernels::lanes::{Lane, for_lanes};
use crate::scratch::Scratch;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::SmallVec;

/// What is computed of each window.
#[derive(Clone, Copy)]
pub(super) enum Task<'a> {
    /// The sum over `rows[h] * columns[w]`, whole numbers.
    Mean {
        rows: &'a [f32],
        columns: &'a [f32],
    },
    Maximum,
    /// The maximum and its place in the whole input.
    Place {
        indices: Indices,
    },
}

/// Where things lie in the copy of a plane.
struct Layout {
    /// Elements of the columns of one remainder in one row.
    phase: usize,
    row: usize,
    rows: usize,
    taps: SmallVec<[Tap; 32]>,
}

struct Tap {
    /// From an output's first element in the copy.
    offset: usize,
    /// In the plane, from the place of the first tap.
    place: i32,
}

impl Layout {
    fn new(p: &Planes) -> Self {
        let [_, oh, ow] = p.output;
        let (window, [_, kh, kw]) = (&p.window, p.window.kernel);
        let (stride, dilation) = (window.strides[2], window.dilations[2]);
        let phase = ow.next_multiple_of(LANES) + (kw - 1) * dilation / stride;
        let row = phase * stride;
        let rows = (oh - 1) * window.strides[1] + (kh - 1) * window.dilations[1] + 1;
        let mut taps = SmallVec::new();
        for i in 0..kh {
            for j in 0..kw {
                let (down, right) = (i * window.dilations[1], j * dilation);
                let offset = down * row + right % stride * phase + right / stride;
                taps.push(Tap { offset, place: (down * p.sizes[2] + right) as i32 });
            }
        }
        Self { phase, row, rows, taps }
    }
}

/// Computes some planes, if their windows have two axes; else returns false.
///
/// # Errors
/// `Memory` for the copy.
///
/// # Safety
/// x and y hold the planes, and indices one place for each output.
pub(super) unsafe fn run(
    operator: &str,
    p: &Planes,
    range: std::ops::Range<usize>,
    x: *const f32,
    y: *mut f32,
    task: Task<'_>,
) -> Result<bool> {
    if p.window.kernel[0] != 1 || p.sizes[0] != 1 || p.output[0] != 1 || p.input_size() > 1 << 30 {
        return Ok(false);
    }
    let layout = Layout::new(p);
    let room = layout.rows.saturating_mul(layout.row);
    // A window far beyond the plane would need a copy of nothing but padding.
    if room > 4 * p.input_size() + 4096 {
        return Ok(false);
    }
    let mut scratch = Scratch::new(operator, room * size_of::<f32>())?;
    let copy = &mut scratch.as_mut::<f32>()[..room];
    copy.fill(if matches!(task, Task::Mean { .. }) { 0.0 } else { f32::NEG_INFINITY });
    dispatch(Job { p, layout: &layout, range, x, y, copy, task });
    Ok(true)
}

struct Job<'a> {
    p: &'a Planes,
    layout: &'a Layout,
    range: std::ops::Range<usize>,
    x: *const f32,
    y: *mut f32,
    copy: &'a mut [f32],
    task: Task<'a>,
}

impl WithSimd for Job<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (p, layout) = (self.p, self.layout);
        let (input, output, [_, oh, ow]) = (p.input_size(), p.output_size(), p.output);
        let copy = self.copy.as_mut_ptr();
        for plane in self.range {
            // SAFETY: a plane of each array; the copy has room for every row that a window reaches,
            // and each row for whole vectors of outputs.
            unsafe {
                let x = self.x.add(plane * input);
                match p.window.strides[2] {
                    1 => fill::<S, 1>(s, p, layout, x, copy),
                    2 => fill::<S, 2>(s, p, layout, x, copy),
                    3 => fill::<S, 3>(s, p, layout, x, copy),
                    _ => fill::<S, 0>(s, p, layout, x, copy),
                }
                for h in 0..oh {
                    let from = copy.add(h * p.window.strides[1] * layout.row).cast_const();
                    let y = self.y.add(plane * output + h * ow);
                    match self.task {
                        Task::Mean { rows, columns } => {
                            means(s, layout, from, y, &columns[..ow], rows[h]);
                        }
                        Task::Maximum => maxima(s, layout, from, y, ow),
                        Task::Place { indices } => {
                            let to = plane * output + h * ow;
                            places(s, p, layout, from, (plane, h), y, (indices, to));
                        }
                    }
                }
            }
        }
    }
}

/// Copies the plane's elements to their places; `STEP` is the stride, or 0 for any.
#[inline(always)]
unsafe fn fill<S: Simd, const STEP: usize>(
    s: S,
    p: &Planes,
    layout: &Layout,
    x: *const f32,
    copy: *mut f32,
) {
    let [_, height, width] = p.sizes;
    let (up, left) = (p.window.begins[1], p.window.begins[2]);
    let step = if STEP == 0 { p.window.strides[2] } else { STEP };
    for row in up..layout.rows.min(up + height) {
        for phase in 0..step {
            // The first column at or after the plane's, and how many of this remainder lie inside.
            let first = left.saturating_sub(phase).div_ceil(step);
            let column = first * step + phase - left;
            let count = width.saturating_sub(column).div_ceil(step);
            let count = count.min(layout.phase.saturating_sub(first));
            // SAFETY: elements of the plane, and of the copy's row.
            unsafe {
                let from = x.add((row - up) * width + column);
                let to = copy.add(row * layout.row + phase * layout.phase + first);
                if STEP == 1 {
                    for_lanes!(count, |i, n| f32::put(
                        s,
                        to.add(i),
                        n,
                        f32::get(s, from.add(i), n)
                    ));
                    continue;
                }
                for i in 0..count {
                    *to.add(i) = *from.add(i * step);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn means<S: Simd>(
    s: S,
    layout: &Layout,
    from: *const f32,
    y: *mut f32,
    columns: &[f32],
    rows: f32,
) {
    let mut w = 0;
    while w < columns.len() {
        let count = LANES.min(columns.len() - w);
        let mut acc = s.splat(0.0);
        // SAFETY: whole vectors of the copy, and `count` outputs.
        unsafe {
            for tap in &layout.taps {
                acc = s.add(acc, s.load(from.add(tap.offset + w)));
            }
            let columns = f32::get(s, columns.as_ptr().add(w), count);
            f32::put(s, y.add(w), count, s.div(acc, s.mul(s.splat(rows), columns)));
        }
        w += LANES;
    }
}

#[inline(always)]
unsafe fn maxima<S: Simd>(s: S, layout: &Layout, from: *const f32, y: *mut f32, n: usize) {
    let mut w = 0;
    while w < n {
        let mut maxima = Maxima::new(s);
        // SAFETY: whole vectors of the copy, and at most `n` outputs.
        unsafe {
            for tap in &layout.taps {
                maxima.take(s, s.load(from.add(tap.offset + w)));
            }
            f32::put(s, y.add(w), LANES.min(n - w), maxima.found(s));
        }
        w += LANES;
    }
}

#[inline(always)]
unsafe fn places<S: Simd>(
    s: S,
    p: &Planes,
    layout: &Layout,
    from: *const f32,
    (plane, h): (usize, usize),
    y: *mut f32,
    (indices, to): (Indices, usize),
) {
    let ow = p.output[2];
    let (stride, width) = (p.window.strides[2] as i32, p.sizes[2] as i32);
    let base = (plane * p.input_size()) as i64;
    // The place of the first tap of output 0, counted as if the padding were part of the rows.
    let row = (h * p.window.strides[1]) as i32 - p.window.begins[1] as i32;
    let corner = row * width - p.window.begins[2] as i32;
    let first_row = first_inside(p, 1, h);
    let mut steps = [0i32; LANES];
    for l in 0..LANES {
        steps[l] = l as i32 * stride;
    }
    let mut w = 0;
    while w < ow {
        let count = LANES.min(ow - w);
        // Where nothing replaces -inf the first tap inside is the place, or none.
        let mut first = [-1i32; LANES];
        for l in 0..count {
            if let (Some(i), Some(j)) = (first_row, first_inside(p, 2, w + l)) {
                first[l] = (i * p.sizes[2] + j) as i32;
            }
        }
        // SAFETY: whole vectors of the copy, `count` outputs, and arrays of 16.
        unsafe {
            let start = s.add_i(s.load_i(steps.as_ptr()), s.splat_i(corner + w as i32 * stride));
            let mut places = Places::new(s, s.load_i(first.as_ptr()));
            for tap in &layout.taps {
                let place = s.add_i(start, s.splat_i(tap.place));
                places.take(s, s.load(from.add(tap.offset + w)), place);
            }
            f32::put(s, y.add(w), count, places.best);
            indices.put_lanes(s, to + w, count, places.place, base);
        }
        w += LANES;
    }
}

/// The first position inside of output `o`'s window on an axis.
#[inline(always)]
fn first_inside(p: &Planes, axis: usize, o: usize) -> Option<usize> {
    let w = &p.window;
    let start = o * w.strides[axis];
    let k = w.begins[axis].saturating_sub(start).div_ceil(w.dilations[axis]);
    let at = (start + k * w.dilations[axis]).wrapping_sub(w.begins[axis]);
    (k < w.kernel[axis] && at < p.sizes[axis]).then_some(at)
}
