//! `cargo torture`: is any response older than the data acknowledged before its request?
//!
//! The real binary runs in front of an origin that knows the correct data ([`site`]). Writers
//! change data in every available way ([`writer`]). Readers compare each response with the versions
//! acknowledged when they sent the request ([`reader`], [`judge`]). With faults, the origin
//! truncates responses and refuses connections, readers disconnect, and Pagewell is killed and
//! restarted. Several nodes may exchange changes ([`machines`]). It uses only loopback, and ends
//! automatically. Against a binary without the lease check, the same run must find outdated
//! responses: this shows that it can.

mod audited;
mod beside;
mod change;
mod hit_times;
mod judge;
mod machines;
mod origin;
mod publication;
mod reader;
mod renders;
mod report;
mod restarted;
mod rows;
mod run;
mod script;
mod site;
mod stamp;
mod writer;

use clap::Parser;
use followed_database::Kind;
use harness::Port;
use harness::root::{self, Profile};
use harness::stand::{Players, exit_code, seconds};
use origin::Origin;
use publication::By;
use report::Figures;
use restarted::CountedPagewell;
use run::Run;
use script::Faults;
use serde_json::Value;
use site::Site;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use writer::Rate;

/// With faults: when the origin first refuses, and how often, in microseconds.
const REFUSE: (u64, u64) = (700_000, 2_000_000);
/// How long it refuses.
const REFUSE_FOR: Duration = Duration::from_millis(200);
/// With faults: when Pagewell is first killed, and how often, in microseconds.
const KILL: (u64, u64) = (1_700_000, 3_000_000);
/// The short form: by which ways changes are published, and for how many seconds. Longer where a marked page
/// has to expire.
const SHORT: [(By, u64); 6] = [
    (By::Headers, 3),
    (By::Api, 3),
    (By::Purge, 3),
    (By::Ban, 3),
    (By::Soft, 5),
    (By::Litespeed, 3),
];
/// The same, for changes that are read from a database.
const SHORT_ROWS_SECONDS: u64 = 4;
/// The same for several machines, and how many.
const SHORT_MACHINES_SECONDS: u64 = 10;
const SHORT_MACHINES: usize = 3;
/// So many times as long the short form tries once more where a busy machine has met too little.
const SHORT_LONGER: u64 = 10;
/// For how long the short form looks for an outdated answer of a binary without its lease check, or of
/// machines that do not wait for each other, at most. It ends with the first; a busy machine takes longer.
const SHORT_FOUND_SECONDS: u64 = 120;
/// How many transactions a second are made in a database where an outdated page has to be found: so few
/// that it stays until it is known to be outdated, and is asked for once more.
const ROWS_FOUND_RATE: Rate = Rate::PerSecond(40);
/// How many changes a second the short form makes: enough to be in every render's way, and few enough
/// for pages to live.
const SHORT_RATE: Rate = Rate::PerSecond(400);
/// Many wrong answers are enough.
const WRONG_MAX: u64 = 100_000;
/// The options of a run: how long, how many, with which faults.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "cargo torture",
    about = "Looks for outdated answers of the real binary, with readers, writers and faults"
)]
pub struct Amount {
    /// How many seconds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How many items there are that pages are made from
    #[arg(long, default_value_t = 60, value_parser = count(4))]
    items: usize,
    /// How many pages, of four items each
    #[arg(long, default_value_t = 200, value_parser = count(1))]
    pages: usize,
    /// How many readers
    #[arg(long, default_value_t = 48, value_parser = count(1))]
    readers: usize,
    /// How many writers
    #[arg(long, default_value_t = 4, value_parser = count(1))]
    writers: usize,
    /// Changes a second by all writers together, or `max`: as many as are acknowledged
    #[arg(long, default_value = "max")]
    writes_per_second: Rate,
    /// How changes are published to Pagewell
    #[arg(long, value_enum, default_value_t = By::Mixed)]
    by: By,
    /// The same load on another cache as well; both are purged by PURGEKEYS and PURGE
    #[arg(long, value_enum, conflicts_with_all = ["by", "faults", "short", "without_lease_check"])]
    beside: Option<Other>,
    /// Changes are made in a database and read from its change stream
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "mariadb",
          conflicts_with_all = ["by", "beside", "short", "json"])]
    database: Option<Kind>,
    /// With `--database`: pages declare nothing, and depend on the rows that their statements read
    #[arg(long, requires = "database")]
    footprints: bool,
    /// So many Pagewells that tell each other by a stream of Redis, with faults of all kinds
    #[arg(long, value_parser = machines(),
          conflicts_with_all = ["by", "beside", "database", "faults", "short", "without_lease_check", "json"])]
    machines: Option<usize>,
    /// With `--machines`: these faults alone
    #[arg(long, value_enum, requires = "machines")]
    only: Vec<machines::fault::Fault>,
    /// With `--machines`: writes are answered before the others have applied them; it must be found out
    #[arg(long, requires = "machines")]
    without_wait: bool,
    /// Cut and refuse at the origin, leave as a reader, kill Pagewell and start it again
    #[arg(long)]
    faults: bool,
    /// Build and torture a binary that does not check leases; it must be found out
    #[arg(long)]
    without_lease_check: bool,
    /// A few seconds by each way and with three machines, with faults; then without what keeps outdated
    /// answers away, until that is found out
    #[arg(long, conflicts_with_all = ["seconds", "writes_per_second", "without_lease_check", "json", "by"])]
    short: bool,
    /// Pagewell audits every hit, under 5, 50 and 400 writes a second each, until so many comparisons had a verdict or
    /// `--seconds` have passed; none may be against a page. With `--database`, under 5 and 50 transactions. With
    /// `--without-lease-check`, one has to be within 30 seconds
    #[arg(long, conflicts_with_all = ["by", "beside", "machines", "faults", "short", "json"])]
    audited: Option<u64>,
    /// The seed of the site and of all draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write all figures to this file, too
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A cache to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Other {
    /// Varnish with its module xkey
    Varnish,
}

