//! Reads the kernel's counters of the whole machine from `/proc`: refused connections, and the size
//! of the firewall's connection table; and those of a control group. They are shown as metrics and evaluated by
//! `pagewell doctor` and the findings. An unreadable file counts as empty: containers have few of them.

use doctor::{Cgroup, read};
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
    let groups = text_of(format!("/proc/{of}/cgroup"));
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Cgroup::default();
    };
    let root = Path::new("/sys/fs/cgroup");
    let place = root.join(group.trim_start_matches('/'));
    // A limit of a group also applies to all groups below it.
    let above: Vec<&Path> = place.ancestors().take_while(|above| above.starts_with(root)).collect();
    let least = |file: &str| {
        let bounds = above.iter().filter_map(|group| read::number(&text_of(group.join(file))));
        bounds.min()
    };
    Cgroup {
        memory_max: least("memory.max"),
        killed: read::keyed(&text_of(place.join("memory.events")), "oom_kill"),
        throttled: read::keyed(&text_of(place.join("cpu.stat")), "nr_throttled"),
        pids_max: least("pids.max"),
    }
}

fn text_of(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
