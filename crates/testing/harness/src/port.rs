//! Starts a server that cannot choose a free port itself: on a port that is free now, and on another one if
//! that port is taken in between.
//!
//! A server is ready when it accepts connections and has written its pid file, if it writes one after binding
//! its sockets. Another server on the same port can therefore not be mistaken for it.

use crate::address::{Address, free_port};
use crate::process::Process;
use crate::{StartError, StartReason};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The maximum number of attempts if the port is taken in between.
const ATTEMPTS: usize = 4;
/// Parts of the messages that servers print if the port is taken.
const TAKEN: [&str; 3] = ["in use", "ould not bind", "annot bind"];

/// The parameters of a start.
pub(crate) struct Start<'a> {
    /// The name of the server, for errors.
    pub name: &'a str,
    /// The path of the log.
    pub log: PathBuf,
    /// The pid file that the server writes after binding its sockets.
    pub pid_file: Option<PathBuf>,
    /// The timeout for the start.
    pub within: Duration,
}

impl<'a> Start<'a> {
    /// The start of a server whose log and pid file are in this directory.
    pub(crate) fn new(name: &'a str, dir: &Path) -> Start<'a> {
        Start {
            name,
            log: dir.join(format!("{name}.log")),
            pid_file: Some(dir.join(format!("{name}.pid"))),
            within: Duration::from_secs(30),
        }
    }

    /// Starts the command that `command` returns for an address, on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Errors of `command`, or the reason why the server did not become ready.
    pub(crate) fn on_free_port(
        &self,
        mut command: impl FnMut(SocketAddr) -> Result<Command, StartError>,
    ) -> Result<(Process, SocketAddr), StartError> {
        let mut attempts = ATTEMPTS;
        loop {
            let port = free_port()
                .map_err(|error| StartError::new(self.name, StartReason::CannotPrepare, error))?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if let Some(file) = &self.pid_file {
                let _ = fs::remove_file(file);
            }
            let mut process = Process::spawn(self.name, &mut command(address)?, &self.log)?;
            let written = || self.pid_file.as_ref().is_none_or(|file| file.exists());
            match process.wait_ready(self.within, || written() && Address::Tcp(address).accepts()) {
                Ok(()) => return Ok((process, address)),
                Err(error) if attempts > 1 && taken(&error.detail) => attempts -= 1,
                Err(error) => return Err(error),
            }
        }
    }
}

fn taken(said: &str) -> bool {
    TAKEN.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivateDir, find};
    use std::cell::Cell;

    #[test]
    fn another_port_is_tried_only_when_the_first_is_taken() {
        let dir = PrivateDir::temporary("port").expect("can be made");
        for (says, expected) in [("bind(): Address already in use", ATTEMPTS), ("no such file", 1)]
        {
            let mut start = Start::new("shell", dir.path());
            start.log = dir.path().join(format!("{expected}.log"));
            let tried = Cell::new(0);
            let failed = start.on_free_port(|_| {
                tried.set(tried.get() + 1);
                let mut command = Command::new(find::program(&["sh"])?);
                command.args(["-c", &format!("echo '{says}'; exit 1")]);
                Ok(command)
            });
            assert_eq!(failed.map(|_| ()).expect_err("ends").reason, StartReason::Ended);
            assert_eq!(tried.get(), expected, "{says}");
        }
    }
}
