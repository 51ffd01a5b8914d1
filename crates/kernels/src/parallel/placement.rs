//! Which CPU a worker wakes on.
//!
//! When the system sees no idle CPU at that moment it wakes a thread on the CPU of the thread that
//! wakes it, or where it last ran, which may be the same one. Until the scheduler balances again,
//! milliseconds later, the two share it while another one idles.

#[cfg(target_os = "linux")]
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicI32, Ordering};

/// A worker that waits to be woken: its thread, and the CPU that it was last told to avoid.
pub(super) struct Parked {
    #[cfg(target_os = "linux")]
    thread: libc::pid_t,
    #[cfg(target_os = "linux")]
    avoided: Avoided,
}

/// The CPU that a worker was told to avoid, kept by the worker.
#[derive(Clone, Default)]
pub(super) struct Avoided(#[cfg(target_os = "linux")] Arc<AtomicI32>);

#[cfg(target_os = "linux")]
impl Parked {
    /// The calling thread.
    pub(super) fn here(avoided: &Avoided) -> Self {
        // SAFETY: no address is taken.
        Self { thread: unsafe { libc::gettid() }, avoided: avoided.clone() }
    }
}

/// Sends workers that are about to wake to the CPUs that the caller may use beside its own.
#[cfg(target_os = "linux")]
pub(super) fn keep_apart(parked: &[Parked]) {
    // SAFETY: no address is taken.
    let cpu = unsafe { libc::sched_getcpu() };
    // One more than the number, as 0 stands for none.
    let told = cpu + 1;
    if cpu < 0 || parked.iter().all(|worker| worker.avoided.0.load(Ordering::Relaxed) == told) {
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
    for worker in parked.iter().filter(|w| w.avoided.0.load(Ordering::Relaxed) != told) {
        // A refusal leaves the worker where it is, which is only slower.
        // SAFETY: the set has the size that is passed.
        unsafe { libc::sched_setaffinity(worker.thread, bytes, &raw const set) };
        worker.avoided.0.store(told, Ordering::Relaxed);
    }
}

#[cfg(not(target_os = "linux"))]
impl Parked {
    /// The calling thread.
    pub(super) fn here(_: &Avoided) -> Self {
        Self {}
    }
}

/// Other systems place threads on their own.
#[cfg(not(target_os = "linux"))]
pub(super) fn keep_apart(_: &[Parked]) {}
