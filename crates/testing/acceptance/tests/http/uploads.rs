//! Request content in the real binary. All of it is buffered in memory or on disk before an origin request
//! starts. Slow uploads therefore occupy no PHP process, and aborted ones are never run. Also: the behaviour
//! when there is no space.

use acceptance::http2::flag::END_HEADERS;
use acceptance::http2::kind::{DATA, HEADERS};
use acceptance::{
    BOUND, Frames, MountedTmpfs, Raw, Site, asked, before_origin, binary, block_of, client,
    counter, until,
};
use harness::{Pagewell, Signal, Wait};
use std::io::{Read, Write};
use std::process::Command;

const PAGE: &str = "<?php keep(); echo 'whole';";
/// Reports the length and the hash of the content.
const FORM: &str = "<?php note('ran'); $all = file_get_contents('php://input');
    echo $_SERVER['CONTENT_LENGTH'] ?? 'none', ' ', strlen($all), ' ', md5($all);";
/// More than the memory limit per request, and more than any buffer on the way.
const LONG: usize = 300_000;

fn site() -> Site {
    Site::new(&[("page.php", PAGE), ("form.php", FORM)])
}

fn post(length: usize) -> String {
    format!("POST /form.php HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n")
}

const CHUNKED: &str =
    "POST /form.php HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";

fn letters(count: usize) -> Vec<u8> {
    (0..count).map(|at| b'a' + (at % 23) as u8).collect()
}

/// The script's report on content, with the hash computed by another program.
fn said_of(site: &Site, content: &[u8]) -> String {
    let file = site.at("content");
    std::fs::write(&file, content).expect("it is written");
    let sum = Command::new("md5sum").arg(&file).output().expect("md5sum is there").stdout;
    let sum = String::from_utf8_lossy(&sum).split(' ').next().expect("a sum").to_owned();
    format!("{} {} {sum}", content.len(), content.len())
}

/// Waits until the content beyond the memory limit is on disk.
fn on_the_disk(pagewell: &Pagewell, at_least: usize) {
    until("it is on the disk", || counter(pagewell, "uploads_bytes") >= at_least as u64);
}

fn nothing_is_left(pagewell: &Pagewell) {
    until("nothing is left of it", || {
        counter(pagewell, "uploads_bytes") == 0 && counter(pagewell, "origin_places_taken") == 0
    });
}

fn limit(pagewell: &Pagewell, name: &str) -> u64 {
    let metrics =
        harness::Client::new(pagewell.admin().clone()).get("/metrics").expect("an answer");
    let start = format!("pagewell_limits_hit_total{{limit=\"{name}\"}} ");
    let text = metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&start)).expect("it is counted");
    line.parse().expect("a number")
}

#[test]
fn slow_uploads_occupy_no_php_children() {
    let site = site();
    let pagewell = site.serve("[php]\nchildren = 2\n");
    let content = letters(LONG);
    let (begin, rest) = content.split_at(200_000);
    let mut slow: Vec<_> = (0..6)
        .map(|number| {
            let head = if number % 2 == 0 { post(LONG) } else { format!("{CHUNKED}30d40\r\n") };
            let mut raw = Raw::with(&pagewell, head);
            raw.send(begin);
            raw
        })
        .collect();
    // Except for the part that may still be in memory.
    on_the_disk(&pagewell, 6 * (begin.len() - (64 << 10)));
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
    for n in 0..4 {
        let page = client(&pagewell).get(&format!("/page.php?n={n}")).expect("an answer");
        assert_eq!(page.text(), "whole");
    }
    let form = client(&pagewell).post("/form.php", "x=1").expect("an answer");
    assert_eq!(form.text(), said_of(&site, b"x=1"));
    let said = said_of(&site, &content);
    for (number, raw) in slow.iter_mut().enumerate() {
        raw.send(if number % 2 == 0 { "" } else { "\r\n186a0\r\n" });
        raw.send(rest);
        raw.send(if number % 2 == 0 { "" } else { "\r\n0\r\n\r\n" });
        assert_eq!(raw.answer().content, said, "{number}");
    }
    nothing_is_left(&pagewell);
}

#[test]
fn truncated_content_never_reaches_a_script() {
    let site = site();
    let patient = site.serve("[limits]\nbody_timeout = \"1h\"\n");
    let content = letters(LONG - 2);
    let heads = [post(LONG), format!("{CHUNKED}493e0\r\n")];
    for (head, is_half_closed) in heads.iter().flat_map(|head| [(head, false), (head, true)]) {
        let mut raw = Raw::with(&patient, head);
        raw.send(&content);
        on_the_disk(&patient, 64 << 10);
        if is_half_closed {
            raw.finish_sending();
            assert_eq!(raw.answer().status, 400);
        } else {
            drop(raw);
        }
        nothing_is_left(&patient);
    }
    let pagewell = site.serve("[limits]\nbody_timeout = \"1s\"\n");
    for head in &heads {
        let mut silent = Raw::with(&pagewell, head);
        silent.send(&content);
        assert_eq!(silent.answer().status, 408);
        nothing_is_left(&pagewell);
    }
    // The script runs as soon as the last byte has arrived, and not before.
    assert!(!site.has_note("ran"));
    let mut raw = Raw::with(&patient, post(LONG));
    raw.send(&content);
    raw.send("zz");
    assert_eq!(raw.answer().status, 200);
    assert!(site.has_note("ran"));
}

