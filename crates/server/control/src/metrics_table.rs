//! The metrics table: for each metric its name, its description, its kind, and how it is read. The
//! control interface, `/metrics` and the manual use this table. The counters of `counters` come
//! first in each of them. The kind says how the values of several sites become one.

mod process;
mod recorded;

pub use process::{OfTheProcess, PROCESS, of_this_process};
pub use recorded::{RECORDED, recorded_place};

use crate::kernel_counts::kernel_counts;
use delivery::site::Site;
use page_store::Stats;
use std::collections::HashMap;
use std::sync::LazyLock;
use telemetry::counters::Counters;
use telemetry::limit_hits::Limit;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, from zero at the start.
    Counter,
    /// It is a current value, which may fall.
    Gauge,
    /// It is a delay, which may fall. The values of several sites are not added.
    Lag,
}

impl Kind {
    /// Returns the value of two sites together: the sum, or the longest delay.
    #[must_use]
    pub fn combined(self, one: u64, other: u64) -> u64 {
        match self {
            Kind::Counter | Kind::Gauge => one + other,
            Kind::Lag => one.max(other),
        }
    }
}

/// A metric that is read from its source, instead of being counted.
pub struct Figure {
    /// The name of the metric.
    pub name: &'static str,
    /// The description in the manual and in `/metrics`.
    pub help: &'static str,
    /// Whether it is a counter or a gauge.
    pub kind: Kind,
    read: fn(&Site, &Stats) -> u64,
}

/// The metrics in addition to the counters.
pub const FIGURES: [Figure; 23] = [
    Figure {
        name: "pages",
        help: "Pages in the cache; each variant of a page counts.",
        kind: Kind::Gauge,
        read: |_, store| store.pages as u64,
    },
    Figure {
        name: "names",
        help: "Names that cached pages depend on: tags, URLs, paths, the site.",
        kind: Kind::Gauge,
        read: |_, store| store.names as u64,
    },
    Figure {
        name: "statements",
        help: "SQL statements that cached pages depend on (automatic dependencies).",
        kind: Kind::Gauge,
        read: |site, _| site.footprints.statements() as u64,
    },
    Figure {
        name: "memory_bytes",
        help: "Memory of the cached pages with keys and index, without cached files.",
        kind: Kind::Gauge,
        read: |_, store| store.bytes.used() as u64,
    },
    Figure {
        name: "memory_budget_bytes",
        help: "The page budget (`memory`); an eighth of it is for files.",
        kind: Kind::Gauge,
        read: |site, _| site.config.memory_bytes as u64,
    },
    Figure {
        name: "comparison_bytes",
        help: "Memory of comparisons (`audit`, trial), at most 200 MiB.",
        kind: Kind::Gauge,
        read: |site, _| {
            let answers = site.trial_queue.kept_bytes() + site.trial.bytes();
            (site.audit.memory.used() + answers) as u64
        },
    },
    Figure {
        name: "evicted",
        help: "Pages evicted to make space.",
        kind: Kind::Counter,
        read: |_, store| store.counters.evicted,
    },
    Figure {
        name: "unused",
        help: "Pages removed because they were not requested for as long as `cache.inactive`.",
        kind: Kind::Counter,
        read: |_, store| store.counters.inactive,
    },
    Figure {
        name: "dropped",
        help: "Pages purged because something they depend on changed.",
        kind: Kind::Counter,
        read: |_, store| store.counters.dropped,
    },
    Figure {
        name: "to_rewarm",
        help: "Pages that wait for a refresh in the background (`rewarm`).",
        kind: Kind::Gauge,
        read: |_, store| store.to_rewarm as u64,
    },
    Figure {
        name: "changes_remembered",
        help: "Changed names remembered for renders still in progress.",
        kind: Kind::Gauge,
        read: |_, store| store.changes_remembered as u64,
    },
    Figure {
        name: "rate_limits_replaced",
        help: "Clients that were forgotten before their rate limit ended (`limits.rate_limit_entries`).",
        kind: Kind::Counter,
        read: |site, _| site.per_address.rates_replaced(),
    },
    Figure {
        name: "leases",
        help: "Renders in progress, as the store counts them.",
        kind: Kind::Gauge,
        read: |_, store| store.leases as u64,
    },
    Figure {
        name: "cluster_pending",
        help: "Invalidations not yet published to the other nodes because the stream cannot be \
               reached.",
        kind: Kind::Gauge,
        read: |site, _| site.sources.pending_publications(),
    },
    Figure {
        name: "origin_places_taken",
        help: "Requests at the origin now.",
        kind: Kind::Gauge,
        read: |site, _| site.origin.places().taken() as u64,
    },
    Figure {
        name: "origin_queue",
        help: "Requests that wait for a place at the origin now.",
        kind: Kind::Gauge,
        read: |site, _| site.origin.places().waiting() as u64,
    },
    Figure {
        name: "origin_servers_out",
        help: "Servers of `site.origin` and `site.origin_backup` that get no requests now.",
        kind: Kind::Gauge,
        read: |site, _| site.origin.servers_out().0 as u64,
    },
    Figure {
        name: "misses_waited",
        help: "Requests that had to wait for a place at the origin.",
        kind: Kind::Counter,
        read: |site, _| site.origin.places().figures().waited,
    },
    Figure {
        name: "misses_deferred",
        help: "Requests deferred because the origin was overloaded and others came first (`misses.mode = \"protect\"`).",
        kind: Kind::Counter,
        read: |site, _| site.origin.places().figures().deferred,
    },
    Figure {
        name: "misses_overload_seconds",
        help: "Seconds for which the origin was overloaded: requests waited for more than one second without a break.",
        kind: Kind::Counter,
        read: |site, _| site.origin.places().figures().overload_seconds,
    },
    Figure {
        name: "misses_overloaded",
        help: "Whether the origin is overloaded now: 1 or 0.",
        kind: Kind::Gauge,
        read: |site, _| site.origin.places().figures().is_overloaded.into(),
    },
    Figure {
        name: "unknown_places",
        help: "The concurrent origin requests that clients without evidence may have now.",
        kind: Kind::Gauge,
        read: |site, _| site.origin.places().figures().unknown_places as u64,
    },
    Figure {
        name: UPTIME,
        help: "Seconds since the start.",
        kind: Kind::Gauge,
        read: |site, _| site.clock.monotonic().as_secs(),
    },
];

