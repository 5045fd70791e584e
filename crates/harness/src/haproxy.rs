//! A private HAProxy, for comparisons.
//!
//! The caller writes the directives of the frontend, and the sections beside it; the frame (one thread,
//! times, port) is private to its directory. Runs in the foreground, a master with one worker.

use crate::port::Start;
use crate::process::{Process, Stopped};
use crate::{PrivateDir, StartError, find};
use std::net::SocketAddr;
use std::process::Command;

/// A running HAProxy.
#[derive(Debug)]
pub struct HaProxy {
    process: Process,
    address: SocketAddr,
    _dir: PrivateDir,
}

impl HaProxy {
    /// Starts one on a free port of 127.0.0.1: `frontend` are directives of the frontend (`bind` is
    /// added), `sections` stand beside it.
    ///
    /// # Errors
    /// `NotInstalled`, or whatever kept it from becoming ready: a mistake in the configuration is
    /// `Ended`.
    pub fn start(dir: PrivateDir, frontend: &str, sections: &str) -> Result<HaProxy, StartError> {
        let program = find::program(&["haproxy"])?;
        let (process, address) = Start::new("haproxy", dir.path()).on_free_port(|address| {
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
        Ok(HaProxy { process, address, _dir: dir })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of the root of its processes.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The end of what it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops it in good order.
    pub fn stop(&mut self) -> Stopped {
        self.process.stop()
    }
}
