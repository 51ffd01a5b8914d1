//! A value that is made at most once and kept.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A cell that is empty or holds its value, and is never between the two: with a cell of the
/// standard library a child that is forked while another thread sets it would wait for that thread
/// for ever.
pub(crate) struct SetOnce<T> {
    value: AtomicPtr<T>,
    owned: PhantomData<T>,
}

impl<T> SetOnce<T> {
    pub(crate) const fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), owned: PhantomData }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or a value that lives until the cell is dropped.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value, made now if there is none; several threads may each make one, of which one stays.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.get().unwrap_or_else(|| self.set(make()))
    }

    /// Keeps the value where there is none yet, and returns the kept one.
    pub(crate) fn set(&self, value: T) -> &T {
        let made = NonNull::from(Box::leak(Box::new(value)));
        let (empty, success) = (ptr::null_mut(), Ordering::AcqRel);
        let kept = self.value.compare_exchange(empty, made.as_ptr(), success, Ordering::Acquire);
        let kept = kept.err().and_then(NonNull::new).inspect(|_| {
            // SAFETY: made here, and nobody else has seen it.
            drop(unsafe { Box::from_raw(made.as_ptr()) });
        });
        // SAFETY: the cell's value, which lives until the cell is dropped.
        unsafe { kept.unwrap_or(made).as_ref() }
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from a box, and nobody has a reference any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

// SAFETY: a reference to the cell gives references to the value, and may move one in.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}
// SAFETY: the cell owns its value.
unsafe impl<T: Send> Send for SetOnce<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_first_value_stays_and_all_are_dropped() {
        let values: Vec<Arc<usize>> = (0..8).map(Arc::new).collect();
        let cell = SetOnce::new();
        assert!(cell.get().is_none());
        std::thread::scope(|scope| {
            for value in &values {
                scope.spawn(|| cell.set(value.clone()));
            }
        });
        let kept = **cell.get().unwrap();
        assert_eq!(**cell.set(Arc::new(9)), kept);
        for (number, value) in values.iter().enumerate() {
            assert_eq!(Arc::strong_count(value), if number == kept { 2 } else { 1 });
        }
        drop(cell);
        assert_eq!(Arc::strong_count(&values[kept]), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_child_does_not_wait_for_a_thread_that_was_setting_the_cell() {
        use std::sync::atomic::AtomicBool;
        // Long enough to copy that most forks meet a thread that is at it.
        type Value = [u8; 1 << 16];
        static VALUE: Value = [7; 1 << 16];
        let over = AtomicBool::new(false);
        let published = AtomicPtr::<SetOnce<Value>>::new(ptr::null_mut());
        let set_again = || {
            while !over.load(Ordering::Relaxed) {
                let mut cell = Box::new(SetOnce::new());
                published.store(&raw mut *cell, Ordering::SeqCst);
                cell.set(VALUE);
                published.store(ptr::null_mut(), Ordering::SeqCst);
            }
        };
        let outcomes: Vec<i32> = std::thread::scope(|scope| {
            scope.spawn(set_again);
            let outcomes = (0..200).map(|_| child(&published)).collect();
            over.store(true, Ordering::Relaxed);
            outcomes
        });
        assert!(outcomes.iter().all(|&code| code == 0 || code == ABSENT), "{outcomes:?}");
        assert!(outcomes.contains(&0));

        const ABSENT: i32 = 2;
        fn child(published: &AtomicPtr<SetOnce<Value>>) -> i32 {
            // SAFETY: the child ends without coming back here; a cell is there while it is
            // published.
            unsafe {
                let pid = libc::fork();
                assert!(pid >= 0);
                if pid == 0 {
                    libc::alarm(20);
                    let cell = published.load(Ordering::SeqCst).as_ref();
                    libc::_exit(cell.map_or(ABSENT, |cell| i32::from(cell.set(VALUE)[9] != 7)));
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
            }
        }
    }
}
