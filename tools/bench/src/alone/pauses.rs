//! The worst that hits wait while something else goes on: pages stored, dropped, evicted, compressed, a
//! snapshot written.
//!
//! Two connections ask for one page that stays in memory, each request when the one before is answered, so
//! that every pause is met once. All of Pagewell's threads share one core, the hardest case: work
//! beside the hits takes the processor from them, too. The first line has nothing beside it: its worst time is
//! the machine's own. Pagewell's work happens in each round, the machine's in some: so the worst time of the
//! quietest round is shown as well. Counters show that the work goes on: a round in which nothing happened is an
//! error, and so is a failed request.

use super::super::figures::shown_time;
use super::super::pages::Pages;
use super::super::{Amount, CaseResult, error_text};
use super::{Subject, target};
use harness::{Client, Histogram, LoadEnd, PrivateDir, Request, Stopwatch, cpu};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Rounds of the slowest cases, which fill the memory before each.
const ROUNDS: usize = 4;

/// The work that goes on beside the hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackgroundWork {
    Nothing,
    Stores,
    Changes,
    Flush,
    Evictions,
    Codings,
    Snapshots,
}

impl BackgroundWork {
    const EACH: [BackgroundWork; 7] = [
        BackgroundWork::Nothing,
        BackgroundWork::Stores,
        BackgroundWork::Changes,
        BackgroundWork::Flush,
        BackgroundWork::Evictions,
        BackgroundWork::Codings,
        BackgroundWork::Snapshots,
    ];

    fn name(self, pages: u32) -> String {
        match self {
            BackgroundWork::Nothing => "nothing".into(),
            BackgroundWork::Stores => "1,000 pages a second are stored".into(),
            BackgroundWork::Changes => "1,000 pages a second are invalidated one by one".into(),
            BackgroundWork::Flush => format!("{pages} pages are invalidated at once"),
            BackgroundWork::Evictions => "1,000 pages a second are stored, as many evicted".into(),
            BackgroundWork::Codings => {
                "50 pages a second of 100 KB are stored and compressed".into()
            }
            BackgroundWork::Snapshots => format!("a snapshot of {pages} pages is written"),
        }
    }

    /// The counter that says that it went on.
    fn counter(self) -> Option<&'static str> {
        match self {
            BackgroundWork::Nothing => None,
            BackgroundWork::Stores => Some("stored"),
            BackgroundWork::Changes | BackgroundWork::Flush => Some("dropped"),
            BackgroundWork::Evictions => Some("evicted"),
            BackgroundWork::Codings => Some("coded"),
            BackgroundWork::Snapshots => Some("snapshots_written"),
        }
    }
}

/// Measures.
///
/// # Errors
/// A server that did not start; a failed request; something that did not go on.
pub fn pauses(amount: &Amount, binary: &Path) -> Result<CaseResult, String> {
    let pages = if amount.short { 5000 } else { 100_000 };
    let title = "Pauses of a hit during other work";
    let mut text = format!(
        "### {title}\n\n| During the hits | Hits | Median | 99 % | 99.99 % | Worst | Worst of the quietest round |\n|---|---|---|---|---|---|---|\n"
    );
    let mut figures = Vec::new();
    for beside in BackgroundWork::EACH {
        let name = beside.name(pages);
        eprintln!("bench: {name}");
        let (times, quietest) = measure(beside, pages, amount, binary)?;
        let at = |q| shown_time(times.quantile(q));
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} |",
            times.count(),
            at(0.5),
            at(0.99),
            at(0.9999),
            shown_time(times.worst()),
            shown_time(quietest),
        );
        figures.push(shown_json(&name, &times, quietest));
    }
    Ok(CaseResult {
        name: "pauses".into(),
        text,
        figures: json!({ "title": title, "beside": figures }),
    })
}

fn shown_json(name: &str, times: &Histogram, quietest: u64) -> Value {
    json!({
        "name": name,
        "hits": times.count(),
        "median_micros": times.quantile(0.5) / 1000,
        "p99_micros": times.quantile(0.99) / 1000,
        "p9999_micros": times.quantile(0.9999) / 1000,
        "worst_micros": times.worst() / 1000,
        "worst_of_the_quietest_round_micros": quietest / 1000,
    })
}

/// How long hits took in all rounds; and the worst of the round in which that was least, in nanoseconds.
fn measure(
    beside: BackgroundWork,
    pages: u32,
    amount: &Amount,
    binary: &Path,
) -> Result<(Histogram, u64), String> {
    let dir = PrivateDir::temporary("pauses").map_err(error_text)?;
    let rendered = match beside {
        BackgroundWork::Codings => Some(Pages::start(4)?),
        _ => None,
    };
    let subject = start(beside, &dir, rendered.as_ref(), binary)?;
    let rounds = match beside {
        BackgroundWork::Flush | BackgroundWork::Snapshots => amount.rounds.min(ROUNDS),
        _ => amount.rounds,
    };
    let (mut times, mut quietest) = (Histogram::default(), u64::MAX);
    for round in 0..rounds {
        if matches!(beside, BackgroundWork::Changes | BackgroundWork::Flush) || round == 0 {
            fill(&subject, beside, pages)?;
        }
        let before = counted(&subject, beside)?;
        let of_round = one_round(&subject, beside, round, amount)?;
        quietest = quietest.min(of_round.worst());
        times.merge(&of_round);
        if beside.counter().is_some() && counted(&subject, beside)? == before {
            return Err(format!("bench: {}: nothing of it happened", beside.name(pages)));
        }
    }
    Ok((times, quietest))
}

