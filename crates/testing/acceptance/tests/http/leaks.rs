//! No page made for one client reaches another. Clients with sessions or passwords, with their own fields, and
//! anonymous ones request the same few pages concurrently. Their requests include ranges, conditions and
//! writes. The content of an origin's response names its owner, with random caching fields: public pages,
//! private ones, `Set-Cookie`, `Vary`, stale responses, errors, truncated responses. The test needs no model of
//! a cache:
//!
//! - content made for a client is seen by that client only;
//! - content that came with a new client's first cookie is seen once.
//!
//! An origin that does not declare the owners of its pages shows that the test finds leaks. The random seed is
//! fixed; `LEAKS_SEED` and `LEAKS_REQUESTS` select others. RFC 9111 sections 3, 3.5, 4.1.
#![allow(clippy::unwrap_used)]

use acceptance::{before_origin, client, counter};
use harness::{Client, Pagewell, Random, Request};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The clients' ids; as long as session cookies.
const VISITORS: [&str; 6] = [
    "ann0000000000000000000000000",
    "bob0000000000000000000000000",
    "cem0000000000000000000000000",
    "dee0000000000000000000000000",
    "eva0000000000000000000000000",
    "fay0000000000000000000000000",
];
/// The cookies that contain a session, in all spellings: PHP treats the last four as one name.
const SESSIONS: [&str; 5] =
    ["PHPSESSID", "fe_typo_user", "fe.typo.user", "fe typo[user", "fe_typo_user[0]"];
const PATHS: [&str; 8] = ["/", "/a", "/b", "/account", "/account/x.css", "/a?q=1", "/b/", "/a%2fb"];
/// The length of one record of the content. A range of twice this length contains a complete record.
const RECORD_BYTES: usize = 64;
const RECORDS: usize = 8;

fn drawn(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

// ---- the origin ------------------------------------------------------------------------------

/// Whether the origin declares the owners of its pages.
#[derive(Clone, Copy, PartialEq)]
enum Declaration {
    ForWhom,
    Nothing,
}

/// How the origin identifies a client.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Identification {
    Session,
    Password,
    Field,
    OtherCookie,
    Nothing,
}

/// The identification in a request.
fn known(head: &[String]) -> (Identification, String) {
    let value = |line: &str, before: &str| {
        let lower = line.to_ascii_lowercase();
        lower.find(before).map(|at| {
            let rest = &line[at + before.len()..];
            rest.split(';').next().unwrap_or_default().trim().to_owned()
        })
    };
    let find = |before: &str| head.iter().find_map(|line| value(line, before));
    // As PHP parses names; of an array the first element is enough.
    let folded = |line: &String| line.replace("[0]", "").replace(['.', ' ', '['], "_");
    let named = |line: &String| value(&folded(line), "fe_typo_user=");
    if let Some(id) = head.iter().find_map(named) {
        return (Identification::Session, id);
    }
    for (by, before) in [
        (Identification::Session, "phpsessid="),
        (Identification::Password, "authorization: bearer "),
        (Identification::Field, "x-user: "),
        (Identification::OtherCookie, "pref="),
    ] {
        if let Some(id) = find(before) {
            return (by, id);
        }
    }
    (Identification::Nothing, String::new())
}

/// Caching fields for a page of a client that is identified like this, and whether the page is for that client
/// only.
fn fields(random: &mut Random, by: Identification, says: Declaration) -> (String, bool) {
    const ANYBODYS: [&str; 6] = [
        "Cache-Control: max-age=1\r\n",
        "Cache-Control: public, max-age=60\r\n",
        "Cache-Control: s-maxage=1, stale-while-revalidate=60\r\n",
        "Cache-Control: max-age=1, stale-if-error=60\r\n",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: max-age=60\r\nVary: X-User\r\n",
    ];
    const PERSONAL: [&str; 6] = [
        "Cache-Control: private, max-age=60\r\n",
        "Cache-Control: no-store\r\n",
        "Cache-Control: private\r\n",
        "Cache-Control: max-age=60\r\nSet-Cookie: seen=1\r\n",
        "Cache-Control: public, max-age=60\r\nSet-Cookie: PHPSESSID=new\r\n",
        "Cache-Control: max-age=60\r\nVary: *\r\n",
    ];
    match (by, says) {
        (_, Declaration::Nothing) => {
            (random.one(&ANYBODYS[..4]).to_owned(), by != Identification::Nothing)
        }
        // The session cookie is known: no header field makes its page public.
        (Identification::Session, _) if random.chance(2) => {
            (random.one(&ANYBODYS).to_owned(), true)
        }
        // Section 3.5: `public` and `s-maxage` would allow it.
        (Identification::Password, _) if random.chance(2) => {
            (random.one(&["Cache-Control: max-age=60\r\n", ""]).to_owned(), true)
        }
        (Identification::Field, _) if random.chance(2) => {
            ("Cache-Control: max-age=60\r\nVary: X-User\r\n".into(), true)
        }
        (Identification::Nothing, _) if !random.chance(5) => {
            (random.one(&ANYBODYS).to_owned(), false)
        }
        _ => (random.one(&PERSONAL).to_owned(), true),
    }
}

