//! The weight gradient of convolutions with few output channels, or few weights for each of them: one
//! vector holds the channels, or a strip of them, and what a tap reads is broadcast, so that nothing but
//! the gradient is packed.

use super::outer::Job;
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::transpose::gather_columns;
use crate::parallel::num_threads;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};

/// Output channels from which on the lanes are used well enough.
const FEWEST: usize = 4;
/// Parts of one group at most: each packs the gradient for itself.
const MOST_PARTS: usize = 4;
/// Accumulators of one pass.
const LARGEST: usize = 28;

/// Whether the channels of a group fit one vector, or one pass holds all weights of a channel.
pub(super) fn fits<E: Real>(job: &Job<'_, E>) -> bool {
    let strips = job.m.next_multiple_of(LANES);
    (FEWEST..=LANES).contains(&job.m) || job.n() <= LARGEST && 8 * job.m >= 7 * strips
}

/// Computes all weights on the pool.
///
/// # Errors
/// `Memory` when there is no room to pack.
pub(super) fn run<E: Real>(job: &Job<'_, E>, isa: Isa) -> Result<()> {
    let positions = job.images * job.output.iter().product::<usize>();
    let operations = 2 * LANES * job.n() * positions;
    // Each weight is a chain of its own, so no bit depends on how many parts there are.
    let wanted = parts_of(operations).min(num_threads()).min(MOST_PARTS);
    let parts = wanted.min(job.n().div_ceil(LARGEST / 2));
    let strips = job.m.div_ceil(LANES);
    let shared = Shared::new(*job);
    try_for_each(job.groups * strips * parts, |part| {
        let job = shared.get();
        let (unit, part) = (part / parts, part % parts);
        let columns = (job.n() * part / parts, job.n() * (part + 1) / parts);
        weights(&job, isa, (unit / strips, unit % strips * LANES), columns)
    })
}

/// The weights of some columns (a tap of an input channel each) for the channels of one group from
/// `start` on that one vector holds.
fn weights<E: Real>(
    job: &Job<'_, E>,
    isa: Isa,
    (group, start): (usize, usize),
    (first, end): (usize, usize),
) -> Result<()> {
    let room = |n: usize| Scratch::new("ConvGradWeight", n * size_of::<E>());
    let n = end - first;
    let (c0, c1) = (first / job.taps, end.div_ceil(job.taps));
    let mut copy = room(job.copied(c0, c1))?;
    let mut gradient = room(job.output[2] * LANES)?;
    let mut sums = room((n + LARGEST) * LANES)?;
    let mut offsets = Scratch::new("ConvGradWeight", (n + LARGEST) * size_of::<u32>())?;
    let offsets = offsets.as_mut::<u32>();
    job.offsets(offsets, first, end, c0);
    // Sums behind the last column are not kept.
    let last = offsets[n - 1];
    offsets[n..n + LARGEST].fill(last);
    gradient.as_mut::<E>().fill(E::default());
    sums.as_mut::<E>().fill(E::default());
    let sums = sums.as_mut::<E>().as_mut_ptr();
    let copy = copy.as_mut::<E>().as_mut_ptr();
    let gradient = gradient.as_mut::<E>().as_mut_ptr();
    let outputs = (start, (job.m - start).min(LANES));
    let channels = (c0, c1);
    dispatch_on(isa, Pass { job, group, outputs, channels, n, offsets, copy, gradient, sums });
    for j in 0..outputs.1 {
        let row = (group * job.m + start + j) * job.n() + first;
        for t in 0..n {
            // SAFETY: the weight of this channel and column, which this part alone writes.
            unsafe { *job.dw.add(row + t) = *sums.add(t * LANES + j) };
        }
    }
    Ok(())
}

struct Pass<'a, E> {
    job: &'a Job<'a, E>,
    group: usize,
    /// The first output channel and their number.
    outputs: (usize, usize),
    channels: (usize, usize),
    n: usize,
    offsets: &'a [u32],
    copy: *mut E,
    /// One output row: the channels of a position together.
    gradient: *mut E,
    /// The channels of a column together.
    sums: *mut E,
}

impl<E: Real> WithSimd for Pass<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let job = self.job;
        let [depth, height, width] = job.output;
        let [_, source_height, pitch] = job.layout.extents;
        let positions = depth * height * width;
        let most = match E::accumulators(S::ISA) {
            LARGEST.. => LARGEST,
            10.. => 10,
            _ => 4,
        };
        // The smallest passes that are no more in number than the largest would be.
        let each = match self.n.div_ceil(self.n.div_ceil(most)) {
            ..=4 => 4,
            5..=10 => 10,
            11..=16 => 16,
            17..=25 => 25,
            _ => LARGEST,
        };
        let passes = self.n.div_ceil(each);
        for image in 0..job.images {
            // SAFETY: the tensors have the job's extents, the working memory the sizes above.
            unsafe {
                let (c0, c1) = self.channels;
                let source = job.image(image, self.group, c0, c1, self.copy);
                let (start, outputs) = self.outputs;
                let unit = (image * job.groups + self.group) * job.m;
                let g = job.g.add((unit + start) * positions);
                for row in 0..depth * height {
                    let from = g.add(row * width);
                    let channel = |j: usize| from.add(j * positions);
                    // Eight elements follow each row but the last ones of the tensor.
                    let past = row * width + width + 8 <= positions;
                    gather_columns(self.gradient, LANES, outputs, width, past, channel);
                    let at = source.add((row / height * source_height + row % height) * pitch);
                    for pass in 0..passes {
                        let sums = self.sums.add(pass * each * LANES);
                        let offsets = &self.offsets[pass * each..];
                        match each {
                            4 => self.row::<S, 4>(s, at, offsets, sums),
                            10 => self.row::<S, 10>(s, at, offsets, sums),
                            16 => self.row::<S, 16>(s, at, offsets, sums),
                            25 => self.row::<S, 25>(s, at, offsets, sums),
                            _ => self.row::<S, LARGEST>(s, at, offsets, sums),
                        }
                    }
                }
            }
        }
    }
}

impl<E: Real> Pass<'_, E> {
    /// Adds an output row to `T` sums.
    #[inline(always)]
    unsafe fn row<S: Simd, const T: usize>(
        &self,
        s: S,
        source: *const E,
        offsets: &[u32],
        sums: *mut E,
    ) {
        let mut acc = [E::splat(s, E::default()); T];
        let mut from = [source; T];
        // SAFETY: T sums and offsets, and a row of the gradient and of what each tap reads.
        unsafe {
            for t in 0..T {
                acc[t] = E::load(s, sums.add(t * LANES));
                from[t] = source.add(*offsets.get_unchecked(t) as usize);
            }
            for k in 0..self.job.output[2] {
                let g = E::load(s, self.gradient.add(k * LANES));
                for t in 0..T {
                    acc[t] = E::v_fma(s, E::splat(s, *from[t].add(k)), g, acc[t]);
                }
            }
            for t in 0..T {
                E::store(s, sums.add(t * LANES), acc[t]);
            }
        }
    }
}
