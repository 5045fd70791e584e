//! The request of a connection of HTTP/1 that hyper has in its hands: whether there is one, and what
//! has to reach the client before its response does (interim responses, RFC 9110 section 15.2),
//! which hyper cannot send.
//!
//! | when | what becomes of an interim response |
//! |---|---|
//! | the request is in hand, its response not made | kept (bounded), and written by the front |
//! | its response is made (`seal`) | what came before is still written first; what comes now is dropped |
//! | another request is in hand | dropped: it is no answer to that one |
//!
//! Where there is an access log, the line of a request waits here from when hyper has got its whole
//! content until that has gone out.
//!
//! One lock, held to put a value there or take it. Nothing is locked where no request is in hand.

use crate::access_log::Entry;
use crate::send_backlog::Client;
use crate::site::Site;
use crate::traces::Trace;
use http::{HeaderMap, Response, StatusCode};
use http_cache::fields;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

/// What of interim responses may wait for a client; more is dropped.
const WAITING_BYTES_MAX: usize = 16 << 10;

/// How many requests of a connection hyper has in its hands.
#[derive(Default)]
pub struct InFlight {
    count: AtomicUsize,
    /// Whether interim responses wait.
    early: AtomicBool,
    /// The client is idle, and hyper has nothing to do.
    resting: AtomicBool,
    /// The connection ends behind the response to what has come.
    last: AtomicBool,
    /// Bytes written for the request in hand; counted where there is an access log.
    written: AtomicU64,
    /// The connection as a client that responses wait for, once one has.
    client: OnceLock<Arc<Client>>,
    waiting: Mutex<Waiting>,
}

/// What waits for hyper, or for the client.
#[derive(Default)]
struct Waiting {
    /// Who is to be told when the count falls to zero, or something has to be written.
    waker: Option<Waker>,
    /// The number of the request in hand.
    request: u64,
    /// Its response is made.
    sealed: bool,
    /// Interim responses as they are written.
    bytes: Vec<u8>,
    /// The request whose response hyper has, and may not have written.
    ended: Option<Box<Entry>>,
}

impl InFlight {
    /// Counts a request until the guard is dropped.
    pub fn enter(self: &Arc<InFlight>) -> InFlightGuard {
        self.count.fetch_add(1, Ordering::AcqRel);
        InFlightGuard { in_flight: self.clone(), entry: None, trace: None }
    }

    /// To be dropped after the connection, whoever else still knows of it.
    pub fn ending(self: &Arc<InFlight>) -> Ending {
        Ending(self.clone())
    }

    /// So many bytes of the response were written.
    pub fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What hyper had is written: so is the line of a request that has ended.
    pub fn flushed(&self) {
        let ended = self.waiting().ended.take();
        if let Some(ended) = ended {
            self.written.store(0, Ordering::Relaxed);
            drop(ended);
        }
    }

    /// The connection, which is one of `site`, as a client that responses wait for.
    pub fn client(&self, site: &Arc<Site>) -> &Arc<Client> {
        self.client.get_or_init(|| Client::new(site))
    }

    /// The same, if it has been.
    pub fn backlog_client(&self) -> Option<&Client> {
        self.client.get().map(|client| &**client)
    }

    /// Whether hyper has a request in its hands; `waker` is told when that changes, or when there is
    /// something to be written.
    pub fn is_busy(&self, waker: &Waker) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.waiting().waker = Some(waker.clone());
        self.count.load(Ordering::Acquire) != 0
    }

    /// The connection ends behind the response to the request that has come.
    pub fn end(&self) {
        self.last.store(true, Ordering::Release);
    }

    /// Whether it does.
    pub fn is_last(&self) -> bool {
        self.last.load(Ordering::Acquire)
    }

    /// The client is idle: hyper can go until there is something for it to do.
    pub fn rest(&self) {
        self.resting.store(true, Ordering::Release);
    }

    /// Whether the client has become idle since this was last asked.
    pub fn has_rested(&self) -> bool {
        self.resting.load(Ordering::Acquire) && self.resting.swap(false, Ordering::AcqRel)
    }

    /// Where interim responses to the request that has just come go.
    pub fn interims(self: &Arc<InFlight>) -> Interims {
        let mut waiting = self.waiting();
        waiting.request += 1;
        waiting.sealed = false;
        waiting.bytes.clear();
        self.early.store(false, Ordering::Release);
        Interims { in_flight: self.clone(), request: waiting.request }
    }

    /// The response is made: nothing may come before it any more.
    pub fn seal(&self) {
        self.waiting().sealed = true;
    }

    /// Whether interim responses wait to be written.
    pub fn has_early(&self) -> bool {
        self.early.load(Ordering::Acquire)
    }

    /// The interim responses that wait.
    pub fn take_early(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        self.early.store(false, Ordering::Release);
        std::mem::take(&mut waiting.bytes)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped after the connection: what hyper had not written then, it never wrote.
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

/// Counts one request as long as it lives.
pub struct InFlightGuard {
    in_flight: Arc<InFlight>,
    /// Its line in the access log, where there is one.
    pub entry: Option<Box<Entry>>,
    /// Its trace, where requests are traced: its span lasts as long.
    trace: Option<Trace>,
}

impl InFlightGuard {
    /// Its response is made.
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

/// The way of interim responses to the client of one request.
#[derive(Clone)]
pub struct Interims {
    in_flight: Arc<InFlight>,
    request: u64,
}

impl std::fmt::Debug for Interims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interims").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Interims {
    /// Passes an interim response on, if it is not too late; without the fields of one connection,
    /// and those of `internal`.
    pub fn pass(&self, status: StatusCode, headers: &HeaderMap, internal: &[http::HeaderName]) {
        // The 100 that the client has asked for is Pagewell's own (RFC 9110 section 10.1.1); 101 is
        // for `switch`.
        if matches!(status.as_u16(), 100 | 101) || !status.is_informational() {
            return;
        }
        let response = written(status, headers, internal);
        let mut waiting = self.in_flight.waiting();
        let current = waiting.request == self.request && !waiting.sealed;
        if !current || waiting.bytes.len() + response.len() > WAITING_BYTES_MAX {
            return;
        }
        waiting.bytes.extend_from_slice(&response);
        self.in_flight.early.store(true, Ordering::Release);
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An interim response as it stands on a connection (RFC 9112 section 4): it has no content.
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
    fn they_are_bounded() {
        let in_flight = Arc::new(InFlight::default());
        let way = in_flight.interims();
        for _ in 0..10_000 {
            way.pass(StatusCode::EARLY_HINTS, &hints(), &[]);
        }
        assert!(in_flight.take_early().len() <= WAITING_BYTES_MAX);
    }
}
