//! The report of a trial: figures, problems by class, one sentence, and an exit status.
//!
//! *Safe* needs 300 distinct versions of pages (a bound of 1 %), no wrong page that is not accepted, and no difference
//! without an explanation. The exit status is 0 for safe, 1 for not safe, 2 for not enough yet.

use crate::bounds::ConfidenceBound;
use crate::cause::DifferenceCause;
use crate::class::{DifferenceClass, UnjudgedReason};
use crate::record::{AcceptedDifference, TrialRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Versions of pages that a verdict needs: with fewer, the bound is above 1 %.
const ENOUGH_VERSIONS: u64 = 300;

/// The verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// Pagewell can be turned on.
    Safe,
    /// Pages would have been wrong.
    NotSafe,
    /// Too little was compared.
    NotEnough,
}

impl TrialOutcome {
    /// The exit status of the command.
    pub fn exit_status(self) -> u8 {
        match self {
            TrialOutcome::Safe => 0,
            TrialOutcome::NotSafe => 1,
            TrialOutcome::NotEnough => 2,
        }
    }
}

/// A problem as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportLine {
    /// The URL of an example, without values.
    pub url: String,
    /// The class of the differences.
    pub class: DifferenceClass,
    /// The pattern of the paths.
    pub pattern: String,
    /// How often it was found.
    pub count: u64,
    /// The places that differ, as paths of elements.
    pub places: Vec<String>,
    /// The cause as text, if one was found.
    pub cause: Option<String>,
    /// The remedy for the operator, in a sentence.
    pub remedy: String,
    /// Whether the operator has accepted it.
    pub is_accepted: bool,
}

/// The report of a trial, for the terminal and as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialReport {
    /// The verdict, which decides the exit status.
    pub outcome: TrialOutcome,
    /// The verdict as one sentence.
    pub sentence: String,
    /// When the record began, in seconds since 1970.
    pub since: u64,
    /// Requests that could have been hits.
    pub requests: u64,
    /// The share of these that would have been, in percent.
    pub hit_percent: f64,
    /// The time that PHP would not have worked, in seconds.
    pub saved_seconds: u64,
    /// Comparisons with a verdict.
    pub compared: u64,
    /// The number of comparisons without a verdict.
    pub without_verdict: u64,
    /// The same by reason.
    pub unjudged: BTreeMap<UnjudgedReason, u64>,
    /// Distinct versions of pages compared.
    pub versions: u64,
    /// The time that PHP worked for comparisons, in seconds.
    pub render_seconds: u64,
    /// The problems, the most severe first.
    pub problems: Vec<ReportLine>,
    /// Patterns with a difference that was not explained.
    pub suspects: Vec<String>,
}

impl TrialReport {
    /// Makes the report of a record.
    pub fn of(record: &TrialRecord, accepted: &[AcceptedDifference]) -> TrialReport {
        let problems: Vec<ReportLine> = record
            .problems()
            .into_iter()
            .map(|problem| ReportLine {
                url: problem.example.clone(),
                class: problem.class,
                pattern: problem.pattern.clone(),
                count: problem.count,
                places: problem.places.clone(),
                cause: DifferenceCause::shown(
                    problem.cause.as_ref(),
                    problem.class,
                    problem.late_by,
                ),
                remedy: problem.class.remedy(problem.cause.as_ref()),
                is_accepted: accepted.iter().any(|row| row.has(problem.class, &problem.pattern)),
            })
            .collect();
        let counts = |line: &&ReportLine| line.class.is_wrong() && !line.is_accepted;
        let wrong = problems.iter().filter(counts).count() as u64 + record.problems_left_out;
        let suspects: Vec<String> = record.suspects().keys().cloned().collect();
        let bound = record.bound();
        let outcome = match (wrong, bound.compared >= ENOUGH_VERSIONS && suspects.is_empty()) {
            (0, true) => TrialOutcome::Safe,
            (0, false) => TrialOutcome::NotEnough,
            _ => TrialOutcome::NotSafe,
        };
        TrialReport {
            outcome,
            sentence: sentence(outcome, wrong, suspects.len(), record.versions.len(), bound),
            since: record.since,
            requests: record.requests,
            hit_percent: record.would_hit as f64 * 100.0 / record.requests.max(1) as f64,
            saved_seconds: record.saved_micros / 1_000_000,
            compared: record.compared,
            without_verdict: record.unjudged.values().sum(),
            unjudged: record.unjudged.clone(),
            versions: bound.compared,
            render_seconds: record.render_micros / 1_000_000,
            problems,
            suspects,
        }
    }

