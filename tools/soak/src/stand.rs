//! Pagewell through all of its lives: started, killed as a crash would, started again at the same
//! addresses; with a disk of its own that can be full, where the system allows one.
//!
//! The disk is a file system in memory, mounted in a mount namespace of Pagewell's own: nobody else
//! sees it, and it goes with the process.

use super::error_text;
use super::site::Site;
use harness::stand::RestartedPagewell;
use harness::{Pagewell, PrivateDir, StartError, cpu};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How large the disk is that can be full.
const DISK: &str = "size=12m";
/// How long requests that are under way at the end may take.
const IDLE_WITHIN: Duration = Duration::from_secs(90);

/// Where Pagewell's files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// On the machine's.
    Shared,
    /// On a small one of its own.
    Own,
}

/// Pagewell, its program and its disk.
pub struct Stand<'a> {
    pagewell: RestartedPagewell<'a>,
    binary: &'a Path,
    config: PathBuf,
    disk: PathBuf,
    /// How often it was killed.
    pub killed: u64,
    /// The most resident memory that was measured, in bytes.
    pub resident_max: u64,
}

impl<'a> Stand<'a> {
    /// Starts it.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(binary: &'a Path, site: &Site) -> Result<Stand<'a>, String> {
        let (config, disk) = (site.config(), site.disk());
        let pagewell = RestartedPagewell::start(starter(binary, &config, &disk, Disk::Shared)?)?;
        Ok(Stand { pagewell, binary, config, disk, killed: 0, resident_max: 0 })
    }

    /// The running process of Pagewell.
    pub fn pagewell(&self) -> &RestartedPagewell<'a> {
        &self.pagewell
    }

    /// Kills it as a crash would, and starts it again.
    ///
    /// # Errors
    /// It does not come up again.
    pub fn kill(&mut self) -> Result<(), String> {
        self.look();
        self.killed += 1;
        self.pagewell.kill_and_start()
    }

    /// Stops it in good order, and starts it with its files on that disk.
    ///
    /// # Errors
    /// It does not come up; or there can be no such disk.
    pub fn move_to(&mut self, disk: Disk) -> Result<(), String> {
        self.look();
        self.pagewell.stop_and_start(starter(self.binary, &self.config, &self.disk, disk)?)
    }

    /// Starts it if it has ended, as a service manager would; whether it had.
    ///
    /// # Errors
    /// It does not come up again.
    pub fn start_if_ended(&mut self) -> Result<bool, String> {
        self.pagewell.start_if_ended()
    }

    /// Where its disk is to be seen from here.
    pub fn disk_seen(&self) -> PathBuf {
        let below = self.disk.strip_prefix("/").unwrap_or(&self.disk);
        Path::new("/proc").join(self.pagewell.pid().to_string()).join("root").join(below)
    }

    /// The master of its php-fpm, and then its children.
    pub fn php(&self) -> Vec<u32> {
        cpu::descendants(self.pagewell.pid()).split_off(1)
    }

    /// Notes what it takes now.
    pub fn look(&mut self) {
        self.resident_max = self.resident_max.max(self.pagewell.rss_bytes());
    }

    /// It may not end by itself.
    ///
    /// # Errors
    /// Then its log.
    pub fn check_alive(&mut self) -> Result<(), String> {
        self.look();
        self.pagewell.check_running().map_err(|error| format!("soak: {error}"))
    }

    /// Once nobody asks any more, no render, no lease and nobody who waits may be left.
    ///
    /// # Errors
    /// The work that is left, with its counters.
    pub fn wait_idle(&self) -> Result<(), String> {
        self.pagewell.wait_idle(IDLE_WITHIN).map_err(|error| format!("soak: {error}"))
    }

    /// Checks that its audit has found no wrong page in any life. Returns the comparisons with a verdict.
    ///
    /// # Errors
    /// It has: the counters, and the log.
    pub fn check_audit(&self) -> Result<u64, String> {
        self.pagewell.check_audit().map_err(|error| format!("soak: {error}"))
    }
}

/// Starts a process with its files on that disk.
fn starter(
    binary: &Path,
    config: &Path,
    disk: &Path,
    on: Disk,
) -> Result<impl Fn() -> Result<Pagewell, StartError> + Send + Sync + use<>, String> {
    let unshare = harness::program(&["unshare"]).map_err(error_text);
    let unshare = if on == Disk::Own { Some(unshare?) } else { None };
    let [binary, config, disk] = [binary, config, disk].map(Path::to_owned);
    Ok(move || {
        let mut command = match &unshare {
            None => Command::new(&binary),
            Some(unshare) => mounted(unshare, &binary, &disk),
        };
        command.arg("serve").arg("--config").arg(&config).args(["--log", "error"]);
        Pagewell::start_command(PrivateDir::temporary("soak-log")?, &mut command)
    })
}

/// The program with a disk of its own; the shell that mounts it is replaced by the program.
fn mounted(unshare: &Path, binary: &Path, disk: &Path) -> Command {
    let mut command = Command::new(unshare);
    let script = format!("mount -t tmpfs -o {DISK} soak \"$1\" && shift && exec \"$@\"");
    command.args(["--mount", "/bin/sh", "-c", &script, "sh"]).arg(disk).arg(binary);
    command
}
