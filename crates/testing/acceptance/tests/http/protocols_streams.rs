//! Data that Pagewell forwards without buffering: WebSocket and other protocols, and event streams. The test
//! plays the origins with raw sockets, so that each step can be observed.

use acceptance::{Raw, Site, asked, asked_again, before_origin, comes_again, counter, until};
use harness::Pagewell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

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
fn a_websocket_is_forwarded_in_both_directions() {
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
fn an_idle_websocket_is_closed_and_their_number_is_limited() {
    let (pagewell, origin, _site) = before_origin("[limits]\nupgrades = 1\n");
    let open = conversation(&pagewell, &origin);
    let full = Raw::with(&pagewell, ASK).answer();
    assert_eq!(full.status, 503);
    assert!(full.content.contains("upgrades-full"), "{full:?}");
    drop(open);
    let (pagewell, origin, _site) = before_origin("[limits]\nupgrade_idle_timeout = \"500ms\"");
    let mut client = Raw::with(&pagewell, ASK);
    let (mut at_origin, _) = asked(&origin);
    let agreed =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    at_origin.write_all(agreed.as_bytes()).expect("written");
    let said = client.rest();
    assert!(said.starts_with("HTTP/1.1 101 ") && said.ends_with("\r\n\r\n"), "{said:?}");
}

#[test]
fn an_origin_may_decline_an_upgrade_and_the_connection_continues() {
    let (pagewell, origin, _site) = before_origin("");
    let mut client = Raw::with(&pagewell, ASK);
    let (mut at_origin, _) = asked(&origin);
    at_origin.write_all(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").expect("written");
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.content), (403, "no"));
    assert_eq!(answer.header("connection"), None);
    client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    comes_again(&origin, &mut at_origin);
    assert!(asked_again(&mut at_origin).starts_with("get /next "));
    at_origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").expect("written");
    assert_eq!(client.answer().content, "next");
    assert_eq!(counter(&pagewell, "upgrades"), 0);
}

/// More bytes than the sockets between the two ends hold.
const LONG: usize = 24 << 20;

/// Sends a response with long content, and returns when all of it has been accepted.
fn answer_long(mut at_origin: TcpStream) -> TcpStream {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n");
    at_origin.write_all(head.as_bytes()).expect("written");
    at_origin.write_all(&vec![b'x'; LONG]).expect("written");
    at_origin
}

/// Reads it in small pieces, slower than it is written, so that the sockets are full until the end.
fn take_long(client: &mut Raw) {
    let mut left = LONG - client.kept(LONG).len();
    let mut piece = vec![0; 16_000];
    while left > 0 {
        let most = left.min(piece.len());
        let count = client.stream().read(&mut piece[..most]).expect("all of it");
        assert_ne!(count, 0, "closed {left} bytes before the end");
        assert!(piece[..count].iter().all(|byte| *byte == b'x'), "within the content");
        left -= count;
    }
}

