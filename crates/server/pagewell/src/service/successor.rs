//! Starts the program that is installed now, to take over from this process: with the same arguments, in the
//! same group of processes, so that it is the same service. A program that was replaced is started from where
//! it was.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use tokio::process::Command;

/// What the system adds to the path of a program that was replaced (proc(5)).
const DELETED: &[u8] = b" (deleted)";
/// The flag that has it take over.
const TAKE_OVER: &str = "--take-over";

/// What the manager has said to this process alone.
const FOR_US: [&str; 4] = ["WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// Starts it, and says in the log when it has ended while this process is there.
///
/// # Errors
/// It cannot be started: a sentence for the operator.
pub fn start() -> Result<(), String> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    if !std::env::args_os().any(|argument| argument == TAKE_OVER) {
        command.arg(TAKE_OVER);
    }
    // The manager's sockets come another way, and its watch is for whoever is the service.
    for name in FOR_US {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    tracing::info!(event = "successor-started", pid = child.id());
    tokio::spawn(async move {
        let ended = child.wait().await;
        let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        tracing::error!(event = "successor-ended", status);
    });
    Ok(())
}

/// Where the program is.
fn program() -> Result<PathBuf, String> {
    let path = std::env::current_exe().map_err(|error| format!("where is the program? {error}"))?;
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(DELETED).unwrap_or(bytes);
    Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
}
