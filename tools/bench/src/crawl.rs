//! `cargo measure crawl`: visitors of a site whose cold pages a crawler asks for, beside nginx with `limit_req` and
//! Varnish with `vsthrottle`, in one run.
//!
//! Each server gets the quiet site first, then the crawlers A, B, C and E. Everything is on loopback: the addresses
//! of clients come by the PROXY protocol. The goals are those of the decision on rationed misses. For Pagewell, a table
//! says by how much a goal is missed; the last one says for each server which goals it meets with which crawler.
//!
//! Load, servers and PHP share the machine, so the figures need one that is quiet. Priorities (`priority.rs`) keep them
//! apart, for all servers alike.

mod clients;
mod connection;
mod crawler;
mod figures;
mod goals;
mod priority;
mod servers;
mod site;

use clients::{CrawlRun, PATIENCE, RunTime};
pub use crawler::{CrawlOrder, run as run_crawler};
use crawler::{Crawler, CrawlerProcess};
use figures::{PageKind, RunFigures, percentile};
use goals::RenderTimes;
use harness::root::{self, Profile};
use harness::{Stopwatch, machine};
use serde_json::{Value, json};
use servers::{Guard, Protection};
use site::CrawledSite;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
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

/// The further seconds of a run: the start of PHP and of the server, stored articles.
const START_SECONDS: u64 = 15;
/// The pages of each client of [`render_times`].
const RENDERS_MEASURED: u32 = 12;
/// Honest visitors: so many that they open twenty pages each second.
const VISITORS: u32 = 20 * clients::THINKING_MS as u32 / 1000;
const STACK_BYTES: usize = 128 << 10;

/// Measures.
///
/// # Errors
/// A server that did not start.
pub fn run(amount: &CrawlAmount) -> Result<(), String> {
    let binary = root::pagewell(if amount.dev { Profile::Dev } else { Profile::Release })?;
    let mut site = CrawledSite::start(amount.render_ms)?;
    let servers = if amount.alone { 1 } else { Protection::ALL.len() };
    let runs = servers * Crawler::ALL.len();
    let minutes = (runs as u64 * (amount.seconds + START_SECONDS)).div_ceil(60);
    eprintln!("bench: {runs} runs of {} s, about {minutes} minutes", amount.seconds);
    let mut all: Vec<(Protection, ServerRuns)> = Vec::new();
    let mut renders = RenderTimes::default();
    for kind in Protection::ALL {
        if amount.alone && kind != Protection::Pagewell {
            continue;
        }
        let measured = match with_server(kind, &binary, &mut site, amount, &mut renders) {
            Err(why) if kind == Protection::Varnish => {
                eprintln!(
                    "bench: {why}\nbench: scripts/setup bench installs Varnish; it is left out"
                );
                all.push((kind, Vec::new()));
                continue;
            }
            other => other?,
        };
        println!("{}", table(kind, &measured));
        if kind == Protection::Pagewell {
            println!("{}", goals::text(&measured, &renders));
        }
        all.push((kind, measured));
    }
    let servers = all.iter().map(|(kind, measured)| {
        let runs = measured.iter().map(
            |(crawler, figures)| json!({ "crawler": crawler.name(), "figures": figures.json() }),
        );
        let runs = runs.collect::<Vec<Value>>();
        json!({ "server": kind.name(), "runs": runs, "goals": goals::json(measured, &renders) })
    });
    let figures = json!({
        "machine": machine(),
        "seconds": amount.seconds,
        "renders_ms": renders.0,
        "servers": servers.collect::<Vec<Value>>(),
    });
    println!("{}", goals::summary(&all, &renders));
    let path = super::write("crawl", &figures)?;
    println!("Figures: {}", path.display());
    Ok(())
}

/// The runs of one server; none if it is not installed.
type ServerRuns = Vec<(Crawler, RunFigures)>;

fn with_server(
    kind: Protection,
    binary: &Path,
    site: &mut CrawledSite,
    amount: &CrawlAmount,
    renders: &mut RenderTimes,
) -> Result<ServerRuns, String> {
    let mut measured = Vec::new();
    for crawler in Crawler::ALL {
        // An empty cache each time, and no requests of the run before.
        site.start_php_again()?;
        let guard = Guard::start(kind, binary, site)?;
        eprintln!("bench: {}, crawler {}", kind.name(), crawler.name());
        fill(&guard);
        if (kind, crawler) == (Protection::Pagewell, Crawler::None) {
            *renders = render_times(&guard)?;
        }
        measured.push((crawler, one_run(&guard, crawler, site, amount)?));
    }
    Ok(measured)
}

