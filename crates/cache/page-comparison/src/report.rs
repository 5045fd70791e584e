//! The report of a trial: figures, problems by class, one sentence, and an exit status.
//!
//! *Safe* needs 300 distinct versions of pages (a bound of 1 %), no wrong page that is not accepted, and no difference
//! without an explanation. The exit status is 0 for safe, 1 for not safe, 2 for not enough yet.

use crate::bounds::ConfidenceBound;
use crate::cause::DifferenceCause;
use crate::class::{DifferenceClass, SHARED_WITH_PAGEWELL, UnjudgedReason};
use crate::record::{AcceptedDifference, TrialRecord};
use crate::url_parameters::{
    IdleParameter, UnjudgedParameter, idle_parameters, unjudged_parameters, write_parameters,
};
use crate::words::DifferingText;
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

/// The time of PHP that a page would save if it were stored, since this was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PossibleSaving {
    /// The answers that a stored page would have given; some are not counted.
    pub answers: u64,
    /// The time that PHP worked for them, in seconds.
    pub seconds: f64,
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
    /// Whether it is a notice: the site is safe with it.
    #[serde(default)]
    pub is_notice: bool,
    /// Whether the operator has accepted it.
    pub is_accepted: bool,
    /// The time that the page would save if it were stored, for the class `refused-but-same`.
    #[serde(default)]
    pub could_save: Option<PossibleSaving>,
    /// The words that differ, if somebody has asked for them. No record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<DifferingText>,
}

impl ReportLine {
    fn write(&self, text: &mut String) {
        let accepted = if self.is_accepted { ", accepted" } else { "" };
        let found = match self.count {
            1 => "once".to_owned(),
            count => format!("{} times", shown_count(count)),
        };
        let _ = writeln!(
            text,
            "  {} (found {found}{accepted}), for example {}",
            self.pattern, self.url
        );
        if !self.places.is_empty() {
            let _ = writeln!(text, "    differs at: {}", self.places.join("; "));
        }
        let words = self
            .text
            .iter()
            .flat_map(|words| [("stored:  ", &words.stored), ("rendered:", &words.render)]);
        for (name, words) in words.filter_map(|(name, words)| Some((name, words.as_ref()?))) {
            let _ = writeln!(text, "    {name}   {words}");
        }
        if let Some(PossibleSaving { answers, seconds }) = self.could_save {
            let (answers, seconds) = (shown_count(answers), shown_time(seconds));
            let _ = writeln!(text, "    PHP time:   {seconds} for {answers} answers, at least");
        }
        // The heading is the cause of some classes.
        if let Some(cause) = self.cause.as_ref().filter(|cause| **cause != self.class.meaning()) {
            let _ = writeln!(text, "    cause:      {cause}");
        }
        if !self.is_accepted {
            let _ = writeln!(text, "    remedy:     {}", self.remedy);
        }
    }
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
    /// Those that would have been.
    pub hits: u64,
    /// Their share, in percent.
    pub hit_percent: f64,
    /// The time that PHP would not have worked, in seconds.
    pub saved_seconds: f64,
    /// Comparisons with a verdict.
    pub compared: u64,
    /// The number of comparisons without a verdict.
    pub without_verdict: u64,
    /// The same by reason.
    pub unjudged: BTreeMap<UnjudgedReason, u64>,
    /// Distinct versions of pages compared.
    pub versions: u64,
    /// The time that PHP worked for comparisons, in seconds.
    pub render_seconds: f64,
    /// The problems, the most severe first.
    pub problems: Vec<ReportLine>,
    /// Patterns with a difference that was not explained.
    pub suspects: Vec<String>,
    /// Parameters that change no page.
    #[serde(default)]
    pub idle_parameters: Vec<IdleParameter>,
    /// Parameters that may change no page.
    #[serde(default)]
    pub unjudged_parameters: Vec<UnjudgedParameter>,
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
                remedy: problem.class.remedy(problem.cause.as_ref(), &problem.pattern),
                is_notice: !problem.class.is_wrong(),
                is_accepted: accepted.iter().any(|row| row.has(problem.class, &problem.pattern)),
                could_save: (problem.class == DifferenceClass::RefusedButSame).then_some(
                    PossibleSaving {
                        answers: problem.answers,
                        seconds: in_seconds(problem.php_micros),
                    },
                ),
                text: None,
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
            hits: record.would_hit,
            hit_percent: record.would_hit as f64 * 100.0 / record.requests.max(1) as f64,
            saved_seconds: in_seconds(record.saved_micros),
            compared: record.compared,
            without_verdict: record.unjudged.values().sum(),
            unjudged: record.unjudged.clone(),
            versions: bound.compared,
            render_seconds: in_seconds(record.render_micros),
            problems,
            suspects,
            idle_parameters: idle_parameters(record),
            unjudged_parameters: unjudged_parameters(record),
        }
    }

    /// The same report of a site with a cache in front: no remedy lets that cache store a page.
    #[must_use]
    pub fn behind_cache(mut self) -> TrialReport {
        let is_refused = |line: &&mut ReportLine| {
            line.class == DifferenceClass::RefusedButSame && line.cause.is_none()
        };
        for line in self.problems.iter_mut().filter(is_refused) {
            line.remedy = SHARED_WITH_PAGEWELL.into();
        }
        self
    }

    /// The report as text, for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22}{value}");
        };
        row("requests", shown_count(self.requests));
        row("would-be hit ratio", format!("{:.1} %", self.hit_percent));
        row("PHP time saved", shown_time(self.saved_seconds));
        let (compared, versions) = (shown_count(self.compared), shown_count(self.versions));
        let plural = if self.versions == 1 { "" } else { "s" };
        row("compared", format!("{compared} ({versions} version{plural} of pages)"));
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
        row("PHP time used", shown_time(self.render_seconds));
        let (mut is_notice, mut class) = (None, None);
        for line in &self.problems {
            if is_notice != Some(line.is_notice) {
                is_notice = Some(line.is_notice);
                let heading = if line.is_notice { "Notices" } else { "Problems" };
                let _ = writeln!(text, "\n{heading}");
            }
            if class != Some(line.class) {
                let _ = writeln!(text, "\n{}: {}", line.class.name(), line.class.meaning());
                class = Some(line.class);
            }
            line.write(&mut text);
        }
        if !self.suspects.is_empty() {
            let _ = writeln!(
                text,
                "\nDifferences without an explanation: {}",
                self.suspects.join(", ")
            );
        }
        write_parameters(&mut text, &self.idle_parameters, &self.unjudged_parameters);
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

