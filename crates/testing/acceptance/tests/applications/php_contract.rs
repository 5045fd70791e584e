//! The vectors of the PHP library, checked against the real binary. Pagewell stores and purges pages as the
//! response lines declare (`contract/php-headers.json`), and purges what the library sends to the control API
//! (`contract/php-control.json`).
//!
//! The PHP side of the same files: `php/client/tests/ContractTest.php` and `InvalidationClientTest.php`.

use acceptance::{Site, audit_found_nothing, cache_status, client};
use harness::{Client, Pagewell, Request};
use serde_json::{Value, json};

/// Answers with the lines in the request, one per line of its content, or of its query.
const ECHO: &str = "<?php foreach (explode(\"\\n\", base64_decode($_GET['lines'])) as $line) {
    if ($line !== '') { header($line, false); }
}
http_response_code((int) $_GET['status']); echo 'page';";

/// The configuration: every tenth hit is audited, so that each test shows more.
const AUDITED: &str = "audit = \"1 in 10\"\n";

/// Three pages of news, declared like the library does.
const NEWS: &str = "<?php header('Pagewell-Cache-Control: max-age=600');
header('Cache-Groups: ' . ['/news/4' => '\"news:4\", \"news:*\"', '/news/5' => '\"news:5\", \"news:*\"',
    '/list' => '\"news\"'][$_SERVER['REQUEST_URI']]); echo 'page';";

fn vectors(file: &str) -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contract/");
    let text = std::fs::read(format!("{root}{file}")).expect("the contract is there");
    let all: Value = serde_json::from_slice(&text).expect("the contract is JSON");
    all["vectors"].as_array().expect("it has vectors").clone()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Base64 (RFC 4648 §4) for a URL query: the three characters that are special in URLs are percent-encoded.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..=three.len() {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63] as char;
            match letter {
                '+' => text.push_str("%2B"),
                '/' => text.push_str("%2F"),
                letter => text.push(letter),
            }
        }
    }
    text
}

/// The URL of a response with these lines.
fn echo(name: usize, lines: &[&str], status: u64) -> String {
    format!("/echo.php?n={name}&status={status}&lines={}", base64(lines.join("\n").as_bytes()))
}

/// Pagewell's Cache-Status for a page.
fn asked(client: &mut Client, path: &str) -> String {
    cache_status(&client.get(path).expect("an answer")).to_owned()
}

/// The number of pages that Pagewell purges for this call.
fn dropped(pagewell: &Pagewell, call: &Value) -> u64 {
    let answer = pagewell.invalidate(&call.to_string()).expect("an answer");
    assert_eq!(answer.status, 200, "{call}: {}", answer.text());
    let told: Value = serde_json::from_slice(&answer.content).expect("JSON");
    told["dropped"].as_u64().expect("a number")
}

#[test]
fn a_page_is_stored_with_the_declared_tags() {
    let site = Site::new(&[("echo.php", ECHO)]);
    let pagewell = site.serve(AUDITED);
    let mut client = client(&pagewell);
    for (n, vector) in vectors("php-headers.json").iter().enumerate() {
        if vector["request"]["method"] != "GET" {
            continue;
        }
        let mut lines = strings(&vector["response"]["lines"]);
        lines.extend(strings(&vector["lines"]));
        let path = echo(n, &lines, vector["response"]["status"].as_u64().unwrap_or(200));
        let stored = vector.get("refused").is_none();
        // Requested once for each tag: each tag alone purges it.
        let tags = strings(&vector["tags"]);
        let calls = tags.iter().map(|tag| json!({ "tags": [tag] }));
        for call in calls.chain([json!({ "urls": [path] })]) {
            let status = asked(&mut client, &path);
            assert_eq!(status.contains("stored"), stored, "{}: {status}", vector["name"]);
            assert_eq!(dropped(&pagewell, &call), u64::from(stored), "{}: {call}", vector["name"]);
        }
        let longest = vector["lifetime_seconds"].as_u64();
        if let Some(seconds) = longest.filter(|_| stored) {
            asked(&mut client, &path);
            let hit = asked(&mut client, &path);
            let left = hit.split("ttl=").nth(1).and_then(|rest| rest.parse::<u64>().ok());
            let kept = left.is_some_and(|left| left <= seconds && left + 60 > seconds);
            assert!(kept, "{}: {hit}", vector["name"]);
            dropped(&pagewell, &json!({ "all": true }));
        }
    }
    audit_found_nothing(&pagewell, &[]);
}

#[test]
fn a_write_purges_the_tags_that_it_declares() {
    let site = Site::new(&[("echo.php", ECHO)]);
    let pagewell = site.serve(AUDITED);
    let mut client = client(&pagewell);
    for (n, vector) in vectors("php-headers.json").iter().enumerate() {
        let invalidated = strings(&vector["invalidated"]);
        if invalidated.is_empty() {
            continue;
        }
        // A page for each tag, and one with another tag.
        let name = |tag: &str| tag.replace('\\', "\\\\").replace('"', "\\\"");
        let pages: Vec<(String, bool)> = invalidated
            .iter()
            .map(|tag| (*tag, true))
            .chain([("elsewhere", false)])
            .enumerate()
            .map(|(at, (tag, drops))| {
                let groups = format!("Cache-Groups: \"{}\"", name(tag));
                (echo(1000 * n + at, &["Cache-Control: max-age=600", &groups], 200), drops)
            })
            .collect();
        for (path, _) in &pages {
            client.get(path).expect("an answer");
        }
        let method = vector["request"]["method"].as_str().expect("a method");
        let status = vector["response"]["status"].as_u64().unwrap_or(200);
        let write = Request::new(method, &echo(n, &strings(&vector["lines"]), status));
        client.send(&write).expect("an answer");
        for (path, drops) in &pages {
            let status = asked(&mut client, path);
            assert_eq!(!status.contains("hit"), *drops, "{}: {status}", vector["name"]);
        }
    }
    audit_found_nothing(&pagewell, &[]);
}

#[test]
fn calls_of_the_control_api_purge_the_pages_that_they_declare() {
    let site = Site::new(&[("index.php", NEWS)]);
    let pagewell = site.serve(AUDITED);
    let mut client = client(&pagewell);
    for vector in vectors("php-control.json") {
        for path in ["/news/4", "/news/5", "/list"] {
            client.get(path).expect("an answer");
        }
        let mut told = [0, 0];
        for body in strings(&vector["bodies"]) {
            let answer = pagewell.invalidate(body).expect("an answer");
            assert_eq!(answer.status, 200, "{}: {}", vector["name"], answer.text());
            let said: Value = serde_json::from_slice(&answer.content).expect("JSON");
            told[0] += said["dropped"].as_u64().expect("a number");
            told[1] += said["marked"].as_u64().expect("a number");
        }
        let (drops, marks) = (strings(&vector["drops"]), strings(&vector["marks"]));
        assert_eq!(told, [drops.len() as u64, marks.len() as u64], "{}", vector["name"]);
        for path in ["/news/4", "/news/5", "/list"] {
            let status = asked(&mut client, path);
            let is_hit = status.contains("hit");
            let concerned = drops.contains(&path) || marks.contains(&path);
            assert_eq!(!is_hit, concerned, "{}: {path} {status}", vector["name"]);
        }
    }
    audit_found_nothing(&pagewell, &[]);
}
