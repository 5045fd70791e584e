//! The findings of the torture of several machines: in a table, with every kept fault in words, and whether the
//! run may count as passed.
//!
//! Outdated is what was asked for after a write had been answered in time and shows what was before. It is put
//! down to the fault that had begun last; the words have the one before as well.

use super::end;
use super::fault::Fault;
use super::locked;
use super::stand::Stand;
use super::tally::Counts;
use crate::Amount;
use crate::reader::{AnswerCounts, wrong_by_name};
use harness::root;
use harness::stand::{AuditCounts, seconds, share};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// How many pages that remained outdated are shown.
const LEFT_SHOWN: usize = 20;

/// The findings of a run.
pub struct Figures {
    amount: Amount,
    machines: usize,
    /// How long it took.
    pub seconds: f64,
    /// When the first wrong answer came, in seconds since the start.
    pub first_wrong_seconds: Option<f64>,
    seen: AnswerCounts,
    silent: u64,
    /// By cause: its name, how often it was, what became of writes, outdated answers.
    rows: Vec<(&'static str, u64, Counts, u64)>,
    writes: Counts,
    lost: u64,
    /// The longest time without a write in time through a machine, in words.
    longest: String,
    counters: BTreeMap<String, u64>,
    /// The counts of all audits, and the pages that they still watch.
    audited: (AuditCounts, u64),
    wrong: Vec<String>,
    failed: Vec<String>,
    left: Vec<String>,
    logs: Option<PathBuf>,
}

impl Figures {
    /// From all who took part.
    pub(super) fn of(
        amount: &Amount,
        stand: &Stand,
        seen: AnswerCounts,
        left: Vec<String>,
    ) -> Figures {
        let tally = &stand.tally;
        let outdated_at = stand.runs.iter().flat_map(|run| run.outdated_at());
        let mut outdated: BTreeMap<&str, u64> = BTreeMap::new();
        for at in outdated_at {
            *outdated.entry(tally.fault_at(at).map_or("none yet", Fault::as_str)).or_default() += 1;
        }
        let rows = tally.by_cause().into_iter().map(|(name, times, counts)| {
            (name, times, counts, outdated.get(name).copied().unwrap_or(0))
        });
        let first = stand.runs.iter().filter_map(|run| run.first_wrong_seconds());
        let late = stand.machines.iter().map(|machine| locked(&machine.late).lost);
        let took = seconds(tally.micros());
        // Without the wait there are outdated pages. A machine that does not answer is noted in `failed`.
        let audited =
            if amount.without_wait { (AuditCounts::default(), 0) } else { end::audited(stand) };
        let mut figures = Figures {
            amount: amount.clone(),
            machines: stand.machines.len(),
            seconds: took,
            first_wrong_seconds: first.reduce(f64::min),
            silent: stand.runs.iter().map(|run| run.silent()).sum(),
            rows: rows.collect(),
            writes: tally.all(),
            lost: late.sum(),
            longest: longest(stand),
            counters: end::counters(stand),
            audited,
            wrong: wrong(stand),
            failed: stand.failed(),
            seen,
            left,
            logs: None,
        };
        if figures.verdict().is_err() {
            figures.logs = keep_logs(stand, &figures);
        }
        figures
    }

    /// Whether it may count as passed.
    ///
    /// # Errors
    /// The faults, or the events that the run should have met and has not.
    pub fn verdict(&self) -> Result<(), String> {
        let [outdated, torn, foreign] = self.seen.wrong;
        let (left, failed, silent) = (self.left.len(), self.failed.len(), self.silent);
        if self.amount.without_wait {
            return match outdated {
                0 => {
                    Err("torture: no outdated answer although nobody waits: this run cannot fail, \
                          so it shows nothing"
                        .to_owned())
                }
                _ => Ok(()),
            };
        }
        if outdated + torn + foreign + silent > 0 || left + failed > 0 {
            return Err(format!(
                "torture: {outdated} outdated, {torn} torn, {foreign} foreign answers, {silent} \
                 requests never answered, {left} pages not the newest in the end, {failed} failures"
            ));
        }
        let unexplained = self.unexplained();
        if !unexplained.is_empty() {
            return Err(format!("torture: the audit found wrong pages: {unexplained:?}"));
        }
        let [in_time, ..] = self.writes;
        let met = [("hits", self.seen.hits), ("writes answered in time", in_time)];
        let missed = met.into_iter().find(|(_, count)| *count == 0);
        missed.map_or(Ok(()), |(what, _)| Err(format!("torture: the run met no {what}")))
    }

