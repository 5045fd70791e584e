//! Descriptors that whoever has started Pagewell hands over (sd_listen_fds(3)): sockets, bound already and
//! listening. To say of a number that it is a descriptor of ours needs `unsafe`, which is here, and
//! nothing else (docs/decisions/0046-passed-sockets.md).

use rustix::io::{FdFlags, fcntl_setfd};
use std::env;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The first of them: those before are the standard ones.
const FIRST: RawFd = 3;
/// More are not taken.
const MAX: RawFd = 64;

/// Takes them, for this process alone: what it starts does not get them. They can be taken once; who asks
/// again gets none. To be called before anything else is opened.
///
/// # Errors
/// The environment speaks of descriptors that are not there: a sentence for the operator.
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
    // SAFETY: the descriptor is open, as was just seen. It was passed to this process by its number, and
    // for it alone (LISTEN_PID), so nothing here has it already: it is asked for once, before anything else
    // is opened, so nothing can have been given that number since.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&owned, FdFlags::CLOEXEC).map_err(|error| format!("LISTEN_FDS: {error}"))?;
    Ok(owned)
}
