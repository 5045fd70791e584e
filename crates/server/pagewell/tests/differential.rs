//! A connection has two HTTP/1 parsers in sequence: the front and hyper. This test sends hostile input
//! (requests composed of unusual parts, then damaged, several per connection, split at any point), on which
//! both must agree:
//!
//! - whether or not the front answers plain hits, the same requests get the same responses, the origin receives
//!   the same requests, and the connection ends at the same point;
//! - hyper parses a request that the front forwards as exactly one request with content of the same length.
//!
//! The cases are generated from a fixed seed, which a failure reports; `DIFFERENTIAL_SEED` and
//! `DIFFERENTIAL_CASES` select others. RFC 9112 sections 2 to 6. Not here: the inside of chunked content.
#![allow(clippy::unwrap_used)]

#[path = "differential/http2.rs"]
mod http2;
#[path = "differential/redirects.rs"]
mod redirects;

use bytes::Bytes;
use config::raw::{File, OneOrMany};
use config::{Limits, resolve};
use front::connection;
use front::request_head::{Framing, Inspection, inspect};
use harness::{PrivateDir, Random, Stopwatch};
use http_body_util::{BodyExt, Full};
use pagewell::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use telemetry::client::ClientConnection;
use telemetry::clock::Clock;
use telemetry::phase::Phase;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch::Sender;
use tokio::task::JoinHandle;

/// Ends the connection, whatever was sent before.
const LAST: &str = "GET /end HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
/// Longer than any case takes; only a fault reaches it.
const BOUND: Duration = Duration::from_secs(60);
/// The time limits of a connection, which some of the cases reach; and for cases that reach none.
const LIMIT: Duration = Duration::from_secs(2);
const LONG_LIMIT: Duration = Duration::from_secs(30);
/// How often a case is tried again that a busy machine has made so slow that a limit was reached on one side only.
const TRIES: usize = 5;

/// A page behind a password, which is `a` with the password `b`; the value of `Authorization`.
const BEHIND_PASSWORD: &str = "/p";
const PASSWORD: &str = "Basic YTpi";
const PASSWORD_FILE: &str = "a:$apr1$s$dw/atyPRNQpI04bz.O1US.\n";

