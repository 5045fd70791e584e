//! Takes file descriptors that the parent process has passed (sd_listen_fds(3)): listening sockets.
//!
//! Taking ownership of a descriptor by its number needs `unsafe`, which this module contains and
//! nothing else (docs/decisions/0046-passed-sockets.md).

use rustix::io::{FdFlags, fcntl_setfd};
use std::env;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first passed descriptor; lower numbers are the standard streams.
const FIRST: RawFd = 3;
/// Maximum number of passed descriptors.
const MAX: RawFd = 64;

/// Takes the passed descriptors. They are not inherited by child processes. A second call returns none.
/// Call this before any other file is opened.
///
/// # Errors
/// The environment names descriptors that do not exist: a sentence for the operator.
pub fn take() -> Result<Vec<OwnedFd>, String> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name: &str| env::var(name).ok()?.parse::<RawFd>().ok();
    let is_for_us = number("LISTEN_PID") == RawFd::try_from(std::process::id()).ok();
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0).clamp(0, MAX);
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Ok(Vec::new());
    }
    (FIRST..FIRST + count).map(one).collect()
}

fn one(number: RawFd) -> Result<OwnedFd, String> {
    if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
        return Err(format!("LISTEN_FDS: no descriptor {number} was passed"));
    }
    #[allow(unsafe_code)]
    // SAFETY: the descriptor is open, as was just checked. It was passed to this process by its number,
    // and for it alone (LISTEN_PID). Nothing else owns it, because `take` runs only once and before any
    // file is opened.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&owned, FdFlags::CLOEXEC).map_err(|error| format!("LISTEN_FDS: {error}"))?;
    Ok(owned)
}
