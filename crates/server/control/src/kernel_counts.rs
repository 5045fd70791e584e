//! Reads the kernel's counters of the whole machine from `/proc`: refused connections, and the size
//! of the firewall's connection table. They are shown as metrics and evaluated by `pagewell
//! doctor`. An unreadable file counts as empty: containers have few of them.

use doctor::read;
use std::fs;

/// Returns the kernel's TCP counters and the size of the firewall's connection table.
#[must_use]
pub fn kernel_counts() -> (doctor::Tcp, doctor::Conntrack) {
    let text_of = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let tcp = read::tcp(&text_of("/proc/net/netstat"), &text_of("/proc/net/sockstat"));
    let conntrack = read::conntrack(
        &text_of("/proc/sys/net/netfilter/nf_conntrack_count"),
        &text_of("/proc/sys/net/netfilter/nf_conntrack_max"),
        &text_of("/proc/net/stat/nf_conntrack"),
    );
    (tcp, conntrack)
}
