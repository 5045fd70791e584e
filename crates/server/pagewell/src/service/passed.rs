//! Takes file descriptors that the parent process has passed (sd_listen_fds(3)): listening sockets.
//!
//! Taking ownership of a descriptor by its number needs `unsafe`, which this module contains and
//! nothing else (docs/decisions/language-and-code.md).

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes the passed descriptors. They are not inherited by child processes. A second call returns none.
/// Call this before any other file is opened.
///
/// # Errors
/// The environment names descriptors that do not exist: a sentence for the operator.
pub fn take() -> Result<Vec<OwnedFd>, String> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Ok(Vec::new());
    }
    let passed = sd_notify::listen_fds().map_err(|error| format!("LISTEN_FDS: {error}"))?;
    Ok(passed.map(own).collect())
}

fn own(number: RawFd) -> OwnedFd {
    #[allow(unsafe_code)]
    // SAFETY: the descriptor is open: `listen_fds` has set its close-on-exec flag. It was passed to this
    // process by its number, and for it alone (LISTEN_PID). Nothing else owns it, because `take` runs
    // only once and before any file is opened.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    owned
}