impl Amount {
    /// As it would be read from a command line.
    #[cfg(test)]
    fn read(arguments: &[&str]) -> Amount {
        Amount::parse_from(["torture"].iter().chain(arguments))
    }

    fn faults(&self) -> Faults {
        if self.faults { Faults::On } else { Faults::Off }
    }
}

/// A count of at least `least`, and bounded.
fn count(least: u64) -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser;
    let range = clap::value_parser!(u64).range(least..=100_000);
    range.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// As many machines as there may be.
fn machines() -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser;
    let range = clap::value_parser!(u64).range(machines::MACHINES);
    range.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}

/// Whether the binary under torture checks leases before it stores (rule 1 of `docs/guarantees.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseCheck {
    /// As it is shipped.
    Kept,
    /// Left out in a build that is only for this.
    LeftOut,
}

impl LeaseCheck {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            LeaseCheck::Kept => "checked",
            LeaseCheck::LeftOut => "not checked",
        }
    }
}

fn main() -> ExitCode {
    exit_code(run(&Amount::parse()))
}

/// Tortures, and prints what was found.
///
/// # Errors
/// Wrong answers; or, without the lease check, none; or what kept the run from showing anything.
pub fn run(amount: &Amount) -> Result<(), String> {
    if amount.short {
        return short(amount);
    }
    if let Some(comparisons) = amount.audited {
        if amount.without_lease_check {
            if amount.database.is_some() {
                return Err("torture: --audited --without-lease-check has no database".to_owned());
            }
            return audited::found_out(amount, audited::FOUND_WITHIN)
                .map(|line| println!("{line}"));
        }
        return audited::torture(amount, comparisons);
    }
    if let Some(machines) = amount.machines {
        let figures = machines::torture(amount, machines, WRONG_MAX)?;
        print!("{}", figures.table());
        return figures.verdict();
    }
    let lease_check =
        if amount.without_lease_check { LeaseCheck::LeftOut } else { LeaseCheck::Kept };
    if let Some(kind) = amount.database {
        let line = match (lease_check, amount.writes_per_second) {
            (LeaseCheck::LeftOut, Rate::Max) => found_in_rows(amount, kind),
            _ => rows::torture(amount, kind, lease_check, WRONG_MAX),
        };
        println!("{}", line?);
        return Ok(());
    }
    let figures = match amount.beside {
        None => vec![torture(amount, lease_check, WRONG_MAX)?],
        Some(Other::Varnish) => {
            let amount = Amount { by: By::Keys, ..amount.clone() };
            vec![torture(&amount, lease_check, WRONG_MAX)?, beside::varnish(&amount)?]
        }
    };
    for one in &figures {
        println!("{}", one.table());
    }
    if amount.beside.is_some() {
        println!("{}", report::side_by_side(&figures));
    }
    if let Some(path) = &amount.json {
        let all: Vec<Value> = figures.iter().map(Figures::json).collect();
        let text = match all.as_slice() {
            [only] => format!("{only:#}\n"),
            _ => format!("{:#}\n", Value::from(all)),
        };
        fs::write(path, text).map_err(|error| format!("torture: {}: {error}", path.display()))?;
    }
    // A fault of another cache is no failure of this run.
    figures.first().map_or(Ok(()), Figures::verdict)
}

