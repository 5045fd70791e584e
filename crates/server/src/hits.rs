//! Plain hits, answered in front of hyper: a GET or HEAD whose page is in the store and fresh, over
//! HTTP/1.1, or over HTTP/2 written as one of HTTP/1.1 (`http2::answers`). It reads what `exchange` reads and asks the same `decide`; whatever is not plain goes to
//! hyper, byte for byte, and is answered there.
//!
//! Nothing is allocated on the way: the key is written into a buffer of the connection, the page's
//! header lines were laid out when it was stored, and what changes from hit to hit (Age, ttl) is
//! written into another buffer of the connection. A connection's requests name one host, as a rule:
//! how its keys begin is kept from one to the next, beside the Host line that it was made from.
//!
//! A file of the document root that was found a moment ago is sent the same way, where no page is.

use crate::access_log::{FILE, HIT, Outcome};
use crate::codings;
use crate::forward::AllAsSent;
use crate::page::{Form, Laid, ReadPage, SharedPage, marked};
use crate::plain_head::{self, LineAt, Lines, PlainHead, PlainMethod};
use crate::serve;
use crate::site::Site;
use crate::target::{write_plain_origin, write_plain_path};
use http_cache::codings::{Coding, form_of_not_modified, form_of_whole};
use http_cache::{
    Answer, Candidate, Forms, Method, RequestFacts, Reuse, Timestamp, Verdict, decide,
};
use site_rules::{Handling, Peer, Plan, Planned, RequestView};
use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

/// What looks up plain hits for one connection.
pub struct Hits {
    /// The site that connections come to first, which knows the others.
    site: Arc<Site>,
    scheme: &'static str,
    key: Key,
    /// A buffer for where the lines of a request are.
    places: Vec<LineAt>,
    /// Whether the client is a proxy whose word about its own clients counts.
    believed: Peer,
    /// Hits with more content, in bytes, are left to the other reader.
    content_max: usize,
}

/// A key that is written, over and over.
#[derive(Default)]
struct Key {
    bytes: Vec<u8>,
    /// How many of `bytes` are scheme and host; none when they are not known.
    origin_bytes: usize,
    scheme: &'static str,
    /// The Host line that they were made from.
    host_line: Vec<u8>,
}

/// What is sent.
enum Held {
    Page(SharedPage),
    File(SharedPage),
}

impl Held {
    fn page(&self) -> &SharedPage {
        match self {
            Held::Page(page) | Held::File(page) => page,
        }
    }
}

/// A plain hit on its way to the client.
pub struct Hit {
    held: Held,
    head: Head,
    /// The coding it is sent in.
    coding: Option<Coding>,
    /// The lines that change from hit to hit, and the empty line.
    tail: Vec<u8>,
    with_content: bool,
    written: usize,
    /// When it was decided.
    instant: Instant,
    after: After,
}

/// What becomes of the connection after a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It is there for the next request.
    Stays,
    /// It ends, as the client has asked (RFC 9112 section 9.6).
    Ends,
}

/// What was found to be sent of a page.
struct Plain {
    head: Head,
    coding: Option<Coding>,
    is_get: bool,
    after: After,
    /// When it was decided: the age that is sent is the one that was judged.
    now: Timestamp,
    instant: Instant,
}

/// Which of the page's prepared header sections is sent.
#[derive(Clone, Copy)]
enum Head {
    Whole,
    NotModified,
}

/// The scheme that a trusted proxy names in a single word; anything longer is not plain.
fn plain_scheme(value: &[u8]) -> Option<&'static str> {
    match value {
        b"https" => Some("https"),
        b"http" => Some("http"),
        _ => None,
    }
}

impl Hits {
    /// For one connection to `site` by this scheme; `believed` says whose it is.
    pub fn new(site: Arc<Site>, believed: Peer, scheme: &'static str) -> Hits {
        let (key, places) = (Key::default(), Vec::new());
        Hits { site, scheme, key, places, believed, content_max: usize::MAX }
    }

    /// From now on hits with more content than so many bytes are none.
    pub fn bound(&mut self, content_max: usize) {
        self.content_max = content_max;
    }

