//! Why a server could not be started, by name, with what it said itself.
//!
//! The reason is for the program that asked (a missing package is a matter for `scripts/setup`, a
//! taken port can be tried again); the detail is for the person who reads the failed test.

use std::error::Error;
use std::fmt;

/// Why a server could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartReason {
    /// No such program here; `scripts/setup` installs it.
    NotInstalled,
    /// Its directory, configuration or database could not be made.
    CannotPrepare,
    /// The system refused to run it.
    CannotSpawn,
    /// The path of its socket is longer than the 107 bytes that the system allows.
    PathTooLong,
    /// Another process listens on its port.
    PortTaken,
    /// It ended before it was ready.
    Ended,
    /// It runs, but was not ready within its bound.
    NotReady,
    /// It is ready, and refused what was asked of it (a statement, a request).
    Refused,
}

impl StartReason {
    /// Its name, as printed.
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
    /// The program, as its users call it: `mariadbd`.
    pub program: String,
    /// Why.
    pub reason: StartReason,
    /// What was tried, and the last lines that the program wrote.
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
