//! `cargo measure crawl`: visitors of a site whose cold pages a crawler asks for, beside nginx with `limit_req` and
//! Varnish with `vsthrottle`, in one run.
//!
//! Each server gets the quiet site first, then the crawlers A, B, C and E. Everything is on loopback: the addresses
//! of clients come by the PROXY protocol. The goals are those of the decision on rationed misses; a table says which of
//! them are met. Load, servers and PHP share the machine, so the figures need one that is quiet.

mod clients;
mod connection;
mod figures;
mod servers;
mod site;

use clients::{CrawlRun, Crawler};
use figures::{PageKind, RunFigures};
use harness::root::{self, Profile};
use harness::{StartError, Stopwatch, machine};
use serde_json::{Value, json};
use servers::{Guard, Protection};
use site::CrawledSite;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How much is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct CrawlAmount {
    /// How many seconds each server is measured with each crawler, after a fifth to warm up
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// The crawler's requests each second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=2000))]
    rate: u64,
    /// The CPU time of a page, in milliseconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    render_ms: u32,
    /// Only Pagewell with `protect`, not its rivals
    #[arg(long)]
    alone: bool,
    /// Measure a Pagewell that is built as the tests do: to try it, not for figures
    #[arg(long)]
    dev: bool,
}

/// A server that does not answer for so long ends a request of [`fill`].
const PATIENCE: Duration = Duration::from_secs(10);
/// The further seconds of a run: the start of the server, stored articles, requests that wait at the end.
const START_SECONDS: u64 = 45;
/// Honest visitors: so many that they open twenty pages each second.
const VISITORS: u32 = 20 * clients::THINKING_MS as u32 / 1000;
/// Threads of the crawler, each with one request at a time: for 200 each second that are answered after 2 s.
const CRAWLERS: u32 = 400;
const STACK_BYTES: usize = 128 << 10;

/// Measures.
///
/// # Errors
/// A server that did not start.
pub fn run(amount: &CrawlAmount) -> Result<(), String> {
    let binary = root::pagewell(if amount.dev { Profile::Dev } else { Profile::Release })?;
    let site = CrawledSite::start(amount.render_ms)?;
    let servers = if amount.alone { 1 } else { Protection::ALL.len() };
    let runs = servers * Crawler::ALL.len();
    let minutes = (runs as u64 * (amount.seconds + START_SECONDS)).div_ceil(60);
    eprintln!("bench: {runs} runs of {} s, about {minutes} minutes", amount.seconds);
    let mut all = Vec::new();
    for kind in Protection::ALL {
        if amount.alone && kind != Protection::Pagewell {
            continue;
        }
        let measured = match with_server(kind, &binary, &site, amount) {
            Err(why) if kind == Protection::Varnish => {
                eprintln!(
                    "bench: {why}\nbench: scripts/setup bench installs Varnish; it is left out"
                );
                continue;
            }
            other => other?,
        };
        println!("{}", table(kind, &measured));
        let runs = measured.iter().map(
            |(crawler, figures)| json!({ "crawler": crawler.name(), "figures": figures.json() }),
        );
        all.push(json!({ "server": kind.name(), "runs": runs.collect::<Vec<Value>>() }));
    }
    let figures = json!({ "machine": machine(), "seconds": amount.seconds, "servers": all });
    let path = super::write("crawl", &figures)?;
    println!("Figures: {}", path.display());
    Ok(())
}

type ServerRuns = Vec<(Crawler, RunFigures)>;

fn with_server(
    kind: Protection,
    binary: &Path,
    site: &CrawledSite,
    amount: &CrawlAmount,
) -> Result<ServerRuns, String> {
    let mut measured = Vec::new();
    for crawler in Crawler::ALL {
        // An empty cache each time.
        let guard = Guard::start(kind, binary, site)?;
        eprintln!("bench: {}, crawler {}", kind.name(), crawler.name());
        measured.push((crawler, one_run(&guard, crawler, site, amount)));
    }
    Ok(measured)
}

fn one_run(
    guard: &Guard,
    crawler: Crawler,
    site: &CrawledSite,
    amount: &CrawlAmount,
) -> RunFigures {
    fill(guard);
    let lasts = Duration::from_secs(amount.seconds);
    let run = CrawlRun {
        server: guard.address(),
        begun: Stopwatch::start(),
        lasts,
        figures: Mutex::default(),
        number: AtomicU64::new(0),
        is_measured: AtomicBool::new(false),
    };
    let (sent, begins) = (AtomicU64::new(0), lasts / 10);
    let mut cpu = 0.0;
    std::thread::scope(|scope| {
        let thread = || std::thread::Builder::new().stack_size(STACK_BYTES);
        let (run, sent) = (&run, &sent);
        for place in 0..VISITORS {
            let visit = move || clients::visit(run, place);
            thread().spawn_scoped(scope, visit).expect("a thread");
        }
        let crawlers = if crawler == Crawler::None { 0 } else { CRAWLERS };
        for _ in 0..crawlers {
            let crawl = move || clients::crawl(run, crawler, amount.rate, begins, sent);
            thread().spawn_scoped(scope, crawl).expect("a thread");
        }
        std::thread::sleep(lasts / 5);
        let before = (site.cpu_seconds(), Stopwatch::start());
        run.is_measured.store(true, Relaxed);
        std::thread::sleep(lasts.saturating_sub(run.begun.elapsed()));
        run.is_measured.store(false, Relaxed);
        cpu = (site.cpu_seconds() - before.0) / before.1.elapsed().as_secs_f64();
    });
    let mut figures = run.figures.into_inner().unwrap_or_default();
    (figures.php_cores, figures.seconds) = (cpu, lasts.as_secs_f64() * 0.8);
    figures
}

