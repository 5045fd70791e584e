//! Pagewell's own audit under torture.
//!
//! A right site has no verdict against a page, at any rate of writes, while every hit is compared. A binary without
//! the lease check is found out by its own audit, at a rate at which outdated pages are rare.
//! Changes are writes through Pagewell: what is announced later, even by milliseconds, may be found to be late. With
//! `--database` they are transactions ([`rows`]). Renders that decide about a page begin once these are applied and
//! settled.

use super::origin::Origin;
use super::publication::By;
use super::restarted::CountedPagewell;
use super::run::Run;
use super::script::Faults;
use super::site::Site;
use super::writer::Rate;
use super::{Amount, LeaseCheck, WRONG_MAX, binary, play, rows, system};
use harness::Port;
use harness::stand::{float, share};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, sleep};
use std::time::Duration;

/// Writes a second.
const RATES: [u32; 3] = [5, 50, 400];
/// Transactions a second. At more, few pages stay until they are compared.
const ROWS_RATES: [u32; 2] = [5, 50];
/// Readers: fewer than in other runs, so that renders for the audit get places.
const READERS: usize = 8;
/// The pause of a reader between two requests.
pub const PAUSE: Duration = Duration::from_millis(2);
/// Every hit is audited. The budget of renders is a share of the places at the origin.
pub const EVERY_HIT: &str = "audit = \"1 in 1\"\n[limits]\norigin_connections = 1000\n";
/// The time in which the binary without the lease check has to be found out: five renders agree against a page, and one
/// ten seconds later shows that its text does not follow the clock. The page is then watched for a minute before it is
/// reported. Alone on two cores it takes 16 to 22 s.
pub const FOUND_WITHIN: Duration = Duration::from_secs(30);
/// The same on a machine that does other work.
pub const FOUND_WITHIN_BUSY: Duration = Duration::from_secs(90);
/// The writes a second of the binary without the lease check.
const FOUND_RATE: u32 = 5;
/// So many items and pages: a write purges one page, which then stays for long. It is made twice, and the second one
/// meets the render after the first in one case of two.
const FOUND_ITEMS: usize = 500;
const FOUND_PAGES: usize = 100;
/// The longest of these renders, in microseconds.
const FOUND_RENDER_MICROS: usize = 400_000;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The counters of an audit.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerdictCounts {
    /// Comparisons with a verdict.
    pub compared: u64,
    /// Comparisons without a verdict.
    pub unjudged: u64,
    /// All verdicts against pages: those that are watched for a minute, also if they were only late; and clocks.
    pub wrong: u64,
}

impl VerdictCounts {
    /// Reads them; `count` returns the counter of a name.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn read(count: impl Fn(&str) -> Result<u64, String>) -> Result<VerdictCounts, String> {
        Ok(VerdictCounts {
            compared: count("audit_compared")?,
            unjudged: count("audit_unjudged")?,
            wrong: count("audit_suspected")? + count("audit_by_the_clock")?,
        })
    }

    /// The comparisons without a verdict, and their share: "3 (0.25 %)".
    pub fn without_verdict(&self) -> String {
        let percent = 100.0 * share(self.unjudged, self.compared + self.unjudged);
        format!("{} ({percent:.2} %)", self.unjudged)
    }
}

/// The result of a run in which every hit is audited.
pub struct AuditedRun {
    /// The counters of its audit.
    pub counts: VerdictCounts,
    /// The changes that were made.
    pub changes: u64,
    /// Its duration in seconds.
    pub seconds: f64,
    /// The log of the program.
    pub log: String,
}

impl AuditedRun {
    /// A line about a right site.
    ///
    /// # Errors
    /// A verdict against a page; or fewer comparisons than `wanted`.
    fn line(&self, rate: Rate, wanted: u64) -> Result<String, String> {
        let VerdictCounts { compared, wrong, .. } = self.counts;
        let line = format!(
            "torture audited: {rate} writes a second: {compared} comparisons with a verdict, {wrong} against a page; \
             {} without; {} changes, {:.1} a second; {:.0} s",
            self.counts.without_verdict(),
            self.changes,
            float(self.changes) / self.seconds,
            self.seconds,
        );
        if wrong > 0 {
            return Err(format!("{line}\n{}", self.log));
        }
        if compared < wanted {
            return Err(format!("{line}: too few, give it more --seconds"));
        }
        Ok(line)
    }
}

/// A right site at each rate.
///
/// # Errors
/// A verdict against a page, or too few comparisons; in a database also outdated answers.
pub fn torture(amount: &Amount, comparisons: u64) -> Result<(), String> {
    let rates: &[u32] = if amount.database.is_some() { &ROWS_RATES } else { &RATES };
    for rate in rates {
        let rate = Rate::PerSecond(*rate);
        let is_enough = |counts: &VerdictCounts| counts.compared >= comparisons;
        let found = if let Some(kind) = amount.database {
            let amount = Amount { writes_per_second: rate, readers: READERS, ..amount.clone() };
            rows::audit(&amount, kind, is_enough)?
        } else {
            let time = Duration::from_secs(amount.seconds);
            let site = Site::new(amount.seed, amount.items, amount.pages);
            audit(amount, site, (LeaseCheck::Kept, rate, time), is_enough)?
        };
        println!("{}", found.line(rate, comparisons)?);
    }
    Ok(())
}

