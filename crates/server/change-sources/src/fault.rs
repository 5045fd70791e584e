//! Why a connection to a database failed, why a stream is no longer followed, and how a follower
//! recovers: by a new attempt, from the current position with all pages purged, or not before an operator
//! has changed a setting.

use std::fmt;
use std::io;

/// Why a connection failed.
#[derive(Debug)]
pub enum ConnectionError {
    /// A network error or a timeout.
    Io(io::Error),
    /// The database refused, or sent an invalid message: the reason's name, and a sentence.
    Said(&'static str, String),
}

impl ConnectionError {
    /// Returns the reason's name for the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionError::Io(_) => "connection",
            ConnectionError::Said(name, _) => name,
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::Io(error) => error.fmt(f),
            ConnectionError::Said(_, text) => f.write_str(text),
        }
    }
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> ConnectionError {
        ConnectionError::Io(error)
    }
}

/// Why a stream is no longer followed.
#[derive(Debug)]
pub struct StreamFault {
    /// The reason's name for the log.
    pub name: &'static str,
    /// A sentence for the operator.
    pub text: String,
    /// How the follower can recover.
    pub then: Recovery,
}

/// How to recover from a broken stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Reconnect and resume at the saved position.
    Again,
    /// Reconnect at the current position: the saved one is lost, changes may have been missed.
    Gap,
    /// The database cannot be followed with its current settings. An operator must change them.
    Unusable,
    /// The saved position is lost, and an operator must change settings.
    Lost,
}

impl StreamFault {
    /// The error for a database that cannot be followed; `text` is a sentence for the operator.
    pub fn unusable(text: impl Into<String>) -> StreamFault {
        StreamFault { name: "unusable", text: text.into(), then: Recovery::Unusable }
    }
}

impl From<ConnectionError> for StreamFault {
    fn from(failed: ConnectionError) -> StreamFault {
        let then = match &failed {
            ConnectionError::Said(name, _) if FOR_THE_OPERATOR.contains(name) => Recovery::Unusable,
            _ => Recovery::Again,
        };
        StreamFault { name: failed.as_str(), text: failed.to_string(), then }
    }
}

/// Reasons that a new attempt cannot resolve.
const FOR_THE_OPERATOR: [&str; 13] = [
    "bad-certificate",
    "no-binary-log",
    "no-tls",
    "access-denied",
    "not-permitted",
    "no-such-table",
    "unknown-plugin",
    "password-in-the-clear",
    "old-server",
    "no-stream",
    "no-such-database",
    "unknown-method",
    "bad-proof",
];
