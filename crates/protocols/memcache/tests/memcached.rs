//! Sends the same bytes to a real memcached and to this crate: the answers must be the same.
//!
//! Numbers for `cas` differ and are compared by their order of appearance. The meta commands, which this crate
//! does not support, are not sent.

mod memory;

use bytes::Bytes;
use harness::Memcached;
use memcache::{Limits, Moment};
use memory::{Connection, Memory};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, UNIX_EPOCH};

/// One of the two servers compared.
trait Side {
    /// Sends bytes and the final requests. Returns the answers up to those of the final requests, or to the
    /// end of the connection.
    fn say(&mut self, bytes: &[u8]) -> Vec<u8>;
}

struct RealServer(TcpStream);

impl RealServer {
    fn connect(memcached: &Memcached) -> RealServer {
        let address = memcached.address().to_string();
        let stream = TcpStream::connect(address).expect("it is there");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time over zero");
        // A step is two writes: without this, the second waits 40 ms for an acknowledgement.
        stream.set_nodelay(true).expect("can be set");
        RealServer(stream)
    }
}

/// The final requests of each step, and the answers of both servers to them.
const ASK_END: &[u8] = b"set end-of-step 0 0 4\r\ndone\r\nget end-of-step\r\n";
const END: &[u8] = b"STORED\r\nVALUE end-of-step 0 4\r\ndone\r\nEND\r\n";

impl Side for RealServer {
    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        // The server may have closed the connection before all bytes were sent.
        let _ = self.0.write_all(bytes).and_then(|()| self.0.write_all(ASK_END));
        let (mut heard, mut part) = (Vec::new(), [0; 65_536]);
        while !heard.ends_with(END) {
            match self.0.read(&mut part) {
                Ok(0) => break,
                Ok(count) => heard.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}; heard {:?}", String::from_utf8_lossy(&heard)),
            }
        }
        heard
    }
}

impl Side for Connection<'_> {
    fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = self.send(bytes, now());
        if self.open {
            heard.extend(self.send(ASK_END, now()));
        }
        heard
    }
}

#[allow(clippy::disallowed_methods, reason = "the real one has a clock of its own")]
fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    // Full seconds, like memcached's clock.
    Moment(since.as_secs() * 1_000)
}

/// Answers without the parts that may differ.
#[derive(Default)]
struct ComparedAnswers {
    cas: HashMap<Vec<u8>, usize>,
}

impl ComparedAnswers {
    fn of(&mut self, heard: &[u8]) -> String {
        let lines = heard.split_inclusive(|byte| *byte == b'\n');
        lines.map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let words: Vec<_> = text.trim_end().split(' ').collect();
        let shown = match words[..] {
            ["VALUE", key, flags, length, cas] => {
                format!("VALUE {key} {flags} {length} {}", self.nth(cas))
            }
            _ => return format!("{}{:?}\n", "", text),
        };
        format!("{shown:?}\n")
    }

    fn nth(&mut self, cas: &str) -> String {
        let next = self.cas.len();
        format!("#{}", self.cas.entry(cas.into()).or_insert(next))
    }
}

/// Replaces `@KEY@` in a step by the `cas` number of the key, and `@KEY-1@` by a lower one.
fn filled(step: &str, side: &mut dyn Side) -> Vec<u8> {
    let mut said = String::new();
    for (at, part) in step.split('@').enumerate() {
        if at % 2 == 0 {
            said += part;
            continue;
        }
        let (key, less) = part.strip_suffix("-1").map_or((part, 0), |key| (key, 1));
        let heard = side.say(format!("gets {key}\r\n").as_bytes());
        let heard = String::from_utf8_lossy(&heard).into_owned();
        let cas = heard
            .split_whitespace()
            .nth(4)
            .and_then(|cas| cas.parse().ok())
            .unwrap_or(u64::MAX / 2);
        said += &(cas >> less).to_string();
    }
    said.into_bytes()
}

