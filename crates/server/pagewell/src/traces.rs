//! Traces by choice (`[traces]`): what becomes of a request as spans, for a collector that speaks OTLP over
//! HTTP, and the trace's context for PHP, whose own spans are below Pagewell's.
//!
//! | file | |
//! |---|---|
//! | `traceparent` | `traceparent`, read strictly and written (W3C Trace Context, level 1) |
//! | `span` | a span, and its form in OTLP's JSON |
//! | `export` | what has ended goes to the collector, in the background |
//!
//! A request has a span from when it is read until it is answered and what was rendered for it is whole; each
//! time that the origin is asked, and where the answer to a write waits for the database, one below it. Invariants: nobody waits for a collector: what does not
//! fit the queue is dropped and counted. No context is in a key, for no key has a header that no rule and no
//! `Vary` names; none is in a stored page, for responses lose theirs before they are looked at. Plain hits in
//! front of hyper are not traced, unless a trusted proxy's own span asks for it; then they go the other way.
//! Why so, and why no library: docs/decisions/0049-traces.md.

mod export;
mod span;
mod traceparent;

pub use export::{Exporter, run};
pub use traceparent::{Sampled, TraceParent};

use crate::client::Visitor;
use crate::site::Site;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use site_rules::Peer;
use span::{Kind, Span};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use traceparent::{TRACE_PARENT, TRACE_STATE};

/// Lines by which a context travels: a response has none for visitors.
const OF_CONTEXTS: [&str; 3] = ["traceparent", "tracestate", "traceresponse"];

/// The trace of a request in hand. Its span ends when nobody has it any more.
#[derive(Clone)]
pub struct Trace(Arc<InHand>);

struct InHand {
    place: TraceParent,
    parent: Option<u64>,
    /// What others have put beside the context.
    state: Option<HeaderValue>,
    site: Arc<Site>,
    begun: Instant,
    told: Mutex<Told>,
}

/// What is known of a request.
struct Told {
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
    /// For a request that has come to `door`; none where nothing is traced. Only a trusted proxy's word is
    /// taken for what it belongs to, and whether it is looked at.
    pub fn of<B>(door: &Arc<Site>, request: &Request<B>, visitor: &Visitor) -> Option<Trace> {
        let exporter = door.exporter.as_ref()?;
        let headers = request.headers();
        let given = match visitor.believed {
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
        let told = Told {
            method: request.method().clone(),
            scheme: visitor.scheme,
            host: host.unwrap_or_default(),
            path: request.uri().path().to_owned(),
            status: None,
            cache: None,
        };
        Some(Trace(Arc::new(InHand {
            place,
            parent: given.map(|given| given.span),
            state,
            site: door.clone(),
            begun: door.clock.instant(),
            told: Mutex::new(told),
        })))
    }

    /// It is answered.
    pub fn answered<B>(&self, response: &Response<B>) {
        let cache = response.headers().get_all("cache-status").iter().next_back().cloned();
        let mut told = self.0.told();
        (told.status, told.cache) = (Some(response.status().as_u16()), cache);
    }

    /// The origin is asked.
    fn asked(&self) -> Asked {
        let number = self.0.site.exporter.as_ref().map_or(1, |exporter| exporter.number());
        let place = self.0.place.below(number);
        Asked { trace: self.clone(), place, begun: self.0.site.clock.instant() }
    }

    /// The answer to a write waits until what it has committed is applied.
    pub fn waits(&self) -> Waits {
        Waits(self.asked())
    }
}

impl InHand {
    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn span(&self, place: TraceParent, parent: Option<u64>, kind: Kind, begun: Instant) -> Span {
        let clock = &self.site.clock;
        let ended = clock.instant();
        let begun_ns = clock.at(begun).0.saturating_mul(1_000_000);
        let took = ended.saturating_duration_since(begun).as_nanos() as u64;
        let told = self.told();
        Span {
            trace: place.trace,
            number: place.span,
            parent,
            kind,
            method: told.method.clone(),
            begun_ns,
            ended_ns: begun_ns.saturating_add(took),
            scheme: told.scheme,
            host: told.host.clone(),
            path: told.path.clone(),
            status: told.status,
            failed: told.status.is_none_or(|status| status >= 500),
            cache: told.cache.as_ref().and_then(|value| value.to_str().ok()).map(str::to_owned),
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if self.place.sampled == Sampled::Yes
            && let Some(exporter) = &self.site.exporter
        {
            let span = self.span(self.place, self.parent, Kind::Server, self.begun);
            exporter.put(span, &self.site.counters);
        }
    }
}

/// The origin in hand.
pub struct Asked {
    trace: Trace,
    place: TraceParent,
    begun: Instant,
}

impl Asked {
    /// It has answered, or not.
    pub fn ended(self, status: Option<StatusCode>) {
        self.told(Kind::Client, |span| {
            span.status = status.map(|status| status.as_u16());
            span.failed = span.status.is_none_or(|status| status >= 500);
        });
    }

    fn told(self, kind: Kind, ending: impl FnOnce(&mut Span)) {
        let own = &self.trace.0;
        if self.place.sampled == Sampled::Yes
            && let Some(exporter) = &own.site.exporter
        {
            let mut span = own.span(self.place, Some(own.place.span), kind, self.begun);
            (span.status, span.cache) = (None, None);
            ending(&mut span);
            exporter.put(span, &own.site.counters);
        }
    }
}

/// A write that waits for the database.
pub struct Waits(Asked);

impl Waits {
    /// It waits no more; false where that was not seen to be applied.
    pub fn ended(self, is_applied: bool) {
        self.0.told(Kind::Internal, |span| span.failed = !is_applied);
    }
}

/// The context in a request for the origin: ours, or none, never the client's. Where nothing is traced it
/// stays as it came.
pub fn in_request(site: &Site, headers: &mut HeaderMap, trace: Option<&Trace>) -> Option<Asked> {
    site.config.traces.as_ref()?;
    headers.remove(TRACE_PARENT);
    headers.remove(TRACE_STATE);
    let asked = trace?.asked();
    headers.insert(TRACE_PARENT, asked.place.to_value());
    if let Some(state) = &asked.trace.0.state {
        headers.insert(TRACE_STATE, state.clone());
    }
    Some(asked)
}

/// Takes contexts out of a response: it may be stored, and answer others.
pub fn out_of_response(site: &Site, headers: &mut HeaderMap) {
    if site.config.traces.is_some() {
        OF_CONTEXTS.iter().for_each(|name| drop(headers.remove(*name)));
    }
}
