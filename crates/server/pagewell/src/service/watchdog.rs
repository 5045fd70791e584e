//! Notices when a core is stuck: a thread that serves and has been with one and the same task for far too
//! long, so that whatever waits for it waits for ever. That is a bug, or a machine that is starved.
//!
//! | a worker | is |
//! |---|---|
//! | is parked, or was since the last look | well |
//! | has ended another batch of tasks since the last look (its busy time is counted then) | well |
//! | neither | stuck, if it is so at two looks on end |
//!
//! It looks from a thread of its own, which no worker can hold up. While a worker is stuck the service
//! manager is not told that Pagewell is well, so that it starts it again, if it was asked to.

use super::{Supervisor, Tell};
use crate::clock::Clock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeMetrics};

/// Between two looks, where nobody wants to know sooner.
const LOOK: Duration = Duration::from_secs(10);

/// What was seen of a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    parks: u64,
    busy: Duration,
}

/// The workers of a runtime, as they were at the last look.
pub struct Workers {
    metrics: RuntimeMetrics,
    seen: Vec<Seen>,
    /// How many looks on end each has been with the same task.
    same: Vec<u32>,
}

impl Workers {
    /// Those of this runtime.
    pub fn of(runtime: &Handle) -> Workers {
        let metrics = runtime.metrics();
        let count = metrics.num_workers();
        let seen = vec![Seen { parks: u64::MAX, busy: Duration::ZERO }; count];
        Workers { metrics, seen, same: vec![0; count] }
    }

    /// Looks at them; the numbers of those that are stuck.
    pub fn look(&mut self) -> Vec<usize> {
        for worker in 0..self.seen.len() {
            let parks = self.metrics.worker_park_unpark_count(worker);
            let now = Seen { parks, busy: self.metrics.worker_total_busy_duration(worker) };
            let is_parked = parks % 2 == 1;
            let is_same = !is_parked && now == self.seen[worker];
            self.same[worker] = if is_same { self.same[worker] + 1 } else { 0 };
            self.seen[worker] = now;
        }
        let stuck = self.same.iter().enumerate().filter(|(_, same)| **same >= 2);
        stuck.map(|(worker, _)| worker).collect()
    }
}

/// Watches until it is dropped.
pub struct Watching {
    /// Says by its end that it is over.
    _over: Sender<()>,
}

/// Begins to watch the workers of the runtime that this is called in, and to tell the manager.
///
/// # Errors
/// The system has no thread for it.
pub fn start(supervisor: Supervisor, clock: Clock) -> Result<Watching, String> {
    let (over, is_over) = channel();
    let workers = Workers::of(&Handle::current());
    let every = supervisor.waits().map_or(LOOK, |waits| LOOK.min(waits / 3));
    thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || watch(&supervisor, workers, every, &clock, &is_over))
        .map_err(|error| format!("no thread for the watchdog ({error})"))?;
    Ok(Watching { _over: over })
}

fn watch(
    supervisor: &Supervisor,
    mut workers: Workers,
    every: Duration,
    clock: &Clock,
    is_over: &Receiver<()>,
) {
    let mut stuck_before = Vec::new();
    let mut looked = clock.monotonic();
    while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let now = clock.monotonic();
        // A machine that has slept has not been looked at meanwhile.
        let has_slept = now.saturating_sub(looked) > every * 2;
        looked = now;
        let stuck = if has_slept { Vec::new() } else { workers.look() };
        if !stuck.is_empty() && stuck != stuck_before {
            tracing::error!(event = "core-stuck", workers = ?stuck);
        }
        if stuck.is_empty() {
            if !stuck_before.is_empty() {
                tracing::info!(event = "core-goes-on");
            }
            supervisor.tell(Tell::Well);
        }
        stuck_before = stuck;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Waits until what is looked at is so.
    fn until(workers: &mut Workers, right: impl Fn(&[usize]) -> bool) {
        for _ in 0..30_000 {
            if right(&workers.look()) {
                return;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
        panic!("it was never so");
    }

    #[test]
    fn a_worker_that_does_not_come_back_is_noticed_and_one_that_does_is_forgotten() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let mut workers = Workers::of(runtime.handle());
        until(&mut workers, <[usize]>::is_empty);
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let stuck = runtime.spawn(async move {
            begun.send(()).unwrap();
            let _ = released.recv();
        });
        has_begun.recv().unwrap();
        until(&mut workers, |stuck| stuck.len() == 1);
        // The other one still serves.
        runtime.block_on(runtime.spawn(async {})).unwrap();
        drop(release);
        runtime.block_on(stuck).unwrap();
        until(&mut workers, <[usize]>::is_empty);
    }
}