    /// The report as text, for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22}{value}");
        };
        row("requests", shown_count(self.requests));
        row("would-be hit ratio", format!("{:.1} %", self.hit_percent));
        row("PHP time saved", shown_seconds(self.saved_seconds));
        let (compared, versions) = (shown_count(self.compared), shown_count(self.versions));
        row("compared", format!("{compared} ({versions} versions of pages)"));
        let reasons = self
            .unjudged
            .iter()
            .map(|(why, count)| format!("{} {}", why.name(), shown_count(*count)));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        row(
            "without a verdict",
            if reasons.is_empty() {
                "0".into()
            } else {
                format!("{} ({reasons})", self.without_verdict)
            },
        );
        row("PHP time used", shown_seconds(self.render_seconds));
        let mut class = None;
        for line in &self.problems {
            if class != Some(line.class) {
                let _ = writeln!(text, "\n{}: {}", line.class.name(), line.class.meaning());
                class = Some(line.class);
            }
            let accepted = if line.is_accepted { ", accepted" } else { "" };
            let _ = writeln!(
                text,
                "  {} ({}{accepted}), for example {}",
                line.pattern, line.count, line.url
            );
            let _ = writeln!(text, "    differs at: {}", line.places.join("; "));
            // The heading is the cause of some classes.
            if let Some(cause) = line.cause.as_ref().filter(|cause| **cause != line.class.meaning())
            {
                let _ = writeln!(text, "    cause:      {cause}");
            }
            let _ = writeln!(text, "    remedy:     {}", line.remedy);
        }
        if !self.suspects.is_empty() {
            let _ = writeln!(
                text,
                "\nDifferences without an explanation: {}",
                self.suspects.join(", ")
            );
        }
        let _ = writeln!(text, "\n{}", self.sentence);
        text
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// A number with commas: `12,410`.
fn shown_count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A time in two units at most: `2 h 32 min`.
fn shown_seconds(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

fn sentence(
    outcome: TrialOutcome,
    wrong: u64,
    suspects: usize,
    patterns: usize,
    bound: ConfidenceBound,
) -> String {
    let problems = if wrong == 1 { "problem" } else { "problems" };
    match outcome {
        TrialOutcome::Safe => format!(
            "Safe to turn on: {} versions of pages of {patterns} kinds of paths were compared, and at least {} are \
             right (95 % confidence).",
            shown_count(bound.compared),
            bound.right_percent(),
        ),
        TrialOutcome::NotSafe => format!("Not safe: {wrong} {problems}."),
        TrialOutcome::NotEnough if suspects > 0 => {
            format!("Not enough yet: {suspects} differences are not explained.")
        }
        TrialOutcome::NotEnough => format!(
            "Not enough yet: {} of {ENOUGH_VERSIONS} versions of pages were compared.",
            bound.compared
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::RequestPart;
    use crate::class::UnjudgedReason;
    use crate::record::FoundProblem;

    fn problem(class: DifferenceClass, pattern: &str) -> FoundProblem {
        FoundProblem {
            class,
            pattern: pattern.into(),
            example: pattern.into(),
            places: vec!["body > p, word 2".into()],
            cause: (class == DifferenceClass::Leak)
                .then(|| DifferenceCause::One(RequestPart::Cookie("currency".into()))),
            count: 1,
            late_by: 0,
            last: 0,
        }
    }

    fn enough() -> TrialRecord {
        let mut record = TrialRecord::new(0, 7);
        for _ in 0..ENOUGH_VERSIONS {
            record.request(Some(1_000));
            record.compared("/", true);
        }
        record
    }

    #[test]
    fn a_report_ends_with_a_sentence_and_a_status() {
        let nothing = TrialReport::of(&TrialRecord::new(0, 7), &[]);
        assert_eq!(nothing.outcome.exit_status(), 2);
        assert_eq!(nothing.sentence, "Not enough yet: 0 of 300 versions of pages were compared.");
        let mut record = enough();
        let safe = TrialReport::of(&record, &[]);
        assert_eq!(safe.outcome.exit_status(), 0);
        assert!(safe.sentence.contains("at least 99 % are right"), "{}", safe.sentence);
        record.found(problem(DifferenceClass::Leak, "/shop/:n"));
        record.found(problem(DifferenceClass::Leak, "/shop/:n"));
        record.found(problem(DifferenceClass::Noise, "/"));
        let unsafe_now = TrialReport::of(&record, &[]);
        assert_eq!((unsafe_now.outcome.exit_status(), unsafe_now.problems.len()), (1, 2));
        assert_eq!(unsafe_now.sentence, "Not safe: 1 problem.");
        let text = unsafe_now.text();
        assert!(
            text.contains("differs by cookie `currency`") && text.contains("vary_cookies"),
            "{text}"
        );
        let accepted =
            AcceptedDifference { class: DifferenceClass::Leak, pattern: "/shop/*".into() };
        assert_eq!(TrialReport::of(&record, &[accepted]).outcome, TrialOutcome::Safe);
    }

    #[test]
    fn numbers_are_easy_to_read() {
        let counts = [0, 999, 1_000, 12_410, 1_234_567].map(shown_count);
        assert_eq!(counts, ["0", "999", "1,000", "12,410", "1,234,567"]);
        let times = [59, 61, 9_120, 90_000].map(shown_seconds);
        assert_eq!(times, ["59 s", "1 min 1 s", "2 h 32 min", "1 d 1 h"]);
    }

    #[test]
    fn an_unexplained_difference_is_never_safe() {
        let mut record = enough();
        record.unjudged("/a", UnjudgedReason::ChangedMeanwhile, false);
        record.unjudged("/a", UnjudgedReason::CauseUnknown, false);
        assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe);
        record.unjudged("/a", UnjudgedReason::CauseUnknown, true);
        assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::NotEnough);
        record.explained("/a");
        assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe);
    }

    #[test]
    fn a_record_survives_a_restart_and_not_a_change_of_rules() {
        let mut record = enough();
        record.found(problem(DifferenceClass::Leak, "/shop/:n"));
        record.unjudged("/a", UnjudgedReason::NoBudget, true);
        let written = record.written();
        assert_eq!(TrialRecord::read(written.as_bytes(), 7), Some(record));
        assert_eq!(TrialRecord::read(written.as_bytes(), 8), None);
        assert_eq!(TrialRecord::read(b"{", 7), None);
    }

    #[test]
    fn the_number_of_problems_is_bounded_and_what_is_left_out_is_no_success() {
        let mut record = enough();
        for n in 0..1_010 {
            record.found(problem(DifferenceClass::Noise, &format!("/{n}")));
        }
        assert_eq!(record.problems().len(), 1_000);
        assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::Safe, "only notices");
        assert!(TrialReport::of(&record, &[]).json().contains("\"class\": \"noise\""));
        for n in 0..1_010 {
            record.found(problem(DifferenceClass::Aged, &format!("/{n}")));
        }
        assert_eq!((record.problems().len(), record.problems_left_out), (1_000, 10));
        assert!(record.problems().iter().all(|problem| problem.class == DifferenceClass::Aged));
        assert_eq!(TrialReport::of(&record, &[]).outcome, TrialOutcome::NotSafe);
    }
}
