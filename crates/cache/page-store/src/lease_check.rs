//! The lease check, left out for a whole process, by a call: for the run of a real binary that shows what
//! the check prevents. Not there but with the feature `lease-check-by-choice`, which no release has.
//! The models have a feature of their own, `without-lease-check`, for the check of each test binary.

use std::sync::atomic::{AtomicBool, Ordering};

static LEFT_OUT: AtomicBool = AtomicBool::new(false);

/// From now on pages are stored whatever has changed since their renders began. Never for use.
pub fn leave_out_lease_check() {
    LEFT_OUT.store(true, Ordering::Relaxed);
}

pub(crate) fn is_left_out() -> bool {
    LEFT_OUT.load(Ordering::Relaxed)
}
