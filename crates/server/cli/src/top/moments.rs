//! The metrics of the last two minutes for each site, and values derived from two samples: rates,
//! shares, times. A value that is not known yet is `None`.
//!
//! Only the metrics that the server records as well are stored (`metrics_table::RECORDED`), because a
//! process may have a thousand sites.

use control::metrics_table::{RECORDED, recorded_place};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// The number of samples per site that are stored: one a second.
const KEPT: usize = 120;

/// A sample of one site's metrics.
#[derive(Clone, Debug)]
pub struct Moment {
    at_ms: u64,
    values: [u64; RECORDED.len()],
    counts: Vec<u64>,
    sum_us: u64,
}

/// The samples of all sites.
#[derive(Default)]
pub struct Moments {
    /// The samples by host; the empty name stands for all sites together.
    by_site: BTreeMap<String, VecDeque<Moment>>,
    /// The latest information about the process.
    pub process: Process,
}

/// Information about the process.
#[derive(Default)]
pub struct Process {
    /// The version of the running Pagewell.
    pub version: String,
    /// Seconds since the start.
    pub uptime: u64,
    /// The number of CPU cores of the machine.
    pub cores: u64,
    /// The reasons why it is not ready; empty if it is.
    pub not_ready: Vec<String>,
    bounds_ms: Vec<u64>,
}

impl Moments {
    /// Adds the metrics in an event from `GET /v1/live`.
    pub fn add(&mut self, event: &Value) {
        let (figures, times) = (&event["figures"], &event["origin_times"]);
        let at_ms = number(&event["at_ms"]);
        if self.by_site.get("").and_then(VecDeque::back).is_some_and(|last| last.at_ms > at_ms) {
            // If the time has decreased, another process sends the metrics.
            self.by_site.clear();
        }
        self.process = Process {
            version: event["version"].as_str().unwrap_or_default().to_owned(),
            uptime: number(&figures["uptime_seconds"]),
            cores: number(&event["cores"]),
            not_ready: texts(&event["not_ready"]),
            bounds_ms: numbers(&times["bounds_ms"]),
        };
        self.put("", moment(at_ms, figures, times, figures));
        let sites = figures["sites"].as_object();
        for (host, of_site) in sites.into_iter().flatten().filter(|(host, _)| !host.is_empty()) {
            let times = &times["sites"][host];
            self.put(host, moment(at_ms, of_site, times, figures));
        }
    }

    fn put(&mut self, host: &str, moment: Moment) {
        let moments = self.by_site.entry(host.to_owned()).or_default();
        moments.push_back(moment);
        if moments.len() > KEPT {
            moments.pop_front();
        }
    }

    /// The hosts of the sites, if there are several.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.by_site.keys().map(String::as_str).filter(|host| !host.is_empty())
    }

    /// The samples of a site.
    pub fn of(&self, host: &str) -> Site<'_> {
        Site { moments: self.by_site.get(host), bounds_ms: &self.process.bounds_ms }
    }
}

fn moment(at_ms: u64, figures: &Value, times: &Value, process: &Value) -> Moment {
    let value = |name: &str| match figures.get(name) {
        Some(value) => number(value),
        None => number(&process[name]),
    };
    let (counts, sum_us) = (numbers(&times["counts"]), number(&times["sum_us"]));
    Moment { at_ms, values: RECORDED.map(value), counts, sum_us }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().into_iter().flatten().map(number).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// The samples of one site.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    moments: Option<&'a VecDeque<Moment>>,
    bounds_ms: &'a [u64],
}

/// A function that derives a value from an earlier and a later sample.
pub type Derivation = fn(&Moment, &Moment) -> Option<f64>;

impl Site<'_> {
    /// The latest value of a metric.
    pub fn now(&self, name: &str) -> u64 {
        self.moments.and_then(VecDeque::back).map_or(0, |moment| moment.get(name))
    }

    /// The value derived from the latest sample and the one `seconds` seconds before.
    pub fn over(
        &self,
        seconds: usize,
        made: impl Fn(&Moment, &Moment) -> Option<f64>,
    ) -> Option<f64> {
        let moments = self.moments?;
        let before = &moments[moments.len().saturating_sub(1 + seconds)];
        let now = moments.back()?;
        if now.at_ms > before.at_ms { made(before, now) } else { None }
    }

    /// The derived values for the last `count` samples, each over `seconds` seconds.
    pub fn series(&self, count: usize, seconds: usize, made: Derivation) -> Vec<Option<f64>> {
        let Some(moments) = self.moments else { return Vec::new() };
        let first = moments.len().saturating_sub(count).max(1);
        (first..moments.len())
            .map(|at| made(&moments[at.saturating_sub(seconds)], &moments[at]))
            .collect()
    }

    /// The time in milliseconds within which the fraction `share` of the origin's responses of the last
    /// minute arrived.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        self.over(60, |before, now| {
            let since = |at: usize| before.counts.get(at).copied().unwrap_or(0);
            let counts =
                now.counts.iter().enumerate().map(|(at, count)| count - since(at).min(*count));
            let counts: Vec<f64> = counts.map(|count| count as f64).collect();
            within(&counts, self.bounds_ms, share)
        })
    }
}

