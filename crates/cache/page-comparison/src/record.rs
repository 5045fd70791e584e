//! The record of a trial: what was compared, and what was found, by class and pattern of paths.
//!
//! It has no text of a response and no value of a cookie, field or parameter. It is written as JSON and read again
//! after a restart; a record of other rules, or one that cannot be read, is not continued.
//! Memory: at most 1,000 problems and as many patterns, about 1 MB.

use crate::bounds::ConfidenceBound;
use crate::cause::DifferenceCause;
use crate::class::{DifferenceClass, UnjudgedReason};
use crate::visitors::ComparedVisitors;
use rule_conditions::PathGlob;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Problems that are stored. Beyond, wrong pages take the places of notices, and then are counted only.
const MAX_PROBLEMS: usize = 1_000;
/// Patterns whose versions are counted apart; `PathPatterns` has the same bound.
const MAX_PATTERNS: usize = 1_001;
/// Parameters whose effect is known.
const MAX_PARAMETERS: usize = 128;
/// The version of the format.
const FORMAT: u32 = 1;

/// A difference that was found for a pattern of paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundProblem {
    /// The class of the difference.
    pub class: DifferenceClass,
    /// The pattern of the paths.
    pub pattern: String,
    /// The URL of one of them, without values.
    pub example: String,
    /// The places that differ, as paths of elements.
    pub places: Vec<String>,
    /// The part of the request that makes the difference, if it was searched for.
    pub cause: Option<DifferenceCause>,
    /// How often it was found.
    pub count: u64,
    /// How late it was purged at most, in milliseconds, for the class `late`.
    pub late_by: u64,
    /// When it was found last, in seconds since 1970.
    pub last: u64,
    /// The answers for such pages that were compared since it was found, for the class `refused-but-same`.
    #[serde(default)]
    pub answers: u64,
    /// The time that PHP worked for these, in microseconds.
    #[serde(default)]
    pub php_micros: u64,
    /// The visitors who got the same, for the class `refused-but-same`.
    #[serde(default)]
    pub visitors: ComparedVisitors,
}

/// A class that the operator accepts for the paths of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedDifference {
    /// The class of the differences.
    pub class: DifferenceClass,
    /// The pattern. Without a question mark it stands for each query.
    pub pattern: PathGlob,
}

impl AcceptedDifference {
    /// Whether this accepts a problem.
    pub fn has(&self, class: DifferenceClass, pattern: &str) -> bool {
        let path = pattern.split('?').next().unwrap_or_default();
        let path = if self.pattern.as_str().contains('?') { pattern } else { path };
        class == self.class && self.pattern.fits(path.as_bytes())
    }
}

/// The known effect of a parameter in URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenParameter {
    /// The values that have changed no page; from some number on, no further ones are counted.
    pub values: u64,
    /// The pages that they have not changed.
    pub pages: u64,
    /// The values that were not compared, each on one page, at least.
    #[serde(default)]
    pub open: u64,
    /// Whether it has changed a page.
    pub has_effect: bool,
    /// The visitors whose answers were compared.
    #[serde(default)]
    pub visitors: ComparedVisitors,
}