    /// The answer to the request at the start of `bytes`, and the length of its header section, if it
    /// is a plain hit. `tail` is a buffer that is used again.
    pub fn look(&mut self, bytes: &[u8], tail: Vec<u8>) -> Result<(Hit, usize), Vec<u8>> {
        if !self.site.is_current() {
            self.site = self.site.now();
            // Never current again: this is no cost of a hit.
            if self.site.is_leaving() {
                return Err(tail);
            }
        }
        let mut places = std::mem::take(&mut self.places);
        let found = plain_head::read(bytes, &self.site.limits, &mut places)
            .and_then(|request| Some((self.find(&request)?, request.head_bytes)));
        self.places = places;
        match found {
            Some(((held, plain), head_bytes)) => Ok((Hits::hit(held, plain, tail), head_bytes)),
            None => Err(tail),
        }
    }

    /// Lets go of buffers, and of what is known from one request to the next.
    pub fn rest(&mut self) {
        self.places = Vec::new();
        self.key = Key::default();
    }

    /// The header lines of the request that was looked at last, whose header section begins `head`.
    pub fn lines<'a>(&'a self, head: &'a [u8]) -> Lines<'a> {
        Lines::at(head, &self.places)
    }

    fn find(&mut self, request: &PlainHead<'_>) -> Option<(Held, Plain)> {
        let asked = self.read_lines(request)?;
        self.key.write(asked.scheme, asked.host, request.target)?;
        let site = match self.site.neighbours.is_empty() {
            true => &self.site,
            false => self.site.for_host(self.key.host()?),
        };
        let instant = site.clock.instant();
        let now = site.clock.at(instant);
        if !asked.is_plain_for(site, &self.key) {
            return None;
        }
        let (when, most) = ((now, instant), self.content_max);
        let page = Hits::page(site, self.believed, &asked, &mut self.key, when, most);
        page.or_else(|| Hits::file(site, &asked, &self.key, when, most))
    }

    /// The page that answers the request, if it is a plain hit.
    fn page(
        site: &Site,
        peer: Peer,
        asked: &Asked<'_>,
        key: &mut Key,
        (now, instant): (Timestamp, Instant),
        content_max: usize,
    ) -> Option<(Held, Plain)> {
        let plan = asked.plan(site, peer, now, key)?;
        let rules = &site.config.rules;
        let candidates = site.store.candidates(site.store.key(&key.bytes));
        let pages = candidates.as_slice();
        let listed = pages
            .iter()
            .map(|page| Candidate { stored: &page.payload().stored, marked: marked(page) });
        let planned = Planned::new(rules, plan, &asked.fields);
        match decide(&asked.facts, &planned, listed, rules.policy(&plan), now) {
            Verdict::Reuse { candidate, .. }
                if !rules.may_use(&plan, &pages[candidate].payload().stored) =>
            {
                None
            }
            Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
                let page = &pages[candidate];
                let (head, coding) = form(&asked.facts, page, answer, content_max)?;
                if coding.is_none() && matches!(head, Head::Whole) {
                    codings::wanted(site, &asked.facts, page);
                }
                site.counters.requests.add();
                site.counters.hits.add();
                page.serve();
                Some((Held::Page(page.clone()), asked.answered(head, coding, (now, instant))))
            }
            _ => None,
        }
    }

    /// The file that answers the request, if it was found at its path a moment ago.
    fn file(
        site: &Site,
        asked: &Asked<'_>,
        key: &Key,
        (now, instant): (Timestamp, Instant),
        content_max: usize,
    ) -> Option<(Held, Plain)> {
        let (_, files) = site.files.as_ref()?;
        let path = asked.target.split('?').next()?;
        let file = files.found(path, now)?;
        if asked.facts.cache_control.only_if_cached || !site.config.hosts.have(key.host()?) {
            return None;
        }
        let length = file.length() as u64;
        let answer = http_cache::answer(&asked.facts, &file.payload().stored, Some(length));
        let (head, coding) = form(&asked.facts, &file, answer, content_max)?;
        site.counters.requests.add();
        site.counters.files.add();
        Some((Held::File(file), asked.answered(head, coding, (now, instant))))
    }

    /// What the lines say; `None` when there is something among them that is not plain.
    fn read_lines<'a>(&self, request: &PlainHead<'a>) -> Option<Asked<'a>> {
        let kind = match request.method {
            PlainMethod::Get => Method::Get,
            PlainMethod::Head => Method::Head,
        };
        let mut facts = RequestFacts::new(kind);
        let (mut host, mut told_scheme, mut has_cookies) = (None, None, false);
        let mut after = After::Stays;
        for (name, value) in request.lines.iter() {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                // A second line is for the other reader to judge.
                4 if is("host") && host.replace(value).is_some() => return None,
                6 if is("expect") => return None,
                6 if is("cookie") => has_cookies = true,
                7 if is("upgrade") => return None,
                // A crawler of LiteSpeed's plugins is told more than stands in a plain hit.
                10 if value.starts_with(b"lscache_") && is("user-agent") => return None,
                10 if is("connection") => match value {
                    // Both are for the other reader to judge.
                    _ if after == After::Ends => return None,
                    _ if value.eq_ignore_ascii_case(b"keep-alive") => {}
                    _ if value.eq_ignore_ascii_case(b"close") => after = After::Ends,
                    _ => return None,
                },
                // Whoever keeps a span of his own wants to see what is below it.
                11 if self.believed == Peer::Trusted
                    && is("traceparent")
                    && self.site.config.traces.is_some() =>
                {
                    return None;
                }
                14 if is("content-length") => return None,
                17 if is("transfer-encoding") => return None,
                17 if self.believed == Peer::Trusted && is("x-forwarded-proto") => {
                    if told_scheme.replace(plain_scheme(value)?).is_some() {
                        return None;
                    }
                }
                _ => facts.read_line(name, value),
            }
        }
        Some(Asked {
            kind,
            scheme: told_scheme.unwrap_or(self.scheme),
            host: host?,
            target: request.target,
            // What `Connection` may say here names none.
            fields: AllAsSent(request.lines),
            facts,
            has_cookies,
            after,
        })
    }

    fn hit(held: Held, plain: Plain, mut tail: Vec<u8>) -> Hit {
        let Plain { head, coding, is_get, after, now, instant } = plain;
        tail.clear();
        match &held {
            Held::Page(page) => {
                let stored = &page.payload().stored;
                let (age, ttl) = (stored.age_seconds(now), stored.ttl_seconds(now));
                tail.extend_from_slice(b"age: ");
                tail.extend_from_slice(itoa::Buffer::new().format(age).as_bytes());
                tail.extend_from_slice(b"\r\ncache-status: pagewell; hit; ttl=");
                tail.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            }
            Held::File(_) => {
                tail.extend_from_slice(b"cache-status: ");
                tail.extend_from_slice(serve::FILE_STATUS.as_bytes());
                tail.extend_from_slice(b"\r\ndate: ");
                tail.extend_from_slice(&http_cache::date::format(now));
            }
        }
        if after == After::Ends {
            tail.extend_from_slice(b"\r\nconnection: close");
        }
        tail.extend_from_slice(b"\r\n\r\n");
        let with_content = is_get && matches!(head, Head::Whole);
        Hit { held, head, coding, tail, with_content, written: 0, instant, after }
    }
}

