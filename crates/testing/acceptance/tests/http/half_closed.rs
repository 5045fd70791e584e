//! Clients that close their sending direction, and wait for the response (RFC 9112 section 9.6), beside clients
//! that have left. HTTP/2 has no such clients: a stream ends by a flag (RFC 9113 section 5.1).

use acceptance::{BOUND, Raw, Site, asked, before_origin, client, counter, until};
use harness::Pagewell;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const WAITS: &str = "<?php note('started'); wait_for('go');
    echo 'whole ', strlen(file_get_contents('php://input'));";
const GET: &str = "GET /waits.php HTTP/1.1\r\nHost: a.test\r\n\r\n";
const CHUNKED: &str =
    "POST /waits.php HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";

fn site() -> Site {
    Site::new(&[("waits.php", WAITS), ("a.txt", "a file")])
}

/// Gives Pagewell the time to notice an end.
fn answers_others(pagewell: &Pagewell) {
    for _ in 0..20 {
        assert_eq!(client(pagewell).get("/a.txt").expect("an answer").status, 200);
    }
}

#[test]
fn a_client_that_closes_its_sending_direction_gets_the_response() {
    let site = site();
    let pagewell = site.serve("");
    let form = "POST /waits.php HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\na=b";
    let old = "GET /waits.php HTTP/1.0\r\nHost: a.test\r\n\r\n";
    let (chunked, trailers) =
        (format!("{CHUNKED}3\r\na=b\r\n0\r\n\r\n"), format!("{CHUNKED}0\r\nx: y\r\n\r\n"));
    let requests = [(GET, 0), (old, 0), (form, 3), (&*chunked, 3), (&*trailers, 0)];
    for (request, length) in requests {
        site.clear_notes();
        let mut raw = Raw::with(&pagewell, request);
        site.wait_for("started");
        raw.finish_sending();
        answers_others(&pagewell);
        site.note("go");
        let answer = raw.rest();
        assert!(answer.contains(&format!("whole {length}")), "{request:?}: {answer:?}");
    }
    until("all are gone", || counter(&pagewell, "connections") == 0);
}

#[test]
fn a_tls_client_that_says_it_sends_no_more_gets_the_response() {
    let site = site();
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let [key, certificate, socket] = ["key", "crt", "sock"].map(|end| site.at(&format!("a.{end}")));
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    fs::write(&certificate, made.cert.pem()).expect("written");
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{}\"\n[[tls]]\ncertificate = {certificate:?}\nkey = {key:?}\n",
        socket.display()
    ));
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("it is one");
    roots.add(root).expect("it is trusted");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("a.test").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = UnixStream::connect(&socket).expect("it accepts connections");
    stream.set_read_timeout(Some(BOUND)).expect("can be set");
    let mut tls = StreamOwned::new(connection, stream);
    tls.write_all(GET.as_bytes()).expect("sent");
    site.wait_for("started");
    tls.conn.send_close_notify();
    tls.flush().expect("sent");
    tls.sock.shutdown(Shutdown::Write).expect("can be closed");
    answers_others(&pagewell);
    site.note("go");
    let mut answer = String::new();
    tls.read_to_string(&mut answer).expect("the end");
    assert!(answer.contains("whole 0"), "{answer:?}");
}

#[test]
fn the_response_to_chunked_content_may_take_longer_than_its_pieces() {
    let site = site();
    let pagewell = site.serve("[limits]\nbody_timeout = \"200ms\"\n");
    let mut waits = Raw::with(&pagewell, format!("{CHUNKED}0\r\n\r\n"));
    site.wait_for("started");
    for _ in 0..2 {
        let mut silent = Raw::with(&pagewell, format!("{CHUNKED}3\r\na"));
        assert_eq!(silent.answer().status, 408);
    }
    site.note("go");
    assert!(waits.rest().contains("whole 0"));
}

#[test]
fn a_client_that_resets_its_connection_has_left() {
    let site = site();
    let later = "[limits]\nhalf_closed_timeout = \"1h\"\n[dialects]\nlitespeed = false\n";
    let pagewell = site.serve(later);
    let raw = Raw::with(&pagewell, GET);
    site.wait_for("started");
    assert_eq!(counter(&pagewell, "origin_places_taken"), 1);
    raw.reset();
    until("the place is free", || counter(&pagewell, "origin_places_taken") == 0);
    until("the connection is gone", || counter(&pagewell, "connections") == 0);
    site.note("go");
}

#[test]
fn a_stream_whose_client_has_left_ends_when_it_is_written_to() {
    let (pagewell, origin, _site) = before_origin("[limits]\nhalf_closed_timeout = \"1h\"\n");
    let mut raw = Raw::with(&pagewell, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut at_origin, _) = asked(&origin);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    at_origin.write_all(head.as_bytes()).expect("written");
    raw.until("\r\n\r\n");
    drop(raw);
    until("it ends at the origin", || at_origin.write_all(b"data: 1\n\n").is_err());
    until("nothing is left", || counter(&pagewell, "connections") == 0);
}
