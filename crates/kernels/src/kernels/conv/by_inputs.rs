//! The weight gradient of convolutions with many input channels and several taps: vectors run along the
//! input channels, which are turned once to lie behind each position, so that all taps read one copy.

use super::geometry::{AXES, Class};
use super::outer::Job;
use super::source::{Form, Layout};
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::microkernel::{B_BY_TABLE, Start, TABLE_TAIL, Tile, span, tile};
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::transpose::gather_columns;
use crate::parallel::num_threads;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};

const NAME: &str = "ConvGradWeight";
/// Positions that one block of a chain holds: a panel of the gradient and its rows of the input stay in
/// the first-level cache.
const BLOCK: usize = 256;
/// Elements of the copies that one group of images takes, if a single image is not larger.
const CHUNK: usize = 1 << 17;
const MOST_PARTS: usize = 4;

/// Whether the input channels of a group fill their vectors, and several taps share a copy.
pub(super) fn fits<E: Real>(job: &Job<'_, E>) -> bool {
    let lanes = job.channels.next_multiple_of(LANES);
    job.taps > 1 && job.m >= LANES && job.channels > 0 && 8 * job.channels >= 7 * lanes
}

/// Extents and copies that all parts share.
struct Plan<'a, E> {
    job: Job<'a, E>,
    layout: &'a Layout,
    /// Channels of a position of the copy, whole vectors.
    width: usize,
    /// Positions of an image, of the output and of the copy.
    positions: usize,
    extent: usize,
    /// Where a copy holds what each position reads, relative to a tap.
    table: &'a [u32],
    /// Where each tap begins.
    taps: &'a [usize],
    inputs: *mut E,
    gradients: *mut E,
    /// Row (output channel, tap) at `(channel * taps + tap) * width`.
    sums: *mut E,
}

/// Computes all weights on the pool.
///
/// # Errors
/// `Memory` when there is no room for the copies.
pub(super) fn run<E: Real>(
    job: &Job<'_, E>,
    isa: Isa,
    sizes: [usize; AXES],
    strides: [usize; AXES],
) -> Result<()> {
    let width = job.channels.next_multiple_of(LANES);
    let form = Form { in_place: false, phases: false };
    let class = std::slice::from_ref(job.class);
    let layout = Layout::new(NAME, class, sizes, strides, width, form)?;
    let positions: usize = job.output.iter().product();
    let (extent, rows) = (layout.channel, job.m);
    let room = |n: usize| Scratch::new(NAME, n * size_of::<E>());
    let chunk = (CHUNK / (extent * width + positions * rows).max(1)).clamp(1, job.images.max(1));
    let mut inputs = room(chunk * extent * width)?;
    let mut gradients = room(chunk * positions * rows)?;
    let mut sums = room(rows * job.taps * width)?;
    let mut table = Scratch::new(NAME, (positions + TABLE_TAIL) * size_of::<u32>())?;
    let table = table.as_mut::<u32>();
    fill_table(table, job.output, strides, layout.extents, width);
    // What lies outside the input stays zero for all images.
    inputs.as_mut::<E>().fill(E::default());
    let plan = Plan {
        job: *job,
        layout: &layout,
        width,
        positions,
        extent,
        table,
        taps: &tap_offsets(job.class, &layout, width),
        inputs: inputs.as_mut::<E>().as_mut_ptr(),
        gradients: gradients.as_mut::<E>().as_mut_ptr(),
        sums: sums.as_mut::<E>().as_mut_ptr(),
    };
    let operations = 2 * rows * job.n() * positions * chunk;
    let parts = parts_of(operations).min(num_threads()).min(MOST_PARTS);
    let shared = Shared::new(std::ptr::from_ref(&plan));
    for group in 0..job.groups {
        let mut first = 0;
        while first < job.images {
            let images = (first, (first + chunk).min(job.images));
            try_for_each(parts, |part| {
                // SAFETY: the plan outlives the region; parts write items of their own.
                unsafe { (*shared.get()).copy(group, images, (part, parts)) };
                Ok(())
            })?;
            try_for_each(parts, |part| {
                // SAFETY: as above; each part computes tiles of its own.
                let plan = unsafe { &*shared.get() };
                dispatch_on(isa, Tiles { plan, isa, images, part: (part, parts) });
                Ok(())
            })?;
            first = images.1;
        }
        try_for_each(parts, |part| {
            // SAFETY: as above; parts write output channels of their own.
            unsafe { (*shared.get()).store(group, (part, parts)) };
            Ok(())
        })?;
    }
    Ok(())
}

fn fill_table(
    table: &mut [u32],
    [od, oh, ow]: [usize; AXES],
    strides: [usize; AXES],
    [_, height, pitch]: [usize; AXES],
    width: usize,
) {
    let mut at = 0;
    for d in 0..od {
        for h in 0..oh {
            let row = (d * strides[0] * height + h * strides[1]) * pitch;
            for w in 0..ow {
                table[at] = ((row + w * strides[2]) * width) as u32;
                at += 1;
            }
        }
    }
    let last = table[at - 1];
    table[at..].fill(last);
}

fn tap_offsets(class: &Class, layout: &Layout, width: usize) -> Vec<usize> {
    let [td, th, tw] = &class.taps;
    let mut offsets = Vec::with_capacity(td.len() * th.len() * tw.len());
    for &(_, d) in td {
        for &(_, h) in th {
            for &(_, w) in tw {
                offsets.push(layout.offset([d, h, w]) * width);
            }
        }
    }
    offsets
}

