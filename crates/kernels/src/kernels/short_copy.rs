//! Copies of a few elements, for which a call of memmove takes longer than the elements.

use crate::dtype::Element;

/// Elements that move together.
const GROUP: usize = 8;
/// From so many elements on, memmove is as fast.
const LONG: usize = 32 * GROUP;

/// Copies `n` elements.
///
/// # Safety
/// They exist on both sides, which do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_short<E: Element>(from: *const E, to: *mut E, n: usize) {
    let group = |i: usize| {
        // SAFETY: the caller's promise; the last group overlaps the one before it.
        unsafe {
            let values = from.add(i).cast::<[E; GROUP]>().read_unaligned();
            to.add(i).cast::<[E; GROUP]>().write_unaligned(values);
        }
    };
    if n > LONG {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, n) };
    } else if n >= GROUP {
        let mut i = 0;
        while i + GROUP <= n {
            group(i);
            i += GROUP;
        }
        group(n - GROUP);
    } else {
        for i in 0..n {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i) = *from.add(i) };
        }
    }
}
