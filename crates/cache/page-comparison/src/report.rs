//! The report of a trial: figures, problems by class, one sentence, and an exit status.
//!
//! *Safe* needs 300 distinct versions of pages (a bound of 1 %), no wrong page that is not accepted, and no difference
//! without an explanation. The exit status is 0 for safe, 1 for not safe, 2 for not enough yet.

use crate::bounds::{ConfidenceBound, error_bound};
use crate::cause::{BYPASS_IN_A_RULE, DifferenceCause, IN_A_RULE, cookie_line};
use crate::class::{DifferenceClass, SHARED_WITH_PAGEWELL, UnjudgedReason};
use crate::inquiry::SAMPLES_BEFORE_VERDICT;
use crate::problem_groups::{groups, number_groups, some_of, write_groups};
use crate::record::{AcceptedDifference, FoundProblem, TrialRecord};
use crate::url_parameters::{
    IdleParameter, UnjudgedParameter, idle_parameters, unjudged_parameters, write_parameters,
};
use crate::visitors::ComparedVisitors;
use crate::words::DifferingText;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// Versions of pages that a verdict needs: with fewer, the bound is above 1 %.
const ENOUGH_VERSIONS: u64 = 300;
/// Kinds of paths with fewer versions are named beside the verdict: the bound is of all together.
const FEW_VERSIONS: u64 = 10;

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
    /// The answers that a stored page would have given; those without a comparison are not counted.
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
    /// How often a comparison finds such a page wrong by chance, at most, in percent, if text of its pattern is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance_percent: Option<f64>,
    /// The remedy for the operator, in a sentence.
    pub remedy: String,
    /// The number of its group, from 1: the problems with the same class, cause and kind of place.
    pub group: usize,
    /// Whether it is a notice: the site is safe with it.
    #[serde(default)]
    pub is_notice: bool,
    /// Whether the operator has accepted it.
    pub is_accepted: bool,
    /// The time that the page would save if it were stored, for the class `refused-but-same`.
    #[serde(default)]
    pub could_save: Option<PossibleSaving>,
    /// The visitors who got the same, for the class `refused-but-same`.
    #[serde(default)]
    pub visitors: Option<ComparedVisitors>,
    /// The words that differ, if somebody has asked for them. No record has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<DifferingText>,
    /// The cookies that the remedy adds to the key: those of all problems of this class and pattern.
    #[serde(skip)]
    pub(crate) cookies: Vec<String>,
}

impl ReportLine {
    /// Names the rule in the remedy that already counts for the paths: one after it would not be reached.
    /// `has_cookies`: whether it has `vary_cookies`, which no rule has twice.
    pub fn name_rule(&mut self, rule: &str, has_cookies: bool) {
        let counts = format!("rule {rule}, which already counts for this path");
        let remedy = &self.remedy;
        self.remedy = if remedy.contains(BYPASS_IN_A_RULE) {
            remedy.replace(BYPASS_IN_A_RULE, &format!("{BYPASS_IN_A_RULE}, before rule {rule}"))
        } else if has_cookies && !self.cookies.is_empty() {
            let added =
                format!("add `{}` to `vary_cookies` of {counts}", self.cookies.join("`, `"));
            remedy.replace(&format!("{} {IN_A_RULE}", cookie_line(&self.cookies)), &added)
        } else {
            remedy.replace(IN_A_RULE, &format!("in {counts}"))
        };
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
    /// Requests that a shared page may answer: none with a session, of a bypassed path, or that writes.
    pub requests: u64,
    /// Those that would have been hits, at least: a trial makes a page at its second request, if its budget allows it.
    pub hits: u64,
    /// Their share, in percent.
    pub hit_percent: f64,
    /// The time that PHP would not have worked for these, in seconds.
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
    /// The problems that are neither accepted nor notices; those of one group count once.
    #[serde(default)]
    pub unsafe_problems: u64,
    /// Patterns with a difference that was not explained.
    pub suspects: Vec<String>,
    /// Why they were not explained, as far as it is known.
    #[serde(default)]
    pub suspect_reasons: BTreeMap<String, UnjudgedReason>,
    /// Why a render of a pattern failed, for the reason `render-failed`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub suspect_renders: BTreeMap<String, String>,
    /// The part of the time of the origin's connections that comparisons may use, in percent, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_percent: Option<u32>,
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
        let found = record.problems();
        let draws = found.iter().filter(|problem| problem.class == DifferenceClass::Random);
        let drawn: HashSet<&str> = draws.map(|problem| problem.pattern.as_str()).collect();
        let mut problems: Vec<ReportLine> = found
            .iter()
            .filter(|problem| is_shown(problem, record.has_cookies))
            .map(|problem| line_of(problem, accepted, drawn.contains(problem.pattern.as_str())))
            .collect();
        join_cookies(&mut problems);
        number_groups(&mut problems);
        let unsafe_groups = groups(&problems).iter().filter(|group| group.is_unsafe()).count();
        let wrong = unsafe_groups as u64 + record.problems_left_out;
        let suspects = unexplained(record, &problems, accepted);
        let reason = |pattern: &String| Some((pattern.clone(), record.suspect_reason(pattern)?));
        let suspect_reasons = suspects.iter().filter_map(reason).collect();
        let render =
            |pattern: &String| Some((pattern.clone(), record.failed_render(pattern)?.clone()));
        let suspect_renders = suspects.iter().filter_map(render).collect();
        let bound = record.bound();
        let outcome = match (wrong, bound.compared >= ENOUGH_VERSIONS && suspects.is_empty()) {
            (0, true) => TrialOutcome::Safe,
            (0, false) => TrialOutcome::NotEnough,
            _ => TrialOutcome::NotSafe,
        };
        TrialReport {
            outcome,
            sentence: sentence(outcome, wrong, suspects.len(), record, bound),
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
            unsafe_problems: wrong,
            suspects,
            suspect_reasons,
            suspect_renders,
            budget_percent: None,
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
            let _ = writeln!(text, "{name:<30}{value}");
        };
        row("requests for shared pages", shown_count(self.requests));
        row("would-be hit ratio, at least", format!("{:.1} %", self.hit_percent));
        row("PHP time saved, at least", shown_time(self.saved_seconds));
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
        write_groups(&mut text, &self.problems);
        self.write_suspects(&mut text);
        write_parameters(&mut text, &self.idle_parameters, &self.unjudged_parameters);
        let _ = writeln!(text, "\n{}", self.sentence);
        text
    }

