//! `cargo measure flush`: a whole site is flushed while visitors ask for its pages.
//!
//! The news site on a real php-fpm, its pages asked for as pages are: few of them much, most of them
//! seldom. When all are in memory and nothing is rendered any more, everything is invalidated at
//! once; what reaches PHP in the seconds that follow, and how long visitors wait, is counted. One
//! server after the other in front of the same PHP: Pagewell in three ways, nginx's fastcgi_cache in
//! two. Visitors come at their times whether or not earlier ones have been answered; a request's time
//! runs from when it was due. Renders take as long as those of a usual site; see [`site`].

mod servers;
mod site;
mod visitors;

use super::{machine, write};
use harness::root::{self, Profile};
use harness::{Client, Histogram};
use serde_json::{Value, json};
use servers::{Server, Way};
use site::{Renders, Site, target};
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;
use visitors::{Plan, Visits};

/// How long visitors ask before the flush.
const BEFORE: Duration = Duration::from_secs(3);
/// How many ask while pages are brought into memory.
const WARMERS: usize = 8;
/// The name that pages are asked for under.
const HOST: &str = "news.test";

/// How much is measured.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Amount {
    /// How many pages the site has
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pages: u32,
    /// How many connections ask
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// How many requests a second by all of them together
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    per_second: u32,
    /// How long a render waits for what a usual site waits for, in milliseconds
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    render_ms: u32,
    /// How many renders php-fpm makes at once
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    children: u32,
    /// For how many seconds after the flush everything is counted
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How often each server is flushed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measure a Pagewell that is built as the tests do: to try this, not for figures
    #[arg(long)]
    dev: bool,
}

/// A server, over all rounds.
#[derive(Debug)]
struct ServerTotals {
    way: Way,
    renders: Renders,
    visits: Visits,
}

/// Measures, prints the table, writes `target/bench/flush.json`.
///
/// # Errors
/// A server that did not start, a page that was not there, a cache that rendered before it was flushed.
pub fn run(amount: Amount) -> Result<(), String> {
    let binary = root::pagewell(if amount.dev { Profile::Dev } else { Profile::Release })?;
    let site = Site::start(amount.pages, amount.children, amount.render_ms)?;
    let mut all: Vec<ServerTotals> = Way::ALL
        .into_iter()
        .map(|way| ServerTotals { way, renders: Renders::default(), visits: Visits::default() })
        .collect();
    for round in 1..=amount.rounds {
        for found in &mut all {
            eprintln!("bench: {}, round {round} of {}", found.way.name(), amount.rounds);
            let server = Server::start(found.way, &binary, &site, amount.children)?;
            flush_once(amount, &site, &server, found)?;
        }
    }
    println!("{}", title(amount));
    println!("{}", table(&all, amount.rounds));
    let path = write("flush", &figures(amount, &all))?;
    println!("All figures: {}", path.display());
    Ok(())
}

/// Fills a server's memory, lets visitors ask, flushes, and adds what follows to `found`.
fn flush_once(
    amount: Amount,
    site: &Site,
    server: &Server,
    found: &mut ServerTotals,
) -> Result<(), String> {
    site.warm(true)?;
    warm(server, amount.pages)?;
    site.warm(false)?;
    site.forget_renders()?;
    let plan = Plan {
        address: server.address(),
        pages: amount.pages,
        connections: amount.connections,
        per_second: amount.per_second,
        before: BEFORE,
        after: Duration::from_secs(amount.seconds.into()),
    };
    let visits = visitors::visit(&plan, || {
        let before = site.renders()?;
        if before.count > 0 {
            let Renders { count, .. } = before;
            return Err(format!("bench: {} rendered {count} pages unflushed", found.way.name()));
        }
        let generation = site.next_generation()?;
        server.flush()?;
        Ok(generation)
    })?;
    found.renders.add(&site.renders()?);
    found.visits.add(&visits);
    Ok(())
}