/// The binary without the lease check, and beside it for as long the binary with it, which has no verdict against a page
/// of the same site. Returns a line that says when the first was found out.
///
/// # Errors
/// It was not within this time; or the other was.
pub fn found_out(amount: &Amount, within: Duration) -> Result<String, String> {
    let rate = Rate::PerSecond(FOUND_RATE);
    let amount = &Amount { writers: 1, ..amount.clone() };
    let site = || {
        let site = Site::new(amount.seed, FOUND_ITEMS, FOUND_PAGES);
        site.slow_and_saved_twice(FOUND_RENDER_MICROS)
    };
    let is_found_out = AtomicBool::new(false);
    let is_found = |counts: &VerdictCounts| counts.wrong > 0;
    let is_over = |counts: &VerdictCounts| is_found(counts) || is_found_out.load(SeqCst);
    let (without, with) = thread::scope(|scope| {
        let with = scope.spawn(|| audit(amount, site(), (LeaseCheck::Kept, rate, within), is_over));
        let without = audit(amount, site(), (LeaseCheck::LeftOut, rate, within), is_found);
        is_found_out.store(true, SeqCst);
        (without, with.join())
    });
    let AuditedRun { counts, changes, seconds, .. } = without?;
    if counts.wrong == 0 {
        return Err(format!(
            "torture: without the lease check the audit found nothing in {seconds:.0} s, {} comparisons and \
             {changes} changes",
            counts.compared,
        ));
    }
    let with = with.map_err(|_| "torture: the run with the lease check panicked".to_owned())??;
    if with.counts.wrong > 0 {
        return Err(format!(
            "torture: the audit found a wrong page of the same site with it\n{}",
            with.log
        ));
    }
    Ok(format!(
        "torture: without the lease check its own audit found it out after {seconds:.2} s (of {} s), {changes} changes; \
         a verdict is reported 60 s later. With it, in {:.2} s beside it: {} comparisons, 0 against a page",
        within.as_secs(),
        with.seconds,
        with.counts.compared,
    ))
}

/// Looks at the counters of an audit until there is enough, or `is_over`. Returns the last counts.
///
/// # Errors
/// Those of `count`, which returns the counter of a name.
pub fn watched(
    is_over: impl Fn() -> bool,
    count: impl Fn(&str) -> Result<u64, String>,
    is_enough: impl Fn(&VerdictCounts) -> bool,
) -> Result<VerdictCounts, String> {
    let mut counts = VerdictCounts::default();
    while !is_over() {
        counts = VerdictCounts::read(&count)?;
        if is_enough(&counts) {
            break;
        }
        sleep(LOOK_EVERY);
    }
    Ok(counts)
}

/// Audits every hit until there is enough. Changes are writes through Pagewell.
fn audit(
    amount: &Amount,
    site: Site,
    (lease_check, rate, time): (LeaseCheck, Rate, Duration),
    is_enough: impl Fn(&VerdictCounts) -> bool,
) -> Result<AuditedRun, String> {
    let amount =
        Amount { writes_per_second: rate, readers: READERS, by: By::Headers, ..amount.clone() };
    let binary = binary(lease_check)?;
    let site = Arc::new(site.by(amount.by));
    let origin = Origin::start(&site, amount.seed, Faults::Off).map_err(system)?;
    let ports = (Port::take().map_err(system)?, Port::take().map_err(system)?);
    let pagewell = CountedPagewell::start(&binary, &origin, &ports, EVERY_HIT)?;
    let servers = (ports.0.address(), ports.1.address());
    let mut run = Run::new(site, Faults::Off, amount.seed, servers, time, Some(WRONG_MAX));
    run.pause = PAUSE;
    let mut counts = VerdictCounts::default();
    let played = play(&amount, &run, || {
        counts = watched(|| run.is_over(), |name| pagewell.counter(name), is_enough)?;
        run.end();
        Ok(0)
    })?;
    let (changes, seconds, log) = (played.done.changes(), played.seconds, pagewell.log());
    Ok(AuditedRun { counts, changes, seconds, log })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(compared: u64, wrong: u64) -> AuditedRun {
        let counts = VerdictCounts { compared, unjudged: 10, wrong };
        AuditedRun { counts, changes: 50, seconds: 10.0, log: "its log".to_owned() }
    }

    #[test]
    fn a_right_run_has_no_verdict_against_a_page_and_enough_comparisons() {
        let rate = Rate::PerSecond(5);
        let line = run(30, 0).line(rate, 30);
        assert!(line.is_ok_and(|line| line.contains("10 (25.00 %) without; 50 changes, 5.0 a")));
        assert!(run(29, 0).line(rate, 30).is_err_and(|why| why.contains("too few")));
        assert!(run(30, 1).line(rate, 30).is_err_and(|why| why.ends_with("its log")));
    }

    #[test]
    fn counters_are_watched_until_there_is_enough_or_the_run_is_over() {
        let counts = |name: &str| Ok(name.len() as u64);
        let found = watched(|| false, counts, |counts| counts.compared > 0);
        assert!(found.is_ok_and(|found| found.compared == 14 && found.wrong == 33));
        let found = watched(|| true, counts, |_| panic!("nothing is asked"));
        assert!(found.is_ok_and(|found| found.compared == 0));
    }

    #[test]
    fn changes_are_made_in_a_database_if_that_is_wanted() {
        let amount = Amount::read(&["--audited", "9", "--database"]);
        assert!(amount.database.is_some() && amount.audited == Some(9));
    }
}
