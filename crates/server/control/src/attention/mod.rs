//! The findings: the problems of this process at this moment, each with its remedy and since when it lasts.
//! One list for `GET /v1/status`, `pagewell status`, `pagewell doctor`, the metric `pagewell_findings` and the
//! dashboard; `GET /v1/ready` uses the same tests where a problem keeps Pagewell from being ready.
//!
//! The list is made with each sample of the history (every ten seconds) and at each call. A problem lasts since the
//! first of these looks that has found it without interruption. It is found in the state of the process, in the
//! figures of the last minute, in files and on disks; nothing is connected to. Settings, which only a change of the
//! machine alters, are examined by `pagewell check` and `pagewell doctor` alone.
//!
//! Lock: one, held to compare two lists and two counts; no other lock is taken under it.

mod audited;
mod disks;
mod figures;
mod files;
mod killed;
mod main_reason;
mod managed;
mod next_steps;
mod trial;

pub use disks::{disk_of_logs, free_space};
pub(crate) use next_steps::why_nothing_is_stored;
pub use next_steps::{SetupStep, next_steps};

use crate::history::MetricsHistory;
use crate::kernel_counts::cgroup;
use config::{MissesMode, OriginConfig};
use delivery::site::Site;
use doctor::Finding;
use killed::KilledProcesses;
use origin::places::PlacesFigures;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The names of all problems, in the order in which they are shown: the most severe first.
pub const NAMES: [&str; 24] = [
    "database-not-followed",
    "cluster-not-published",
    "audit-found-wrong",
    "origin-overloaded",
    "origin-failing",
    "origin-errors",
    "origin-slow",
    "origin-server-out",
    "certificate-ends",
    "certificate-not-obtained",
    "certificate-storage",
    "certificate-unreadable",
    "certificate-missing",
    "reload-failed",
    "file-not-read",
    "redirects-endless",
    "directory-not-writable",
    "snapshot-not-written",
    "disk-full",
    "killed-for-memory",
    "memory-full",
    "memory-short",
    "pages-not-stored",
    trial::NAME,
];

/// Whether a finding of this name is no fault. It is listed so that nobody forgets it; `well` and the metric leave it
/// out.
pub fn is_note(name: &str) -> bool {
    name == trial::NAME
}

/// A problem at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The name: one of [`NAMES`].
    pub name: &'static str,
    /// The site, database, file or directory that is concerned; empty if it is the whole process.
    pub subject: String,
    /// The problem and its facts, in a sentence.
    pub what: String,
    /// The next thing to do about it, in a sentence.
    pub remedy: String,
}

impl Problem {
    /// The problem that a check of `pagewell doctor` has found.
    fn of_finding(finding: Finding, subject: String) -> Problem {
        let what = format!("{} {}", finding.what, finding.evidence);
        Problem { name: finding.name, subject, what, remedy: finding.command }
    }
}

/// A problem, and for how long it has lasted.
#[derive(Clone, Debug, Serialize)]
pub struct LastingProblem {
    /// The problem that lasts, with its remedy.
    #[serde(flatten)]
    pub problem: Problem,
    /// For how many seconds it has lasted, as far as this process knows.
    pub lasting_seconds: u64,
}

/// The problems of the last look.
#[derive(Default)]
pub struct Attention(Mutex<Sightings>);

#[derive(Default)]
struct Sightings {
    /// When each problem was first seen, by its name and subject.
    since: HashMap<(&'static str, String), Duration>,
    /// The number of problems of each name.
    counts: [u64; NAMES.len()],
    killed: KilledProcesses,
}

impl Attention {
    /// Looks for problems. Reads certificates, so it may wait for the disk.
    pub fn look(&self, default_site: &Arc<Site>, history: &MetricsHistory) -> Vec<LastingProblem> {
        let now = default_site.clock.monotonic();
        let killed = cgroup("self").killed;
        let killed = self.seen().killed.note(killed, now);
        let problems = problems(default_site, history, killed);
        self.compare(problems, now)
    }

    fn compare(&self, problems: Vec<Problem>, now: Duration) -> Vec<LastingProblem> {
        let mut seen = self.seen();
        let before = std::mem::take(&mut seen.since);
        seen.counts = [0; NAMES.len()];
        let mut lasting = Vec::new();
        for problem in problems {
            let key = (problem.name, problem.subject.clone());
            let since = before.get(&key).copied().unwrap_or(now);
            seen.since.insert(key, since);
            if let Some(at) = NAMES.iter().position(|name| *name == problem.name) {
                seen.counts[at] += 1;
            }
            let lasting_seconds = now.saturating_sub(since).as_secs();
            lasting.push(LastingProblem { problem, lasting_seconds });
        }
        lasting
    }