/// Every page once.
fn warm(server: &Server, pages: u32) -> Result<(), String> {
    let address = server.address();
    thread::scope(|scope| {
        let warmers: Vec<_> = (0..WARMERS)
            .map(|first| {
                scope.spawn(move || {
                    let mut client = Client::new(address).host(HOST);
                    for page in (0..pages).skip(first).step_by(WARMERS) {
                        let target = target(page);
                        match client.get(&target) {
                            Ok(response) if response.status == 200 => {}
                            Ok(response) => {
                                return Err(format!("bench: {target} is {}", response.status));
                            }
                            Err(error) => return Err(format!("bench: {target}: {error}")),
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        warmers.into_iter().try_for_each(|one| one.join().map_err(|_| "bench: panicked")?)
    })
}

fn title(amount: Amount) -> String {
    let Amount { pages, connections, per_second, render_ms, children, seconds, .. } = amount;
    format!(
        "A site of {pages} pages is flushed: {connections} connections, {per_second} requests a \
         second, php-fpm with {children} children, {render_ms} ms of waiting in each render; what \
         follows in {seconds} s.\n"
    )
}

/// As a table of the manual; renders are those of one flush.
fn table(all: &[ServerTotals], rounds: u32) -> String {
    let mut text = String::from(
        "| Cache and purge | Renders | Pages rendered | Renders of a page at once | Median | 99 % | \
         Worst | Failed | Old pages |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for ServerTotals { way, renders, visits } in all {
        let ms = |nanoseconds: u64| shown_ms(nanoseconds);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} of {} | {} |",
            way.name(),
            renders.count / u64::from(rounds),
            renders.pages / u64::from(rounds),
            renders.most_of_a_page,
            ms(visits.times.quantile(0.5)),
            ms(visits.times.quantile(0.99)),
            ms(visits.times.worst()),
            visits.failed,
            visits.answered + visits.failed,
            visits.from_before,
        );
    }
    text
}

#[allow(clippy::cast_precision_loss, reason = "times of a run stay below 2^52 nanoseconds")]
fn shown_ms(nanoseconds: u64) -> String {
    match nanoseconds as f64 / 1e6 {
        short if short < 10.0 => format!("{short:.1} ms"),
        long => format!("{long:.0} ms"),
    }
}

fn figures(amount: Amount, all: &[ServerTotals]) -> Value {
    let times = |times: &Histogram| {
        json!({
            "median_micros": times.quantile(0.5) / 1000,
            "p99_micros": times.quantile(0.99) / 1000,
            "worst_micros": times.worst() / 1000,
        })
    };
    let one = |found: &ServerTotals| {
        json!({
            "name": found.way.name(),
            "renders": found.renders.count,
            "pages_rendered": found.renders.pages,
            "most_renders_of_a_page_at_once": found.renders.most_of_a_page,
            "most_renders_at_once": found.renders.most,
            "answered": found.visits.answered,
            "failed": found.visits.failed,
            "from_before_the_flush": found.visits.from_before,
            "times": times(&found.visits.times),
        })
    };
    json!({
        "machine": machine(),
        "pages": amount.pages,
        "connections": amount.connections,
        "per_second": amount.per_second,
        "render_ms": amount.render_ms,
        "children": amount.children,
        "seconds": amount.seconds,
        "rounds": amount.rounds,
        "dev": amount.dev,
        "servers": all.iter().map(one).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_server() {
        let mut visits = Visits { answered: 99, failed: 1, ..Visits::default() };
        visits.times.record(1_000_000);
        visits.times.record(64_000_000);
        let renders = Renders { count: 10, pages: 8, most_of_a_page: 2, most: 4 };
        let table = table(&[ServerTotals { way: Way::PagewellHard, renders, visits }], 2);
        let line = table.lines().last().expect("a line");
        assert!(line.contains("| 5 | 4 | 2 | 1.0 ms |"), "{line}");
        assert!(line.contains("| 1 of 100 | 0 |"), "{line}");
    }
}