    fn write_suspects(&self, text: &mut String) {
        let mut by_reason: BTreeMap<Option<UnjudgedReason>, Vec<&str>> = BTreeMap::new();
        for pattern in &self.suspects {
            let reason = self.suspect_reasons.get(pattern).copied();
            by_reason.entry(reason).or_default().push(pattern);
        }
        if !by_reason.is_empty() {
            let _ = writeln!(text, "\nDifferences without an explanation");
        }
        for (reason, patterns) in by_reason {
            let (name, meaning) = match reason {
                Some(reason) => (reason.name(), reason.meaning()),
                None => ("unknown", "the reason was not recorded"),
            };
            let budget = self.budget_percent.filter(|_| reason == Some(UnjudgedReason::NoBudget));
            let more = budget.map(more_budget).unwrap_or_default();
            let first = patterns.first().copied();
            let each = if patterns.len() > 1 { " (a line for each path)" } else { "" };
            let with_render = |pattern: &str| match self.suspect_renders.get(pattern) {
                Some(why) => format!("{pattern} ({why})"),
                None => pattern.to_owned(),
            };
            let patterns: Vec<String> = patterns.into_iter().map(with_render).collect();
            let patterns = some_of(patterns.iter().map(String::as_str));
            let _ = writeln!(text, "  {name}: {patterns}\n    reason:     {meaning}{more}");
            if let (true, Some(pattern)) = (reason.is_none_or(UnjudgedReason::stays), first) {
                let line = DifferenceClass::Leak.accept_line(pattern);
                let _ =
                    writeln!(text, "    accept it:  {line}, if all may get the same page{each}");
            }
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Whether a problem is in the report: an advice to store more needs enough visitors.
fn is_shown(problem: &FoundProblem, has_cookies: bool) -> bool {
    problem.class != DifferenceClass::RefusedButSame || problem.visitors.are_enough(has_cookies)
}

fn line_of(problem: &FoundProblem, accepted: &[AcceptedDifference], is_drawn: bool) -> ReportLine {
    let is_advice = problem.class == DifferenceClass::RefusedButSame;
    // Samples alone decide these classes.
    let may_be_chance =
        is_drawn && matches!(problem.class, DifferenceClass::BrokenPromise | DifferenceClass::Aged);
    let saving =
        PossibleSaving { answers: problem.answers, seconds: in_seconds(problem.php_micros) };
    ReportLine {
        url: problem.example.clone(),
        class: problem.class,
        pattern: problem.pattern.clone(),
        count: problem.count,
        places: problem.places.clone(),
        cause: DifferenceCause::shown(problem.cause.as_ref(), problem.class, problem.late_by),
        chance_percent: may_be_chance.then(chance_percent),
        remedy: problem.class.remedy(problem.cause.as_ref(), &problem.pattern),
        group: 0,
        is_notice: !problem.class.is_wrong(),
        is_accepted: accepted.iter().any(|row| row.has(problem.class, &problem.pattern)),
        could_save: is_advice.then_some(saving),
        visitors: is_advice.then_some(problem.visitors),
        text: None,
        cookies: problem
            .cause
            .iter()
            .filter_map(DifferenceCause::cookie)
            .map(str::to_owned)
            .collect(),
    }
}

/// Names all cookies in the remedies of the same paths, because the first rule that fits has to name all of them.
fn join_cookies(lines: &mut [ReportLine]) {
    let mut known: BTreeMap<(DifferenceClass, String), Vec<String>> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.is_accepted) {
        known
            .entry((line.class, line.pattern.clone()))
            .or_default()
            .extend(line.cookies.iter().cloned());
    }
    for line in lines.iter_mut().filter(|line| !line.is_accepted && !line.cookies.is_empty()) {
        let Some(all) = known.get(&(line.class, line.pattern.clone())) else { continue };
        line.remedy = line.remedy.replace(&cookie_line(&line.cookies), &cookie_line(all));
        line.cookies.clone_from(all);
    }
}

/// The patterns with a difference that was not explained. Where wrong pages were found and are not accepted, the problem
/// is in the report already; and an operator who accepts a leak accepts any difference.
fn unexplained(
    record: &TrialRecord,
    problems: &[ReportLine],
    accepted: &[AcceptedDifference],
) -> Vec<String> {
    let is_reported = |line: &&ReportLine| line.class.is_wrong() && !line.is_accepted;
    let reported: HashSet<&str> =
        problems.iter().filter(is_reported).map(|line| line.pattern.as_str()).collect();
    let is_accepted =
        |pattern: &str| accepted.iter().any(|row| row.has(DifferenceClass::Leak, pattern));
    let is_open = |pattern: &&String| !reported.contains(pattern.as_str()) && !is_accepted(pattern);
    record.suspects().keys().filter(is_open).cloned().collect()
}

/// The bound of a verdict by samples about a page that draws text, in percent, rounded up.
fn chance_percent() -> f64 {
    (error_bound(SAMPLES_BEFORE_VERDICT as u32) * 1_000.0).ceil() / 10.0
}

/// The budget of a trial, and a larger one.
fn more_budget(percent: u32) -> String {
    match percent {
        ..50 => format!(" ({percent} % now), on a small site to `trial.budget = \"50%\"`"),
        _ => format!(" ({percent} % now)"),
    }
}

/// A number with commas: `12,410`.
pub(crate) fn shown_count(count: u64) -> String {
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
pub(crate) fn shown_time(time: f64) -> String {
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
    record: &TrialRecord,
    bound: ConfidenceBound,
) -> String {
    let patterns = record.versions.len();
    let problems = if wrong == 1 { "problem" } else { "problems" };
    match outcome {
        TrialOutcome::Safe => format!(
            "Safe to turn on: {} versions of pages of {patterns} {} of paths were compared, and at least {} are \
             right (95 % confidence).{}{}",
            shown_count(bound.compared),
            if patterns == 1 { "kind" } else { "kinds" },
            bound.right_percent(),
            rarely_compared(record),
            never_compared(record),
        ),
        TrialOutcome::NotSafe => format!("Not safe: {wrong} {problems}."),
        TrialOutcome::NotEnough if suspects > 0 => {
            let differences = if suspects == 1 { "difference is" } else { "differences are" };
            format!("Not enough yet: {suspects} {differences} not explained.")
        }
        TrialOutcome::NotEnough if bound.compared == 0 => {
            format!("Not enough yet: 0 of {ENOUGH_VERSIONS} versions of pages were compared.")
        }
        TrialOutcome::NotEnough => {
            // The same version compared again would not raise the bound.
            let right = if bound.wrong == 0 { "right" } else { "right or accepted" };
            let plural = if bound.compared == 1 { "" } else { "s" };
            format!(
                "Not enough yet: all {} compared answers were {right}, of {} version{plural} of pages; \
                 {ENOUGH_VERSIONS} versions are needed for a bound. More time, in which pages change, or more pages \
                 add some. A site without them is done when all its kinds of pages were compared for some days.",
                shown_count(record.compared),
                bound.compared,
            )
        }
    }
}

/// The number of kinds of paths with few versions as a sentence; nothing if there are none.
fn rarely_compared(record: &TrialRecord) -> String {
    match record.versions.values().filter(|versions| **versions < FEW_VERSIONS).count() {
        0 => String::new(),
        1 => format!(" Of 1 kind, fewer than {FEW_VERSIONS} versions were compared."),
        count => {
            format!(" Of {count} kinds, fewer than {FEW_VERSIONS} versions each were compared.")
        }
    }
}

/// The number of answers that no render may be compared with as a sentence; nothing if there are none.
fn never_compared(record: &TrialRecord) -> String {
    match record.unjudged.get(&UnjudgedReason::NotRequested) {
        None => String::new(),
        Some(1) => " 1 answer was not compared, because Pagewell does not request its URL.".into(),
        Some(count) => {
            let count = shown_count(*count);
            format!(
                " {count} answers were not compared, because Pagewell does not request their URLs."
            )
        }
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
