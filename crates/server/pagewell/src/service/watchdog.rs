//! Detects stuck worker threads: a worker that has been running the same task for too long, so that
//! other tasks on it cannot run. The cause is a bug, or an overloaded machine.
//!
//! | a worker that | is |
//! |---|---|
//! | is parked, or was since the last check | healthy |
//! | has finished a batch of tasks since the last check (its busy time has changed) | healthy |
//! | has done neither | stuck, if this is found in two successive checks |
//!
//! The checks run in a separate thread, which no worker can block. While a worker is stuck, the service
//! manager does not get the message that Pagewell is healthy. So it restarts Pagewell, if its watchdog
//! is enabled.

use super::{Supervisor, Tell};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;
use telemetry::clock::Clock;
use tokio::runtime::{Handle, RuntimeMetrics};

/// The interval between two checks, unless the service manager needs shorter ones.
const LOOK: Duration = Duration::from_secs(10);

/// The observed state of a worker.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WorkerState {
    parks: u64,
    busy: Duration,
}

/// The workers of a runtime, as of the last check.
pub struct Workers {
    metrics: RuntimeMetrics,
    seen: Vec<WorkerState>,
    /// For each worker, the number of successive checks that found it running the same task.
    same: Vec<u32>,
}

impl Workers {
    /// The workers of this runtime.
    pub fn of(runtime: &Handle) -> Workers {
        let metrics = runtime.metrics();
        let count = metrics.num_workers();
        let seen = vec![WorkerState { parks: u64::MAX, busy: Duration::ZERO }; count];
        Workers { metrics, seen, same: vec![0; count] }
    }

    /// Checks the workers. Returns the numbers of those that are stuck.
    pub fn look(&mut self) -> Vec<usize> {
        for worker in 0..self.seen.len() {
            let parks = self.metrics.worker_park_unpark_count(worker);
            let now = WorkerState { parks, busy: self.metrics.worker_total_busy_duration(worker) };
            let is_parked = parks % 2 == 1;
            let is_same = !is_parked && now == self.seen[worker];
            self.same[worker] = if is_same { self.same[worker] + 1 } else { 0 };
            self.seen[worker] = now;
        }
        let stuck = self.same.iter().enumerate().filter(|(_, same)| **same >= 2);
        stuck.map(|(worker, _)| worker).collect()
    }
}

/// Runs the watchdog until this is dropped.
pub struct Watching {
    /// The thread exits when this is dropped.
    _over: Sender<()>,
}

/// Starts the watchdog for the workers of the current runtime. It sends the watchdog messages to the
/// service manager.
///
/// # Errors
/// The system cannot start a thread.
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
        // After a suspension of the machine, the elapsed time means nothing.
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

    /// Waits until the result of a check satisfies `right`.
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
        // The other worker still runs tasks.
        runtime.block_on(runtime.spawn(async {})).unwrap();
        drop(release);
        runtime.block_on(stuck).unwrap();
        until(&mut workers, <[usize]>::is_empty);
    }
}