/// A time in seconds, exact to the millisecond.
fn in_seconds(micros: u64) -> f64 {
    (micros / 1_000) as f64 / 1_000.0
}

/// A time in two units at most: `340 ms`, `4.2 s`, `2 h 32 min`.
fn shown_time(time: f64) -> String {
    let seconds = time as u64;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        0 if time > 0.0 => format!("{} ms", (time * 1_000.0).round().clamp(1.0, 999.0)),
        1..10 => format!("{} s", (time * 10.0).floor() / 10.0),
        0 | 10..60 => format!("{seconds} s"),
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
            "Safe to turn on: {} versions of pages of {patterns} {} of paths were compared, and at least {} are \
             right (95 % confidence).",
            shown_count(bound.compared),
            if patterns == 1 { "kind" } else { "kinds" },
            bound.right_percent(),
        ),
        TrialOutcome::NotSafe => format!("Not safe: {wrong} {problems}."),
        TrialOutcome::NotEnough if suspects > 0 => {
            let differences = if suspects == 1 { "difference is" } else { "differences are" };
            format!("Not enough yet: {suspects} {differences} not explained.")
        }
        TrialOutcome::NotEnough => {
            let compared = format!("{} of {ENOUGH_VERSIONS} versions of pages", bound.compared);
            // A small site has the bound of what it has. The same version compared again would not raise it.
            let reached = if bound.upper() < 1.0 {
                format!(
                    ", and at least {} are right (95 % confidence). More time, in which pages change, or more pages \
                     raise this. A site without them is done when all its kinds of pages were compared for some days.",
                    bound.right_percent()
                )
            } else {
                ".".to_owned()
            };
            format!("Not enough yet: {compared} were compared{reached}")
        }
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
            answers: 0,
            php_micros: 0,
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
        assert!(safe.sentence.contains("of 1 kind of paths were"), "{}", safe.sentence);
        assert!(safe.sentence.contains("at least 99 % are right"), "{}", safe.sentence);
        for line in ["would-be hit ratio    100.0 %\n", "PHP time saved        300 ms\n"] {
            assert!(safe.text().contains(line), "{line}: {}", safe.text());
        }
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
        assert!(text.contains("\nProblems\n\nleak: ") && text.contains("\nNotices\n\nnoise: "));
        assert!(text.contains("/shop/:n (found 2 times), ") && text.contains("/ (found once), "));
        record.found(FoundProblem {
            cause: Some(DifferenceCause::One(RequestPart::Parameter("utm_source".into()))),
            ..problem(DifferenceClass::Loses, "/shop/:n")
        });
        let text = TrialReport::of(&record, &[]).text();
        for line in ["trial.accept = [\"loses /shop/:n\"]", "keys.keep = [\"utm_source\"]"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let accepted =
            AcceptedDifference { class: DifferenceClass::Leak, pattern: "/shop/*".into() };
        let report = TrialReport::of(&record, &[accepted]);
        assert_eq!(report.outcome, TrialOutcome::Safe);
        let text = report.text();
        assert!(text.contains(", accepted)") && !text.contains("vary_cookies"), "{text}");
    }

    #[test]
    fn a_small_site_gets_the_bound_that_it_has_reached() {
        let after = |versions: usize| {
            let mut record = TrialRecord::new(0, 7);
            (0..versions).for_each(|_| record.compared("/:n", true));
            // The same versions, compared again and again.
            (0..9_000).for_each(|_| record.compared("/:n", false));
            TrialReport::of(&record, &[])
        };
        let few = after(3).sentence;
        assert_eq!(few, "Not enough yet: 3 of 300 versions of pages were compared.");
        let small = after(40);
        assert_eq!(small.outcome, TrialOutcome::NotEnough);
        let reached = "40 of 300 versions of pages were compared, and at least 92 % are right (95 % confidence). \
                       More time, in which pages change, or more pages raise this. A site without them is done \
                       when all its kinds of pages were compared for some days.";
        assert_eq!(small.sentence, format!("Not enough yet: {reached}"));
    }

    #[test]
    fn a_page_that_is_refused_is_shown_with_its_php_time_and_a_remedy_for_pagewell_alone() {
        let mut record = enough();
        let refused = |cause| FoundProblem {
            cause,
            places: Vec::new(),
            ..problem(DifferenceClass::RefusedButSame, "/a")
        };
        record.refused("/a", 1);
        record.found(refused(None));
        (0..90).for_each(|_| record.refused("/a", 1_400_000));
        record.refused("/b", 1_000_000);
        let report = TrialReport::of(&record, &[]);
        let saving = PossibleSaving { answers: 90, seconds: 126.0 };
        assert_eq!(report.problems[0].could_save, Some(saving));
        let text = report.text();
        assert!(text.contains("PHP time:   2 min 6 s for 90 answers, at least"), "{text}");
        assert!(!text.contains("rendered:") && !report.json().contains("text"), "{text}");
        assert!(!text.contains("differs at"), "{text}");
        assert!(text.contains("also hold for other caches"), "{text}");
        let mut with_words = report.clone();
        let words = DifferingText { stored: Some("old".into()), render: Some("new one".into()) };
        with_words.problems[0].text = Some(words);
        let text = with_words.text();
        assert!(text.contains("\n    stored:     old\n    rendered:   new one\n"), "{text}");
        let text = report.behind_cache().text();
        assert!(text.contains("with Pagewell alone") && text.contains("cache in front"), "{text}");
        let mut record = enough();
        record.found(refused(Some(DifferenceCause::OtherCache("age".into()))));
        let text = TrialReport::of(&record, &[]).behind_cache().text();
        for part in ["as the field `age` says", "let the cache between Pagewell and PHP pass"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(TrialRecord::read(record.written().as_bytes(), 7), Some(record));
    }

    #[test]
    fn numbers_are_easy_to_read() {
        let counts = [0, 999, 1_000, 12_410, 1_234_567].map(shown_count);
        assert_eq!(counts, ["0", "999", "1,000", "12,410", "1,234,567"]);
        let times = [59.9, 61.0, 9_120.0, 90_000.0].map(shown_time);
        assert_eq!(times, ["59 s", "1 min 1 s", "2 h 32 min", "1 d 1 h"]);
        let short = [0, 1_200, 340_999, 999_999, 4_290_000, 7_000_000, 10_900_000];
        let short = short.map(|micros| shown_time(in_seconds(micros)));
        assert_eq!(short, ["0 s", "1 ms", "340 ms", "999 ms", "4.2 s", "7 s", "10 s"]);
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
