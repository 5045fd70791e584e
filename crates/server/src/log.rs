//! The log: one line an event, key and value, to standard error; event names are listed in
//! `docs/operating/log.md`. A log that cannot be written (a full disk, a closed pipe) is given up: no
//! answer fails because of it.

use tracing::Level;

/// Starts logging at `level`.
///
/// # Errors
/// The level is none.
pub fn start(level: &str) -> Result<(), String> {
    let level = match level {
        "error" => Level::ERROR,
        "warn" => Level::WARN,
        "info" => Level::INFO,
        "debug" => Level::DEBUG,
        other => return Err(format!("--log {other}: error, warn, info or debug")),
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        // It would be told on standard error too, and panic where that cannot be written.
        .log_internal_errors(false)
        .with_ansi(false)
        .with_target(false)
        .try_init()
        .map_err(|error| error.to_string())
}
