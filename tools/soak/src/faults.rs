//! Resources that are taken from a running process, and given back when the guard is dropped: descriptors, room
//! in files, memory. By its process id, and only of processes that this one has started.
//!
//! Memory is taken by a control group of its own, below the one that this process is in. Where the
//! system allows none (a container, no root), by a bound on the address space of the one process.

use super::error_text;
use harness::cpu;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A bound of one process that was lowered.
pub struct LoweredLimit {
    pid: Pid,
    what: Resource,
    before: Rlimit,
}

impl LoweredLimit {
    /// Lowers it to so many; what the process may raise it to stays.
    ///
    /// # Errors
    /// Those of the system.
    pub fn to(pid: u32, what: Resource, most: u64) -> Result<LoweredLimit, String> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("no process")?;
        let before = rustix::process::getrlimit(what);
        let wanted = Rlimit { current: Some(most), maximum: before.maximum };
        let before = prlimit(Some(pid), what, wanted).map_err(error_text)?;
        Ok(LoweredLimit { pid, what, before })
    }
}

impl Drop for LoweredLimit {
    fn drop(&mut self) {
        // The process may have ended meanwhile.
        let _ = prlimit(Some(self.pid), self.what, self.before);
    }
}

/// How memory was taken.
pub enum Memory {
    /// A control group of processes, and the one that they came from.
    Group {
        /// Its directory.
        own: PathBuf,
        /// The other's.
        parent: PathBuf,
    },
    /// A bound of one process, which is raised again when this is dropped.
    Process {
        /// The lowered bound.
        _bound: LoweredLimit,
    },
}

impl Memory {
    /// From now on a process and what it has started get so many bytes more at most.
    ///
    /// # Errors
    /// The system allows neither way.
    pub fn take(pid: u32, more: u64) -> Result<Memory, String> {
        if let Some(group) = Memory::group(pid, more) {
            return Ok(group);
        }
        let taken = address_space(pid).ok_or("its memory cannot be read")?;
        let _bound = LoweredLimit::to(pid, Resource::As, taken + more)?;
        Ok(Memory::Process { _bound })
    }

    /// The way in which memory was taken, in words.
    pub fn name(&self) -> &'static str {
        match self {
            Memory::Group { .. } => "memory taken by a control group",
            Memory::Process { .. } => "memory taken by a bound of the address space",
        }
    }

    fn group(pid: u32, more: u64) -> Option<Memory> {
        let (parent, bound) = memory_group()?;
        let own = parent.join(format!("pagewell-soak-{}", std::process::id()));
        fs::create_dir(&own).ok()?;
        let group = Memory::Group { own: own.clone(), parent };
        fs::write(own.join(bound), more.to_string()).ok()?;
        for pid in cpu::descendants(pid) {
            fs::write(own.join("cgroup.procs"), pid.to_string()).ok()?;
        }
        Some(group)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Memory::Group { own, parent } = self else { return };
        // Some may be about to start another, and what ends takes a moment to be gone.
        for _ in 0..100 {
            let inside = fs::read_to_string(own.join("cgroup.procs")).unwrap_or_default();
            for pid in inside.split_whitespace() {
                let _ = fs::write(parent.join("cgroup.procs"), pid);
            }
            if fs::remove_dir(&*own).is_ok() {
                return;
            }
            thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// The control group of this process that accounts for memory, and the name of its bound.
fn memory_group() -> Option<(PathBuf, &'static str)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in groups.lines() {
        let mut words = line.splitn(3, ':');
        let (_, kinds, path) = (words.next()?, words.next()?, words.next()?);
        let below = path.trim_start_matches('/');
        let (root, bound) = match kinds {
            "" => (Path::new("/sys/fs/cgroup"), "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                (Path::new("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Inside a container the path may be the host's.
        for group in [root.join(below), root.to_owned()] {
            if group.join("cgroup.procs").exists() && is_accounted(&group, bound) {
                return Some((group, bound));
            }
        }
    }
    None
}

fn is_accounted(group: &Path, bound: &str) -> bool {
    let kinds = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    bound != "memory.max" || kinds.split_whitespace().any(|kind| kind == "memory")
}

/// The size of a process's address space, in bytes.
fn address_space(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getrlimit;

    #[test]
    fn a_lowered_limit_is_restored() {
        let own = std::process::id();
        let before = getrlimit(Resource::Core);
        let lowered = LoweredLimit::to(own, Resource::Core, 0).expect("one's own can be lowered");
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        drop(lowered);
        assert_eq!(getrlimit(Resource::Core).current, before.current);
        assert!(address_space(own).is_some_and(|bytes| bytes > 1 << 20));
    }
}