struct Origin {
    says: Declaration,
    renders: AtomicU64,
    seed: u64,
}

impl Origin {
    fn start(listener: TcpListener, says: Declaration, seed: u64) {
        let origin = Arc::new(Origin { says, renders: AtomicU64::new(0), seed });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let origin = origin.clone();
                // A connection that breaks off ends its thread.
                thread::spawn(move || origin.serve(stream));
            }
        });
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        loop {
            let mut head = Vec::new();
            loop {
                match lines.next() {
                    Some(Ok(line)) if line.is_empty() => break,
                    Some(Ok(line)) => head.push(line),
                    _ => return,
                }
            }
            let number = self.renders.fetch_add(1, Ordering::Relaxed);
            let mut random =
                Random::new(self.seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            // Long enough for other clients to wait for the same page.
            thread::park_timeout(Duration::from_micros(random.below(2_000) as u64));
            let answer = self.answer(&head, number, &mut random);
            let cut = random.chance(40);
            let bytes = if cut { &answer[..answer.len() - 100] } else { &answer[..] };
            if stream.write_all(bytes).is_err() || cut {
                return;
            }
        }
    }

    fn answer(&self, head: &[String], number: u64, random: &mut Random) -> Vec<u8> {
        let (by, id) = known(head);
        let (fields, personal) = fields(random, by, self.says);
        let whom = match (personal, id.as_str()) {
            (false, _) => "everybody",
            (true, "") => "first",
            (true, id) => id,
        };
        let is_head = head.first().is_some_and(|line| line.starts_with("HEAD"));
        let status = if random.chance(20) { "500 Oops" } else { "200 OK" };
        let record = format!("[[{whom} {number}]]");
        let content = format!("{record:-<width$}", width = RECORD_BYTES).repeat(RECORDS);
        let shown = if is_head { "" } else { &content };
        let length = content.len();
        format!(
            "HTTP/1.1 {status}\r\n{fields}ETag: \"{number}\"\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n{shown}"
        )
        .into_bytes()
    }
}

// ---- the visitors ----------------------------------------------------------------------------

/// Content that was seen by the wrong client.
type Leaks = Arc<Mutex<Vec<String>>>;
/// The numbers of the pages for first visits that were seen.
type Firsts = Arc<Mutex<HashSet<u64>>>;

fn request(random: &mut Random, by: Identification, me: &str, tag: Option<&str>) -> Request {
    let path = random.one(&PATHS);
    let mut request = match random.below(20) {
        0 => Request::form(path, "x=1"),
        1 | 2 => Request::new("HEAD", path),
        _ => Request::get(path),
    };
    request = match by {
        Identification::Session => {
            let name = random.one(&SESSIONS);
            request.header("Cookie", &format!("_ga=1; {name}={me}"))
        }
        Identification::Password => request.header("Authorization", &format!("Bearer {me}")),
        Identification::Field => request.header("X-User", me),
        Identification::OtherCookie => request.header("Cookie", &format!("pref={me}")),
        Identification::Nothing => request,
    };
    if random.chance(6) {
        let first = random.below(RECORD_BYTES * (RECORDS - 2));
        request = request.header("Range", &format!("bytes={first}-{}", first + RECORD_BYTES * 2));
    }
    if let (Some(tag), true) = (tag, random.chance(5)) {
        request = request.header(random.one(&["If-None-Match", "If-Range"]), tag);
    }
    if random.chance(10) {
        request = request
            .header("Cache-Control", random.one(&["no-cache", "max-stale", "only-if-cached"]));
    }
    request
}