#[test]
fn a_long_response_in_place_of_an_upgrade_is_complete() {
    let (pagewell, origin, _site) = before_origin("");
    // The following bytes are a request, because the protocol has not changed.
    let mut client = Raw::with(&pagewell, format!("{ASK}GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
    let (at_origin, _) = asked(&origin);
    let answering = std::thread::spawn(move || answer_long(at_origin));
    let head = client.until("\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    take_long(&mut client);
    let mut at_origin = answering.join().expect("it has answered");
    comes_again(&origin, &mut at_origin);
    assert!(asked_again(&mut at_origin).starts_with("get /next "));
    at_origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").expect("written");
    assert_eq!(client.answer().content, "next");
}

#[test]
fn an_upgrade_after_a_long_response_works() {
    let (pagewell, origin, _site) = before_origin("");
    let first = "GET /long HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = Raw::with(&pagewell, format!("{first}{ASK}early"));
    let (at_origin, _) = asked(&origin);
    let answering = std::thread::spawn(move || answer_long(at_origin));
    client.until("\r\n\r\n");
    take_long(&mut client);
    let mut at_origin = answering.join().expect("it has answered");
    comes_again(&origin, &mut at_origin);
    assert!(asked_again(&mut at_origin).starts_with("get /chat "));
    let agreed =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    at_origin.write_all(agreed.as_bytes()).expect("written");
    assert!(client.until("\r\n\r\n").starts_with("HTTP/1.1 101 "));
    assert_eq!(read(&mut at_origin, 5), "early");
}

#[test]
fn php_answers_an_upgrade_as_an_ordinary_request() {
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
fn events_are_forwarded_one_by_one_and_never_stored() {
    let (pagewell, origin, _site) = before_origin("[limits]\nhalf_closed_timeout = \"1ms\"\n");
    let mut client = Raw::with(&pagewell, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut at_origin, _) = asked(&origin);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
    at_origin.write_all(head.as_bytes()).expect("written");
    // The head arrives before the first event.
    let head = client.until("\r\n\r\n");
    assert!(head.contains("detail=streamed"), "{head}");
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        at_origin.write_all(format!("9\r\n{event}\r\n").as_bytes()).expect("written");
        client.until(event);
    }
    // Another client has its own stream.
    let other = Raw::with(&pagewell, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    let (second, _) = asked(&origin);
    drop((other, second));
    // When the client disconnects, the origin request ends too.
    drop(client);
    assert_eq!(at_origin.read(&mut [0]).unwrap_or(0), 0);
    until("nothing is left", || counter(&pagewell, "origin_places_taken") == 0);
    assert_eq!(counter(&pagewell, "stored"), 0);
}

#[test]
fn a_response_that_php_marks_unbuffered_is_forwarded_at_once() {
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

/// An origin that does not read a request's content may later parse it as a request. Its response to that
/// belongs to no client.
#[test]
fn an_origin_connection_that_carried_content_is_not_reused() {
    let (pagewell, origin, _site) = before_origin("");
    let smuggled = "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = smuggled.len();
    for post in [
        format!("POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{smuggled}"),
        format!("GET /form HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{smuggled}"),
    ] {
        let mut first = Raw::with(&pagewell, post);
        let (mut at_origin, head) = asked(&origin);
        assert!(head.contains("connection: close\r\n"), "{head}");
        at_origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("written");
        assert_eq!(first.answer().content, "ok");
        // The next client's request uses another connection, whatever the origin writes to this one.
        let _ = at_origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
        let mut next = Raw::with(&pagewell, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
        let (mut other, head) = asked(&origin);
        assert!(head.starts_with("get /next "), "{head}");
        other.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").expect("written");
        assert_eq!(next.answer().content, "next");
        // Connections that have carried no content are reused.
        until("one is reused", || {
            let mut last = Raw::with(&pagewell, "GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
            let is_reused = comes_again(&origin, &mut other);
            assert!(asked_again(&mut other).starts_with("get /last "));
            let then = if is_reused { "close" } else { "keep-alive" };
            let said =
                format!("HTTP/1.1 200 OK\r\nConnection: {then}\r\nContent-Length: 4\r\n\r\nlast");
            other.write_all(said.as_bytes()).expect("written");
            assert_eq!(last.answer().content, "last");
            is_reused
        });
    }
    assert_eq!(counter(&pagewell, "stored"), 0);
}

#[test]
fn content_of_a_get_in_chunks_arrives_at_an_http_origin() {
    let (pagewell, origin, _site) = before_origin("");
    for method in ["GET", "HEAD", "POST"] {
        let head =
            format!("{method} /search HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n");
        let mut client = Raw::with(&pagewell, format!("{head}\r\n3\r\nq=1\r\n0\r\n\r\n"));
        let (mut at_origin, head) = asked(&origin);
        let content = if head.contains("transfer-encoding: chunked\r\n") {
            "3\r\nq=1\r\n0\r\n\r\n"
        } else {
            assert!(head.contains("content-length: 3\r\n"), "{head}");
            "q=1"
        };
        assert_eq!(read(&mut at_origin, content.len()), content, "{method}");
        at_origin.write_all(b"HTTP/1.1 204 Found\r\n\r\n").expect("written");
        assert_eq!(client.answer().status, 204, "{method}");
    }
}
