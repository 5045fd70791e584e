//! Parts of a message other than head and content: interim responses before a response, trailers after it, and
//! trailers of requests. The test plays the origins with raw sockets.

use acceptance::{Raw, asked, asked_again, before_origin, comes_again, until};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Hop: 1\r\n\
    Connection: x-hop\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok";

fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).expect("written");
}

#[test]
fn interim_responses_are_passed_on_when_they_come() {
    let (pagewell, origin, _site) = before_origin("");
    let mut client = Raw::with(&pagewell, GET);
    let (mut at_origin, _) = asked(&origin);
    say(&mut at_origin, HINTS);
    let hints = client.until("\r\n\r\n");
    assert_eq!(hints, "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n");
    say(&mut at_origin, "HTTP/1.1 102 Processing\r\n\r\n");
    assert_eq!(client.until("\r\n\r\n"), "HTTP/1.1 102 Processing\r\n\r\n");
    say(&mut at_origin, OK);
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.content), (200, "ok"));
}

#[test]
fn interim_responses_keep_to_their_request() {
    let (pagewell, origin, _site) = before_origin("");
    // Two requests at once: the hints of the second follow the response to the first.
    let mut client = Raw::with(&pagewell, format!("{GET}{GET}"));
    let (mut at_origin, _) = asked(&origin);
    say(&mut at_origin, OK);
    comes_again(&origin, &mut at_origin);
    asked_again(&mut at_origin);
    // All in one piece: the hints still come first.
    say(&mut at_origin, &format!("{HINTS}{OK}"));
    assert_eq!(client.answer().status, 200);
    assert!(client.until("\r\n\r\n").starts_with("HTTP/1.1 103 "));
    assert_eq!(client.answer().content, "ok");
    // HTTP/1.0 has no interim responses (RFC 9110 section 15.2).
    let mut old = Raw::with(&pagewell, "GET /a HTTP/1.0\r\nHost: a\r\n\r\n");
    comes_again(&origin, &mut at_origin);
    asked_again(&mut at_origin);
    say(&mut at_origin, &format!("{HINTS}{OK}"));
    let answer = old.rest();
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.ends_with("ok"), "{answer}");
}

#[test]
fn a_client_that_expects_100_continue_gets_it_once() {
    let (pagewell, origin, _site) = before_origin("");
    let head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let mut client = Raw::with(&pagewell, head);
    // Pagewell sends it, because it waits for the content before it starts an origin request.
    assert_eq!(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello");
    let (mut at_origin, head) = asked(&origin);
    assert!(!head.contains("expect:"), "{head}");
    at_origin.read_exact(&mut [0; 5]).expect("the content");
    say(&mut at_origin, "HTTP/1.1 100 Continue\r\n\r\n");
    say(&mut at_origin, &format!("{HINTS}{OK}"));
    assert!(client.until("\r\n\r\n").starts_with("HTTP/1.1 103 "));
    assert_eq!(client.answer().content, "ok");
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum, set-cookie\r\n\
    Cache-Control: no-store\r\nContent-Type: text/plain\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\
    Set-Cookie: a=b\r\n\r\n";

#[test]
fn trailers_are_sent_to_clients_that_accept_them() {
    let (pagewell, origin, _site) = before_origin("");
    let wants = "POST /a HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\
        Content-Length: 0\r\n\r\n";
    let mut client = Raw::with(&pagewell, wants);
    let (mut at_origin, head) = asked(&origin);
    assert!(head.contains("te: trailers\r\n") && head.contains("connection: te\r\n"), "{head}");
    say(&mut at_origin, CHUNKED);
    let head = client.until("\r\n\r\n");
    assert!(head.contains("trailer: x-sum, set-cookie\r\n"), "{head}");
    assert_eq!(client.until("\r\n\r\n"), "2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n");
    // Another client gets the same response without trailers.
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let (mut at_origin, head) = asked(&origin);
    assert!(!head.contains("te: "), "{head}");
    say(&mut at_origin, CHUNKED);
    let head = client.until("\r\n\r\n");
    assert!(!head.contains("trailer"), "{head}");
    assert_eq!(client.until("\r\n\r\n"), "2\r\nok\r\n0\r\n\r\n");
    // Over HTTP/2.
    let curl = Command::new("curl")
        .args(["-sSi", "--http2-prior-knowledge", "--max-time", "120", "-H", "TE: trailers"])
        .arg(format!("http://{}/a", pagewell.address()))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("curl can be started");
    let (mut at_origin, _) = asked(&origin);
    say(&mut at_origin, CHUNKED);
    let out = curl.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.ends_with("okx-sum: 7\r\n"), "{text}");
}

#[test]
fn trailers_of_a_request_reach_the_origin() {
    let (pagewell, origin, _site) = before_origin("");
    let _client = Raw::with(
        &pagewell,
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
         Trailer: x-sum, x-forwarded-for, x_real_ip\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\
         X-Forwarded-For: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\nX-Other: 1\r\n\r\n",
    );
    let (mut at_origin, head) = asked(&origin);
    assert!(head.contains("trailer: x-sum, x-forwarded-for, x_real_ip\r\n"), "{head}");
    assert_eq!(asked_again(&mut at_origin), "2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n");
}

/// RFC 9112 section 9.3.1: safe requests can be sent again.
#[test]
fn a_connection_that_the_origin_closes_while_it_is_idle_fails_no_safe_request() {
    let (pagewell, origin, _site) = before_origin("");
    let send = |line: &str| Raw::with(&pagewell, format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let mut first = send("GET /first");
    let (mut kept, _) = asked(&origin);
    say(&mut kept, OK);
    assert_eq!(first.answer().status, 200);
    // With its request read the connection ends, otherwise it is reset.
    for end in ["read", "unread"] {
        let mut again = send("GET /again");
        until("the idle connection is used", || {
            let is_idle = comes_again(&origin, &mut kept);
            if !is_idle {
                asked_again(&mut kept);
                say(&mut kept, OK);
                assert_eq!(again.answer().status, 200);
                again = send("GET /again");
            }
            is_idle
        });
        if end == "read" {
            assert!(asked_again(&mut kept).starts_with("get /again "));
        }
        drop(kept);
        let (mut fresh, head) = asked(&origin);
        assert!(head.starts_with("get /again ") && head.contains("\r\nconnection: close\r\n"));
        say(&mut fresh, OK);
        assert_eq!(again.answer().content, "ok", "{end}");
        let mut next = send("GET /next");
        (kept, _) = asked(&origin);
        say(&mut kept, OK);
        assert_eq!(next.answer().status, 200);
    }
    // Nothing else is sent twice: a request that is not safe has a connection of its own, and a new connection was
    // not idle.
    for line in ["DELETE /once", "GET /new"] {
        let mut once = send(line);
        let (stream, head) = asked(&origin);
        assert!(head.starts_with(&line.to_ascii_lowercase()), "{head}");
        drop(stream);
        assert_eq!(once.answer().status, 502, "{line}");
        origin.set_nonblocking(true).expect("can be set");
        assert!(origin.accept().is_err(), "{line} was sent again");
        let _ = kept.shutdown(Shutdown::Both);
    }
}
