//! A reader: requests pages over a persistent connection, one after the other, without pauses
//! unless the run requires them.
//!
//! Before each request it records the acknowledged versions, and compares the response with them.
//! Usually it requests the whole page; sometimes the head, a range, or a validation of its last
//! page. With faults it sometimes disconnects in the middle of a response.

use super::judge::{Fault, Judgement, Question, judge};
use super::run::{HOST, Run};
use super::script::Faults;
use super::site::Page;
use super::stamp::{Stamp, dotted};
use harness::Chance;
use harness::{Address, Client, ClientError, Histogram, Request, Response};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::thread::sleep;
use std::time::Duration;

/// Every other request is for one of the most-read pages: one in so many.
const MOST_READ: usize = 10;
/// With faults, one request in so many is given up in the middle of its answer.
const LEAVE_ONE_IN: usize = 50;
/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(60);

/// The answers of a reader, counted.
#[derive(Debug, Default)]
pub struct AnswerCounts {
    /// Answers that could be judged.
    pub answers: u64,
    /// Of these, from memory.
    pub hits: u64,
    /// Of these, made from what was before a soft change, as long as that is allowed.
    pub stale: u64,
    /// Of these, by another request's render.
    pub collapsed: u64,
    /// How many of these were a 304.
    pub unchanged: u64,
    /// Of these, a piece.
    pub pieces: u64,
    /// Of these, to HEAD.
    pub heads: u64,
    /// Answers that there is none: 502, 503, 504.
    pub none: u64,
    /// Answers that were seen not to be whole, or did not come.
    pub incomplete: u64,
    /// Requests that found nobody listening.
    pub unreached: u64,
    /// Answers that the reader gave up.
    pub left: u64,
    /// Wrong answers: outdated, torn, foreign.
    pub wrong: [u64; 3],
    /// How long answers took.
    pub times: Histogram,
}

impl AnswerCounts {
    /// Adds what another reader has seen.
    pub fn add(&mut self, other: &AnswerCounts) {
        let AnswerCounts { answers, hits, stale, collapsed, unchanged, pieces, heads, .. } = other;
        self.answers += answers;
        self.hits += hits;
        self.stale += stale;
        self.collapsed += collapsed;
        self.unchanged += unchanged;
        self.pieces += pieces;
        self.heads += heads;
        self.none += other.none;
        self.incomplete += other.incomplete;
        self.unreached += other.unreached;
        self.left += other.left;
        for (mine, theirs) in self.wrong.iter_mut().zip(other.wrong) {
            *mine += theirs;
        }
        self.times.merge(&other.times);
    }
}

/// How a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retrieval {
    Whole,
    Head,
    IfChanged,
    FirstPart,
    LastPart,
}

/// A reader of one machine: a client that judges each answer.
pub struct Reader<'a> {
    run: &'a Run,
    chance: Chance,
    client: Client,
    /// The validator seen last for a page and variant, and what that page was made from.
    last_seen: HashMap<(usize, char), (String, Stamp)>,
    seen: AnswerCounts,
}

/// Reads until the run is over.
pub fn read(run: &Run, number: usize) -> AnswerCounts {
    let mut reader = Reader::new(run, number);
    while !run.is_over() {
        run.wait_up();
        reader.ask();
        sleep(run.pause);
    }
    reader.seen
}

