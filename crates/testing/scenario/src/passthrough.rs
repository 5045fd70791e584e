//! A minimal subject: it forwards every request to the origin and stores nothing. The engine's own tests use
//! it, and it shows what a subject must provide.
//!
//! It sends `Cache-Status: passthrough; fwd=bypass`, answers 502 if the origin does not answer, and reports the
//! number of forwarded requests as `requests` in `GET /v1/stats`. It has one thread per connection, and one
//! origin connection per request.

use crate::deadline::WAIT;
use crate::request::Request;
use crate::{Config, Subject};
use harness::wire::{HttpConnection, MessageHead, head_bytes};
use harness::{Client, Deadline, Response, TestServer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A forwarding proxy with a control API.
pub struct PassThrough {
    front: TestServer,
    admin: TestServer,
    clock_ms: AtomicU64,
}

impl PassThrough {
    /// Starts a proxy in front of `config.origin`. The rest of the configuration is ignored.
    ///
    /// # Errors
    /// The reason why a port could not be opened.
    pub fn start(config: &Config) -> Result<Box<dyn Subject>, String> {
        let origin = config.origin;
        let requests = Arc::new(AtomicU64::new(0));
        let passed = Arc::clone(&requests);
        let front = listen(move |head, body| {
            passed.fetch_add(1, Ordering::SeqCst);
            pass_on(origin, head, body)
        });
        let admin = listen(move |head, _| control(head, requests.load(Ordering::SeqCst)));
        let clock_ms = AtomicU64::new(1_000_000_000_000);
        Ok(Box::new(PassThrough { front: front?, admin: admin?, clock_ms }))
    }
}

impl Subject for PassThrough {
    fn address(&self) -> SocketAddr {
        self.front.address()
    }

    fn admin_address(&self) -> SocketAddr {
        self.admin.address()
    }

    fn advance(&self, by: Duration) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.clock_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }

    fn now_ms(&self) -> Option<u64> {
        Some(self.clock_ms.load(Ordering::SeqCst))
    }
}

/// A listening port. A function from the request to the bytes of the answer handles each request.
fn listen(
    answer: impl Fn(&MessageHead, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
) -> Result<TestServer, String> {
    let served = TestServer::start(move |accepted| {
        if let Ok(stream) = accepted.stream.try_clone() {
            serve(HttpConnection::of(stream), &answer);
        }
    });
    served.map_err(|error| error.to_string())
}

fn serve(mut connection: HttpConnection, answer: &dyn Fn(&MessageHead, Vec<u8>) -> Vec<u8>) {
    while let Ok(head) = connection.read_head() {
        let bytes = match (head.field("host"), connection.read_body(&head, false)) {
            (Some(_), Ok(body)) => answer(&head, body.bytes),
            _ => reply("400 Bad Request", "", b"bad request"),
        };
        let refused = bytes.starts_with(b"HTTP/1.1 400");
        if connection.write(&bytes).is_err() || refused {
            break;
        }
    }
}

/// Forwards a request to the origin, and returns its answer with a `Cache-Status`.
fn pass_on(origin: SocketAddr, head: &MessageHead, body: Vec<u8>) -> Vec<u8> {
    let (method, target) = head.method_and_target();
    let body = (!body.is_empty()).then_some(body);
    let mut fields = head.fields.clone();
    fields.retain(|(name, _)| name != "content-length");
    let request = Request::http(method, target.as_bytes(), fields, body);
    let deadline = Deadline::after(WAIT);
    let mut client = Client::new(origin);
    let sent = client.write(&request.bytes, request.is_head, deadline);
    match sent.map(|()| client.receive(deadline)) {
        Ok(Ok(response)) if response.complete => answered(response),
        _ => reply("502 Bad Gateway", "passthrough; fwd=bypass; detail=origin", b"no origin"),
    }
}

fn answered(response: Response) -> Vec<u8> {
    let mut fields = response.headers;
    fields.retain(|(name, _)| !matches!(&**name, "connection" | "transfer-encoding"));
    fields.push(("cache-status".into(), b"passthrough; fwd=bypass".to_vec()));
    let has_length = fields.iter().any(|(name, _)| name == "content-length");
    if !has_length && !matches!(response.status, 204 | 304) {
        fields.push(("content-length".into(), response.content.len().to_string().into_bytes()));
    }
    let mut bytes = Vec::new();
    for status in response.interim {
        bytes.extend_from_slice(format!("HTTP/1.1 {status} Interim\r\n\r\n").as_bytes());
    }
    bytes.extend(head_bytes(&format!("HTTP/1.1 {} Passed", response.status), &fields));
    bytes.extend(response.content);
    bytes
}

/// The control API: reports the counter, and that no pages were removed.
fn control(head: &MessageHead, requests: u64) -> Vec<u8> {
    let stats = format!(r#"{{"requests":{requests},"nested":{{"zero":0}}}}"#);
    match head.first.as_str() {
        "GET /v1/stats HTTP/1.1" => reply("200 OK", "", stats.as_bytes()),
        "POST /v1/invalidate HTTP/1.1" => reply("200 OK", "", br#"{"number":1,"dropped":0}"#),
        _ => reply("404 Not Found", "", b"not here"),
    }
}

fn reply(status: &str, cache_status: &str, body: &[u8]) -> Vec<u8> {
    let mut fields = vec![("content-length".to_owned(), body.len().to_string().into_bytes())];
    if !cache_status.is_empty() {
        fields.push(("cache-status".to_owned(), cache_status.as_bytes().to_vec()));
    }
    let mut bytes = head_bytes(&format!("HTTP/1.1 {status}"), &fields);
    bytes.extend_from_slice(body);
    bytes
}
