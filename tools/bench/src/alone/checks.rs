//! The costs of a trial and of an audit: the time to the first byte under trial beside a bypass, and hits with an audit
//! beside plain ones. Both of a pair stand before the same origin, on the same core, and are asked in turn.
//!
//! A visitor of a trial gets the origin's answer, as by a bypass; comparing is work on the same core. Requests are due 200
//! times a second, whether or not earlier ones have been answered. The first byte is the first one of the answer; it is
//! timed from when the request was due.

use super::super::compare::two_cores;
use super::super::figures::{Round, Series, Spread, shown, shown_time, table};
use super::super::{Amount, CaseResult, error_text};
use super::{PAGE_BYTES, Subject, micros_each, target};
use harness::stand::float;
use harness::{Histogram, LoadEnd, PrivateDir, Stopwatch, cpu, page_origin};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Requests that are due in a second, and the connections that share them.
const PER_SECOND: u32 = 200;
const CONNECTIONS: u32 = 8;
/// Pages that are requested in turn: the trial has a page of each after two requests.
const PAGES: u32 = 100;
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(15);
const BYPASS: &str = "[[rule]]\npath = \"/**\"\nbypass = true\n";
const TRIAL: &str = "mode = \"trial\"\n";
const AUDIT: &str = "audit = \"1 in 1000\"\n";

/// Starts two Pagewells with these configurations before one origin.
fn pair(binary: &Path, dir: &PrivateDir, configs: [&str; 2]) -> Result<[Subject; 2], String> {
    let origin = page_origin(PAGE_BYTES).map_err(|error| format!("bench: {error}"))?;
    let start = |name: &str, config: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, config)
            .map_err(|error| format!("bench: {}: {error}", file.display()))?;
        let file = file.display().to_string();
        Subject::start_before(&format!("http://{origin}"), binary, &["--config", &file])
    };
    Ok([start("one.toml", configs[0])?, start("other.toml", configs[1])?])
}

/// Measures the time to the first byte under trial.
///
/// # Errors
/// A server that did not start, a request that failed, a trial that compared nothing.
pub fn trial(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "The first byte under trial, 200 requests a second";
    let dir = PrivateDir::temporary("trial").map_err(error_text)?;
    let subjects = pair(binary, &dir, [BYPASS, TRIAL])?;
    let mut all = [Histogram::default(), Histogram::default()];
    let mut medians = [Vec::new(), Vec::new()];
    for round in 0..=amount.rounds {
        for (place, subject) in subjects.iter().enumerate() {
            let times = first_bytes(subject, amount.slice())?;
            // The first round only warms up.
            if round > 0 {
                medians[place].push(float(times.quantile(0.5)) / 1e3);
                all[place].merge(&times);
            }
        }
    }
    let compared = subjects[1].stat("trial_answers")?;
    if compared == 0 || subjects[0].stat("hits")? + subjects[1].stat("hits")? > 0 {
        return Err(format!("bench: {compared} answers were compared, and there may be no hit"));
    }
    let pairs = medians[0].iter().zip(&medians[1]);
    let longer = Spread::of(pairs.map(|(bypass, trial)| trial - bypass));
    let mut text =
        format!("### {title}\n\n| Way | Requests | Median | 95 % |\n|---|---|---|---|\n");
    for (name, times) in ["bypass by a rule", "trial"].into_iter().zip(&all) {
        let at = |share| shown_time(times.quantile(share));
        let _ = writeln!(text, "| {name} | {} | {} | {} |", times.count(), at(0.5), at(0.95));
    }
    let _ = writeln!(text, "\nThe median of a round is {} µs longer under trial.", shown(longer));
    let way = |times: &Histogram| {
        json!({
            "requests": times.count(),
            "median_micros": times.quantile(0.5) / 1000,
            "p95_micros": times.quantile(0.95) / 1000,
        })
    };
    let figures = json!({
        "title": title,
        "bypass": way(&all[0]),
        "trial": way(&all[1]),
        "longer_micros": longer.median,
        "compared": compared,
    });
    Ok(CaseResult { name: "trial".into(), text, figures })
}

