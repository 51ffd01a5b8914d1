//! The arenas that no run uses: as many are kept as runs were under way at once lately.

use super::Instance;
use crate::once::SetOnce;
use crate::parallel::available_threads;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// How often a run asks for the arenas before it does without.
const PATIENCE: usize = 1000;
/// "Lately" is the window of so many runs and the one before it.
const WINDOW: usize = 64;

#[derive(Default)]
pub(super) struct Idle(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    instances: Vec<Instance>,
    /// Runs under way, and the most of them in this window and in the one before.
    running: usize,
    most: [usize; 2],
    /// Runs that began in this window.
    begun: usize,
}

impl Kept {
    fn begin(&mut self) -> Option<Instance> {
        if self.begun == WINDOW {
            self.begun = 0;
            self.most = [self.running, self.most[0]];
        }
        self.begun += 1;
        self.running += 1;
        self.most[0] = self.most[0].max(self.running);
        self.instances.pop()
    }

    /// Takes the arena of an ended run, if it has one, and gives back those that are too many.
    fn end(&mut self, instance: Option<Instance>) -> Vec<Instance> {
        self.running = self.running.saturating_sub(1);
        self.instances.extend(instance);
        let limit = self.most[0].max(self.most[1]).min(most_kept());
        let surplus = self.instances.len().saturating_sub(limit);
        // Those that were used longest ago.
        self.instances.drain(..surplus).collect()
    }
}

/// Threads beyond the CPUs wait for each other anyway.
fn most_kept() -> usize {
    static CPUS: SetOnce<usize> = SetOnce::new();
    *CPUS.get_or_make(available_threads)
}

impl Idle {
    /// An arena for a run, or `None` where a new one is due. Every call is followed by one of `end`.
    pub(super) fn begin(&self) -> Option<Instance> {
        self.kept()?.begin()
    }

    /// Ends a run; `None` when it failed to get an arena or panicked.
    pub(super) fn end(&self, instance: Option<Instance>) {
        // Dropped after the lock is given up.
        let _surplus = self.kept().map(|mut kept| kept.end(instance));
    }

    /// Drops the arenas.
    pub(super) fn release(&self) {
        let _all = self.kept().map(|mut kept| std::mem::take(&mut kept.instances));
    }

    /// `None` when they stay locked: in a forked child, by a thread that is not there.
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        for _ in 0..PATIENCE {
            match self.0.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Meta};
    use crate::dtype::DType;
    use crate::program::{Call, Place, Program};
    use crate::registry::build;
    use std::sync::Barrier;

    fn program() -> Program {
        let meta = || Meta::new(DType::F32, &[64]);
        let values = vec![Place::Input(meta()), Place::Arena(meta(), 0), Place::Output(meta())];
        let call = |from, to| Call {
            kernel: build("Exp", [].into()).unwrap(),
            inputs: vec![Some(from)],
            outputs: vec![to],
        };
        Program::new(values, vec![call(0, 1), call(1, 2)], vec![2], 256).unwrap()
    }

    fn kept(program: &Program) -> usize {
        program.idle.kept().unwrap().instances.len()
    }

    fn run_at_once(program: &Program, threads: usize) {
        let all = Barrier::new(threads);
        let x = Array::zeros("test", DType::F32, &[64]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let watch = || {
                        all.wait();
                        Ok(())
                    };
                    program.run_watched(std::slice::from_ref(&x), watch).unwrap();
                });
            }
        });
    }

    #[test]
    fn many_threads_at_once_leave_no_more_than_the_cpus_use() {
        let program = program();
        run_at_once(&program, 64);
        assert_eq!(kept(&program), most_kept().min(64));
        program.release();
        assert_eq!(kept(&program), 0);
    }

    #[test]
    fn as_many_are_kept_as_ran_at_once_lately() {
        let program = program();
        let x = [Array::zeros("test", DType::F32, &[64]).unwrap()];
        program.run(&x).unwrap();
        assert_eq!(kept(&program), 1);
        run_at_once(&program, 2);
        assert_eq!(kept(&program), most_kept().min(2));
        for _ in 0..2 * WINDOW {
            program.run(&x).unwrap();
        }
        assert_eq!(kept(&program), 1);
    }

    #[test]
    fn a_run_that_fails_or_panics_is_over() {
        let program = program();
        let x = [Array::zeros("test", DType::F32, &[64]).unwrap()];
        let refused = || Err(crate::error::Error::usage("test", "nothing", "a run"));
        assert!(program.run_watched(&x, refused).is_err());
        let panics = std::panic::AssertUnwindSafe(|| program.run_watched(&x, || panic!("planted")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(program.idle.kept().unwrap().running, 0);
        program.run(&x).unwrap();
        assert_eq!(kept(&program), 1);
    }
}