/// Both, in seconds: nothing is found in any way, and it would have been found.
fn short(amount: &Amount) -> Result<(), String> {
    let amount = Amount { writes_per_second: SHORT_RATE, ..amount.clone() };
    for (by, seconds) in SHORT {
        let whole = Amount { seconds, by, faults: true, ..amount.clone() };
        let mut figures = torture(&whole, LeaseCheck::Kept, WRONG_MAX)?;
        if figures.has_met_too_little() {
            let longer = Amount { seconds: seconds * SHORT_LONGER, ..whole };
            figures = torture(&longer, LeaseCheck::Kept, WRONG_MAX)?;
        }
        match figures.verdict() {
            Ok(()) => println!("{}", figures.line()),
            Err(error) => {
                print!("{}", figures.table());
                return Err(error);
            }
        }
    }
    let rows = Amount { seconds: SHORT_ROWS_SECONDS, faults: true, ..amount.clone() };
    println!("{}", rows::torture(&rows, Kind::Mariadb, LeaseCheck::Kept, WRONG_MAX)?);
    let statements = Amount { footprints: true, ..rows };
    println!("{}", rows::torture(&statements, Kind::Mariadb, LeaseCheck::Kept, WRONG_MAX)?);
    let other = Amount { seconds: SHORT_FOUND_SECONDS, faults: false, ..statements };
    println!("{}", found_in_rows(&other, Kind::Mariadb)?);
    short_machines(&amount)?;
    let other = Amount { seconds: SHORT_FOUND_SECONDS, faults: false, ..amount };
    let figures = torture(&other, LeaseCheck::LeftOut, 1)?;
    figures.verdict()?;
    println!(
        "torture: without the lease check the first outdated answer came after {:.2} s",
        figures.first_wrong_seconds.unwrap_or(figures.seconds)
    );
    println!("{}", audited::found_out(&other, audited::FOUND_WITHIN_BUSY)?);
    Ok(())
}

/// Several machines: nothing is found, and it would have been found.
fn short_machines(amount: &Amount) -> Result<(), String> {
    let all = Amount { seconds: SHORT_MACHINES_SECONDS, ..amount.clone() };
    let all = Amount { writes_per_second: Rate::Max, seed: machines::fault::SHORT_SEED, ..all };
    let figures = machines::torture(&all, SHORT_MACHINES, WRONG_MAX)?;
    figures.verdict().inspect_err(|_| print!("{}", figures.table()))?;
    println!("{}", figures.line());
    let other = Amount { seconds: SHORT_FOUND_SECONDS, without_wait: true, ..all };
    let figures = machines::torture(&other, SHORT_MACHINES, 1)?;
    figures.verdict()?;
    println!(
        "torture: without the wait the first outdated answer came after {:.2} s",
        figures.first_wrong_seconds.unwrap_or(figures.seconds)
    );
    Ok(())
}

/// Changes in a database, without the lease check: until the first outdated page.
fn found_in_rows(amount: &Amount, kind: Kind) -> Result<String, String> {
    let slowly = Amount { writes_per_second: ROWS_FOUND_RATE, ..amount.clone() };
    rows::torture(&slowly, kind, LeaseCheck::LeftOut, 1)
}

