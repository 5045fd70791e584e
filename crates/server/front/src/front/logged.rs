//! Writes the access log lines of plain hits and of refused requests. `log_entry::Entry` writes
//! those of all other requests; this module only makes them wait until hyper has written the
//! response.
//!
//! A connection without a log has no [`Lines`], and each step here only checks for that. For a hit,
//! the positions of its header lines are known from the look-up, so they are not parsed again. Operators who
//! watch requests are shown a hit when it is found.

use super::Front;
use super::State;
use crate::hit::Hit;
use crate::hit::read::Lines as HeaderLines;
use delivery::site::Site;
use reasons::refusal::Refusal;
use rule_conditions::Peer;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;
use telemetry::access_log::{AccessLog, ClientText, Line, Outcome};
use telemetry::client::ClientConnection;
use telemetry::request_tap::TappedRequest;

/// Maximum number of bytes of a refused request that are parsed for the log.
const REQUEST_LINE_BYTES_MAX: usize = 8 << 10;

/// The data that all log lines of a connection share.
pub struct Lines {
    log: Arc<AccessLog>,
    /// The client; behind a trusted proxy, the client of the last request.
    client: ClientText,
    scheme: &'static str,
    peer: Option<IpAddr>,
    proxy_trust: Peer,
    /// The length of the header section of the hit, in bytes.
    head_bytes: usize,
}

impl<IO> Front<IO> {
    /// Enables logging of this client's requests, if there is an access log.
    pub fn logged(mut self, client: &ClientConnection) -> Front<IO> {
        self.lines = Lines::of(&self.site, client);
        self
    }

    /// Counts the hits of the connection as evidence about its client.
    pub fn credited(mut self, client: &Arc<ClientConnection>) -> Front<IO> {
        self.credited = Some(client.clone());
        self
    }

    /// Records the length of the header section, just consumed, by which a plain hit was found.
    pub(super) fn note_hit(&mut self, head_bytes: usize) {
        if let Some(lines) = &mut self.lines {
            lines.head_bytes = head_bytes;
        }
        if self.site.request_tap.is_watched()
            && let (State::Hit(hit), Some(hits)) = (&self.state, &self.hits)
        {
            let head = &self.arrived[self.handed - head_bytes..self.handed];
            show_hit(&self.site, head, &hits.lines(head), hit);
        }
    }

    /// Logs a plain hit that was written, completely or not.
    pub(super) fn log_hit(&mut self, hit: &Hit, is_whole: bool) {
        let (Some(lines), Some(hits)) = (&mut self.lines, &self.hits) else { return };
        // Nothing was read since, so the header section is still in the buffer.
        let head = &self.arrived[self.handed - lines.head_bytes..self.handed];
        let said =
            LoggedRequest { head, lines: hits.lines(head), protocol: hit.version().as_bytes() };
        lines.write_hit(&self.site, &said, hit, is_whole);
    }

    /// Logs a hit that cannot be written any further.
    #[cold]
    pub(super) fn hit_failed(&mut self, error: io::Error) -> io::Error {
        if let State::Hit(hit) = std::mem::replace(&mut self.state, State::Ended) {
            self.log_hit(&hit, false);
        }
        error
    }

