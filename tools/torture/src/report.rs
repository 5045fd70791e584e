//! The findings of a run: the table, the JSON, and whether the run may count as passed.
//!
//! With the lease check, a run passes if no response was outdated, torn or foreign, and every
//! request was answered. It must also have exercised its subject: hits, shared renders, changes,
//! and at a high rate of changes renders that were too late to be stored. Without the lease check
//! it passes if it has found outdated responses: a run that cannot fail proves nothing.

use super::origin::Origin;
use super::publication::By;
use super::reader::{AnswerCounts, wrong_by_name};
use super::renders::{Most, most_of_a_page};
use super::run::{Run, WrongAnswer};
use super::script::Faults;
use super::site::Kind;
use super::writer::{Done, Rate};
use super::{Amount, LeaseCheck, Played};
use harness::stand::{float, share};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// From this rate on a run must meet renders that are too late to be stored.
const OFTEN: u32 = 100;

/// The findings of a run.
pub struct Figures {
    /// The name of the server under torture.
    pub server: &'static str,
    /// The options of the run.
    pub amount: Amount,
    /// Whether the binary checks leases.
    pub lease_check: LeaseCheck,
    /// How long it took.
    pub seconds: f64,
    /// The answers of all readers, counted.
    pub seen: AnswerCounts,
    /// The changes of all writers, counted.
    pub done: Done,
    /// Pagewell's own counters, over all of its lives.
    pub counters: BTreeMap<&'static str, u64>,
    /// Renders that the origin began, validations among them.
    pub renders: u64,
    /// The most of them that ran at once of one page, by its kind.
    pub most: Most,
    /// Answers that the origin has cut.
    pub cut: u64,
    /// How often the origin refused for a while.
    pub refusals: u64,
    /// How often Pagewell was killed and started again.
    pub restarts: u64,
    /// Requests that got neither an answer nor the end of their connection.
    pub silent: u64,
    /// The first wrong answers.
    pub wrong: Vec<WrongAnswer>,
    /// When the first came, in seconds since the start.
    pub first_wrong_seconds: Option<f64>,
}

impl Figures {
    /// The findings of a run, from all that took part in it.
    #[allow(clippy::too_many_arguments, reason = "each took part")]
    pub(super) fn of(
        server: &'static str,
        amount: &Amount,
        lease_check: LeaseCheck,
        run: &Run,
        played: Played,
        origin: &Origin,
        counters: BTreeMap<&'static str, u64>,
        restarts: u64,
    ) -> Figures {
        let Played { seen, done, refusals, seconds } = played;
        let renders = origin.renders();
        Figures {
            server,
            amount: amount.clone(),
            lease_check,
            seconds,
            seen,
            done,
            counters,
            renders: renders.begun(),
            most: renders.most(),
            cut: origin.cut(),
            refusals,
            restarts,
            silent: run.silent(),
            wrong: run.first_wrong(),
            first_wrong_seconds: run.first_wrong_seconds(),
        }
    }

    /// Whether the run shows what it is to show.
    ///
    /// # Errors
    /// The faults, or the events that the run did not meet.
    pub fn verdict(&self) -> Result<(), String> {
        self.all_answered()?;
        let [outdated, torn, foreign] = self.seen.wrong;
        if self.lease_check == LeaseCheck::LeftOut {
            return match outdated {
                0 => Err("torture: no outdated answer although leases are not checked: this run \
                          cannot fail, so it shows nothing"
                    .to_owned()),
                _ => Ok(()),
            };
        }
        if outdated + torn + foreign > 0 {
            return Err(format!(
                "torture: {outdated} outdated, {torn} torn, {foreign} foreign answers"
            ));
        }
        self.missed().map_or(Ok(()), |what| Err(format!("torture: the run met no {what}")))
    }

    /// Whether nothing was wrong, but the run has not met what it should have.
    pub fn has_met_too_little(&self) -> bool {
        let is_right = self.all_answered().is_ok() && self.seen.wrong == [0; 3];
        is_right && self.missed().is_some()
    }

