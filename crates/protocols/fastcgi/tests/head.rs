//! The head of a CGI response (RFC 3875 §6), case by case: accepted heads with their result, and the name and
//! line of every refusal. Not here: splits and random bytes, which are in `properties.rs`.

use bytes::Bytes;
use fastcgi::{
    CgiHead, CgiHeadReader, HeadLimits, HeadRefusal, HeadRefused, HeadStep, ResponseKind,
};

/// Parses a complete head; panics if it is incomplete.
fn head(text: &str) -> Result<CgiHead, HeadRefused> {
    match CgiHeadReader::default().read(Bytes::copy_from_slice(text.as_bytes()))? {
        HeadStep::Done(head) => Ok(*head),
        HeadStep::More(_) => panic!("the head goes on"),
    }
}

fn taken(text: &str) -> CgiHead {
    head(text).expect("a good head")
}

/// The name of the reason, and the line number.
fn refused(text: &str) -> (&'static str, u32) {
    let refused = head(text).expect_err("a bad head");
    (refused.reason.as_str(), refused.line)
}

/// The fields of a head, each as `name: value`.
fn fields(head: &CgiHead) -> Vec<String> {
    let shown = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    head.headers.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect()
}

#[test]
fn a_document_with_either_line_end() {
    for text in
        ["Content-Type: text/html\r\nX-A:1\r\n\r\npage", "content-type:text/html\nX-A: 1\n\npage"]
    {
        let head = taken(text);
        assert_eq!((head.status.as_u16(), &head.kind), (200, &ResponseKind::Document));
        assert_eq!(fields(&head), ["content-type: text/html", "x-a: 1"]);
        assert_eq!(&head.content[..], b"page");
    }
    assert_eq!(&taken("A: 1\r\n\n\r\nx").content[..], b"\r\nx", "one blank line ends it");
}

#[test]
fn a_status_with_or_without_a_reason() {
    for line in ["Status: 404 Not Found", "status:404", "Status: 404\t"] {
        let head = taken(&format!("{line}\r\n\r\n"));
        assert_eq!(head.status.as_u16(), 404);
        assert_eq!(fields(&head), [""; 0], "Status is not passed on");
    }
    assert_eq!(taken("Status: 999 Odd\n\n").status.as_u16(), 999);
}

#[test]
fn a_status_line_of_http_stands_for_a_status() {
    let head = taken("HTTP/1.1 404 Gone Fishing\r\nContent-Type: text/html\r\n\r\n");
    assert_eq!(head.status.as_u16(), 404);
    assert_eq!(taken("HTTP/1.0 200 OK\nStatus: 200\n\n").status.as_u16(), 200);
    assert_eq!(refused("HTTP/1.1 200 OK\nStatus: 500\n\n"), ("fields-contradict", 2));
    assert_eq!(refused("HTTP/1.1\n\n"), ("status-invalid", 1));
    assert_eq!(refused("A: 1\nHTTP/1.1 200 OK\n\n"), ("colon-missing", 2));
}

#[test]
fn a_path_alone_in_location_is_a_local_redirect() {
    for text in ["Location: /other?q=1\n\n", "Content-Type: text/html\nLocation: /other?q=1\n\nx"] {
        let ResponseKind::LocalRedirect(path) = taken(text).kind else { panic!("not local") };
        assert_eq!(path.as_str(), "/other?q=1");
    }
}

#[test]
fn any_other_location_is_for_the_client() {
    let cases = [
        ("Location: https://example.org/\n\n", 302),
        ("Status: 302 Found\r\nLocation: /other\r\nContent-type: text/html\r\n\r\n", 302),
        ("Status: 301\nLocation: https://example.org/\n\n<a>", 301),
        ("Status: 201\nLocation: /made/4\n\n", 201),
        ("Location: /other\nSet-Cookie: a=1\n\n", 302),
        ("Location: //example.net/x\n\n", 302),
        ("Location: /other#part\n\n", 302),
        ("Location: other\n\n", 302),
    ];
    for (text, status) in cases {
        let head = taken(text);
        assert_eq!((head.kind, head.status.as_u16()), (ResponseKind::ClientRedirect, status));
        assert!(head.headers.contains_key("location"), "{text}");
    }
}

#[test]
fn repeated_fields_stay_apart_and_in_order() {
    let head = taken("Set-Cookie: a=1\nX-B: 1\nSet-Cookie: b=2\n\n");
    let cookies: Vec<_> = head.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
}

#[test]
fn a_field_of_cgi_may_repeat_itself_but_not_contradict() {
    assert_eq!(taken("Status: 404\nStatus: 404 Again\n\n").status.as_u16(), 404);
    assert_eq!(fields(&taken("Location: /a\nLocation: /a\n\n")), ["location: /a"]);
    for pair in [
        "Status: 404\nStatus: 200",
        "Location: /a\nLocation: /b",
        "Content-Type: text/html\nContent-Type: text/plain",
        "Content-Length: 1\nContent-Length: 2",
    ] {
        assert_eq!(refused(&format!("{pair}\n\n")), ("fields-contradict", 2));
    }
}

