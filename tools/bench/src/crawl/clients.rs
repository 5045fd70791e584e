//! Honest visitors, who open twenty pages each second: those of the design's simulator.
//!
//! A first page is an article with its files, which three in ten have; later pages are articles, filters (a fifth of
//! them new) and searches; a tenth sign in and write. A page that loads again is loaded again after two seconds, four
//! times at most.

use super::connection::{PageAnswer, ProxiedConnection};
use super::figures::{PageKind, RunFigures, ViewEnd};
use super::priority::{VISITOR_NICE, set_nice};
use super::site::{ARTICLES, FILES, FILTERS, usual_filter};
use harness::{Random, Stopwatch};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A client gives up after this time.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// A request that the end of the run cuts off is not waited for much longer.
const AFTER_END: Duration = Duration::from_secs(1);
const PAGES_OF_A_VISIT: u32 = 6;
/// The usual time between two pages of a visitor.
pub const THINKING_MS: usize = 4_000;
/// A deferred page is loaded again after this time, as its field says.
pub const AGAIN_AFTER: Duration = Duration::from_secs(2);
const TRIES_MAX: u32 = 5;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunPhase {
    /// The first fifth: nothing is noted.
    WarmUp,
    Measured,
    Over,
}

/// The time of a run.
pub struct RunTime {
    begun: Stopwatch,
    lasts: Duration,
}

impl RunTime {
    /// A run that begins now, and lasts so long.
    pub fn start(lasts: Duration) -> RunTime {
        RunTime { begun: Stopwatch::start(), lasts }
    }

    /// The time since its begin.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The time before figures are noted.
    pub fn warm_up(&self) -> Duration {
        self.lasts / 5
    }

    fn phase_at(&self, at: Duration) -> RunPhase {
        if at >= self.lasts {
            RunPhase::Over
        } else if at >= self.warm_up() {
            RunPhase::Measured
        } else {
            RunPhase::WarmUp
        }
    }

    /// The time until its end.
    pub fn left(&self) -> Duration {
        self.lasts.saturating_sub(self.begun.elapsed())
    }

    /// Whether it has not ended.
    pub fn goes_on(&self) -> bool {
        self.begun.elapsed() < self.lasts
    }

    /// Sleeps for this time, not longer than the run lasts.
    pub fn sleep(&self, time: Duration) {
        std::thread::sleep(time.min(self.left()));
    }

    /// How long a client waits for a response. After the end of the run it makes no difference whether one comes.
    pub fn patience(&self) -> Duration {
        PATIENCE.min(self.left() + AFTER_END)
    }
}

/// The state that all visitors of a run share.
pub struct CrawlRun {
    /// The server under test.
    pub server: SocketAddr,
    /// The time that is measured, and that before it.
    pub time: RunTime,
    /// The figures of the measured time.
    pub figures: Mutex<RunFigures>,
    /// The number of the next cold page of a visitor.
    pub number: AtomicU64,
}