fn one_run(
    guard: &Guard,
    crawler: Crawler,
    site: &CrawledSite,
    amount: &CrawlAmount,
) -> Result<RunFigures, String> {
    let lasts = Duration::from_secs(amount.seconds);
    let CrawlAmount { rate, seconds, .. } = *amount;
    let order = CrawlOrder { server: guard.address(), crawler, rate, seconds };
    let crawl = (crawler != Crawler::None).then(|| CrawlerProcess::start(&order)).transpose()?;
    let run = CrawlRun {
        server: guard.address(),
        time: RunTime::start(lasts),
        figures: Mutex::default(),
        number: AtomicU64::new(0),
    };
    let mut cpu = 0.0;
    std::thread::scope(|scope| {
        let thread = || std::thread::Builder::new().stack_size(STACK_BYTES);
        let run = &run;
        for place in 0..VISITORS {
            let visit = move || clients::visit(run, place);
            thread().spawn_scoped(scope, visit).expect("a thread");
        }
        run.time.sleep(run.time.warm_up());
        let before = (site.cpu_seconds(), Stopwatch::start());
        run.time.sleep(lasts);
        cpu = (site.cpu_seconds() - before.0) / before.1.elapsed().as_secs_f64();
    });
    let mut figures = run.figures.into_inner().unwrap_or_default();
    (figures.php_cores, figures.seconds) = (cpu, lasts.as_secs_f64() * 0.8);
    figures.crawler = crawl.map(CrawlerProcess::counts).transpose()?.unwrap_or_default();
    Ok(figures)
}

/// How long a render takes beside others: as many clients as there are renders at a time, each with one cold page after
/// the other.
fn render_times(guard: &Guard) -> Result<RenderTimes, String> {
    let (server, next) = (guard.address(), AtomicU32::new(0));
    let cold_page = || -> io::Result<Duration> {
        let number = next.fetch_add(1, Relaxed);
        let first = u32::from(std::net::Ipv4Addr::new(10, 254, 0, 0));
        let client = std::net::Ipv4Addr::from_bits(first + number);
        let begun = Stopwatch::start();
        let mut connection = connection::ProxiedConnection::open(server, client, PATIENCE)?;
        let answer = connection.send(&format!("/measured/{number}/"), "", None)?;
        if answer.status == 200 { Ok(begun.elapsed()) } else { Err(io::ErrorKind::Other.into()) }
    };
    let mut times = RenderTimes::default();
    for (others, time) in times.0.iter_mut().enumerate() {
        let (took, failed) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let client = || {
            priority::set_nice(priority::VISITOR_NICE);
            for _ in 0..RENDERS_MEASURED {
                match cold_page() {
                    Ok(page) => took.lock().unwrap_or_else(PoisonError::into_inner).push(page),
                    Err(_) => failed.store(true, Relaxed),
                }
            }
        };
        std::thread::scope(|scope| (0..=others).for_each(|_| drop(scope.spawn(client))));
        if failed.into_inner() {
            return Err("bench: a page of the quiet site did not come".into());
        }
        *time = percentile(took.into_inner().unwrap_or_default(), 50);
    }
    Ok(times)
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
        "### {}\n\n| Crawler | Page views lost | in the crawled group | Cut off | Misses deferred | Signed in, p95 (of) | All \
         views, p95 | Files, p99 | PHP cores | Crawler's pages/s (of) |\n|---|---|---|---|---|---|---|---|---|---|\n",
        kind.name()
    );
    for (crawler, figures) in measured {
        let [session, all, files] = figures.times_ms();
        let (came, requested) = figures.crawler_per_second();
        let _ = writeln!(
            text,
            "| {} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {session:.0} ms ({}) | {all:.0} ms | {files:.1} ms | {:.2} | \
             {came:.1} ({requested:.0}) |",
            crawler.name(),
            figures.lost_percent(|kind| kind != PageKind::Crawled),
            figures.lost_percent(|kind| kind == PageKind::Crawled),
            figures.cut_off_percent(),
            figures.deferred_percent(),
            figures.signed_in(),
            figures.php_cores,
        );
    }
    text.push_str(
        "\nCut off: views in progress at the end of the run. They count with the time that they had waited, so their \
         true times are longer. A view that was refused, or took ten seconds, is lost, and counts as ten seconds.\n",
    );
    text
}

fn system(error: std::io::Error) -> String {
    format!("bench: {error}")
}
