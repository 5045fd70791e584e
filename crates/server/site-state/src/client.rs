//! The client of a request: its address, how that is known, and by which scheme its requests come.
//!
//! A connection has one, made when it is accepted; each request refers to it. Nothing here is read from a
//! request: its fields are `request_fields`'s.

use crate::traces::Trace;
use crate::trailers::Trailers;
use http::{HeaderMap, HeaderName, StatusCode};
use hyper::body::Incoming;
use site_rules::Peer;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The content of a request; none where Pagewell itself asks, for a fragment of a page.
pub type RequestContent = Option<Incoming>;

/// Who asks, and by which way.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The client's address; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address it came to; none over a Unix socket.
    pub local: Option<SocketAddr>,
    /// Whether the connection is a trusted proxy's, whose word about its clients is taken.
    pub believed: Peer,
    /// Who says where the connection comes from.
    pub said_by: SaidBy,
    /// `https` over TLS, else `http`.
    pub scheme: &'static str,
    /// What is sent besides responses.
    pub besides: Besides,
}

impl Visitor {
    /// Whether the connection is one over TLS.
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }
}

/// Who says where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The socket itself: nobody stands between, as far as the connection shows.
    Socket,
    /// A proxy names the client by the PROXY protocol.
    Proxy,
    /// A proxy does not know whose it is: the address is the proxy's.
    Nobody,
}

/// Messages that the client accepts in addition to the response (HTTP origins only), and measurements
/// of the request.
#[derive(Clone, Debug, Default)]
pub struct Besides {
    /// The sender of interim responses. `None` if they cannot be sent: in HTTP/1.0, and in HTTP/2,
    /// where hyper does not support it.
    pub interims: Option<Interims>,
    /// Whether the client accepts trailers.
    pub trailers: Trailers,
    /// Adds up the time that the origin takes, if it is needed.
    pub spent: Option<Spent>,
    /// The request's trace, if requests are traced.
    pub trace: Option<Trace>,
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

/// A connection that can send interim responses (RFC 9110 section 15.2) before the response of a request.
pub trait InterimResponses: Send + Sync {
    /// Sends an interim response to the request with this number on its connection, without the fields of one
    /// connection and those of `internal`. Dropped where it is too late, too long, or not for clients.
    fn pass(&self, request: u64, status: StatusCode, headers: &HeaderMap, internal: &[HeaderName]);
}

/// The way of interim responses to the client of one request.
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
    /// To the request with this number on its connection.
    pub fn new(connection: Arc<dyn InterimResponses>, request: u64) -> Interims {
        Interims { connection, request }
    }

    /// Sends an interim response, as [`InterimResponses::pass`].
    pub fn pass(&self, status: StatusCode, headers: &HeaderMap, internal: &[HeaderName]) {
        self.connection.pass(self.request, status, headers, internal);
    }
}