impl CrawlRun {
    /// Records figures. They are computed before: a visitor that waits for the lock is not one that waits for a page.
    fn note(&self, note: impl FnOnce(&mut RunFigures)) {
        note(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Records a page view that began at this time of the run and ends now.
    fn note_view(&self, kind: PageKind, begun: Duration, came: bool, deferred: bool) {
        let (now, lasts) = (self.time.elapsed(), self.time.lasts);
        let (end, waited) = match self.time.phase_at(now) {
            RunPhase::WarmUp => return,
            RunPhase::Measured if came => (ViewEnd::Came, now.saturating_sub(begun)),
            RunPhase::Measured => (ViewEnd::Lost, PATIENCE),
            // It was in progress at the end, whatever came of it afterwards.
            RunPhase::Over if begun < lasts => (ViewEnd::CutOff, lasts.saturating_sub(begun)),
            RunPhase::Over => return,
        };
        self.note(|figures| figures.view(kind, end, waited, deferred));
    }
}

struct Visitor<'a> {
    run: &'a CrawlRun,
    address: Ipv4Addr,
    connection: Option<ProxiedConnection>,
    cookies: BTreeMap<String, String>,
}

impl Visitor<'_> {
    fn send(&mut self, target: &str, content: Option<&str>) -> io::Result<PageAnswer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => ProxiedConnection::open(self.run.server, self.address, PATIENCE)?,
        };
        connection.set_patience(self.run.time.patience())?;
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let field = if cookies.is_empty() {
            String::new()
        } else {
            format!("Cookie: {}\r\n", cookies.join("; "))
        };
        let answer = connection.send(target, &field, content)?;
        for cookie in &answer.cookies {
            if let Some((name, value)) = cookie.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        if !answer.is_last() {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// Opens a page, again if it is deferred. Returns whether it came.
    fn open(&mut self, kind: PageKind, target: &str, content: Option<&str>) -> bool {
        let run = self.run;
        let (time, begun) = (&run.time, run.time.elapsed());
        let (mut came, mut deferred) = (false, false);
        for _ in 0..TRIES_MAX {
            let status = self.send(target, content).map_or(0, |answer| answer.status);
            came = matches!(status, 200..=399);
            let waited = time.elapsed().saturating_sub(begun);
            if status != 503 || waited >= PATIENCE || !time.goes_on() {
                break;
            }
            deferred = true;
            time.sleep(AGAIN_AFTER);
        }
        run.note_view(kind, begun, came, deferred);
        came
    }
}

/// A visitor, until the run ends: one visit after the other, each from another address.
pub fn visit(run: &CrawlRun, place: u32) {
    set_nice(VISITOR_NICE);
    let mut random = Random::new(u64::from(place) + 1);
    // Not all at once.
    run.time.sleep(Duration::from_millis(random.below(2 * THINKING_MS) as u64));
    let mut visit = 0;
    while run.time.goes_on() {
        visit += 1;
        // A tenth is behind one address.
        let number = if place.is_multiple_of(10) { 0 } else { place * 10_000 + visit };
        let address = Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number);
        let visitor = Visitor { run, address, connection: None, cookies: BTreeMap::new() };
        one_visit(visitor, &mut random, &format!("v{place}-{visit}"));
    }
}

fn one_visit(mut visitor: Visitor<'_>, random: &mut Random, name: &str) {
    let run = visitor.run;
    let (signs_in, has_files) = (random.chance(10), random.below(10) < 3);
    for page in 0..PAGES_OF_A_VISIT {
        if !run.time.goes_on() {
            return;
        }
        let cold = run.number.fetch_add(1, Relaxed);
        // The first ones are read most.
        let most = 1 + random.below(ARTICLES as usize);
        let article = format!("/article/{}/", random.below(most));
        let (kind, target, content) = match (signs_in, page, random.below(20)) {
            (_, 0, _) => (PageKind::Warm, article, None),
            (true, 1, _) => (PageKind::Write, "/login".into(), Some(format!("visitor={name}"))),
            (true, _, 0) => (PageKind::Write, "/comment".into(), Some("text=hello".into())),
            (true, ..) => (PageKind::Session, format!("/account/{}", random.below(20)), None),
            (_, _, 0) => (PageKind::Other, format!("/search?q={name}-{cold}"), None),
            (_, _, 1..=3) if random.chance(5) => {
                (PageKind::Crawled, format!("/shop/?colour={cold}&size={name}"), None)
            }
            (_, _, 1..=3) => (PageKind::Warm, usual_filter(random.below(FILTERS as usize)), None),
            _ => (PageKind::Warm, article, None),
        };
        if content.is_some() {
            visitor.cookies.insert("visitor".to_owned(), name.to_owned());
        }
        let came = visitor.open(kind, &target, content.as_deref());
        let files = match page {
            _ if !came || has_files => 0,
            0 => FILES,
            _ => u32::from(random.below(10) < 6),
        };
        for file in 0..files {
            let begun = Stopwatch::start();
            let target = format!("/file-{file}.css");
            let is_there = visitor.send(&target, None).is_ok_and(|one| one.status == 200);
            let took = begun.elapsed();
            if run.time.phase_at(run.time.elapsed()) == RunPhase::Measured {
                run.note(|figures| figures.file(is_there, took));
            }
        }
        run.time.sleep(Duration::from_millis((THINKING_MS / 2 + random.below(THINKING_MS)) as u64));
    }
}