fn binary(lease_check: LeaseCheck) -> Result<PathBuf, String> {
    if lease_check == LeaseCheck::Kept {
        return root::pagewell(Profile::Dev);
    }
    let built = root::tested()?;
    let script = root::target().join("pagewell-without-lease-check");
    let text = format!("#!/bin/sh\nPAGEWELL_LEASE_CHECK=off exec '{}' \"$@\"\n", built.display());
    harness::write_script(&script, &text).map_err(system)?;
    Ok(script)
}

/// Pagewell's configuration: every tenth hit is audited, so that the run shows more.
fn settings(by: By) -> String {
    let soft = match by {
        By::Soft => format!("[cache]\nsoft_for = \"{}s\"\n", site::SOFT_FOR.as_secs()),
        _ => String::new(),
    };
    format!("audit = \"1 in 10\"\n{soft}")
}

/// One run, which ends early after so many wrong answers.
fn torture(amount: &Amount, lease_check: LeaseCheck, enough: u64) -> Result<Figures, String> {
    let binary = binary(lease_check)?;
    let faults = amount.faults();
    let site = Arc::new(Site::new(amount.seed, amount.items, amount.pages).by(amount.by));
    let origin = Origin::start(&site, amount.seed, faults).map_err(system)?;
    let ports = (Port::take().map_err(system)?, Port::take().map_err(system)?);
    let settings = settings(amount.by);
    let mut pagewell = CountedPagewell::start(&binary, &origin, &ports, &settings)?;
    let servers = (ports.0.address(), ports.1.address());
    let time = Duration::from_secs(amount.seconds);
    let run = Run::new(site, faults, amount.seed, servers, time, Some(enough));
    let played = play(amount, &run, || disturb(&run, &origin, &mut pagewell))?;
    pagewell.wait_idle()?;
    pagewell.take_counters()?;
    if lease_check == LeaseCheck::Kept {
        pagewell.check_audit()?;
    }
    let (counters, restarts) = (pagewell.counters.clone(), pagewell.restarts());
    Ok(Figures::of("pagewell", amount, lease_check, &run, played, &origin, counters, restarts))
}

fn system(error: impl std::fmt::Display) -> String {
    format!("torture: {error}")
}

/// The counts of readers and writers, how often the origin refused, and how long it took.
struct Played {
    seen: reader::AnswerCounts,
    done: writer::Done,
    refusals: u64,
    seconds: f64,
}

/// Readers and writers, until the run is over; `meanwhile` returns how often the origin refused.
fn play(
    amount: &Amount,
    run: &Run,
    meanwhile: impl FnOnce() -> Result<u64, String>,
) -> Result<Played, String> {
    let rate = amount.writes_per_second;
    let (seen, done, refusals) = thread::scope(|scope| {
        let (mut readers, mut writers) = (Players::new(scope), Players::new(scope));
        readers.add_all("a reader", amount.readers, |number| reader::read(run, number));
        let write = |number| writer::write(run, number, amount.writers, rate);
        writers.add_all("a writer", amount.writers, write);
        let refusals = meanwhile();
        let (mut seen, mut done) = (reader::AnswerCounts::default(), writer::Done::default());
        readers.join().map_err(system)?.iter().for_each(|one| seen.add(one));
        writers.join().map_err(system)?.iter().for_each(|one| done.add(one));
        Ok::<_, String>((seen, done, refusals?))
    })?;
    let seconds = seconds(run.micros());
    Ok(Played { seen, done, refusals, seconds })
}

/// Waits for the end of the run; with faults, refuses and kills meanwhile. Returns how often the
/// origin refused.
fn disturb(run: &Run, origin: &Origin, pagewell: &mut CountedPagewell<'_>) -> Result<u64, String> {
    if run.faults == Faults::Off {
        run.wait_until(u64::MAX);
        return Ok(0);
    }
    let (mut refuse_at, mut kill_at, mut refusals) = (REFUSE.0, KILL.0, 0);
    loop {
        run.wait_until(refuse_at.min(kill_at));
        if run.is_over() {
            return Ok(refusals);
        }
        if refuse_at <= kill_at {
            origin.refuse_for(REFUSE_FOR);
            refusals += 1;
            refuse_at += REFUSE.1;
        } else {
            pagewell.restart(run)?;
            kill_at += KILL.1;
        }
    }
}
