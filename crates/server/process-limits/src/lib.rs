//! The limits of a process: the memory of the machine, and the control groups of the process (cgroup, version 2).
//!
//! Start reading at [`memory_bytes`]. A limit of a group also applies to all groups below it. So the least limit of
//! the group of the process and of all groups above it counts: a container sees its limit at the root of the groups,
//! a service of systemd has its `MemoryMax=` in a group below. A file that is missing or malformed sets no limit; no
//! content causes a panic.
//!
//! The caller reads the files: each function takes one that returns the text of a path, so a test has a machine of
//! its own. Not here: I/O, control groups of version 1, and defaults for a machine that says nothing.

use std::path::{Path, PathBuf};

/// The root of the file system of control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns the memory in bytes that this process may use: that of the machine, or the least limit of its control
/// groups if that is less. `text_of` returns the text of a file. `None` if no file says it.
#[must_use]
pub fn memory_bytes(text_of: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let meminfo = text_of("/proc/meminfo").unwrap_or_default();
    let total = meminfo_bytes(&meminfo, "MemTotal");
    let limit = ControlGroup::of("self", &text_of).least_limit("memory.max", &text_of);
    usable_memory(total, limit)
}

/// Returns the usable memory in bytes: `total` of the machine, or the `limit` of a control group if that is less.
/// `None` if neither is known.
#[must_use]
pub fn usable_memory(total: Option<u64>, limit: Option<u64>) -> Option<u64> {
    total.into_iter().chain(limit).min()
}

/// Returns a value of `/proc/meminfo` in bytes, such as `MemTotal`. `None` if the text has no such value.
#[must_use]
pub fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The control group of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    directory: PathBuf,
}

impl ControlGroup {
    /// Returns the group of a process; the root of the groups if the process shows none of version 2. `process` is
    /// the name of its directory in `/proc`: an ID, or `self`. `text_of` returns the text of a file.
    #[must_use]
    pub fn of(process: &str, text_of: impl Fn(&str) -> Option<String>) -> ControlGroup {
        let groups = text_of(&format!("/proc/{process}/cgroup")).unwrap_or_default();
        let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        ControlGroup { directory: Path::new(ROOT).join(group.trim_start_matches('/')) }
    }

    /// Returns the path of a file of this group alone, such as `memory.events`.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the least number in the files of this name, such as `memory.max`, of the group and of all groups above
    /// it. `text_of` returns the text of a file. `None` if none of them limits: the file then says `max`.
    #[must_use]
    pub fn least_limit(&self, name: &str, text_of: impl Fn(&str) -> Option<String>) -> Option<u64> {
        let groups = self.directory.ancestors().take_while(|group| group.starts_with(ROOT));
        let limits = groups.filter_map(|group| {
            let text = text_of(group.join(name).to_str()?)?;
            text.trim().parse::<u64>().ok()
        });
        limits.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: (&str, &str) = ("/proc/self/cgroup", "0::/system.slice/pagewell.service\n");
    const OF_ROOT: &str = "/sys/fs/cgroup/memory.max";
    const OF_SLICE: &str = "/sys/fs/cgroup/system.slice/memory.max";
    const OF_SERVICE: &str = "/sys/fs/cgroup/system.slice/pagewell.service/memory.max";

    /// The files of a machine.
    fn files(files: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        }
    }

    /// The memory for this process on a machine of 2 GB with these files.
    fn memory(others: &[(&str, &str)]) -> Option<u64> {
        let meminfo = ("/proc/meminfo", "MemTotal:        2097152 kB\nMemFree: 1 kB\n");
        memory_bytes(files(&[&[meminfo][..], others].concat()))
    }

    #[test]
    fn the_limit_of_a_container_counts_if_it_is_less() {
        assert_eq!(memory(&[(OF_ROOT, "268435456\n")]), Some(256 << 20));
        let own = ("/proc/self/cgroup", "0::/\n");
        assert_eq!(memory(&[own, (OF_ROOT, "268435456\n")]), Some(256 << 20));
        assert_eq!(memory(&[]), Some(2048 << 20));
        for none in ["max\n", "4294967296\n", "", "-1", "99999999999999999999"] {
            assert_eq!(memory(&[(OF_ROOT, none)]), Some(2048 << 20), "{none:?}");
        }
        assert_eq!(memory_bytes(|_| None), None);
        assert_eq!(memory_bytes(files(&[(OF_ROOT, "4096\n")])), Some(4096));
    }

    #[test]
    fn the_least_limit_of_the_group_and_of_those_above_counts() {
        let limits = ["268435456\n", "536870912\n", "max\n"];
        for (service, slice, root) in [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 2, 0), (0, 0, 0)] {
            let limit = |path, at: usize| (path, limits[at]);
            let of = [limit(OF_SERVICE, service), limit(OF_SLICE, slice), limit(OF_ROOT, root)];
            let found = memory(&[&[SERVICE][..], &of[..]].concat());
            assert_eq!(found, Some(256 << 20), "{of:?}");
        }
        let other = "/sys/fs/cgroup/system.slice/other.service/memory.max";
        assert_eq!(memory(&[SERVICE, (other, "4096\n")]), Some(2048 << 20), "another service");
    }

    #[test]
    fn a_group_is_found_by_its_process() {
        let text_of = files(&[
            ("/proc/7/cgroup", "4:memory:/old\n0::/a/b\n"),
            ("/proc/8/cgroup", "4:memory:/old\n"),
            ("/proc/9/cgroup", "0::/../beside\n"),
            ("/sys/fs/cgroup/a/pids.max", "50\n"),
            ("/sys/fs/cgroup/a/b/pids.max", "max\n"),
        ]);
        let group = |process: &str| ControlGroup::of(process, &text_of);
        assert_eq!(group("7").file("cpu.stat"), Path::new("/sys/fs/cgroup/a/b/cpu.stat"));
        assert_eq!(group("7").least_limit("pids.max", &text_of), Some(50));
        // Of version 1 only, and without a process: the root, which has no limit here.
        for other in ["8", "10"] {
            assert_eq!(group(other).file("cpu.stat"), Path::new("/sys/fs/cgroup/cpu.stat"));
            assert_eq!(group(other).least_limit("pids.max", &text_of), None);
        }
        // A group that is not below the root of this name space of groups.
        assert_eq!(group("9").least_limit("pids.max", &text_of), None);
    }

    #[test]
    fn values_of_meminfo_are_found_by_name() {
        let meminfo = "MemTotalX: 9 kB\nMemTotal:  1024 kB\nSwapTotal: 0 kB\nMemFree: x kB\n";
        assert_eq!(meminfo_bytes(meminfo, "MemTotal"), Some(1 << 20));
        assert_eq!(meminfo_bytes(meminfo, "SwapTotal"), Some(0));
        for name in ["MemFree", "MemAvailable"] {
            assert_eq!(meminfo_bytes(meminfo, name), None, "{name}");
        }
        assert_eq!(meminfo_bytes("MemTotal: 18446744073709551615 kB", "MemTotal"), None);
    }
}
