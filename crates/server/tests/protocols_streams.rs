//! What goes through Pagewell without being held: WebSocket and other protocols, and streams of
//! events. The origins are raw sockets of the test, so that each step is seen where it happens.

mod common;

use common::{Raw, Site, counter, until};
use harness::Pagewell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

/// Pagewell before an HTTP origin that the test plays.
fn before_origin(config: &str) -> (Pagewell, TcpListener, Site) {
    let site = Site::new(&[]);
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = origin.local_addr().expect("bound");
    let text = format!("[site]\norigin = \"http://{address}\"\n{config}\n");
    let file = site.at("origin.toml");
    std::fs::write(&file, text).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(common::binary(), &args).expect("pagewell starts");
    (pagewell, origin, site)
}

/// Takes a connection and reads a request's head.
fn asked(origin: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = origin.accept().expect("a connection");
    stream.set_read_timeout(Some(common::BOUND)).expect("can be set");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request");
        head.push(byte[0]);
    }
    (stream, String::from_utf8_lossy(&head).to_ascii_lowercase())
}

fn read(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("bytes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A conversation that has begun.
fn conversation(pagewell: &Pagewell, origin: &TcpListener) -> (Raw, TcpStream) {
    let mut client = Raw::with(pagewell, format!("{ASK}early"));
    let (mut at_origin, head) = asked(origin);
    assert!(head.contains("connection: upgrade\r\n"), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    assert!(head.contains("sec-websocket-key: dghlihnhbxbszsbub25jzq==\r\n"), "{head}");
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello";
    at_origin.write_all(agreed.as_bytes()).expect("written");
    let head = client.until("\r\n\r\n").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"), "{head}");
    assert_eq!(client.until("hello"), "hello");
    assert_eq!(read(&mut at_origin, 5), "early");
    (client, at_origin)
}

#[test]
fn a_websocket_is_carried_both_ways() {
    let (pagewell, origin, _site) = before_origin("");
    let (mut client, mut at_origin) = conversation(&pagewell, &origin);
    for round in 0..3 {
        client.send(format!("ping{round}"));
        assert_eq!(read(&mut at_origin, 5), format!("ping{round}"));
        at_origin.write_all(format!("pong{round}").as_bytes()).expect("written");
        client.until(&format!("pong{round}"));
    }
    assert_eq!(counter(&pagewell, "connections"), 1);
    assert_eq!(counter(&pagewell, "upgrades"), 1);
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0, "it starves no page");
    drop(at_origin);
    assert_eq!(client.rest(), "");
    drop(client);
    until("nothing is left", || counter(&pagewell, "connections") == 0);
}

#[test]
fn a_websocket_ends_when_pagewell_stops() {
    let (mut pagewell, origin, _site) = before_origin("");
    let (mut client, _at_origin) = conversation(&pagewell, &origin);
    pagewell.stop();
    assert_eq!(client.rest(), "");
}

#[test]
fn a_silent_websocket_ends_and_their_number_is_bounded() {
    let (pagewell, origin, _site) =
        before_origin("[limits]\nupgrades = 1\nupgrade_idle_timeout = \"500ms\"");
    let (mut client, _at_origin) = conversation(&pagewell, &origin);
    let full = Raw::with(&pagewell, ASK).answer();
    assert_eq!(full.status, 503);
    assert!(full.content.contains("upgrades-full"), "{full:?}");
    assert_eq!(client.rest(), "");
}

#[test]
fn an_origin_may_answer_instead() {
    let (pagewell, origin, _site) = before_origin("");
    let mut client = Raw::with(&pagewell, ASK);
    let (mut at_origin, _) = asked(&origin);
    at_origin.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").expect("written");
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.content), (403, "no"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.rest(), "");
}

#[test]
fn php_answers_an_ordinary_request_in_place_of_an_upgrade() {
    let site = Site::new(&[("chat.php", "<?php echo $_SERVER['HTTP_UPGRADE'] ?? 'none';")]);
    let pagewell = site.serve("");
    for protocol in ["websocket", "h2c"] {
        let answer = Raw::with(
            &pagewell,
            format!(
                "GET /chat.php HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
                 Upgrade: {protocol}\r\n\r\n"
            ),
        )
        .answer();
        assert_eq!((answer.status, &*answer.content), (200, "none"));
        assert_eq!(answer.header("connection"), None);
    }
}

#[test]
fn events_are_passed_on_one_by_one_and_never_kept() {
    let (pagewell, origin, _site) = before_origin("");
    let mut client = Raw::with(&pagewell, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut at_origin, _) = asked(&origin);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
    at_origin.write_all(head.as_bytes()).expect("written");
    // The head is there before the first event is.
    let head = client.until("\r\n\r\n");
    assert!(head.contains("detail=streamed"), "{head}");
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        at_origin.write_all(format!("9\r\n{event}\r\n").as_bytes()).expect("written");
        client.until(event);
    }
    // Another visitor has a stream of his own.
    let other = Raw::with(&pagewell, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    let (second, _) = asked(&origin);
    drop((other, second));
    // When the client goes, so does the request.
    drop(client);
    assert_eq!(at_origin.read(&mut [0]).unwrap_or(0), 0);
    until("nothing is left", || counter(&pagewell, "origin_places_taken") == 0);
    assert_eq!(counter(&pagewell, "stored"), 0);
}

#[test]
fn what_php_asks_not_to_be_buffered_is_passed_on_at_once() {
    let site = Site::new(&[(
        "slow.php",
        "<?php header('Cache-Control: max-age=60'); header('X-Accel-Buffering: no');
         echo 'begin;'; while (ob_get_level() > 0) ob_end_flush(); flush();
         wait_for('go'); echo 'end;';",
    )]);
    let pagewell = site.serve("");
    let mut client = Raw::with(&pagewell, "GET /slow.php HTTP/1.1\r\nHost: a\r\n\r\n");
    client.until("begin;");
    site.note("go");
    client.until("end;");
    assert_eq!(counter(&pagewell, "stored"), 0);
}
