//! Malformed, oversized, contradictory and slow requests on raw connections. Each gets the correct status and a
//! closed connection, and the next client is served normally.
//!
//! Timeouts under test are short, and tests wait for the event, not for the clock.

use acceptance::{Raw, Site, client, counter, until};
use harness::Pagewell;
use std::io::Read;

const HOST: &str = "Host: a.test\r\n";

/// A site with one file, and one script that returns the content it received.
fn site() -> Site {
    Site::new(&[
        ("file.txt", "a file"),
        (
            "echo.php",
            "<?php echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['HTTP_HOST'] ?? '', ' ',
            $_SERVER['REQUEST_URI'], ' ', strlen(file_get_contents('php://input'));",
        ),
    ])
}

/// Sends `request`, which must be answered with `status` and `reason`, and a closed connection.
fn refused(pagewell: &Pagewell, request: impl AsRef<[u8]>, status: u16, reason: &str) {
    let mut raw = Raw::with(pagewell, &request);
    let answer = raw.answer();
    let shown = String::from_utf8_lossy(request.as_ref());
    let shown: String = shown.chars().take(200).collect();
    assert_eq!(answer.status, status, "{shown:?}: {answer:?}");
    assert!(answer.content.contains(reason), "{shown:?}: {answer:?}");
    assert_eq!(answer.header("connection"), Some("close"), "{shown:?}: {answer:?}");
    assert_eq!(raw.rest(), "", "{shown:?}: nothing follows");
}

/// Checks that well-behaved clients are still served.
fn still_well(pagewell: &Pagewell) {
    assert_eq!(client(pagewell).get("/file.txt").expect("an answer").text(), "a file");
    until("nothing is left of the others", || counter(pagewell, "connections") == 0);
    // PHP may have started a page whose client disconnected.
    until("the places are free", || counter(pagewell, "origin_places_taken") == 0);
}

#[test]
fn invalid_requests_are_refused() {
    let site = site();
    let pagewell = site.serve("");
    for (request, reason) in [
        ("NONSENSE\r\n\r\n".to_owned(), "malformed"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\x00\r\n\r\n".into(), "malformed"),
        (format!("GET / HTTP/2.0\r\n{HOST}\r\n"), "malformed"),
        (format!("GET / HTTP/1.1 \r\n{HOST}\r\n"), "malformed"),
        (format!("GET  / HTTP/1.1\r\n{HOST}\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n{HOST}X : y\r\n\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n{HOST}no colon\r\n\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n{HOST}X: a\r\n folded\r\n\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n folded: x\r\n{HOST}\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n{HOST}X: a\0b\r\n\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\r\n{HOST}X: a\rb\r\n\r\n"), "malformed"),
        (format!("GET /a\0b HTTP/1.1\r\n{HOST}\r\n"), "malformed"),
        (format!("G\u{e9}T / HTTP/1.1\r\n{HOST}\r\n"), "malformed"),
        (format!("GET / HTTP/1.1\n{HOST}\r\n"), "bare-line-feed"),
        (format!("GET / HTTP/1.1\r\n{HOST}X: y\n\r\n"), "bare-line-feed"),
        ("GET / HTTP/1.1\nHost: a.test\n\n".into(), "bare-line-feed"),
    ] {
        refused(&pagewell, request, 400, reason);
    }
    still_well(&pagewell);
}

#[test]
fn contradictory_lengths_are_refused() {
    let site = site();
    let pagewell = site.serve("");
    let start = format!("POST /echo.php HTTP/1.1\r\n{HOST}");
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for (fields, status, reason) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400, "length-and-coding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400, "length-and-coding"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 400, "length-invalid"),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 400, "length-invalid"),
        ("Content-Length: 5, 5\r\n", 400, "length-invalid"),
        ("Content-Length: -5\r\n", 400, "length-invalid"),
        ("Content-Length: +5\r\n", 400, "length-invalid"),
        ("Content-Length: 0x5\r\n", 400, "length-invalid"),
        ("Content-Length: 5 5\r\n", 400, "length-invalid"),
        ("Content-Length:\r\n", 400, "length-invalid"),
        ("Content-Length: 99999999999999999999\r\n", 400, "length-invalid"),
        ("Transfer-Encoding: gzip\r\n", 501, "coding-unknown"),
        ("Transfer-Encoding: gzip, chunked\r\n", 501, "coding-unknown"),
        ("Transfer-Encoding: chunked, chunked\r\n", 501, "coding-unknown"),
        ("Transfer-Encoding: xchunked\r\n", 501, "coding-unknown"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 501, "coding-unknown"),
        ("Transfer-Encoding:\r\n", 501, "coding-unknown"),
    ] {
        refused(&pagewell, format!("{start}{fields}\r\n{smuggled}"), status, reason);
    }
    let old = "POST /echo.php HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    refused(&pagewell, format!("{old}{smuggled}"), 501, "coding-unknown");
    assert_eq!(counter(&pagewell, "requests"), 0, "none came as far as a request");
    still_well(&pagewell);
}

