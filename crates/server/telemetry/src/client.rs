//! The client of a request: its address, the source of that address, and the scheme of its
//! requests.
//!
//! A connection is described once, when it is accepted. `front` derives the client of each request from it, over
//! HTTP/1.1 and HTTP/2 alike, before anything else asks for it.

use crate::evidence::ClientEvidence;
use crate::per_address::PerAddress;
use crate::traces::Trace;
use crate::trailers::Trailers;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_cache::Timestamp;
use miss_control::{ClientLevel, ShownEvidence};
use request_values::networks::Networks;
use rule_conditions::{Peer, RequestClient};
use site_rules::LimitRule;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The connection by which the requests of a client arrive.
#[derive(Debug)]
pub struct ClientConnection {
    /// The address of its other end, whatever its requests name; `None` over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Its local address; `None` over a Unix socket.
    pub local: Option<SocketAddr>,
    /// Whether it comes from a trusted proxy, whose forwarding fields are used.
    pub proxy_trust: Peer,
    /// The source of the client's address.
    pub address_source: AddressSource,
    /// `https` over TLS, else `http`.
    pub scheme: &'static str,
    /// The evidence of its hits and misses about its clients; `None` for requests that Pagewell itself makes.
    pub evidence: Option<ClientEvidence>,
}

impl ClientConnection {
    /// The connection of a request that Pagewell itself makes: it has no addresses, and is not trusted.
    pub fn none(scheme: &'static str) -> ClientConnection {
        let (proxy_trust, address_source) = (Peer::Anybody, AddressSource::Socket);
        ClientConnection {
            peer: None,
            local: None,
            proxy_trust,
            address_source,
            scheme,
            evidence: None,
        }
    }

    /// Whether it uses TLS.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }
}

/// The client of one request.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client's address; `None` over a Unix socket. For a request behind a trusted proxy, it is the one that the
    /// proxy names ([`Client::of_request`]).
    pub peer: Option<SocketAddr>,
    /// The connection by which the request has arrived.
    pub connection: Arc<ClientConnection>,
    /// Additional messages and measurements of the request.
    pub extras: ClientExtras,
}

impl Client {
    /// Returns the client of a request with these header lines over this connection.
    pub fn of_request(
        connection: &Arc<ClientConnection>,
        proxies: &Networks,
        headers: &HeaderMap,
    ) -> Client {
        let named = match connection.proxy_trust {
            Peer::Trusted => proxies.client(headers),
            Peer::Anybody => None,
        };
        let named = named.map(|address| SocketAddr::new(address, 0));
        Client { peer: named.or(connection.peer), ..Client::of(connection.clone()) }
    }

    /// Returns the client of a request over this connection, by which nobody else sends requests.
    pub fn of(connection: Arc<ClientConnection>) -> Client {
        Client { peer: connection.peer, connection, extras: ClientExtras::default() }
    }
}

impl Client {
    /// The level of the client if it shows this evidence. Its requests to the origin are ordered by it.
    pub fn level(&self, shown: &ShownEvidence) -> ClientLevel {
        let evidence = self.connection.evidence.as_ref();
        evidence.map_or(ClientLevel::Unknown, |evidence| evidence.level_of(shown))
    }

    /// The credit by which the client comes before others of its level.
    pub fn credit(&self, level: ClientLevel, shown: &ShownEvidence) -> u8 {
        let evidence = self.connection.evidence.as_ref();
        evidence.map_or(0, |evidence| evidence.credit_of(level, shown))
    }

    /// Records that a request of the client was answered without the origin, and not by a plain hit.
    pub fn note_hit(&self) {
        if let Some(evidence) = &self.connection.evidence {
            evidence.add_hits(1);
        }
    }

    /// Counts a request to the origin for the client, which shows this evidence. Returns its level and credit before.
    /// The fragments of a page count as one request, and have the level and credit of the first.
    pub fn note_miss(&self, shown: &ShownEvidence) -> (ClientLevel, u8) {
        let evidence = self.connection.evidence.as_ref();
        let note =
            || evidence.map_or((ClientLevel::Unknown, 0), |evidence| evidence.note_miss(shown));
        match &self.extras.page {
            Some(page) => *page.rank.get_or_init(note),
            None => note(),
        }
    }
}

impl RequestClient for Client {
    fn address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    fn peer(&self) -> Peer {
        self.connection.proxy_trust
    }
}

