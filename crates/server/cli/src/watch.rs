//! `pagewell stats --watch`: one line each second, with rates since the line before and current levels.
//!
//! It reads `GET /v1/live`, and writes no control sequences, so that the lines can go to a file or a program. A value
//! that is not known is `-`. When Pagewell ends the stream, another process may have taken over: it connects again
//! once.

use crate::client::follow;
use command_line::options::StatsArgs;
use serde_json::Value;
use std::io::{ErrorKind, Write};
use std::time::Duration;

/// The names of the columns.
const HEADER: &str = "requests/s   hit %  renders/s  origin ms  failed/s   CPU %  memory MiB      pages  connections";
/// The number of lines between two headers.
const HEADER_EVERY: u64 = 20;
/// The time before it connects again.
const AGAIN: Duration = Duration::from_secs(1);

/// Writes a line for each event, until the reader of `out` has gone.
///
/// # Errors
/// A sentence for the operator.
pub async fn watch(args: &StatsArgs, out: &mut impl Write) -> Result<(), String> {
    let (mut lines, mut before) = (0, None);
    loop {
        let mut stream = follow(&args.control).await?;
        while let Some(event) = stream.next().await? {
            let now = Sample::of(&event, args.site.as_deref())?;
            let line = if args.json {
                Some(event["figures"].to_string())
            } else {
                before.as_ref().and_then(|before| now.line_since(before))
            };
            before = Some(now);
            let Some(line) = line else { continue };
            let header = !args.json && lines % HEADER_EVERY == 0;
            lines += 1;
            let text = if header { format!("{HEADER}\n{line}\n") } else { format!("{line}\n") };
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                written => written
                    .map_err(|error| format!("standard output cannot be written: {error}"))?,
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// The values of one event that the columns are computed from.
struct Sample {
    at_ms: u64,
    /// Requests for pages: without those for files.
    requests: u64,
    /// Requests for pages that were answered without an origin request of their own.
    answered: u64,
    renders: u64,
    failures: u64,
    /// The origin's responses, and the sum of the times until each arrived.
    responses: u64,
    origin_us: u64,
    all_requests: u64,
    cpu_us: u64,
    memory_bytes: u64,
    pages: u64,
    connections: u64,
}

impl Sample {
    /// Reads the values of all sites, or of the site with this host. Values of the process are the same for all.
    fn of(event: &Value, site: Option<&str>) -> Result<Sample, String> {
        let (all, all_times) = (&event["figures"], &event["origin_times"]);
        let (figures, times) = match site {
            None => (all, all_times),
            Some(site) if all["sites"][site].is_object() => {
                (&all["sites"][site], &all_times["sites"][site])
            }
            Some(site) => return Err(no_site(site, all)),
        };
        let value = |name: &str| number(figures.get(name).unwrap_or(&all[name]));
        let counts = times["counts"].as_array();
        let answers = ["hits", "stale_hits", "private_hits", "collapsed"];
        Ok(Sample {
            at_ms: number(&event["at_ms"]),
            requests: value("requests").saturating_sub(value("files")),
            answered: answers.map(value).iter().sum(),
            renders: value("renders"),
            failures: value("origin_failures"),
            responses: counts.into_iter().flatten().map(number).sum(),
            origin_us: number(&times["sum_us"]),
            all_requests: value("requests"),
            cpu_us: value("process_cpu_us"),
            memory_bytes: value("memory_bytes"),
            pages: value("pages"),
            connections: value("connections"),
        })
    }

    /// The line for the time since an earlier sample; `None` if that is of another process, whose counts are others.
    fn line_since(&self, before: &Sample) -> Option<String> {
        let ms = self.at_ms.checked_sub(before.at_ms).filter(|ms| *ms > 0)?;
        let more = |of: fn(&Sample) -> u64| of(self).saturating_sub(of(before)) as f64;
        let rate = |of| more(of) * 1_000.0 / ms as f64;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let hits = share(more(|sample| sample.answered), more(|sample| sample.requests));
        let mean_us = share(more(|sample| sample.origin_us), more(|sample| sample.responses));
        Some(format!(
            "{:>10.1} {:>7} {:>10.1} {:>10} {:>9.1} {:>7.1} {:>11.1} {:>10} {:>12}",
            rate(|sample| sample.all_requests),
            known(hits.map(|share| share.min(1.0) * 100.0)),
            rate(|sample| sample.renders),
            known(mean_us.map(|us| us / 1_000.0)),
            rate(|sample| sample.failures),
            rate(|sample| sample.cpu_us) / 10_000.0,
            self.memory_bytes as f64 / f64::from(1 << 20),
            self.pages,
            self.connections,
        ))
    }
}

/// The error for a host that no site has.
fn no_site(site: &str, all: &Value) -> String {
    let sites = all["sites"].as_object();
    let hosts: Vec<_> = sites.into_iter().flat_map(|sites| sites.keys()).cloned().collect();
    let remedy = match hosts.as_slice() {
        [] => "this Pagewell has one site: leave out --site".to_owned(),
        hosts => format!("there are {}", hosts.join(", ")),
    };
    format!("no site has the host {site:?}; {remedy}")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(at_ms: u64, requests: u64, hits: u64) -> Value {
        json!({
            "at_ms": at_ms,
            "figures": {
                "requests": requests, "hits": hits, "process_cpu_us": at_ms * 100,
                "memory_bytes": 3 << 20, "pages": 7, "connections": 2,
                "sites": { "a.test": { "requests": requests, "hits": 0 } },
            },
            "origin_times": {
                "counts": [hits, 0, 0], "sum_us": hits * 5_000,
                "sites": { "a.test": { "counts": [0, requests, 0], "sum_us": requests * 15_000 } },
            },
        })
    }

    fn columns(before: &Value, now: &Value, site: Option<&str>) -> Option<Vec<String>> {
        let [before, now] = [before, now].map(|event| Sample::of(event, site).expect("a sample"));
        let line = now.line_since(&before)?;
        assert_eq!(line.len(), HEADER.len(), "{line}");
        Some(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_line_has_rates_and_levels() {
        let (before, now) = (event(1_000, 10, 0), event(3_000, 30, 15));
        let line = columns(&before, &now, None).expect("a line");
        assert_eq!(line, ["10.0", "75.0", "0.0", "5.0", "0.0", "10.0", "3.0", "7", "2"]);
        let line = columns(&before, &now, Some("a.test")).expect("a line");
        assert_eq!(line[..4], ["10.0", "0.0", "0.0", "15.0"]);
        assert_eq!(line[5], "10.0", "the CPU time is that of the process");
    }

    #[test]
    fn a_value_that_is_not_known_is_a_dash() {
        let line = columns(&event(1_000, 10, 5), &event(2_000, 10, 5), None).expect("a line");
        assert_eq!(line[..4], ["0.0", "-", "0.0", "-"]);
    }

    #[test]
    fn another_process_begins_with_its_second_event() {
        assert_eq!(columns(&event(9_000, 10, 5), &event(1_000, 1, 0), None), None);
    }

    #[test]
    fn an_unknown_site_is_an_error_that_names_the_known_ones() {
        let error = Sample::of(&event(1, 1, 1), Some("b.test")).err().expect("an error");
        assert_eq!(error, "no site has the host \"b.test\"; there are a.test");
    }
}