/// The counts of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    format: u32,
    /// When it began, in seconds since 1970.
    pub since: u64,
    /// The fingerprint of the rules: with others a new record begins.
    pub rules: u64,
    /// Requests that a shared page may answer: GET and HEAD without a session that no rule excepts.
    pub requests: u64,
    /// Those that would have been.
    pub would_hit: u64,
    /// The time that PHP worked for these, in microseconds.
    pub saved_micros: u64,
    /// Comparisons that ended with a verdict.
    pub compared: u64,
    /// Comparisons that ended without one, by reason.
    pub unjudged: BTreeMap<UnjudgedReason, u64>,
    /// Distinct versions of pages that were compared, by pattern.
    pub versions: BTreeMap<String, u64>,
    /// Reference renders, and the time that PHP worked for them, in microseconds.
    pub renders: u64,
    /// The time that PHP worked for reference renders, in microseconds.
    pub render_micros: u64,
    problems: Vec<FoundProblem>,
    /// Wrong pages beyond the bound.
    pub problems_left_out: u64,
    suspects: BTreeMap<String, u64>,
    /// The last reason of each suspect; one without a render only if no render was made for it.
    #[serde(default)]
    suspect_reasons: BTreeMap<String, UnjudgedReason>,
    /// Why a render of a pattern has failed last, in a few words.
    #[serde(default)]
    failed_renders: BTreeMap<String, String>,
    #[serde(default)]
    parameters: BTreeMap<String, SeenParameter>,
    /// The patterns whose answers are not stored and not the same for all: nothing is advised for them.
    #[serde(default)]
    differing: BTreeSet<String>,
    /// Whether a visitor has had a cookie that can make a difference.
    #[serde(default)]
    pub has_cookies: bool,
}

impl TrialRecord {
    /// Begins a record at `since` (seconds since 1970) with the fingerprint of the rules.
    pub fn new(since: u64, rules: u64) -> TrialRecord {
        TrialRecord {
            format: FORMAT,
            since,
            rules,
            requests: 0,
            would_hit: 0,
            saved_micros: 0,
            compared: 0,
            unjudged: BTreeMap::new(),
            versions: BTreeMap::new(),
            renders: 0,
            render_micros: 0,
            problems: Vec::new(),
            problems_left_out: 0,
            suspects: BTreeMap::new(),
            suspect_reasons: BTreeMap::new(),
            failed_renders: BTreeMap::new(),
            parameters: BTreeMap::new(),
            differing: BTreeSet::new(),
            has_cookies: false,
        }
    }

    /// Reads a record that was written earlier, if it is of these rules, without the suspects of
    /// [`TrialRecord::drop_unrendered`].
    pub fn read(text: &[u8], rules: u64) -> Option<TrialRecord> {
        let mut record: TrialRecord = serde_json::from_slice(text).ok()?;
        record.problems.truncate(MAX_PROBLEMS);
        record.drop_unrendered();
        // The values themselves are not known any more.
        record.parameters.retain(|_, seen| seen.has_effect);
        (record.format == FORMAT && record.rules == rules).then_some(record)
    }

    /// Drops the suspects for which no render was made, when a trial goes on after a pause: nothing could explain them
    /// any more, and a difference that is still there is seen again.
    pub fn drop_unrendered(&mut self) {
        let TrialRecord { suspects, suspect_reasons, .. } = self;
        suspect_reasons.retain(|pattern, reason| {
            let is_unrendered = reason.is_without_render();
            if is_unrendered {
                suspects.remove(pattern);
            }
            !is_unrendered
        });
    }

    /// The record as it is written.
    pub fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Counts a request, and the time that PHP worked for it if it would have been a hit.
    pub fn request(&mut self, hit_micros: Option<u64>) {
        self.requests += 1;
        if let Some(micros) = hit_micros {
            self.would_hit += 1;
            self.saved_micros = self.saved_micros.saturating_add(micros);
        }
    }

    /// Counts a comparison with a verdict. `is_new_version`: this stored page was not compared before.
    pub fn compared(&mut self, pattern: &str, is_new_version: bool) {
        self.compared += 1;
        if is_new_version
            && (self.versions.contains_key(pattern) || self.versions.len() < MAX_PATTERNS)
        {
            *self.versions.entry(pattern.to_owned()).or_insert(0) += 1;
        }
    }

    /// Counts a comparison without a verdict. With `has_difference`, the pattern is a suspect until
    /// [`TrialRecord::explained`].
    pub fn unjudged(&mut self, pattern: &str, reason: UnjudgedReason, has_difference: bool) {
        *self.unjudged.entry(reason).or_insert(0) += 1;
        if has_difference
            && (self.suspects.contains_key(pattern) || self.suspects.len() < MAX_PATTERNS)
        {
            *self.suspects.entry(pattern.to_owned()).or_insert(0) += 1;
            let known = self.suspect_reasons.entry(pattern.to_owned()).or_insert(reason);
            if !reason.is_without_render() {
                *known = reason;
            }
        }
    }

