//! The access log of the real binary: the line of each response and its content, the destination, reopening of
//! a rotated file. Clients cannot forge a line, and lines that do not fit are counted.
//!
//! A line is written a moment after its response. Tests wait for a number of lines; stopping writes the last of
//! them.

use acceptance::{BOUND, Raw, Site, asked, before_origin, binary, client, counter, until};
use harness::{Pagewell, Signal};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

const PAGE: &str = "<?php keep(); echo 'the page';";

fn table(to: impl std::fmt::Display, more: &str) -> String {
    format!("[access_log]\nto = \"{to}\"\n{more}\n")
}

/// The lines that are complete.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}

/// Waits for this number of lines.
fn wait_for(path: &Path, count: usize) -> Vec<String> {
    until(&format!("{count} lines in {}", path.display()), || lines(path).len() >= count);
    let all = lines(path);
    assert_eq!(all.len(), count, "{all:#?}");
    all
}

fn json(path: &Path, count: usize) -> Vec<Value> {
    wait_for(path, count).iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A site whose access log is in JSON.
fn logged(files: &[(&str, &str)], more: &str) -> (Site, Pagewell, std::path::PathBuf) {
    let site = Site::new(files);
    let log = site.at("access.log");
    let config = format!("{more}{}", table(log.display(), "format = \"json\""));
    let pagewell = site.serve(&config);
    (site, pagewell, log)
}

/// Eight requests, each with another outcome.
fn ask_for_all(pagewell: &Pagewell) {
    let mut raw = Raw::connect(pagewell);
    for (method, target, more) in [
        ("GET", "/page.php?a=1", ""),
        (
            "GET",
            "/page.php?a=1",
            "User-Agent: Test/1 \"x\\y\"\r\nReferer: http://b/?c=d\r\nCookie: secret=1\r\n",
        ),
        ("GET", "/page.php?a=1", "Range: bytes=0-2\r\n"),
        ("HEAD", "/page.php?a=1", ""),
        ("GET", "/no.php", ""),
        ("POST", "/no.php", "Content-Length: 2\r\n\r\nab"),
        ("GET", "/a.txt", ""),
        ("GET", "/..%2f..%2f", ""),
    ] {
        let end = if more.ends_with("ab") { "" } else { "\r\n" };
        raw.send(format!("{method} {target} HTTP/1.1\r\nHost: example.org\r\n{more}{end}"));
        match method {
            "HEAD" => drop(raw.until("\r\n\r\n")),
            _ => drop(raw.answer()),
        }
    }
}

#[test]
fn each_response_has_a_line_with_the_cache_outcome() {
    let files = [
        ("page.php", PAGE),
        ("no.php", "<?php header('Cache-Control: no-store'); echo 12;"),
        ("a.txt", "a file"),
    ];
    let (_site, pagewell, log) = logged(&files, "");
    ask_for_all(&pagewell);
    let all = json(&log, 8);
    let find = |target: &str, cache: &str| {
        let found = all.iter().find(|line| line["target"] == target && line["cache"] == cache);
        found.unwrap_or_else(|| panic!("no {cache} of {target} in {all:#?}"))
    };
    let mut said: Vec<_> = all
        .iter()
        .map(|line| {
            let word = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            let number = |name: &str| line[name].as_u64().expect("a number");
            assert_eq!(
                (word("client").as_str(), word("host").as_str()),
                ("127.0.0.1", "example.org")
            );
            assert_eq!(
                (&line["broken"], word("protocol").as_str()),
                (&Value::Bool(false), "HTTP/1.1")
            );
            let what = format!("{} {} {}", word("method"), word("target"), number("status"));
            format!("{what} {} {} {}", number("bytes"), word("cache"), word("detail"))
        })
        .collect();
    // Lines of several threads may be in another order.
    said.sort();
    let [refused, rest @ ..] = &said[..] else { panic!("lines") };
    assert!(refused.starts_with("GET /..%2f..%2f 400 "), "{refused}");
    assert!(refused.ends_with("own path-malformed"), "{refused}");
    assert_eq!(
        rest,
        [
            "GET /a.txt 200 6 file -",
            "GET /no.php 200 2 miss no-store",
            "GET /page.php?a=1 200 8 hit -",
            "GET /page.php?a=1 200 8 miss stored",
            "GET /page.php?a=1 206 3 hit -",
            "HEAD /page.php?a=1 200 0 hit -",
            "POST /no.php 200 2 bypass method",
        ]
    );
    let (miss, hit) = (find("/page.php?a=1", "miss"), find("/page.php?a=1", "hit"));
    assert!(miss["origin_us"].as_u64() > Some(0) && hit["origin_us"].is_null());
    assert!(miss["duration_us"].as_u64() >= miss["origin_us"].as_u64());
    let text = wait_for(&log, 8).concat();
    assert!(text.contains(r#""user_agent":"Test/1 \"x\\y\"""#), "{text}");
    assert!(text.contains(r#""referer":"http://b/?c=d""#), "{text}");
    assert!(!text.contains("secret"), "cookies are never logged");
    let mode = fs::metadata(&log).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn a_refused_request_has_a_line_and_cannot_forge_one() {
    let (_site, pagewell, log) = logged(&[], "");
    let evil = "GET /\"},{\"status\":1 HTTP/1.1\r\nHost: a\r\nHost: \"b\r\n\r\n";
    Raw::with(&pagewell, evil).rest();
    wait_for(&log, 1);
    Raw::with(&pagewell, b"\x16\x03\x01\0\"\\\x1b[2J\xff\r\n\r\n").rest();
    let all = json(&log, 2);
    assert_eq!(all[0]["target"], "/\"},{\"status\":1");
    assert_eq!(
        (&all[0]["status"], &all[0]["cache"]),
        (&Value::from(400), &Value::from("rejected"))
    );
    assert_eq!(all[0]["detail"], "host-repeated");
    assert_eq!(all[1]["cache"], "rejected");
}

#[test]
fn a_disconnected_client_has_its_own_outcome() {
    let log_dir = Site::new(&[]);
    let log = log_dir.at("access.log");
    let limits = "[limits]\nhalf_closed_timeout = \"1ms\"\n";
    let config = format!("{limits}{}", table(log.display(), "format = \"json\""));
    let (pagewell, origin, _site) = before_origin(&config);
    // Before there is a response.
    let left = Raw::with(&pagewell, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    let (held, _) = asked(&origin);
    left.stream().shutdown(Shutdown::Both).expect("can be closed");
    drop(left);
    let first = &json(&log, 1)[0];
    assert_eq!((&first["status"], &first["detail"]), (&499.into(), &"client-left".into()));
    assert_eq!((&first["broken"], &first["bytes"]), (&true.into(), &0.into()));
    drop(held);
    // And an origin that breaks off in the middle.
    let mut broken = Raw::with(&pagewell, "GET /broken HTTP/1.1\r\nHost: a\r\n\r\n");
    let (mut stream, _) = asked(&origin);
    let half =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\nhalf";
    stream.write_all(half.as_bytes()).expect("sent");
    broken.until("half");
    drop(stream);
    broken.rest();
    let second = &json(&log, 2)[1];
    assert_eq!((&second["status"], &second["broken"]), (&200.into(), &true.into()));
    assert_eq!(second["bytes"], 4);
}

#[test]
fn a_client_that_reads_only_a_part_has_its_own_outcome() {
    let large = "<?php keep(); echo str_repeat('x', 6 << 20);";
    let (_site, pagewell, log) = logged(&[("large.php", large)], "");
    let whole = client(&pagewell).get("/large.php").expect("an answer");
    assert_eq!(whole.content.len(), 6 << 20);
    // Lines of requests that overlap are in any order.
    wait_for(&log, 1);
    let host = pagewell.address();
    // A plain hit, and a hit that the HTTP library answers.
    for (count, more) in ["", "Range: bytes=0-\r\n"].into_iter().enumerate() {
        let head = format!("GET /large.php HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        let mut half = Raw::with(&pagewell, head);
        half.until("xxx");
        drop(half);
        wait_for(&log, count + 2);
    }
    let all = json(&log, 3);
    assert_eq!((&all[0]["broken"], &all[0]["bytes"]), (&false.into(), &Value::from(6 << 20)));
    for status in [200, 206] {
        let found = all[1..].iter().find(|line| line["status"] == status);
        let line = found.unwrap_or_else(|| panic!("no {status} in {all:#?}"));
        assert_eq!(line["broken"], true, "{line}");
        assert!(line["bytes"].as_u64() < Some(6 << 20), "{line}");
        assert_eq!(line["cache"], "hit");
    }
}

#[test]
fn http2_requests_have_lines_too() {
    let (_site, pagewell, log) = logged(&[("page.php", PAGE)], "");
    // A line is written after its response: each is waited for, so that they are in order.
    for count in 1..=2 {
        let url = format!("http://{}/page.php", pagewell.address());
        let said = std::process::Command::new("nghttp").arg(url).output().expect("nghttp is there");
        assert!(String::from_utf8_lossy(&said.stdout).contains("the page"));
        wait_for(&log, count);
    }
    let all = json(&log, 2);
    for (line, cache) in all.iter().zip(["miss", "hit"]) {
        assert_eq!((&line["protocol"], &line["cache"]), (&"HTTP/2.0".into(), &cache.into()));
        assert_eq!((&line["bytes"], &line["broken"]), (&8.into(), &false.into()));
        assert_eq!(line["host"], pagewell.address().to_string());
    }
}

#[test]
fn a_protocol_upgrade_has_a_line() {
    let log_dir = Site::new(&[]);
    let log = log_dir.at("access.log");
    let (pagewell, origin, _site) = before_origin(&table(log.display(), "format = \"json\""));
    let ask = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut raw = Raw::with(&pagewell, ask);
    let (mut stream, _) = asked(&origin);
    let agreed =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(agreed.as_bytes()).expect("sent");
    raw.until("\r\n\r\n");
    let line = &json(&log, 1)[0];
    assert_eq!((&line["status"], &line["broken"]), (&101.into(), &false.into()), "{line}");
}

#[test]
fn a_trusted_proxy_names_the_client_and_addresses_can_be_masked() {
    let site = Site::new(&[("page.php", PAGE)]);
    let log = site.at("access.log");
    let format = "format = \"{client} {scheme} {cache} {target} {referer}\"\n\
                  mask_addresses = true\nmask_queries = true";
    let config = format!("trusted_proxies = [\"127.0.0.1\"]\n{}", table(log.display(), format));
    let pagewell = site.serve(&config);
    let mut raw = Raw::connect(&pagewell);
    for more in ["", "X-Forwarded-For: 6.6.6.6, 203.0.113.5\r\nX-Forwarded-Proto: https\r\n"] {
        for _ in 0..2 {
            let head = "GET /page.php?q=tea HTTP/1.1\r\nHost: a\r\nReferer: http://b/?c=d\r\n";
            raw.send(format!("{head}{more}\r\n"));
            raw.answer();
        }
    }
    let rest = "/page.php?q= http://b/?c=";
    // A line is written when its response has been sent: the next response may be faster.
    let mut lines = wait_for(&log, 4);
    lines.sort();
    assert_eq!(
        lines,
        [
            format!("127.0.0.0 http hit {rest}"),
            format!("127.0.0.0 http miss {rest}"),
            format!("203.0.113.0 https hit {rest}"),
            format!("203.0.113.0 https miss {rest}"),
        ]
    );
}

#[test]
fn a_rotated_log_file_is_reopened() {
    let (site, mut pagewell, log) = logged(&[("page.php", PAGE)], "");
    let old = site.at("access.log.1");
    let mut client = client(&pagewell);
    for (count, signal) in [Signal::USR1, Signal::HUP].into_iter().enumerate() {
        client.get(&format!("/page.php?{count}")).expect("an answer");
        wait_for(&log, 1);
        fs::rename(&log, &old).expect("it is there");
        pagewell.signal(signal);
        until("a new file", || log.exists());
        client.get("/page.php?new").expect("an answer");
        wait_for(&log, 1);
        // Earlier lines are in the old file.
        assert!(lines(&old)[0].contains(&format!("?{count}")), "{:?}", lines(&old));
        fs::remove_file(&log).expect("it is there");
        pagewell.signal(signal);
        until("a new file", || log.exists());
    }
    pagewell.stop();
}

#[test]
fn stopping_writes_the_remaining_lines() {
    let (_site, mut pagewell, log) = logged(&[("page.php", PAGE)], "");
    let mut client = client(&pagewell);
    for _ in 0..100 {
        client.get("/page.php").expect("an answer");
    }
    client.close();
    pagewell.stop();
    assert_eq!(lines(&log).len(), 100);
}

#[test]
fn syslog_gets_a_message_for_each_line() {
    let site = Site::new(&[("page.php", PAGE)]);
    let path = site.at("dev-log");
    let daemon = UnixDatagram::bind(&path).expect("a socket");
    daemon.set_read_timeout(Some(BOUND)).expect("can be set");
    let config = table(format!("syslog:{}", path.display()), "format = \"{cache} {target}\"");
    let pagewell = site.serve(&config);
    let mut client = client(&pagewell);
    let message = || {
        let mut bytes = [0; 4096];
        let length = daemon.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    for word in ["miss", "hit"] {
        client.get("/page.php").expect("an answer");
        let right = format!("<190>pagewell[{}]: {word} /page.php", pagewell.pid());
        assert_eq!(message(), right);
    }
}

#[test]
fn lines_that_cannot_be_written_are_counted_and_block_no_request() {
    let site = Site::new(&[("page.php", PAGE)]);
    let mut pagewell = site.serve(&table("/dev/full", ""));
    let mut client = client(&pagewell);
    for _ in 0..5 {
        assert_eq!(client.get("/page.php").expect("an answer").status, 200);
    }
    until("they are counted", || counter(&pagewell, "access_log_dropped") == 5);
    pagewell.stop();
    let log = pagewell.log();
    assert_eq!(log.matches("access-log-failed").count(), 1, "{log}");
}

#[test]
fn a_log_without_a_reader_blocks_no_request() {
    let site = Site::new(&[("page.php", PAGE)]);
    let fifo = site.at("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is there");
    assert!(made.success());
    // A process has opened it but reads nothing: the pipe fills up, and the writer blocks.
    let reader = fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("a pipe");
    let config = table(fifo.display(), "buffer = \"384K\"\nformat = \"combined\"");
    let pagewell = site.serve(&config);
    let agent = "x".repeat(2_000);
    let mut raw = Raw::connect(&pagewell);
    let dropped = || counter(&pagewell, "access_log_dropped");
    let mut asked = 0;
    while dropped() == 0 {
        for _ in 0..100 {
            raw.send(format!("GET /page.php HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\n\r\n"));
            assert_eq!(raw.answer().status, 200);
        }
        asked += 100;
        assert!(asked < 20_000, "nothing was dropped");
    }
    drop(reader);
}

#[test]
fn a_log_that_cannot_be_opened_prevents_the_start() {
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", origin.local_addr().expect("bound"));
    for to in ["/nowhere/access.log", "syslog:/nowhere/log"] {
        let args = ["serve", "--origin", &origin, "--access-log", to, "--admin", "127.0.0.1:0"];
        let mut command = std::process::Command::new(binary());
        let said = command.args(args).args(["--listen", "127.0.0.1:0"]).output().expect("it runs");
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(1), "{error}");
        assert!(error.contains("access_log.to: /nowhere"), "{error}");
    }
}

#[test]
fn server_timing_reports_the_origin_time() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("[cache]\nserver_timing = true\n");
    let mut client = client(&pagewell);
    let first = client.get("/page.php").expect("an answer");
    let value = first.header("server-timing").expect("it was rendered");
    let ms = value.strip_prefix("origin;dur=").and_then(|ms| ms.parse::<f64>().ok());
    assert!(ms > Some(0.0), "{value}");
    let hit = client.get("/page.php").expect("an answer");
    assert_eq!(hit.header("server-timing"), None, "it was not");
}
