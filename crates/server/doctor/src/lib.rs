//! Diagnostics: the effect of a machine's settings on a site under load. Input: facts. Output: findings, sorted
//! by severity, each with its evidence, the exact command that fixes it, and the risk of that command.
//!
//! Nothing is collected here: the caller collects the [`Facts`], and [`read`] parses the texts of `/proc`. An
//! unknown fact is `None`, and checks that depend on it are skipped. Nothing is ever changed. [`caa`] judges CAA
//! records, which the crate `dns-query` decodes. Not here: I/O, time, state, and the output format.

pub mod caa;
mod checks;
mod facts;
mod finding;
mod https_facts;
pub mod read;

pub use facts::{
    Answer, Cgroup, Conntrack, DiskSpace, EarlierCounters, ExternalPhp, Facts, Kernel,
    LinksOutside, Memory, Opcache, Pool, Tcp, WrittenFiles,
};
pub use finding::{Finding, Weight};
pub use https_facts::{AddressFacts, AuthorityFacts, CaaFacts, HostFacts, HttpsFacts, PortAnswer};

/// All findings from these facts, the most severe first.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = checks::all(facts);
    findings.sort_by_key(|finding| finding.weight);
    findings
}
