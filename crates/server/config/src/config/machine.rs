//! The memory that this process may use (the crate `process-limits`), and the defaults that follow from it.
//!
//! A limit of the control groups counts if it is less than the memory of the machine: that of a container, or the
//! `MemoryMax=` of a systemd unit or of a slice above it.

use process_limits::memory_bytes;
use std::fs::read_to_string;

/// The memory in bytes if the kernel does not say it.
const UNKNOWN: u64 = 512 << 20;

/// Returns the machine's memory in bytes, or the least limit of this process's control groups if that is less.
#[must_use]
pub fn machine_memory_bytes() -> usize {
    memory_in(text_of)
}

/// Returns the default page budget of all sites together, in bytes.
pub(super) fn default_budget_bytes() -> usize {
    budget_in(text_of)
}

/// Returns the default number of children: four per core, and at least two. At most as many are
/// used as fit into half of the memory at 48 MB each.
pub(super) fn default_children() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores * 4).min(machine_memory_bytes() / 2 / (48 << 20)).max(2)
}

/// The default page budget on the machine with these files: a quarter of the memory.
fn budget_in(text_of: impl Fn(&str) -> Option<String>) -> usize {
    memory_in(text_of) / 4
}

fn memory_in(text_of: impl Fn(&str) -> Option<String>) -> usize {
    usize::try_from(memory_bytes(text_of).unwrap_or(UNKNOWN)).unwrap_or(usize::MAX)
}

fn text_of(path: &str) -> Option<String> {
    read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_budget_obeys_a_limit_of_a_group_above() {
        let budget = |of_slice: &str| {
            budget_in(|path| {
                let text = match path {
                    "/proc/meminfo" => "MemTotal:        2097152 kB\nMemFree: 1 kB\n",
                    "/proc/self/cgroup" => "0::/system.slice/pagewell.service\n",
                    "/sys/fs/cgroup/system.slice/pagewell.service/memory.max" => "max\n",
                    "/sys/fs/cgroup/system.slice/memory.max" => of_slice,
                    _ => return None,
                };
                Some(text.to_owned())
            })
        };
        assert_eq!(budget("268435456\n"), 64 << 20);
        assert_eq!(budget("max\n"), 512 << 20);
    }

    #[test]
    fn unknown_memory_is_half_a_gigabyte() {
        assert_eq!(memory_in(|_| None), 512 << 20);
        assert_eq!(budget_in(|_| None), 128 << 20);
    }
}
