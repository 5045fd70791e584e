//! A private memcached, on a Unix socket or a free port.
//!
//! For comparisons, and for tests of the protocol against the original. Its content is lost when it ends. As
//! root it runs as `memcache`, or `nobody`.

use crate::address::Address;
use crate::port::Start;
use crate::process::{Process, READY_WITHIN, StopResult};
use crate::users;
use crate::{PrivateDir, StartError, find};
use std::process::Command;

/// A memcached process that is running.
#[derive(Debug)]
pub struct Memcached {
    process: Process,
    address: Address,
    _dir: PrivateDir,
}

impl Memcached {
    /// Starts a memcached with `memory_mb` MiB on a Unix socket in `dir`.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir, memory_mb: u32) -> Result<Memcached, StartError> {
        let account = users::for_server(&["memcache", "nobody"]);
        dir.give_to(account.as_ref())?;
        let socket = dir.socket("memcached.sock")?;
        let mut command = command(memory_mb)?;
        command.arg("-s").arg(&socket).args(["-a", "0666"]);
        Self::run(dir, &mut command, Address::Unix(socket))
    }

    /// Starts a memcached with `memory_mb` MiB on a free TCP port of 127.0.0.1.
    ///
    /// # Errors
    /// As for [`Memcached::start`].
    pub fn start_on_port(memory_mb: u32) -> Result<Memcached, StartError> {
        let dir = PrivateDir::temporary("memcached")?;
        let start = Start { pid_file: None, ..Start::new("memcached", dir.path()) };
        let (process, address) = start.on_free_port(|address| {
            let mut command = command(memory_mb)?;
            let port = address.port().to_string();
            command.args(["-l", "127.0.0.1", "-U", "0", "-p", &port]);
            Ok(command)
        })?;
        Ok(Memcached { process, address: address.into(), _dir: dir })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The process id of memcached.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self) -> StopResult {
        self.process.stop()
    }

    fn run(
        dir: PrivateDir,
        command: &mut Command,
        address: Address,
    ) -> Result<Memcached, StartError> {
        let log = dir.path().join("memcached.log");
        let mut process = Process::spawn("memcached", command, &log)?;
        process.wait_ready(READY_WITHIN, || address.accepts())?;
        Ok(Memcached { process, address, _dir: dir })
    }
}

fn command(memory_mb: u32) -> Result<Command, StartError> {
    let mut command = Command::new(find::program(&["memcached"])?);
    command.args(["-m", &memory_mb.to_string()]);
    // Background threads hold items for a moment, which changes the answers.
    command.args(["-o", "no_lru_crawler,no_lru_maintainer"]);
    if let Some(account) = users::for_server(&["memcache", "nobody"]) {
        command.args(["-u", &account.name]);
    }
    Ok(command)
}
