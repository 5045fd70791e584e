//! Optional tracing (`[traces]`): sends a request's spans to a collector with OTLP over HTTP, and the
//! trace context to PHP. PHP's spans become children of Pagewell's.
//!
//! | file | content |
//! |---|---|
//! | `traceparent` | parses and writes `traceparent` (W3C Trace Context, level 1) |
//! | `span` | a span, and its OTLP/JSON encoding |
//! | `export` | sends finished spans to the collector in the background |
//!
//! A request's span lasts from its arrival until its response and the fetch for it are complete. Child
//! spans: each origin request, and the wait of a write's response for the database. Invariants: no
//! request waits for the collector; spans that do not fit into the queue are dropped and counted. No
//! key depends on the context unless a rule or `Vary` names its field. No stored page contains one,
//! because it is removed from responses first. Plain hits that the front answers are not traced, unless
//! a trusted proxy's context requests it. Reasons, also for not using a library:
//! docs/decisions/operation.md.

mod export;
mod span;
mod traceparent;

pub use export::{Exporter, run};
pub use traceparent::TraceParent;

use crate::client::Client;
use config::Traces;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use rule_conditions::Peer;
use span::{Kind, Span};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use traceparent::{TRACE_PARENT, TRACE_STATE};

/// Fields of a trace context, which are removed from responses.
const OF_CONTEXTS: [&str; 3] = ["traceparent", "tracestate", "traceresponse"];

/// The trace of a request in progress. Its span ends when the last clone is dropped.
#[derive(Clone)]
pub struct Trace(Arc<OpenSpan>);

struct OpenSpan {
    place: TraceParent,
    parent: Option<u64>,
    /// The vendor-specific part of the context.
    state: Option<HeaderValue>,
    exporter: Arc<Exporter>,
    begun: Instant,
    facts: Mutex<SpanFacts>,
}

/// The facts about a request that its span contains.
struct SpanFacts {
    method: Method,
    scheme: &'static str,
    host: String,
    path: String,
    status: Option<u16>,
    cache: Option<HeaderValue>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.place.fmt(f)
    }
}

impl Trace {
    /// Starts the trace of a request, with the exporter of the default site. `None` if tracing is
    /// disabled. Only a trusted proxy's context is used, for the parent span and for whether the trace
    /// is sampled.
    pub fn of<B>(
        exporter: Option<&Arc<Exporter>>,
        request: &Request<B>,
        client: &Client,
    ) -> Option<Trace> {
        let exporter = exporter?;
        let headers = request.headers();
        let given = match client.connection.proxy_trust {
            Peer::Trusted => TraceParent::of(headers),
            Peer::Anybody => None,
        };
        let place = match &given {
            Some(given) => given.below(exporter.number()),
            None => exporter.new_trace(),
        };
        let state = given.as_ref().and_then(|_| headers.get(TRACE_STATE).cloned());
        let host = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let host = host.or_else(|| Some(headers.get(header::HOST)?.to_str().ok()?.to_owned()));
        let facts = SpanFacts {
            method: request.method().clone(),
            scheme: client.connection.scheme,
            host: host.unwrap_or_default(),
            path: request.uri().path().to_owned(),
            status: None,
            cache: None,
        };
        Some(Trace(Arc::new(OpenSpan {
            place,
            parent: given.map(|given| given.span),
            state,
            exporter: exporter.clone(),
            begun: exporter.clock.instant(),
            facts: Mutex::new(facts),
        })))
    }

    /// Records the status and `Cache-Status` of the response.
    pub fn answered<B>(&self, response: &Response<B>) {
        let cache = response.headers().get_all("cache-status").iter().next_back().cloned();
        let mut facts = self.0.facts();
        (facts.status, facts.cache) = (Some(response.status().as_u16()), cache);
    }

    /// Starts the span of an origin request.
    fn asked(&self) -> OriginSpan {
        let exporter = &self.0.exporter;
        let place = self.0.place.below(exporter.number());
        OriginSpan { trace: self.clone(), place, begun: exporter.clock.instant() }
    }

    /// Starts the span in which a write's response waits until its committed changes have been applied.
    pub fn waits(&self) -> Waits {
        Waits(self.asked())
    }
}

impl OpenSpan {
    fn facts(&self) -> std::sync::MutexGuard<'_, SpanFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn span(&self, place: TraceParent, parent: Option<u64>, kind: Kind, begun: Instant) -> Span {
        let clock = &self.exporter.clock;
        let ended = clock.instant();
        let begun_ns = clock.at(begun).0.saturating_mul(1_000_000);
        let took = ended.saturating_duration_since(begun).as_nanos() as u64;
        let facts = self.facts();
        Span {
            trace: place.trace,
            number: place.span,
            parent,
            kind,
            method: facts.method.clone(),
            begun_ns,
            ended_ns: begun_ns.saturating_add(took),
            scheme: facts.scheme,
            host: facts.host.clone(),
            path: facts.path.clone(),
            status: facts.status,
            failed: facts.status.is_none_or(|status| status >= 500),
            cache: facts.cache.as_ref().and_then(|value| value.to_str().ok()).map(str::to_owned),
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if self.place.is_sampled {
            let span = self.span(self.place, self.parent, Kind::Server, self.begun);
            self.exporter.put(span);
        }
    }
}

/// An origin request in progress.
pub struct OriginSpan {
    trace: Trace,
    place: TraceParent,
    begun: Instant,
}

impl OriginSpan {
    /// Ends the span. `status` is `None` if there was no response.
    pub fn ended(self, status: Option<StatusCode>) {
        self.end_as(Kind::Client, |span| {
            span.status = status.map(|status| status.as_u16());
            span.failed = span.status.is_none_or(|status| status >= 500);
        });
    }

    fn end_as(self, kind: Kind, ending: impl FnOnce(&mut Span)) {
        let own = &self.trace.0;
        if self.place.is_sampled {
            let mut span = own.span(self.place, Some(own.place.span), kind, self.begun);
            (span.status, span.cache) = (None, None);
            ending(&mut span);
            own.exporter.put(span);
        }
    }
}

/// A write's response that waits for the database.
pub struct Waits(OriginSpan);

impl Waits {
    /// Ends the span; `is_applied` is false if the wait ended before the changes were applied.
    pub fn ended(self, is_applied: bool) {
        self.0.end_as(Kind::Internal, |span| span.failed = !is_applied);
    }
}

/// Replaces the client's trace context in a request to the origin by Pagewell's, or removes it. If
/// tracing is disabled (`config` is `None`), the context is forwarded unchanged.
pub fn in_request(
    config: Option<&Traces>,
    headers: &mut HeaderMap,
    trace: Option<&Trace>,
) -> Option<OriginSpan> {
    config?;
    headers.remove(TRACE_PARENT);
    headers.remove(TRACE_STATE);
    let asked = trace?.asked();
    headers.insert(TRACE_PARENT, asked.place.to_value());
    if let Some(state) = &asked.trace.0.state {
        headers.insert(TRACE_STATE, state.clone());
    }
    Some(asked)
}

/// Removes trace contexts from a response, because it may be stored and sent to other clients.
pub fn out_of_response(config: Option<&Traces>, headers: &mut HeaderMap) {
    if config.is_some() {
        OF_CONTEXTS.iter().for_each(|name| drop(headers.remove(*name)));
    }
}
