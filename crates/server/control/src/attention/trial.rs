//! The finding of a site that is under trial: it is not in use yet. Also the verdicts of `GET /v1/status`.
//!
//! The report itself is at `/v1/trial` (`api/trial.rs`). A trial is no fault; it is a finding so that nobody forgets it.

use super::{Problem, why_nothing_is_stored};
use delivery::site::Site;
use delivery::trial::is_share_refused;
use serde_json::{Value, json};
use std::sync::Arc;
use trial_record::TrialNotice;

/// The name of the finding.
pub(super) const NAME: &str = "trial-running";

/// The finding of a site that is under trial.
pub(super) fn problem(site: &Site) -> Option<Problem> {
    let status = site.trial.status()?;
    let served = match status.serve {
        share if share == 0 || is_share_refused(site) => {
            "visitors get the answers of the origin".to_owned()
        }
        share => format!("{} % of the visitors get cache hits", f64::from(share) / 100.0),
    };
    let subject = site.config.hosts.canonical.clone().unwrap_or_default();
    let name = if subject.is_empty() { "The site" } else { &subject };
    let why = if status.notices.contains(&TrialNotice::NothingStored) {
        format!(" {} {}", TrialNotice::NothingStored.sentence(), why_nothing_is_stored(site))
    } else {
        String::new()
    };
    Some(Problem {
        name: NAME,
        what: format!("{name} is under trial: {served}. {}{why}", status.report.sentence),
        remedy: "pagewell trial shows the report. When it says that it is safe, remove mode = \"trial\" and run \
                 pagewell reload. If it was started with --trial, restart it without."
            .into(),
        subject,
    })
}

/// The first line of `pagewell status` while trials are not safe and nothing else is wrong; `None` if all are safe.
pub(super) fn summary(default_site: &Arc<Site>) -> Option<String> {
    let found = default_site.all_sites().filter_map(|site| {
        let status = site.trial.status()?;
        let is_served = status.serve > 0 && !is_share_refused(site);
        let problems = status.report.unsafe_problems;
        (problems > 0).then_some(UnsafeTrial { problems, is_served })
    });
    let found: Vec<UnsafeTrial> = found.collect();
    (!found.is_empty()).then(|| summary_of(&found))
}

/// A trial that has found problems.
struct UnsafeTrial {
    problems: u64,
    /// Whether a part of the visitors gets cache hits.
    is_served: bool,
}

fn summary_of(found: &[UnsafeTrial]) -> String {
    let count: u64 = found.iter().map(|one| one.problems).sum();
    let problems = if count == 1 { "problem" } else { "problems" };
    let is_served = found.iter().any(|one| one.is_served);
    let visitors =
        if is_served { "A part of the visitors gets cache hits" } else { "Visitors are well" };
    let trials = match found.len() {
        1 => "the trial is".to_owned(),
        trials => format!("{trials} trials are"),
    };
    format!("{visitors}, but {trials} not safe: {count} {problems}.")
}

/// The verdicts of the trials; nothing while there are none.
pub(super) fn json(default_site: &Arc<Site>) -> Value {
    let of_one = |site: &Arc<Site>| {
        let report = site.trial.status()?.report;
        let site = &site.config.hosts.canonical;
        Some(json!({ "site": site, "outcome": report.outcome, "sentence": report.sentence }))
    };
    let all: Vec<Value> = default_site.all_sites().filter_map(of_one).collect();
    if all.is_empty() { Value::Null } else { all.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_a_trial_are_in_the_first_line() {
        let of = |trials: &[(u64, bool)]| {
            let trial = |&(problems, is_served)| UnsafeTrial { problems, is_served };
            summary_of(&trials.iter().map(trial).collect::<Vec<_>>())
        };
        let one = "Visitors are well, but the trial is not safe: 1 problem.";
        assert_eq!(of(&[(1, false)]), one);
        let two = "Visitors are well, but 2 trials are not safe: 5 problems.";
        assert_eq!(of(&[(3, false), (2, false)]), two);
        let served =
            "A part of the visitors gets cache hits, but the trial is not safe: 3 problems.";
        assert_eq!(of(&[(3, true)]), served);
    }
}