    /// Nobody is ever forgotten; and where nothing is disturbed, everybody gets a whole page.
    fn all_answered(&self) -> Result<(), String> {
        if self.silent > 0 {
            return Err(format!("torture: {} requests were never answered", self.silent));
        }
        let AnswerCounts { none, incomplete, unreached, .. } = self.seen;
        if self.amount.faults() == Faults::Off && none + incomplete + unreached > 0 {
            return Err(format!(
                "torture: {none} errors, {incomplete} incomplete answers, {unreached} requests \
                 that reached nobody, although nothing was disturbed"
            ));
        }
        Ok(())
    }

    /// The event that the run should have met and has not.
    fn missed(&self) -> Option<&'static str> {
        let often = match self.amount.writes_per_second {
            Rate::Max => true,
            Rate::PerSecond(rate) => rate >= OFTEN,
        };
        let disturbed = self.amount.faults() == Faults::On;
        [
            ("hits", self.seen.hits, true),
            ("renders that were shared", self.seen.collapsed, true),
            ("changes", self.done.changes(), true),
            ("renders that came too late to be stored", self.counter("store_refused"), often),
            ("pages that a soft change had marked", self.seen.stale, self.amount.by == By::Soft),
            ("cut answers", self.cut, disturbed),
            ("restarts", self.restarts, disturbed && self.amount.seconds >= 5),
        ]
        .into_iter()
        .find(|(_, count, wanted)| *wanted && *count == 0)
        .map(|(name, _, _)| name)
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn hit_share(&self) -> f64 {
        share(self.seen.hits, self.seen.answers)
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { float(count) / self.seconds } else { 0.0 }
    }

    /// The figures as a table for people.
    pub fn table(&self) -> String {
        let (seen, done) = (&self.seen, &self.done);
        let mut rows = vec![
            row("answers", seen.answers, format!("{:.0} a second", self.per_second(seen.answers))),
            row("  from memory", seen.hits, format!("{:.1} %", 100.0 * self.hit_share())),
            row("  stale after a soft change", seen.stale, "as page and site allow".into()),
            row("  by another's render", seen.collapsed, String::new()),
            row("  304, pieces, HEAD", seen.unchanged, format!("{}, {}", seen.pieces, seen.heads)),
            row("renders", self.renders, String::new()),
            row("  most of a page at once", most_of_a_page(&self.most), self.most_by_kind()),
            row("  too late to be stored", self.counter("store_refused"), String::new()),
            row("  too old to be shared", self.counter("joins_refused"), "requests".into()),
            row("pages dropped", self.counter("dropped"), String::new()),
            row(
                "changes",
                done.changes(),
                format!("{:.1} a second: {}", self.per_second(done.changes()), self.manners()),
            ),
            row("  without an answer", done.unanswered, String::new()),
        ];
        if self.amount.faults() == Faults::On {
            rows.extend([
                row("answers cut by the origin", self.cut, String::new()),
                row("refusals, restarts", self.refusals, self.restarts.to_string()),
                row("errors (502, 503, 504)", seen.none, String::new()),
                row("seen to be incomplete", seen.incomplete, String::new()),
                row("found nobody listening", seen.unreached, String::new()),
                row("given up by the reader", seen.left, String::new()),
            ]);
        }
        rows.push(row("never answered", self.silent, String::new()));
        for (name, count) in wrong_by_name(&seen.wrong) {
            let share = 100.0 * share(count, seen.answers);
            rows.push(row(name, count, format!("{share:.3} % of answers")));
        }
        let mut table = format!("{}\n", self.title());
        for (name, count, more) in rows {
            let line = format!("  {name:<28}{count:>10}  {more}");
            let _ = writeln!(table, "{}", line.trim_end());
        }
        for wrong in &self.wrong {
            let seconds = float(wrong.at_micros) / 1e6;
            let WrongAnswer { name, detail, .. } = wrong;
            let _ = writeln!(table, "\n  {name}, {seconds:.3} s after the start: {detail}");
        }
        table
    }

