//! The log: one line per event, in key=value format, on standard error; `docs/operating/log.md`
//! lists the event names. If the log cannot be written (full disk, closed pipe), lines are lost and
//! no response fails. A value of more than one word is quoted, with line ends written as `\n`, so
//! that foreign data cannot begin a line.

use clap::ValueEnum;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::Level;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// The log level: its events and those that are more severe are logged.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum LogLevel {
    /// Failures
    Error,
    /// Conditions that may become failures
    Warn,
    /// Rare events of interest
    #[default]
    Info,
    /// Details for diagnosis
    Debug,
}

/// Starts logging at `level`.
///
/// # Errors
/// Logging has been started before.
pub fn start(level: LogLevel) -> Result<(), String> {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        // They would also be written to standard error, and panic if that fails.
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .try_init()
        .map_err(|error| error.to_string())
}

/// Limits how often a message is logged that clients can cause at any rate.
pub struct Seldom {
    every: Duration,
    said: Mutex<Option<Duration>>,
}

impl Seldom {
    /// Allows one message per `every`; none has been logged yet.
    pub const fn once_in(every: Duration) -> Seldom {
        Seldom { every, said: Mutex::new(None) }
    }

    /// Whether the message is due at the time `now` of the monotonic clock.
    #[inline]
    pub fn is_due(&self, now: Duration) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = said.is_none_or(|at| now.saturating_sub(at) >= self.every);
        if is_due {
            *said = Some(now);
        }
        is_due
    }
}

/// Writes a field as key and value.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    write!(out, "{field}={}", one_word(format!("{value:?}")))
}

/// Quotes text of more than one word, unless it is quoted already.
fn one_word(text: String) -> String {
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && letter != '"';
    if text.starts_with('"') || (!text.is_empty() && text.chars().all(is_plain)) {
        text
    } else {
        format!("{text:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_message_is_logged_again_after_its_interval() {
        let seldom = Seldom::once_in(Duration::from_secs(10));
        let due = [0, 1, 9, 10, 11, 19, 25].map(|at| seldom.is_due(Duration::from_secs(at)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn a_value_is_one_word_on_one_line() {
        let word = |text: &str| one_word(text.to_owned());
        assert_eq!(word("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(
            word("Connection refused (os error 111)"),
            "\"Connection refused (os error 111)\""
        );
        assert_eq!(word("a.toml:\nno key \"b\""), "\"a.toml:\\nno key \\\"b\\\"\"");
        assert_eq!(word("\"said so\""), "\"said so\"");
        assert_eq!(word(""), "\"\"");
    }
}
