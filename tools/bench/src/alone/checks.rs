//! The costs of a trial and of an audit: the time to the first byte under trial beside a bypass, and hits with an audit
//! beside plain ones. Both of a pair stand before the same origin, on the same core, and are asked in turn.
//!
//! A visitor of a trial gets the origin's answer, as by a bypass; comparing is work on the same core. Requests are due 200
//! times a second, whether or not earlier ones have been answered. The first byte is the first one of the answer; it is
//! timed from when the request was due. A page whose nonce is another one in each answer is the dearest to compare: it is
//! cut into words each time. The case fails if the first byte comes later than it may.

use super::super::compare::two_cores;
use super::super::figures::{Round, Series, Spread, shown, shown_time, table};
use super::super::{Amount, CaseResult, error_text};
use super::{PAGE_BYTES, Subject, micros_each, target};
use harness::stand::float;
use harness::{Client, Histogram, LoadEnd, PrivateDir, Stopwatch, cpu, nonce_origin, page_origin};
use serde_json::{Map, Value, json};
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
/// The budget lets each answer be compared.
const TRIAL: &str = "mode = \"trial\"\ntrial.budget = \"100%\"\n";
/// The words of the page with a nonce.
const WORDS: usize = 4_000;
/// How much later the first byte may come under trial: so many microseconds, or this share of its time by a bypass.
const LATER_MICROS: f64 = 200.0;
const LATER_SHARE: f64 = 0.03;
const AUDIT: &str = "audit = \"1 in 1000\"\n";

/// Starts two Pagewells with these configurations before one origin.
fn pair(
    binary: &Path,
    dir: &PrivateDir,
    origin: SocketAddr,
    configs: [&str; 2],
) -> Result<[Subject; 2], String> {
    let start = |name: &str, config: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, config)
            .map_err(|error| format!("bench: {}: {error}", file.display()))?;
        let file = file.display().to_string();
        Subject::start_before(&format!("http://{origin}"), binary, &["--config", &file])
    };
    Ok([start("one.toml", configs[0])?, start("other.toml", configs[1])?])
}

/// A page that is measured under trial.
struct TrialPage {
    /// The name in the table, and in the figures.
    shown: &'static str,
    name: &'static str,
    origin: SocketAddr,
    bytes: usize,
}

/// The times to the first byte of one page.
struct FirstBytes {
    /// By a bypass, and under trial.
    times: [Histogram; 2],
    /// The median of a round by a bypass, and how much longer it is under trial, in microseconds.
    bypass_micros: f64,
    longer: Spread,
    /// Answers that the trial has handled, and those with a verdict.
    answers: u64,
    judged: u64,
    /// The time of comparing, for each of the answers.
    compare_micros: f64,
}

/// Measures the time to the first byte under trial.
///
/// # Errors
/// A server that did not start, a request that failed, a page without a verdict. Answers that come too late: then the
/// error has the table.
pub fn trial(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "The first byte under trial, 200 requests a second";
    let failed = |error: std::io::Error| format!("bench: {error}");
    let origin = page_origin(PAGE_BYTES).map_err(failed)?;
    let (nonce, bytes) = nonce_origin(WORDS).map_err(failed)?;
    let pages = [
        TrialPage { shown: "2 KB, always the same", name: "same", origin, bytes: PAGE_BYTES },
        TrialPage { shown: "4,000 words, a nonce", name: "nonce", origin: nonce, bytes },
    ];
    let mut text = format!(
        "### {title}\n\n| Page | Way | Requests | Median | 95 % |\n|---|---|---|---|---|\n"
    );
    let (mut notes, mut late, mut figures) = (String::new(), Vec::new(), Map::new());
    figures.insert("title".into(), title.into());
    for page in &pages {
        let found = first_bytes_of(page, amount, binary)?;
        for (way, times) in ["bypass by a rule", "trial"].into_iter().zip(&found.times) {
            let at = |share| shown_time(times.quantile(share));
            let (count, median, high) = (times.count(), at(0.5), at(0.95));
            let _ = writeln!(text, "| {} | {way} | {count} | {median} | {high} |", page.shown);
        }
        let most = most_later(found.bypass_micros);
        let _ = writeln!(
            notes,
            "\n{}: the median of a round is {} µs longer under trial, and may be {most:.0} µs longer. {} of {} answers \
             have a verdict. Comparing takes {:.0} µs of an answer.",
            page.shown,
            shown(found.longer),
            found.judged,
            found.answers,
            found.compare_micros,
        );
        if found.longer.median > most {
            late.push(page.shown);
        }
        figures.insert(page.name.into(), found.json(most));
    }
    text += &notes;
    if !late.is_empty() {
        return Err(format!("{text}\nbench: the first byte comes too late: {}", late.join("; ")));
    }
    Ok(CaseResult { name: "trial".into(), text, figures: figures.into() })
}

