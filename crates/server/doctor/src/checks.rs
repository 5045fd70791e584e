//! The checks. Each check is a function of the facts that returns its findings, and nothing if a fact is
//! unknown. Checks are independent of each other. The reason for each threshold is beside its value. The
//! submodules are: automatic HTTPS, connections, the machine, PHP, and the site's responses.

mod https;
mod machine;
mod network;
mod php;
mod site;

use crate::{Facts, Finding, Weight};

/// The findings of all checks, unsorted.
pub(crate) fn all(facts: &Facts) -> Vec<Finding> {
    let one: [fn(&Facts) -> Option<Finding>; 22] = [
        network::open_files,
        network::accept_queue,
        network::listen_overflows,
        network::syn_backlog,
        network::time_wait,
        network::ports,
        network::conntrack,
        network::conntrack_drops,
        network::tcp_memory,
        machine::swap,
        machine::killed,
        machine::throttled,
        machine::memory_for_all,
        machine::huge_pages,
        machine::turning_disk,
        machine::clock,
        php::children,
        php::database,
        php::places,
        php::hidden_clients,
        php::opcache_files,
        site::links_outside,
    ];
    let mut found: Vec<Finding> = one.iter().filter_map(|check| check(facts)).collect();
    found.extend(machine::disks(facts));
    found.extend(php::opcache(facts));
    found.extend(network::folklore(facts));
    found.extend(site::answers(facts));
    found.extend(https::all(facts));
    found
}

/// The weight of a kernel counter, by whether it rose during the observation, and the words for it. A counter
/// that did not rise may show a problem that ended long ago.
fn lately(now: u64, before: Option<u64>) -> (Weight, String) {
    match before.map(|before| now.saturating_sub(before)) {
        None => (Weight::Note, "whether it rises is unknown".into()),
        Some(0) => (Weight::Note, "it did not rise during the observation".into()),
        Some(risen) => (Weight::Fails, format!("it rose by {risen} during the observation")),
    }
}

/// Bytes in a readable form: `512 MB`.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes / 1000),
        1_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
