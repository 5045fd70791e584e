//! Promises that have to hold while something else goes on: hits while changes are applied, idle connections,
//! millions of requests, a page that takes seconds to render. Where something must not happen at all (a
//! failed request, a cut connection), it is an error and not a figure.

use super::super::figures::{Round, Series, shown_bytes, shown_time, table};
use super::super::pages::Pages;
use super::super::{Amount, CaseResult, error_text};
use super::{Subject, micros_each, target};
use harness::{Client, LoadEnd, Pagewell, Stopwatch};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Hits of one page while tags of others are invalidated, so many times a second.
///
/// # Errors
/// A server that did not start; a change that was not applied.
pub fn invalidations(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let subject = Subject::start(binary, "1G")?;
    subject.fill(10_000)?;
    let mut series: Vec<(u64, Series)> = [0, 10, 100, 1000]
        .map(|rate| (rate, Series::new(&format!("{rate} changes a second"))))
        .into();
    for _ in 0..amount.rounds {
        for (rate, series) in &mut series {
            under_changes(&subject, *rate, amount, series)?;
        }
    }
    let series: Vec<Series> = series.into_iter().map(|(_, series)| series).collect();
    let title = "Hits while pages are invalidated";
    let text = format!("### {title}\n\n{}", table(&series, Some(0), None))
        .replace("× the loop", "× without changes")
        .replace("| Server |", "| Changes |");
    let servers: Vec<_> = series.iter().map(|one| one.json(&series[0])).collect();
    let figures = json!({ "title": title, "rates": servers });
    Ok(CaseResult { name: "invalidations".into(), text, figures })
}

fn under_changes(
    subject: &Subject,
    rate: u64,
    amount: &Amount,
    series: &mut Series,
) -> Result<(), String> {
    let mut load = subject.load(50, LoadEnd::Elapsed(amount.slice()));
    load.targets = vec![target(0)];
    let over = AtomicBool::new(false);
    let before = subject.pagewell.cpu_seconds();
    let (report, changed) = thread::scope(|scope| {
        let changing = scope.spawn(|| change(&subject.pagewell, rate, &over));
        let report = load.run();
        over.store(true, Relaxed);
        (report, changing.join())
    });
    let report = report.map_err(|error| format!("bench: {error}"))?;
    changed.map_err(|_| "bench: panicked")??;
    let used = subject.pagewell.cpu_seconds() - before;
    let cpu_micros = micros_each(used, report.requests);
    series.rounds.push(Round { cpu_micros, per_second: report.per_second() });
    series.times.merge(&report.times);
    series.failures += report.failures + report.unexpected;
    series.rss_bytes = subject.pagewell.rss_bytes();
    Ok(())
}

/// Drops the pages that are not asked for, one after the other, at this rate.
pub fn change(pagewell: &Pagewell, rate: u64, over: &AtomicBool) -> Result<(), String> {
    let clock = Stopwatch::start();
    let mut client = Client::new(pagewell.admin().clone());
    let mut done: u64 = 0;
    while rate > 0 && !over.load(Relaxed) {
        let due = Duration::from_micros(done * 1_000_000 / rate);
        thread::sleep(due.saturating_sub(clock.elapsed()));
        let page = target(u32::try_from(1 + done % 9999).unwrap_or(1));
        let what = format!("{{\"urls\":[\"{page}\"]}}");
        let request = harness::Request::new("POST", "/v1/invalidate")
            .header("Content-Type", "application/json")
            .content(what.as_bytes());
        let answer = client.send(&request).map_err(|error| format!("bench: {error}"))?;
        if answer.status != 200 {
            return Err(format!("bench: {}: {}", answer.status, answer.text()));
        }
        done += 1;
    }
    Ok(())
}

/// Resident memory with many connections that have asked and wait: for a page in memory, and for a part of
/// it, which the HTTP library answers.
///
/// # Errors
/// A server that did not start; connections that cannot be made, or were cut.
pub fn connections(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let wanted: usize = if amount.short { 1000 } else { 10_000 };
    let title = "Idle connections";
    let mut text = format!(
        "### {title}\n\n| Idle | Open | Resident for each | A hit over 50 others beside them |\n|---|---|---|---|\n"
    );
    let mut figures = Vec::new();
    for (name, range) in [("after a hit", ""), ("after a part of a page", "Range: bytes=0-99\r\n")]
    {
        let subject = Subject::start(binary, "64M")?;
        subject.fill(1)?;
        let before = subject.pagewell.rss_bytes();
        let mut idle = Vec::with_capacity(wanted);
        for _ in 0..wanted {
            idle.push(asked_once(&subject, range).map_err(|error| format!("bench: {error}"))?);
            if idle.len() % COME_AT_ONCE == 0 {
                thread::sleep(REST);
            }
        }
        thread::sleep(LET_GO);
        let after = subject.pagewell.rss_bytes();
        let mut load = subject.load(50, LoadEnd::Elapsed(amount.slice()));
        load.targets = vec![target(0)];
        let cpu = subject.pagewell.cpu_seconds();
        let report = load.run().map_err(|error| format!("bench: {error}"))?;
        let cpu = micros_each(subject.pagewell.cpu_seconds() - cpu, report.requests);
        let open = subject.stat("connections")?;
        drop(idle);
        if open < wanted as u64 {
            return Err(format!("bench: of {wanted} connections {open} are open"));
        }
        let each = after.saturating_sub(before) / wanted as u64;
        let _ = writeln!(text, "| {name} | {open} | {each} bytes | {cpu:.2} µs |");
        figures.push(json!({
            "name": name, "wanted": wanted, "open": open, "bytes_each": each, "cpu_micros_per_hit": cpu,
        }));
    }
    let figures = json!({ "title": title, "connections": figures });
    Ok(CaseResult { name: "connections".into(), text, figures })
}

