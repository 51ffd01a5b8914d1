//! A persistent pool. Work is split over outputs by a function of shape alone; which thread takes
//! which part never changes a bit.

use crate::once::SetOnce;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

mod placement;

/// How many times a worker polls for new work before it parks. The time depends on the pause
/// instruction of the CPU: 0.5 milliseconds on an AMD EPYC (26 nanoseconds a poll).
const SPINS: usize = 20_000;

/// Shares of a region's parts at most. Neighbouring parts make a share, and thread i begins with
/// share i, so that it finds in its own cache what it wrote in the region before.
const MOST_SHARES: usize = 8;

/// The next part of a share, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Next(AtomicUsize);

type Task = dyn Fn(usize) + Sync;

/// One parallel region, borrowed from the caller's stack: workers hold it only between their
/// registration in `active` and their release, and the caller waits for `active` to reach zero.
struct Region {
    task: *const Task,
    parts: usize,
    /// Workers that may still join.
    places: AtomicUsize,
    /// The shares in use, and of each the next part.
    shares: usize,
    next: [Next; MOST_SHARES],
    panicked: AtomicBool,
}

#[derive(Default)]
struct Slot {
    region: Option<*const Region>,
    generation: usize,
    /// Workers that wait to be woken.
    parked: Vec<placement::Parked>,
}

// SAFETY: the pointer is only dereferenced while the region's owner waits (see `Region`).
unsafe impl Send for Slot {}

#[derive(Default)]
struct Shared {
    slot: Mutex<Slot>,
    wake: Condvar,
    generation: AtomicUsize,
    active: AtomicUsize,
    busy: AtomicBool,
}

struct Pool {
    shared: Arc<Shared>,
    workers: AtomicUsize,
    pid: u32,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The number of CPUs this process may use: the affinity mask and the cgroup quota.
#[must_use]
pub fn available_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Threads used for one kernel.
#[must_use]
pub fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n = std::env::var("ONEMODEL_NUM_THREADS")
                .ok()
                .and_then(|v| v.parse().ok())
                .filter(|&n: &usize| n >= 1)
                .unwrap_or_else(available_threads);
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// Sets the number of threads for kernels from now on; at least 1.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.max(1), Ordering::Relaxed);
}

/// Has forks noticed from now on; starts no thread.
pub fn prepare() {
    pool();
}

fn pool() -> &'static Pool {
    static POOL: SetOnce<Pool> = SetOnce::new();
    POOL.get_or_make(|| {
        #[cfg(unix)]
        // SAFETY: the handler only stores to an atomic, which is allowed between fork and exec.
        unsafe {
            extern "C" fn child() {
                FORKED.store(true, Ordering::Relaxed);
            }
            libc::pthread_atfork(None, None, Some(child));
        }
        Pool {
            shared: Arc::new(Shared::default()),
            workers: AtomicUsize::new(0),
            pid: std::process::id(),
        }
    })
}

impl Region {
    /// The first part of a share.
    fn begin(&self, share: usize) -> usize {
        self.parts * share / self.shares
    }

    /// Takes one of the places for workers, while there are any. Called under the slot's lock.
    fn has_place(&self) -> bool {
        let left = self.places.load(Ordering::Relaxed);
        self.places.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }
}

/// Runs the parts of the thread's own share, then what is left of the others.
fn run_parts(region: &Region, thread: usize) {
    // SAFETY: the task outlives the region, which outlives every holder.
    let task = unsafe { &*region.task };
    for turn in 0..region.shares {
        let share = (thread + turn) % region.shares;
        let (begin, end) = (region.begin(share), region.begin(share + 1));
        loop {
            let part = begin + region.next[share].0.fetch_add(1, Ordering::Relaxed);
            if part >= end {
                break;
            }
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task(part)));
            if outcome.is_err() {
                region.panicked.store(true, Ordering::Relaxed);
            }
        }
    }
}