impl Key {
    /// Writes the key of a request in origin form; `None` for what only the other reader can judge.
    fn write(&mut self, scheme: &'static str, host_line: &[u8], path: &str) -> Option<()> {
        let known = self.origin_bytes > 0 && self.scheme == scheme && self.host_line == host_line;
        if known {
            self.bytes.truncate(self.origin_bytes);
        } else {
            self.origin_bytes = 0;
            write_plain_origin(scheme, host_line, &mut self.bytes)?;
            self.origin_bytes = self.bytes.len();
            self.scheme = scheme;
            self.host_line.clear();
            self.host_line.extend_from_slice(host_line);
        }
        write_plain_path(path, &mut self.bytes)
    }

    /// The host as it counts.
    fn host(&self) -> Option<&str> {
        str::from_utf8(&self.bytes[self.scheme.len() + 3..self.origin_bytes]).ok()
    }
}

/// What a plain request asks for.
struct Asked<'a> {
    kind: Method,
    scheme: &'static str,
    host: &'a [u8],
    target: &'a str,
    fields: AllAsSent<Lines<'a>>,
    facts: RequestFacts<'a>,
    has_cookies: bool,
    after: After,
}

impl Asked<'_> {
    /// That it is answered so.
    fn answered(
        &self,
        head: Head,
        coding: Option<Coding>,
        (now, instant): (Timestamp, Instant),
    ) -> Plain {
        let is_get = self.kind == Method::Get;
        Plain { head, coding, is_get, after: self.after, now, instant }
    }

    /// Whether the target is in its normal form, and the host the site's own.
    fn is_plain_for(&self, site: &Site, key: &Key) -> bool {
        let normal = site.config.rules.form().normal(self.target);
        let canonical = &site.config.hosts.canonical;
        matches!((normal.sent, normal.page), (Cow::Borrowed(_), Cow::Borrowed(_)))
            && (canonical.is_none() || canonical.as_deref() == key.host())
    }

    /// What the rules make of the request, whose key has been written and is completed. `None` for
    /// what is not to be answered from the store here.
    fn plan(&self, site: &Site, peer: Peer, now: Timestamp, key: &mut Key) -> Option<Plan> {
        let rules = &site.config.rules;
        if !self.has_cookies && !rules.has_rules() {
            return Some(rules.plain_plan());
        }
        let is_head = self.kind == Method::Head;
        let view = RequestView {
            method: if is_head { &http::Method::HEAD } else { &http::Method::GET },
            scheme: self.scheme,
            host: key.host()?,
            path_and_query: self.target,
            fields: &self.fields,
            peer,
        };
        let plan = rules.plan(&view, site.load(), now.0);
        rules.write_key(&plan, &self.fields, &mut key.bytes);
        (plan.handling == Handling::Store).then_some(plan)
    }
}

