//! What the kernel counts of the whole machine, read from `/proc`: connections that it refused, and the
//! table of the firewall's connections. Metrics show it, and `pagewell doctor` judges it. A file that
//! cannot be read counts as empty: containers have few of them.

use doctor::read;
use std::fs;

/// What the kernel has counted about TCP and the firewall's table.
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