/// Stores the articles and filters that visitors read. Each is asked for by another client, so that no server limits
/// them.
fn fill(guard: &Guard) {
    let (next, server) = (AtomicU32::new(0), guard.address());
    let store = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= site::ARTICLES + site::FILTERS {
                return;
            }
            let target = match number.checked_sub(site::ARTICLES) {
                None => format!("/article/{number}/"),
                Some(filter) => site::usual_filter(filter as usize),
            };
            let first = u32::from(std::net::Ipv4Addr::new(10, 255, 0, 0));
            let client = std::net::Ipv4Addr::from_bits(first + number);
            let open = connection::ProxiedConnection::open(server, client, PATIENCE);
            let _ = open.and_then(|mut connection| connection.send(&target, "", None));
        }
    };
    std::thread::scope(|scope| {
        (0..site::CHILDREN).for_each(|_| drop(scope.spawn(store)));
    });
}

fn table(kind: Protection, measured: &ServerRuns) -> String {
    let mut text = format!(
        "### {}\n\n| Crawler | Page views lost | in the crawled group | Misses deferred | Signed in, p95 | All views, \
         p95 | Files, p99 | PHP cores | Crawler's pages/s |\n|---|---|---|---|---|---|---|---|---|\n",
        kind.name()
    );
    for (crawler, figures) in measured {
        let [session, all, files] = figures.times_ms();
        let _ = writeln!(
            text,
            "| {} | {:.1} % | {:.1} % | {:.1} % | {session:.0} ms | {all:.0} ms | {files:.1} ms | {:.2} | {:.1} |",
            crawler.name(),
            figures.lost_percent(|kind| kind != PageKind::Crawled),
            figures.lost_percent(|kind| kind == PageKind::Crawled),
            figures.deferred_percent(),
            figures.php_cores,
            figures.crawler_per_second(),
        );
    }
    if kind == Protection::Pagewell {
        let goals = goals(measured);
        let missed = goals.iter().filter(|goal| !goal.is_met()).count();
        text.push_str("\n| Crawler | Goal | Measured | At most | |\n|---|---|---|---|---|\n");
        for goal in &goals {
            let met = if goal.is_met() { "met" } else { "**missed**" };
            let Goal { crawler, name, value, most } = goal;
            let _ =
                writeln!(text, "| {} | {name} | {value:.1} | {most:.1} | {met} |", crawler.name());
        }
        let _ = writeln!(text, "\n{missed} of {} goals missed.", goals.len());
    }
    text
}

/// A figure that a run has to keep below.
struct Goal {
    crawler: Crawler,
    name: &'static str,
    value: f64,
    most: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.value <= self.most
    }
}

/// The goals of all crawlers.
fn goals(measured: &ServerRuns) -> Vec<Goal> {
    let Some((_, quiet)) = measured.iter().find(|(crawler, _)| *crawler == Crawler::None) else {
        return Vec::new();
    };
    let before = quiet.times_ms();
    let crawled = measured.iter().filter(|(crawler, _)| *crawler != Crawler::None);
    let of_run = |crawler: Crawler, figures: &RunFigures| {
        let is_adapted = matches!(crawler, Crawler::C | Crawler::E);
        let [session, all, files] =
            [0, 1, 2].map(|at| figures.times_ms()[at] / before[at].max(0.001));
        let (session_most, all_most) = if is_adapted { (2.0, 3.5) } else { (1.4, 1.8) };
        let lost = figures.lost_percent(|kind| !is_adapted || kind != PageKind::Crawled);
        let deferred_most = if is_adapted { 25.0 } else { 6.0 };
        let mut goals = vec![
            ("page views lost, %", lost, 0.0),
            ("misses deferred, %", figures.deferred_percent(), deferred_most),
            ("signed in, p95, times the quiet site", session, session_most),
            ("all views, p95, times the quiet site", all, all_most),
            ("files, p99, times the quiet site", files, 1.2),
        ];
        if !is_adapted {
            goals.push(("PHP cores", figures.php_cores, 1.4));
            goals.push(("20 pages/s less the crawler's", 20.0 - figures.crawler_per_second(), 0.0));
        }
        let goals = goals.into_iter();
        goals.map(move |(name, value, most)| Goal { crawler, name, value, most })
    };
    crawled.flat_map(|(crawler, figures)| of_run(*crawler, figures)).collect()
}

fn error_text(error: StartError) -> String {
    super::error_text(error)
}

fn system(error: std::io::Error) -> String {
    format!("bench: {error}")
}
