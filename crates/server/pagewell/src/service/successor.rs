//! Starts the installed program as the successor of this process (zero-downtime restart). It gets the
//! same arguments and the same process group, so it belongs to the same service. Its standard input is the
//! connection over which it takes over: so no other process can.
//!
//! If the program file was replaced, the file at the original path is started.

use crate::take_over::{INHERITED, StartedProcess};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use telemetry::open_files;
use tokio::process::Command;

/// The suffix that the kernel adds to the path of a program file that was replaced (proc(5)).
const DELETED: &[u8] = b" (deleted)";
/// The option that makes the successor take over.
const TAKE_OVER: &str = "--take-over";

/// Environment variables that apply to this process only.
const FOR_US: [&str; 4] = ["WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// Starts the successor. Logs its end if it exits while this process is still running.
///
/// # Errors
/// It cannot be started: a sentence for the operator.
pub fn start() -> Result<StartedProcess, String> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    if !std::env::args_os().any(|argument| argument == TAKE_OVER) {
        command.arg(TAKE_OVER);
    }
    // The sockets are passed in another way, and the watchdog applies to the main process only.
    for name in FOR_US {
        command.env_remove(name);
    }
    if let Some(limit) = open_files::earlier_limit().and_then(|limit| limit.current) {
        command.env(open_files::EARLIER_SOFT_LIMIT, limit.to_string());
    }
    let pair = UnixStream::pair().map_err(|error| format!("no pair of sockets: {error}"))?;
    let (stream, theirs) = pair;
    command.stdin(OwnedFd::from(theirs)).env(INHERITED, "stdin");
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    // Its end of the connection is closed here, so that the end of the process is noticed.
    drop(command);
    let pid = child.id().unwrap_or_default();
    tracing::info!(event = "successor-started", pid);
    tokio::spawn(async move {
        let ended = child.wait().await;
        let status = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        tracing::error!(event = "successor-ended", status);
    });
    Ok(StartedProcess { pid: pid as i32, stream })
}

/// The path of the program file.
fn program() -> Result<PathBuf, String> {
    let path = std::env::current_exe().map_err(|error| format!("where is the program? {error}"))?;
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(DELETED).unwrap_or(bytes);
    Ok(PathBuf::from(OsString::from_vec(bytes.to_vec())))
}
