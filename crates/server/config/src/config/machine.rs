//! The memory of this machine, or of its container, and the defaults that follow from it.
//!
//! A limit is that of the control group at the root of the file system of groups (version 2), where a container sees
//! its own.

use std::fs::read_to_string;

/// The memory in bytes if the kernel does not say it.
const UNKNOWN: usize = 512 << 20;

/// Returns the machine's memory in bytes, or the limit of its control group if that is less.
#[must_use]
pub fn machine_memory_bytes() -> usize {
    memory_in(|path| read_to_string(path).ok()).unwrap_or(UNKNOWN)
}

/// Returns the memory in bytes, as [`machine_memory_bytes`] does, of the machine with these files. `text_of` returns
/// the text of a file. `None` if no file says it.
#[must_use]
pub fn memory_in(text_of: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let meminfo = text_of("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<usize>().ok());
    let total = kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024));
    let group = text_of("/sys/fs/cgroup/memory.max");
    // Without a limit, it says `max`.
    let limit = group.and_then(|text| text.trim().parse::<usize>().ok());
    total.into_iter().chain(limit).min()
}

/// Returns the default number of children: four per core, and at least two. At most as many are
/// used as fit into half of the memory at 48 MB each.
pub(super) fn default_children() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores * 4).min(machine_memory_bytes() / 2 / (48 << 20)).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_container_counts_if_it_is_less() {
        let memory = |limit: Option<&str>| {
            memory_in(|path| match path {
                "/proc/meminfo" => Some("MemTotal:        2097152 kB\nMemFree: 1 kB\n".into()),
                "/sys/fs/cgroup/memory.max" => limit.map(str::to_owned),
                _ => None,
            })
        };
        assert_eq!(memory(Some("268435456\n")), Some(256 << 20));
        for none in [None, Some("max\n"), Some("4294967296\n")] {
            assert_eq!(memory(none), Some(2048 << 20), "{none:?}");
        }
        assert_eq!(memory_in(|_| None), None);
    }
}
