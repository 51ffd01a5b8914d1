//! A limit of the processor's time for each input: the fuzzer's own counts what else the machine does.

use arbitrary::Result;
use std::sync::Once;

/// Seconds of all threads together.
const SECONDS: libc::time_t = 30;

extern "C" fn hung(_: libc::c_int) {
    // SAFETY: `abort` may be called in a handler; the fuzzer then keeps the input.
    unsafe { libc::abort() }
}

fn limit(seconds: libc::time_t) {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let timer =
        libc::itimerval { it_interval: none, it_value: libc::timeval { tv_sec: seconds, ..none } };
    // SAFETY: a timer of this process, whose former value is not asked for.
    let failed = unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) };
    assert_eq!(failed, 0, "the timer of the processor's time");
}

/// Runs a target on its input, and aborts when that takes too long.
pub fn limited(target: fn(&[u8]) -> Result<()>, data: &[u8]) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        let handler = hung as extern "C" fn(libc::c_int);
        // SAFETY: the handler only aborts.
        unsafe { libc::signal(libc::SIGPROF, handler as libc::sighandler_t) };
    });
    limit(SECONDS);
    let _ = target(data);
    limit(0);
}