/// The share of `count` items that a part takes.
fn share(count: usize, (part, parts): (usize, usize)) -> std::ops::Range<usize> {
    count * part / parts..count * (part + 1) / parts
}

impl<E: Real> Plan<'_, E> {
    /// Turns a part's share of the images' inputs and gradients: channels behind positions.
    unsafe fn copy(&self, group: usize, images: (usize, usize), part: (usize, usize)) {
        let job = &self.job;
        let (strips, panels) = (job.channels.div_ceil(LANES), job.panels.count);
        let size: usize = self.layout.sizes.iter().product();
        let count = images.1 - images.0;
        for item in share(count * strips, part) {
            let (at, c) = (item / strips, item % strips * LANES);
            let unit = (images.0 + at) * job.groups + group;
            // SAFETY: channels of an image; the copy has its extent.
            unsafe {
                let from = job.x.add((unit * job.channels + c) * size);
                let to = self.inputs.add(at * self.extent * self.width + c);
                let channels = (job.channels - c).min(LANES);
                self.layout.for_rows(|source, _, inside, n| {
                    let (to, from) = (to.add(inside * self.width), from.add(source));
                    gather_columns(to, self.width, channels, n, false, |j| from.add(j * size));
                });
            }
        }
        for item in share(count * panels, part) {
            let (at, panel) = (item / panels, item % panels);
            let (start, height) = (job.panels.start(panel), job.panels.rows(panel));
            let unit = (images.0 + at) * job.groups + group;
            let n = self.positions;
            // SAFETY: as above.
            unsafe {
                let from = job.g.add((unit * job.m + start) * n);
                let to = self.gradients.add((at * job.m + start) * n);
                gather_columns(to, height, height, n, false, |j| from.add(j * n));
            }
        }
    }

    /// Writes a part's share of the output channels.
    unsafe fn store(&self, group: usize, part: (usize, usize)) {
        let (taps, channels) = (self.job.taps, self.job.channels);
        for o in share(self.job.m, part) {
            // SAFETY: the weights of one output channel, and their sums.
            unsafe {
                let to = self.job.dw.add((group * self.job.m + o) * channels * taps);
                let from = self.sums.add(o * taps * self.width);
                for c in 0..channels {
                    for tap in 0..taps {
                        *to.add(c * taps + tap) = *from.add(tap * self.width + c);
                    }
                }
            }
        }
    }
}

/// A part's share of the tiles, for some images.
struct Tiles<'a, E> {
    plan: &'a Plan<'a, E>,
    isa: Isa,
    images: (usize, usize),
    part: (usize, usize),
}

impl<E: Real> WithSimd for Tiles<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let plan = self.plan;
        let job = &plan.job;
        let most = span(E::accumulators(self.isa), job.panels.rows(0));
        let vectors = plan.width / LANES;
        let strips = vectors.div_ceil(most);
        let blocks = plan.positions.div_ceil(BLOCK);
        let units = share(job.taps * strips * job.panels.count, self.part);
        for image in self.images.0..self.images.1 {
            let at = image - self.images.0;
            for block in 0..blocks {
                let k0 = plan.positions * block / blocks;
                let k1 = plan.positions * (block + 1) / blocks;
                let first = image == 0 && block == 0;
                let mut unit = units.start;
                while unit < units.end {
                    let (column, panel) = (unit / job.panels.count, unit % job.panels.count);
                    let (tap, strip) = (column % job.taps, column / job.taps);
                    let mut v = strip * most;
                    let end = (v + most).min(vectors);
                    while v < end {
                        // A power of two, as the tiles come.
                        let wide = 1usize << (end - v).ilog2();
                        // SAFETY: the copies hold the positions of all taps, the sums this tile.
                        unsafe { self.tile(s, (at, k0, k1), (panel, tap), (v, wide), first) };
                        v += wide;
                    }
                    unit += 1;
                }
            }
        }
    }
}

impl<E: Real> Tiles<'_, E> {
    #[inline(always)]
    unsafe fn tile<S: Simd>(
        &self,
        s: S,
        (at, k0, k1): (usize, usize, usize),
        (panel, tap): (usize, usize),
        (v, wide): (usize, usize),
        first: bool,
    ) {
        let plan = self.plan;
        let job = &plan.job;
        let (start, rows) = (job.panels.start(panel), job.panels.rows(panel));
        let stride = (job.taps * plan.width) as isize;
        // SAFETY: the caller's promise.
        unsafe {
            let c = plan.sums.add((start * job.taps + tap) * plan.width + v * LANES);
            let t = Tile {
                k: k1 - k0,
                a: plan.gradients.add((at * job.m + start) * plan.positions + k0 * rows),
                b: plan.inputs.add(at * plan.extent * plan.width + plan.taps[tap] + v * LANES),
                step: 0,
                table: plan.table.as_ptr().add(k0),
                ahead: std::ptr::null(),
                ahead_step: 0,
                panel: 0,
                start: if first { Start::Zero } else { Start::Load { ptr: c, stride } },
                c,
                c_stride: stride,
                n: wide * LANES,
                relu: false,
                finish: None,
            };
            tile::<S, E, B_BY_TABLE>(s, rows, wide, &t);
        }
    }
}