fn worker(shared: &Shared, thread: usize) {
    INSIDE.set(true);
    let avoided = placement::Avoided::default();
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.generation.load(Ordering::Acquire) == seen && spins < SPINS {
            std::hint::spin_loop();
            spins += 1;
        }
        let mut slot = shared.slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if slot.generation == seen {
            slot.parked.push(placement::Parked::here(&avoided));
            while slot.generation == seen {
                slot = shared.wake.wait(slot).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
        seen = slot.generation;
        // SAFETY: published, so its owner cannot leave before it takes the lock that is held here.
        let region = slot.region.filter(|region| unsafe { (**region).has_place() });
        if region.is_some() {
            shared.active.fetch_add(1, Ordering::Relaxed);
        }
        drop(slot);
        if let Some(region) = region {
            // SAFETY: registered in `active` under the lock while the region was published.
            run_parts(unsafe { &*region }, thread);
            shared.active.fetch_sub(1, Ordering::Release);
        }
    }
}

fn ensure_workers(pool: &'static Pool, wanted: usize) {
    while pool.workers.load(Ordering::Relaxed) < wanted {
        let shared = pool.shared.clone();
        let number = pool.workers.load(Ordering::Relaxed) + 1;
        let spawned = thread::Builder::new()
            .name("onemodel-worker".into())
            .spawn(move || worker(&shared, number));
        if spawned.is_err() {
            return;
        }
        pool.workers.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `task(0)`, …, `task(parts - 1)`, each once, on the pool. Runs serially inside another
/// region, in a forked child, or while another thread uses the pool.
///
/// # Panics
/// When a task panics, after all parts have ended.
#[inline]
pub fn for_each(parts: usize, task: impl Fn(usize) + Sync) {
    for_each_dyn(parts, &task);
}

/// [`for_each`] in one copy for all tasks.
fn for_each_dyn(parts: usize, task: &(dyn Fn(usize) + Sync)) {
    let threads = num_threads().min(parts);
    if threads <= 1 || INSIDE.get() || FORKED.load(Ordering::Relaxed) {
        (0..parts).for_each(task);
        return;
    }
    let pool = pool();
    let shared = &*pool.shared;
    if pool.pid != std::process::id()
        || shared.busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err()
    {
        (0..parts).for_each(task);
        return;
    }
    ensure_workers(pool, threads - 1);
    // SAFETY: only the lifetime changes; this does not return before all holders are gone.
    let task: *const Task = unsafe { std::mem::transmute(task) };
    let region = Region {
        task,
        parts,
        places: AtomicUsize::new(threads - 1),
        shares: threads.min(MOST_SHARES),
        next: Default::default(),
        panicked: AtomicBool::new(false),
    };
    {
        let mut slot = shared.slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.region = Some(&raw const region);
        slot.generation += 1;
        shared.generation.store(slot.generation, Ordering::Release);
        if !slot.parked.is_empty() {
            placement::keep_apart(&slot.parked);
            slot.parked.clear();
            shared.wake.notify_all();
        }
    }
    INSIDE.set(true);
    run_parts(&region, 0);
    INSIDE.set(false);
    shared.slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).region = None;
    let mut spins = 0;
    while shared.active.load(Ordering::Acquire) > 0 {
        spins += 1;
        if spins < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
    }
    shared.busy.store(false, Ordering::Release);
    assert!(!region.panicked.load(Ordering::Relaxed), "a kernel part panicked");
}

/// Splits `0..total` into ranges of `grain` (the last one shorter) and runs them on the pool. The
/// split depends on the two numbers alone.
pub fn for_ranges(total: usize, grain: usize, task: impl Fn(std::ops::Range<usize>) + Sync) {
    let grain = grain.max(1);
    if total <= grain {
        if total > 0 {
            task(0..total);
        }
        return;
    }
    for_each(total.div_ceil(grain), |part| {
        let start = part * grain;
        task(start..(start + grain).min(total));
    });
}
