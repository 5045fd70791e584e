//! `GET /v1/history`: the last hour of figures, for the first view of the dashboard. The figures
//! are recorded by [`crate::history`].
//!
//! The answer has one array per metric, oldest value first, and the times of the samples in
//! `at_ms`, by the clock of `/v1/live`. So a reader can continue with the events of that stream.

use super::query::parameter;
use super::{Control, ControlError};
use crate::history::{SAMPLES_MAX, STEP};
use crate::metrics_table::RECORDED;
use delivery::site::Site;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Returns the last hour; with the query `site=HOST`, of that site only.
///
/// # Errors
/// The query is invalid, or no site has this host.
pub(super) fn last_hour(control: &Control, query: Option<&str>) -> Result<Value, ControlError> {
    let default_site = &control.site;
    let site = chosen(default_site, query)?;
    let samples = control.history.last_hour(default_site, site.map(|site| &**site));
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
        "step_ms": STEP.as_millis() as u64,
        "samples_max": SAMPLES_MAX,
        "at_ms": samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>(),
        "figures": figures,
        "origin_times": {
            "bounds_ms": bounds.map(|bound| bound.as_millis() as u64).collect::<Vec<_>>(),
            "counts": samples.iter().map(|sample| sample.origin_counts).collect::<Vec<_>>(),
            "sum_us": samples.iter().map(|sample| sample.origin_sum_us).collect::<Vec<_>>(),
        },
    }))
}

/// Returns the site that the query names; `None`: all sites together.
fn chosen<'s>(
    default_site: &'s Arc<Site>,
    query: Option<&str>,
) -> Result<Option<&'s Arc<Site>>, ControlError> {
    let Some(host) = parameter(query, "site", "HOST")? else { return Ok(None) };
    default_site.named(&host).map(Some).ok_or(ControlError::SiteUnknown(host))
}