    /// All of it in a line.
    pub fn line(&self) -> String {
        let [outdated, torn, foreign] = self.seen.wrong;
        format!(
            "torture by {:<9} {:>7} answers, {:>4.1} % from memory, {:>5} stale as allowed; {:>5} \
             renders, at most {} of a page at once; {:>5} changes; {outdated} outdated, {torn} torn, \
             {foreign} foreign",
            self.amount.by.as_str(),
            self.seen.answers,
            100.0 * self.hit_share(),
            self.seen.stale,
            self.renders,
            most_of_a_page(&self.most),
            self.done.changes(),
        )
    }

    fn title(&self) -> String {
        let Amount { items, pages, readers, writers, writes_per_second, seed, .. } = &self.amount;
        let faults = if self.amount.faults() == Faults::On { "with faults" } else { "no faults" };
        let leases = if self.counters.is_empty() {
            String::new()
        } else {
            format!(", leases {}", self.lease_check.as_str())
        };
        format!(
            "torture of {} by {}: {items} items, {pages} pages of 4, {readers} readers, {writers} \
             writers, {writes_per_second} changes a second, {:.1} s, {faults}{leases}, seed {seed}",
            self.server,
            self.amount.by.as_str(),
            self.seconds,
        )
    }

    fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Kind::ALL.into_iter().map(Kind::as_str).zip(self.most)
    }

    fn most_by_kind(&self) -> String {
        let named = self.kinds().map(|(name, count)| format!("{count} {name}"));
        named.collect::<Vec<_>>().join(", ")
    }

    fn manners(&self) -> String {
        let named = self.done.by_manner().map(|(name, count)| format!("{count} {name}"));
        named.collect::<Vec<_>>().join(", ")
    }

    /// All figures as JSON, for programs.
    #[allow(clippy::cast_precision_loss, reason = "times of a run stay below 2^52 nanoseconds")]
    pub fn json(&self) -> Value {
        let (seen, done, amount) = (&self.seen, &self.done, &self.amount);
        let times = |times: &harness::Histogram| {
            let at = |q| times.quantile(q) as f64 / 1e6;
            json!({ "median_ms": at(0.5), "p99_ms": at(0.99), "worst_ms": at(1.0) })
        };
        let named = |(name, count): (&str, u64)| (name.to_owned(), Value::from(count));
        let wrong: Map<String, Value> = wrong_by_name(&seen.wrong).into_iter().map(named).collect();
        let most: Map<String, Value> = self.kinds().map(named).collect();
        let manners: Map<String, Value> = done.by_manner().map(named).collect();
        json!({
            "machine": harness::machine(),
            "server": self.server,
            "by": amount.by.as_str(),
            "seconds": self.seconds,
            "items": amount.items,
            "pages": amount.pages,
            "readers": amount.readers,
            "writers": amount.writers,
            "writes_per_second_asked": amount.writes_per_second.to_string(),
            "faults": amount.faults,
            "seed": amount.seed,
            "lease_check": self.lease_check == LeaseCheck::Kept,
            "answers": seen.answers,
            "answers_per_second": self.per_second(seen.answers),
            "answer_times": times(&seen.times),
            "hits": seen.hits,
            "hit_share": self.hit_share(),
            "stale_as_allowed": seen.stale,
            "collapsed": seen.collapsed,
            "renders": self.renders,
            "most_renders_of_a_page_at_once": most,
            "not_modified": seen.unchanged,
            "pieces": seen.pieces,
            "heads": seen.heads,
            "errors": seen.none,
            "incomplete": seen.incomplete,
            "unreached": seen.unreached,
            "given_up": seen.left,
            "changes": done.changes(),
            "changes_per_second": self.per_second(done.changes()),
            "changes_by_manner": manners,
            "change_times": times(&done.times),
            "changes_unanswered": done.unanswered,
            "cut_by_the_origin": self.cut,
            "refusals": self.refusals,
            "restarts": self.restarts,
            "counters": self.counters,
            "no_answer": self.silent,
            "wrong": wrong,
            "first_wrong_seconds": self.first_wrong_seconds,
        })
    }
}