/// A page for all clients, because the first rule about it decides.
const FOR_ALL: &str = "/open";
/// Rules of the sites for it, and redirects, one of them behind the password.
const RULES: &str = "[[rule]]\npath = \"/open\"\ndeny = false\n\
    [[rule]]\npath = \"/open\"\nfrom = \"!10.0.0.0/8\"\ndeny = 403\n\
    [[rule]]\npath = \"/r/*\"\nredirect = \"/a/$1\"\n\
    [[rule]]\npath = \"/p/r\"\nredirect = \"/a\"\nredirect_status = 302\n";

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "OPTIONS", "get", "TRACE", "PURGE",
    "CONNECT",
];
const TARGETS: &[&str] = &[
    "/a",
    "/a",
    "/a",
    "/b?x=1&y=2",
    "/b?x=1&y=2",
    "/v",
    "/v",
    BEHIND_PASSWORD,
    BEHIND_PASSWORD,
    BEHIND_PASSWORD,
    BEHIND_PASSWORD,
    BEHIND_PASSWORD,
    BEHIND_PASSWORD,
    FOR_ALL,
    FOR_ALL,
    "/r/1",
    "/r/1",
    "/r/1",
    "/r/1",
    "/r/%41//b?x=1",
    "/p/r",
    "/r/<",
    "/no-store",
    "/no-such",
    "http://a.test/a",
    "http://a.test",
    "http://A.TEST:80/a",
    "https://a.test/a",
    "*",
    "a.test:80",
    "?x",
    "a",
    "/a#b",
    "/a%41",
    "/%2e%2e/a",
    "//a",
    "/a?utm_source=x",
    "/a\"b",
    "/a\u{e9}",
    "/a b",
];
const VERSIONS: &[&str] = &[
    "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.0", "HTTP/1.2",
    "HTTP/2.0", "http/1.1",
];
const HOSTS: &[&str] = &[
    "Host: a.test\r\n",
    "Host: a.test\r\n",
    "Host: a.test\r\n",
    "Host: a.test\r\n",
    "host:a.test \r\n",
    "HOST: A.Test:80\r\n",
    "Host: a.test:8080\r\n",
    "Host: [::1]:80\r\n",
    "Host: \r\n",
    "Host: a.test:\r\n",
    "Host: a b\r\n",
    "Host: a.test\r\nHost: a.test\r\n",
    "",
];
const LINES: &[&str] = &[
    "Accept: */*\r\n",
    "Accept-Language: de\r\n",
    "Accept-Language: en\r\nAccept-Language: de\r\n",
    "Accept-Encoding: gzip, br\r\n",
    "Connection: keep-alive\r\n",
    "Connection: Keep-Alive\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive, x-a\r\nX-A: 1\r\n",
    "Connection: keep-alive\r\nConnection: close\r\n",
    "Connection: upgrade\r\nUpgrade: h2c\r\n",
    "Upgrade: websocket\r\n",
    "Cookie: a=b\r\n",
    "Cookie: PHPSESSID=1\r\n",
    "Authorization: Basic YTpi\r\n",
    "Authorization: Basic eDpi\r\n",
    "Cache-Control: no-cache\r\n",
    "Cache-Control: only-if-cached\r\n",
    "Cache-Control: max-age=0, no-store\r\n",
    "Pragma: no-cache\r\n",
    "If-None-Match: \"1\"\r\n",
    "If-None-Match: W/\"1\", \"2\"\r\n",
    "If-None-Match: *\r\n",
    "If-Match: \"2\"\r\n",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    "Range: bytes=0-1\r\n",
    "Range: bytes=0-1,3-4\r\n",
    "Range: bytes=900-\r\n",
    "Range: bytes=0-1\r\nIf-Range: \"1\"\r\n",
    "Expect: 100-continue\r\n",
    "X-Forwarded-Proto: https\r\n",
    "X-Forwarded-For: 1.2.3.4\r\n",
    "Forwarded: proto=https\r\n",
    "Proxy: x\r\n",
    "TE: trailers\r\n",
    "X-Empty:\r\n",
    "X-High: \u{e9}\r\n",
    "X-Tab:\t a\tb \r\n",
    " folded\r\n",
    "X : y\r\n",
    "X: y\n",
    "Content-Length: 0\r\n",
    "Content-Length: 00\r\n",
];
const CONTENTS: &[&str] = &[
    "Content-Length: 3\r\n\r\nabc",
    "Content-Length: 03\r\n\r\nabc",
    "Content-Length: 3 \r\n\r\nabc",
    "Content-Length: 40\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "Content-Length: 3, 3\r\n\r\nabc",
    "Content-Length: +3\r\n\r\nabc",
    "Content-Length: 99999\r\n\r\nabc",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "Transfer-Encoding: CHUNKED\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
];

/// A request that is unusual but mostly well-formed.
fn request(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    if random.chance(20) {
        text.push_str(random.one(&["\r\n", "\n", "\r\n\r\n", " "]));
    }
    let (method, target) = (random.one(METHODS), random.one(TARGETS));
    text.push_str(&format!("{method} {target} {}\r\n", random.one(VERSIONS)));
    text.push_str(random.one(HOSTS));
    if target == BEHIND_PASSWORD && !random.chance(4) {
        text.push_str(&format!("Authorization: {PASSWORD}\r\n"));
    }
    for _ in 0..random.below(4) {
        text.push_str(random.one(LINES));
    }
    let with_content = method == "POST" || random.chance(12);
    text.push_str(if with_content { random.one(CONTENTS) } else { "\r\n" });
    text.into_bytes()
}

/// Damages a few bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => drop(bytes.remove(at)),
        2 => bytes.insert(at, b"\r\n\0 :\t,;\x80"[random.below(9)]),
        3 => {
            let piece: Vec<u8> = bytes[at..(at + 8).min(bytes.len())].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => drop(bytes.drain(at..(at + 1 + random.below(6)).min(bytes.len()))),
    }
}

/// The bytes that a client sends on one connection, completed and ended.
fn stream(random: &mut Random, limits: &Limits) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..1 + random.below(4) {
        let mut next = request(random);
        if random.chance(5) {
            damage(&mut next, random);
        }
        bytes.extend_from_slice(&next);
    }
    complete(&mut bytes, limits);
    bytes.extend_from_slice(LAST.as_bytes());
    bytes
}