#[test]
fn broken_chunks_end_in_an_error() {
    let site = site();
    let pagewell = site.serve("");
    let head = format!("POST /echo.php HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n");
    for chunks in [
        "xyz\r\nabc\r\n0\r\n\r\n",
        "-3\r\nabc\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\nabc\n0\n\n",
    ] {
        let mut raw = Raw::with(&pagewell, format!("{head}{chunks}"));
        raw.finish_sending();
        let said = raw.rest();
        assert!(said.starts_with("HTTP/1.1 400 "), "{chunks:?}: {said:?}");
    }
    // Cut in the middle: there is no client to answer, and no script waits.
    let mut raw = Raw::with(&pagewell, format!("{head}ff\r\nabc"));
    raw.finish_sending();
    let said = raw.rest();
    assert!(!said.starts_with("HTTP/1.1 200"), "{said:?}");
    let mut raw = Raw::with(
        &pagewell,
        format!("POST /echo.php HTTP/1.1\r\n{HOST}Content-Length: 9\r\n\r\nabc"),
    );
    raw.finish_sending();
    let said = raw.rest();
    assert!(!said.starts_with("HTTP/1.1 200"), "{said:?}");
    still_well(&pagewell);
}

#[test]
fn hosts_and_targets() {
    let site = site();
    let pagewell = site.serve("");
    for fields in ["", "Host: a\r\nHost: b\r\n", "Host: a\r\nHost: a\r\n"] {
        let reason = if fields.is_empty() { "host-missing" } else { "host-repeated" };
        refused(&pagewell, format!("GET / HTTP/1.1\r\n{fields}\r\n"), 400, reason);
    }
    let answer = |head: &str| Raw::with(&pagewell, format!("{head}\r\n")).answer();
    for host in ["", "a b", "a,b", "a/b", "a@b", "[::1", "a:b", "a:99999", "a%00", "\u{e9}.test"] {
        let said = answer(&format!("GET /file.txt HTTP/1.1\r\nHost: {host}\r\n"));
        assert_eq!(said.status, 400, "{host:?}: {said:?}");
    }
    for target in ["https://a.test/", "ftp://a.test/", "http://u:p@a.test/", "*", "file.txt"] {
        let said = answer(&format!("GET {target} HTTP/1.1\r\n{HOST}"));
        assert_eq!(said.status, 400, "{target:?}: {said:?}");
    }
    // RFC 9112, 3.2.2: the target's host counts, whatever Host contains.
    let said = answer(&format!("GET http://B.test:80/echo.php?x HTTP/1.1\r\n{HOST}"));
    assert_eq!(said.content, "GET b.test /echo.php?x 0");
    // HTTP/1.0 has no Host.
    let said = Raw::with(&pagewell, "GET /echo.php HTTP/1.0\r\n\r\n").rest();
    assert!(
        said.starts_with("HTTP/1.") && said.ends_with("\r\n\r\nGET localhost /echo.php 0"),
        "{said}"
    );
    let said = answer(&format!("OPTIONS * HTTP/1.1\r\n{HOST}"));
    assert_eq!(said.status, 204);
    still_well(&pagewell);
}

#[test]
fn unsupported_methods() {
    let site = site();
    let pagewell = site.serve("");
    refused(&pagewell, format!("CONNECT a.test:443 HTTP/1.1\r\n{HOST}\r\n"), 405, "method-connect");
    let trace = format!("TRACE /echo.php HTTP/1.1\r\n{HOST}Cookie: secret\r\n\r\n");
    let said = Raw::with(&pagewell, trace).answer();
    assert_eq!(said.status, 405);
    assert!(!said.content.contains("secret"), "{said:?}");
    assert!(said.header("allow").is_some(), "RFC 9110, 15.5.6: {said:?}");
    still_well(&pagewell);
}

