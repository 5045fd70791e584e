//! Why a connection to a database failed, why a stream is no longer followed, and how a follower
//! recovers: by a new attempt, from the current position with all pages purged, or not before an operator
//! has changed a setting. Also warnings, which stop nothing.

use std::fmt;
use std::io;

/// Why a connection failed.
#[derive(Debug)]
pub enum ConnectionError {
    /// A network error or a timeout.
    Io(io::Error),
    /// The database refused, or sent an invalid message: the reason's name, and a sentence.
    Said(&'static str, String),
    /// The same, and a new attempt fails in the same way until an operator changes a setting.
    Lasting(&'static str, String),
}

impl ConnectionError {
    /// Creates the error for a refusal with this name and sentence. `is_lasting`: a new attempt fails in
    /// the same way until an operator changes a setting.
    pub fn of(name: &'static str, text: &dyn fmt::Display, is_lasting: bool) -> ConnectionError {
        let text = text.to_string();
        if is_lasting {
            ConnectionError::Lasting(name, text)
        } else {
            ConnectionError::Said(name, text)
        }
    }

    /// Returns the reason's name for the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionError::Io(_) => "connection",
            ConnectionError::Said(name, _) | ConnectionError::Lasting(name, _) => name,
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::Io(error) => error.fmt(f),
            ConnectionError::Said(_, text) | ConnectionError::Lasting(_, text) => f.write_str(text),
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
            ConnectionError::Lasting(..) => Recovery::Unusable,
            ConnectionError::Io(_) | ConnectionError::Said(..) => Recovery::Again,
        };
        StreamFault { name: failed.as_str(), text: failed.to_string(), then }
    }
}

/// A setting that works but could be improved: the name of the log event, and a sentence.
pub type Warning = (&'static str, String);
