//! A private Varnish, for comparisons.
//!
//! The caller writes its VCL; the frame around it (working directory, port, storage in memory, no
//! command line) is private to its directory. Runs in the foreground with its manager, so that the
//! CPU time of both processes is that of one tree. VCL is compiled by the C compiler that the
//! package brings with it, which takes a second or two.

use crate::address::{Address, free_port};
use crate::process::{Process, Stopped};
use crate::{PrivateDir, StartError, StartReason, find};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

const READY_WITHIN: Duration = Duration::from_secs(30);
/// How often a start is tried when somebody takes the port in between.
const PORT_ATTEMPTS: usize = 4;
/// A running Varnish.
#[derive(Debug)]
pub struct Varnish {
    process: Process,
    address: SocketAddr,
    _dir: PrivateDir,
}

impl Varnish {
    /// Starts one with this VCL and `memory_mb` MiB on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// `NotInstalled`, or whatever kept it from becoming ready: a mistake in the VCL, or a module
    /// that is not there, is `Ended`.
    pub fn start(dir: PrivateDir, vcl: &str, memory_mb: u32) -> Result<Varnish, StartError> {
        let program = find::program(&["varnishd"])?;
        let vcl = dir.file("default.vcl", vcl)?;
        let mut attempts = PORT_ATTEMPTS;
        loop {
            let port = free_port()
                .map_err(|error| StartError::new("varnish", StartReason::CannotPrepare, error))?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let pid_file = dir.path().join("varnish.pid");
            let mut command = Command::new(&program);
            command.args(["-F", "-T", "none", "-a", &address.to_string()]);
            command.args(["-s", &format!("malloc,{memory_mb}M"), "-f"]).arg(&vcl);
            command.arg("-n").arg(dir.path().join("varnish")).arg("-P").arg(&pid_file);
            let log = dir.path().join("varnish.log");
            let mut process = Process::spawn("varnish", &mut command, &log)?;
            // The pid file is written once the child has been launched: another server on this port
            // cannot be taken for this one.
            let ready = || pid_file.exists() && Address::Tcp(address).accepts();
            match process.wait_ready(READY_WITHIN, ready) {
                Ok(()) => return Ok(Varnish { process, address, _dir: dir }),
                Err(error) if attempts > 1 && error.detail.contains("in use") => attempts -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of its manager.
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