    /// The findings of the audits, and pages that are still watched, that no fault explains. Where a write was lost with a
    /// machine, or not answered, other machines may have pages of before it: they are out of date.
    fn unexplained(&self) -> Vec<(&str, u64)> {
        let (counts, watched) = &self.audited;
        let [.., unanswered] = self.writes;
        let is_explained = |name: &str| {
            self.lost + unanswered > 0 && !matches!(name, "audit_leaks" | "audit_by_the_clock")
        };
        let all = counts.findings.iter().map(|(name, count)| (*name, *count));
        let all = all.chain([("audit_watched", *watched)]);
        all.filter(|(name, count)| *count > 0 && !is_explained(name)).collect()
    }

    /// All of it in a line.
    pub fn line(&self) -> String {
        let [in_time, late, by_hand, unanswered] = self.writes;
        let faults: u64 = self.rows.iter().map(|(_, times, ..)| times).sum();
        format!(
            "torture of {} machines {:>7} answers, {:.1} % from memory; {in_time} writes in time, \
             {late} late, {by_hand} by hand, {unanswered} unanswered; {faults} faults; {} outdated, \
             {} not the newest in the end",
            self.machines,
            self.seen.answers,
            100.0 * share(self.seen.hits, self.seen.answers),
            self.seen.wrong[0],
            self.left.len(),
        )
    }

    /// The table, and all that was wrong.
    pub fn table(&self) -> String {
        let mut text = self.head();
        let _ = writeln!(
            text,
            "  {:<18}{:>6}{:>9}{:>9}{:>8}{:>9}{:>12}{:>10}",
            "fault before", "times", "in time", "late", "late", "by hand", "unanswered", "outdated"
        );
        for (name, times, [in_time, late, by_hand, unanswered], outdated) in &self.rows {
            let share = format!("{:.1} %", 100.0 * share(*late, in_time + late));
            let _ = writeln!(
                text,
                "  {name:<18}{times:>6}{in_time:>9}{late:>9}{share:>8}{by_hand:>9}{unanswered:>12}\
                 {outdated:>10}"
            );
        }
        let _ = writeln!(
            text,
            "  longest time in which all writes through a machine were late: {}",
            self.longest
        );
        for wrong in &self.wrong {
            let _ = writeln!(text, "\n  {wrong}");
        }
        for failed in &self.failed {
            let _ = writeln!(text, "\n  failed: {failed}");
        }
        for left in self.left.iter().take(LEFT_SHOWN) {
            let _ = writeln!(text, "\n  in the end, {left}");
        }
        if let Some(logs) = &self.logs {
            let _ = writeln!(text, "\n  what the machines said: {}", logs.display());
        }
        text
    }

