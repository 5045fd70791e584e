//! A private fcgiwrap on a Unix socket: FastCGI for plain CGI programs.
//!
//! Each request starts the program in `SCRIPT_FILENAME`. As root it runs as `www-data`.

use crate::address::Address;
use crate::process::{Process, READY_WITHIN};
use crate::{PrivateDir, StartError, find, users};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An fcgiwrap process that is running.
#[derive(Debug)]
pub struct FcgiWrap {
    process: Process,
    socket: PathBuf,
    _dir: PrivateDir,
}

impl FcgiWrap {
    /// Starts an fcgiwrap with this number of workers.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir, workers: u32) -> Result<FcgiWrap, StartError> {
        let account = users::for_server(&["www-data", "nobody", "http"]);
        dir.give_to(account.as_ref())?;
        let socket = dir.socket("fcgiwrap.sock")?;
        let mut command = Command::new(find::program(&["fcgiwrap"])?);
        command.args(["-c", &workers.to_string(), "-s"]).arg(format!("unix:{}", socket.display()));
        if let Some(account) = &account {
            command.uid(account.uid).gid(account.gid);
        }
        let log = dir.path().join("fcgiwrap.log");
        let mut process = Process::spawn("fcgiwrap", &mut command, &log)?;
        let address = Address::Unix(socket.clone());
        process.wait_ready(READY_WITHIN, || address.accepts())?;
        Ok(FcgiWrap { process, socket, _dir: dir })
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process id of fcgiwrap.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}
