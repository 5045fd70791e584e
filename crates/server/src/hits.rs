//! Plain hits, answered in front of hyper: a GET or HEAD over HTTP/1.1 whose page is in the store and
//! fresh. It reads what `exchange` reads and asks the same `decide`; whatever is not plain goes to
//! hyper, byte for byte, and is answered there.
//!
//! Nothing is allocated on the way: the key is written into a buffer of the connection, the page's
//! header lines were laid out when it was stored, and what changes from hit to hit (Age, ttl) is
//! written into another buffer of the connection.

use crate::forward::NOT_FROM_CLIENTS;
use crate::page::{SharedPage, StoredPage};
use crate::site::Site;
use crate::target::write_plain_key;
use http_cache::codings::{Coding, form_of_not_modified, form_of_whole};
use http_cache::{
    Answer, Candidate, Fields, Forms, Method, RequestFacts, Reuse, Timestamp, Verdict, decide,
};
use site_rules::{Handling, Peer, Plan, Planned, RequestView};
use std::borrow::Cow;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;

/// What looks up plain hits for one connection.
pub struct Hits {
    /// The site that connections come to first, which knows the others.
    site: Arc<Site>,
    scheme: &'static str,
    key: Vec<u8>,
    /// Whether the client is a proxy whose word about its own clients counts.
    believed: Peer,
}

/// A plain hit on its way to the client.
pub struct Hit {
    page: SharedPage,
    head: Head,
    /// The coding it is sent in.
    coding: Option<Coding>,
    /// The lines that change from hit to hit, and the empty line.
    tail: Vec<u8>,
    with_content: bool,
    written: usize,
}

/// What was found to be sent of a page.
struct Plain {
    head: Head,
    coding: Option<Coding>,
    is_get: bool,
    /// When it was decided: the age that is sent is the one that was judged.
    now: Timestamp,
}

/// Which of the page's prepared header sections is sent.
#[derive(Clone, Copy)]
enum Head {
    Whole,
    NotModified,
}

/// A request's header lines as httparse has them.
struct Lines<'a, 'b>(&'a [httparse::Header<'b>]);

impl Fields for Lines<'_, '_> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        let known = |line: &&httparse::Header<'_>| line.name.eq_ignore_ascii_case(name);
        if !NOT_FROM_CLIENTS.contains(&name) {
            self.0.iter().filter(known).for_each(|line| visit(line.value));
        }
    }
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
    /// For one connection to `site` by this scheme.
    pub fn new(site: Arc<Site>, peer: Option<SocketAddr>, scheme: &'static str) -> Hits {
        let believed = match site.config.trusted_proxies.have_peer(peer) {
            true => Peer::Trusted,
            false => Peer::Anybody,
        };
        Hits { site, scheme, key: Vec::with_capacity(256), believed }
    }

    /// The answer to a well-formed request without content, if it is a plain hit. `tail` is a buffer
    /// that is used again.
    pub fn look(
        &mut self,
        request: &httparse::Request<'_, '_>,
        tail: Vec<u8>,
    ) -> Result<Hit, Vec<u8>> {
        match self.find(request) {
            Some((page, plain)) => Ok(Hits::hit(page, plain, tail)),
            None => Err(tail),
        }
    }

    fn find(&mut self, request: &httparse::Request<'_, '_>) -> Option<(SharedPage, Plain)> {
        let (method, path) = (request.method?, request.path?);
        let kind = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => return None,
        };
        if request.version != Some(1) {
            return None;
        }
        let mut facts = RequestFacts::new(kind);
        let mut host = None;
        let mut scheme = self.scheme;
        let mut has_cookies = false;
        let mut scheme_told = false;
        for line in request.headers.iter() {
            match line.name.len() {
                4 if line.name.eq_ignore_ascii_case("host") => host = Some(line.value),
                6 if line.name.eq_ignore_ascii_case("expect") => return None,
                6 if line.name.eq_ignore_ascii_case("cookie") => has_cookies = true,
                17 if self.believed == Peer::Trusted
                    && line.name.eq_ignore_ascii_case("x-forwarded-proto") =>
                {
                    // A second line is for the other reader to judge.
                    if std::mem::replace(&mut scheme_told, true) {
                        return None;
                    }
                    scheme = plain_scheme(line.value)?;
                }
                10 if line.name.eq_ignore_ascii_case("connection")
                    && !line.value.eq_ignore_ascii_case(b"keep-alive") =>
                {
                    return None;
                }
                _ => facts.read_line(line.name.as_bytes(), line.value),
            }
        }
        write_plain_key(scheme, host?, path, &mut self.key)?;
        let site = match self.site.neighbours.is_empty() {
            true => &self.site,
            false => self.site.for_host(host_in(&self.key, scheme, path)?),
        };
        let fields = Lines(request.headers);
        let asked = Asked { scheme, method, path, believed: self.believed, has_cookies };
        let plan = asked.plan(site, &fields, &mut self.key)?;
        let rules = &site.config.rules;
        let candidates = site.store.candidates(site.store.key(&self.key));
        let pages = candidates.as_slice();
        let listed = pages
            .iter()
            .map(|page| Candidate { stored: &page.payload().stored, marked: page.is_marked() });
        let planned = Planned::new(rules, plan, &fields);
        let now = site.clock.now();
        match decide(&facts, &planned, listed, rules.policy(&plan), now) {
            Verdict::Reuse { candidate, .. }
                if !rules.may_use(&plan, &pages[candidate].payload().stored) =>
            {
                None
            }
            Verdict::Reuse { candidate, state: Reuse::Fresh, answer } => {
                let page = &pages[candidate];
                let (head, coding) = form(&facts, page.payload(), answer)?;
                site.counters.requests.add();
                site.counters.hits.add();
                Some((page.clone(), Plain { head, coding, is_get: kind == Method::Get, now }))
            }
            _ => None,
        }
    }

    fn hit(page: SharedPage, plain: Plain, mut tail: Vec<u8>) -> Hit {
        let Plain { head, coding, is_get, now } = plain;
        let stored = &page.payload().stored;
        let (age, ttl) = (stored.age_seconds(now), stored.ttl_seconds(now));
        tail.clear();
        tail.extend_from_slice(b"age: ");
        tail.extend_from_slice(itoa::Buffer::new().format(age).as_bytes());
        tail.extend_from_slice(b"\r\ncache-status: pagewell; hit; ttl=");
        tail.extend_from_slice(itoa::Buffer::new().format(ttl).as_bytes());
        tail.extend_from_slice(b"\r\n\r\n");
        let with_content = is_get && matches!(head, Head::Whole);
        Hit { page, head, coding, tail, with_content, written: 0 }
    }
}

