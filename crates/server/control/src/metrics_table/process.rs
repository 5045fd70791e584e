//! Metrics of the process, as the kernel reports them: resources that it has used or holds. They
//! are the same for every site, and are read only on request. Not here: child processes (php-fpm),
//! and the counts of the whole kernel.

use super::Kind;
use crate::history;
use delivery::send_backlog;
use origin::spool;
use rustix::time::{ClockId, clock_gettime};
use telemetry::panics;

/// A metric of the process.
pub struct OfTheProcess {
    /// The name of the metric.
    pub name: &'static str,
    /// The description in the manual and in `/metrics`.
    pub help: &'static str,
    /// Whether it is a counter or a gauge.
    pub kind: Kind,
    read: fn() -> Option<u64>,
}

/// The metrics of the process; zero where the kernel does not report them.
pub const PROCESS: [OfTheProcess; 7] = [
    OfTheProcess {
        name: "process_cpu_us",
        help: "Microseconds of CPU that Pagewell has used, without php-fpm.",
        kind: Kind::Counter,
        read: cpu_us,
    },
    OfTheProcess {
        name: "process_resident_bytes",
        help: "Resident memory of Pagewell: pages, files, connections, the program itself; \
               without php-fpm.",
        kind: Kind::Gauge,
        read: resident_bytes,
    },
    OfTheProcess {
        name: "uploads_bytes",
        help: "Disk space used now by request content (in `uploads`) until the origin has it; a \
               file counts for at least 64K.",
        kind: Kind::Gauge,
        read: || Some(spool::used_bytes()),
    },
    OfTheProcess {
        name: "client_backlog_bytes",
        help: "Memory used now by response content that clients have not read yet \
               (`limits.client_backlog_bytes`): responses in progress, and pages that are not in \
               the store.",
        kind: Kind::Gauge,
        read: || Some(send_backlog::memory_bytes() as u64),
    },
    OfTheProcess {
        name: "client_backlog_disk_bytes",
        help: "Disk space used now by responses that wait for their clients (in `uploads`); a \
               file counts for at least 256K (`limits.client_backlog_disk`).",
        kind: Kind::Gauge,
        read: || Some(spool::response_bytes()),
    },
    OfTheProcess {
        name: "history_bytes",
        help: "Memory of the last week of figures for the dashboard: 278 KiB for each site, and as much \
               for the sum of several sites; 27.4 MiB at most.",
        kind: Kind::Gauge,
        read: || Some(history::memory_bytes() as u64),
    },
    OfTheProcess {
        name: "panics",
        help: "Panics: bugs in Pagewell. Each ended one connection, one render or one task. The \
               log has their source locations.",
        kind: Kind::Counter,
        read: || Some(panics::count()),
    },
];

/// Returns the current values of the process's metrics.
pub fn of_this_process() -> impl Iterator<Item = (&'static str, u64)> {
    PROCESS.iter().map(|row| (row.name, (row.read)().unwrap_or(0)))
}

fn cpu_us() -> Option<u64> {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(u64::try_from(used.tv_nsec).ok()? / 1_000)
}

fn resident_bytes() -> Option<u64> {
    resident(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Reads the resident memory in bytes from the text of `/proc/PID/status`.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_seen() {
        let told: Vec<_> = of_this_process().collect();
        assert_eq!(told[0].0, "process_cpu_us");
        assert!(told[1].1 > 1 << 20, "{told:?}");
    }

    #[test]
    fn the_status_is_read() {
        assert_eq!(resident("VmPeak:\t 9 kB\nVmRSS:\t   12 kB\n"), Some(12 << 10));
        assert_eq!(resident("VmPeak:\t 9 kB\n"), None);
    }
}
