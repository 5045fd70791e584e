//! The numbers of the clock, and leases: the clock's value when a render began, registered while the render
//! runs.
//!
//! Invariant: while a lease is outstanding, every change with a larger number is remembered, or the floor
//! shows that the lease is too old (rule 4). Reading the clock and registering the lease happen in one hold
//! of the index lock, so no change can be forgotten in between. Dropping a lease releases it.

use crate::hash::Id;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Whether renders older than a change are refused: always, except in tests that show the effect of the
/// check.
pub fn is_lease_checked() -> bool {
    #[cfg(feature = "lease-check-by-choice")]
    if crate::lease_check::is_left_out() {
        return false;
    }
    !cfg!(feature = "without-lease-check")
}

/// A value of the store's clock. Only changes advance it, and it never goes back.
///
/// As an arrival stamp it says which changes had been acknowledged when a request arrived: all changes up
/// to this number. Some of them may still have been in progress, which does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub(crate) u64);

impl Number {
    /// The plain number, for logs and metrics.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The receiver of released leases and open changes.
pub(crate) trait Registry: Send + Sync {
    /// Releases a lease.
    fn release(&self, lease: Number);
    /// Records that an open change was dropped without being settled.
    fn abandon(&self, ids: Vec<Id>);
    /// Settles an open change; returns the number of the settlement.
    fn settle(&self, ids: &[Id]) -> Number;
}

/// The right to store one render, unless a dependency changed after [`number`](Self::number). Take it
/// before the request is sent to the origin. Keep it until the page is stored and every request that waits
/// for it has decided.
pub struct Lease {
    number: Number,
    registry: Arc<dyn Registry>,
}

impl Lease {
    pub(crate) fn new(number: Number, registry: Arc<dyn Registry>) -> Self {
        Self { number, registry }
    }

    /// The clock's value when the render began.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Whether the lease belongs to `registry`.
    pub(crate) fn is_of<R: Registry>(&self, registry: &R) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.registry), registry)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.registry.release(self.number);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.number.0).finish()
    }
}

/// The outstanding leases, counted by number. It takes one tree entry for each number with leases.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    by_number: BTreeMap<Number, usize>,
    out: usize,
}

impl Leases {
    pub(crate) fn take(&mut self, number: Number) {
        *self.by_number.entry(number).or_insert(0) += 1;
        self.out += 1;
    }

    pub(crate) fn give_back(&mut self, number: Number) {
        let Some(count) = self.by_number.get_mut(&number) else { return };
        *count -= 1;
        if *count == 0 {
            self.by_number.remove(&number);
        }
        self.out -= 1;
    }

    pub(crate) fn oldest(&self) -> Option<Number> {
        self.by_number.first_key_value().map(|(number, _)| *number)
    }

    pub(crate) fn out(&self) -> usize {
        self.out
    }

    /// Panics if a count is wrong or a number is ahead of the clock.
    pub(crate) fn validate(&self, clock: Number) {
        assert_eq!(self.out, self.by_number.values().sum::<usize>(), "leases out");
        assert!(self.by_number.values().all(|count| *count > 0), "an empty count of leases");
        assert!(self.by_number.keys().all(|number| *number <= clock), "a lease ahead of the clock");
    }
}
