//! Sums over all planes of a channel, where planes are whole vectors: several channels side by side, so
//! that no sum waits for its last addition. The lanes are those of a row of the channel's elements.

use crate::array::Array;
use crate::kernels::gemm::microkernel::prefetch;
use crate::kernels::lanes::{Lane, Term, add_term};
use crate::parallel;
use crate::simd::{LANES, Simd, WithSimd};

/// The planes of a contiguous (N, C, spatial…) array.
#[derive(Clone, Copy)]
pub(super) struct Planes {
    images: usize,
    channels: usize,
    plane: usize,
}

impl Planes {
    /// `None` where lanes would begin anew inside a vector.
    pub(super) fn of(x: &Array) -> Option<Self> {
        let [images, channels, spatial @ ..] = x.shape() else { return None };
        let plane = spatial.iter().product::<usize>();
        let whole = x.is_contiguous() && plane > 0 && plane % LANES == 0;
        whole.then_some(Self { images: *images, channels: *channels, plane })
    }

    /// The most channels of a group.
    pub(super) const MOST: usize = 32;

    /// Calls `body` with the first and the number of channels of each group: as many as leave their
    /// planes of `arrays` arrays in the second-level cache.
    pub(super) fn for_each_group<T>(self, arrays: usize, body: impl Fn(usize, usize) + Sync) {
        const NEAR_BYTES: usize = 1 << 19;
        let bytes = arrays * self.images * self.plane * size_of::<T>();
        let group = (NEAR_BYTES / bytes.max(1)).clamp(2, Self::MOST);
        parallel::for_ranges(self.channels, group, |range| body(range.start, range.len()));
    }

    /// Where a channel's planes begin.
    pub(super) fn starts(self, channel: usize) -> impl Iterator<Item = usize> {
        (0..self.images).map(move |image| (image * self.channels + channel) * self.plane)
    }

    /// Elements of a plane.
    pub(super) fn plane(self) -> usize {
        self.plane
    }

    /// Elements of a channel.
    pub(super) fn count(self) -> f64 {
        (self.images * self.plane) as f64
    }
}

/// Elements that both arrays of [`Moments`] are asked for ahead.
const AHEAD: usize = 512;

/// Runs the body with the offset of each vector of a channel, in order.
macro_rules! for_vectors {
    ($planes:expr, $channel:expr, |$at:ident| $body:block) => {
        for image in 0..$planes.images {
            let plane = (image * $planes.channels + $channel) * $planes.plane;
            let mut i = 0;
            while i < $planes.plane {
                let $at = plane + i;
                $body
                i += LANES;
            }
        }
    };
}

/// The mean and the biased variance of channels from `first` on, in pairs.
pub(super) struct Statistics<'a, T> {
    pub(super) planes: Planes,
    pub(super) x: *const T,
    pub(super) first: usize,
    pub(super) found: &'a mut [f64],
}

impl<T: Lane> WithSimd for Statistics<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let count = self.found.len() / 2;
        let mut k = 0;
        while k + 4 <= count {
            self.channels::<S, 4>(s, k);
            k += 4;
        }
        while k < count {
            self.channels::<S, 1>(s, k);
            k += 1;
        }
    }
}

impl<T: Lane> Statistics<'_, T> {
    #[inline(always)]
    fn channels<S: Simd, const K: usize>(&mut self, s: S, k: usize) {
        let (planes, x) = (self.planes, self.x);
        let mut means = [0.0; K];
        let mut sums = [s.splat_d(0.0); K];
        for_vectors!(planes, self.first + k, |at| {
            for j in 0..K {
                // SAFETY: a vector of a plane of the array.
                let v = unsafe { T::load(s, x.add(at + j * planes.plane)) };
                sums[j] = add_term::<T, S>(s, Term::Value, sums[j], v);
            }
        });
        for j in 0..K {
            means[j] = s.tree_add_d(sums[j]) / planes.count();
            sums[j] = s.splat_d(0.0);
        }
        for_vectors!(planes, self.first + k, |at| {
            for j in 0..K {
                // SAFETY: as above.
                let v = unsafe { T::load(s, x.add(at + j * planes.plane)) };
                sums[j] = add_term::<T, S>(s, Term::Deviation(means[j]), sums[j], v);
            }
        });
        for j in 0..K {
            self.found[2 * (k + j)] = means[j];
            self.found[2 * (k + j) + 1] = s.tree_add_d(sums[j]) / planes.count();
        }
    }
}

/// `sum g` and `sum fma(g, x - mean)` of channels from `first` on, in pairs; x - mean is rounded to the
/// dtype.
pub(super) struct Moments<'a, T> {
    pub(super) planes: Planes,
    pub(super) x: *const T,
    pub(super) g: *const T,
    pub(super) means: &'a [f64],
    pub(super) first: usize,
    pub(super) found: &'a mut [f64],
}

impl<T: Lane> WithSimd for Moments<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let count = self.found.len() / 2;
        let mut k = 0;
        while k + 2 <= count {
            self.channels::<S, 2>(s, k);
            k += 2;
        }
        if k < count {
            self.channels::<S, 1>(s, k);
        }
    }
}

impl<T: Lane> Moments<'_, T> {
    #[inline(always)]
    fn channels<S: Simd, const K: usize>(&mut self, s: S, k: usize) {
        let (planes, x, g) = (self.planes, self.x, self.g);
        let mut means = [T::splat(s, T::ZERO); K];
        for j in 0..K {
            means[j] = T::splat(s, T::from_f64(self.means[self.first + k + j]));
        }
        let (mut sums, mut products) = ([s.splat_d(0.0); K], [s.splat_d(0.0); K]);
        for_vectors!(planes, self.first + k, |at| {
            for j in 0..K {
                let at = at + j * planes.plane;
                prefetch(x.wrapping_add(at + AHEAD));
                prefetch(g.wrapping_add(at + AHEAD));
                // SAFETY: a vector of a plane of both arrays.
                let (x, g) = unsafe { (T::load(s, x.add(at)), T::load(s, g.add(at))) };
                let (g, d) = (T::widen(s, g), T::widen(s, T::v_sub(s, x, means[j])));
                sums[j] = s.add_d(sums[j], g);
                products[j] = s.fma_d(g, d, products[j]);
            }
        });
        for j in 0..K {
            self.found[2 * (k + j)] = s.tree_add_d(sums[j]);
            self.found[2 * (k + j) + 1] = s.tree_add_d(products[j]);
        }
    }
}