/// A page while its fragments are requested, as far as they share it at the origin.
#[derive(Debug, Default)]
pub struct PageAtOrigin {
    /// The level and credit of its requests, when the first of them was counted.
    rank: OnceLock<(ClientLevel, u8)>,
    has_begun: AtomicBool,
    is_deferred: AtomicBool,
    /// Whether its client is a verified crawler within its rate, when the first of them was counted.
    is_crawler: OnceLock<bool>,
}

impl PageAtOrigin {
    /// Whether its client is a verified crawler within its rate. `count` finds that out once, and counts the page.
    pub fn is_crawler(&self, count: impl FnOnce() -> bool) -> bool {
        *self.is_crawler.get_or_init(count)
    }

    /// Whether it may not be deferred any more, because one of its fragments has come to the origin.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Records that one of its fragments has come to the origin, or that it is never deferred.
    pub fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Records that one of its fragments was deferred, and so the page. Returns whether it is the first.
    pub fn defer(&self) -> bool {
        !self.is_deferred.swap(true, Ordering::Relaxed)
    }
}

/// The limits of rules under which a request was counted. The fragments of a page share those of its request: a page
/// with its fragments counts once under each limit.
#[derive(Debug)]
pub struct RequestLimits {
    table: Arc<PerAddress>,
    entries: usize,
    /// The hash of the site, and the client's address.
    key: (u64, Option<IpAddr>),
    /// The rules under which the request was counted. Locked while a fragment is counted, so that no other of the page
    /// passes before the result is known.
    counted: Mutex<Vec<usize>>,
}

impl RequestLimits {
    /// The limits for a request of this address to a site with this hash. `entries`: the size of the table.
    pub fn new(
        (table, entries): (&Arc<PerAddress>, usize),
        key: (u64, Option<IpAddr>),
    ) -> RequestLimits {
        RequestLimits { table: table.clone(), entries, key, counted: Mutex::default() }
    }

    /// Counts the request under a limit, once.
    ///
    /// # Errors
    /// The client has reached the limit: the whole seconds until its next request is allowed.
    pub fn count(&self, limit: LimitRule, now: Timestamp) -> Result<(), u32> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.contains(&limit.rule) {
            return Ok(());
        }
        let (rates, now) = (self.table.rates(self.entries), Duration::from_millis(now.0));
        rates.count(self.client_of(limit), limit.rate, now).map_err(whole_seconds)?;
        counted.push(limit.rule);
        Ok(())
    }

    /// Whether another request would be allowed under a limit. It is not counted.
    ///
    /// # Errors
    /// As for [`count`](Self::count).
    pub fn check(&self, limit: LimitRule, now: Timestamp) -> Result<(), u32> {
        let (rates, now) = (self.table.rates(self.entries), Duration::from_millis(now.0));
        rates.check(self.client_of(limit), limit.rate, now).map_err(whole_seconds)
    }

    fn client_of(&self, limit: LimitRule) -> (u64, Option<IpAddr>) {
        let (site, address) = self.key;
        let mut number = DefaultHasher::new();
        (site, limit.rule).hash(&mut number);
        (number.finish(), address)
    }
}

/// A time until the next request in whole seconds, at least one, for `Retry-After`.
pub fn whole_seconds(wait: Duration) -> u32 {
    wait.as_millis().div_ceil(1_000).try_into().unwrap_or(u32::MAX).max(1)
}

/// The source of a client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// The socket: no proxy is known.
    Socket,
    /// The PROXY protocol of a proxy.
    Proxy,
    /// The proxy does not know the client: the address is the proxy's own.
    Nobody,
}

/// Messages that the client accepts in addition to the response (HTTP origins only), and measurements
/// of the request.
#[derive(Clone, Debug, Default)]
pub struct ClientExtras {
    /// The sender of interim responses. `None` if they cannot be sent: in HTTP/1.0, and in HTTP/2,
    /// where hyper does not support it.
    pub interims: Option<Interims>,
    /// Whether the client accepts trailers.
    pub trailers: Trailers,
    /// Adds up the time that the origin takes, if it is needed.
    pub spent: Option<Spent>,
    /// The request's trace, if requests are traced.
    pub trace: Option<Trace>,
    /// The page that the request is for, if it requests a fragment of LiteSpeed's ESI.
    pub fragment: Option<Arc<FragmentRequest>>,
    /// The page whose fragment it requests.
    pub page: Option<Arc<PageAtOrigin>>,
    /// The purpose: who waits for the response.
    pub purpose: RequestPurpose,
    /// The checks of the site's rules that the request has passed.
    pub checks: PassedChecks,
    /// The number of the site's configuration by which the front has found that the request is not redirected; 0 if it
    /// has not compared the rules.
    pub unredirected: u64,
}

