//! Clients with and without sessions request private, public and mixed pages, write, purge, and change the data
//! of pages, in a random order and concurrently. Each page of the origin contains its owner and the version of
//! the data that it depends on. Each client checks pages against the writes it knows of.
//!
//! Two properties must hold: no page made for one client reaches another, and no page is older than the last
//! acknowledged write of its client. The server runs in this process; no sleeps, ephemeral ports only.

use config::raw::File;
use config::{Address, resolve};
use page_store::Walk;
use pagewell::server::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use telemetry::clock::Clock;

const SESSIONS: usize = 5;
const STEPS: usize = 1_500;
const PAGES: u64 = 4;

/// The data version of each client; the last one is that of the public pages. The second field is the latest
/// public version whose write was acknowledged.
#[derive(Default)]
struct Truth([AtomicU64; SESSIONS + 1], AtomicU64);

/// The client that a request's cookies identify: the number after `sess=visitor-`, if any.
fn visitor_of(lines: &[String]) -> Option<usize> {
    let cookie = lines.iter().find(|line| line.to_ascii_lowercase().starts_with("cookie:"))?;
    let at = cookie.find("sess=visitor-number-")?;
    cookie[at + 20..].chars().next()?.to_digit(10).map(|digit| digit as usize)
}

fn serve(truth: &Truth, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let (mut stream, mut lines, mut line) = (stream, Vec::<String>::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if !line.trim().is_empty() {
            lines.push(std::mem::take(&mut line));
            continue;
        }
        line.clear();
        let answer = answer(truth, &std::mem::take(&mut lines));
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Answers `/private/N`, `/public/N` and `/mixed/N`. POST changes the client's data; `/purge` purges the
/// client's private pages.
fn answer(truth: &Truth, lines: &[String]) -> String {
    let client = visitor_of(lines);
    let own = client.map(|client| truth.0[client].load(SeqCst));
    let all = truth.0[SESSIONS].load(SeqCst);
    // The page shows the data from before, and takes a moment.
    thread::yield_now();
    let (mut fields, who) = (String::new(), client.map_or(-1, |client| client as i64));
    let line = lines[0].as_str();
    if line.starts_with("POST /all") {
        truth.0[SESSIONS].fetch_add(1, SeqCst);
        fields.push_str("cache-group-invalidation: \"all\"\r\n");
    } else if line.starts_with("POST") {
        let client = client.expect("only visitors with a session write");
        truth.0[client].fetch_add(1, SeqCst);
    } else if line.starts_with("GET /purge") {
        let client = client.expect("only visitors with a session purge");
        truth.0[client].fetch_add(1, SeqCst);
        fields.push_str("x-litespeed-purge: private,mine\r\n");
    } else {
        let for_all =
            line.starts_with("GET /public") || (line.starts_with("GET /mixed") && who < 0);
        let scope = if for_all { "" } else { "private, " };
        fields.push_str(&format!("cache-control: {scope}max-age=600\r\ncache-groups: \"all\"\r\n"));
        fields.push_str("x-litespeed-tag: mine\r\n");
    }
    let content = format!("{who} {} {all}", own.unwrap_or(0));
    format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n{content}", content.len())
}

/// Sends one request on its own connection. Returns the content, and Cache-Status.
fn ask(to: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(to).expect("it is served");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, content) = text.split_once("\r\n\r\n").expect("a header section");
    assert!(head.starts_with("HTTP/1.1 200"), "{text}");
    let status = head.lines().find(|line| line.starts_with("cache-status")).unwrap_or_default();
    (content.to_owned(), status.to_owned())
}

/// The actions of one client, in order; several clients run concurrently. Returns the number of hits, and of
/// private hits.
fn visit(to: SocketAddr, truth: &Truth, client: Option<usize>, mut random: u64) -> [u64; 2] {
    let cookie = match client {
        Some(client) => format!("cookie: _ga=1; sess=visitor-number-{client}-secret; x=1\r\n"),
        None => String::new(),
    };
    let mut hits = [0; 2];
    for _ in 0..STEPS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let page = random >> 32 & (PAGES - 1);
        let line = match (random % 20, client) {
            (0, Some(_)) => format!("POST /own/{page}"),
            (1, Some(_)) => format!("GET /purge/{random}"),
            (2, _) => "POST /all".to_owned(),
            (3..=8, _) => format!("GET /public/{page}"),
            (9..=12, _) => format!("GET /mixed/{page}"),
            _ => format!("GET /private/{page}"),
        };
        let own = client.map_or(0, |client| truth.0[client].load(SeqCst));
        let acknowledged = truth.1.load(SeqCst);
        let request = format!(
            "{line} HTTP/1.1\r\nhost: a\r\n{cookie}connection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let (content, status) = ask(to, &request);
        let words: Vec<i64> =
            content.split(' ').map(|word| word.parse().expect("a number")).collect();
        if line == "POST /all" {
            truth.1.fetch_max(words[2] as u64 + 1, SeqCst);
        }
        if line.starts_with("POST") || line.starts_with("GET /purge") {
            continue;
        }
        let me = client.map_or(-1, |client| client as i64);
        assert_eq!(words[0], me, "{line}: made for another: {content}: {status}");
        // Only this thread writes for this client, and each write was acknowledged before the next step.
        assert_eq!(words[1] as u64, own, "{line}: outlived its owner's write: {status}");
        assert!(words[2] as u64 >= acknowledged, "{line}: outlived a change for all: {status}");
        hits[0] += u64::from(status.contains("; hit"));
        hits[1] += u64::from(status.contains("detail=private") && status.contains("; hit"));
    }
    hits
}

/// A server whose origin answers from this truth, the runtime that it runs in, and its address.
fn start(truth: &Arc<Truth>) -> (tokio::runtime::Runtime, Server, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let origin = listener.local_addr().expect("it is bound");
    let shared = truth.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let truth = shared.clone();
            thread::spawn(move || serve(&truth, stream));
        }
    });
    let config = format!(
        "site.origin = \"http://{origin}\"\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         memory = \"64M\"\n[private]\ncookies = [\"sess\"]\n"
    );
    let file: File = toml::from_str(&config).expect("a configuration");
    let config = Arc::new(resolve(&file).expect("a configuration that can be used"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(Server::start(config, Clock::still())).expect("it starts");
    let Address::Tcp(to) = server.addresses()[0].clone() else { panic!("a TCP address") };
    (runtime, server, to)
}

#[test]
fn no_page_reaches_another_visitor_or_outlives_its_owners_write() {
    let truth = Arc::new(Truth::default());
    let (_runtime, server, to) = start(&truth);
    let visitors = (0..SESSIONS).map(Some).chain([None, None]);
    let visits: Vec<_> = visitors
        .enumerate()
        .map(|(at, client)| {
            let truth = truth.clone();
            thread::spawn(move || visit(to, &truth, client, 0x9e37_79b9 + at as u64 * 7919))
        })
        .collect();
    let mut hits = [0; 2];
    for visit in visits {
        let own = visit.join().expect("nobody got what was another's or outdated");
        hits = [hits[0] + own[0], hits[1] + own[1]];
    }
    assert!(hits[1] > 100, "hardly any private hits, so nothing was tried: {hits:?}");
    assert!(hits[0] > hits[1], "no public hits: {hits:?}");
    drop(server);
}

#[test]
fn a_private_hit_counts_as_served() {
    let truth = Arc::new(Truth::default());
    let (_runtime, server, to) = start(&truth);
    let request = "GET /private/1 HTTP/1.1\r\nhost: a\r\ncookie: sess=visitor-number-1-secret\r\n\
                   connection: close\r\n\r\n";
    let hits = (0..3).filter(|_| ask(to, request).1.contains("; hit")).count();
    assert_eq!(hits, 2, "the first request has the copy made");
    let store = &server.site().store;
    let mut walk = Walk::default();
    let mut served = Vec::new();
    while !walk.is_over() {
        served.extend(store.walk(&mut walk, 64).iter().map(|found| found.page.served()));
    }
    assert_eq!(served, [2], "each hit is counted by the copy");
    drop(server);
}
