//! A server that was started on a free port, with its private directory.
//!
//! What one of any kind is to the tests and comparisons that ask it: an address, processes, what it
//! says, and an end in good order. How each kind is configured is in the file of its name.

use crate::PrivateDir;
use crate::process::{Process, Stopped};
use std::net::SocketAddr;
use std::path::Path;

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub struct OnPort {
    process: Process,
    address: SocketAddr,
    dir: PrivateDir,
}

impl OnPort {
    /// What was started with its files in `dir`.
    pub(crate) fn new((process, address): (Process, SocketAddr), dir: PrivateDir) -> OnPort {
        OnPort { process, address, dir }
    }

    /// Its private directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
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
