//! What a machine's settings will do to a site under load: facts go in, findings come out, in order of
//! importance, each with its evidence, the exact command that mends it, and the risk of that.
//!
//! Nothing is looked up here: [`Facts`] are collected by whoever has a machine, and the texts of `/proc`
//! are read by [`read`]. A fact that is not known is `None`, and what depends on it is not judged.
//! Nothing is ever changed. Not here: I/O, time, state; what to print, and how.

mod checks;
mod facts;
mod finding;
pub mod read;

pub use facts::{
    Answer, Before, Cgroup, Conntrack, Facts, Kernel, LinksOutside, Memory, Opcache, Pool, Tcp,
};
pub use finding::{Finding, Weight};

/// Everything that these facts say, the most important first.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = checks::all(facts);
    findings.sort_by_key(|finding| finding.weight);
    findings
}
