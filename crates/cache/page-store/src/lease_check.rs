//! Turns the lease check off for a whole process, so that a test can show what the check prevents. It
//! exists only with the feature `lease-check-by-choice`, which no release has. The model tests use another
//! feature for each test binary: `without-lease-check`.

use std::sync::atomic::{AtomicBool, Ordering};

static LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// From now on, pages are stored whatever has changed since their renders began. For tests only.
pub fn leave_out_lease_check() {
    LEFT_OUT.store(true, Ordering::Relaxed);
}

pub(crate) fn is_left_out() -> bool {
    LEFT_OUT.load(Ordering::Relaxed)
}