/// Sends the steps of a scenario to both servers, and compares the answers step by step.
fn same(memcached: &Memcached, memory: &Memory, steps: &[String]) -> Result<(), String> {
    let (mut real, mut ours) =
        (RealServer::connect(memcached), Connection::new(memory, Limits::default()));
    let (mut left, mut right) = (ComparedAnswers::default(), ComparedAnswers::default());
    for step in steps {
        let (theirs_said, ours_said) = (filled(step, &mut real), filled(step, &mut ours));
        let (theirs, mine) = (real.say(&theirs_said), ours.say(&ours_said));
        let (theirs, mine) = (left.of(&theirs), right.of(&mine));
        if theirs != mine {
            let shown: String = step.chars().take(300).collect();
            let (first, other) = first_difference(&theirs, &mine);
            return Err(format!("{shown:?}\nmemcached: {first}\nours:      {other}\n"));
        }
    }
    Ok(())
}

/// The first lines that differ, each with the two lines before it.
fn first_difference(theirs: &str, mine: &str) -> (String, String) {
    let (theirs, mine): (Vec<_>, Vec<_>) = (theirs.lines().collect(), mine.lines().collect());
    let at = theirs.iter().zip(&mine).take_while(|(one, other)| one == other).count();
    let around = |lines: &[&str]| {
        let shown = &lines[at.saturating_sub(2)..lines.len().min(at + 1)];
        shown.join(" ")
    };
    (around(&theirs), around(&mine))
}

/// Scenarios: steps are separated by a line of dashes, and each line end stands for CR LF.
const STORIES: &[&str] = &[
    include_str!("stories/storing.txt"),
    include_str!("stories/numbers.txt"),
    include_str!("stories/mistakes.txt"),
    include_str!("stories/times.txt"),
];