/// Interpolates between the bounds of the histogram; above the last bound, the result is that bound.
fn within(counts: &[f64], bounds_ms: &[u64], share: f64) -> Option<f64> {
    let mut left = counts.iter().sum::<f64>() * share;
    if left <= 0.0 {
        return None;
    }
    let mut from = 0.0;
    for (at, inside) in counts.iter().enumerate() {
        let to = bounds_ms.get(at).map_or(from, |bound| *bound as f64);
        if left <= *inside {
            return Some(from + (to - from) * (left / inside));
        }
        left -= inside;
        from = to;
    }
    Some(from)
}

impl Moment {
    /// The value of a metric.
    pub fn get(&self, name: &str) -> u64 {
        recorded_place(name).map_or(0, |at| self.values[at])
    }
}

/// The rate of a metric, per second.
pub fn rate(name: &'static str) -> impl Fn(&Moment, &Moment) -> Option<f64> {
    move |before, now| {
        let ms = now.at_ms.saturating_sub(before.at_ms);
        let more = now.get(name).saturating_sub(before.get(name));
        (ms > 0).then(|| more as f64 * 1000.0 / ms as f64)
    }
}

/// The fraction of page requests that were answered without a separate origin request.
pub fn hit_share(before: &Moment, now: &Moment) -> Option<f64> {
    let more = |name| now.get(name).saturating_sub(before.get(name)) as f64;
    let asked = more("requests") - more("files");
    let answered = more("hits") + more("stale_hits") + more("private_hits") + more("collapsed");
    (asked > 0.0).then(|| (answered / asked).min(1.0))
}

/// CPU usage as a fraction of one core.
pub fn core_share(before: &Moment, now: &Moment) -> Option<f64> {
    rate("process_cpu_us")(before, now).map(|us| us / 1e6)
}

/// The average duration of origin requests, in milliseconds.
pub fn mean_ms(before: &Moment, now: &Moment) -> Option<f64> {
    let all = |moment: &Moment| moment.counts.iter().sum::<u64>();
    let answers = all(now).saturating_sub(all(before));
    let us = now.sum_us.saturating_sub(before.sum_us);
    (answers > 0).then(|| us as f64 / 1000.0 / answers as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(at_ms: u64, requests: u64, hits: u64) -> Value {
        json!({
            "at_ms": at_ms, "version": "1", "cores": 2, "not_ready": ["stopping"],
            "figures": {
                "requests": requests, "hits": hits, "process_cpu_us": at_ms * 100, "uptime_seconds": 7,
                "sites": { "a.test": { "requests": 1 } }
            },
            "origin_times": {
                "bounds_ms": [10, 20], "counts": [hits, 0, 0], "sum_us": hits * 5000,
                "sites": { "a.test": { "counts": [0, 1, 0], "sum_us": 15000 } }
            },
        })
    }

    #[test]
    fn what_follows_from_two_moments() {
        let mut moments = Moments::default();
        moments.add(&event(1000, 10, 0));
        assert_eq!(moments.of("").over(10, hit_share), None, "there is one moment");
        moments.add(&event(3000, 30, 15));
        let all = moments.of("");
        assert_eq!(all.over(10, rate("requests")), Some(10.0));
        assert_eq!(all.over(10, hit_share), Some(0.75));
        assert_eq!(all.over(10, core_share), Some(0.1));
        assert_eq!(all.over(10, mean_ms), Some(5.0));
        assert_eq!(all.quantile(0.5), Some(5.0));
        assert_eq!(all.series(9, 1, hit_share), [Some(0.75)]);
        assert_eq!(moments.hosts().collect::<Vec<_>>(), ["a.test"]);
        assert_eq!(moments.of("a.test").now("requests"), 1);
        assert_eq!(moments.of("a.test").over(10, core_share), Some(0.1), "it is the process's");
        assert_eq!((moments.process.cores, moments.process.uptime), (2, 7));
        moments.add(&event(500, 1, 0));
        assert_eq!(moments.of("").over(10, hit_share), None, "another process counts anew");
    }

    #[test]
    fn times_beyond_the_last_bound() {
        assert_eq!(within(&[0.0, 0.0, 4.0], &[10, 20], 0.5), Some(20.0));
        assert_eq!(within(&[2.0, 2.0, 0.0], &[10, 20], 0.75), Some(15.0));
        assert_eq!(within(&[0.0, 0.0, 0.0], &[10, 20], 0.5), None);
    }
}