/// The checks of the site's rules that a request has passed (`limit`, `auth_file`).
#[derive(Clone, Debug, Default)]
pub struct PassedChecks {
    /// Whether it was counted under its limit for all requests.
    pub is_counted: bool,
    /// The number of the rule whose password it has.
    pub password: Option<usize>,
    /// The user whose password it has, if the origin gets both.
    pub user: Option<Arc<str>>,
    /// The limit under which it counts when it is sent to the origin.
    pub limit: Option<LimitRule>,
    /// The limits under which it was counted; `None` on a site without limits.
    pub limits: Option<Arc<RequestLimits>>,
}

/// The purpose of a request: who waits for its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPurpose {
    /// The client that has sent it.
    #[default]
    Client,
    /// A page that a client waits for: the response is a fragment of it (ESI).
    Fragment,
    /// No client: a refresh, cache warming.
    Background,
    /// No client: a task of the application (`[[wake]]`). It is put off, but never deferred.
    Scheduled,
    /// A render to compare a stored page with.
    Reference,
}

/// The page and the include element for which a fragment is requested (LiteSpeed's ESI).
#[derive(Clone, Debug)]
pub struct FragmentRequest {
    /// Path and query of the page: the application renders the fragment for this page.
    pub page: String,
    /// The media type of the page.
    pub content_type: Option<HeaderValue>,
    /// Tags that the include element adds to those of the fragment's own response.
    pub tags: Option<HeaderValue>,
    /// The visitors that may share the fragment, as far as the include element says.
    pub sharing: FragmentSharing,
}

/// The visitors that may share a fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FragmentSharing {
    /// As its own response says.
    #[default]
    AsDeclared,
    /// At most one visitor.
    OneVisitor,
}

/// Total time that the origin took for a request, over all fetches.
#[derive(Clone, Debug, Default)]
pub struct Spent(Arc<AtomicU64>);

impl Spent {
    /// Adds the duration of one fetch.
    pub fn add(&self, took: Duration) {
        // At least 1 µs, because 0 means that no fetch was made.
        self.0.fetch_add((took.as_micros() as u64).max(1), Ordering::Relaxed);
    }

    /// The total in microseconds; `None` if the origin was not contacted.
    pub fn micros(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|us| *us > 0)
    }
}

/// A connection that can send interim responses (RFC 9110 section 15.2) before the final response.
pub trait InterimResponses: Send + Sync {
    /// Sends an interim response to the request with this number on its connection. Hop-by-hop
    /// fields and those in `internal` are removed. A response that is too late, too long, or not
    /// for clients is dropped.
    fn pass(&self, request: u64, status: StatusCode, headers: &HeaderMap, internal: &[HeaderName]);
}

/// Sends interim responses to the client of one request.
#[derive(Clone)]
pub struct Interims {
    connection: Arc<dyn InterimResponses>,
    request: u64,
}

impl fmt::Debug for Interims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interims").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Interims {
    /// Creates the sender for the request with this number on its connection.
    pub fn new(connection: Arc<dyn InterimResponses>, request: u64) -> Interims {
        Interims { connection, request }
    }

    /// Sends an interim response; see [`InterimResponses::pass`].
    pub fn pass(&self, status: StatusCode, headers: &HeaderMap, internal: &[HeaderName]) {
        self.connection.pass(self.request, status, headers, internal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_the_client_of_a_request() {
        let peer = Some(SocketAddr::from(([10, 0, 0, 2], 4711)));
        let connection = |proxy_trust| {
            Arc::new(ClientConnection { peer, proxy_trust, ..ClientConnection::none("http") })
        };
        let (trusting, other) = (connection(Peer::Trusted), connection(Peer::Anybody));
        let proxies = Networks::read(&["10.0.0.0/8".to_owned()]).expect("a network");
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("198.51.100.9, 192.0.2.1"));
        let trusted = Client::of_request(&trusting, &proxies, &headers);
        assert_eq!(trusted.address(), Some(IpAddr::from([192, 0, 2, 1])));
        assert_eq!(trusted.connection.peer, peer);
        let other = Client::of_request(&other, &proxies, &headers);
        assert_eq!(other.peer, peer);
        // The client of one request is not that of the next one.
        let next = Client::of_request(&trusting, &proxies, &HeaderMap::new());
        assert_eq!(next.peer, peer);
    }
}