    /// The number of problems of each name but notes, as of the last look.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.seen().counts).filter(|(name, _)| !is_note(name))
    }

    fn seen(&self) -> MutexGuard<'_, Sightings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of `GET /v1/status`.
pub fn status_json(site: &Arc<Site>, problems: &[LastingProblem], next: &[SetupStep]) -> Value {
    let well = is_well(problems);
    // A note below it has something to do.
    let text = if problems.is_empty() { "All is well." } else { "No problem was found." };
    let summary = || trial::summary(site).unwrap_or_else(|| text.into());
    json!({
        "well": well,
        "summary": well.then(summary),
        "findings": problems,
        "next": next,
        "audit": audited::json(site),
        "trial": trial::json(site),
    })
}

fn is_well(problems: &[LastingProblem]) -> bool {
    problems.iter().all(|one| is_note(one.problem.name))
}

fn problems(
    default_site: &Arc<Site>,
    history: &MetricsHistory,
    killed: Option<Problem>,
) -> Vec<Problem> {
    let mut all: Vec<Problem> = killed.into_iter().collect();
    for site in default_site.all_sites() {
        all.extend(unfollowed(site));
        all.extend(unpublished(site));
        all.extend(audited::problem(site));
        all.extend(trial::problem(site));
        all.extend(overloaded(site));
        all.extend(server_out(site));
    }
    all.extend(figures::problems(default_site, history));
    all.extend(files::problems(default_site));
    all.extend(disks::problems(default_site));
    all.extend(managed::problems(default_site));
    let place = |problem: &Problem| NAMES.iter().position(|name| *name == problem.name);
    all.sort_by(|one, other| (place(one), &one.subject).cmp(&(place(other), &other.subject)));
    // Two sites may share a database, a directory or a file.
    all.dedup_by(|one, other| (one.name, &one.subject) == (other.name, &other.subject));
    all
}

fn unfollowed(site: &Site) -> Vec<Problem> {
    if !is_unfollowed(site) {
        return Vec::new();
    }
    let away = site.sources.feeds.iter().filter(|feed| feed.keeps_pages_out());
    let problem = |feed: &Arc<change_sources::Feed>| {
        Problem {
        name: "database-not-followed",
        subject: feed.name().to_owned(),
        what: match feed.proof_age() {
            Some(age) => format!(
                "The database {} has not shown for {} s that its changes are known, so no page is stored or served \
                 from the cache.",
                feed.name(),
                age.as_secs()
            ),
            None => format!("The database {} is not followed yet, so no page is stored.", feed.name()),
        },
        remedy: "Find its event (database-broken, database-away, database-behind) in the log: journalctl -u pagewell; \
                 pagewell check tests the connection and the permissions."
            .into(),
    }
    };
    away.map(problem).collect()
}

fn unpublished(site: &Site) -> Option<Problem> {
    is_stuck(site).then(|| Problem {
        name: "cluster-not-published",
        subject: site.config.hosts.canonical.clone().unwrap_or_default(),
        what: "The stream of the cluster accepts no invalidations of this node, so the other nodes stop using their \
               pages."
            .into(),
        remedy: "Find cluster-pending in the log, which has the server's answer. A server that is full needs memory \
                 (maxmemory); a replica is no primary; an account needs XADD; after an entry with the highest ID, \
                 delete the stream."
            .into(),
    })
}

fn overloaded(site: &Site) -> Option<Problem> {
    let (config, places) = (&site.config, site.origin.places());
    let figures = places.figures();
    let workers = match &config.site.origin {
        OriginConfig::OwnPhp(php) if php.children <= config.limits.origin_connections => {
            ("php.children", "cores are idle")
        }
        _ => ("limits.origin_connections", "PHP has free workers"),
    };
    figures.is_overloaded.then(|| Problem {
        name: "origin-overloaded",
        subject: config.hosts.canonical.clone().unwrap_or_default(),
        what: format!(
            "More pages are requested than the origin can make. Places taken: {} of {}. Requests that wait: {}. \
             Deferred since the start: {}.",
            figures.busy, places.count, figures.waiting, figures.deferred
        ),
        remedy: remedy_of_overload(&figures, places.count, config.misses.mode, workers),
    })
}

/// The remedy for an overload. `option` limits the places; more of them help if `if_so`.
fn remedy_of_overload(
    figures: &PlacesFigures,
    places: usize,
    mode: MissesMode,
    (option, if_so): (&str, &str),
) -> String {
    let names = "pagewell misses names the URLs and the clients.";
    let more = format!("If {if_so}, raise {option}.");
    match mode {
        MissesMode::Off | MissesMode::Observe => {
            format!("{names} misses.mode = \"protect\" puts visitors first. {more}")
        }
        // Only requests that may not have a free place wait beside it.
        MissesMode::Protect if figures.waiting > 0 && figures.busy < places => format!(
            "{names} The free places are reserved for visitors with evidence, and clients without any have {} of \
             {places}: {option} is not the limit. Limit these URLs by a rule with renders, or disallow them in \
             robots.txt; programs of your own belong in misses.exempt.",
            figures.unknown_places
        ),
        MissesMode::Protect => format!("{names} {more}"),
    }
}

fn server_out(site: &Site) -> Option<Problem> {
    let (out, all) = site.origin.servers_out();
    (out > 0 && all > 1).then(|| Problem {
        name: "origin-server-out",
        subject: site.config.hosts.canonical.clone().unwrap_or_default(),
        what: format!("{out} of {all} servers of the origin get no requests."),
        remedy:
            "origin-left-out and origin-check-failed in the log name the server and the error; \
                 pagewell check tests each server."
                .into(),
    })
}

/// Whether a database keeps pages from being stored.
pub(crate) fn is_unfollowed(site: &Site) -> bool {
    site.sources.feeds.iter().any(|feed| feed.keeps_pages_out())
}

/// Whether this node has had changes for longer than `lag_max` that it cannot publish.
pub(crate) fn is_stuck(site: &Site) -> bool {
    site.sources.peers.as_ref().is_some_and(|peers| peers.is_stuck())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: &'static str, subject: &str) -> Problem {
        let (what, remedy) = ("It is so.".to_owned(), "Do this.".to_owned());
        Problem { name, subject: subject.into(), what, remedy }
    }

