//! `cargo xtask torture`: is any answer older than what had been acknowledged before it was asked for?
//!
//! The real binary, before an origin that knows the truth ([`site`]); writers that change what pages
//! are made from, in every way that there is ([`writer`]); readers that hold each answer against what
//! had been acknowledged when they sent their request ([`reader`], [`judge`]). With faults the origin
//! cuts answers and refuses, readers leave, and Pagewell is killed and started anew. Loopback only;
//! ends by itself. The same run against a binary whose store does not check leases must find outdated
//! answers: so it is known that it can.

mod chance;
mod judge;
mod origin;
mod port;
mod reader;
mod report;
mod run;
mod script;
mod site;
mod stamp;
mod writer;

use crate::root::{self, Profile};
use harness::{Deadline, Pagewell, StartError, StartReason, Wait};
use origin::Origin;
use port::Port;
use report::Figures;
use run::Run;
use script::Faults;
use site::Site;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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
/// How often a start is tried that finds its port taken.
const STARTS_MAX: usize = 5;
/// The short form: how long the whole binary is tortured, and the other at most, in seconds.
const SHORT_SECONDS: (u64, u64) = (5, 20);
/// How many changes a second the short form makes: enough to be in every render's way, and few enough
/// for pages to live.
const SHORT_RATE: Rate = Rate::PerSecond(400);
/// Many wrong answers are enough.
const WRONG_MAX: u64 = 100_000;
/// Pagewell's counters that only grow, so that those of all its lives can be added up.
const GROWING: [&str; 13] = [
    "hits",
    "stale_hits",
    "renders",
    "forwards",
    "collapsed",
    "joins_refused",
    "stored",
    "not_stored",
    "store_refused",
    "validated",
    "invalidations",
    "origin_failures",
    "dropped",
];
/// Those that say what is going on now: nothing, once nobody asks.
const LEFT: [&str; 4] = ["followers", "leases", "origin_places_taken", "origin_queue"];
/// How long what is under way at the end of a run may take.
const IDLE_WITHIN: Duration = Duration::from_secs(15);
/// How often somebody who waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much torture.
#[derive(Debug, Clone, clap::Args)]
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
    /// Cut and refuse at the origin, leave as a reader, kill Pagewell and start it anew
    #[arg(long)]
    faults: bool,
    /// Build and torture a binary that does not check leases; it must be found out
    #[arg(long)]
    without_lease_check: bool,
    /// A few seconds with everything, then without the lease check until that is found out
    #[arg(long, conflicts_with_all = ["seconds", "writes_per_second", "without_lease_check", "json"])]
    short: bool,
    /// The seed of the site and of all draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write all figures to this file, too
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Amount {
    /// As it would be read from a command line.
    #[cfg(test)]
    fn read(arguments: &[&str]) -> Amount {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            amount: Amount,
        }
        let words = ["torture"].iter().chain(arguments);
        <Line as clap::Parser>::parse_from(words).amount
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

/// Whether the binary under torture checks leases before it stores (rule 1 of `docs/freshness.md`).
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

/// Tortures, and prints what was found.
///
/// # Errors
/// Wrong answers; or, without the lease check, none; or what kept the run from showing anything.
pub fn run(amount: &Amount) -> Result<(), String> {
    if amount.short {
        return short(amount);
    }
    let lease_check =
        if amount.without_lease_check { LeaseCheck::LeftOut } else { LeaseCheck::Kept };
    let figures = torture(amount, lease_check, WRONG_MAX)?;
    print!("{}", figures.table());
    if let Some(path) = &amount.json {
        let text = format!("{:#}\n", figures.json());
        fs::write(path, text).map_err(|error| format!("torture: {}: {error}", path.display()))?;
    }
    figures.verdict()
}

/// Both, in seconds: nothing is found, and it would have been found.
fn short(amount: &Amount) -> Result<(), String> {
    let amount = Amount { writes_per_second: SHORT_RATE, ..amount.clone() };
    let whole = Amount { seconds: SHORT_SECONDS.0, faults: true, ..amount.clone() };
    let figures = torture(&whole, LeaseCheck::Kept, WRONG_MAX)?;
    print!("{}", figures.table());
    figures.verdict()?;
    let other = Amount { seconds: SHORT_SECONDS.1, faults: false, ..amount };
    let figures = torture(&other, LeaseCheck::LeftOut, 1)?;
    figures.verdict()?;
    println!(
        "\ntorture: without the lease check the first outdated answer came after {:.2} s",
        figures.first_wrong_seconds.unwrap_or(figures.seconds)
    );
    Ok(())
}

fn binary(lease_check: LeaseCheck) -> Result<PathBuf, String> {
    if lease_check == LeaseCheck::Kept {
        return root::pagewell(Profile::Dev);
    }
    let target = root::target().join("without-lease-check");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root::repository()).args(["build", "--quiet", "--package", "pagewell"]);
    command.args(["--features", "without-lease-check", "--target-dir"]).arg(&target);
    let status = command.status().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !status.success() {
        return Err("torture: pagewell does not build without its lease check".to_owned());
    }
    Ok(target.join("debug").join("pagewell"))
}

