//! The lines of the access log that the front writes itself: of plain hits, and of what it refuses. Those
//! of all other requests `access_log::Entry` writes; here is only seen to it that they wait until hyper
//! has written the answer.
//!
//! A connection without a log has no [`Lines`], and each step here is one look at that. With it a hit's
//! header lines are not read anew: where they are is still known from when it was looked up.

use super::Front;
use super::State;
use crate::hit::Hit;
use crate::hit::read::Lines as HeaderLines;
use exchange::access_log::{AccessLog, Client, Line, Outcome};
use exchange::site::Site;
use site_rules::Peer;
use site_state::client::Visitor;
use site_state::refusal::Refusal;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;

/// More of what was refused is not looked at.
const REQUEST_LINE_BYTES_MAX: usize = 8 << 10;

/// What the lines of a connection have in common.
pub struct Lines {
    log: Arc<AccessLog>,
    /// Whose connection it is; of a trusted proxy's, whose request the last one was.
    client: Client,
    scheme: &'static str,
    peer: Option<IpAddr>,
    believed: Peer,
    /// The length of the header section that the hit was looked up by.
    head_bytes: usize,
}

impl<IO> Front<IO> {
    /// Has the requests of this visitor logged, where there is a log.
    pub fn logged(mut self, visitor: &Visitor) -> Front<IO> {
        self.lines = Lines::of(&self.site, visitor);
        self
    }

    /// A plain hit was found by the header section of so many bytes that was just handed on.
    pub(super) fn note_hit(&mut self, head_bytes: usize) {
        if let Some(lines) = &mut self.lines {
            lines.head_bytes = head_bytes;
        }
    }

    /// A plain hit was written, or has broken off.
    pub(super) fn log_hit(&mut self, hit: &Hit, is_whole: bool) {
        let (Some(lines), Some(hits)) = (&mut self.lines, &self.hits) else { return };
        // Nothing was read since.
        let head = &self.arrived[self.handed - lines.head_bytes..self.handed];
        let said = Said { head, lines: hits.lines(head), protocol: hit.version().as_bytes() };
        lines.write_hit(&self.site, &said, hit, is_whole);
    }

    /// A hit that cannot be written any further.
    #[cold]
    pub(super) fn hit_failed(&mut self, error: io::Error) -> io::Error {
        if let State::Hit(hit) = std::mem::replace(&mut self.state, State::Ended) {
            self.log_hit(&hit, false);
        }
        error
    }

    /// A request is refused before it was read: what can be seen of it is logged.
    pub(super) fn log_refusal(&mut self, refusal: Refusal, bytes: usize) {
        let Some(lines) = &self.lines else { return };
        let seen = &self.arrived[self.handed..];
        let seen = &seen[..seen.len().min(REQUEST_LINE_BYTES_MAX)];
        let end = memchr::memchr2(b'\r', b'\n', seen).unwrap_or(seen.len());
        let mut words = seen[..end].splitn(3, |byte| *byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let (method, target, protocol) = (word(), word(), word());
        self.site.log_access(&Line {
            time: self.site.clock.now(),
            client: &lines.client,
            method,
            scheme: lines.scheme,
            host: b"",
            target,
            protocol,
            status: refusal.status().as_u16(),
            bytes: bytes as u64,
            duration_us: 0,
            origin_us: None,
            outcome: Outcome { word: "refused", detail: refusal.as_str().as_bytes() },
            broken: false,
            referer: b"",
            user_agent: b"",
        });
    }

    /// All that hyper had is written.
    pub(super) fn log_flushed(&mut self) {
        if self.lines.is_some() {
            self.in_flight.flushed();
        }
    }

    /// hyper has written.
    pub(super) fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(_), Poll::Ready(Ok(count))) = (&self.lines, written) {
            self.in_flight.wrote(*count);
        }
    }
}

/// What the request of a hit said.
pub struct Said<'a> {
    /// Its header section, as one of HTTP/1.1.
    pub head: &'a [u8],
    /// The lines of that.
    pub lines: HeaderLines<'a>,
    /// By which protocol it came.
    pub protocol: &'static [u8],
}

impl Lines {
    /// For the connection of a visitor, where the site has a log.
    pub fn of(site: &Site, visitor: &Visitor) -> Option<Box<Lines>> {
        site.access_log.clone().map(|log| {
            let peer = visitor.peer.map(|peer| peer.ip());
            let client = log.format().client(peer);
            let (scheme, believed) = (visitor.scheme, visitor.believed);
            Box::new(Lines { log, client, scheme, peer, believed, head_bytes: 0 })
        })
    }

    /// Writes the line of a plain hit.
    pub fn write_hit(&mut self, site: &Site, said: &Said<'_>, hit: &Hit, is_whole: bool) {
        let (mut host, mut referer, mut user_agent) = (&b""[..], &b""[..], &b""[..]);
        for (name, value) in said.lines.iter() {
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"host") => host = value,
                7 if name.eq_ignore_ascii_case(b"referer") => referer = value,
                10 if name.eq_ignore_ascii_case(b"user-agent") => user_agent = value,
                _ => {}
            }
        }
        let mut scheme = self.scheme;
        if self.believed == Peer::Trusted {
            scheme = self.read_proxy(site, &said.lines).unwrap_or(scheme);
        }
        // GET or HEAD, a blank, the target, a blank: it was read as such.
        let (method, rest) = said.head.split_at(if said.head.starts_with(b"GET ") { 3 } else { 4 });
        let target = &rest[1..];
        let target = &target[..memchr::memchr(b' ', target).unwrap_or(target.len())];
        // The clock is read once more only where the line says what it shows.
        let took = || site.clock.instant().saturating_duration_since(hit.instant());
        let duration = self.log.format().is_timed().then(took).unwrap_or_default();
        site.log_access(&Line {
            time: site.clock.at(hit.instant()),
            client: &self.client,
            method,
            scheme,
            host,
            target,
            protocol: said.protocol,
            status: hit.status(),
            bytes: hit.content_written(),
            duration_us: duration.as_micros() as u64,
            origin_us: None,
            outcome: hit.outcome(),
            broken: !is_whole,
            referer,
            user_agent,
        });
    }

    /// For whom, and by which scheme, a trusted proxy asks.
    fn read_proxy(&mut self, site: &Site, lines: &HeaderLines<'_>) -> Option<&'static str> {
        let named = |name: &'static str| {
            lines.iter().rev().filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
        };
        let said = named("x-forwarded-for").map(|(_, value)| value);
        let address = site.config.trusted_proxies.client_of(said).or(self.peer);
        self.log.format().set_client(&mut self.client, address);
        // A plain hit has one such line at most, and one word in it.
        match named("x-forwarded-proto").next() {
            Some((_, b"https")) => Some("https"),
            Some((_, b"http")) => Some("http"),
            _ => None,
        }
    }
}
