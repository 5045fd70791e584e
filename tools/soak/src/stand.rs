//! Pagewell through all of its lives: started, killed as a crash would, started again at the same
//! addresses; with a disk of its own that can be full, where the system allows one.
//!
//! The disk is a file system in memory, mounted in a mount namespace of Pagewell's own: nobody else
//! sees it, and it goes with the process.

use super::error_text;
use super::site::Site;
use harness::{Deadline, Pagewell, PrivateDir, StartReason, Wait, cpu};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// How often a start is tried that finds its port taken.
const STARTS_MAX: usize = 5;
/// How large the disk is that can be full.
const DISK: &str = "size=12m";
/// The counters of current work: all are 0 once there are no requests.
const LEFT: [&str; 4] = ["followers", "leases", "origin_places_taken", "origin_queue"];
const IDLE_WITHIN: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(50);

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
    pagewell: Pagewell,
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
        let pagewell = start(binary, &config, &disk, Disk::Shared)?;
        Ok(Stand { pagewell, binary, config, disk, killed: 0, resident_max: 0 })
    }

    /// The running process of Pagewell.
    pub fn pagewell(&self) -> &Pagewell {
        &self.pagewell
    }

    /// Kills it as a crash would, and starts it again.
    ///
    /// # Errors
    /// It does not come up again.
    pub fn kill(&mut self) -> Result<(), String> {
        self.look();
        self.pagewell.kill();
        self.killed += 1;
        self.pagewell = start(self.binary, &self.config, &self.disk, Disk::Shared)?;
        Ok(())
    }

    /// Stops it in good order, and starts it with its files on that disk.
    ///
    /// # Errors
    /// It does not come up; or there can be no such disk.
    pub fn move_to(&mut self, disk: Disk) -> Result<(), String> {
        self.look();
        self.pagewell.stop();
        self.pagewell = start(self.binary, &self.config, &self.disk, disk)?;
        Ok(())
    }

    /// Starts it if it has ended, as a service manager would; whether it had.
    ///
    /// # Errors
    /// It does not come up again.
    pub fn start_if_ended(&mut self) -> Result<bool, String> {
        if self.pagewell.wait(Duration::ZERO) == Wait::Running {
            return Ok(false);
        }
        self.pagewell = start(self.binary, &self.config, &self.disk, Disk::Shared)?;
        Ok(true)
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
        match self.pagewell.wait(Duration::ZERO) {
            Wait::Running => Ok(()),
            Wait::Ended(status) => {
                Err(format!("soak: pagewell has ended, {status}\n{}", self.pagewell.log()))
            }
        }
    }

    /// Once nobody asks any more, no render, no lease and nobody who waits may be left.
    ///
    /// # Errors
    /// The work that is left, with its counters.
    pub fn wait_idle(&mut self) -> Result<(), String> {
        let deadline = Deadline::after(IDLE_WITHIN);
        loop {
            let counters = self.pagewell.stats().map_err(error_text)?;
            let left: Vec<_> = LEFT
                .iter()
                .filter_map(|name| Some((name, *counters.get(*name)?)))
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            if left.is_empty() {
                return Ok(());
            }
            if deadline.passed() {
                return Err(format!("soak: {} when nobody had asked", left.join(", ")));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }
}

fn start(binary: &Path, config: &Path, disk: &Path, on: Disk) -> Result<Pagewell, String> {
    let mut tried = 0;
    loop {
        tried += 1;
        let dir = PrivateDir::temporary("soak-log").map_err(error_text)?;
        let mut command = match on {
            Disk::Shared => Command::new(binary),
            Disk::Own => mounted(binary, disk)?,
        };
        command.arg("serve").arg("--config").arg(config).args(["--log", "error"]);
        match Pagewell::start_command(dir, &mut command) {
            Ok(pagewell) => return Ok(pagewell),
            Err(error) if error.reason == StartReason::PortTaken && tried < STARTS_MAX => {}
            Err(error) => return Err(error_text(error)),
        }
    }
}

/// The program with a disk of its own; the shell that mounts it is replaced by the program.
fn mounted(binary: &Path, disk: &Path) -> Result<Command, String> {
    let mut command = Command::new(harness::program(&["unshare"]).map_err(error_text)?);
    let script = format!("mount -t tmpfs -o {DISK} soak \"$1\" && shift && exec \"$@\"");
    command.args(["--mount", "/bin/sh", "-c", &script, "sh"]).arg(disk).arg(binary);
    Ok(command)
}
