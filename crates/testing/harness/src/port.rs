//! Starts a server that cannot choose a free port itself, on one that is reserved for it.
//!
//! It is ready when it accepts connections and has written its pid file, if it writes one after binding its sockets.

use crate::address::Address;
use crate::process::{Process, READY_WITHIN};
use crate::{StartError, StartReason, free_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parameters of a start.
pub(crate) struct Start<'a> {
    /// The name of the server, for errors.
    pub name: &'a str,
    /// The path of the log.
    pub log: PathBuf,
    /// The pid file that the server writes after binding its sockets.
    pub pid_file: Option<PathBuf>,
}

impl<'a> Start<'a> {
    /// The start of a server whose log and pid file are in this directory.
    pub(crate) fn new(name: &'a str, dir: &Path) -> Start<'a> {
        Start {
            name,
            log: dir.join(format!("{name}.log")),
            pid_file: Some(dir.join(format!("{name}.pid"))),
        }
    }

    /// Starts the command that `command` returns for an address, on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Errors of `command`, or the reason why the server did not become ready.
    pub(crate) fn on_free_port(
        &self,
        command: impl FnOnce(SocketAddr) -> Result<Command, StartError>,
    ) -> Result<(Process, SocketAddr), StartError> {
        let port = free_port()
            .map_err(|error| StartError::new(self.name, StartReason::CannotPrepare, error))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process = Process::spawn(self.name, &mut command(address)?, &self.log)?;
        let written = || self.pid_file.as_ref().is_none_or(|file| file.exists());
        process.wait_ready(READY_WITHIN, || written() && Address::Tcp(address).accepts())?;
        Ok((process, address))
    }
}
