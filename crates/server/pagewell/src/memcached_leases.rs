//! When the render of a page began that comes through the memcached port.
//!
//! Two ways to know. A client that asked for a lease before it began (`get pagewell:lease`) says which: the
//! lease of that moment is kept here for as long as a render may take. Of any other page it is assumed that
//! its render began so long ago (`memcached.render_time`): after each change a lease is kept, and the page
//! gets the last one that is old enough. So every change within that time counts against the page.
//!
//! Why that is right: a kept lease's time is read after it was taken. Every change with a larger number came
//! after that time; every change up to its number was applied before it, so a render that began later saw it.
//! Bounded: one lease a second, and [`HANDED_MAX`] handed out. Under the lock the
//! store's index is taken, where a kept lease goes, and nothing else.

use page_store::{Lease, Store};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Leases handed out at once, those of one number counted once; the oldest gives way.
const HANDED_MAX: usize = 10_000;

/// The leases that are kept for one site.
pub struct Leases {
    /// What sets this process's leases apart from those of one before.
    epoch: u64,
    render_ms: u64,
    inside: Mutex<Inside>,
}

struct Inside {
    /// After changes, oldest first; the first is the last that is old enough for everybody.
    after_changes: VecDeque<(u64, Arc<Lease>)>,
    /// Handed out, by number.
    handed: VecDeque<(u64, Arc<Lease>)>,
}

impl Leases {
    /// Nothing but the store's beginning. `epoch` is the process's own.
    pub fn new<P: page_store::Payload>(
        store: &Store<P>,
        render_time: Duration,
        epoch: u64,
    ) -> Leases {
        let after_changes = VecDeque::from([(0, Arc::new(store.lease()))]);
        let inside = Mutex::new(Inside { after_changes, handed: VecDeque::new() });
        Leases { epoch, render_ms: render_time.as_millis() as u64, inside }
    }

    /// Takes notice of a change that has just been applied. `now_ms` is asked for after the lease is taken.
    pub fn changed<P: page_store::Payload>(&self, store: &Store<P>, now_ms: impl Fn() -> u64) {
        let lease = Arc::new(store.lease());
        let mut inside = self.lock();
        let now = now_ms();
        // Changes of one second share the last one's lease: a little later is safe, for fewer leases.
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

    /// The lease of a page of which nobody has said when its render began.
    pub fn assumed(&self, now_ms: u64) -> Arc<Lease> {
        let mut inside = self.lock();
        self.forget(&mut inside, now_ms);
        inside.after_changes.front().map(|(_, lease)| lease.clone()).expect("the first never goes")
    }

    /// A lease for a render that is about to begin, as its client gives it back.
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

    /// The lease that a client gives back; `None` where it is not one of this process, or over.
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

    /// A panic cannot leave a list half-changed in a way that matters: a lease too few is a page too few.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "memcached_leases_tests.rs"]
mod tests;
