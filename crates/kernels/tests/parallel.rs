//! The pool runs every part once, from many threads at once, and reports panics.

use onemodel_kernels::parallel;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sets the number of threads for one test alone: tests share the process.
fn threads(n: usize) -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    parallel::set_num_threads(n);
    guard
}

fn each_part_once(parts: usize) {
    let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
    parallel::for_each(parts, |i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
}

#[test]
fn every_part_runs_once() {
    let _alone = threads(4);
    for parts in [0, 1, 2, 3, 7, 100] {
        for _ in 0..200 {
            each_part_once(parts);
        }
    }
}

#[test]
fn a_region_takes_no_more_threads_than_set() {
    let _alone = threads(4);
    let used = || {
        let seen = Mutex::new(HashSet::new());
        parallel::for_each(32, |_| {
            seen.lock().unwrap().insert(std::thread::current().id());
            std::thread::sleep(Duration::from_millis(1));
        });
        seen.into_inner().unwrap().len()
    };
    assert!((1..=4).contains(&used()));
    parallel::set_num_threads(2);
    for _ in 0..5 {
        assert!(used() <= 2);
    }
}

#[test]
fn many_callers_at_once() {
    let _alone = threads(3);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..300).for_each(|_| each_part_once(9)));
        }
    });
}

#[test]
fn regions_nest() {
    let _alone = threads(2);
    let total = AtomicUsize::new(0);
    parallel::for_each(4, |_| {
        parallel::for_each(5, |_| {
            total.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(total.load(Ordering::Relaxed), 20);
}

#[test]
fn ranges_cover_without_overlap() {
    for (total, grain) in [(0, 4), (1, 4), (4, 4), (5, 4), (17, 3), (9, 0)] {
        let seen: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
        parallel::for_ranges(total, grain, |range| {
            for i in range {
                seen[i].fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(seen.iter().all(|c| c.load(Ordering::Relaxed) == 1));
    }
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_survives() {
    let _alone = threads(2);
    let outcome = std::panic::catch_unwind(|| {
        parallel::for_each(8, |i| assert_ne!(i, 5, "on purpose"));
    });
    assert!(outcome.is_err());
    each_part_once(8);
}
