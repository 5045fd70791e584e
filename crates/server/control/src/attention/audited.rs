//! The findings of the audit: a problem while pages of the last day were wrong, and the figures of `GET /v1/status`.
//!
//! The figures are a bound: at least so many pages are right, with 95 % confidence (`page_comparison`).

use super::Problem;
use delivery::site::Site;
use serde_json::{Value, json};
use std::sync::Arc;

/// The spans of time, in hours.
const SPANS: [(&str, u64); 3] = [("hour", 1), ("day", 24), ("month", 744)];

/// The problem of a site whose audit found wrong pages within a day.
pub(super) fn problem(site: &Site) -> Option<Problem> {
    site.config.audit?;
    let bound = site.audit.hours.bound(24, site.clock.now().0);
    (bound.wrong > 0).then(|| Problem {
        name: "audit-found-wrong",
        subject: site.config.hosts.canonical.clone().unwrap_or_default(),
        what: format!(
            "Of {} pages that were compared with a new render within a day, {} were wrong.",
            bound.compared, bound.wrong
        ),
        remedy: "Find audit-found in the log: it names an example, its class and the places that differ. Give the page \
                 a tag or a shorter lifetime, or add to its key what it depends on."
            .into(),
    })
}

/// The results of the audits; nothing while all are off.
pub(super) fn json(default_site: &Arc<Site>) -> Value {
    let audited = default_site.all_sites().filter(|site| site.config.audit.is_some());
    let all = audited.map(|site| {
        let now_ms = site.clock.now().0;
        let mut value = json!({
            "site": site.config.hosts.canonical,
            "counted_seconds": (now_ms / 1_000).saturating_sub(site.audit.hours.since_s()),
            "without_verdict": site.audit.without_verdict(),
        });
        for (name, hours) in SPANS {
            let bound = site.audit.hours.bound(hours, now_ms);
            value[name] = json!({
                "compared": bound.compared,
                "wrong": bound.wrong,
                "right": bound.right_percent(),
                "nines": (bound.nines() * 10.0).floor() / 10.0,
            });
        }
        value
    });
    let all: Vec<Value> = all.collect();
    if all.is_empty() { Value::Null } else { all.into() }
}
