//! Connections: open files, queues, ports, the connection-tracking table of the firewall, and outdated advice.
//!
//! A kernel counter that rises is `Fails`; otherwise it is only a note, because it counts since the boot. A
//! limit that is only too small for the future is `WillFail`. Harmful settings that old guides recommend have
//! names that begin with `folklore-`.

use super::lately;
use crate::{Facts, Finding, Weight};

/// The queue length that Pagewell requests. The kernel limits it to `somaxconn`.
const QUEUE: u64 = 4096;
/// Open files other than client connections: files, origin connections, logs.
const OTHER_FILES: u64 = 256;
const FOR_GOOD: &str = "To keep it: the same line in /etc/sysctl.d/60-pagewell.conf";

fn sysctl(name: &str, value: u64) -> String {
    format!("sysctl -w {name}={value}    # {FOR_GOOD}: {name} = {value}")
}

/// Checks the limit of open files. Each connection is an open file, and so is the origin connection that it may
/// need.
pub(super) fn open_files(facts: &Facts) -> Option<Finding> {
    let (have, connections) = (facts.open_files?, facts.connections?);
    let need = connections.saturating_add(OTHER_FILES);
    (have < need).then(|| Finding {
        name: "open-files",
        weight: Weight::WillFail,
        what: format!("With more than about {have} visitors connected, new ones are not let in."),
        evidence: format!(
            "{} may have {have} open files; {connections} connections (limits.connections) need {need}.",
            match facts.running {
                Some(pid) => format!("The running Pagewell (process {pid})"),
                None => "This shell".into(),
            },
        ),
        command: format!(
            "systemctl edit pagewell    # [Service] LimitNOFILE={need}; without systemd: ulimit -n {need}"
        ),
        risk: "None to speak of: a bound on one process, and memory is used only by what is open.",
    })
}

/// Checks the accept queue between the kernel and the server.
pub(super) fn accept_queue(facts: &Facts) -> Option<Finding> {
    let have = facts.kernel.somaxconn?;
    (have < QUEUE).then(|| Finding {
        name: "accept-queue",
        weight: Weight::WillFail,
        what: "When many visitors come in the same moment, some wait a second or more to connect."
            .into(),
        evidence: format!("net.core.somaxconn is {have}; Pagewell asks for a queue of {QUEUE}."),
        command: sysctl("net.core.somaxconn", QUEUE),
        risk: "None: the queue is memory only while it is full. Servers take it up when restarted.",
    })
}

/// Checks whether the accept queue has overflowed.
pub(super) fn listen_overflows(facts: &Facts) -> Option<Finding> {
    let overflows = facts.tcp.listen_overflows.filter(|count| *count > 0)?;
    let drops = facts.tcp.listen_drops.unwrap_or(overflows);
    let (weight, lately) = lately(overflows, facts.before.tcp.listen_overflows);
    Some(Finding {
        name: "connections-dropped",
        weight,
        what: "Visitors' connections were dropped because some server's queue was full.".into(),
        evidence: format!(
            "Since the start of the machine ListenOverflows is {overflows}, ListenDrops {drops} (nstat -az); {lately}."
        ),
        command: "ss -ltn    # Recv-Q near Send-Q names the server: raise its backlog and net.core.somaxconn, or give it more workers".into(),
        risk: "A longer queue behind a server that is too slow only makes visitors wait longer.",
    })
}

/// Checks the queue of half-open connections.
pub(super) fn syn_backlog(facts: &Facts) -> Option<Finding> {
    let dropped = facts.tcp.syn_drops.filter(|count| *count > 0)?;
    let have = facts.kernel.syn_backlog?;
    let (weight, lately) = lately(dropped, facts.before.tcp.syn_drops);
    Some(Finding {
        name: "syn-queue",
        weight,
        what: "Connections were dropped while they were being made.".into(),
        evidence: format!(
            "TCPReqQFullDrop is {dropped}; {lately}. net.ipv4.tcp_max_syn_backlog is {have}."
        ),
        command: sysctl("net.ipv4.tcp_max_syn_backlog", (have * 4).max(QUEUE)),
        risk: "A little kernel memory in a flood. Leave net.ipv4.tcp_syncookies at 1.",
    })
}

/// Checks the number of connections in TIME-WAIT.
pub(super) fn time_wait(facts: &Facts) -> Option<Finding> {
    let overflows = facts.tcp.time_wait_overflows.filter(|count| *count > 0)?;
    let have = facts.kernel.tw_buckets?;
    Some(Finding {
        name: "time-wait-table",
        weight: Weight::Slow,
        what: "Ended connections were forgotten too early; packets of theirs that come late may \
               disturb new ones."
            .into(),
        evidence: format!(
            "TCPTimeWaitOverflow is {overflows}; net.ipv4.tcp_max_tw_buckets is {have}."
        ),
        command: sysctl("net.ipv4.tcp_max_tw_buckets", have.saturating_mul(2).max(262_144)),
        risk: "About 250 bytes of kernel memory for each.",
    })
}

/// Checks the local ports for outgoing connections.
pub(super) fn ports(facts: &Facts) -> Option<Finding> {
    let (first, last) = facts.kernel.ports?;
    let (count, waiting) = (last.saturating_sub(first) + 1, facts.tcp.ports_kept.unwrap_or(0));
    (count < 10_000 || waiting > count / 2).then(|| Finding {
        name: "ports",
        weight: Weight::WillFail,
        what: "Connections from this machine to an origin or a database over TCP run out of ports."
            .into(),
        evidence: format!(
            "net.ipv4.ip_local_port_range has {count} ports; {waiting} of them are kept by ended connections that are waited for."
        ),
        command: format!(
            "sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"    # {FOR_GOOD}; better: Unix sockets to php-fpm and the database"
        ),
        risk: "Servers on ports from 10240 up must be running before others take their ports: name \
               them in net.ipv4.ip_local_reserved_ports.",
    })
}

