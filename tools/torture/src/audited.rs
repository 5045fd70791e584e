//! Pagewell's own audit under torture.
//!
//! A right site has no verdict against a page, at any rate of writes, while every hit is compared. A binary without
//! the lease check is found out by its own audit, at a rate at which outdated pages are rare.
//! Changes are writes through Pagewell: what is announced later, even by milliseconds, may be found to be late.

use super::origin::Origin;
use super::publication::By;
use super::restarted::CountedPagewell;
use super::run::Run;
use super::script::Faults;
use super::site::Site;
use super::writer::Rate;
use super::{Amount, LeaseCheck, WRONG_MAX, binary, play, system};
use harness::Port;
use harness::stand::{float, share};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// Writes a second.
const RATES: [u32; 3] = [5, 50, 400];
/// Readers: fewer than in other runs, so that renders for the audit get places.
const READERS: usize = 8;
/// The pause of a reader between two requests.
const PAUSE: Duration = Duration::from_millis(2);
/// The budget of renders is a share of the places at the origin.
const EVERY_HIT: &str = "audit = \"1 in 1\"\n[limits]\norigin_connections = 1000\n";
/// The time in which the binary without the lease check has to be found out: five renders agree against a page, which is
/// then watched for a minute before it is reported. Alone on two cores it takes 1 to 6 s.
pub const FOUND_WITHIN: Duration = Duration::from_secs(30);
/// The same on a machine that does other work.
pub const FOUND_WITHIN_BUSY: Duration = Duration::from_secs(90);
/// The writes a second of the binary without the lease check.
const FOUND_RATE: u32 = 5;
/// So many items and pages: a write purges four pages, which then stay for ten seconds. Renders of the pages that the
/// last write purged are under way when the next write comes, and one write in ten meets one that it changes.
const FOUND_PAGES: usize = 200;
/// The longest of these renders, in microseconds.
const FOUND_RENDER_MICROS: usize = 400_000;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The counts of an audit.
struct Verdicts {
    compared: u64,
    unjudged: u64,
    /// All verdicts against pages: those that are watched for a minute, also if they were only late; and clocks.
    wrong: u64,
    changes: u64,
    seconds: f64,
    log: String,
}

/// A right site at each rate.
///
/// # Errors
/// A verdict against a page; or too few comparisons.
pub fn torture(amount: &Amount, comparisons: u64) -> Result<(), String> {
    for rate in RATES {
        let time = Duration::from_secs(amount.seconds);
        let (check, rate) = (LeaseCheck::Kept, Rate::PerSecond(rate));
        let site = Site::new(amount.seed, amount.items, amount.pages);
        let found =
            audit(amount, site, (check, rate, time), |compared, _| compared >= comparisons)?;
        let Verdicts { compared, unjudged, wrong, changes, seconds, log } = found;
        let line = format!(
            "torture audited: {rate} writes a second: {compared} comparisons with a verdict, {wrong} against a page; \
             {unjudged} ({:.2} %) without; {changes} changes, {:.1} a second; {seconds:.0} s",
            100.0 * share(unjudged, compared + unjudged),
            float(changes) / seconds,
        );
        if wrong > 0 {
            return Err(format!("{line}\n{log}"));
        }
        if compared < comparisons {
            return Err(format!("{line}: too few, give it more --seconds"));
        }
        println!("{line}");
    }
    Ok(())
}

/// The binary without the lease check, then for as long the binary with it, which has no verdict against a page of the
/// same site. Returns a line that says when the first was found out.
///
/// # Errors
/// It was not within this time; or the other was.
pub fn found_out(amount: &Amount, within: Duration) -> Result<String, String> {
    let rate = Rate::PerSecond(FOUND_RATE);
    let site = || Site::new(amount.seed, FOUND_PAGES, FOUND_PAGES).rendered_in(FOUND_RENDER_MICROS);
    let is_found = |_, wrong| wrong > 0;
    let without = audit(amount, site(), (LeaseCheck::LeftOut, rate, within), is_found)?;
    let Verdicts { compared, wrong, changes, seconds, .. } = without;
    if wrong == 0 {
        return Err(format!(
            "torture: without the lease check the audit found nothing in {seconds:.0} s, {compared} comparisons and \
             {changes} changes"
        ));
    }
    let as_long = Duration::from_secs_f64(seconds);
    let with = audit(amount, site(), (LeaseCheck::Kept, rate, as_long), is_found)?;
    if with.wrong > 0 {
        return Err(format!(
            "torture: the audit found a wrong page of the same site with it\n{}",
            with.log
        ));
    }
    Ok(format!(
        "torture: without the lease check its own audit found it out after {seconds:.2} s (of {} s), {changes} changes; \
         a verdict is reported 60 s later. With it, as long: {} comparisons, 0 against a page",
        within.as_secs(),
        with.compared,
    ))
}

/// Audits every hit until there is enough: comparisons with a verdict, and verdicts against pages.
fn audit(
    amount: &Amount,
    site: Site,
    (lease_check, rate, time): (LeaseCheck, Rate, Duration),
    is_enough: impl Fn(u64, u64) -> bool,
) -> Result<Verdicts, String> {
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
    let mut counts = (0, 0, 0);
    let played = play(&amount, &run, || {
        while !run.is_over() {
            counts = counted(&pagewell)?;
            if is_enough(counts.0, counts.2) {
                run.end();
            }
            sleep(LOOK_EVERY);
        }
        Ok(0)
    })?;
    let (compared, unjudged, wrong) = counts;
    let (changes, seconds, log) = (played.done.changes(), played.seconds, pagewell.log());
    Ok(Verdicts { compared, unjudged, wrong, changes, seconds, log })
}

/// Comparisons with and without a verdict, and verdicts against pages.
fn counted(pagewell: &CountedPagewell<'_>) -> Result<(u64, u64, u64), String> {
    let count = |name| pagewell.counter(name);
    let wrong = count("audit_suspected")? + count("audit_by_the_clock")?;
    Ok((count("audit_compared")?, count("audit_unjudged")?, wrong))
}
