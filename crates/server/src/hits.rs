//! Plain hits, answered in front of hyper: a GET or HEAD whose page is in the store and fresh, over
//! HTTP/1.1, or over HTTP/2 written as one of HTTP/1.1 (`http2::answers`). It reads what `exchange` reads and asks the same `decide`; whatever is not plain goes to
//! hyper, byte for byte, and is answered there.
//!
//! Nothing is allocated on the way: the key is written into a buffer of the connection, the page's
//! header lines were laid out when it was stored, and what changes from hit to hit (Age, ttl) is
//! written into another buffer of the connection, behind the status line. A connection's requests name one host, as a rule:
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
use http::StatusCode;
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
    /// The status line, and the lines that change from hit to hit or are as quickly written as read.
    first: Vec<u8>,
    with_content: bool,
    /// How many bytes all of it is, and those before the content.
    length: usize,
    before_content: usize,
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
    form: Chosen,
    is_get: bool,
    after: After,
    /// When it was decided: the age that is sent is the one that was judged.
    now: Timestamp,
    instant: Instant,
}

/// Which form of a page is sent.
#[derive(Clone, Copy)]
struct Chosen {
    head: Head,
    coding: Option<Coding>,
    /// The length of its header lines in bytes, and the empty line.
    lines_bytes: usize,
    /// The length of its content in bytes, where the answer is whole.
    length: usize,
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
    /// is a plain hit. `buffer` is used again.
    pub fn look(&mut self, bytes: &[u8], buffer: Vec<u8>) -> Result<(Hit, usize), Vec<u8>> {
        if !self.site.is_current() {
            self.site = self.site.now();
            // Never current again: this is no cost of a hit.
            if self.site.is_leaving() {
                return Err(buffer);
            }
        }
        let mut places = std::mem::take(&mut self.places);
        let found = plain_head::read(bytes, &self.site.limits, &mut places)
            .and_then(|request| Some((self.find(&request)?, request.head_bytes)));
        self.places = places;
        match found {
            Some(((held, plain), head_bytes)) => Ok((Hits::hit(held, plain, buffer), head_bytes)),
            None => Err(buffer),
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
                let form = form(&asked.facts, page, answer, content_max)?;
                if form.coding.is_none() && matches!(form.head, Head::Whole) {
                    codings::wanted(site, &asked.facts, page);
                }
                site.counters.requests.add();
                site.counters.hits.add();
                page.serve();
                Some((Held::Page(page.clone()), asked.answered(form, (now, instant))))
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
        let form = form(&asked.facts, &file, answer, content_max)?;
        site.counters.requests.add();
        site.counters.files.add();
        Some((Held::File(file), asked.answered(form, (now, instant))))
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

    fn hit(held: Held, plain: Plain, mut first: Vec<u8>) -> Hit {
        let Plain { form, is_get, after, now, instant } = plain;
        let Chosen { head, coding, lines_bytes, length } = form;
        first.clear();
        let stored = &held.page().payload().stored;
        match head {
            Head::NotModified => first.extend_from_slice(b"HTTP/1.1 304 Not Modified"),
            Head::Whole => write_status_and_length(stored.status, length, &mut first),
        }
        match &held {
            Held::Page(_) => {
                let (age, ttl) = (stored.age_seconds(now), stored.ttl_seconds(now));
                first.extend_from_slice(b"\r\nage: ");
                first.extend_from_slice(itoa::Buffer::new().format(age).as_bytes());
                first.extend_from_slice(b"\r\ncache-status: pagewell; hit; ttl=");
                first.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
            }
            Held::File(_) => {
                first.extend_from_slice(b"\r\ncache-status: ");
                first.extend_from_slice(serve::FILE_STATUS.as_bytes());
                first.extend_from_slice(b"\r\ndate: ");
                first.extend_from_slice(&http_cache::date::format(now));
            }
        }
        if after == After::Ends {
            first.extend_from_slice(b"\r\nconnection: close");
        }
        first.extend_from_slice(b"\r\n");
        let with_content = is_get && matches!(head, Head::Whole);
        let before_content = first.len() + lines_bytes;
        let length = before_content + if with_content { length } else { 0 };
        Hit {
            held,
            head,
            coding,
            first,
            with_content,
            length,
            before_content,
            written: 0,
            instant,
            after,
        }
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
    fn answered(&self, form: Chosen, (now, instant): (Timestamp, Instant)) -> Plain {
        Plain { form, is_get: self.kind == Method::Get, after: self.after, now, instant }
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
) -> Option<Chosen> {
    let (stored, forms) = (&page.payload().stored, page.payload().forms());
    let (head, coding) = match answer {
        // It is put together for each visitor.
        Answer::Whole if stored.forms == Forms::Assembled => return None,
        Answer::Whole => (Head::Whole, form_of_whole(facts, forms.codings())),
        Answer::NotModified if stored.forms == Forms::One => (Head::NotModified, None),
        Answer::NotModified => {
            (Head::NotModified, form_of_not_modified(facts, stored, forms.codings()))
        }
        _ => return None,
    };
    // The tag of a form that is not there is made elsewhere, and so is content that is not kept.
    let form = match coding {
        Some(coding) => forms.get(coding)?.form(),
        None => page.plain(),
    };
    let (lines, length) = match (head, coding) {
        (Head::Whole, _) => (form.head(), form.content()?.len()),
        (Head::NotModified, Some(_)) => (form.not_modified(), form.content()?.len()),
        (Head::NotModified, None) => (form.not_modified(), 0),
    };
    (length <= content_max).then_some(Chosen { head, coding, lines_bytes: lines.len(), length })
}

/// Writes how a response with so much content begins, without the end of its last line.
fn write_status_and_length(status: StatusCode, length: usize, out: &mut Vec<u8>) {
    match status {
        StatusCode::OK => out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: "),
        _ => {
            let reason = status.canonical_reason().unwrap_or("Unknown");
            for piece in ["HTTP/1.1 ", status.as_str(), " ", reason] {
                out.extend_from_slice(piece.as_bytes());
            }
            // RFC 9110 section 8.6.
            if status == StatusCode::NO_CONTENT {
                return;
            }
            out.extend_from_slice(b"\r\ncontent-length: ");
        }
    }
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
}

impl Hit {
    fn pieces(&self) -> [&[u8]; 3] {
        let form = self.form();
        match self.head {
            Head::Whole => [&self.first, form.head(), self.content_in(form)],
            Head::NotModified => [&self.first, form.not_modified(), &[]],
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
            Head::Whole => [&self.first, self.form().head(), &[]],
            Head::NotModified => self.pieces(),
        }
    }

    /// What is sent of the content.
    pub fn content(&self) -> &[u8] {
        match self.head {
            Head::Whole => self.content_in(self.form()),
            Head::NotModified => &[],
        }
    }

    fn content_in<'s>(&self, form: Form<'s>) -> &'s [u8] {
        if self.with_content { form.content().unwrap_or_default() } else { &[] }
    }

    /// What is left to be written, given to `write`; true when nothing is.
    pub fn left<'s>(&'s self, slices: &mut [IoSlice<'s>; 3]) -> bool {
        if self.written >= self.length {
            return true;
        }
        let mut skip = self.written;
        for (slice, piece) in slices.iter_mut().zip(self.pieces()) {
            let from = skip.min(piece.len());
            skip -= from;
            *slice = IoSlice::new(&piece[from..]);
        }
        false
    }

    /// The page that it holds on to; files are few, and the site's own.
    pub fn page(&self) -> Option<&SharedPage> {
        match &self.held {
            Held::Page(page) => Some(page),
            Held::File(_) => None,
        }
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
        self.written.saturating_sub(self.before_content) as u64
    }

    /// The length of all of it, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// So much was written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
    }

    /// Gives the buffer back.
    pub fn into_buffer(self) -> Vec<u8> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_begins_with_its_status_and_has_a_length_but_for_a_204() {
        let begin = |status| {
            let mut out = Vec::new();
            write_status_and_length(status, 2042, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(begin(StatusCode::OK), "HTTP/1.1 200 OK\r\ncontent-length: 2042");
        let not_found = "HTTP/1.1 404 Not Found\r\ncontent-length: 2042";
        assert_eq!(begin(StatusCode::NOT_FOUND), not_found);
        assert_eq!(begin(StatusCode::NO_CONTENT), "HTTP/1.1 204 No Content");
        let unnamed = StatusCode::from_u16(299).expect("a status");
        assert_eq!(begin(unnamed), "HTTP/1.1 299 Unknown\r\ncontent-length: 2042");
    }
}
