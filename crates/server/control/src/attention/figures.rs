//! Problems that show in the figures of the last minute: the origin, memory, and pages that are not stored.
//!
//! Before the first minute, the figures since the start count.

use super::Problem;
use super::main_reason::{MainReason, SEE_LIST, causes_of_all, url_of_error};
use crate::history::{FigureSample, HistorySpan, MetricsHistory};
use crate::metrics_table::recorded_place;
use delivery::site::Site;
use std::sync::Arc;

const MINUTE_MS: u64 = 60_000;
/// From this share of the requests to the origin on, failures are a problem: one in this number.
const FAILURES_SHARE: u64 = 10;
/// From this average on, in microseconds, the origin is slow.
const SLOW_US: u64 = 2_000_000;
/// How many responses are needed for an average, or for a share of pages that are not stored.
pub(super) const RESPONSES_MIN: u64 = 20;
/// Fewer server errors are those of a few URLs, which one client can request.
const ERRORS_MIN: u64 = 3;
/// From this share of the responses on, in per cent, pages that are not stored are a problem.
const NOT_STORED_PERCENT: u64 = 90;

/// The difference of the figures between two samples.
struct LastMinute {
    before: FigureSample,
    now: FigureSample,
}

impl LastMinute {
    fn of(samples: &[FigureSample]) -> Option<LastMinute> {
        let now = *samples.last()?;
        let earlier = samples.iter().rev().find(|one| one.at_ms + MINUTE_MS <= now.at_ms);
        // The process began with zeros.
        let before = earlier.copied().unwrap_or_else(|| FigureSample::new(0));
        Some(LastMinute { before, now })
    }

    fn value(&self, name: &str) -> u64 {
        recorded_place(name).map_or(0, |at| self.now.values()[at])
    }

    fn rise(&self, name: &str) -> u64 {
        let Some(at) = recorded_place(name) else { return 0 };
        self.now.values()[at].saturating_sub(self.before.values()[at])
    }

    /// The responses of the origin, and the sum of their times in microseconds.
    fn responses(&self) -> (u64, u64) {
        let sum = |sample: &FigureSample| sample.origin_counts.iter().sum::<u64>();
        let count = sum(&self.now).saturating_sub(sum(&self.before));
        (count, self.now.origin_sum_us.saturating_sub(self.before.origin_sum_us))
    }
}

pub(super) fn problems(default_site: &Arc<Site>, history: &MetricsHistory) -> Vec<Problem> {
    let mut samples = history.samples(default_site, None, HistorySpan::Hour);
    samples.push(MetricsHistory::now(default_site));
    let Some(minute) = LastMinute::of(&samples) else { return Vec::new() };
    let found = [
        failing(&minute),
        errors(&minute).map(|errors| erring(errors, default_site)),
        slow(&minute),
        full(&minute),
        short(&minute),
        unstored(&minute).map(|unstored| not_stored(unstored, default_site)),
    ];
    found.into_iter().flatten().collect()
}

fn problem(name: &'static str, what: String, remedy: String) -> Problem {
    Problem { name, subject: String::new(), what, remedy }
}

fn failing(minute: &LastMinute) -> Option<Problem> {
    let failures = minute.rise("origin_failures");
    // The times of failed requests are measured, too.
    let requests = minute.responses().0.max(failures);
    (failures > 0 && failures * FAILURES_SHARE >= requests).then(|| {
        problem(
            "origin-failing",
            format!("The origin failed to answer {failures} of {requests} requests in the last minute."),
            "Look into its log and that of Pagewell (journalctl -u pagewell); pagewell check tests the connection to \
             the origin."
                .into(),
        )
    })
}

/// The server errors among the responses of the origin, and the number of all, if that is a problem.
fn errors(minute: &LastMinute) -> Option<(u64, u64)> {
    let errors = minute.rise("origin_errors");
    // A response is counted after its time.
    let responses = minute.responses().0.max(errors);
    let is_share = responses >= RESPONSES_MIN && errors * FAILURES_SHARE >= responses;
    let is_most = errors >= ERRORS_MIN && errors * 2 >= responses;
    (is_share || is_most).then_some((errors, responses))
}

fn erring((errors, responses): (u64, u64), default_site: &Arc<Site>) -> Problem {
    let worst = default_site.all_sites().max_by_key(|site| site.counters.origin_errors.get());
    let status = worst.map_or(0, |site| site.counters.origin_error_status.get());
    let causes = causes_of_all(default_site);
    let example = url_of_error(&causes).map(|url| format!(", for example {url}"));
    problem(
        "origin-errors",
        format!(
            "The site answers {status} to {errors} of {responses} requests to the origin{}.",
            example.unwrap_or_default()
        ),
        "Look into PHP's log or the database; origin-error in the log names a URL.".into(),
    )
}