    #[test]
    fn the_remedy_of_an_overload_names_the_limit_that_was_reached() {
        let workers = ("limits.origin_connections", "PHP has free workers");
        let remedy = |busy, waiting, mode| {
            let figures =
                PlacesFigures { busy, waiting, unknown_places: 2, ..PlacesFigures::default() };
            remedy_of_overload(&figures, 8, mode, workers)
        };
        let raise = "If PHP has free workers, raise limits.origin_connections.";
        for (busy, waiting) in [(8, 9), (3, 9)] {
            let observed = remedy(busy, waiting, MissesMode::Observe);
            assert!(observed.contains("protect") && observed.ends_with(raise), "{observed}");
        }
        let all_taken = remedy(8, 9, MissesMode::Protect);
        assert!(!all_taken.contains("protect") && all_taken.ends_with(raise), "{all_taken}");
        let reserved = remedy(3, 9, MissesMode::Protect);
        assert!(reserved.contains("have 2 of 8: limits.origin_connections is not the limit"));
        assert!(!reserved.contains("raise"), "{reserved}");
        assert!(remedy(3, 0, MissesMode::Protect).ends_with(raise), "it ends");
    }

    #[test]
    fn a_problem_lasts_while_each_look_finds_it() {
        let attention = Attention::default();
        let look = |all: &[&str], seconds| -> Vec<u64> {
            let all = all.iter().map(|subject| problem("memory-full", subject)).collect();
            let found = attention.compare(all, Duration::from_secs(seconds));
            found.iter().map(|one| one.lasting_seconds).collect()
        };
        assert_eq!(look(&["a"], 10), [0]);
        assert_eq!(look(&["a", "b"], 40), [30, 0]);
        assert_eq!(attention.counts().find(|(name, _)| *name == "memory-full").unwrap().1, 2);
        assert_eq!(look(&["b"], 50), [10]);
        assert_eq!(look(&["a", "b"], 60), [0, 20]);
        assert!(look(&[], 70).is_empty());
        assert_eq!(attention.counts().map(|(_, count)| count).sum::<u64>(), 0);
    }

    #[test]
    fn a_trial_is_listed_and_is_no_fault() {
        let attention = Attention::default();
        let look = |names: &[&'static str]| {
            let all = names.iter().copied().map(|name| problem(name, "a.test")).collect();
            let found = attention.compare(all, Duration::from_secs(10));
            let counted: u64 = attention.counts().map(|(_, count)| count).sum();
            (found.len(), is_well(&found), counted)
        };
        assert_eq!(look(&[trial::NAME]), (1, true, 0));
        assert_eq!(look(&["disk-full", trial::NAME]), (2, false, 1));
        assert!(attention.counts().all(|(name, _)| name != trial::NAME), "no alert can fire");
    }
}
