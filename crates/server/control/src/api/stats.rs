//! The metrics as JSON: of all sites together and, if there are several, of each. Counters of sites
//! are added; of delays the longest counts.
//! `metrics_table` has the table. Values that are the same for every site (the kernel's and the
//! process's) occur once. They are read on request, and no history is stored.

use crate::metrics_table::limits_hit;
use crate::metrics_table::{self, UPTIME};
use delivery::site::Site;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use telemetry::counters::TimesNow;

/// Returns the metrics of all sites together and, if there are several, of each.
pub(super) fn stats(site: &Arc<Site>) -> Value {
    let mut sums = BTreeMap::new();
    let mut each = serde_json::Map::new();
    for site in site.all_sites() {
        let of_the_site = metrics_table::of_the_site(site)
            .into_iter()
            .filter(|(name, _)| !metrics_table::of_the_process(name));
        let figures: BTreeMap<_, _> = of_the_site.collect();
        for (name, value) in &figures {
            let all = sums.entry(*name).or_insert(0);
            *all = metrics_table::kind_of(name).combined(*all, *value);
        }
        each.insert(name(site), json!(figures));
    }
    sums.insert(UPTIME, site.clock.monotonic().as_secs());
    sums.extend(metrics_table::of_the_kernel());
    sums.extend(metrics_table::of_this_process());
    let mut all = json!(sums);
    if each.len() > 1 {
        all["sites"] = each.into();
    }
    all
}

/// Returns the metrics, and how often each limit was reached over all sites.
pub(super) fn stats_and_limits(site: &Arc<Site>) -> Value {
    let mut all = stats(site);
    let mut hit = BTreeMap::new();
    for (limit, count) in site.all_sites().flat_map(|site| limits_hit(site)) {
        *hit.entry(limit).or_insert(0) += count;
    }
    all["limits_hit"] = json!(hit);
    all
}

/// Returns the histogram of the times until the origin's header section arrived. If there are
/// several sites, it includes the histogram of each.
pub(super) fn origin_times(site: &Arc<Site>) -> Value {
    let times: Vec<_> =
        site.all_sites().map(|site| (name(site), site.counters.origin_times.snapshot())).collect();
    let bounds = times.first().into_iter().flat_map(|(_, times)| &times.buckets);
    let bounds: Vec<_> =
        bounds.filter_map(|(bound, _)| bound.map(|bound| bound.as_millis() as u64)).collect();
    let mut all = json!({ "bounds_ms": bounds, "counts": sums(&times), "sum_us": 0 });
    let sum_us: u64 = times.iter().map(|(_, times)| times.sum.as_micros() as u64).sum();
    all["sum_us"] = sum_us.into();
    if times.len() > 1 {
        let each = times.iter().map(|(name, times)| {
            let sum_us = times.sum.as_micros() as u64;
            (name.clone(), json!({ "counts": counts(times), "sum_us": sum_us }))
        });
        all["sites"] = each.collect::<serde_json::Map<_, _>>().into();
    }
    all
}

fn counts(times: &TimesNow) -> Vec<u64> {
    times.buckets.iter().map(|(_, count)| *count).collect()
}

fn sums(times: &[(String, TimesNow)]) -> Vec<u64> {
    let each: Vec<_> = times.iter().map(|(_, times)| counts(times)).collect();
    let places = each.first().map_or(0, Vec::len);
    (0..places).map(|at| each.iter().map(|counts| counts[at]).sum()).collect()
}

/// Returns the uncovered tags of all sites together: no change rule can produce them.
pub(super) fn uncovered_tags(site: &Arc<Site>) -> Value {
    let all: BTreeSet<String> =
        site.all_sites().flat_map(|site| site.uncovered_tags.list()).collect();
    json!({ "tags": all })
}

/// Returns the name of a site among several: its canonical host.
fn name(site: &Site) -> String {
    site.config.hosts.canonical.clone().unwrap_or_default()
}