/// Checks whether the connection-tracking table is nearly full.
pub(super) fn conntrack(facts: &Facts) -> Option<Finding> {
    let (count, max) = (facts.conntrack.count?, facts.conntrack.max?);
    let small = facts.connections.is_some_and(|connections| max < connections.saturating_mul(2));
    let full = max > 0 && count.saturating_mul(10) > max.saturating_mul(7);
    (full || small).then(|| Finding {
        name: "conntrack-table",
        weight: if full { Weight::Fails } else { Weight::WillFail },
        what: "When the firewall's table of connections is full, packets are dropped: \"nf_conntrack: \
               table full\" in the kernel's log, and a site that hangs."
            .into(),
        evidence: format!(
            "{count} of {max} entries are taken (net.netfilter.nf_conntrack_max)."
        ),
        command: sysctl("net.netfilter.nf_conntrack_max", max.saturating_mul(4).max(262_144)),
        risk: "About 320 bytes of kernel memory for each entry. Where no rule of the firewall needs \
               it, visitors' connections need not be followed at all (notrack).",
    })
}

/// Checks whether the connection-tracking table has been full.
pub(super) fn conntrack_drops(facts: &Facts) -> Option<Finding> {
    let drops = facts.conntrack.drops.filter(|count| *count > 0)?;
    let (weight, lately) = lately(drops, facts.before.conntrack.drops);
    Some(Finding {
        name: "conntrack-dropped",
        weight,
        what: "Packets were dropped because the firewall's table of connections was full.".into(),
        evidence: format!("`drop` in /proc/net/stat/nf_conntrack is {drops}; {lately}."),
        command: sysctl(
            "net.netfilter.nf_conntrack_max",
            facts.conntrack.max.unwrap_or(65_536).saturating_mul(4),
        ),
        risk: "About 320 bytes of kernel memory for each entry.",
    })
}

/// Checks whether memory for TCP was exhausted.
pub(super) fn tcp_memory(facts: &Facts) -> Option<Finding> {
    let aborts = facts.tcp.memory_aborts.filter(|count| *count > 0)?;
    let (weight, lately) = lately(aborts, facts.before.tcp.memory_aborts);
    Some(Finding {
        name: "tcp-memory",
        weight,
        what: "Connections were cut because the memory for TCP had run out.".into(),
        evidence: format!("TCPAbortOnMemory is {aborts}; {lately}."),
        command: "sysctl net.ipv4.tcp_mem    # if a sysctl file sets it, take that line out: the kernel's own choice fits the machine".into(),
        risk: "None: the kernel's own choice depends on the machine's memory.",
    })
}

/// Checks for advice from old guides that is harmful today, in a sysctl file or in the kernel's current
/// settings.
pub(super) fn folklore(facts: &Facts) -> Vec<Finding> {
    let kernel = &facts.kernel;
    let rows = [
        (
            "net.ipv4.tcp_tw_recycle",
            "1",
            kernel.tw_recycle.map(|value| value == 1),
            "folklore-tw-recycle",
            "Visitors who share an address (a company, a mobile network) fail to connect now and then.",
            "tcp_tw_recycle never worked behind NAT, and is gone from the kernel since 4.12.",
        ),
        (
            "net.ipv4.tcp_syncookies",
            "0",
            kernel.syncookies.map(|value| value == 0),
            "folklore-syncookies",
            "A flood of half-open connections, or a busy moment, shuts everybody out.",
            "Syncookies cost nothing until the queue is full, and then they are what still lets visitors in.",
        ),
        (
            "net.ipv4.tcp_timestamps",
            "0",
            kernel.timestamps.map(|value| value == 0),
            "folklore-timestamps",
            "Round trips are measured badly, and ended connections to an origin cannot be used again soon.",
            "Turning timestamps off was advice for kernels that told their uptime by them; they do not any more.",
        ),
    ];
    let found = rows.into_iter().filter_map(|(setting, bad, is, name, what, why)| {
        let line = facts.sysctl_lines.iter().find(|(line, _)| {
            line.split_once('=')
                .is_some_and(|(left, right)| left.trim() == setting && right.trim() == bad)
        });
        let seen = match (is, line) {
            (Some(true), Some((_, file))) => format!("{setting} is {bad}, by {file}. {why}"),
            (Some(true), None) => format!("{setting} is {bad}. {why}"),
            (_, Some((_, file))) => format!("{file} sets {setting} = {bad}. {why}"),
            _ => return None,
        };
        let command = match line {
            Some((_, file)) => {
                format!("take the line {setting} out of {file}, then: sysctl --system")
            }
            None => format!("sysctl -w {setting}={}", if bad == "1" { 0 } else { 1 }),
        };
        // A kernel without the setting ignores the line.
        let (weight, what) = match is {
            None => (Weight::Note, "The line means nothing to this kernel, and would do harm in one that has the setting."),
            Some(_) => (Weight::WillFail, what),
        };
        Some(Finding {
            name,
            weight,
            what: what.to_owned(),
            evidence: seen,
            command,
            risk: "None: it is the kernel's own default.",
        })
    });
    found.collect()
}
