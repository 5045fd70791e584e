//! `cargo xtask bench hit`: what a hit of the news page costs, beside nginx's fastcgi_cache.
//!
//! The same page of the same PHP over the same kept connections: a bare epoll loop (the floor),
//! Pagewell, and nginx with its cache in memory (`/dev/shm`), one after the other in short rounds.
//! The server has core 0, the load generator core 1. The figure is the server's CPU time, user and
//! system, for each hit. Before the rounds each server must answer with the page, from its cache;
//! after them PHP must not have been asked once. The servers themselves: [`super::rig`].

use super::figures::{Round, Series, shown, table};
use super::rig::{Rig, Server, TARGET};
use super::{machine, write};
use harness::instructions::BROWSER_HEADERS;
use harness::{Load, Until, cpu};
use serde_json::json;
use std::fs;
use std::io::IsTerminal;
use std::time::Duration;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// How many rounds.
    pub rounds: usize,
    /// How long each server is asked in a round.
    pub slice: Duration,
    /// How many connections ask.
    pub connections: usize,
    /// Whether requests carry what a browser sends.
    pub browser: bool,
}

/// Measures, prints the table, writes `target/bench/hit.json`.
///
/// # Errors
/// What did not start, a server that answered wrongly, a cache that asked PHP.
pub fn run(amount: Amount) -> Result<(), String> {
    let cores = cpu::cores();
    let [server_core, load_core, ..] = cores.as_slice() else {
        return Err("bench: two cores are needed, one for the server and one for the load".into());
    };
    if let Some(load) = others_load() {
        eprintln!("bench: the machine is busy (load {load}): the figures will be uncertain");
    }
    let rig = Rig::start(*server_core)?;
    let page_bytes = rig.verify()?;
    let mut series: Vec<Series> =
        rig.servers.iter().map(|server| Series::new(server.name)).collect();
    let requests_before = rig.php.requests();
    for round in 0..=amount.rounds {
        for (server, series) in rig.servers.iter().zip(&mut series) {
            // The first round only warms up.
            let slice = if round == 0 { amount.slice / 4 } else { amount.slice };
            measure(server, *load_core, amount, slice, (round > 0).then_some(series))?;
        }
        if round > 0 && std::io::stderr().is_terminal() {
            eprint!("\rbench: round {round} of {} ", amount.rounds);
        }
    }
    eprint!("\r");
    let asked = rig.php.requests() - requests_before;
    if asked > 0 {
        return Err(format!("bench: PHP was asked {asked} times: these were not all hits"));
    }
    report(&series, amount, page_bytes)
}

/// The load that was there before, if it is one that disturbs.
fn others_load() -> Option<f64> {
    let averages = fs::read_to_string("/proc/loadavg").ok()?;
    averages.split(' ').next()?.parse().ok().filter(|load| *load > 0.7)
}

fn report(series: &[Series], amount: Amount, page_bytes: usize) -> Result<(), String> {
    let [floor, pagewell, nginx] = series else { return Err("bench: three servers".into()) };
    let beside = pagewell.ratio_to(nginx);
    println!(
        "Hits of {TARGET} ({page_bytes} bytes), {} connections, kept alive, {} headers; {} rounds of \
         {} s each.\nMedian, and in brackets the middle half of the rounds.\n",
        amount.connections,
        if amount.browser { "a browser's" } else { "bare" },
        amount.rounds,
        amount.slice.as_secs_f32(),
    );
    print!("{}", table(series));
    println!("\nPagewell's CPU for a hit is {} of nginx's.", shown(beside));
    let path = write(
        "hit",
        &json!({
            "machine": machine(),
            "target": TARGET,
            "page_bytes": page_bytes,
            "connections": amount.connections,
            "browser_headers": amount.browser,
            "slice_seconds": amount.slice.as_secs_f64(),
            "pagewell_to_nginx": beside.median,
            "servers": series.iter().map(|one| one.json(floor)).collect::<Vec<_>>(),
        }),
    )?;
    println!("All figures: {}", path.display());
    match series.iter().map(|one| one.failures).sum() {
        0_u64 => Ok(()),
        failures => Err(format!("bench: {failures} requests failed")),
    }
}

fn measure(
    server: &Server,
    load_core: usize,
    amount: Amount,
    slice: Duration,
    into: Option<&mut Series>,
) -> Result<(), String> {
    let mut load = Load::new(server.address, TARGET, amount.connections, Until::Elapsed(slice));
    load.core = Some(load_core);
    if amount.browser {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        load.headers = BROWSER_HEADERS.into_iter().map(own).collect();
    }
    let before = cpu::seconds(server.pid);
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let used = cpu::seconds(server.pid) - before;
    if let Some(series) = into {
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
        let cpu_micros = used * 1e6 / report.requests.max(1) as f64;
        series.rounds.push(Round { cpu_micros, per_second: report.per_second() });
        series.times.merge(&report.times);
        series.failures += report.failures + report.unexpected;
    }
    Ok(())
}
