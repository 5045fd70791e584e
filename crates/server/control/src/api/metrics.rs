//! `/metrics`: the metrics in the formats of Prometheus and OpenMetrics (OpenMetrics 1.0;
//! Prometheus text format 0.0.4, which differs in the type line of counters and in its end).
//!
//! Names begin with `pagewell_`; counters end in `_total`; times are in seconds. The labels are
//! `site`, the site's canonical host if there are several sites, `limit`, a key of `[limits]`, `kind`, a kind of
//! rules, and those of managed certificates (`certificates`).
//! The number of series depends on the configuration and the code alone, not on requests.

use super::{certificates, trial};
use crate::attention::Attention;
use crate::metrics_table::limits_hit;
use crate::metrics_table::{self, Kind};
use delivery::site::Site;
use http::{HeaderMap, HeaderValue, header};
use std::fmt::Write as _;
use std::sync::Arc;
use telemetry::counters::{Counters, Times};

/// The format of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus.
    Prometheus,
    /// The text format of OpenMetrics.
    OpenMetrics,
}

impl Format {
    /// Returns the format that the request accepts; Prometheus unless it names OpenMetrics.
    pub fn accepted(headers: &HeaderMap) -> Format {
        let lines = headers.get_all(header::ACCEPT).iter();
        let mut named = lines.filter_map(|line| line.to_str().ok());
        if named.any(|line| line.contains("application/openmetrics-text")) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    /// Returns the media type of the format.
    pub fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }
}

