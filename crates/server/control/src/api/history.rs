//! `GET /v1/history`: the figures of the last hour, day or week, for the first view of the dashboard. They
//! are recorded by [`crate::history`].
//!
//! The answer has one array per metric, oldest value first, and the times of the samples in
//! `at_ms`, by the clock of `/v1/live`. So a reader can continue with the events of that stream.

use super::query::parameters;
use super::{Control, ControlError};
use crate::history::HistorySpan;
use crate::metrics_table::RECORDED;
use delivery::site::Site;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Returns the last hour, or with `span=day` or `span=week` that; with `site=HOST`, of that site only.
///
/// # Errors
/// The query is invalid, or no site has this host.
pub(super) fn recorded(control: &Control, query: Option<&str>) -> Result<Value, ControlError> {
    let default_site = &control.site;
    let [host, span] = parameters(query, [("site", "HOST"), ("span", "hour|day|week")])?;
    let site = host.map(|host| named(default_site, host)).transpose()?;
    let span = span.map_or(Ok(HistorySpan::Hour), |name| span_named(&name))?;
    let samples = control.history.samples(default_site, site.map(|site| &**site), span);
    let recorded = span.shortest_with_all(default_site.clock.monotonic().as_millis() as u64);
    let mut figures: Map<String, Value> = Map::new();
    if !samples.is_empty() {
        for (at, name) in RECORDED.iter().enumerate() {
            figures
                .insert((*name).into(), samples.iter().map(|sample| sample.values()[at]).collect());
        }
    }
    let times = default_site.counters.origin_times.snapshot();
    let bounds = times.buckets.iter().filter_map(|(bound, _)| *bound);
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "site": site.map(|site| site.config.hosts.canonical.clone()),
        "span": span.name(),
        "step_ms": recorded.step().as_millis() as u64,
        "samples_max": recorded.samples_max(),
        "at_ms": samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>(),
        "figures": figures,
        "origin_times": {
            "bounds_ms": bounds.map(|bound| bound.as_millis() as u64).collect::<Vec<_>>(),
            "counts": samples.iter().map(|sample| sample.origin_counts).collect::<Vec<_>>(),
            "sum_us": samples.iter().map(|sample| sample.origin_sum_us).collect::<Vec<_>>(),
        },
    }))
}

fn named(default_site: &Arc<Site>, host: String) -> Result<&Arc<Site>, ControlError> {
    default_site.named(&host).ok_or(ControlError::SiteUnknown(host))
}

fn span_named(name: &str) -> Result<HistorySpan, ControlError> {
    let wrong = || ControlError::Unreadable("span is hour, day or week".into());
    HistorySpan::ALL.into_iter().find(|span| span.name() == name).ok_or_else(wrong)
}
