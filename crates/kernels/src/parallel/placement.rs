//! Which CPU a worker wakes on.
//!
//! The system wakes a thread where it last ran when it sees no idle CPU at that moment. That may be
//! the CPU of the thread that wakes it, and until the scheduler balances again, milliseconds later,
//! the two share it while another one idles.

/// A worker that waits to be woken: its thread and the CPU on which it last ran.
pub(super) struct Parked {
    #[cfg(target_os = "linux")]
    thread: libc::pid_t,
    #[cfg(target_os = "linux")]
    cpu: i32,
}

#[cfg(target_os = "linux")]
impl Parked {
    /// The calling thread.
    pub(super) fn here() -> Self {
        // SAFETY: neither call takes an address.
        unsafe { Self { thread: libc::gettid(), cpu: libc::sched_getcpu() } }
    }
}

/// Sends workers that last ran on the caller's CPU to the others that the caller may use.
#[cfg(target_os = "linux")]
pub(super) fn keep_apart(parked: &[Parked]) {
    // SAFETY: no address is taken.
    let cpu = unsafe { libc::sched_getcpu() };
    if cpu < 0 || parked.iter().all(|worker| worker.cpu != cpu) {
        return;
    }
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of plain bits, for which zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has the size that is passed.
    if unsafe { libc::sched_getaffinity(0, bytes, &raw mut set) } != 0 || cpu as usize >= 8 * bytes
    {
        return;
    }
    // SAFETY: the CPU's bit lies inside the set.
    let others = unsafe {
        libc::CPU_CLR(cpu as usize, &mut set);
        libc::CPU_COUNT(&set)
    };
    if others == 0 {
        return;
    }
    for worker in parked.iter().filter(|worker| worker.cpu == cpu) {
        // A refusal leaves the worker where it is, which is only slower.
        // SAFETY: the set has the size that is passed.
        unsafe { libc::sched_setaffinity(worker.thread, bytes, &raw const set) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Parked {
    /// The calling thread.
    pub(super) fn here() -> Self {
        Self {}
    }
}

/// Other systems place threads on their own.
#[cfg(not(target_os = "linux"))]
pub(super) fn keep_apart(_: &[Parked]) {}
