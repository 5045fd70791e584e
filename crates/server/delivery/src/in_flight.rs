//! The state of an HTTP/1 connection that the front and hyper's service share: whether a request is in
//! flight, and its interim responses. The front writes these, because hyper cannot send them (RFC 9110
//! section 15.2).
//!
//! | state | an interim response |
//! |---|---|
//! | the request is in flight, its response not yet generated | is buffered (bounded), and the front writes it |
//! | the response has been generated (`seal`) | is dropped; those buffered before are still written first |
//! | another request is in flight | is dropped, because it does not belong to that request |
//!
//! If there is an access log, the entry of a request is stored here after hyper has the complete
//! response, until it has been sent.
//!
//! One lock, held to store or take a value. It is not taken while no request is in flight.

use crate::log_entry::Entry;
use crate::send_backlog::Recipient;
use crate::site::Site;
use http::{HeaderMap, Response, StatusCode};
use http_cache::fields;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use telemetry::client::{InterimResponses, Interims};
use telemetry::traces::Trace;

/// Maximum size of buffered interim responses, in bytes; more are dropped.
const WAITING_BYTES_MAX: usize = 16 << 10;

/// The state of a connection that the front and hyper's service share. `count` is the number of
/// requests that hyper is processing.
#[derive(Default)]
pub struct InFlight {
    count: AtomicUsize,
    /// Whether interim responses are buffered.
    early: AtomicBool,
    /// Whether the client is idle and hyper has nothing to do.
    resting: AtomicBool,
    /// Whether the connection ends after the current response.
    last: AtomicBool,
    /// The requests of the connection when hyper last got one; those that hyper got, and redirects; and the plain
    /// hits that were counted.
    received: AtomicU32,
    passed: AtomicU32,
    counted: AtomicU32,
    /// The number of the configuration by which the request that hyper gets next is not redirected; 0: not known.
    unredirected: AtomicU64,
    /// Bytes written for the request in flight; counted if there is an access log.
    written: AtomicU64,
    /// The connection's entry in the send backlog, once a response has needed it.
    client: OnceLock<Arc<Recipient>>,
    waiting: Mutex<Waiting>,
}

/// The state that needs the lock.
#[derive(Default)]
struct Waiting {
    /// Notified when the count falls to zero, or bytes have to be written.
    waker: Option<Waker>,
    /// The number of the request in flight.
    request: u64,
    /// Whether its response has been generated.
    sealed: bool,
    /// The buffered interim responses, in wire format.
    bytes: Vec<u8>,
    /// The access log entry of the request whose response hyper may not have written completely.
    ended: Option<Box<Entry>>,
}

impl InFlight {
    /// Counts a request until the guard is dropped.
    pub fn enter(self: &Arc<InFlight>) -> InFlightGuard {
        self.count.fetch_add(1, Ordering::AcqRel);
        InFlightGuard { in_flight: self.clone(), entry: None, trace: None }
    }

    /// Records that hyper gets a request, or that the connection ends, after so many requests.
    pub fn note_received(&self, requests: usize) {
        self.received.store(requests as u32, Ordering::Relaxed);
    }

    /// The plain hits of the connection since the last call. `passed` is the number of requests that hyper has got
    /// since then. Requests and calls alternate, because a header section is read only when hyper is idle.
    pub fn plain_hits(&self, passed: u32) -> u32 {
        let passed = self.passed.fetch_add(passed, Ordering::Relaxed) + passed;
        let hits = self.received.load(Ordering::Relaxed).saturating_sub(passed);
        hits.saturating_sub(self.counted.swap(hits, Ordering::Relaxed))
    }

    /// Records a redirect before hyper, which is no hit.
    pub fn note_redirect(&self) {
        self.passed.fetch_add(1, Ordering::Relaxed);
    }

    /// Records whether the front has found that the request that hyper gets next is not redirected: the number of the
    /// site's configuration, or 0.
    pub fn note_unredirected(&self, reading: u64) {
        self.unredirected.store(reading, Ordering::Relaxed);
    }

    /// Returns what was recorded for the request that hyper has just got. Requests and calls alternate.
    pub fn take_unredirected(&self) -> u64 {
        self.unredirected.swap(0, Ordering::Relaxed)
    }

    /// Returns a guard that has to be dropped after the connection, even if others still refer to this
    /// state.
    pub fn ending(self: &Arc<InFlight>) -> Ending {
        Ending(self.clone())
    }

    /// Records that `bytes` bytes of the response were written.
    pub fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records that all of hyper's output has been written; writes the access log line of a finished
    /// request.
    pub fn flushed(&self) {
        let ended = self.waiting().ended.take();
        if let Some(ended) = ended {
            self.written.store(0, Ordering::Relaxed);
            drop(ended);
        }
    }

    /// The connection's entry in the send backlog of `site`; created at the first call.
    pub fn client(&self, site: &Arc<Site>) -> &Arc<Recipient> {
        self.client.get_or_init(|| Recipient::new(site.state()))
    }

    /// The same entry, if it has been created.
    pub fn backlog_client(&self) -> Option<&Recipient> {
        self.client.get().map(|client| &**client)
    }