/// Checks each record in the content.
fn check(text: &str, me: &str, by: Identification, firsts: &Firsts, leaks: &Leaks) {
    let parts = text.split("[[").skip(1);
    let records: HashSet<&str> =
        parts.filter_map(|part| part.split_once("]]")).map(|(record, _)| record).collect();
    for record in records {
        let (whom, number) = record.split_once(' ').unwrap_or((record, "0"));
        let number: u64 = number.parse().unwrap_or_default();
        let right = match whom {
            "everybody" => true,
            "first" => firsts.lock().unwrap().insert(number),
            // A client that is not logged in at the moment is anonymous.
            id => id == me && by != Identification::Nothing,
        };
        if !right {
            leaks.lock().unwrap().push(format!("{by:?} {me} saw [[{record}]]"));
        }
    }
}

fn visit(mut client: Client, me: &str, seed: u64, requests: u64, firsts: &Firsts, leaks: &Leaks) {
    const BYS: [Identification; 7] = [
        Identification::Session,
        Identification::Password,
        Identification::Field,
        Identification::OtherCookie,
        Identification::Nothing,
        Identification::Nothing,
        Identification::Nothing,
    ];
    let mut random = Random::new(seed);
    let mut tag = None;
    let mut asked = (Identification::Nothing, Request::get("/"));
    for _ in 0..requests {
        // Half of the requests repeat the previous one, because few clients would otherwise meet their own
        // copy.
        if !random.chance(2) {
            let by = random.one(&BYS);
            asked = (by, request(&mut random, by, me, tag.as_deref()));
        }
        let by = asked.0;
        // A truncated response has shown nothing that is checked here.
        let Ok(answer) = client.send(&asked.1) else {
            client.close();
            continue;
        };
        check(&answer.text(), me, by, firsts, leaks);
        tag = answer.header("etag").map(str::to_owned).or(tag);
    }
}

/// Runs all clients concurrently, and returns the content seen by wrong clients.
fn visits(pagewell: &Pagewell, seed: u64, requests: u64) -> Vec<String> {
    let (firsts, leaks) = (Firsts::default(), Leaks::default());
    thread::scope(|scope| {
        for (place, me) in VISITORS.iter().enumerate() {
            let (firsts, leaks) = (&firsts, &leaks);
            let client = client(pagewell);
            let seed = seed.wrapping_mul(1_000_003).wrapping_add(place as u64 + 1);
            scope.spawn(move || visit(client, me, seed, requests, firsts, leaks));
        }
        scope.spawn(|| {
            for _ in 0..requests / 100 {
                pagewell.invalidate(r#"{"all":true,"soft":true}"#).unwrap();
                thread::park_timeout(Duration::from_millis(20));
            }
        });
    });
    Arc::try_unwrap(leaks).unwrap().into_inner().unwrap()
}

fn run(config: &str, says: Declaration) -> (Pagewell, Vec<String>) {
    let (seed, requests) = (drawn("LEAKS_SEED", 1), drawn("LEAKS_REQUESTS", 1500));
    let (pagewell, listener, _site) = before_origin(config);
    Origin::start(listener, says, seed);
    let leaks = visits(&pagewell, seed, requests);
    (pagewell, leaks)
}

#[test]
fn no_client_gets_a_page_made_for_another() {
    for config in ["", "[private]\ncookies = [\"PHPSESSID\"]\n", "hits_in_front = false\n"] {
        let (pagewell, leaks) = run(config, Declaration::ForWhom);
        assert!(leaks.is_empty(), "{config:?}: {leaks:#?}");
        // The test was effective: pages were shared nevertheless.
        for name in ["hits", "stored", "collapsed", "stale_hits", "bypasses"] {
            assert!(counter(&pagewell, name) > 0, "{config:?}: no {name}");
        }
        let private = counter(&pagewell, "private_hits");
        assert_eq!(private > 0, config.contains("private"), "{private} private hits");
    }
}

#[test]
fn the_oracle_finds_leaks_of_an_origin_that_declares_no_owner() {
    let (_pagewell, leaks) = run("", Declaration::Nothing);
    assert!(!leaks.is_empty(), "the oracle is blind");
    assert!(leaks.iter().all(|leak| !leak.starts_with("Session")), "{leaks:#?}");
}
