//! `cargo soak`: what do honest visitors see while everything around them breaks?
//!
//! The real binary before a php-fpm of its own and a MariaDB, under the load of honest visitors and
//! writers throughout ([`clients`]), who know what is right. One fault after the other is put upon it
//! ([`phases`]): processes killed, a full disk, no descriptors, no memory, an origin that lies
//! ([`bad_origin`]), more than 24 kinds of hostile client at once ([`hostile`]), a [`crawl`]. No answer may be
//! outdated, somebody else's or cut short without saying so, in any of them; where a fault does not
//! touch what honest visitors need, none of them may fail either. `--sources` is another run: faults of
//! the databases that are followed, and of a cluster's stream ([`sources`]). Loopback only; ends by itself; ends
//! only what it has started.

mod bad_origin;
mod clients;
mod crawl;
mod faults;
mod hostile;
mod phases;
mod report;
mod site;
mod sources;
mod stand;
mod tally;

use clap::Parser;
use clients::SentValues;
use harness::root::{self, Profile};
use harness::stand::{Players, exit_code};
use harness::{Chance, Deadline};
use phases::Fault;
use site::Site;
use sources::SourceFault;
use stand::Stand;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tally::Tally;

/// How long each fault lasts in the short form, and in one round of the long one.
const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(40);
/// How many write.
const WRITERS: usize = 2;
/// The resident memory that Pagewell may have at the end: its budget, and the memory of a program with all
/// those connections.
const RESIDENT_MAX: u64 = 192 << 20;

/// How long the run takes, and with which faults.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "cargo soak",
    about = "Tests the responses to ordinary clients during faults and attacks, for an hour or --short"
)]
pub struct Amount {
    /// How many seconds: as many rounds of all faults as fit, one at least
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    seconds: u64,
    /// One short round, with Pagewell built as the tests do
    #[arg(long, conflicts_with = "seconds")]
    short: bool,
    /// How many honest visitors
    #[arg(long, default_value_t = 12, value_parser = visitors())]
    visitors: usize,
    /// These faults alone
    #[arg(long, value_enum)]
    only: Vec<Fault>,
    /// The matrix of faults of databases and of a cluster's stream alone, once
    #[arg(long, conflicts_with = "only")]
    sources: bool,
    /// These rows of the matrix alone
    #[arg(long, value_enum, requires = "sources")]
    row: Vec<SourceFault>,
    /// The seed of all draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the table to this file, too
    #[arg(long)]
    out: Option<PathBuf>,
}

/// A bounded number of them.
fn visitors() -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser;
    let range = clap::value_parser!(u64).range(1..=1_000);
    range.map(|count| usize::try_from(count).unwrap_or(1))
}

/// A run under way: the truth, and what was seen.
pub struct Run {
    /// Where visitors are served.
    address: SocketAddr,
    values: SentValues,
    seed: u64,
    /// The place of the fault of this moment in [`Fault::ALL`].
    fault: AtomicUsize,
    over: AtomicBool,
    tallies: Vec<Mutex<Tally>>,
}

impl Run {
    fn new(address: SocketAddr, seed: u64) -> Run {
        Run {
            address,
            values: SentValues::new(site::ITEMS),
            seed,
            fault: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            tallies: Fault::ALL.iter().map(|_| Mutex::default()).collect(),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(SeqCst)
    }

    /// The place of the fault that is on now.
    fn now(&self) -> usize {
        self.fault.load(SeqCst)
    }

    /// The answers during a fault, counted.
    fn tally(&self, fault: usize) -> MutexGuard<'_, Tally> {
        self.tallies[fault].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chance(&self, stream: usize) -> Chance {
        Chance::new(self.seed, stream as u64)
    }
}

fn main() -> ExitCode {
    exit_code(run(&Amount::parse()))
}

/// Soaks, and prints what honest visitors saw.
///
/// # Errors
/// A wrong answer; a failure where there should be none; or what kept the run from showing anything.
pub fn run(amount: &Amount) -> Result<(), String> {
    let profile = if amount.short { Profile::Dev } else { Profile::Release };
    let binary = root::pagewell(profile)?;
    if amount.sources {
        return sources::run(&binary, amount.short, &amount.row);
    }
    let mut site = Site::start()?;
    let mut stand = Stand::start(&binary, &site)?;
    let run = Run::new(site.ports.visitors.address(), amount.seed);
    clients::warm(&run)?;
    let rounds = thread::scope(|scope| {
        let (run, mut players) = (&run, Players::new(scope));
        players.add_all("an honest visitor", amount.visitors, |number| clients::visit(run, number));
        players.add_all("a writer", WRITERS, |number| clients::write(run, number));
        let rounds = rounds(amount, run, &mut site, &mut stand);
        run.over.store(true, SeqCst);
        players.join().map_err(|error| format!("soak: {error}"))?;
        rounds
    });
    let text = report::text(&run, amount.seed, &stand);
    print!("{text}");
    if let Some(path) = &amount.out {
        fs::write(path, &text).map_err(|error| format!("soak: {}: {error}", path.display()))?;
    }
    let rounds = rounds?;
    stand.wait_idle()?;
    let compared = stand.check_audit()?;
    let resident = stand.pagewell().rss_bytes();
    println!(
        "soak: {rounds} rounds; {compared} hits compared by the audit; Pagewell has {} MB at the end",
        resident >> 20
    );
    // With some faults alone, there may be no place at the origin for a comparison.
    if amount.only.is_empty() && compared == 0 {
        return Err("soak: the audit has compared nothing".to_owned());
    }
    if resident > RESIDENT_MAX {
        return Err(format!("soak: {resident} bytes are resident at the end"));
    }
    report::verdict(&run)
}

/// One round after the other; returns how many there were.
fn rounds(amount: &Amount, run: &Run, site: &mut Site, stand: &mut Stand) -> Result<u64, String> {
    let chosen = |fault: &Fault| amount.only.is_empty() || amount.only.contains(fault);
    let long = if amount.short { SHORT } else { LONG };
    let until = Deadline::after(Duration::from_secs(amount.seconds));
    let mut rounds = 0;
    while rounds == 0 || !(amount.short || until.passed()) {
        for (place, fault) in Fault::ALL.into_iter().enumerate().filter(|(_, one)| chosen(one)) {
            run.fault.store(place, SeqCst);
            let long = long.min(until.remaining().max(SHORT));
            eprintln!("soak: {}", fault.title());
            phases::suffer(fault, run, site, stand, long)
                .map_err(|error| format!("soak: {}: {error}", fault.title()))?;
            stand.check_alive()?;
            run.tally(place).rounds += 1;
        }
        rounds += 1;
    }
    Ok(rounds)
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