/// Which prepared header section of a page answers the request, and in which coding its content goes.
fn form(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: Answer,
    content_max: usize,
) -> Option<(Head, Option<Coding>)> {
    let (stored, forms) = (&page.payload().stored, page.payload().forms());
    let (head, coding) = match answer {
        Answer::Whole => (Head::Whole, form_of_whole(facts, forms.codings())),
        Answer::NotModified if stored.forms == Forms::One => (Head::NotModified, None),
        Answer::NotModified => {
            (Head::NotModified, form_of_not_modified(facts, stored, forms.codings()))
        }
        _ => return None,
    };
    // The tag of a form that is not there is made elsewhere, and so is content that is not kept.
    let has = |content: Option<&[u8]>| content.is_some_and(|all| all.len() <= content_max);
    let is_there = match (coding, head) {
        (Some(coding), _) => has(forms.get(coding).and_then(|form| form.form().content())),
        (None, Head::Whole) => has(page.plain().content()),
        (None, Head::NotModified) => true,
    };
    is_there.then_some((head, coding))
}

impl Hit {
    fn pieces(&self) -> [&[u8]; 3] {
        let form = self.form();
        match self.head {
            Head::Whole => [form.head(), &self.tail, self.content()],
            Head::NotModified => {
                let [line, lines] = form.not_modified();
                [line, lines, &self.tail]
            }
        }
    }

    fn form(&self) -> Form<'_> {
        let page = self.held.page();
        let form = self.coding.and_then(|coding| page.payload().forms().get(coding));
        form.map_or_else(|| page.plain(), Laid::form)
    }

    /// Its header section: status line, lines and the empty line, in pieces that end where lines do.
    pub fn head(&self) -> [&[u8]; 3] {
        match self.head {
            Head::Whole => [self.form().head(), &self.tail, &[]],
            Head::NotModified => self.pieces(),
        }
    }

    /// What is sent of the content.
    pub fn content(&self) -> &[u8] {
        match (self.head, self.with_content) {
            (Head::Whole, true) => self.form().content().unwrap_or_default(),
            _ => &[],
        }
    }

    /// What is left to be written, given to `write`; true when nothing is.
    pub fn left<'s>(&'s self, slices: &mut [IoSlice<'s>; 3]) -> bool {
        let mut skip = self.written;
        let mut left = false;
        for (slice, piece) in slices.iter_mut().zip(self.pieces()) {
            let from = skip.min(piece.len());
            skip -= from;
            *slice = IoSlice::new(&piece[from..]);
            left |= from < piece.len();
        }
        !left
    }

    /// When it was decided.
    pub fn instant(&self) -> Instant {
        self.instant
    }

    /// What becomes of the connection.
    pub fn after(&self) -> After {
        self.after
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        match self.head {
            Head::Whole => self.held.page().payload().stored.status.as_u16(),
            Head::NotModified => 304,
        }
    }

    /// What the access log says of it.
    pub fn outcome(&self) -> Outcome<'static> {
        match self.held {
            Held::Page(_) => HIT,
            Held::File(_) => FILE,
        }
    }

    /// How much of the content was written.
    pub fn content_written(&self) -> u64 {
        let [head, tail, _] = self.pieces();
        self.written.saturating_sub(head.len() + tail.len()) as u64
    }

    /// The length of all of it, in bytes.
    pub fn length(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    /// So much was written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
    }

    /// Gives the buffer back.
    pub fn into_tail(self) -> Vec<u8> {
        self.tail
    }
}