/// One run, which ends early after so many wrong answers.
fn torture(amount: &Amount, lease_check: LeaseCheck, enough: u64) -> Result<Figures, String> {
    let binary = binary(lease_check)?;
    let faults = amount.faults();
    let site = Arc::new(Site::new(amount.seed, amount.items, amount.pages));
    let system = |error: std::io::Error| format!("torture: {error}");
    let origin = Origin::start(&site, amount.seed, faults).map_err(system)?;
    let ports = (Port::take().map_err(system)?, Port::take().map_err(system)?);
    let mut victim = Victim::start(&binary, &origin, &ports)?;
    let servers = (ports.0.address(), ports.1.address());
    let time = Duration::from_secs(amount.seconds);
    let run = Run::new(site, faults, amount.seed, servers, time, Some(enough));
    let run = &run;
    let (seen, done, refusals) = thread::scope(|scope| {
        let readers: Vec<_> = (0..amount.readers)
            .map(|number| scope.spawn(move || reader::read(run, number)))
            .collect();
        let rate = amount.writes_per_second;
        let writers: Vec<_> = (0..amount.writers)
            .map(|number| scope.spawn(move || writer::write(run, number, amount.writers, rate)))
            .collect();
        let refusals = disturb(run, &origin, &mut victim);
        let (mut seen, mut done) = (reader::Seen::default(), writer::Done::default());
        for reader in readers {
            seen.add(&reader.join().map_err(|_| "torture: a reader panicked")?);
        }
        for writer in writers {
            done.add(&writer.join().map_err(|_| "torture: a writer panicked")?);
        }
        Ok::<_, String>((seen, done, refusals?))
    })?;
    #[allow(clippy::cast_precision_loss, reason = "microseconds of a run stay below 2^52")]
    let seconds = run.micros() as f64 / 1e6;
    victim.wait_idle()?;
    victim.take_counters()?;
    Ok(Figures {
        amount: amount.clone(),
        lease_check,
        seconds,
        seen,
        done,
        counters: victim.counters,
        cut: origin.cut(),
        refusals,
        restarts: victim.restarts,
        silent: run.silent(),
        wrong: run.first_wrong(),
        first_wrong_seconds: run.first_wrong_seconds(),
    })
}

/// Waits for the end of the run; with faults, refuses and kills meanwhile. Returns how often the
/// origin refused.
fn disturb(run: &Run, origin: &Origin, victim: &mut Victim<'_>) -> Result<u64, String> {
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
            victim.restart(run)?;
            kill_at += KILL.1;
        }
    }
}

/// Pagewell, through all of its lives.
struct Victim<'a> {
    pagewell: Pagewell,
    binary: &'a Path,
    arguments: Vec<String>,
    counters: BTreeMap<&'static str, u64>,
    restarts: u64,
}

impl Victim<'_> {
    fn start<'a>(
        binary: &'a Path,
        origin: &Origin,
        ports: &(Port, Port),
    ) -> Result<Victim<'a>, String> {
        let origin = format!("http://{}", origin.address());
        let [listen, admin] = [&ports.0, &ports.1].map(|port| port.address().to_string());
        let arguments = [
            ["--origin", &origin],
            ["--listen", &listen],
            ["--admin", &admin],
            ["--memory", "64M"],
            ["--log", "warn"],
        ];
        let arguments: Vec<String> = arguments.concat().into_iter().map(str::to_owned).collect();
        let pagewell = Pagewell::start(binary, &arguments).map_err(told)?;
        let counters = BTreeMap::new();
        Ok(Victim { pagewell, binary, arguments, counters, restarts: 0 })
    }

    /// Kills it as a crash would, and starts it anew at the same addresses.
    fn restart(&mut self, run: &Run) -> Result<(), String> {
        self.take_counters()?;
        // Whoever has sent a request by now is cut off; the others wait.
        run.set_down(true);
        self.pagewell.kill();
        let mut tried = 0;
        self.pagewell = loop {
            tried += 1;
            match Pagewell::start(self.binary, &self.arguments) {
                Ok(pagewell) => break pagewell,
                Err(error) if error.reason == StartReason::PortTaken && tried < STARTS_MAX => {}
                Err(error) => return Err(told(error)),
            }
        };
        self.restarts += 1;
        run.set_down(false);
        Ok(())
    }

    /// Adds what this life has counted; a life that has ended by itself is an error.
    fn take_counters(&mut self) -> Result<(), String> {
        if let Wait::Ended(status) = self.pagewell.wait(Duration::ZERO) {
            let log = self.pagewell.log();
            return Err(format!("torture: pagewell has ended by itself, {status}\n{log}"));
        }
        let counters = self.counters_now()?;
        for name in GROWING {
            *self.counters.entry(name).or_default() += named(&counters, name)?;
        }
        Ok(())
    }

    fn counters_now(&self) -> Result<BTreeMap<String, u64>, String> {
        self.pagewell.stats().map_err(|error| format!("torture: {error}"))
    }

    /// Once nobody asks any more, no render, no lease and nobody who waits may be left.
    fn wait_idle(&self) -> Result<(), String> {
        let deadline = Deadline::after(IDLE_WITHIN);
        loop {
            let counters = self.counters_now()?;
            let mut left = Vec::new();
            for name in LEFT {
                match named(&counters, name)? {
                    0 => {}
                    count => left.push(format!("{count} {name}")),
                }
            }
            if left.is_empty() {
                return Ok(());
            }
            if deadline.passed() {
                let left = left.join(", ");
                return Err(format!("torture: {left} when nobody had asked for {IDLE_WITHIN:?}"));
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn named(counters: &BTreeMap<String, u64>, name: &str) -> Result<u64, String> {
    counters.get(name).copied().ok_or_else(|| format!("torture: pagewell has no counter {name}"))
}

fn told(error: StartError) -> String {
    format!("torture: {error}")
}
