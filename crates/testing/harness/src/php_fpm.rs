//! A running php-fpm with one pool on a private Unix socket.
//!
//! For tests in which Pagewell, or nginx beside it, uses an external php-fpm. As root the children run as
//! `www-data` (or `nobody`), which owns the socket. Every request that reaches PHP writes one line to an access
//! log, so that tests can count the renders.

use crate::address::Address;
use crate::process::{Process, READY_WITHIN, StopResult};
use crate::users::{self, Account};
use crate::{PrivateDir, StartError, find};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of the pool.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The fixed number of child processes.
    pub children: u32,
    /// The complete environment of the scripts.
    pub env: Vec<(String, String)>,
    /// PHP settings that scripts cannot change: `("memory_limit", "64M")`.
    pub ini: Vec<(String, String)>,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions { children: 4, env: Vec::new(), ini: Vec::new() }
    }
}

/// A php-fpm process that is running.
#[derive(Debug)]
pub struct PhpFpm {
    process: Option<Process>,
    socket: PathBuf,
    access_log: PathBuf,
    dir: PrivateDir,
}

impl PhpFpm {
    /// Starts a php-fpm.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir, options: &PoolOptions) -> Result<PhpFpm, StartError> {
        let account = users::for_server(&["www-data", "nobody", "http", "apache"]);
        let socket = dir.socket("php.sock")?;
        let access_log = dir.path().join("access.log");
        let conf = configuration(&dir, &socket, &access_log, account.as_ref(), options);
        dir.file("php-fpm.conf", &conf)?;
        let mut server = PhpFpm { process: None, socket, access_log, dir };
        server.start_again()?;
        Ok(server)
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process id; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// The number of requests that PHP has finished since the start.
    #[must_use]
    pub fn requests(&self) -> usize {
        fs::read_to_string(&self.access_log).map_or(0, |log| log.lines().count())
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) -> Option<StopResult> {
        self.process.take().map(|mut process| process.stop())
    }

    /// Kills the server and its children, whatever they are doing.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts the server again with the same configuration. Does nothing if it is running.
    ///
    /// # Errors
    /// As for [`PhpFpm::start`].
    pub fn start_again(&mut self) -> Result<(), StartError> {
        if self.process.is_some() {
            return Ok(());
        }
        let _ = fs::remove_file(&self.socket);
        let mut command = Command::new(find::php_fpm()?);
        // `-n` would also disable the extensions, so the system's php.ini is read and the pool overrides it.
        command.args(["--nodaemonize", "--fpm-config"]).arg(self.dir.path().join("php-fpm.conf"));
        if users::am_root()
            && users::for_server(&["www-data", "nobody", "http", "apache"]).is_none()
        {
            command.arg("--allow-to-run-as-root");
        }
        let log = self.dir.path().join("php-fpm.log");
        let mut process = Process::spawn("php-fpm", &mut command, &log)?;
        let address = Address::Unix(self.socket.clone());
        process.wait_ready(READY_WITHIN, || address.accepts())?;
        self.process = Some(process);
        Ok(())
    }
}

fn configuration(
    dir: &PrivateDir,
    socket: &Path,
    access_log: &Path,
    account: Option<&Account>,
    options: &PoolOptions,
) -> String {
    let mut conf = format!(
        "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\npid = {pid}\n\
         [site]\nlisten = {socket}\nlisten.backlog = 511\npm = static\npm.max_children = {children}\n\
         clear_env = yes\ncatch_workers_output = yes\ndecorate_workers_output = no\n\
         access.log = {access_log}\naccess.format = \"%m %r%Q%q %s %d\"\n",
        pid = dir.path().join("php-fpm.pid").display(),
        socket = socket.display(),
        children = options.children.max(1),
        access_log = access_log.display(),
    );
    if let Some(Account { name, gid, .. }) = account {
        let _ = write!(
            conf,
            "user = {name}\ngroup = {gid}\nlisten.owner = {name}\nlisten.group = {gid}\n\
             listen.mode = 0660\n"
        );
    }
    for (name, value) in &options.env {
        let _ = writeln!(conf, "env[{name}] = {}", quoted(value));
    }
    for (name, value) in &options.ini {
        let _ = writeln!(conf, "php_admin_value[{name}] = {}", quoted(value));
    }
    conf
}

/// A quoted configuration value. The parser takes everything between double quotes literally, but a double
/// quote cannot be written.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace(['"', '\n', '\r'], ""))
}