/// Completes an unfinished request, so that no timeout has to pass.
fn complete(bytes: &mut Vec<u8>, limits: &Limits) {
    let mut from = 0;
    while from < bytes.len() {
        match inspect(&bytes[from..], limits) {
            Inspection::Incomplete => bytes.extend_from_slice(b"\r\n\r\n"),
            Inspection::Complete { head_bytes, framing: Framing::Empty, .. } => from += head_bytes,
            Inspection::Complete { head_bytes, framing: Framing::Length(length), .. } => {
                from += head_bytes + length as usize;
                bytes.resize(bytes.len().max(from), b'.');
            }
            Inspection::Complete { .. } | Inspection::Refused(_) => return,
        }
    }
}

/// The requests received by the origin, in order.
type OriginLog = Arc<Mutex<Vec<String>>>;

/// An origin whose response depends only on the request. It closes each connection.
fn origin() -> (std::net::SocketAddr, OriginLog) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = OriginLog::default();
    let log = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = answer(stream, &log);
        }
    });
    (address, seen)
}

fn answer(stream: TcpStream, seen: &OriginLog) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let (mut first, mut length, mut chunked) = (String::new(), 0, false);
    if reader.read_line(&mut first)? == 0 {
        // Opened for a request that was aborted.
        return Ok(());
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(':') {
            None => break,
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
            Some((name, _)) => chunked |= name == "transfer-encoding",
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    while chunked {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            // The content was malformed. Whether the request had been started by then is random.
            return Ok(());
        }
        // The division into chunks depends on how the content arrived, and does not count.
        chunked = line != "0\r\n";
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    seen.lock().unwrap().push(format!("{method} {target} {length}"));
    let fields = match target.split('?').next() {
        Some("/no-store") => "Cache-Control: no-store\r\n",
        Some("/v") => "Cache-Control: max-age=900\r\nVary: Accept-Language\r\n",
        _ => "Cache-Control: max-age=900\r\nETag: \"1\"\r\n",
    };
    let text = format!("the page {target} by {method} with {length}");
    let sent = if method == "HEAD" { "" } else { &text };
    let length = text.len();
    write!(
        &stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{sent}",
    )
}

/// A Pagewell that is used only for its connection handling.
struct Side {
    server: Server,
    seen: OriginLog,
    _passwords: PrivateDir,
}

impl Side {
    async fn start(hits_in_front: bool) -> Side {
        Side::start_with(hits_in_front, RULES, LIMIT).await
    }

    /// With this at the beginning of the configuration, and these time limits.
    async fn start_with(hits_in_front: bool, more: &str, limit: Duration) -> Side {
        let (address, seen) = origin();
        let passwords = PrivateDir::temporary("passwords").unwrap();
        let users = passwords.path().join("users");
        std::fs::write(&users, PASSWORD_FILE).unwrap();
        let mut file: File = toml::from_str(&format!(
            "{more}[[rule]]\npath = [{BEHIND_PASSWORD:?}, \"/p/*\"]\nauth_file = {:?}\n\
             [limits]\nbody_bytes = \"1000\"\nidle_timeout = \"{limit}s\"\n\
             header_timeout = \"{limit}s\"\nbody_timeout = \"{limit}s\"\n",
            users.display().to_string(),
            limit = limit.as_secs()
        ))
        .unwrap();
        file.site.origin = Some(vec![format!("http://{address}")]);
        file.listen = Some(OneOrMany::One("127.0.0.1:0".into()));
        file.admin = Some("127.0.0.1:0".into());
        file.memory = Some("64M".into());
        file.hits_in_front = Some(hits_in_front);
        let config = resolve(&file).unwrap();
        let server = Server::start(Arc::new(config), Clock::still()).await.unwrap();
        Side { server, seen, _passwords: passwords }
    }

    /// A connection whose buffers hold `piece` bytes, the sender that stops it, and the task that serves it.
    fn connect(&self, piece: usize) -> (DuplexStream, Sender<Phase>, JoinHandle<()>) {
        let (client, inside) = tokio::io::duplex(piece);
        let (stop, stopped) = tokio::sync::watch::channel(Phase::default());
        let peer = Some("127.0.0.1:9".parse().unwrap());
        let from = ClientConnection { peer, local: peer, ..ClientConnection::none("http") };
        let site = self.server.site().clone();
        let served = tokio::spawn(connection::serve_plain(inside, from.into(), site, stopped));
        (client, stop, served)
    }

    /// The requests that the origin received since the last call.
    fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// The responses on one connection whose buffers hold `piece` bytes, and the requests that the origin
    /// received.
    async fn exchange(&self, bytes: &[u8], piece: usize) -> (Vec<String>, Vec<String>) {
        let (client, _stop, served) = self.connect(piece);
        let (mut from, mut to) = tokio::io::split(client);
        let sent = bytes.to_vec();
        let sending = tokio::spawn(async move {
            let _ = to.write_all(&sent).await;
            to
        });
        let mut came = Vec::new();
        let read = tokio::time::timeout(BOUND, from.read_to_end(&mut came)).await;
        assert!(read.is_ok(), "the connection does not end: {}", bytes.escape_ascii());
        sending.abort();
        let _ = sending.await;
        drop(from);
        let ended = tokio::time::timeout(BOUND, served).await;
        ended.expect("the server ends with its client").expect("no panic");
        (responses(&came), self.take_seen())
    }
}

/// The responses, with sorted lines and without values that depend on the time.
fn responses(came: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(came).into_owned();
    let tidy = |response: &str| {
        let (head, content) = response.split_once("\r\n\r\n").unwrap_or((response, "cut off"));
        let mut lines: Vec<String> = head.lines().map(str::to_ascii_lowercase).collect();
        lines.retain(|line| !line.starts_with("date:"));
        lines[1..].sort();
        format!("{}\n\n{content}", lines.join("\n"))
    };
    text.split("HTTP/1.").filter(|response| !response.is_empty()).map(tidy).collect()
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_in_front_change_nothing() {
    let seed = number("DIFFERENTIAL_SEED", 0x5eed);
    let mut random = Random::new(seed);
    let (front, behind) = (Side::start(true).await, Side::start(false).await);
    let limits = front.server.site().limits.clone();
    let (mut hits, mut behind_password, mut redirected) = (0, 0, 0);
    let is_hit = |response: &&String| response.contains("; hit;");
    for case in 0..number("DIFFERENTIAL_CASES", 1500) {
        let bytes = stream(&mut random, &limits);
        // After unread content, hyper continues if the whole content has arrived, and otherwise closes.
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let content = text.contains("content-length:") || text.contains("transfer-encoding:");
        let piece = [1, 7, 64, 4096][if content { 3 } else { random.below(4) }];
        let mut tries = 0;
        let (one, other) = loop {
            let watch = Stopwatch::start();
            let one = front.exchange(&bytes, piece).await;
            let other = behind.exchange(&bytes, piece).await;
            tries += 1;
            if one == other || watch.elapsed() < LIMIT || tries == TRIES {
                break (one, other);
            }
        };
        hits += one.0.iter().filter(is_hit).count();
        let is_private = |response: &&String| response.contains("private") && is_hit(response);
        behind_password += one.0.iter().filter(is_private).count();
        redirected += one.0.iter().filter(|response| response.contains("=redirected")).count();
        assert_eq!(one, other, "seed {seed} case {case} piece {piece}: {}", bytes.escape_ascii());
    }
    assert!(hits > 100, "plain hits are among the cases: {hits}");
    assert!(behind_password > 5, "also behind a password: {behind_password}");
    assert!(redirected > 20, "redirects are among the cases: {redirected}");
}

/// The requests that hyper alone parses from these bytes: method and content length.
async fn by_hyper(bytes: &[u8], limits: &Limits) -> Vec<(String, Option<usize>)> {
    let (client, inside) = tokio::io::duplex(1 << 20);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let service =
        hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let log = log.clone();
            async move {
                let method = request.method().to_string();
                let content = request.into_body().collect().await.ok();
                let length = content.map(|content| content.to_bytes().len());
                log.lock().unwrap().push((method, length));
                Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::new())))
            }
        });
    let (mut from, mut to) = tokio::io::split(client);
    to.write_all(bytes).await.unwrap();
    to.shutdown().await.unwrap();
    let reading = tokio::spawn(async move {
        let _ = from.read_to_end(&mut Vec::new()).await;
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        .half_close(true)
        .max_headers(limits.headers)
        .serve_connection(hyper_util::rt::TokioIo::new(inside), service)
        .await;
    let _ = reading.await;
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[tokio::test]
async fn an_accepted_request_is_one_request_to_hyper() {
    let seed = number("DIFFERENTIAL_SEED", 0x5eed);
    let mut random = Random::new(seed);
    let limits = Limits { body_bytes: 1000, ..Limits::default() };
    let mut passed = 0;
    for case in 0..number("DIFFERENTIAL_CASES", 4000) {
        let mut bytes = request(&mut random);
        for _ in 0..random.below(3) {
            damage(&mut bytes, &mut random);
        }
        complete(&mut bytes, &limits);
        let Inspection::Complete { head_bytes, framing, .. } = inspect(&bytes, &limits) else {
            continue;
        };
        let length = match framing {
            Framing::Empty => 0,
            Framing::Length(length) => length as usize,
            Framing::Chunked => continue,
        };
        let end = head_bytes + length;
        let one = [&bytes[..end], LAST.as_bytes()].concat();
        let found = by_hyper(&one, &limits).await;
        let shown = format!("seed {seed} case {case}: {}: {found:?}", bytes.escape_ascii());
        passed += usize::from(!found.is_empty());
        // hyper may refuse a target that is not a valid URI, and then closes; otherwise it reads as far as the
        // front.
        match &found[..] {
            [] => {}
            [first, rest @ ..] => {
                assert_eq!(first.1, Some(length), "{shown}");
                assert!(rest.is_empty() || rest == [("GET".into(), Some(0))], "{shown}");
            }
        }
    }
    assert!(passed > 200, "some pass: {passed}");
}

/// Offers of protocols that Pagewell does not switch to: such a request is a normal one.
const UNHEEDED: [&str; 3] =
    ["Upgrade: websocket\r\n", "Upgrade: h2c\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n"];
/// An offer that is forwarded to the origin.
const HEEDED: &str = "Connection: upgrade\r\nUpgrade: websocket\r\n";
/// Two lengths, and lines that do not end in CR LF: the front must not forward any of it.
const BEHIND: &str = "POST /b HTTP/1.1\nHost: a.test\nContent-Length: 3\nContent-Length: 3\n\nabc";

/// If the offer is not accepted, the following bytes must be parsed as strictly as before, or not at all.
#[tokio::test]
async fn an_offer_to_upgrade_does_not_end_the_strict_reading() {
    let side = Side::start(true).await;
    for offer in UNHEEDED.into_iter().chain([HEEDED]) {
        let first = format!("GET /a HTTP/1.1\r\nHost: a.test\r\n{offer}\r\n");
        let (came, _) = side.exchange(format!("{first}{BEHIND}{LAST}").as_bytes(), 4096).await;
        assert_eq!(came.len(), 2, "{came:?}");
        assert!(came[0].starts_with("1 200"), "{came:?}");
        assert!(came[1].contains("detail=bare-line-feed"), "{came:?}");
    }
    // The origin did not accept, so the bytes after it are the next request.
    let first = format!("GET /a HTTP/1.1\r\nHost: a.test\r\n{HEEDED}\r\n");
    let next = "GET /b HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let (came, seen) = side.exchange(format!("{first}{next}{LAST}").as_bytes(), 4096).await;
    assert_eq!(seen[..2], ["GET /a 0", "GET /b 0"], "{came:?}");
    assert!(!came[0].contains("\nconnection: close\n"), "{came:?}");
    assert!(came[0].ends_with("the page /a by GET with 0"), "{came:?}");
    assert!(came[1].ends_with("the page /b by GET with 0"), "{came:?}");
}

/// A response that waits for a slow client is sent completely before the connection is closed.
#[tokio::test]
async fn the_last_answer_is_whole_for_a_slow_client() {
    let side = Side::start(true).await;
    for offer in [""].into_iter().chain(UNHEEDED) {
        let text = format!("GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{offer}\r\n");
        for piece in [1, 7, 64] {
            let (came, _) = side.exchange(text.as_bytes(), piece).await;
            assert!(came[0].ends_with("the page /a by GET with 0"), "{offer:?} {piece}: {came:?}");
        }
    }
}
