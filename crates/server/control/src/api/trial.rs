//! `/v1/trial`: the report of each site that is under trial (`GET`), and a new record after a deployment (`POST`). Also
//! their metrics.
//!
//! The report has patterns of paths and examples without values, so it may be shown to every operator. It has words of
//! renders only if the query asks for them. Invariant: the number of series depends on the sites under trial alone.
//! Not here: the record (`trial_record`).

use super::ControlError;
use super::metrics::{Format, begin};
use super::query::parameters;
use crate::attention::why_nothing_is_stored;
use crate::metrics_table::Kind;
use delivery::site::Site;
use delivery::trial::is_share_refused;
use http::Method;
use page_comparison::{DifferenceClass, ReportLine};
use rule_conditions::RequestView;
use serde::Deserialize;
use serde_json::{Value, json};
use site_rules::Load;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use trial_record::{DEFAULT_BUDGET_PERCENT, SHARES, TrialNotice, TrialStatus};

/// The body of `POST /v1/trial`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrialCall {
    /// Whether new records begin.
    restart: bool,
    /// The host of the only site that is meant.
    #[serde(default)]
    site: Option<String>,
}

/// The reports of all sites that are under trial, or of that of the query `site=HOST`; with `text=true` also the words that
/// differ.
///
/// # Errors
/// The query is invalid, or no site has this host.
pub(super) fn reports(
    default_site: &Arc<Site>,
    query: Option<&str>,
) -> Result<Value, ControlError> {
    let [host, text] = parameters(query, [("site", "HOST"), ("text", "true")])?;
    let with_text = match text.as_deref() {
        None => false,
        Some("true") => true,
        Some(_) => return Err(ControlError::Unreadable("text is true, or not there".into())),
    };
    let status = |site: &Site| {
        if with_text { site.trial.status_with_text() } else { site.trial.status() }
    };
    let sites = chosen(default_site, host)?;
    let trials = sites.into_iter().filter_map(|site| Some(of_one(&site, status(&site)?)));
    Ok(json!({ "trials": trials.collect::<Vec<_>>() }))
}

/// Begins new records. Returns the sites that are under trial.
///
/// # Errors
/// The call asks for nothing, or no site has this host.
pub(super) fn restart(default_site: &Arc<Site>, call: TrialCall) -> Result<Value, ControlError> {
    if !call.restart {
        return Err(ControlError::Unreadable("the only action is \"restart\": true".into()));
    }
    let now_s = default_site.clock.now().0 / 1_000;
    let sites = chosen(default_site, call.site)?.into_iter();
    let restarted = sites.filter(|site| site.trial.restart(now_s));
    let names: Vec<Value> = restarted.map(|site| json!(site.config.hosts.canonical)).collect();
    Ok(json!({ "restarted": names }))
}

fn chosen(default_site: &Arc<Site>, host: Option<String>) -> Result<Vec<Arc<Site>>, ControlError> {
    match host {
        None => Ok(default_site.all_sites().cloned().collect()),
        Some(host) => match default_site.named(&host) {
            Some(site) => Ok(vec![site.clone()]),
            None => Err(ControlError::SiteUnknown(host)),
        },
    }
}

/// Names the rule in a remedy that already counts for its paths.
fn name_rule(site: &Site, line: &mut ReportLine) {
    let rules = &site.config.rules;
    let host = site.config.hosts.canonical.as_deref().unwrap_or("localhost");
    let view = RequestView::of_url(&Method::GET, "https", host, &line.url);
    let plan = rules.plan(&view, Load::Normal, site.clock.now().0);
    if let Some(rule) = rules.ruling_of(&plan) {
        line.name_rule(&rules.named_rule(rule.number), rule.has_vary_cookies);
    }
}

fn of_one(site: &Site, mut status: TrialStatus) -> Value {
    status.report.problems.iter_mut().for_each(|line| name_rule(site, line));
    let report = &status.report;
    // It has no part that cannot be written.
    let mut value = serde_json::to_value(report).unwrap_or_default();
    value["site"] = json!(site.config.hosts.canonical);
    value["running_seconds"] = (site.clock.now().0 / 1_000).saturating_sub(report.since).into();
    value["serve_percent"] = (f64::from(status.serve) * 100.0 / f64::from(SHARES)).into();
    let budget = site.config.trial.as_ref().and_then(|trial| trial.budget);
    value["budget_percent"] = budget.unwrap_or(DEFAULT_BUDGET_PERCENT).into();
    let feeds = &site.sources.feeds;
    let is_away = feeds.iter().any(|feed| !feed.is_followed() || feed.keeps_pages_out());
    let away = is_away.then_some(TrialNotice::DatabaseNotFollowed);
    let is_refused = is_share_refused(site);
    value["is_share_refused"] = is_refused.into();
    let refused = is_refused.then_some(TrialNotice::RampRefused);
    let noted = status.notices.iter().copied();
    let notices: BTreeSet<TrialNotice> = noted.chain(away).chain(refused).collect();
    let sentence = |notice: TrialNotice| match notice {
        TrialNotice::NothingStored => {
            format!("{} {}", notice.sentence(), why_nothing_is_stored(site))
        }
        _ => notice.sentence().to_owned(),
    };
    value["notices"] = notices.into_iter().map(sentence).collect();
    let meaning = |class: DifferenceClass| (class.name().to_owned(), json!(class.meaning()));
    value["meanings"] = report.problems.iter().map(|problem| meaning(problem.class)).collect();
    value
}

/// Writes the metrics of the sites that are under trial.
pub(super) fn metrics(out: &mut String, sites: &[(Arc<Site>, String)], format: Format) {
    let running: Vec<_> = sites
        .iter()
        .filter_map(|(site, label)| Some((label, site.trial.status()?.report)))
        .collect();
    if running.is_empty() {
        return;
    }
    begin(out, "pagewell_trial", TRIAL, Kind::Gauge, format);
    for (label, report) in &running {
        let figures = [
            ("requests", report.requests),
            ("hits", report.hits),
            ("compared", report.compared),
            ("without-verdict", report.without_verdict),
            ("versions", report.versions),
            ("suspects", report.suspects.len() as u64),
        ];
        for (name, value) in figures {
            let _ = writeln!(out, "pagewell_trial{{{label}of=\"{name}\"}} {value}");
        }
    }
    begin(out, "pagewell_trial_found", FOUND, Kind::Gauge, format);
    for (label, report) in &running {
        for class in DifferenceClass::ALL {
            let found = report.problems.iter().filter(|problem| problem.class == class);
            let count: u64 = found.map(|problem| problem.count).sum();
            let name = class.name();
            let _ = writeln!(out, "pagewell_trial_found{{{label}class=\"{name}\"}} {count}");
        }
    }
}

const TRIAL: &str = "The figures of a running trial, since its record began.";

const FOUND: &str = "Differences that a running trial has found, by class.";