/// How much longer the first byte may take under trial, in microseconds, if it takes `bypass_micros` by a bypass.
fn most_later(bypass_micros: f64) -> f64 {
    LATER_MICROS.max(bypass_micros * LATER_SHARE)
}

/// Measures one page by a bypass and under trial, in turn.
fn first_bytes_of(page: &TrialPage, amount: &Amount, binary: &Path) -> Result<FirstBytes, String> {
    let dir = PrivateDir::temporary("trial").map_err(error_text)?;
    let subjects = pair(binary, &dir, page.origin, [BYPASS, TRIAL])?;
    let mut times = [Histogram::default(), Histogram::default()];
    let mut medians = [Vec::new(), Vec::new()];
    for round in 0..=amount.rounds {
        for (place, subject) in subjects.iter().enumerate() {
            let found = first_bytes(subject, page.bytes, amount.slice())?;
            // The first round only warms up.
            if round > 0 {
                medians[place].push(float(found.quantile(0.5)) / 1e3);
                times[place].merge(&found);
            }
        }
    }
    let [bypassed, compared] = &subjects;
    let (answers, judged) = (compared.stat("trial_answers")?, judged(compared)?);
    if judged == 0 || bypassed.stat("hits")? + compared.stat("hits")? > 0 {
        return Err(format!(
            "bench: {}: {judged} of {answers} answers have a verdict, and there may be no hit",
            page.shown
        ));
    }
    let pairs = medians[0].iter().zip(&medians[1]);
    Ok(FirstBytes {
        longer: Spread::of(pairs.map(|(bypass, trial)| trial - bypass)),
        bypass_micros: Spread::of(medians[0].iter().copied()).median,
        judged,
        compare_micros: micros_each(float(compared.stat("audit_compare_us")?) / 1e6, answers),
        times,
        answers,
    })
}

/// The answers with a verdict, in the trial of this Pagewell.
fn judged(subject: &Subject) -> Result<u64, String> {
    let mut client = Client::new(subject.pagewell.admin().clone());
    let answer = client.get("/v1/trial").map_err(|error| format!("bench: {error}"))?;
    let all: Value =
        serde_json::from_slice(&answer.content).map_err(|error| format!("bench: {error}"))?;
    all["trials"][0]["compared"].as_u64().ok_or_else(|| "bench: there is no trial".into())
}

impl FirstBytes {
    fn json(&self, most: f64) -> Value {
        let way = |times: &Histogram| {
            json!({
                "requests": times.count(),
                "median_micros": times.quantile(0.5) / 1000,
                "p95_micros": times.quantile(0.95) / 1000,
            })
        };
        json!({
            "bypass": way(&self.times[0]),
            "trial": way(&self.times[1]),
            "longer_micros": self.longer.median,
            "longer_micros_max": most,
            "compared": self.answers,
            "judged": self.judged,
            "compare_micros_per_answer": self.compare_micros,
        })
    }
}

/// Lets requests for pages of so many bytes come at their times for a while; returns the times to their first bytes.
fn first_bytes(subject: &Subject, bytes: usize, during: Duration) -> Result<Histogram, String> {
    let (clock, core) = (&Stopwatch::start(), two_cores()?.1);
    let ask = |number| ask_in_turn(subject.address, bytes, number, (clock, during));
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
    bytes: usize,
    number: u32,
    (clock, during): (&Stopwatch, Duration),
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
        while !is_whole(&answer, bytes) {
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

/// Whether an answer has its header section and content of so many bytes.
fn is_whole(answer: &[u8], bytes: usize) -> bool {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
    head.is_some_and(|head| answer.len() >= head + 4 + bytes)
}

/// Measures hits with an audit beside plain ones.
///
/// # Errors
/// A server that did not start, a request that failed, an audit that compared nothing.
pub fn audit(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let title = "Hits with an audit of 1 in 1,000";
    let dir = PrivateDir::temporary("audit").map_err(error_text)?;
    let origin = page_origin(PAGE_BYTES).map_err(|error| format!("bench: {error}"))?;
    let subjects = pair(binary, &dir, origin, ["", AUDIT])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_may_come_later_by_a_share_or_by_two_tenths_of_a_millisecond() {
        assert_eq!(most_later(610.0), 200.0);
        assert_eq!(most_later(20_000.0), 600.0);
    }

    #[test]
    fn an_answer_is_whole_with_all_bytes_of_its_content() {
        assert!(is_whole(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nabc", 3));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nab", 3));
        assert!(!is_whole(b"HTTP/1.1 200 OK\r\nA: b\r\n", 0));
    }
}