/// Returns the metrics of all sites of the process.
pub fn text(default_site: &Arc<Site>, attention: &Attention, format: Format) -> String {
    let sites: Vec<_> = default_site.all_sites().collect();
    let labels: Vec<_> = sites.iter().map(|site| label(site, sites.len())).collect();
    let values: Vec<_> = sites.iter().map(|site| metrics_table::values(site)).collect();
    let mut out = String::with_capacity(16 << 10);
    for (at, (name, help, kind)) in metrics_table::all().enumerate() {
        let (name, divisor) = shown(name);
        begin(&mut out, &name, help, kind, format);
        let suffix = if kind == Kind::Counter { "_total" } else { "" };
        for (label, values) in labels.iter().zip(&values) {
            let value = values[at].1;
            let _ = match divisor {
                1 => writeln!(out, "{name}{suffix}{label} {value}"),
                _ => writeln!(out, "{name}{suffix}{label} {}", value as f64 / divisor as f64),
            };
            if metrics_table::of_the_process(values[at].0) {
                // The value is the same for every site.
                break;
            }
        }
    }
    begin(&mut out, "pagewell_limits_hit", LIMITS_HIT, Kind::Counter, format);
    for (site, label) in sites.iter().zip(&labels) {
        let and = inner(label);
        for (limit, count) in limits_hit(site) {
            let _ = writeln!(out, "pagewell_limits_hit_total{{{and}limit=\"{limit}\"}} {count}");
        }
    }
    begin(&mut out, "pagewell_edge_answers", EDGE_ANSWERS, Kind::Counter, format);
    for (site, label) in sites.iter().zip(&labels) {
        let and = inner(label);
        for (kind, read) in EDGE_KINDS {
            let count = read(&site.counters);
            let _ = writeln!(out, "pagewell_edge_answers_total{{{and}kind=\"{kind}\"}} {count}");
        }
    }
    begin(&mut out, "pagewell_findings", FINDINGS, Kind::Gauge, format);
    for (name, count) in attention.counts() {
        let _ = writeln!(out, "pagewell_findings{{name=\"{name}\"}} {count}");
    }
    certificates::metrics(&mut out, default_site, format);
    let with_label = |(site, label): (&Arc<Site>, &String)| (site.clone(), inner(label));
    let all: Vec<_> = sites.iter().copied().zip(&labels).map(with_label).collect();
    trial::metrics(&mut out, &all, format);
    let times = sites.iter().zip(&labels).map(|(site, label)| (label, &site.counters.origin_times));
    histogram(
        &mut out,
        "origin_seconds",
        "Time of the origin until its header section was there, without the queue for it.",
        times,
    );
    let followed = sites.iter().zip(&labels).filter(|(site, _)| !site.sources.feeds.is_empty());
    let times = followed.map(|(site, label)| (label, &site.counters.lag_times.0));
    histogram(&mut out, "database_lag_histogram_seconds", LAG, times);
    let build = env!("CARGO_PKG_VERSION");
    let help = "The version that runs.";
    begin(&mut out, "pagewell_build_info", help, Kind::Gauge, Format::Prometheus);
    let _ = writeln!(out, "pagewell_build_info{{version=\"{build}\"}} 1");
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// Returns the name of a metric, and the divisor of its value: times are shown in seconds.
fn shown(name: &str) -> (String, u64) {
    match name.strip_suffix("_us") {
        Some(stem) => (format!("pagewell_{stem}_seconds"), 1_000_000),
        None => (format!("pagewell_{name}"), 1),
    }
}

pub(super) fn begin(out: &mut String, name: &str, help: &str, kind: Kind, format: Format) {
    let (kind, suffix) = match (kind, format) {
        (Kind::Gauge | Kind::Lag, _) => ("gauge", ""),
        (Kind::Counter, Format::Prometheus) => ("counter", "_total"),
        (Kind::Counter, Format::OpenMetrics) => ("counter", ""),
    };
    let help = help.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = writeln!(out, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}");
}

/// Returns the label `{site="…"}`, if there are several sites.
fn label(site: &Site, sites: usize) -> String {
    match &site.config.hosts.canonical {
        Some(host) if sites > 1 => format!("{{site=\"{}\"}}", escaped(host)),
        _ if sites > 1 => "{site=\"\"}".to_owned(),
        _ => String::new(),
    }
}

/// The content of a label, to which others are added: `site="…",`, or nothing.
fn inner(label: &str) -> String {
    let inside = label.trim_end_matches('}').trim_start_matches('{');
    if inside.is_empty() { String::new() } else { format!("{inside},") }
}

pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const FINDINGS: &str = "Problems that need attention now, by their names in GET /v1/status.";

const EDGE_ANSWERS: &str = "Requests answered or rewritten by a rule, files that applications named, error pages, by kind.";

type CounterRead = fn(&Counters) -> u64;

/// The kinds of rules that answer requests, and how often they did.
const EDGE_KINDS: [(&str, CounterRead); 8] = [
    ("denied", |counters| counters.denied.get()),
    ("limited", |counters| counters.rate_limited.get()),
    ("password", |counters| counters.passwords_refused.get()),
    ("redirected", |counters| counters.redirected.get()),
    ("rewritten", |counters| counters.rewritten.get()),
    ("script", |counters| counters.scripts_refused.get()),
    ("internal-file", |counters| counters.internal_files.get()),
    ("error-page", |counters| counters.error_pages.get()),
];

const LIMITS_HIT: &str = "Times that a limit was reached, by its key in the table of limits.";

const LAG: &str = "Time from asking a database what it has committed to all of that being applied.";

/// Writes one histogram, for each site that has it.
fn histogram<'a>(
    out: &mut String,
    name: &str,
    help: &str,
    times: impl Iterator<Item = (&'a String, &'a Times)>,
) {
    let _ = writeln!(out, "# HELP pagewell_{name} {help}\n# TYPE pagewell_{name} histogram");
    for (label, times) in times {
        let inside = label.trim_start_matches('{').trim_end_matches('}');
        let and = if inside.is_empty() { "" } else { "," };
        let snapshot = times.snapshot();
        let mut sum = 0;
        for (bound, count) in snapshot.buckets {
            sum += count;
            let bound = bound.map_or("+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let _ = writeln!(out, "pagewell_{name}_bucket{{{inside}{and}le=\"{bound}\"}} {sum}");
        }
        let _ = writeln!(out, "pagewell_{name}_sum{label} {}", snapshot.sum.as_secs_f64());
        let _ = writeln!(out, "pagewell_{name}_count{label} {sum}");
    }
}