/// A metric of the kernel, which is the same for every site of the process.
pub struct OfTheKernel {
    /// The name of the metric.
    pub name: &'static str,
    /// The description in the manual and in `/metrics`.
    pub help: &'static str,
    /// Whether it is a counter or a gauge.
    pub kind: Kind,
    read: fn(&doctor::Tcp, &doctor::Conntrack) -> Option<u64>,
}

/// The kernel's counts of connections that Pagewell never received; zero where they are
/// unavailable.
pub const KERNEL: [OfTheKernel; 8] = [
    OfTheKernel {
        name: "kernel_listen_overflows",
        help: "Connections that the kernel dropped because a listen queue was full: of all \
               servers on the machine, since its start.",
        kind: Kind::Counter,
        read: |tcp, _| tcp.listen_overflows,
    },
    OfTheKernel {
        name: "kernel_listen_drops",
        help: "Connections that the kernel dropped while they were being established, for any \
               reason.",
        kind: Kind::Counter,
        read: |tcp, _| tcp.listen_drops,
    },
    OfTheKernel {
        name: "kernel_syn_drops",
        help: "Half-open connections that the kernel dropped because their queue was full.",
        kind: Kind::Counter,
        read: |tcp, _| tcp.syn_drops,
    },
    OfTheKernel {
        name: "kernel_time_wait_overflows",
        help: "Closed connections not kept in TIME-WAIT because the kernel's table was full.",
        kind: Kind::Counter,
        read: |tcp, _| tcp.time_wait_overflows,
    },
    OfTheKernel {
        name: "kernel_time_wait",
        help: "Closed connections in TIME-WAIT now.",
        kind: Kind::Gauge,
        read: |tcp, _| tcp.time_wait,
    },
    OfTheKernel {
        name: "kernel_conntrack_entries",
        help: "Connections in the firewall's table now.",
        kind: Kind::Gauge,
        read: |_, conntrack| conntrack.count,
    },
    OfTheKernel {
        name: "kernel_conntrack_max",
        help: "The size of the firewall's connection table.",
        kind: Kind::Gauge,
        read: |_, conntrack| conntrack.max,
    },
    OfTheKernel {
        name: "kernel_conntrack_drops",
        help: "Packets that the kernel dropped because the firewall's table was full.",
        kind: Kind::Counter,
        read: |_, conntrack| conntrack.drops,
    },
];

