//! Starting a server that cannot choose a free port itself: on one that nobody has now, and on another
//! if somebody takes it in between.
//!
//! Ready is when it accepts connections and has written its pid file, if it writes one after it has
//! bound its sockets: another server on that port cannot be taken for it.

use crate::address::{Address, free_port};
use crate::process::Process;
use crate::{StartError, StartReason};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How often a start is tried when somebody takes the port in between.
const ATTEMPTS: usize = 4;
/// What servers say when it was taken.
const TAKEN: [&str; 3] = ["in use", "ould not bind", "annot bind"];

/// What is started.
pub(crate) struct Start<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// Where what it says goes.
    pub log: PathBuf,
    /// The file that it writes when its sockets are bound.
    pub pid_file: Option<PathBuf>,
    /// How long that may take.
    pub within: Duration,
}

impl<'a> Start<'a> {
    /// A start of a server that has its log and its pid file in this directory.
    pub(crate) fn new(name: &'a str, dir: &Path) -> Start<'a> {
        Start {
            name,
            log: dir.join(format!("{name}.log")),
            pid_file: Some(dir.join(format!("{name}.pid"))),
            within: Duration::from_secs(30),
        }
    }

    /// Starts what `command` makes for an address, on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Those of `command`, or whatever kept it from becoming ready.
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
    fn another_port_is_tried_when_it_was_taken_and_nothing_else_is() {
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
