//! A server that was started on a free port, with its private directory.
//!
//! It has what tests and comparisons need from any kind of server: an address, process ids, a log, and a
//! graceful stop. Each kind is configured in its own file.

use crate::PrivateDir;
use crate::process::{Process, StopResult};
use std::net::SocketAddr;
use std::path::Path;

/// A running server. It is killed on drop.
#[derive(Debug)]
pub struct OnPort {
    process: Process,
    address: SocketAddr,
    dir: PrivateDir,
}

impl OnPort {
    /// A server whose files are in `dir`.
    pub(crate) fn new((process, address): (Process, SocketAddr), dir: PrivateDir) -> OnPort {
        OnPort { process, address, dir }
    }

    /// The private directory of the server.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of the root of its process tree.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) -> StopResult {
        self.process.stop()
    }
}
