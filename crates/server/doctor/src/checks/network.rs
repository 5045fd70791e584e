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
const FOR_GOOD: &str = "To make it permanent, the same line in /etc/sysctl.d/60-pagewell.conf";

fn sysctl(name: &str, value: u64) -> String {
    format!("sysctl -w {name}={value}    # {FOR_GOOD}: {name} = {value}")
}

/// Checks the limit of open files. Each connection is an open file, and so is the origin connection that it may
/// need. Pagewell raises its soft limit to the hard limit when it starts, so the remedy is a higher hard limit.
pub(super) fn open_files(facts: &Facts) -> Option<Finding> {
    let (have, connections) = (facts.open_files?, facts.connections?);
    let need = connections.saturating_add(OTHER_FILES);
    (have < need).then(|| Finding {
        name: "open-files",
        weight: Weight::WillFail,
        what: format!("With more than about {have} clients connected, new connections are refused."),
        evidence: format!(
            "{} may open {have} files; {connections} connections (limits.connections) need {need}.",
            match facts.running {
                Some(pid) => format!("The running Pagewell (process {pid})"),
                None => "A Pagewell that this shell starts".into(),
            },
        ),
        command: format!(
            "systemctl edit pagewell    # [Service] LimitNOFILE={need}; without systemd: ulimit -Hn {need} as root"
        ),
        risk: "None: it is a limit of one process, and only open files need memory.",
    })
}

/// Checks the accept queue between the kernel and the server.
pub(super) fn accept_queue(facts: &Facts) -> Option<Finding> {
    let have = facts.kernel.somaxconn?;
    (have < QUEUE).then(|| Finding {
        name: "accept-queue",
        weight: Weight::WillFail,
        what: "When many clients connect at the same moment, some wait a second or more."
            .into(),
        evidence: format!("net.core.somaxconn is {have}; Pagewell requests a queue of {QUEUE}."),
        command: sysctl("net.core.somaxconn", QUEUE),
        risk: "None: the queue needs memory only for waiting connections. Servers use it after a restart.",
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
        what: "Connections of clients were dropped because the accept queue of a server was full.".into(),
        evidence: format!(
            "Since the boot, ListenOverflows is {overflows}, ListenDrops {drops} (nstat -az); {lately}."
        ),
        command: "ss -ltn    # Recv-Q near Send-Q names the server: raise its backlog and net.core.somaxconn, or give it more workers".into(),
        risk: "With a longer queue in front of a slow server, clients only wait longer.",
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
        what: "Connections were dropped before they were established.".into(),
        evidence: format!(
            "TCPReqQFullDrop is {dropped}; {lately}. net.ipv4.tcp_max_syn_backlog is {have}."
        ),
        command: sysctl("net.ipv4.tcp_max_syn_backlog", (have * 4).max(QUEUE)),
        risk: "A little kernel memory in a SYN flood. Leave net.ipv4.tcp_syncookies at 1.",
    })
}

/// Checks the number of connections in TIME-WAIT.
pub(super) fn time_wait(facts: &Facts) -> Option<Finding> {
    let overflows = facts.tcp.time_wait_overflows.filter(|count| *count > 0)?;
    let have = facts.kernel.tw_buckets?;
    Some(Finding {
        name: "time-wait-table",
        weight: Weight::Slow,
        what: "Closed connections left TIME-WAIT too early; their late packets may disturb new \
               connections."
            .into(),
        evidence: format!(
            "TCPTimeWaitOverflow is {overflows}; net.ipv4.tcp_max_tw_buckets is {have}."
        ),
        command: sysctl("net.ipv4.tcp_max_tw_buckets", have.saturating_mul(2).max(262_144)),
        risk: "About 250 bytes of kernel memory for each connection.",
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
            "net.ipv4.ip_local_port_range has {count} ports; {waiting} of them are occupied by closed connections in TIME-WAIT."
        ),
        command: format!(
            "sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"    # {FOR_GOOD}; better: Unix sockets to php-fpm and the database"
        ),
        risk: "Outgoing connections may occupy the ports of servers that start later: name ports from \
               10240 up in net.ipv4.ip_local_reserved_ports.",
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
        what: "When the firewall's table of connections is full, packets are dropped and the site hangs: \
               \"nf_conntrack: table full\" in the kernel's log."
            .into(),
        evidence: format!(
            "{count} of {max} entries are in use (net.netfilter.nf_conntrack_max)."
        ),
        command: sysctl("net.netfilter.nf_conntrack_max", max.saturating_mul(4).max(262_144)),
        risk: "About 320 bytes of kernel memory for each entry. If no firewall rule needs \
               it, exempt clients' connections from tracking (notrack).",
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
        what: "Connections were aborted because the memory for TCP was exhausted.".into(),
        evidence: format!("TCPAbortOnMemory is {aborts}; {lately}."),
        command: "sysctl net.ipv4.tcp_mem    # if a sysctl file sets it, remove that line: the kernel's default fits the machine".into(),
        risk: "None: the kernel's default depends on the machine's memory.",
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
            "Clients that share an address (a company, a mobile network) sometimes cannot connect.",
            "tcp_tw_recycle never worked behind NAT, and was removed from the kernel in 4.12.",
        ),
        (
            "net.ipv4.tcp_syncookies",
            "0",
            kernel.syncookies.map(|value| value == 0),
            "folklore-syncookies",
            "A SYN flood, or a moment of high load, blocks all clients.",
            "Syncookies cost nothing until the queue is full; then clients can connect only with them.",
        ),
        (
            "net.ipv4.tcp_timestamps",
            "0",
            kernel.timestamps.map(|value| value == 0),
            "folklore-timestamps",
            "Round trips are measured badly, and ports of closed connections to an origin are blocked longer.",
            "The advice to turn timestamps off was for old kernels, which revealed their uptime by them.",
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
                format!("remove the line {setting} from {file}, then: sysctl --system")
            }
            None => format!("sysctl -w {setting}={}", if bad == "1" { 0 } else { 1 }),
        };
        // A kernel without the setting ignores the line.
        let (weight, what) = match is {
            None => (Weight::Note, "This kernel ignores the line; a kernel that has the setting would be harmed by it."),
            Some(_) => (Weight::WillFail, what),
        };
        Some(Finding {
            name,
            weight,
            what: what.to_owned(),
            evidence: seen,
            command,
            risk: "None: it is the kernel's default.",
        })
    });
    found.collect()
}