fn slow(minute: &LastMinute) -> Option<Problem> {
    let (responses, sum_us) = minute.responses();
    let average_us = sum_us.checked_div(responses)?;
    (responses >= RESPONSES_MIN && average_us >= SLOW_US).then(|| {
        problem(
            "origin-slow",
            format!(
                "The origin needed {:.1} s on average for {responses} responses in the last minute; {} requests wait \
                 for a place there.",
                average_us as f64 / 1e6,
                minute.value("origin_queue")
            ),
            "pagewell misses lists the slowest pages; pagewell doctor looks for the causes on this machine.".into(),
        )
    })
}

fn full(minute: &LastMinute) -> Option<Problem> {
    let evicted = minute.rise("evicted");
    (evicted > 0).then(|| {
        problem(
            "memory-full",
            format!(
                "{evicted} pages were evicted in the last minute, because the pages use {} of {} MiB.",
                minute.value("memory_bytes") >> 20,
                minute.value("memory_budget_bytes") >> 20
            ),
            "Raise memory; pagewell misses shows cookies and parameters that create variants of pages.".into(),
        )
    })
}

fn short(minute: &LastMinute) -> Option<Problem> {
    let short = minute.rise("memory_short");
    (short > 0).then(|| {
        problem(
            "memory-short",
            format!(
                "{short} responses of the last minute were not stored, because those being collected at the same time \
                 used half of limits.client_backlog_bytes."
            ),
            "Raise memory, or limits.client_backlog_bytes.".into(),
        )
    })
}

/// The responses that were not stored, and the number of all, if that is a problem. Server errors are another one.
fn unstored(minute: &LastMinute) -> Option<(u64, u64)> {
    let stored = minute.rise("stored");
    let refused = minute.rise("not_stored").saturating_sub(minute.rise("origin_errors"));
    let is_most = refused * 100 >= (stored + refused) * NOT_STORED_PERCENT;
    (refused >= RESPONSES_MIN && is_most).then_some((refused, stored + refused))
}

fn not_stored((refused, responses): (u64, u64), default_site: &Arc<Site>) -> Problem {
    let main = MainReason::of(&causes_of_all(default_site), |_| true);
    let advice = main.as_ref().map_or(SEE_LIST, |main| main.remedy);
    let reason = main.map(|main| format!(", most often because of `{}`", main.name));
    problem(
        "pages-not-stored",
        format!(
            "{refused} of {responses} responses of the last minute were not stored{}.",
            reason.unwrap_or_default()
        ),
        format!("{advice} pagewell explain URL explains a page."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, values: &[(&str, u64)], responses: u64, sum_us: u64) -> FigureSample {
        let mut sample = FigureSample::new(at_ms);
        sample.put(values.iter().map(|(name, value)| {
            let at = recorded_place(name).expect("it is recorded");
            (crate::metrics_table::RECORDED[at], *value)
        }));
        sample.origin_counts[0] = responses;
        sample.origin_sum_us = sum_us;
        sample
    }

    #[test]
    fn only_the_last_minute_counts() {
        let old = sample(10_000, &[("origin_failures", 50), ("evicted", 9)], 50, 0);
        let now = sample(80_000, &[("origin_failures", 50), ("evicted", 9)], 60, 0);
        let minute = LastMinute::of(&[old, now]).unwrap();
        assert!(failing(&minute).is_none() && full(&minute).is_none());
        let minute = LastMinute::of(&[now]).unwrap();
        assert_eq!(failing(&minute).unwrap().name, "origin-failing", "since the start");
        let some = sample(80_000, &[("origin_failures", 51), ("evicted", 12)], 60, 0);
        let minute = LastMinute::of(&[old, some]).unwrap();
        assert!(failing(&minute).unwrap().what.contains("1 of 10 requests"));
        assert!(full(&minute).unwrap().what.contains("3 pages were evicted"));
        let few = sample(80_000, &[("origin_failures", 51)], 160, 0);
        assert!(failing(&LastMinute::of(&[old, few]).unwrap()).is_none(), "one in a hundred");
    }

    #[test]
    fn server_errors_are_no_pages_that_are_not_stored() {
        let of = |unstored_pages, server_errors, responses| {
            let values = [("not_stored", unstored_pages), ("origin_errors", server_errors)];
            let minute = LastMinute::of(&[sample(5_000, &values, responses, 0)]).unwrap();
            (errors(&minute), unstored(&minute))
        };
        assert_eq!(of(47, 47, 47), (Some((47, 47)), None));
        assert_eq!(of(47, 5, 50), (Some((5, 50)), Some((42, 42))));
        assert_eq!(of(47, 4, 50), (None, Some((43, 43))), "fewer than a tenth");
        assert_eq!(of(0, 0, 50), (None, None));
    }

    #[test]
    fn the_average_time_of_the_origin_counts() {
        let slow_if = |responses, sum_us| {
            slow(&LastMinute::of(&[sample(5_000, &[], responses, sum_us)]).unwrap())
        };
        assert!(slow_if(20, 44_000_000).unwrap().what.contains("2.2 s on average"));
        assert!(slow_if(19, 44_000_000).is_none() && slow_if(20, 39_000_000).is_none());
        assert!(slow_if(0, 0).is_none());
    }
}