#[test]
fn stories_are_answered_to_the_letter() {
    let memcached = Memcached::start_on_port(64).expect("memcached");
    let memory = Memory::default();
    let mut wrong = Vec::new();
    for story in STORIES {
        let steps: Vec<_> = story.split("----\n").map(|step| step.replace('\n', "\r\n")).collect();
        // Each step has a connection of its own, so that one difference does not hide others.
        for step in steps {
            wrong.extend(same(&memcached, &memory, &[step]).err());
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Input sent literally: line ends, spaces, NUL bytes, lengths at their limits.
#[test]
fn odd_bytes_are_answered_to_the_letter() {
    let memcached = Memcached::start_on_port(64).expect("memcached");
    let memory = Memory::default();
    let key = |count| "k".repeat(count);
    let value = |count| "v".repeat(count);
    let set = |key: &str, count: usize| format!("set {key} 0 0 {count}\r\n{}\r\n", value(count));
    let steps = [
        "get a\nversion\n".to_owned(),
        "\r\n".to_owned(),
        "\n".to_owned(),
        "   get   a   \r\n".to_owned(),
        "get a\0b\r\n".to_owned(),
        "set a 0 0 3\nabc\r\nget a\n".to_owned(),
        "set a 0 0 3\r\nabc\n\nget a\r\n".to_owned(),
        "set a 0 0 5\r\n\0\r\n\0x\r\nget a\r\n".to_owned(),
        "set a\tb 0 0 1\r\nx\r\nget a\tb\r\n".to_owned(),
        format!("{}get {}\r\n", set(&key(250), 1), key(250)),
        set(&key(251), 1),
        format!("get {}\r\n", key(251)),
        format!("get a {}\r\nget a\r\n", key(251)),
        format!("set large 0 0 1\r\nx\r\n{}get large\r\n", set("large", 1 << 20)),
        format!(
            "set large 0 0 1\r\nx\r\nadd large 0 0 1048576\r\n{}\r\nget large\r\n",
            value(1 << 20)
        ),
        format!("set large 0 0 1048576 noreply\r\n{}\r\nget large\r\n", value(1 << 20)),
        format!("{}append large 0 0 300000\r\n{}\r\n", set("large", 900_000), value(300_000)),
        format!("get {}\r\n", "a ".repeat(2_000)),
        format!("gat 0 {}\r\n", "a ".repeat(500)),
        format!("set {}\r\n", "a ".repeat(30)),
        format!("nonsense {}\r\n", "a".repeat(1_000)),
        "\u{80}\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nversion\r\n".to_owned(),
        "POST / HTTP/1.1\r\nContent-Length: 30\r\n\r\nset b 0 0 1\r\nx\r\nget b\r\n".to_owned(),
        "X HTTP/ y\r\nget HTTP/1.1\r\nnonsense xHTTP/1.1\r\n".to_owned(),
    ];
    let mut wrong = Vec::new();
    for step in steps {
        wrong.extend(same(&memcached, &memory, &[step]).err());
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Random requests, of valid and invalid words.
#[test]
fn random_conversations_are_answered_to_the_letter() {
    let memcached = Memcached::start_on_port(64).expect("memcached");
    let memory = Memory::default();
    let told = Config::default();
    let cases = told.cases.max(400);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..told });
    // So that no number for `cas` is the beginning of another one.
    let many = "set many 0 0 1\r\nx\r\n".repeat(10_000);
    same(&memcached, &memory, &[many]).expect("the same");
    let run = runner.run(&prop::collection::vec(line(), 1..12), |steps| {
        let steps: Vec<_> = std::iter::once("flush_all\r\n".to_owned()).chain(steps).collect();
        same(&memcached, &memory, &steps).map_err(TestCaseError::fail)
    });
    run.unwrap();
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![12 => classic(), 1 => "[ -~]{0,40}".prop_filter_map("ends", harmless)]
}

/// Random text must not be a command that changes the server, nor a meta command.
fn harmless(noise: String) -> Option<String> {
    let first = noise.split_whitespace().next().unwrap_or_default();
    let known = ["quit", "shutdown", "watch", "stats", "lru", "slabs", "lru_crawler", "extstore"];
    let is_meta = first.len() == 2 && first.starts_with('m');
    (!is_meta && !known.contains(&first) && !noise.contains('@')).then(|| format!("{noise}\r\n"))
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b")]
}

fn classic() -> impl Strategy<Value = String> {
    let number = || prop_oneof![Just("0"), Just("1"), Just("7"), Just("-1"), Just("x"), Just("99")];
    // No expiry time that could pass on one side only within the next second.
    let end = prop_oneof![Just("0"), Just("-1"), Just("x"), Just("99")];
    let value = prop_oneof!["[0-9]{1,3}", "[a-z][a-z ]{0,8}", Just(String::new())];
    let cas = prop_oneof![Just("@a@"), Just("@b@"), Just("0"), Just("@a-1@")];
    let noreply = prop_oneof![4 => Just(""), 1 => Just(" noreply"), 1 => Just(" other")];
    let verb = 0..12_u8;
    (verb, key(), number(), number(), end, value, cas, noreply).prop_map(
        |(verb, key, one, two, end, value, cas, noreply)| {
            let length = value.len();
            match verb {
                0 => format!("set {key} {one} 0 {length}{noreply}\r\n{value}\r\n"),
                1 => format!("add {key} {one} 0 {length}{noreply}\r\n{value}\r\n"),
                2 => format!("replace {key} {one} 0 {length}{noreply}\r\n{value}\r\n"),
                3 => format!("append {key} {one} 0 {length}{noreply}\r\n{value}\r\n"),
                4 => format!("prepend {key} {one} 0 {length}{noreply}\r\n{value}\r\n"),
                5 => format!("cas {key} {one} 0 {length} {cas}{noreply}\r\n{value}\r\n"),
                6 => format!("incr {key} {two}{noreply}\r\n"),
                7 => format!("decr {key} {two}{noreply}\r\n"),
                8 => format!("delete {key}{noreply}\r\n"),
                9 => format!("touch {key} {end}{noreply}\r\n"),
                10 => format!("gats {end} {key} b\r\n"),
                _ => format!("gets {key} b a\r\n"),
            }
        },
    )
}

/// The version that the scenarios were recorded with.
#[test]
fn the_version_is_that_of_the_stories() {
    let memcached = Memcached::start_on_port(64).expect("memcached");
    let heard = RealServer::connect(&memcached).say(b"version\r\n");
    assert!(heard.starts_with(b"VERSION 1.6."), "{:?}", Bytes::from(heard));
}