#[test]
fn truncated_content_never_reaches_an_http_origin() {
    let (pagewell, origin, _site) = before_origin("");
    for head in [post(LONG), format!("{CHUNKED}493e0\r\n")] {
        let mut raw = Raw::with(&pagewell, &head);
        raw.send(letters(LONG - 2));
        on_the_disk(&pagewell, 64 << 10);
        assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
        drop(raw);
        nothing_is_left(&pagewell);
    }
    origin.set_nonblocking(true).expect("can be set");
    assert!(origin.accept().is_err(), "nothing was sent to it");
}

/// An HTTP/2 request whose content never ends, with and without a length.
fn stalled(frames: &mut Frames, stream: u32) {
    const POST: u8 = 0x83;
    const LENGTH: &[u8] = b"\x00\x0econtent-length\x06100000";
    let more = if stream % 4 == 1 { LENGTH } else { b"" };
    assert!(frames.send(HEADERS, END_HEADERS, stream, &block_of(POST, "/form.php", more)));
    assert!(frames.send(DATA, 0, stream, &letters(10_000)));
}

#[test]
fn stalled_uploads_start_no_origin_request() {
    let (pagewell, origin, _site) = before_origin("[limits]\norigin_connections = 2\n");
    let mut frames = Frames::begin(&pagewell, &[]);
    (0..6).for_each(|number| stalled(&mut frames, 2 * number + 1));
    until("all have come", || counter(&pagewell, "forwards") == 6);
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
    let mut other = Raw::with(&pagewell, "GET /page HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let (mut at_origin, head) = asked(&origin);
    assert!(head.starts_with("get /page "), "{head}");
    at_origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("written");
    assert_eq!(other.answer().content, "ok");
}

#[test]
fn chunked_content_is_sent_to_an_http_origin_with_its_length() {
    let (pagewell, origin, _site) = before_origin("");
    let mut raw = Raw::with(&pagewell, format!("{CHUNKED}3\r\nabc\r\n"));
    raw.send("2\r\nde\r\n0\r\n\r\n");
    let (mut at_origin, head) = asked(&origin);
    assert!(head.contains("content-length: 5\r\n"), "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
    let mut content = [0; 5];
    at_origin.read_exact(&mut content).expect("the content");
    assert_eq!(&content, b"abcde");
}

#[test]
fn the_disk_space_of_all_uploads_is_limited() {
    let site = site();
    let pagewell = site.serve("[limits]\nbody_disk = \"1M\"\n");
    let mut first = Raw::with(&pagewell, post(1_000_000));
    first.send(letters(999_999));
    on_the_disk(&pagewell, 900_000);
    let mut second = Raw::with(&pagewell, post(LONG));
    second.send(letters(LONG));
    let answer = second.answer();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.content.contains("content-no-room"), "{}", answer.content);
    assert!(answer.header("retry-after").is_some());
    assert_eq!(limit(&pagewell, "body_disk"), 1);
    assert!(!site.has_note("ran"), "nothing of it was run");
    // Content that fits into memory is served.
    let short = letters(1_000);
    let form = client(&pagewell).post("/form.php", std::str::from_utf8(&short).expect("letters"));
    assert_eq!(form.expect("an answer").text(), said_of(&site, &short));
    first.send("z");
    assert_eq!(first.answer().status, 200);
    nothing_is_left(&pagewell);
    let mut third = Raw::with(&pagewell, post(LONG));
    third.send(letters(LONG));
    assert_eq!(third.answer().content, said_of(&site, &letters(LONG)));
}

#[test]
fn without_upload_memory_forms_in_one_piece_are_accepted() {
    let site = site();
    // A sixteenth of it is enough for one slow form, and there is no disk space.
    let file = site.config("memory = \"1M\"\n[limits]\nbody_disk = \"0\"\n", "");
    let args = [&site.root().display().to_string(), "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("it starts");
    let is_refused = || {
        let mut other = Raw::with(&pagewell, post(1_000));
        other.send(letters(500));
        other.finish_sending();
        other.answer().status == 503
    };
    let mut slow = Raw::connect(&pagewell);
    until("it has the room", || {
        slow = Raw::with(&pagewell, post(64 << 10));
        slow.send(letters((64 << 10) - 1));
        // The probing client itself may have used the space.
        (0..100).any(|_| is_refused())
    });
    let form = client(&pagewell).post("/form.php", "x=1").expect("an answer");
    assert_eq!(form.text(), said_of(&site, b"x=1"));
    slow.send("z");
    assert_eq!(slow.answer().status, 200);
}

/// A long upload, and the response to it.
fn upload(pagewell: &Pagewell, length: usize) -> acceptance::Answer {
    let mut raw = Raw::with(pagewell, post(length));
    raw.send(letters(length));
    raw.answer()
}

#[test]
fn a_disk_error_refuses_the_upload_and_runs_no_script() {
    let site = site();
    let uploads = site.at("uploads");
    std::fs::create_dir(&uploads).expect("it is made");
    let pagewell = site.serve(&format!("uploads = {uploads:?}\n"));
    assert_eq!(upload(&pagewell, LONG).status, 200);
    assert_eq!(std::fs::read_dir(&uploads).expect("it is there").count(), 0, "they have no names");
    site.clear_notes();
    std::fs::remove_dir(&uploads).expect("it goes");
    let answer = upload(&pagewell, LONG);
    assert_eq!(answer.status, 507, "{answer:?}");
    assert!(answer.content.contains("content-not-kept"), "{}", answer.content);
    assert!(pagewell.log().contains("content-not-kept"), "{}", pagewell.log());
    assert!(!site.has_note("ran"));
    let form = client(&pagewell).post("/form.php", "x=1").expect("an answer");
    assert_eq!(form.text(), said_of(&site, b"x=1"));
    nothing_is_left(&pagewell);
}

#[test]
fn a_full_disk_refuses_an_upload_at_once() {
    let site = site();
    let uploads = site.at("uploads");
    std::fs::create_dir(&uploads).expect("it is made");
    let Some(_mounted) = MountedTmpfs::of(&uploads, "1m") else {
        println!("not run: only root can make a small disk");
        return;
    };
    let pagewell = site.serve(&format!("uploads = {uploads:?}\n"));
    assert_eq!(upload(&pagewell, 900_000).status, 200);
    site.clear_notes();
    let answer = upload(&pagewell, 2_000_000);
    assert_eq!(answer.status, 507, "{answer:?}");
    let log = pagewell.log();
    assert!(log.contains("content-not-kept") && log.contains("os error 28"), "{log}");
    assert!(!site.has_note("ran"));
    // Its space is available again.
    nothing_is_left(&pagewell);
    assert_eq!(upload(&pagewell, 900_000).status, 200);
}

#[test]
fn an_unusable_spool_directory_prevents_the_start() {
    let site = site();
    let file = site.config(&format!("uploads = {:?}\n", site.at("nowhere")), "");
    let args = [&site.root().display().to_string(), "--config", &file.display().to_string()];
    let why = Pagewell::start(binary(), &args).expect_err("it does not start").to_string();
    assert!(why.contains("uploads") && why.contains("no file can be made there"), "{why}");
}

#[test]
fn a_client_that_expects_100_continue_is_asked_for_all_content() {
    let site = site();
    let pagewell = site.serve("");
    let head = post(LONG).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let mut raw = Raw::with(&pagewell, head);
    let interim = raw.until("\r\n\r\n");
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim:?}");
    raw.send(letters(LONG));
    assert_eq!(raw.answer().content, said_of(&site, &letters(LONG)));
}

#[test]
fn uploads_over_http2_are_buffered_too() {
    let site = site();
    let pagewell = site.serve("");
    let content = letters(5_000_000);
    let said = said_of(&site, &content);
    let file = site.at("content").display().to_string();
    let url = format!("http://{}/form.php", pagewell.address());
    let mut curl = Command::new("curl");
    curl.args(["-s", "--http2-prior-knowledge", "--data-binary"]).arg(format!("@{file}")).arg(url);
    let got = curl.output().expect("curl is there");
    assert_eq!(String::from_utf8_lossy(&got.stdout), said, "{got:?}");
    nothing_is_left(&pagewell);
}

#[test]
fn a_stop_waits_for_an_upload_in_progress() {
    let site = site();
    let mut pagewell = site.serve("");
    let content = letters(LONG);
    let mut raw = Raw::with(&pagewell, post(LONG));
    raw.send(&content[..200_000]);
    on_the_disk(&pagewell, 64 << 10);
    pagewell.signal(Signal::TERM);
    until("nobody new is let in", || !pagewell.address().accepts());
    raw.send(&content[200_000..]);
    assert_eq!(raw.answer().content, said_of(&site, &content));
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
}

#[test]
fn the_response_of_an_origin_that_resets_an_upload_reaches_the_client() {
    const ANSWER: &[u8] =
        b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large";
    let origin = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("http://{}", origin.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in origin.incoming() {
            let mut stream = stream.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a header section");
                head.push(byte[0]);
            }
            stream.write_all(ANSWER).expect("written");
            // Closing it with unread content resets the connection.
            let now = Some(std::time::Duration::ZERO);
            socket2::SockRef::from(&stream).set_linger(now).expect("can be set");
        }
    });
    let pagewell = Pagewell::start(binary(), &["--origin", &at, "--memory", "64M"]);
    let pagewell = pagewell.expect("it starts");
    let content = letters(20 << 20);
    for _ in 0..6 {
        let request = harness::Request::new("POST", "/up").content(&content);
        let answer = client(&pagewell).send(&request).expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (413, "too large"));
    }
}