    /// Whether hyper is processing a request. `waker` is notified when that changes, or when interim
    /// responses have to be written.
    pub fn is_busy(&self, waker: &Waker) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.waiting().waker = Some(waker.clone());
        self.count.load(Ordering::Acquire) != 0
    }

    /// Makes the connection end after the current response.
    pub fn end(&self) {
        self.last.store(true, Ordering::Release);
    }

    /// Whether the connection ends after the current response.
    pub fn is_last(&self) -> bool {
        self.last.load(Ordering::Acquire)
    }

    /// Records that the client is idle, so that hyper can be dropped until the next request.
    pub fn rest(&self) {
        self.resting.store(true, Ordering::Release);
    }

    /// Whether the client has become idle since the last call.
    pub fn has_rested(&self) -> bool {
        self.resting.load(Ordering::Acquire) && self.resting.swap(false, Ordering::AcqRel)
    }

    /// The sender of interim responses for the request that has just arrived.
    pub fn interims(self: &Arc<InFlight>) -> Interims {
        let mut waiting = self.waiting();
        waiting.request += 1;
        waiting.sealed = false;
        waiting.bytes.clear();
        self.early.store(false, Ordering::Release);
        Interims::new(self.clone(), waiting.request)
    }

    /// Records that the response has been generated; later interim responses are dropped.
    pub fn seal(&self) {
        self.waiting().sealed = true;
    }

    /// Whether interim responses have to be written.
    pub fn has_early(&self) -> bool {
        self.early.load(Ordering::Acquire)
    }

    /// Takes the buffered interim responses.
    pub fn take_early(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        self.early.store(false, Ordering::Release);
        std::mem::take(&mut waiting.bytes)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped after the connection. A response that has not been written by then is logged as cut off.
pub struct Ending(Arc<InFlight>);

impl Drop for Ending {
    fn drop(&mut self) {
        let ended = self.0.waiting().ended.take();
        if let Some(mut ended) = ended {
            ended.sent_at_most(self.0.written.load(Ordering::Relaxed));
            ended.broke_off();
        }
    }
}

/// Counts one request until it is dropped.
pub struct InFlightGuard {
    in_flight: Arc<InFlight>,
    /// The request's access log entry, if there is an access log.
    pub entry: Option<Box<Entry>>,
    /// The request's trace, if requests are traced. The trace's span ends when this is dropped.
    trace: Option<Trace>,
}

impl InFlightGuard {
    /// Records the generated response in the access log entry and in the trace.
    pub fn answered<B>(&mut self, response: &Response<B>, trace: Option<Trace>) {
        if let Some(entry) = &mut self.entry {
            entry.answered(response);
        }
        if let Some(trace) = &trace {
            trace.answered(response);
        }
        self.trace = trace;
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.in_flight.waiting().ended = Some(entry);
        }
        if self.in_flight.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waker = self.in_flight.waiting().waker.take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl InterimResponses for InFlight {
    fn pass(
        &self,
        request: u64,
        status: StatusCode,
        headers: &HeaderMap,
        internal: &[http::HeaderName],
    ) {
        // The 100 that the client has asked for is Pagewell's own (RFC 9110 section 10.1.1); 101 is
        // for `upgrade`.
        if matches!(status.as_u16(), 100 | 101) || !status.is_informational() {
            return;
        }
        let response = written(status, headers, internal);
        let mut waiting = self.waiting();
        let current = waiting.request == request && !waiting.sealed;
        if !current || waiting.bytes.len() + response.len() > WAITING_BYTES_MAX {
            return;
        }
        waiting.bytes.extend_from_slice(&response);
        self.early.store(true, Ordering::Release);
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An interim response in wire format (RFC 9112 section 4); it has no content.
fn written(status: StatusCode, headers: &HeaderMap, internal: &[http::HeaderName]) -> Vec<u8> {
    let mut headers = headers.clone();
    fields::remove_hop_by_hop(&mut headers);
    for name in internal.iter().chain(&[http::header::CONTENT_LENGTH]) {
        headers.remove(name);
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in &headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            text.extend_from_slice(part);
        }
    }
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::{CONNECTION, LINK};

    fn hints() -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_static("</a.css>; rel=preload"));
        headers.insert(CONNECTION, HeaderValue::from_static("x-hop"));
        headers.insert("x-hop", HeaderValue::from_static("1"));
        headers
    }

    #[test]
    fn they_are_for_one_request_and_before_its_response() {
        let in_flight = Arc::new(InFlight::default());
        let pass = |way: &Interims, status: u16| {
            way.pass(StatusCode::from_u16(status).unwrap(), &hints(), &[]);
        };
        let first = in_flight.interims();
        pass(&first, 103);
        assert!(in_flight.has_early());
        let text = String::from_utf8(in_flight.take_early()).unwrap();
        assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
        for not_passed in [100, 101, 200] {
            pass(&first, not_passed);
        }
        assert!(!in_flight.has_early());
        pass(&first, 102);
        in_flight.seal();
        pass(&first, 103);
        assert!(in_flight.take_early().starts_with(b"HTTP/1.1 102 Processing\r\n"));
        let second = in_flight.interims();
        pass(&first, 103);
        assert!(!in_flight.has_early(), "it is no answer to the second");
        pass(&second, 103);
        assert!(in_flight.has_early());
    }

    #[test]
    fn rules_are_compared_in_advance_for_one_request() {
        let in_flight = InFlight::default();
        in_flight.note_unredirected(7);
        assert_eq!((in_flight.take_unredirected(), in_flight.take_unredirected()), (7, 0));
        in_flight.note_unredirected(7);
        // The next request is another one, for which they were not compared.
        in_flight.note_unredirected(0);
        assert_eq!(in_flight.take_unredirected(), 0);
    }

    #[test]
    fn they_are_bounded() {
        let in_flight = Arc::new(InFlight::default());
        let way = in_flight.interims();
        for _ in 0..10_000 {
            way.pass(StatusCode::EARLY_HINTS, &hints(), &[]);
        }
        assert!(in_flight.take_early().len() <= WAITING_BYTES_MAX);
    }
}
