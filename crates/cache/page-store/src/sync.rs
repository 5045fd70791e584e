//! The locks and atomics of the store: `std::sync`, or loom's under `cfg(loom)`.
//!
//! Only what decides freshness goes through here, so that the model checker sees it: the index lock, the
//! shard locks, the stripes of the fills, the clock's mirror and the mark on a page. `Arc` and the hit
//! counters stay `std`'s: no freshness hangs on their order.
//!
//! A poisoned lock means that this crate panicked half-way through a change of its structures. Going on
//! could serve a page that should be gone, so every later caller panics as well: fail safe, not soft.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How the panic begins of whoever finds a lock poisoned.
pub const POISONED: &str =
    "a lock is poisoned only by a bug in this crate, after which nothing is sure";

/// Locks `mutex`. Panics where an earlier panic left it poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(POISONED)
}

/// Locks `mutex` in a destructor: `None` where it is poisoned, for a second panic would abort.
pub(crate) fn lock_to_release<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.lock().ok()
}

/// Locks for reading, beside other readers.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().expect(POISONED)
}

/// Locks for writing, alone.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().expect(POISONED)
}

/// Lets another thread run; between two holds of the index lock in a long sweep.
pub(crate) fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}
