//! The locks and atomics of the store: those of `std::sync`, or of loom with the feature `loom`.
//!
//! Everything that decides freshness uses this module, so that the model checker sees it: the index lock,
//! the shard locks, the stripes of the fills, the copy of the clock and the mark on a page. `Arc` and the
//! hit counters are those of `std`, because freshness does not depend on their order.
//!
//! A poisoned lock means that this crate panicked in the middle of a change to its structures. Continuing
//! could serve a purged page, so every later caller panics as well: it fails safe.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::AtomicU64;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The beginning of the panic message of a thread that finds a lock poisoned.
pub const POISONED: &str =
    "a lock is poisoned only by a bug in this crate, after which nothing is sure";

/// Locks `mutex`. Panics if the lock is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(POISONED)
}

/// Locks `mutex` in a destructor. Returns `None` if it is poisoned, because a second panic would abort.
pub(crate) fn lock_to_release<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.lock().ok()
}

/// Locks for reading, together with other readers. Panics if the lock is poisoned.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().expect(POISONED)
}

/// Locks for writing, exclusively. Panics if the lock is poisoned.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().expect(POISONED)
}

/// Lets another thread run, between two holds of the index lock in a long sweep.
pub(crate) fn yield_now() {
    #[cfg(feature = "loom")]
    loom::thread::yield_now();
    #[cfg(not(feature = "loom"))]
    std::thread::yield_now();
}