/// So many connections come at once, and after so long they are idle: the memory for their answers has been
/// released.
const COME_AT_ONCE: usize = 2500;
const REST: Duration = Duration::from_secs(2);
/// Until what a crowd has left behind is given back to the system: two looks, five seconds apart.
const LET_GO: Duration = Duration::from_secs(12);

fn asked_once(subject: &Subject, range: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(subject.address)?;
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n{range}\r\n", target(0), subject.address);
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut seen) = ([0_u8; 4096], 0);
    let wanted = if range.is_empty() { super::PAGE_BYTES } else { 100 };
    while seen < wanted {
        seen += match stream.read(&mut answer)? {
            0 => return Err(std::io::Error::other("a connection was cut")),
            length => length,
        };
    }
    Ok(stream)
}

/// Millions of requests over 250 connections; none may fail.
///
/// # Errors
/// A server that did not start; a request that failed.
pub fn soak(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let requests: u64 = if amount.short { 200_000 } else { 5_000_000 };
    eprintln!("bench: {requests} requests");
    let subject = Subject::start(binary, "64M")?;
    subject.fill(100)?;
    let mut load = subject.load(250, LoadEnd::Requests(requests / 10));
    load.targets = (0..100).map(target).collect();
    load.run().map_err(|error| format!("bench: {error}"))?;
    let before = subject.pagewell.rss_bytes();
    load.until = LoadEnd::Requests(requests);
    let report = load.run().map_err(|error| format!("bench: {error}"))?;
    let after = subject.pagewell.rss_bytes();
    let failed = report.failures + report.unexpected;
    let title = "A long run";
    let text = format!(
        "### {title}\n\n| Measurement | Value |\n|---|---|\n| requests over 250 connections | {} |\n| failed | {failed} |\n\
         | a second | {:.0} |\n| median, 99 %, worst | {}, {}, {} |\n\
         | resident before and after | {}, {} |\n",
        report.requests,
        report.per_second(),
        shown_time(report.times.quantile(0.5)),
        shown_time(report.times.quantile(0.99)),
        shown_time(report.times.worst()),
        shown_bytes(before),
        shown_bytes(after),
    );
    let figures = json!({
        "title": title, "requests": report.requests, "failed": failed,
        "rss_before_bytes": before, "rss_after_bytes": after,
    });
    match failed {
        0 => Ok(CaseResult { name: "soak".into(), text, figures }),
        failed => Err(format!("bench: {failed} of {requests} requests failed\n{text}")),
    }
}

/// A page that takes 8.1 s of PHP: the first visitor, and the next.
///
/// # Errors
/// A server that did not start; an answer that is wrong.
pub fn slow_page(binary: &Path) -> Result<CaseResult, String> {
    let pages = Pages::start(4)?;
    let php = format!("unix:{}", pages.php.socket().display());
    let root = pages.site().display().to_string();
    let arguments = [&root, "--php", &php, "--memory", "64M", "--log", "warn"];
    let pagewell = Pagewell::start(binary, &arguments).map_err(error_text)?;
    let mut client = Client::new(pagewell.address().clone()).within(Duration::from_secs(30));
    let mut timed = || {
        let clock = Stopwatch::start();
        let page = client.get("/p/21000-8100").map_err(|error| format!("bench: {error}"))?;
        match page.status {
            200 => Ok(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            status => Err(format!("bench: {status} for the slow page")),
        }
    };
    let (first, mut later) = (timed()?, Vec::new());
    for _ in 0..100 {
        later.push(timed()?);
    }
    later.sort_unstable();
    let title = "O4: a page that takes 8.1 s of PHP, one request after the other";
    let text = format!(
        "### {title}\n\n| Request | Time |\n|---|---|\n| the first | {} |\n| the next, median | {} |\n",
        shown_time(first),
        shown_time(later[later.len() / 2])
    );
    let figures = json!({ "title": title, "first_nanos": first, "next_nanos": later[50] });
    Ok(CaseResult { name: "o4-page".into(), text, figures })
}