    /// Notes why a render of this pattern has failed, in a few words.
    pub fn render_failed(&mut self, pattern: String, why: String) {
        let known = &mut self.failed_renders;
        if known.len() < MAX_PATTERNS || known.contains_key(&pattern) {
            known.insert(pattern, why);
        }
    }

    /// Removes a suspect: its difference was explained later.
    pub fn explained(&mut self, pattern: &str) {
        self.suspects.remove(pattern);
        self.suspect_reasons.remove(pattern);
    }

    /// Adds a problem, or counts it once more. An advice that was withdrawn is none any more.
    pub fn found(&mut self, problem: FoundProblem) {
        if problem.class == DifferenceClass::RefusedButSame && self.is_withdrawn(&problem.pattern) {
            return;
        }
        // A part of the request makes a difference for such paths, so no page of them may be shared unseen.
        if matches!(problem.class, DifferenceClass::Leak | DifferenceClass::Loses) {
            self.withdraw(&problem.pattern);
        }
        let is_same = |known: &&mut FoundProblem| {
            known.class == problem.class
                && known.pattern == problem.pattern
                && known.cause == problem.cause
        };
        if let Some(known) = self.problems.iter_mut().find(is_same) {
            known.count += problem.count;
            known.last = known.last.max(problem.last);
            known.late_by = known.late_by.max(problem.late_by);
            return;
        }
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else if problem.class.is_wrong() {
            // A stranger can make notices by requests. None of them hides a wrong page.
            match self.problems.iter().rposition(|known| !known.class.is_wrong()) {
                Some(notice) => self.problems[notice] = problem,
                None => self.problems_left_out += 1,
            }
        }
    }

    /// Notes the known effect of a parameter. One that has changed a page stays so.
    pub fn parameter(&mut self, name: &str, seen: SeenParameter) {
        if let Some(known) = self.parameters.get_mut(name) {
            *known = SeenParameter { has_effect: known.has_effect || seen.has_effect, ..seen };
        } else if self.parameters.len() < MAX_PARAMETERS {
            self.parameters.insert(name.to_owned(), seen);
        }
    }

    /// The known effects of the parameters of URLs.
    pub fn parameters(&self) -> &BTreeMap<String, SeenParameter> {
        &self.parameters
    }

    /// Notes the visitors who got the same, for a page of this pattern that was refused. `micros`: the time that PHP worked
    /// for an answer that a shared page would have saved, which is counted then.
    pub fn refused(&mut self, pattern: &str, micros: Option<u64>, visitors: ComparedVisitors) {
        let is_it = |known: &&mut FoundProblem| {
            known.class == DifferenceClass::RefusedButSame && known.pattern == pattern
        };
        if let Some(known) = self.problems.iter_mut().find(is_it) {
            known.answers += u64::from(micros.is_some());
            known.php_micros = known.php_micros.saturating_add(micros.unwrap_or(0));
            known.visitors = known.visitors.or(visitors);
        }
    }

    /// Withdraws the advice to store the pages of this pattern, until the record ends: an answer was another one.
    pub fn withdraw(&mut self, pattern: &str) {
        let is_it = |known: &FoundProblem| {
            known.class == DifferenceClass::RefusedButSame && known.pattern == pattern
        };
        self.problems.retain(|known| !is_it(known));
        // `PathPatterns` bounds it, too.
        if self.differing.len() < MAX_PATTERNS {
            self.differing.insert(pattern.to_owned());
        }
    }

    /// Whether it was withdrawn. Beyond the bound, everything counts as withdrawn.
    pub fn is_withdrawn(&self, pattern: &str) -> bool {
        self.differing.contains(pattern) || self.differing.len() >= MAX_PATTERNS
    }

