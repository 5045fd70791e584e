//! A private Valkey or Redis, on a Unix socket and a port of its own.
//!
//! For tests of clusters, whose nodes share invalidations. It stores nothing on disk, so a restarted server is
//! empty. Not here: its content.

use crate::address::Address;
use crate::process::{Process, READY_WITHIN, StopResult};
use crate::{PrivateDir, StartError, StartReason, find, free_port};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running Valkey or Redis.
#[derive(Debug)]
pub struct Valkey {
    process: Process,
    socket: PathBuf,
    port: u16,
    more: Vec<String>,
    dir: PrivateDir,
}

impl Valkey {
    /// Starts a server with these additional command-line settings.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(more: &[&str]) -> Result<Valkey, StartError> {
        let dir = PrivateDir::temporary("valkey")?;
        let socket = dir.socket("valkey.sock")?;
        let port = free_port()
            .map_err(|error| StartError::new("valkey", StartReason::CannotPrepare, error))?;
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let process = run(dir.path(), &socket, port, &more)?;
        Ok(Valkey { process, socket, port, more, dir })
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The TCP port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Executes a command, and returns the answer as printed by the server's own client.
    ///
    /// # Errors
    /// The client's message.
    pub fn command(&self, words: &[&str]) -> Result<String, String> {
        let client = find::program(&["valkey-cli", "redis-cli"]).map_err(|e| e.to_string())?;
        let output = Command::new(client)
            .arg("-s")
            .arg(&self.socket)
            .args(words)
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        let wrong = !output.status.success()
            || ["ERR ", "NOAUTH", "NOPERM", "WRONG"].iter().any(|word| said.starts_with(word));
        if wrong { Err(said + &String::from_utf8_lossy(&output.stderr)) } else { Ok(said) }
    }

    /// Sends a signal to the server.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self) -> StopResult {
        self.process.stop()
    }

    /// Kills the server like a crash.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again at the same addresses, without its former content.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_again(&mut self) -> Result<(), StartError> {
        self.process.stop();
        self.process = run(self.dir.path(), &self.socket, self.port, &self.more)?;
        Ok(())
    }
}

fn run(dir: &Path, socket: &Path, port: u16, more: &[String]) -> Result<Process, StartError> {
    let mut command = Command::new(find::program(&["valkey-server", "redis-server"])?);
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--unixsocket"]).arg(socket);
    command.args(["--unixsocketperm", "777", "--save", "", "--appendonly", "no", "--dir"]).arg(dir);
    command.args(more);
    let mut process = Process::spawn("valkey", &mut command, &dir.join("valkey.log"))?;
    let address = Address::Unix(socket.to_owned());
    process.wait_ready(READY_WITHIN, || address.accepts())?;
    Ok(process)
}