#[test]
fn sizes_are_bounded() {
    let site = site();
    let pagewell = site.serve("[limits]\nbody_bytes = 1000\nheaders = 50\n");
    let long = "x".repeat(9_000);
    for wrong in ["/a<b", "/a>b", "/a`b"] {
        refused(&pagewell, format!("GET {wrong} HTTP/1.1\r\n{HOST}\r\n"), 400, "target-invalid");
    }
    refused(&pagewell, format!("GET /{long} HTTP/1.1\r\n{HOST}\r\n"), 414, "target-too-long");
    // Refused before the end: a target that never ends is not read forever.
    refused(&pagewell, format!("GET /{long}"), 414, "target-too-long");
    let field = format!("X: {}\r\n", "y".repeat(40_000));
    refused(&pagewell, format!("GET / HTTP/1.1\r\n{HOST}{field}\r\n"), 431, "head-too-large");
    refused(
        &pagewell,
        format!("GET / HTTP/1.1\r\n{HOST}X: {}", "y".repeat(40_000)),
        431,
        "head-too",
    );
    let many = "X: y\r\n".repeat(50);
    refused(&pagewell, format!("GET / HTTP/1.1\r\n{HOST}{many}\r\n"), 431, "too-many-headers");
    let method = "M".repeat(40_000);
    let said = Raw::with(&pagewell, format!("{method} / HTTP/1.1\r\n")).answer();
    assert!([400, 414, 431, 501].contains(&said.status), "{said:?}");

    let post = format!("POST /echo.php HTTP/1.1\r\n{HOST}");
    let body = "z".repeat(1_001);
    let request = format!("{post}Content-Length: 1001\r\n\r\n{body}");
    refused(&pagewell, request, 413, "content-too-large");
    // 413 before any of it is sent.
    let request = format!("{post}Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
    refused(&pagewell, request, 413, "content-too-large");
    let within = format!("{post}Content-Length: 1000\r\n\r\n{}", &body[..1_000]);
    assert_eq!(Raw::with(&pagewell, within).answer().content, "POST a.test /echo.php 1000");
    let chunked = format!("{post}Transfer-Encoding: chunked\r\n\r\n3e9\r\n{body}\r\n0\r\n\r\n");
    assert_eq!(Raw::with(&pagewell, chunked).answer().status, 413, "however it is framed");
    still_well(&pagewell);
}

#[test]
fn slow_requests_time_out() {
    let site = site();
    let pagewell = site.serve("[limits]\nheader_timeout = \"300ms\"\n");
    for start in ["G", "GET / HT", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        refused(&pagewell, start, 408, "head-timeout");
        // Also after another request.
        let mut raw = Raw::with(&pagewell, format!("GET /file.txt HTTP/1.1\r\n{HOST}\r\n{start}"));
        assert_eq!((raw.answer().status, raw.answer().status), (200, 408), "{start:?}");
    }
    still_well(&pagewell);

    let pagewell = site.serve("[limits]\nidle_timeout = \"300ms\"\n");
    // Idle from the start, and idle after a response: closed without a response.
    assert_eq!(Raw::connect(&pagewell).rest(), "");
    until("it asks in time", || {
        let get = format!("GET /file.txt HTTP/1.1\r\n{HOST}\r\n");
        let said = Raw::with(&pagewell, get).rest();
        assert!(said.is_empty() || said.ends_with("\r\n\r\na file"), "{said:?}");
        !said.is_empty()
    });
    // Content that stops in the middle.
    let pagewell = site.serve("[limits]\nbody_timeout = \"300ms\"\n");
    let post = format!("POST /echo.php HTTP/1.1\r\n{HOST}");
    for rest in ["Content-Length: 9\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n9\r\nabc"] {
        let said = Raw::with(&pagewell, format!("{post}{rest}")).rest();
        assert!(said.starts_with("HTTP/1.1 408 "), "{rest:?}: {said:?}");
    }
    still_well(&pagewell);
}

#[test]
fn slow_header_lines_do_not_hold_a_connection() {
    let site = site();
    let pagewell = site.serve("[limits]\nheader_timeout = \"500ms\"\n");
    let mut raw = Raw::with(&pagewell, format!("GET / HTTP/1.1\r\n{HOST}"));
    let timeout = std::time::Duration::from_millis(20);
    raw.stream().set_read_timeout(Some(timeout)).expect("can be set");
    let mut buffer = [0; 4096];
    let mut got = Vec::new();
    // A line every 20 ms: the timeout applies to the whole section, not to the gaps.
    until("it is refused", || {
        raw.send("X: y\r\n");
        match raw.stream().read(&mut buffer) {
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(_) => return false,
        }
        true
    });
    assert!(
        got.is_empty() || got.starts_with(b"HTTP/1.1 408 "),
        "{}",
        String::from_utf8_lossy(&got)
    );
    still_well(&pagewell);
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let site = site();
    site.file("large.bin", vec![b'x'; 64 << 20]);
    site.file("large.php", "<?php for ($i = 0; $i < 1024; $i++) { echo str_repeat('x', 65536); }");
    let pagewell = site.serve("[limits]\nwrite_timeout = \"300ms\"\n");
    for path in ["/large.bin", "/large.php"] {
        let mut raw = Raw::with(&pagewell, format!("GET {path} HTTP/1.1\r\n{HOST}\r\n"));
        raw.until("\r\n\r\n");
        until("it is cut", || counter(&pagewell, "connections") == 0);
        assert!(raw.rest().len() < 64 << 20, "{path}");
    }
    still_well(&pagewell);
}

#[test]
fn requests_in_one_piece_are_answered_in_order() {
    let site = site();
    let pagewell = site.serve("");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{HOST}\r\n");
    let post = |body: &str| {
        format!("POST /echo.php HTTP/1.1\r\n{HOST}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let all = [get("/echo.php?1"), get("/file.txt"), post("GET /x"), get("/echo.php?2"), get("/3")];
    let mut raw = Raw::with(&pagewell, all.concat());
    let said = ["GET a.test /echo.php?1 0", "a file", "POST a.test /echo.php 6"];
    for content in said.iter().chain(&["GET a.test /echo.php?2 0", "/3"]) {
        assert_eq!(raw.answer().content, *content);
    }
    // An empty line before a request is allowed (RFC 9112, 2.2).
    raw.send(format!("\r\n{}", get("/file.txt")));
    assert_eq!(raw.answer().content, "a file");
    raw.send(format!("GET /file.txt HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n{}", get("/x")));
    assert_eq!(raw.answer().content, "a file");
    assert_eq!(raw.rest(), "", "nothing after Connection: close");
    let mut old = Raw::with(&pagewell, "GET /file.txt HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer().content, "a file");
    assert_eq!(old.rest(), "", "HTTP/1.0 closes");
    still_well(&pagewell);
}

#[test]
fn nothing_is_read_after_chunked_content() {
    let site = site();
    let pagewell = site.serve("");
    let post = format!(
        "POST /echo.php HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    );
    let mut raw = Raw::with(&pagewell, format!("{post}GET /smuggled HTTP/1.1\r\n{HOST}\r\n"));
    let answer = raw.answer();
    assert_eq!(answer.content, "POST a.test /echo.php 3");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(raw.rest(), "");
    assert_eq!(counter(&pagewell, "requests"), 1);
    still_well(&pagewell);
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let site = site();
    let pagewell = site.serve("");
    let head = format!("POST /echo.php HTTP/1.1\r\n{HOST}Content-Length: 3\r\n");
    let mut raw = Raw::with(&pagewell, format!("{head}Expect: 100-continue\r\n\r\n"));
    let interim = raw.until("\r\n\r\n");
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim:?}");
    raw.send("abc");
    assert_eq!(raw.answer().content, "POST a.test /echo.php 3");
    drop(raw);
    still_well(&pagewell);
}

#[test]
fn a_crowd_of_bad_clients_leaves_nothing_behind() {
    let site = site();
    let pagewell = site.serve("[limits]\nheader_timeout = \"200ms\"\n[php]\nchildren = 2\n");
    still_well(&pagewell);
    let before = pagewell.open_fds();
    let bad = [
        "NONSENSE\r\n\r\n".to_owned(),
        "GET / HT".into(),
        String::new(),
        format!("POST /echo.php HTTP/1.1\r\n{HOST}Content-Length: 9\r\n\r\nabc"),
        format!("GET /echo.php HTTP/1.1\r\n{HOST}\r\n"),
        format!("POST /echo.php HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n9\r\n"),
    ];
    for round in 0..50 {
        // Every other round waits for the responses; in the others the clients disconnect.
        let crowd: Vec<Raw> = bad.iter().map(|bytes| Raw::with(&pagewell, bytes)).collect();
        if round % 2 == 0 {
            for mut raw in crowd {
                raw.finish_sending();
                raw.rest();
            }
        }
    }
    still_well(&pagewell);
    // Each of the two php-fpm workers keeps a connection.
    until("descriptors are closed", || pagewell.open_fds() <= before + 2);
}