    fn head(&self) -> String {
        let Amount { items, pages, readers, writers, seed, .. } = &self.amount;
        let (seen, counter) =
            (&self.seen, |name: &str| self.counters.get(name).copied().unwrap_or(0));
        let AuditCounts { compared, findings } = &self.audited.0;
        let mut text = format!(
            "torture of {} machines: {items} items, {pages} pages of 4, {readers} readers, {writers} \
             writers, {:.1} s, seed {seed}\n",
            self.machines, self.seconds,
        );
        let mut rows = vec![
            ("answers", seen.answers, format!("{} from memory", seen.hits)),
            ("errors (502, 503, 504)", seen.none, String::new()),
            ("seen to be incomplete", seen.incomplete, String::new()),
            ("found nobody listening", seen.unreached, String::new()),
            ("never answered", self.silent, String::new()),
            ("late, and lost with a machine", self.lost, "killed, without snapshots".to_owned()),
            (
                "published, received",
                counter("cluster_published"),
                counter("cluster_received").to_string(),
            ),
            ("gaps", counter("database_gaps"), "of the processes of the end".to_owned()),
            ("hits compared by the audits", *compared, format!("found: {findings:?}")),
        ];
        rows.extend(wrong_by_name(&seen.wrong).map(|(name, count)| (name, count, String::new())));
        rows.push(("not the newest in the end", self.left.len() as u64, String::new()));
        for (name, count, more) in rows {
            let line = format!("  {name:<32}{count:>10}  {more}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// But for what a kill explains.
fn longest(stand: &Stand) -> String {
    let Some((machine, stretch)) = stand.tally.longest_late() else { return "none".to_owned() };
    let (took, from) = (seconds(stretch.to - stretch.from), seconds(stretch.from));
    let before = stand.tally.before(stretch.from);
    format!("{took:.1} s, machine {machine}, from {from:.1} s after the start on ({before})")
}

/// The first wrong answers of each machine, in words.
fn wrong(stand: &Stand) -> Vec<String> {
    let runs = stand.runs.iter().enumerate();
    let mut all: Vec<_> = runs
        .flat_map(|(machine, run)| run.first_wrong().into_iter().map(move |one| (machine, one)))
        .collect();
    all.sort_by_key(|(_, one)| one.at_micros);
    let text = |(machine, one): &(usize, crate::run::WrongAnswer)| {
        let before = stand.tally.before(one.at_micros);
        let at = seconds(one.at_micros);
        format!(
            "{}, {at:.3} s after the start, by machine {machine} ({before}): {}",
            one.name, one.detail
        )
    };
    all.iter().map(text).collect()
}

/// Keeps what the machines said, and what was found.
fn keep_logs(stand: &Stand, figures: &Figures) -> Option<PathBuf> {
    let directory = root::target().join("torture-machines");
    fs::create_dir_all(&directory).ok()?;
    for machine in &stand.machines {
        let to = directory.join(format!("machine-{}.log", machine.number));
        fs::copy(machine.log(), to).ok()?;
    }
    fs::write(directory.join("found.txt"), figures.table()).ok()?;
    Some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(arguments: &[&str]) -> Figures {
        let all = [&["--machines", "3"], arguments].concat();
        Figures {
            amount: Amount::read(&all),
            machines: 3,
            seconds: 20.0,
            first_wrong_seconds: None,
            seen: AnswerCounts { answers: 100, hits: 90, ..AnswerCounts::default() },
            silent: 0,
            rows: vec![("none yet", 0, [3, 0, 0, 0], 0), ("cut", 2, [6, 2, 1, 0], 1)],
            writes: [9, 2, 1, 0],
            lost: 0,
            longest: "none".to_owned(),
            counters: BTreeMap::new(),
            audited: (AuditCounts::default(), 0),
            wrong: Vec::new(),
            failed: Vec::new(),
            left: Vec::new(),
            logs: None,
        }
    }

    #[test]
    fn nothing_wrong_passes_and_anything_wrong_does_not() {
        assert_eq!(figures(&[]).verdict(), Ok(()));
        let outdated =
            AnswerCounts { answers: 100, hits: 90, wrong: [1, 0, 0], ..AnswerCounts::default() };
        let one = || vec!["it".to_owned()];
        let wrong = [
            Figures { seen: outdated, ..figures(&[]) },
            Figures { silent: 1, ..figures(&[]) },
            Figures { failed: one(), ..figures(&[]) },
            Figures { left: one(), ..figures(&[]) },
            Figures { writes: [0, 9, 0, 0], ..figures(&[]) },
            Figures { seen: AnswerCounts::default(), ..figures(&[]) },
        ];
        assert!(wrong.iter().all(|figures| figures.verdict().is_err()));
    }

    #[test]
    fn a_finding_of_an_audit_fails_unless_a_lost_write_explains_it() {
        let found = |name, lost, watched| {
            let findings = BTreeMap::from([(name, 1)]);
            let audited = (AuditCounts { compared: 9, findings }, watched);
            Figures { lost, audited, ..figures(&[]) }.verdict()
        };
        assert!(found("audit_broken_promises", 0, 0).is_err());
        assert_eq!(found("audit_broken_promises", 1, 1), Ok(()));
        assert!(found("audit_leaks", 1, 0).is_err());
        let watched = (AuditCounts::default(), 1);
        assert!(Figures { audited: watched, ..figures(&[]) }.verdict().is_err());
    }

    #[test]
    fn without_the_wait_outdated_answers_are_expected() {
        assert!(figures(&["--without-wait"]).verdict().is_err());
        let seen = AnswerCounts { wrong: [1, 0, 0], ..AnswerCounts::default() };
        let found = Figures { seen, ..figures(&["--without-wait"]) };
        assert_eq!(found.verdict(), Ok(()));
    }

    #[test]
    fn the_table_has_a_row_for_each_fault_and_all_that_was_wrong() {
        let left = vec!["machine 1: /page/3".to_owned()];
        let table = Figures { left, ..figures(&[]) }.table();
        let row = |name: &str| {
            let row = table.lines().find(|line| line.trim_start().starts_with(name));
            row.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default()
        };
        assert_eq!(row("cut "), "cut 2 6 2 25.0 % 1 0 1");
        assert_eq!(row("not the newest"), "not the newest in the end 1");
        assert!(table.contains("in the end, machine 1: /page/3"), "{table}");
        assert!(figures(&[]).line().contains("9 writes in time, 2 late"));
    }
}
