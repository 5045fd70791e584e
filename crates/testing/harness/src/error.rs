//! The reason why a server could not be started, with the server's own output.
//!
//! The reason is for the calling program (a missing package is installed by `scripts/setup`, a start with a
//! taken port can be repeated). The detail is for the person who reads the failed test.

use std::error::Error;
use std::fmt;

/// The reason why a server could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartReason {
    /// The program is not installed; `scripts/setup` installs it.
    NotInstalled,
    /// The directory, configuration or database could not be created.
    CannotPrepare,
    /// The system refused to run the program.
    CannotSpawn,
    /// The path of the socket is longer than the 107 bytes that the system allows.
    PathTooLong,
    /// Another process listens on the port.
    PortTaken,
    /// The program ended before it was ready.
    Ended,
    /// The program is running, but was not ready within its timeout.
    NotReady,
    /// The server is ready, but refused a statement or request.
    Refused,
}

impl StartReason {
    /// The name of the reason, as printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StartReason::NotInstalled => "not-installed",
            StartReason::CannotPrepare => "cannot-prepare",
            StartReason::CannotSpawn => "cannot-spawn",
            StartReason::PathTooLong => "path-too-long",
            StartReason::PortTaken => "port-taken",
            StartReason::Ended => "ended",
            StartReason::NotReady => "not-ready",
            StartReason::Refused => "refused",
        }
    }
}

/// A server that could not be started, or that refused its set-up.
#[derive(Debug, Clone)]
pub struct StartError {
    /// The name of the program: `mariadbd`.
    pub program: String,
    /// The reason for the failure.
    pub reason: StartReason,
    /// The attempted action, and the last lines of the program's output.
    pub detail: String,
}

impl StartError {
    /// An error of `program`.
    #[must_use]
    pub fn new(program: &str, reason: StartReason, detail: impl fmt::Display) -> StartError {
        StartError { program: program.to_owned(), reason, detail: detail.to_string() }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.program, self.reason.as_str(), self.detail)
    }
}

impl Error for StartError {}
