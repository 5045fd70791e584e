//! A minimal subject: it forwards every request to the origin and stores nothing. The engine's own tests use
//! it, and it shows what a subject must provide.
//!
//! It sends `Cache-Status: passthrough; fwd=bypass`, answers 502 if the origin does not answer, and reports the
//! number of forwarded requests as `requests` in `GET /v1/stats`. It has one thread per connection, and one
//! origin connection per request.

use crate::client::{Request, Response};
use crate::deadline::{Deadline, WAIT};
use crate::wire::{Connection, Head, head_bytes};
use crate::{Config, Subject, client};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A forwarding proxy with a control API.
pub struct PassThrough {
    front: Listener,
    admin: Listener,
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
        let front = Listener::open(move |head, body| {
            passed.fetch_add(1, Ordering::SeqCst);
            pass_on(origin, head, body)
        });
        let admin = Listener::open(move |head, _| control(head, requests.load(Ordering::SeqCst)));
        let clock_ms = AtomicU64::new(1_000_000_000_000);
        let admin = admin.map_err(|e| e.to_string())?;
        Ok(Box::new(PassThrough { front: front.map_err(|e| e.to_string())?, admin, clock_ms }))
    }
}

impl Subject for PassThrough {
    fn address(&self) -> SocketAddr {
        self.front.address
    }

    fn admin_address(&self) -> SocketAddr {
        self.admin.address
    }

    fn advance(&self, by: Duration) {
        let by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.clock_ms.fetch_add(by_ms, Ordering::SeqCst);
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.front.close();
        self.admin.close();
        Ok(())
    }

    fn now_ms(&self) -> Option<u64> {
        Some(self.clock_ms.load(Ordering::SeqCst))
    }
}

/// A listening port. A function from the request to the bytes of the answer handles each request.
struct Listener {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepting: JoinHandle<()>,
}

impl Listener {
    fn open(
        answer: impl Fn(&Head, Vec<u8>) -> Vec<u8> + Send + Sync + 'static,
    ) -> std::io::Result<Listener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let closing = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (is_closing, open_streams) = (Arc::clone(&closing), Arc::clone(&streams));
        let answer = Arc::new(answer);
        let accept = move || {
            for stream in listener.incoming() {
                let (Ok(stream), false) = (stream, is_closing.load(Ordering::SeqCst)) else {
                    break;
                };
                let handle = stream.try_clone();
                open_streams.lock().unwrap_or_else(PoisonError::into_inner).extend(handle.ok());
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(Connection::of(stream), &*answer));
            }
        };
        let accepting = std::thread::spawn(accept);
        Ok(Listener { address, closing, streams, accepting })
    }

    fn close(self) {
        self.closing.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.join();
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn serve(mut connection: Connection, answer: &dyn Fn(&Head, Vec<u8>) -> Vec<u8>) {
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
    connection.close();
}

/// Forwards a request to the origin, and returns its answer with a `Cache-Status`.
fn pass_on(origin: SocketAddr, head: &Head, body: Vec<u8>) -> Vec<u8> {
    let mut words = head.first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let body = (!body.is_empty()).then_some(body);
    let mut fields = head.fields.clone();
    fields.retain(|(name, _)| name != "content-length");
    let request = Request::http(method, target.as_bytes(), fields, body);
    let deadline = Deadline::after(WAIT * 12);
    let mut client = client::Client::new(origin);
    let sent = client.send(&request, deadline);
    match sent.map(|()| client.receive(deadline)) {
        Ok(Ok(response)) if response.body.complete => answered(response),
        _ => reply("502 Bad Gateway", "passthrough; fwd=bypass; detail=origin", b"no origin"),
    }
}

fn answered(response: Response) -> Vec<u8> {
    let mut fields = response.fields;
    fields.retain(|(name, _)| !matches!(&**name, "connection" | "transfer-encoding"));
    fields.push(("cache-status".into(), b"passthrough; fwd=bypass".to_vec()));
    let has_length = fields.iter().any(|(name, _)| name == "content-length");
    if !has_length && !matches!(response.status, 204 | 304) {
        fields.push(("content-length".into(), response.body.bytes.len().to_string().into_bytes()));
    }
    let mut bytes = Vec::new();
    for status in response.interim {
        bytes.extend_from_slice(format!("HTTP/1.1 {status} Interim\r\n\r\n").as_bytes());
    }
    bytes.extend(head_bytes(&format!("HTTP/1.1 {} Passed", response.status), &fields));
    bytes.extend(response.body.bytes);
    bytes
}

/// The control API: reports the counter, and that no pages were removed.
fn control(head: &Head, requests: u64) -> Vec<u8> {
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
