//! The maxima of sixteen windows, tap after tap, and their places.

use crate::simd::Simd;

/// The maxima so far, or the first NaN among the taps.
pub(super) struct Maxima<S: Simd> {
    best: S::F,
    nan: S::F,
    missing: S::M,
}

impl<S: Simd> Maxima<S> {
    #[inline(always)]
    pub(super) fn new(s: S) -> Self {
        let best = s.splat(f32::NEG_INFINITY);
        Self { best, nan: best, missing: s.mask_first(0) }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, s: S, value: S::F) {
        let nan = s.is_nan(value);
        let first = s.mask_and(nan, s.mask_not(self.missing));
        self.nan = s.select(first, value, self.nan);
        self.missing = s.mask_or(self.missing, nan);
        // A NaN leaves the best so far.
        self.best = s.at_least(self.best, value);
    }

    #[inline(always)]
    pub(super) fn found(self, s: S) -> S::F {
        s.select(self.missing, self.nan, self.best)
    }
}

/// The maxima so far, and the place of the first of equal ones or of the first NaN.
pub(super) struct Places<S: Simd> {
    pub(super) best: S::F,
    /// -1 for none.
    pub(super) place: S::I,
}

impl<S: Simd> Places<S> {
    /// `place` is that of a window in which nothing is above -inf.
    #[inline(always)]
    pub(super) fn new(s: S, place: S::I) -> Self {
        Self { best: s.splat(f32::NEG_INFINITY), place }
    }

    #[inline(always)]
    pub(super) fn take(&mut self, s: S, value: S::F, place: S::I) {
        let first = s.mask_and(s.is_nan(value), s.mask_not(s.is_nan(self.best)));
        let replaces = s.mask_or(s.lt(self.best, value), first);
        self.best = s.select(replaces, value, self.best);
        self.place = s.select_i(replaces, place, self.place);
    }
}
