//! A private HAProxy, for comparisons.
//!
//! The caller writes the directives of the frontend and further sections. The rest of the configuration (one
//! thread, timeouts, port) is private to its directory. Runs in the foreground, a master with one worker.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::{PrivateDir, StartError, find};
use std::process::Command;

/// Starts an HAProxy on a free port of 127.0.0.1. `frontend` contains directives of the frontend (`bind` is
/// added), `sections` contains further sections.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready: a mistake in the configuration is reported as
/// `Ended`.
pub fn start(dir: PrivateDir, frontend: &str, sections: &str) -> Result<OnPort, StartError> {
    let program = find::program(&["haproxy"])?;
    let started = Start::new("haproxy", dir.path()).on_free_port(|address| {
        let text = format!(
            "global\n nbthread 1\n maxconn 8000\ndefaults\n mode http\n timeout client 60s\n \
             timeout server 60s\n timeout connect 5s\n{sections}\n\
             frontend visitors\n bind {address}\n{frontend}\n"
        );
        let file = dir.file("haproxy.cfg", &text)?;
        let mut command = Command::new(&program);
        command.args(["-W", "-db", "-f"]).arg(file);
        command.arg("-p").arg(dir.path().join("haproxy.pid"));
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}
