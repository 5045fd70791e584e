//! Determines when the origin began to generate a page that is stored through the memcached port.
//!
//! There are two ways. A client may request a lease before it begins (`get pagewell:lease`) and
//! send the lease's token with the page. The lease is stored for as long as generating a page may
//! take. For other pages, `memcached.render_time` is assumed: after each change a lease is stored,
//! and the page gets the last one that is old enough. So all changes within that time invalidate
//! the page.
//!
//! This is correct because a kept lease's time is read after the lease was taken. Changes with a larger
//! number happened after that time. Changes up to its number were applied before, so a page whose
//! generation began later contains them. Bounds: one lease a second, and [`HANDED_MAX`] issued leases.
//! Only the lock of the store's index is taken under this lock.

use page_store::{Lease, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of issued leases; leases of the same number count once. The oldest is discarded
/// first.
const HANDED_MAX: usize = 10_000;

/// The issued leases of one site, and those kept after changes.
pub struct Leases {
    /// Distinguishes this process's leases from those of an earlier process.
    epoch: u64,
    render_ms: u64,
    inside: Mutex<Inside>,
}

struct Inside {
    /// Time in milliseconds and lease after each change, oldest first. The first is the latest that is
    /// older than `memcached.render_time`.
    after_changes: VecDeque<(u64, Arc<Lease>)>,
    /// The issued leases with their time in milliseconds, in the order of issue.
    handed: VecDeque<(u64, Arc<Lease>)>,
}

impl Leases {
    /// Starts with the store's current lease. `epoch` has to be unique to the process.
    pub fn new<P: page_store::Payload>(
        store: &Store<P>,
        render_time: Duration,
        epoch: u64,
    ) -> Leases {
        let after_changes = VecDeque::from([(0, Arc::new(store.lease()))]);
        let inside = Mutex::new(Inside { after_changes, handed: VecDeque::new() });
        Leases { epoch, render_ms: render_time.as_millis() as u64, inside }
    }

    /// Records a change that has just been applied. `now_ms` is called after the lease was taken.
    pub fn changed<P: page_store::Payload>(&self, store: &Store<P>, now_ms: impl Fn() -> u64) {
        let lease = Arc::new(store.lease());
        let mut inside = self.lock();
        let now = now_ms();
        // Changes within one second share the last lease, so that fewer are needed. A slightly later
        // time for a change is safe.
        if inside.after_changes.len() > 1
            && inside.after_changes.back().is_some_and(|(at, _)| at / 1_000 == now / 1_000)
        {
            inside.after_changes.pop_back();
        }
        let older =
            inside.after_changes.back().is_some_and(|(_, last)| last.number() > lease.number());
        if !older {
            inside.after_changes.push_back((now, lease));
        }
        self.forget(&mut inside, now);
    }

    /// The lease for a page without a lease of its own.
    pub fn assumed(&self, now_ms: u64) -> Arc<Lease> {
        let mut inside = self.lock();
        self.forget(&mut inside, now_ms);
        inside.after_changes.front().map(|(_, lease)| lease.clone()).expect("the first never goes")
    }

    /// Issues a lease for a page that a client is about to generate. Returns its token.
    pub fn hand_out<P: page_store::Payload>(&self, store: &Store<P>, now_ms: u64) -> String {
        let lease = store.lease();
        let number = lease.number();
        let mut inside = self.lock();
        self.forget(&mut inside, now_ms);
        inside.handed.retain(|(_, kept)| kept.number() != number);
        inside.handed.push_back((now_ms, Arc::new(lease)));
        if inside.handed.len() > HANDED_MAX {
            inside.handed.pop_front();
        }
        format!("{:x}.{}", self.epoch, number.get())
    }

    /// The lease for a token; `None` if it was not issued by this process or has expired.
    pub fn handed(&self, token: &[u8], now_ms: u64) -> Option<Arc<Lease>> {
        let (epoch, number) = std::str::from_utf8(token).ok()?.split_once('.')?;
        let is_own = u64::from_str_radix(epoch, 16).ok()? == self.epoch;
        let number: u64 = number.parse().ok().filter(|_| is_own)?;
        let mut inside = self.lock();
        self.forget(&mut inside, now_ms);
        let found = inside.handed.iter().find(|(_, lease)| lease.number().get() == number);
        found.map(|(_, lease)| lease.clone())
    }

    fn forget(&self, inside: &mut Inside, now_ms: u64) {
        let old = now_ms.saturating_sub(self.render_ms);
        while inside.after_changes.get(1).is_some_and(|(at, _)| *at <= old) {
            inside.after_changes.pop_front();
        }
        while inside.handed.front().is_some_and(|(at, _)| *at < old) {
            inside.handed.pop_front();
        }
    }

    /// Ignores poisoning: after a panic a lease may be missing, and then a page is not stored, which is
    /// harmless.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "memcached_leases_tests.rs"]
mod tests;
