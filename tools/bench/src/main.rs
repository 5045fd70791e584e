//! `cargo measure NAME …`: figures, beside those of other servers in the same run.
//!
//! A case measures one thing, or several; it prints tables as the manual has them, and leaves them, all
//! figures as JSON and plots in a directory (`target/bench`). Cases share the floor (a bare epoll loop),
//! the rivals, the figures (medians, spread, ratios round by round), and the rule that what is measured
//! is verified first: a fast wrong answer does not count. `flush`, `database` and `instructions` are
//! benchmarks with options of their own.

mod alone;
mod cases;
mod compare;
mod crawl;
pub mod database;
pub mod figures;
pub mod floor;
pub mod flush;
mod footprints;
pub mod instructions;
mod miss;
mod pages;
mod plot;
mod redirects;
pub mod rivals;
mod secure;
mod small;

use cases::Case;
use clap::Parser;
use harness::root::{self, Profile};
use harness::{StartError, machine};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The cases to measure, and how much.
#[derive(Debug, Parser)]
#[command(name = "cargo measure", about = "Measures, beside other servers")]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub struct Bench {
    /// Benchmarks with options of their own.
    #[command(subcommand)]
    special: Option<Special>,
    /// The cases
    #[arg(value_enum, value_name = "CASE")]
    cases: Vec<Case>,
    #[command(flatten)]
    amount: Amount,
}

/// Benchmarks with options of their own.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Special {
    /// The cost of flushing a whole site under load, beside nginx's fastcgi_cache
    Flush(flush::Amount),
    /// Visitors of a site that is crawled, beside nginx with limit_req and Varnish with vsthrottle
    Crawl(crawl::CrawlAmount),
    /// How soon changed rows drop their pages, and how many can be followed
    Database(database::Amount),
    /// How long it takes to find the statements that a changed row touches, and their memory
    Footprints(footprints::PageCount),
    /// How long redirect files take to read, and to search for redirects that never end
    Redirects(redirects::LineCount),
    /// How many instructions a hit takes; needs no quiet machine
    Instructions(instructions::Amount),
    /// Crawls a server, for `crawl`
    #[command(hide = true)]
    Crawler(crawl::CrawlOrder),
    /// Serves prebuilt answers from a bare epoll loop: the floor of the benchmarks
    #[command(hide = true)]
    Floor {
        /// The directory of the pages
        files: PathBuf,
    },
}

/// How much is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Amount {
    /// How many rounds; each asks every server in turn
    #[arg(long, default_value_t = 12, value_parser = rounds)]
    rounds: usize,
    /// How many milliseconds each server is asked in a round
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    slice_ms: u64,
    /// About how many seconds a case with two servers takes, instead of --rounds
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600), conflicts_with = "rounds")]
    seconds: Option<u64>,
    /// A few short rounds and small numbers: to try it, not for figures
    #[arg(long)]
    short: bool,
    /// Measure a Pagewell that is built as the tests do: to try it, not for figures
    #[arg(long)]
    dev: bool,
    /// Where tables, figures and plots go [default: target/bench]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Amount {
    fn slice(&self) -> Duration {
        Duration::from_millis(self.slice_ms)
    }

    /// About as many requests as a server answers in a slice over TLS, beside h2load on the same core: so many that
    /// handshakes weigh little.
    fn requests(&self) -> u64 {
        self.slice_ms * 40
    }

    fn dir(&self) -> &Path {
        self.out.as_deref().unwrap_or(Path::new("target/bench"))
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds) if (1..=1000).contains(&rounds) => Ok(rounds),
        _ => Err("a number from 1 to 1000".into()),
    }
}

/// The result of a case: its name, the table, and the figures.
pub struct CaseResult {
    name: String,
    text: String,
    figures: Value,
}

fn main() -> ExitCode {
    harness::stand::exit_code(run(Bench::parse()))
}

/// Measures what was asked for.
///
/// # Errors
/// A server that did not start, an answer that is wrong, no case.
pub fn run(bench: Bench) -> Result<(), String> {
    match bench.special {
        Some(Special::Flush(amount)) => return flush::run(amount),
        Some(Special::Crawl(amount)) => return crawl::run(&amount),
        Some(Special::Database(amount)) => return database::run(&amount),
        Some(Special::Footprints(amount)) => return footprints::run(&amount),
        Some(Special::Redirects(amount)) => return redirects::run(&amount),
        Some(Special::Instructions(amount)) => return instructions::run(amount),
        Some(Special::Crawler(order)) => return crawl::run_crawler(&order),
        Some(Special::Floor { files }) => return rivals::serve_floor(&files),
        None => {}
    }
    let cases = Case::chosen(&bench.cases);
    if cases.is_empty() {
        return Err("bench: which? cargo measure --help lists the cases; `all` means each".into());
    }
    let mut amount = bench.amount;
    if let Some(seconds) = amount.seconds {
        let rounds = seconds * 1000 / (2 * amount.slice_ms);
        amount.rounds = usize::try_from(rounds).unwrap_or(usize::MAX).clamp(1, 1000);
    }
    if amount.short {
        amount.rounds = amount.rounds.min(2);
        amount.slice_ms = amount.slice_ms.min(200);
    }
    amount.out.get_or_insert_with(|| root::target().join("bench"));
    if let Some(load) = others_load() {
        eprintln!("bench: the machine is busy (load {load}): the figures will be uncertain");
    }
    let binary = root::pagewell(if amount.dev { Profile::Dev } else { Profile::Release })?;
    let mut tables = String::new();
    for case in cases {
        let mut all = serde_json::Map::new();
        for CaseResult { name, text, figures } in case.run(&amount, &binary)? {
            println!("{text}");
            tables.push_str(&text);
            tables.push('\n');
            all.insert(name, figures);
        }
        let figures = json!({ "machine": machine(), "cases": all });
        write_in(amount.dir(), &case.name(), &figures)?;
        save(&amount.dir().join("tables.md"), &tables)?;
    }
    println!("Tables, figures and plots: {}", amount.dir().display());
    Ok(())
}

/// The load that was there before, if it is one that disturbs.
fn others_load() -> Option<f64> {
    let averages = fs::read_to_string("/proc/loadavg").ok()?;
    averages.split(' ').next()?.parse().ok().filter(|load| *load > 0.7)
}

/// Writes a benchmark's figures where they belong; returns where.
///
/// # Errors
/// Those of the system.
pub fn write(name: &str, figures: &Value) -> Result<PathBuf, String> {
    write_in(&root::target().join("bench"), name, figures)
}

fn write_in(dir: &Path, name: &str, figures: &Value) -> Result<PathBuf, String> {
    let path = dir.join(format!("{name}.json"));
    save(&path, &format!("{figures:#}\n"))?;
    Ok(path)
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("bench: {}: {error}", path.display()))
}

/// The reason why a server did not start, in words.
fn error_text(error: StartError) -> String {
    format!("bench: {error}")
}
