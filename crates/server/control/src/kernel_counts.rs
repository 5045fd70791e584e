//! Reads the kernel's counters of the whole machine from `/proc`: refused connections, and the size
//! of the firewall's connection table; and those of a control group. They are shown as metrics and evaluated by
//! `pagewell doctor` and the findings. An unreadable file counts as empty: containers have few of them.

use doctor::{Cgroup, read};
use process_limits::ControlGroup;
use std::fs;
use std::path::Path;

/// Returns the kernel's TCP counters and the size of the firewall's connection table.
#[must_use]
pub fn kernel_counts() -> (doctor::Tcp, doctor::Conntrack) {
    let tcp = read::tcp(&text_of("/proc/net/netstat"), &text_of("/proc/net/sockstat"));
    let conntrack = read::conntrack(
        &text_of("/proc/sys/net/netfilter/nf_conntrack_count"),
        &text_of("/proc/sys/net/netfilter/nf_conntrack_max"),
        &text_of("/proc/net/stat/nf_conntrack"),
    );
    (tcp, conntrack)
}

/// Returns the limits and counters of a process from control groups, version 2. Version 1 is not supported. `of` is
/// the name of its directory in `/proc`: an ID, or `self`.
#[must_use]
pub fn cgroup(of: &str) -> Cgroup {
    let text = |path: &str| fs::read_to_string(path).ok();
    let group = ControlGroup::of(of, text);
    let counter = |file: &str, name: &str| read::keyed(&text_of(group.file(file)), name);
    Cgroup {
        memory_max: group.least_limit("memory.max", text),
        killed: counter("memory.events", "oom_kill"),
        throttled: counter("cpu.stat", "nr_throttled"),
        pids_max: group.least_limit("pids.max", text),
    }
}

fn text_of(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