    /// Logs a refused request. Its request line is logged as far as it was received.
    pub(super) fn log_refusal(&mut self, refusal: Refusal, bytes: usize) {
        let is_watched = self.site.request_tap.is_watched();
        if self.lines.is_none() && !is_watched {
            return;
        }
        let seen = &self.arrived[self.handed..];
        let seen = &seen[..seen.len().min(REQUEST_LINE_BYTES_MAX)];
        let end = memchr::memchr2(b'\r', b'\n', seen).unwrap_or(seen.len());
        let mut words = seen[..end].splitn(3, |byte| *byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let (method, target, protocol) = (word(), word(), word());
        let (time, status) = (self.site.clock.now(), refusal.status().as_u16());
        let outcome = Outcome { word: "rejected", detail: refusal.as_str().as_bytes() };
        if is_watched {
            let (at_ms, host, took_us) = (time.0, &b""[..], None);
            let shown = TappedRequest { at_ms, method, host, target, status, outcome, took_us };
            self.site.request_tap.show(&shown);
        }
        let Some(lines) = &self.lines else { return };
        self.site.log_access(&Line {
            time,
            client: &lines.client,
            method,
            scheme: lines.scheme,
            host: b"",
            target,
            protocol,
            status,
            bytes: bytes as u64,
            duration_us: 0,
            origin_us: None,
            outcome,
            broken: false,
            referer: b"",
            user_agent: b"",
        });
    }

    /// Records that all of hyper's output has been written.
    pub(super) fn log_flushed(&mut self) {
        if self.lines.is_some() || self.site.request_tap.is_watched() {
            self.in_flight.flushed();
        }
    }

    /// Records the number of bytes that hyper has written.
    pub(super) fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(_), Poll::Ready(Ok(count))) = (&self.lines, written) {
            self.in_flight.wrote(*count);
        }
    }
}

/// Shows a plain hit to the operators who watch requests. `head` is the header section of the request in the
/// format of HTTP/1.1, with its `lines`.
#[cold]
pub fn show_hit(site: &Site, head: &[u8], lines: &HeaderLines<'_>, hit: &Hit) {
    let (method, target) = method_and_target(head);
    let host = lines.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    site.request_tap.show(&TappedRequest {
        at_ms: site.clock.at(hit.instant()).0,
        method,
        host: host.map_or(b"", |(_, value)| value),
        target,
        status: hit.status(),
        outcome: hit.outcome(),
        took_us: None,
    });
}

/// The method and the target of a plain hit. Its request line was parsed already: GET or HEAD, a space, the
/// target, a space.
fn method_and_target(head: &[u8]) -> (&[u8], &[u8]) {
    let (method, rest) = head.split_at(if head.starts_with(b"GET ") { 3 } else { 4 });
    let target = &rest[1..];
    (method, &target[..memchr::memchr(b' ', target).unwrap_or(target.len())])
}

/// The request of a hit, for the log.
pub struct LoggedRequest<'a> {
    /// The header section in the format of HTTP/1.1.
    pub head: &'a [u8],
    /// The header lines of the section.
    pub lines: HeaderLines<'a>,
    /// The protocol version of the request.
    pub protocol: &'static [u8],
}

impl Lines {
    /// Creates the lines for a client's connection, if the site has an access log.
    pub fn of(site: &Site, client: &ClientConnection) -> Option<Box<Lines>> {
        site.access_log.clone().map(|log| {
            let peer = client.peer.map(|peer| peer.ip());
            let (scheme, proxy_trust) = (client.scheme, client.proxy_trust);
            let client = log.format().client(peer);
            Box::new(Lines { log, client, scheme, peer, proxy_trust, head_bytes: 0 })
        })
    }

    /// Writes the log line of a plain hit.
    pub fn write_hit(&mut self, site: &Site, said: &LoggedRequest<'_>, hit: &Hit, is_whole: bool) {
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
        if self.proxy_trust == Peer::Trusted {
            scheme = self.read_proxy(site, &said.lines).unwrap_or(scheme);
        }
        let (method, target) = method_and_target(said.head);
        // The clock is read again only if the log format contains a duration.
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

    /// Reads the client address and the scheme that a trusted proxy sends.
    fn read_proxy(&mut self, site: &Site, lines: &HeaderLines<'_>) -> Option<&'static str> {
        let named = |name: &'static str| {
            lines.iter().rev().filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
        };
        let address = lines.client_address(&site.config.trusted_proxies).or(self.peer);
        self.log.format().set_client(&mut self.client, address);
        // A plain hit has at most one such line, with one word.
        match named("x-forwarded-proto").next() {
            Some((_, b"https")) => Some("https"),
            Some((_, b"http")) => Some("http"),
            _ => None,
        }
    }
}
