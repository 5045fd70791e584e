//! A crawl: cold URLs, each from another address (by the PROXY protocol), while misses are rationed.
//!
//! Pages that PHP has to make may be deferred (503), and nothing else may fail. A signed-in visitor, who asks less than
//! twice a second, notices nothing. Afterwards no request waits, and everything is as before.

use super::site::{HOST, Ports, Site};
use super::stand::Stand;
use super::{Run, clients, error_text};
use harness::{Client, Deadline, Request};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// So many crawl, each with a request in so long: a hundred requests a second.
const CRAWLERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(40);
/// The connections of a crawler that are open: longer than a request waits that may be deferred.
const OPEN: usize = 100;
/// Below the rate of a confirmed session.
const SESSION_PAUSE: Duration = Duration::from_millis(600);
/// Within this time nothing waits any more.
const EMPTY_WITHIN: Duration = Duration::from_secs(60);

/// Crawls until then. Returns the cold URLs that were asked for, and the requests that were deferred.
///
/// # Errors
/// A session was refused, or some requests wait on after the crawl. How many are deferred depends on the machine.
pub fn suffer(
    run: &Run,
    site: &Site,
    stand: &Stand<'_>,
    until: Deadline,
) -> Result<(u64, u64), String> {
    let counter = |name: &str| stand.pagewell().counter(name);
    clients::session(run, "crawled-session")?;
    set_mode(site, "protect")?;
    let before = counter("misses_deferred")?;
    let number = AtomicU32::new(0);
    let (sessions, crawled) = thread::scope(|scope| {
        let crawl = || crawl(&site.ports, &number, until);
        let crawlers: Vec<_> = (0..CRAWLERS).map(|_| scope.spawn(crawl)).collect();
        let session = scope.spawn(|| {
            while !until.passed() {
                clients::session(run, "crawled-session")?;
                thread::park_timeout(SESSION_PAUSE);
            }
            Ok::<(), String>(())
        });
        let crawled = crawlers.into_iter().all(|crawler| crawler.join().is_ok());
        (session.join(), crawled)
    });
    let deferred = counter("misses_deferred")? - before;
    set_mode(site, "observe")?;
    sessions.map_err(|_| "the session panicked".to_owned())??;
    let number = u64::from(number.into_inner());
    if !crawled || number == 0 {
        return Err("there was no crawl".into());
    }
    let deadline = Deadline::after(EMPTY_WITHIN);
    while counter("origin_queue")? > 0 {
        if deadline.passed() {
            return Err("requests wait on after the crawl".into());
        }
        thread::park_timeout(PAUSE);
    }
    Ok((number, deferred))
}

/// Has Pagewell order misses in another way.
fn set_mode(site: &Site, mode: &str) -> Result<(), String> {
    site.configure(mode).map_err(error_text)?;
    let mut admin = Client::new(site.ports.admin.address()).host("localhost");
    let request = Request::new("POST", "/v1/reload")
        .content(b"{}")
        .header("Content-Type", "application/json");
    let answer = admin.send(&request).map_err(error_text)?;
    if answer.status == 200 { Ok(()) } else { Err(format!("no reload: {}", answer.text())) }
}

fn crawl(ports: &Ports, number: &AtomicU32, until: Deadline) {
    let mut open = VecDeque::new();
    while !until.passed() {
        let number = number.fetch_add(1, Relaxed);
        if let Ok(stream) = ask(ports, number) {
            open.push_back(stream);
        }
        if open.len() > OPEN {
            open.pop_front();
        }
        thread::park_timeout(PAUSE);
    }
}

/// Sends a request from an address of its own. Nobody reads the answer.
fn ask(ports: &Ports, number: u32) -> io::Result<TcpStream> {
    let from = Ipv4Addr::from_bits(0xc612_0000 | (number & 0x1_ffff));
    let mut stream = TcpStream::connect(ports.proxied.address())?;
    let text = format!(
        "PROXY TCP4 {from} 127.0.0.1 56324 80\r\n\
         GET /fresh.php?id=9&crawled={number} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(text.as_bytes())?;
    Ok(stream)
}