    /// The problems, the worst class first, within a class the most frequent.
    pub fn problems(&self) -> Vec<&FoundProblem> {
        let mut problems: Vec<&FoundProblem> = self.problems.iter().collect();
        problems.sort_by(|a, b| a.class.cmp(&b.class).then(b.count.cmp(&a.count)));
        problems
    }

    /// The patterns with a difference that nobody has explained, and how often it was seen.
    pub fn suspects(&self) -> &BTreeMap<String, u64> {
        &self.suspects
    }

    /// Why the differences of a pattern were not explained, when one was seen last.
    pub(crate) fn suspect_reason(&self, pattern: &str) -> Option<UnjudgedReason> {
        self.suspect_reasons.get(pattern).copied()
    }

    /// Why a render failed, if the differences of a pattern were not explained for that.
    pub(crate) fn failed_render(&self, pattern: &str) -> Option<&String> {
        let is_failed = self.suspect_reason(pattern) == Some(UnjudgedReason::RenderFailed);
        self.failed_renders.get(pattern).filter(|_| is_failed)
    }

    /// The memory of the record, in bytes.
    pub fn bytes(&self) -> usize {
        let problem = |problem: &FoundProblem| {
            let texts = [&problem.pattern, &problem.example].into_iter().chain(&problem.places);
            size_of::<FoundProblem>()
                + texts.map(|text| size_of::<String>() + text.len()).sum::<usize>()
        };
        let counted = self.versions.keys().chain(self.suspects.keys());
        let counted = counted.chain(self.suspect_reasons.keys());
        let counted = counted.chain(self.failed_renders.iter().flat_map(|(name, why)| [name, why]));
        let counted = counted.chain(self.parameters.keys()).chain(&self.differing);
        let counts: usize = counted.map(|name| size_of::<(String, u64)>() + name.len()).sum();
        size_of::<TrialRecord>() + self.problems.iter().map(problem).sum::<usize>() + counts
    }

    /// The bound of a verdict: by distinct versions of pages, because the same page compared again proves little.
    pub fn bound(&self) -> ConfidenceBound {
        let wrong = self.problems.iter().filter(|problem| problem.class.is_wrong());
        let compared = self.versions.values().sum();
        ConfidenceBound { compared, wrong: wrong.map(|problem| problem.count).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_query_accepts_all_pages_of_one_script() {
        let class = DifferenceClass::Leak;
        let accepts = |row: &str, pattern: &str| {
            let row = PathGlob::read(row).expect("a pattern");
            AcceptedDifference { class, pattern: row }.has(class, pattern)
        };
        for pattern in ["/index.php", "/index.php?title=", "/index.php?…"] {
            assert!(accepts("/index.php", pattern) && accepts("/index*", pattern), "{pattern}");
            assert!(!accepts("/", pattern), "{pattern}");
        }
        assert!(accepts("/", "/?p=") && accepts("/?p=", "/?p=") && !accepts("/?p=", "/"));
        assert!(!accepts("/index.php?title=", "/index.php?action=&title="));
        assert!(accepts("/index.php?*", "/index.php?title=") && !accepts("/a?*", "/a"));
    }

    #[test]
    fn a_row_is_a_pattern_as_in_the_rules() {
        let class = DifferenceClass::Loses;
        let accepts = |row: &str, pattern: &str| {
            let row = PathGlob::read(row).expect("a pattern");
            AcceptedDifference { class, pattern: row }.has(class, pattern)
        };
        for row in ["/**", "/shop/**", "/shop/*/:n", "/**/:n", "/shop/a/:n"] {
            assert!(accepts(row, "/shop/a/:n") && accepts(row, "/shop/a/:n?page="), "{row}");
        }
        assert!(!accepts("/shop/*", "/shop/a/:n") && !accepts("/shop", "/shop/a/:n"));
    }
}
