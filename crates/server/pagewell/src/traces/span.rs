//! A span that has ended, and its form in OTLP's JSON (opentelemetry-proto 1.x, "JSON Protobuf Encoding"):
//! numbers of traces and spans as hexadecimal digits, 64-bit numbers as text, names in camelCase. Names of
//! attributes are those of the semantic conventions for HTTP. No query, no address, no cookie of a visitor is
//! in it.

use http::Method;
use serde_json::{Value, json};

/// Which part of a request it is (SpanKind of OTLP's trace.proto).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pagewell is asked.
    Server = 2,
    /// The origin is asked.
    Client = 3,
    /// The answer to a write waits for the database.
    Internal = 1,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its trace.
    pub trace: u128,
    /// Its number.
    pub number: u64,
    /// That of the span above it.
    pub parent: Option<u64>,
    /// Which side.
    pub kind: Kind,
    /// The request's method.
    pub method: Method,
    /// When it began, in nanoseconds of Unix time.
    pub begun_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host that was asked for.
    pub host: String,
    /// The path, without the query.
    pub path: String,
    /// The status of the answer; none where there was none.
    pub status: Option<u16>,
    /// Whether it has come to nothing.
    pub failed: bool,
    /// What `Cache-Status` says of the answer.
    pub cache: Option<String>,
}

/// STATUS_CODE_ERROR of OTLP's trace.proto.
const ERROR: u8 = 2;

impl Span {
    /// As OTLP has it.
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

/// An attribute that is text (KeyValue of OTLP's common.proto).
fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// A request of OTLP with these spans (ExportTraceServiceRequest).
pub fn request(service: &str, spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let spans: Vec<Value> = spans.iter().map(Span::json).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service), text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "pagewell", "version": version }, "spans": spans }],
    }] })
}
