//! A client that is idle for a while and then continues: the released resources are available again. Plain hits
//! and other requests may follow each other on one connection in any order. The counter `connections_rested`
//! shows that a client is idle; nothing here sleeps. Memory that many connections needed at once is returned to
//! the system.

use acceptance::{Raw, Site, binary, counter, until};
use harness::{Pagewell, page_origin};

const PLAIN: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const PART: &str = "GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9\r\n\r\n";
const WRITE: &str = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";

/// Waits until connections have become idle this number of times. A client that takes long to send its first request
/// is idle once more.
fn until_rested(pagewell: &Pagewell, times: u64) {
    until("the client rests", || counter(pagewell, "connections_rested") >= times);
}

#[test]
fn a_client_that_was_idle_is_still_served() {
    let origin = format!("http://{}", page_origin(100).expect("an origin"));
    let pagewell = Pagewell::start(binary(), &["--origin", &origin]).expect("it starts");
    let mut client = Raw::with(&pagewell, PLAIN);
    assert_eq!(client.answer().content.len(), 100);
    for (rested, (request, status)) in
        [(PLAIN, 200), (PART, 206), (PART, 206), (PLAIN, 200), (WRITE, 200), (PLAIN, 200)]
            .into_iter()
            .enumerate()
    {
        until_rested(&pagewell, rested as u64 + 1);
        client.send(request);
        let answer = client.answer();
        assert_eq!(answer.status, status, "{request}");
        let is_hit = answer.header("cache-status").is_some_and(|said| said.contains("; hit"));
        assert_eq!(is_hit, request != WRITE, "{request}");
    }
    // All kinds at once, in order.
    client.send([PLAIN, PART, WRITE, PLAIN, PART].concat());
    let statuses: Vec<u16> = (0..5).map(|_| client.answer().status).collect();
    assert_eq!(statuses, [200, 206, 200, 200, 206]);
}

#[test]
fn a_client_that_is_silent_at_first_is_served_later() {
    let origin = format!("http://{}", page_origin(100).expect("an origin"));
    let pagewell = Pagewell::start(binary(), &["--origin", &origin]).expect("it starts");
    let mut silent = Raw::connect(&pagewell);
    // Other clients do not wait for it.
    assert_eq!(Raw::with(&pagewell, PLAIN).answer().status, 200);
    until("he is let in", || counter(&pagewell, "connections_accepted") >= 2);
    silent.send(&PLAIN[..9]);
    silent.send(&PLAIN[9..]);
    assert_eq!(silent.answer().status, 200);
    silent.send([PLAIN, PART].concat());
    assert_eq!((silent.answer().status, silent.answer().status), (200, 206));
}

#[test]
fn a_client_with_an_incomplete_request_is_not_idle() {
    let origin = format!("http://{}", page_origin(100).expect("an origin"));
    let site = Site::new(&[]);
    let patient = site.at("patient.toml");
    std::fs::write(&patient, "[limits]\nheader_timeout = \"1h\"\n").expect("written");
    let args = ["--origin", &origin, "--config", &patient.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("it starts");
    let (begun, rest) = PLAIN.split_at(20);
    let mut client = Raw::with(&pagewell, begun);
    let before = counter(&pagewell, "connections_rested");
    // Another client connects later, and becomes idle. If the first one rested, too, its bytes would be gone.
    let mut other = Raw::with(&pagewell, PLAIN);
    assert_eq!(other.answer().status, 200);
    until_rested(&pagewell, before + 1);
    client.send(rest);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn memory_of_many_connections_is_returned_to_the_system() {
    const CLIENTS: u64 = 600;
    let origin = format!("http://{}", page_origin(100).expect("an origin"));
    let pagewell = Pagewell::start(binary(), &["--origin", &origin]).expect("it starts");
    let mut clients: Vec<Raw> = (0..CLIENTS).map(|_| Raw::with(&pagewell, PART)).collect();
    let mut most = 0;
    for round in 1..=2 {
        for client in &mut clients {
            assert_eq!(client.answer().status, 206);
        }
        most = pagewell.rss_bytes();
        until_rested(&pagewell, round * CLIENTS);
        for client in clients.iter_mut().filter(|_| round == 1) {
            client.send(PART);
        }
    }
    until("it goes back", || pagewell.rss_bytes() + (1 << 20) < most);
}
