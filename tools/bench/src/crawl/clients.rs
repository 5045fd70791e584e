//! Honest visitors, who open twenty pages each second, and the crawlers of the design's section 2.
//!
//! They are the visitors of the design's simulator. A first page is an article with its files, which three in ten
//! have; later pages are articles, filters (a fifth of them new) and searches; a tenth sign in and write. A page that
//! loads again is loaded again after two seconds, four times at most. The crawler asks for cold URLs at its rate,
//! whatever is answered; it does not wait for one request before it sends the next.

use super::connection::{PageAnswer, ProxiedConnection};
use super::figures::{PageKind, RunFigures};
use super::site::{ARTICLES, FILES, FILTERS, usual_filter};
use harness::{Random, Stopwatch};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A client gives up after this time.
const PATIENCE: Duration = Duration::from_secs(10);
const PAGES_OF_A_VISIT: u32 = 6;
/// The usual time between two pages of a visitor.
pub const THINKING_MS: usize = 4_000;
/// A deferred page is loaded again after this time, as its field says.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
const TRIES_MAX: u32 = 5;
/// The files that the crawlers C and E ask for before a page.
const FILES_OF_CRAWLERS: [u32; 2] = [1, 3];

/// A crawler of the design, by its letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crawler {
    /// None: the quiet site.
    None,
    /// 2,000 addresses.
    A,
    /// Each request from another address.
    B,
    /// As A, with a file before each page.
    C,
    /// 2,000 addresses, three files and three hits before each page, cookies, three more tries.
    E,
}

impl Crawler {
    /// All, in the order of the table.
    pub const ALL: [Crawler; 5] = [Crawler::None, Crawler::A, Crawler::B, Crawler::C, Crawler::E];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Crawler::None => "none",
            Crawler::A => "A",
            Crawler::B => "B",
            Crawler::C => "C",
            Crawler::E => "E",
        }
    }

    /// Addresses of 198.18.0.0/15.
    fn address(self, number: u64) -> Ipv4Addr {
        let count = match self {
            Crawler::B => 1 << 17,
            Crawler::E => 50_000,
            _ => 2_000,
        };
        // Each has many neighbours, but no two of them follow each other.
        let place = (number.wrapping_mul(7_919) % count) as u32;
        Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + place)
    }
}

/// The state that all threads of a run share.
pub struct CrawlRun {
    /// The server under test.
    pub server: SocketAddr,
    /// The begin of the run.
    pub begun: Stopwatch,
    /// How long it lasts.
    pub lasts: Duration,
    /// The figures of the measured time.
    pub figures: Mutex<RunFigures>,
    /// The number of the next cold page of a visitor.
    pub number: AtomicU64,
    /// Whether figures are noted.
    pub is_measured: AtomicBool,
}

impl CrawlRun {
    fn goes_on(&self) -> bool {
        self.begun.elapsed() < self.lasts
    }

    fn note(&self, note: impl FnOnce(&mut RunFigures)) {
        if self.is_measured.load(Relaxed) {
            note(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn sleep(&self, time: Duration) {
        let left = self.lasts.saturating_sub(self.begun.elapsed());
        std::thread::sleep(time.min(left));
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
        let begun = Stopwatch::start();
        let mut deferred = false;
        for _ in 0..TRIES_MAX {
            let status = self.send(target, content).map_or(0, |answer| answer.status);
            match status {
                200..=399 => {
                    let took = begun.elapsed();
                    self.run.note(|figures| figures.came(kind, took, deferred));
                    return took < PATIENCE;
                }
                503 if begun.elapsed() < PATIENCE && self.run.goes_on() => {
                    deferred = true;
                    self.run.sleep(AGAIN_AFTER);
                }
                _ => break,
            }
        }
        // A page that the end of the run has cut off was not lost.
        if self.run.goes_on() {
            self.run.note(|figures| figures.lost(kind, deferred));
        }
        false
    }
}

/// A visitor, until the run ends: one visit after the other, each from another address.
pub fn visit(run: &CrawlRun, place: u32) {
    let mut random = Random::new(u64::from(place) + 1);
    // Not all at once.
    run.sleep(Duration::from_millis(random.below(2 * THINKING_MS) as u64));
    let mut visit = 0;
    while run.goes_on() {
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
        if !run.goes_on() {
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
            run.note(|figures| figures.file(is_there, begun.elapsed()));
        }
        run.sleep(Duration::from_millis((THINKING_MS / 2 + random.below(THINKING_MS)) as u64));
    }
}

/// One of the threads that send the crawler's requests. `per_second` is the rate of all of them.
pub fn crawl(
    run: &CrawlRun,
    crawler: Crawler,
    per_second: u64,
    begins: Duration,
    sent: &AtomicU64,
) {
    loop {
        let number = sent.fetch_add(1, Relaxed);
        let due = begins + Duration::from_micros(number * 1_000_000 / per_second);
        if due >= run.lasts {
            return;
        }
        run.sleep(due.saturating_sub(run.begun.elapsed()));
        let came = crawled(run, crawler, number).unwrap_or(false);
        run.note(|figures| figures.crawled(came));
    }
}

fn crawled(run: &CrawlRun, crawler: Crawler, number: u64) -> io::Result<bool> {
    let mut connection = ProxiedConnection::open(run.server, crawler.address(number), PATIENCE)?;
    let target = match number % 10 {
        0 => format!("/article/{}/", 1_000_000 + number),
        _ => format!("/shop/?colour=c{number}&size={number}"),
    };
    let files = match crawler {
        Crawler::C => FILES_OF_CRAWLERS[0],
        Crawler::E => FILES_OF_CRAWLERS[1],
        _ => 0,
    };
    for file in 0..files {
        connection.send(&format!("/file-{file}.css"), "", None)?;
    }
    if crawler == Crawler::E {
        for article in 0..3 {
            connection.send(
                &format!("/article/{}/", (number + article) % u64::from(ARTICLES)),
                "",
                None,
            )?;
        }
        run.sleep(Duration::from_secs(2));
    }
    let mut cookie = String::new();
    for _ in 0..if crawler == Crawler::E { 4 } else { 1 } {
        let answer = connection.send(&target, &cookie, None)?;
        match answer.status {
            200 => return Ok(true),
            503 if crawler == Crawler::E => {
                if let Some(ticket) = answer.cookies.first() {
                    cookie = format!("Cookie: {ticket}\r\n");
                }
                run.sleep(AGAIN_AFTER);
            }
            _ => return Ok(false),
        }
    }
    Ok(false)
}