fn row(name: &'static str, count: u64, more: String) -> (&'static str, u64, String) {
    (name, count, more)
}

/// Several servers under the same load, as a table of the manual.
pub fn side_by_side(all: &[Figures]) -> String {
    let mut text = String::from(
        "| | answers | from memory | renders | most of a page at once | changes a second | **outdated** |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for one in all {
        let [outdated, ..] = one.seen.wrong;
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} % | {} | {} | {:.1} | {outdated} ({:.3} %) |",
            one.server,
            one.seen.answers,
            100.0 * one.hit_share(),
            one.renders,
            most_of_a_page(&one.most),
            one.per_second(one.done.changes()),
            100.0 * share(outdated, one.seen.answers),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::publication::Publication;
    use super::*;

    fn figures(lease_check: LeaseCheck, outdated: u64, arguments: &[&str]) -> Figures {
        let counters = BTreeMap::from([("store_refused", 3)]);
        let mut acknowledged = [0; Publication::ALL.len()];
        acknowledged[Publication::Tags as usize] = 5;
        Figures {
            server: "pagewell",
            amount: Amount::read(arguments),
            lease_check,
            seconds: 2.0,
            seen: AnswerCounts {
                answers: 100,
                hits: 90,
                collapsed: 2,
                wrong: [outdated, 0, 0],
                ..AnswerCounts::default()
            },
            done: Done { acknowledged, ..Done::default() },
            counters,
            renders: 10,
            most: [1, 1, 1, 1, 1, 1, 1, 4],
            cut: 0,
            refusals: 0,
            restarts: 0,
            silent: 0,
            wrong: Vec::new(),
            first_wrong_seconds: None,
        }
    }

    #[test]
    fn an_outdated_answer_fails_the_run_and_is_wanted_without_the_lease_check() {
        assert_eq!(figures(LeaseCheck::Kept, 0, &[]).verdict(), Ok(()));
        assert!(figures(LeaseCheck::Kept, 1, &[]).verdict().is_err());
        assert!(figures(LeaseCheck::LeftOut, 0, &[]).verdict().is_err());
        assert_eq!(figures(LeaseCheck::LeftOut, 1, &[]).verdict(), Ok(()));
    }

    #[test]
    fn a_run_that_met_nothing_does_not_pass() {
        let mut idle = figures(LeaseCheck::Kept, 0, &[]);
        idle.counters.clear();
        assert!(idle.verdict().is_err_and(|why| why.contains("too late")));
        let faults = figures(LeaseCheck::Kept, 0, &["--faults"]);
        assert!(faults.verdict().is_err_and(|why| why.contains("cut")));
        let mut soft = figures(LeaseCheck::Kept, 0, &["--by", "soft"]);
        assert!(soft.verdict().is_err_and(|why| why.contains("marked")));
        soft.seen.stale = 1;
        assert_eq!(soft.verdict(), Ok(()));
    }

    #[test]
    fn servers_stand_side_by_side() {
        let all = [figures(LeaseCheck::Kept, 0, &[]), figures(LeaseCheck::LeftOut, 2, &[])];
        let table = side_by_side(&all);
        assert!(table.contains("| pagewell | 100 | 90.0 % | 10 | 1 | 2.5 | 0 (0.000 %) |"));
        assert!(table.contains("| 2 (2.000 %) |"), "{table}");
    }

    #[test]
    fn every_request_has_to_be_answered() {
        let mut calm = figures(LeaseCheck::LeftOut, 1, &[]);
        calm.seen.incomplete = 1;
        assert!(calm.verdict().is_err());
        let mut forgotten = figures(LeaseCheck::Kept, 0, &["--faults"]);
        forgotten.silent = 1;
        assert!(forgotten.verdict().is_err_and(|why| why.contains("never answered")));
    }

    #[test]
    fn the_table_has_the_figures() {
        let table = figures(LeaseCheck::LeftOut, 1, &["--faults"]).table();
        for part in ["100  50 a second", "90.0 %", "outdated", "1.000 % of answers", "leases"] {
            assert!(table.contains(part), "{part}: {table}");
        }
    }
}
