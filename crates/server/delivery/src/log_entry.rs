//! The data of one access log line for a request that the HTTP library processes. [`Entry`] collects
//! the request and the result, and writes the line when it is dropped. So each request is logged
//! exactly once, even if the client disconnects before there is a response. Operators who watch requests
//! are shown the same.

use crate::site::Site;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version, header};
use http_cache::Timestamp;
use request_values::networks::forwarded_scheme;
use rule_conditions::Peer;
use std::sync::Arc;
use std::time::Instant;
use telemetry::access_log::{ClientText, Line, outcome};
use telemetry::client::{Client, Spent};
use telemetry::request_tap::TappedRequest;

/// The logged status if the client disconnects before there is a response: 499, as in nginx, so that
/// log analysers recognise it.
const LEFT: u16 = 499;

/// A request and its result so far.
pub struct Entry {
    /// The default site of the listener; it owns the log.
    default_site: Arc<Site>,
    begun: Instant,
    time: Timestamp,
    client: ClientText,
    scheme: &'static str,
    method: Method,
    uri: Uri,
    version: Version,
    host: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    spent: Option<Spent>,
    /// Status and `Cache-Status` of the response, once there is one.
    answer: Option<(u16, Option<HeaderValue>)>,
    sent: u64,
    whole: bool,
}

impl Entry {
    /// Starts an entry for `request`, which arrived at the default site. `None` if that site has
    /// no access log, and nobody watches its requests.
    pub fn of<B>(
        default_site: &Arc<Site>,
        request: &Request<B>,
        client: &Client,
    ) -> Option<Box<Entry>> {
        let log = default_site.access_log.as_ref();
        if log.is_none() && !default_site.request_tap.is_watched() {
            return None;
        }
        let peer = client.peer.map(|peer| peer.ip());
        let headers = request.headers();
        let begun = default_site.clock.instant();
        Some(Box::new(Entry {
            begun,
            time: default_site.clock.at(begun),
            client: log.map(|log| log.format().client(peer)).unwrap_or_default(),
            scheme: scheme(headers, client),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            host: headers.get(header::HOST).cloned(),
            referer: headers.get(header::REFERER).cloned(),
            user_agent: headers.get(header::USER_AGENT).cloned(),
            spent: client.extras.spent.clone(),
            answer: None,
            sent: 0,
            whole: false,
            default_site: default_site.clone(),
        }))
    }

    /// Records the status and the `Cache-Status` member of the response.
    pub fn answered<B>(&mut self, response: &Response<B>) {
        let ours = response.headers().get_all("cache-status").iter().next_back().cloned();
        self.answer = Some((response.status().as_u16(), ours));
        // The content of a response to HEAD is never sent (RFC 9110 section 9.3.2).
        self.whole |= self.method == Method::HEAD;
    }

    /// Adds `bytes` of response content that the connection has accepted.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Lowers the byte count to `bytes`, the most that can have been sent.
    pub fn sent_at_most(&mut self, bytes: u64) {
        self.sent = self.sent.min(bytes);
    }

    /// Records that the complete content was accepted.
    pub fn is_whole(&mut self) {
        self.whole = true;
    }

    /// Records that the response was cut off although all content had been accepted.
    pub fn broke_off(&mut self) {
        self.whole = false;
    }
}

/// The request's scheme (`http` or `https`): from the headers of a trusted proxy, else the
/// connection's.
fn scheme(headers: &HeaderMap, client: &Client) -> &'static str {
    let named = match client.connection.proxy_trust {
        Peer::Trusted => forwarded_scheme(headers),
        Peer::Anybody => None,
    };
    named.unwrap_or(client.connection.scheme)
}

impl Drop for Entry {
    fn drop(&mut self) {
        let bytes = |value: &Option<HeaderValue>| {
            value.as_ref().map_or(Vec::new(), |value| value.as_bytes().to_vec())
        };
        let host = match self.uri.authority() {
            Some(authority) => authority.as_str().as_bytes().to_vec(),
            None => bytes(&self.host),
        };
        let target = self.uri.path_and_query().map_or("*", |both| both.as_str());
        let (status, cache_status) = match self.answer.take() {
            Some((status, cache_status)) => (status, bytes(&cache_status)),
            None => (LEFT, b"pagewell; detail=client-left".to_vec()),
        };
        let now = self.default_site.clock.instant();
        let line = Line {
            time: self.time,
            client: &self.client,
            method: self.method.as_str().as_bytes(),
            scheme: self.scheme,
            host: &host,
            target: target.as_bytes(),
            protocol: protocol(self.version),
            status,
            bytes: self.sent,
            duration_us: now.saturating_duration_since(self.begun).as_micros() as u64,
            origin_us: self.spent.as_ref().and_then(Spent::micros),
            outcome: outcome(&cache_status),
            broken: !self.whole,
            referer: &bytes(&self.referer),
            user_agent: &bytes(&self.user_agent),
        };
        self.default_site.log_access(&line);
        if self.default_site.request_tap.is_watched() {
            self.default_site.request_tap.show(&TappedRequest {
                at_ms: line.time.0,
                method: line.method,
                host: line.host,
                target: line.target,
                status: line.status,
                outcome: line.outcome,
                took_us: Some(line.duration_us),
            });
        }
    }
}

fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::HTTP_10 => b"HTTP/1.0",
        Version::HTTP_2 => b"HTTP/2.0",
        _ => b"HTTP/1.1",
    }
}

impl Site {
    /// Writes a line to the access log, if there is one. A line that does not fit is counted as
    /// dropped.
    pub fn log_access(&self, line: &Line<'_>) {
        if let Some(log) = &self.access_log
            && !log.write(line)
        {
            self.counters.access_log_dropped.add();
        }
    }
}