/// Returns the current values of the kernel's metrics.
pub fn of_the_kernel() -> impl Iterator<Item = (&'static str, u64)> {
    let (tcp, conntrack) = kernel_counts();
    KERNEL.iter().map(move |row| (row.name, (row.read)(&tcp, &conntrack).unwrap_or(0)))
}

/// Returns whether a metric is the same for every site of the process.
#[must_use]
pub fn of_the_process(name: &str) -> bool {
    name == UPTIME
        || KERNEL.iter().any(|row| row.name == name)
        || PROCESS.iter().any(|row| row.name == name)
}

/// The name of the metric for the uptime of the process.
pub const UPTIME: &str = "uptime_seconds";

/// The counters that do not only grow, each with its kind.
const NOT_COUNTED: [(&str, Kind); 6] = [
    ("audit_watched", Kind::Gauge),
    ("followers", Kind::Gauge),
    ("database_apply_us", Kind::Lag),
    ("database_lag_us", Kind::Lag),
    ("database_lag_max_us", Kind::Lag),
    ("connections", Kind::Gauge),
];

/// Returns every metric: name, description, type.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, Kind)> {
    let counted = Counters::default().rows().into_iter().map(|(name, help, _)| {
        let other = NOT_COUNTED.iter().find(|(other, _)| *other == name);
        (name, help, other.map_or(Kind::Counter, |(_, kind)| *kind))
    });
    let figures = FIGURES.iter().map(|figure| (figure.name, figure.help, figure.kind));
    let kernel = KERNEL.iter().map(|row| (row.name, row.help, row.kind));
    let process = PROCESS.iter().map(|row| (row.name, row.help, row.kind));
    counted.chain(figures).chain(kernel).chain(process)
}

/// Returns the kind of a metric; a counter, if the table does not have it.
#[must_use]
pub fn kind_of(name: &str) -> Kind {
    static KINDS: LazyLock<HashMap<&str, Kind>> =
        LazyLock::new(|| all().map(|(name, _, kind)| (name, kind)).collect());
    KINDS.get(name).copied().unwrap_or(Kind::Counter)
}

/// Returns the current metrics of a site, in the order of [`all`].
pub fn values(site: &Site) -> Vec<(&'static str, u64)> {
    let of_the_site = of_the_site(site).into_iter();
    of_the_site.chain(of_the_kernel()).chain(of_this_process()).collect()
}

/// Returns the current metrics of a site, without those of the kernel and the process.
pub fn of_the_site(site: &Site) -> Vec<(&'static str, u64)> {
    let store = site.store.stats();
    let counted = site.counters.rows().into_iter().map(|(name, _, value)| match name {
        // It grows while the next measurement is overdue.
        "database_lag_us" => (name, site.sources.lag_us()),
        _ => (name, value),
    });
    let figures = FIGURES.iter().map(|figure| (figure.name, (figure.read)(site, &store)));
    counted.chain(figures).collect()
}

/// How often each limit was reached on a site and at its origin.
pub fn limits_hit(site: &Site) -> impl Iterator<Item = (&'static str, u64)> {
    let (own, places) = (&site.counters.limit_hits, &site.origin.places().limit_hits);
    Limit::ALL.iter().map(move |limit| {
        let count = match limit {
            // This limit has a counter of its own, which is older than this family of metrics.
            Limit::CodingQueue => site.counters.codings_skipped.get(),
            limit => own.get(*limit) + places.get(*limit),
        };
        (limit.key(), count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<_> = all().map(|(name, ..)| name).collect();
        assert!(NOT_COUNTED.iter().all(|(name, _)| names.contains(name)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_kind_says_how_sites_are_combined() {
        let of_two = |name| kind_of(name).combined(3, 5);
        assert_eq!(["requests", "pages", "database_lag_us"].map(of_two), [8, 8, 5]);
        assert_eq!(kind_of("audit_watched"), Kind::Gauge, "it falls");
        let delays = all().filter(|(_, _, kind)| *kind == Kind::Lag).map(|(name, ..)| name);
        assert!(delays.eq(["database_apply_us", "database_lag_us", "database_lag_max_us"]));
    }
}
