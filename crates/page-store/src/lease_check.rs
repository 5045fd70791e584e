//! The lease check, left out for a whole process: for the test that shows what it prevents. Not there but
//! with the feature `lease-check-by-choice`.

use std::sync::atomic::{AtomicBool, Ordering};

static LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// From now on pages are stored whatever has changed since their renders began. Never for use.
pub fn leave_out_lease_check() {
    LEFT_OUT.store(true, Ordering::Relaxed);
}

pub(crate) fn is_left_out() -> bool {
    LEFT_OUT.load(Ordering::Relaxed)
}