impl<'a> Reader<'a> {
    /// The reader of this number.
    pub fn new(run: &'a Run, number: usize) -> Reader<'a> {
        Reader {
            run,
            chance: Chance::new(run.seed, 1 << 16 | number as u64),
            client: Client::new(run.pagewell).host(HOST).within(WITHIN),
            last_seen: HashMap::new(),
            seen: AnswerCounts::default(),
        }
    }

    /// The answers so far, counted.
    pub fn seen(&self) -> &AnswerCounts {
        &self.seen
    }

    fn ask(&mut self) {
        let pages = &self.run.site.pages;
        let most_read = pages.len().div_ceil(MOST_READ);
        let among = if self.chance.one_in(2) { most_read } else { pages.len() };
        // The most-read are of every kind: one in ten of all.
        let stride = if among == most_read { MOST_READ + 1 } else { 1 };
        let number = self.chance.below(among) * stride % pages.len();
        self.ask_for(&pages[number]);
    }

    /// Asks for this page, and judges the answer.
    pub fn ask_for(&mut self, page: &Page) {
        let run = self.run;
        let variant = page.variants()[self.chance.below(page.variants().len())];
        let known = self.last_seen.get(&(page.number, variant)).cloned();
        let retrieval = self.retrieval(known.is_some());
        let request = request(page, variant, retrieval, known.as_ref());
        let acknowledged = run.site.acknowledged(page);
        if run.faults == Faults::On && self.chance.one_in(LEAVE_ONE_IN) {
            self.leave(&request);
            return;
        }
        let sent_micros = run.micros();
        let response = match self.client.send(&request) {
            Ok(response) => response,
            Err(error) => return self.miss(page, retrieval, &error),
        };
        let took_micros = run.micros() - sent_micros;
        let is_head = retrieval == Retrieval::Head;
        let condition = known.as_ref().filter(|_| retrieval == Retrieval::IfChanged);
        let site = &run.site;
        let question =
            Question { site, page, variant, is_head, condition, acknowledged, sent_micros };
        let judgement = judge(&question, &response);
        match judgement {
            Judgement::None => self.seen.none += 1,
            Judgement::Right(stamp) | Judgement::Stale(stamp) => {
                self.count(&response, retrieval, took_micros);
                self.seen.stale += u64::from(matches!(judgement, Judgement::Stale(_)));
                if let Some(etag) = response.header("etag") {
                    self.last_seen.insert((page.number, variant), (etag.to_owned(), stamp));
                }
            }
            Judgement::Wrong(fault, stamp) => {
                self.count(&response, retrieval, took_micros);
                self.seen.wrong[fault as usize] += 1;
                run.report(fault, || describe(&question, retrieval, &response, stamp, took_micros));
            }
        }
    }

    /// There was no whole answer.
    fn miss(&mut self, page: &Page, retrieval: Retrieval, error: &ClientError) {
        if matches!(error, ClientError::Connect(_)) {
            self.seen.unreached += 1;
            return;
        }
        let Page { target, kind, .. } = page;
        let what = || format!("{target} ({kind:?}), asked {retrieval:?}: {error}");
        self.seen.incomplete += 1;
        match (error, self.run.faults) {
            (ClientError::TimedOut, _) => self.run.report_silence(what),
            (_, Faults::Off) => self.run.keep("incomplete", what),
            (_, Faults::On) => {}
        }
    }

    fn retrieval(&mut self, has_seen: bool) -> Retrieval {
        match self.chance.below(100) {
            0..15 if has_seen => Retrieval::IfChanged,
            15..22 => Retrieval::Head,
            22..26 => Retrieval::FirstPart,
            26..30 => Retrieval::LastPart,
            _ => Retrieval::Whole,
        }
    }

    fn count(&mut self, response: &Response, retrieval: Retrieval, took_micros: u64) {
        let seen = &mut self.seen;
        let status = response.header("cache-status").unwrap_or_default();
        seen.answers += 1;
        seen.hits += u64::from(status.contains("; hit"));
        seen.collapsed += u64::from(status.contains("; collapsed"));
        seen.unchanged += u64::from(response.status == 304);
        seen.pieces += u64::from(response.status == 206);
        seen.heads += u64::from(retrieval == Retrieval::Head);
        seen.times.record(took_micros * 1000);
    }

    /// Asks on a connection of its own, reads a little, and goes.
    fn leave(&mut self, request: &Request) {
        self.seen.left += 1;
        let Ok(mut stream) = Address::from(self.run.pagewell).connect(WITHIN) else { return };
        let mut little = [0; 64];
        if stream.write_all(&request.to_bytes(HOST)).is_ok() && self.chance.one_in(2) {
            let _ = stream.read(&mut little);
        }
    }
}

fn request(
    page: &Page,
    variant: char,
    retrieval: Retrieval,
    known: Option<&(String, Stamp)>,
) -> Request {
    let method = if retrieval == Retrieval::Head { "HEAD" } else { "GET" };
    let mut request = Request::new(method, &page.target);
    if variant != '-' {
        request = request.header("X-Variant", &variant.to_string());
    }
    match (retrieval, known) {
        (Retrieval::IfChanged, Some((etag, _))) => request.header("If-None-Match", etag),
        (Retrieval::FirstPart, _) => request.header("Range", "bytes=0-1199"),
        // Long enough for a whole line of the longest.
        (Retrieval::LastPart, _) => request.header("Range", "bytes=-4800"),
        _ => request,
    }
}

fn describe(
    question: &Question<'_>,
    retrieval: Retrieval,
    response: &Response,
    stamp: Option<Stamp>,
    took_micros: u64,
) -> String {
    let made_from = stamp.map_or("nothing known".to_owned(), |stamp| stamp.to_string());
    let field = |name: &str| response.header(name).unwrap_or("none").to_owned();
    format!(
        "{target} ({kind:?}, cells {reads:?}), asked {retrieval:?}, variant {variant}\n    \
         acknowledged before it was sent: {acknowledged}\n    \
         the answer was made from:        {made_from}\n    \
         status {status}, {bytes} bytes, Cache-Status: {cache_status}, Age: {age}, ETag: {etag}\n    \
         sent {sent_micros} µs after the start, answered {took_micros} µs later",
        sent_micros = question.sent_micros,
        target = question.page.target,
        kind = question.page.kind,
        reads = question.page.reads,
        variant = question.variant,
        acknowledged = dotted(&question.acknowledged),
        status = response.status,
        bytes = response.content.len(),
        cache_status = field("cache-status"),
        age = field("age"),
        etag = field("etag"),
    )
}

/// How many answers were outdated, torn and foreign, by name.
pub fn wrong_by_name(wrong: &[u64; 3]) -> [(&'static str, u64); 3] {
    [Fault::Outdated, Fault::Torn, Fault::Foreign]
        .map(|fault| (fault.as_str(), wrong[fault as usize]))
}
