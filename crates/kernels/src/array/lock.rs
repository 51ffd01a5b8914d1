//! A lock that a fork can wait for.

use std::sync::atomic::{AtomicBool, Ordering};

/// How many times a thread looks at a held lock before it lets others run.
const SPINS: usize = 100;

/// A spin lock. A fork takes those of [`super::cache::watch_forks`] and the child gets them free: one
/// in the hands of a thread that the child does not have would stay locked for ever.
pub(super) struct ForkLock(AtomicBool);

/// Unlocks when dropped.
pub(super) struct Hold<'a>(&'a ForkLock);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl ForkLock {
    pub(super) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    pub(super) fn lock(&self) {
        let mut spins = 0;
        while self.0.swap(true, Ordering::Acquire) {
            while self.0.load(Ordering::Relaxed) {
                spins += 1;
                if spins < SPINS {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        }
    }

    pub(super) fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }

    pub(super) fn hold(&self) -> Hold<'_> {
        self.lock();
        Hold(self)
    }
}
