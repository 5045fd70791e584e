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
