//! Plain hits, answered in front of hyper: a GET or HEAD whose page is in the store and fresh, over
//! HTTP/1.1 or 1.0, or over HTTP/2 written as one of HTTP/1.1 (`http2::answers`). It reads what `exchange`
//! reads and asks the same `lookup`; whatever is not plain goes to hyper, byte for byte, and is
//! answered there. What was found goes out as a `hit`.
//!
//! Nothing is allocated on the way: the key is written into a buffer of the connection, the page's
//! header lines were laid out when it was stored, and what changes from hit to hit (Age, ttl) is
//! written into another buffer of the connection. A connection's requests name one host, as a rule: how
//! its keys begin is kept from one to the next, beside the Host line that it was made from.
//!
//! A file of the document root that was found a moment ago is sent the same way, where no page is.

mod hit;

pub use hit::{After, Hit};

use crate::codings;
use crate::lookup::{self, StoredPages};
use crate::page::{ReadPage, Section, SharedPage, select};
use crate::plain_head::{self, LineAt, Lines, PlainHead, PlainMethod, PlainVersion};
use crate::request_fields::AllAsSent;
use crate::site::Site;
use crate::target::{write_plain_origin, write_plain_path};
use hit::{Chosen, Held, Plain};
use http_cache::{Answer, Method, RequestFacts, Reuse, Timestamp, Verdict};
use site_rules::{Handling, Peer, Plan, RequestView};
use std::borrow::Cow;
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
            Some(((held, plain), head_bytes)) => Ok((Hit::new(held, plain, buffer), head_bytes)),
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
        let candidates = site.store.candidates(site.store.key(&key.bytes));
        let pages = candidates.as_slice();
        if pages.is_empty() {
            return None;
        }
        let shared = StoredPages::Shared(pages);
        match lookup::choose(site, &asked.facts, &asked.fields, &plan, shared, now) {
            Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
                let page = &pages[candidate];
                let form = form(&asked.facts, page, answer, content_max)?;
                if form.coding.is_none() && form.head == Section::Whole {
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
        let (_, files) = site.files.as_deref()?;
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
        let (mut keeps, mut closes) = (request.version == PlainVersion::Http11, false);
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
                    _ if closes => return None,
                    _ if value.eq_ignore_ascii_case(b"keep-alive") => keeps = true,
                    _ if value.eq_ignore_ascii_case(b"close") => closes = true,
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
                // Answered for its client alone, by the other reader.
                _ if site_rules::reason_to_bypass(name, value).is_some() => return None,
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
            version: request.version,
            after: if keeps && !closes { After::Stays } else { After::Ends },
        })
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
    version: PlainVersion,
    after: After,
}

impl Asked<'_> {
    /// That it is answered so.
    fn answered(&self, form: Chosen, (now, instant): (Timestamp, Instant)) -> Plain {
        let (is_get, version, after) = (self.kind == Method::Get, self.version, self.after);
        Plain { form, is_get, version, after, now, instant }
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

/// The form of a page that answers the request, if it goes out as it is laid out, with no more than so many
/// bytes of content. Whatever has to be made for the request is for the other reader.
#[inline]
fn form(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: Answer,
    content_max: usize,
) -> Option<Chosen> {
    let selected = select(facts, page, answer);
    let (head, coding) = (selected.section?, selected.coding);
    let (lines, length) = (selected.lines()?, selected.content_bytes()?);
    (length <= content_max).then_some(Chosen { head, coding, lines_bytes: lines.len(), length })
}
