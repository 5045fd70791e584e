//! `cargo torture --machines N`: after a write was acknowledged, and not as late, does any node
//! serve an older page?
//!
//! Several nodes in front of one site, each with its own cache, exchange invalidations through a
//! stream. Binary, php-fpm and Redis or Valkey are real. Writers change data through one node after
//! the other ([`writer`]). Readers send requests to all of them, and check as in the other
//! tortures. In between, one fault follows the other ([`fault`]). At the end, without faults, every
//! node must serve the newest version of every page ([`end`]). It uses only loopback, and ends
//! automatically.

mod cause;
mod due_versions;
mod end;
pub mod fault;
mod late;
mod machine;
mod report;
mod stand;
mod tally;
mod wire;
mod writer;

use super::reader::{self, AnswerCounts};
use super::writer::Rate;
use super::{Amount, root};
use fault::Plan;
use harness::root::Profile;
use harness::stand::Players;
use report::Figures;
use stand::Stand;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many machines there may be.
pub const MACHINES: std::ops::RangeInclusive<u64> = 2..=5;

/// Tortures so many machines, up to so many wrong answers; what was found.
///
/// # Errors
/// The reason why it did not run.
pub fn torture(amount: &Amount, machines: usize, enough: u64) -> Result<Figures, String> {
    let binary = root::pagewell(Profile::Dev)?;
    let stand = Stand::start(amount, machines, &binary, enough)
        .map_err(|error| format!("torture: {error}"))?;
    let seen = play(amount, &stand)?;
    let left = end::settle(&stand);
    Ok(Figures::of(amount, &stand, seen, left))
}

/// Readers, writers and faults, until all of them have ended.
fn play(amount: &Amount, stand: &Stand) -> Result<AnswerCounts, String> {
    let watched = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| end::watch(stand, &watched));
        let rate: Rate = amount.writes_per_second;
        let each = amount.readers.div_ceil(stand.runs.len());
        let mut all = Players::new(scope);
        for (machine, run) in stand.runs.iter().enumerate() {
            all.add_all("a reader", each, move |n| reader::read(run, machine << 10 | n));
        }
        let write = move |n| writer::write(stand, n, amount.writers, rate);
        all.add_all("a writer", amount.writers, write);
        let humming = scope.spawn(|| writer::hum(stand, amount.seed));
        cause::disturb(stand, Plan::new(amount.seed, stand.machines.len(), &amount.only));
        let mut seen = AnswerCounts::default();
        let counts = all.join().map_err(|error| format!("torture: {error}"))?;
        counts.iter().for_each(|one| seen.add(one));
        humming.join().map_err(|_| "torture: who adds entries panicked")?;
        watched.store(true, SeqCst);
        watching.join().map_err(|_| "torture: who watches panicked")?;
        Ok(seen)
    })
}

fn pause(time: Duration) {
    thread::sleep(time);
}

/// A lock that nobody can have left in disorder.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