/// Lets requests come at their times for a while; returns the times to their first bytes.
fn first_bytes(subject: &Subject, during: Duration) -> Result<Histogram, String> {
    let (clock, core) = (&Stopwatch::start(), two_cores()?.1);
    let ask = |number| ask_in_turn(subject.address, number, clock, during);
    thread::scope(|scope| {
        let all: Vec<_> = (0..CONNECTIONS)
            .map(|number| scope.spawn(move || cpu::on_core(core, || ask(number))))
            .collect();
        let mut times = Histogram::default();
        for one in all {
            let found = one.join().map_err(|_| "bench: a client panicked")?;
            times.merge(&found.map_err(|error| format!("bench: core {core}: {error}"))??);
        }
        Ok(times)
    })
}

/// The share of one connection.
fn ask_in_turn(
    address: SocketAddr,
    number: u32,
    clock: &Stopwatch,
    during: Duration,
) -> Result<Histogram, String> {
    let failed = |error: std::io::Error| format!("bench: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(WITHIN)).map_err(failed)?;
    let mut times = Histogram::default();
    for turn in 0_u32.. {
        let nth = turn * CONNECTIONS + number;
        let due = Duration::from_secs(1) * nth / PER_SECOND;
        if due >= during {
            break;
        }
        thread::sleep(due.saturating_sub(clock.elapsed()));
        let request = format!("GET {} HTTP/1.1\r\nHost: a.test\r\n\r\n", target(nth % PAGES));
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let (mut answer, mut piece) = (Vec::new(), [0; 8 << 10]);
        while !is_whole(&answer) {
            let read = stream.read(&mut piece).map_err(failed)?;
            if answer.is_empty() {
                let time = clock.elapsed().saturating_sub(due).as_nanos();
                times.record(u64::try_from(time).unwrap_or(u64::MAX));
            }
            if read == 0 {
                return Err("bench: an answer broke off".into());
            }
            answer.extend_from_slice(&piece[..read]);
        }
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            return Err(format!("bench: {}", String::from_utf8_lossy(&answer)));
        }
    }
    Ok(times)
}

/// Whether an answer has its header section and the content of a page.
fn is_whole(answer: &[u8]) -> bool {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
    head.is_some_and(|head| answer.len() >= head + 4 + PAGE_BYTES)
}

/// Measures hits with an audit beside plain ones.
///
/// # Errors
/// A server that did not start, a request that failed, an audit that compared nothing.
pub fn audit(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "Hits with an audit of 1 in 1,000";
    let dir = PrivateDir::temporary("audit").map_err(error_text)?;
    let subjects = pair(binary, &dir, ["", AUDIT])?;
    let mut series = [Series::new("plain"), Series::new("audited")];
    for subject in &subjects {
        subject.fill(PAGES)?;
    }
    for round in 0..=amount.rounds {
        for (subject, series) in subjects.iter().zip(&mut series) {
            let mut load = subject.load(50, LoadEnd::Elapsed(amount.slice()));
            load.targets = (0..PAGES).map(target).collect();
            let before = subject.pagewell.cpu_seconds();
            let report = load.run().map_err(|error| format!("bench: {error}"))?;
            let used = subject.pagewell.cpu_seconds() - before;
            // The first round only warms up.
            if round > 0 {
                let cpu_micros = micros_each(used, report.requests);
                series.rounds.push(Round { cpu_micros, per_second: report.per_second() });
                series.times.merge(&report.times);
            }
            series.failures += report.failures + report.unexpected;
            series.rss_bytes = subject.pagewell.rss_bytes();
        }
    }
    let (compared, hits) = (subjects[1].stat("audit_compared")?, subjects[1].stat("hits")?);
    if compared == 0 || series.iter().any(|one| one.failures > 0) {
        return Err(format!("bench: {compared} hits were compared, and no request may fail"));
    }
    let comparing = micros_each(float(subjects[1].stat("audit_compare_us")?) / 1e6, hits);
    let text = format!("### {title}\n\n{}", table(&series, Some(0), None))
        .replace("× the loop", "× plain")
        .replace("| Server |", "| Hits |");
    let text = format!(
        "{text}\n{compared} of {hits} hits were compared. Comparing takes {comparing:.3} µs of a hit, without the renders.\n"
    );
    let servers: Vec<_> = series.iter().map(|one| one.json(&series[0])).collect();
    let figures = json!({
        "title": title,
        "hits": servers,
        "compared": compared,
        "compare_micros_per_hit": comparing,
    });
    Ok(CaseResult { name: "audit".into(), text, figures })
}
