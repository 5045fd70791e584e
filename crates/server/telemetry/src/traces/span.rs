//! A finished span, and its OTLP/JSON encoding (opentelemetry-proto 1.x, "JSON Protobuf Encoding"): ids
//! in hexadecimal, 64-bit numbers as strings, names in camelCase.
//!
//! Attribute names follow the HTTP semantic conventions. A span contains no query, client address or
//! cookie.

use http::Method;
use serde_json::{Value, json};

/// The kind of a span (SpanKind in OTLP's trace.proto).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request to Pagewell.
    Server = 2,
    /// A request to the origin.
    Client = 3,
    /// A write's response that waits for the database.
    Internal = 1,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// The id of the trace that the span belongs to.
    pub trace: u128,
    /// The id of the span.
    pub number: u64,
    /// The id of the parent span, if there is one.
    pub parent: Option<u64>,
    /// The kind of the span.
    pub kind: Kind,
    /// The method of the request.
    pub method: Method,
    /// The start, in nanoseconds of Unix time.
    pub begun_ns: u64,
    /// The end, in nanoseconds of Unix time.
    pub ended_ns: u64,
    /// The scheme: `http` or `https`.
    pub scheme: &'static str,
    /// The host of the request.
    pub host: String,
    /// The path, without the query.
    pub path: String,
    /// The status of the response; `None` if there was no response.
    pub status: Option<u16>,
    /// Whether the request failed.
    pub failed: bool,
    /// Pagewell's member of the response's `Cache-Status`.
    pub cache: Option<String>,
}

/// The value of STATUS_CODE_ERROR in OTLP's trace.proto.
const ERROR: u8 = 2;

impl Span {
    /// Encodes the span as OTLP/JSON.
    pub fn json(&self) -> Value {
        let mut attributes = vec![
            text("http.request.method", self.method.as_str()),
            text("url.scheme", self.scheme),
            text("url.path", &self.path),
            text("server.address", &self.host),
        ];
        if let Some(status) = self.status {
            let value = json!({ "intValue": status.to_string() });
            attributes.push(json!({ "key": "http.response.status_code", "value": value }));
        }
        if let Some(cache) = &self.cache {
            attributes.push(text("pagewell.cache_status", cache));
        }
        let name = match self.kind {
            Kind::Server => self.method.as_str().to_owned(),
            Kind::Client => format!("origin {}", self.method),
            Kind::Internal => "database".to_owned(),
        };
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.number),
            "name": name,
            "kind": self.kind as u8,
            "startTimeUnixNano": self.begun_ns.to_string(),
            "endTimeUnixNano": self.ended_ns.to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        if self.failed {
            span["status"] = json!({ "code": ERROR });
        }
        span
    }
}

/// A string attribute (KeyValue in OTLP's common.proto).
fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// An OTLP request with these spans (ExportTraceServiceRequest).
pub fn request(service: &str, spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let spans: Vec<Value> = spans.iter().map(Span::json).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service), text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "pagewell", "version": version }, "spans": spans }],
    }] })
}