/// A Pagewell in which this can go on.
fn start(
    beside: BackgroundWork,
    dir: &PrivateDir,
    rendered: Option<&Pages>,
    binary: &Path,
) -> Result<Subject, String> {
    let place = dir.path().join("snapshots");
    let mut config = match beside {
        BackgroundWork::Evictions => String::from("memory = \"64M\"\n"),
        _ => String::from("memory = \"1G\"\n"),
    };
    if beside == BackgroundWork::Snapshots {
        let _ = writeln!(
            config,
            "[snapshot]\ndirectory = \"{}\"\nevery = \"1s\"\nunwatched = \"serve\"",
            place.display()
        );
    }
    if beside != BackgroundWork::Codings {
        config.push_str("[codings]\nmake = []\n");
    }
    let file = dir.path().join("pagewell.toml");
    std::fs::write(&file, config).map_err(|error| format!("bench: {}: {error}", file.display()))?;
    let file = file.display().to_string();
    let arguments = ["--config", &file];
    match rendered {
        Some(pages) => {
            Subject::start_before(&format!("http://{}", pages.http.address()), binary, &arguments)
        }
        None => Subject::start_with(binary, &arguments),
    }
}

/// Stores the pages that the round needs: the requested page, and others.
fn fill(subject: &Subject, beside: BackgroundWork, pages: u32) -> Result<(), String> {
    match beside {
        BackgroundWork::Nothing | BackgroundWork::Stores | BackgroundWork::Codings => {}
        BackgroundWork::Changes => subject.fill(pages.min(10_000))?,
        BackgroundWork::Evictions => subject.fill(40_000)?,
        BackgroundWork::Flush | BackgroundWork::Snapshots => subject.fill(pages)?,
    }
    let page = Client::new(subject.address).get(asked(beside));
    page.map(|_| ()).map_err(|error| format!("bench: {error}"))
}

/// The page that is asked for.
fn asked(beside: BackgroundWork) -> &'static str {
    if beside == BackgroundWork::Codings { "/p/2042-0" } else { "/" }
}

fn counted(subject: &Subject, beside: BackgroundWork) -> Result<u64, String> {
    beside.counter().map_or(Ok(0), |name| subject.stat(name))
}

fn one_round(
    subject: &Subject,
    beside: BackgroundWork,
    round: usize,
    amount: &Amount,
) -> Result<Histogram, String> {
    let slice =
        if beside == BackgroundWork::Snapshots { amount.slice() * 4 } else { amount.slice() };
    let mut load = subject.load(2, LoadEnd::Elapsed(slice));
    load.targets = vec![asked(beside).to_owned()];
    let over = AtomicBool::new(false);
    let (report, worked) = thread::scope(|scope| {
        let working = scope.spawn(|| {
            cpu::on_core(subject.load_core, || work(subject, beside, round, slice, &over))
                .map_err(|error| format!("bench: {error}"))?
        });
        let report = load.run();
        over.store(true, Relaxed);
        (report, working.join())
    });
    worked.map_err(|_| "bench: panicked")??;
    let report = report.map_err(|error| format!("bench: {error}"))?;
    match report.failures + report.unexpected {
        0 => Ok(report.times),
        failed => Err(format!("bench: {failed} hits failed")),
    }
}

/// Does what is to go on, until it is over.
fn work(
    subject: &Subject,
    beside: BackgroundWork,
    round: usize,
    slice: Duration,
    over: &AtomicBool,
) -> Result<(), String> {
    let page = |n: u64| format!("/stored/{round}-{n}/");
    match beside {
        BackgroundWork::Nothing | BackgroundWork::Snapshots => Ok(()),
        BackgroundWork::Stores | BackgroundWork::Evictions => {
            ask(subject.address, 1000, over, page)
        }
        // Each twice: codings are made of what is asked for again.
        BackgroundWork::Codings => {
            ask(subject.address, 100, over, |n| format!("/p/100000-0?{round}-{}", n / 2))
        }
        BackgroundWork::Changes => super::holding::change(&subject.pagewell, 1000, over),
        BackgroundWork::Flush => {
            thread::sleep(slice / 3);
            let what = format!("{{\"prefixes\":[\"{}\"]}}", target_prefix());
            let answer = subject.pagewell.invalidate(&what);
            let answer = answer.map_err(|error| format!("bench: {error}"))?;
            match answer.status {
                200 => Ok(()),
                status => Err(format!("bench: {status}: {}", answer.text())),
            }
        }
    }
}

/// The prefix of the pages of [`Subject::fill`].
fn target_prefix() -> String {
    target(0).trim_end_matches("0/").to_owned()
}

/// Asks for pages that were not asked for before, so many a second, as one who accepts a coding.
fn ask(
    address: SocketAddr,
    rate: u64,
    over: &AtomicBool,
    page: impl Fn(u64) -> String,
) -> Result<(), String> {
    let clock = Stopwatch::start();
    let mut client = Client::new(address);
    let mut done = 0;
    while !over.load(Relaxed) {
        let due = Duration::from_micros(done * 1_000_000 / rate);
        thread::sleep(due.saturating_sub(clock.elapsed()));
        let request = Request::get(&page(done)).header("Accept-Encoding", "br");
        let answer = client.send(&request).map_err(|error| format!("bench: {error}"))?;
        if answer.status != 200 {
            return Err(format!("bench: {}: {}", answer.status, answer.text()));
        }
        done += 1;
    }
    Ok(())
}