/// The host as it counts: a key begins with the scheme and the host, and ends with the path.
fn host_in<'k>(key: &'k [u8], scheme: &str, path: &str) -> Option<&'k str> {
    str::from_utf8(key).ok()?.get(scheme.len() + 3..key.len() - path.len())
}

/// What of a request the rules are asked about.
struct Asked<'a> {
    scheme: &'a str,
    method: &'a str,
    path: &'a str,
    believed: Peer,
    has_cookies: bool,
}

impl Asked<'_> {
    /// What the rules make of the request, whose key has been written and is completed. `None` for
    /// what is not to be answered here.
    fn plan(&self, site: &Site, fields: &Lines<'_, '_>, key: &mut Vec<u8>) -> Option<Plan> {
        let rules = &site.config.rules;
        let normal = rules.form().normal(self.path);
        if !matches!((normal.sent, normal.page), (Cow::Borrowed(_), Cow::Borrowed(_))) {
            return None;
        }
        let host = host_in(key, self.scheme, self.path)?;
        let canonical = &site.config.hosts.canonical;
        if canonical.as_ref().is_some_and(|canonical| canonical != host) {
            return None;
        }
        if !self.has_cookies && !rules.has_rules() {
            return Some(rules.plain_plan());
        }
        let head = self.method == "HEAD";
        let view = RequestView {
            method: if head { &http::Method::HEAD } else { &http::Method::GET },
            scheme: self.scheme,
            host,
            path_and_query: self.path,
            fields,
            peer: self.believed,
        };
        let plan = rules.plan(&view, site.load(), site.clock.now().0);
        rules.write_key(&plan, fields, key);
        (plan.handling == Handling::Store).then_some(plan)
    }
}

/// Which prepared header section of a page answers the request, and in which coding its content goes.
fn form(
    facts: &RequestFacts<'_>,
    page: &StoredPage,
    answer: Answer,
) -> Option<(Head, Option<Coding>)> {
    let (stored, forms) = (&page.stored, &page.forms);
    let (head, coding) = match answer {
        Answer::Whole => (Head::Whole, form_of_whole(facts, forms.codings())),
        Answer::NotModified if stored.forms == Forms::One => (Head::NotModified, None),
        Answer::NotModified => {
            (Head::NotModified, form_of_not_modified(facts, stored, forms.codings()))
        }
        _ => return None,
    };
    // The tag of a form that is not there is made elsewhere.
    let is_there = coding.is_none_or(|coding| forms.get(coding).is_some());
    is_there.then_some((head, coding))
}

impl Hit {
    fn pieces(&self) -> [&[u8]; 3] {
        let page: &StoredPage = self.page.payload();
        let form = self.coding.and_then(|coding| page.forms.get(coding));
        let (heads, content) = match form {
            Some(form) => (&form.heads, &form.content),
            None => (&page.heads, &page.content),
        };
        let head = match self.head {
            Head::Whole => heads.whole(),
            Head::NotModified => heads.not_modified(),
        };
        let content = if self.with_content { &content[..] } else { &[] };
        [head, &self.tail, content]
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

    /// So much was written.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
    }

    /// Gives the buffer back.
    pub fn into_tail(self) -> Vec<u8> {
        self.tail
    }
}