#[test]
fn content_length_is_a_number_of_bytes() {
    let head = taken("Content-Length: 007\nContent-Length: 7\n\n");
    assert_eq!(head.content_length, Some(7));
    assert_eq!(fields(&head), ["content-length: 7"]);
    assert_eq!(taken("A: 1\n\n").content_length, None);
    for value in ["-1", "+1", "1 2", "1, 1", "0x10", "18446744073709551616"] {
        let text = format!("Content-Length: {value}\n\n");
        assert_eq!(refused(&text), ("content-length-invalid", 1));
    }
}

#[test]
fn fields_without_a_value_or_of_the_connection_are_left_out() {
    let head = taken(
        "X-Empty:\nContent-Type: \t \nConnection: close\nKeep-Alive: 1\nProxy-Connection: x\n\
         Transfer-Encoding: chunked\nUpgrade: h2c\nTrailer: x\nTE: x\nX-Kept: y\n\n",
    );
    assert_eq!(fields(&head), ["x-kept: y"]);
}

#[test]
fn a_head_without_fields_is_valid() {
    // PHP with `default_mimetype = ""` and `header_remove()`.
    let head = taken("\r\nbody without head");
    assert_eq!((head.status.as_u16(), &head.content[..]), (200, &b"body without head"[..]));
}

#[test]
fn values_keep_their_bytes() {
    let text = b"X-Name: caf\xe9 \tau lait \r\n\r\n";
    let HeadStep::Done(head) =
        CgiHeadReader::default().read(Bytes::from_static(text)).expect("bytes above 127 may be")
    else {
        panic!("the head goes on")
    };
    assert_eq!(head.headers["x-name"].as_bytes(), b"caf\xe9 \tau lait");
}

#[test]
fn every_refusal_names_its_line() {
    let cases = [
        ("A: 1\nFatal error in line 4\n\n", "colon-missing", 2),
        ("A: 1\nB : 2\n\n", "field-name-invalid", 2),
        (": 2\n\n", "field-name-invalid", 1),
        ("A\0: 2\n\n", "field-name-invalid", 1),
        ("A: 1\n B: 2\n\n", "continuation-line", 2),
        ("A: 1\n\tB: 2\n\n", "continuation-line", 2),
        ("A: 1\rSet-Cookie: evil\n\n", "field-value-invalid", 1),
        ("A: 1\r\r\n\n", "field-value-invalid", 1),
        ("A: x\0y\n\n", "field-value-invalid", 1),
        ("Status: OK\n\n", "status-invalid", 1),
        ("Status: 20\n\n", "status-invalid", 1),
        ("Status: 2000\n\n", "status-invalid", 1),
        ("Status: 099\n\n", "status-invalid", 1),
        ("A: 1\nStatus: 103 Early Hints\n\n", "status-informational", 2),
        ("<!doctype html>\n\n", "colon-missing", 1),
    ];
    for (text, reason, line) in cases {
        assert_eq!(refused(text), (reason, line), "{text:?}");
    }
    let shown = head("A: 1\nB\n\n").expect_err("no colon").to_string();
    assert_eq!(shown, "colon-missing in line 2 of the response's head");
}

#[test]
fn a_head_cut_short_says_whether_anything_came() {
    let reader = CgiHeadReader::default();
    assert_eq!(reader.cut_short(), HeadRefused { reason: HeadRefusal::NothingSent, line: 1 });
    let Ok(HeadStep::More(reader)) = reader.read(Bytes::from_static(b"A: 1\r\nB: 2\r\n")) else {
        panic!("no blank line yet")
    };
    assert_eq!(reader.cut_short(), HeadRefused { reason: HeadRefusal::BlankLineMissing, line: 3 });
}

#[test]
fn bytes_and_fields_are_bounded_exactly() {
    let read = |limits, text: &'static str| match CgiHeadReader::new(limits)
        .read(Bytes::from_static(text.as_bytes()))
    {
        Ok(HeadStep::Done(_)) => "done",
        Ok(HeadStep::More(_)) => "more",
        Err(refused) => refused.reason.as_str(),
    };
    let text = "A: 1\nB: 2\n\ncontent";
    assert_eq!(read(HeadLimits { bytes: 11, fields: 2 }, text), "done");
    assert_eq!(read(HeadLimits { bytes: 10, fields: 2 }, text), "head-too-large");
    assert_eq!(read(HeadLimits { bytes: 11, fields: 1 }, text), "too-many-fields");
    assert_eq!(read(HeadLimits { bytes: 4, fields: 1 }, "A: 1"), "more");
    assert_eq!(read(HeadLimits { bytes: 3, fields: 1 }, "A: 1"), "head-too-large");
    assert_eq!(read(HeadLimits { bytes: 99, fields: 1 }, "Te: 1\nA: 1\n\n"), "too-many-fields");
}
