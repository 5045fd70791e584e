//! The cases of h2spec, the public conformance test for HTTP/2, on a plain port: `h2spec.txt` has one in each row.
//!
//! Frames, with stream, flags (`e` END_STREAM, `h` END_HEADERS, `d` padded by 8 bytes, `i` padded by more than there is,
//! `p` with a priority, `s` depending on itself) and content:
//!
//! | word | frame | word | frame |
//! |---|---|---|---|
//! | `H1.eh.get+x:y` | HEADERS with a block | `D1.e.4` | DATA of 4 bytes |
//! | `C1.h.dummy` | CONTINUATION with a block | `R1.8` | RST_STREAM with a code |
//! | `U1.get` | PUSH_PROMISE | `P3.1`, `P1.x0` | PRIORITY: depends on, exclusively |
//! | `S.4=0,5=1` | SETTINGS | `W1.100` | WINDOW_UPDATE |
//! | `G.0` | GOAWAY | `PING` | PING |
//! | `X0000…` | these bytes | `many` | one stream more than are allowed |
//!
//! `ack`, `end` and `data` wait for the answer to the settings, the end of a stream, and a DATA frame. A row that begins
//! with `first` has no handshake before it. Then follows an error of the connection or of a stream with one of the
//! codes, or the end of the connection; or the frame that is named (`data1`: DATA of one byte).

use acceptance::http2::PREFACE;
use acceptance::http2::kind::{
    CONTINUATION, DATA, GOAWAY, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use acceptance::{Frames, Site, client};
use harness::Pagewell;
use std::io::{ErrorKind, Read, Write};

const PRIORITY: u8 = 2;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
/// The identifier of SETTINGS_MAX_CONCURRENT_STREAMS.
const MAX_STREAMS: u16 = 3;
const ASKED: &[u8; 8] = b"h2spec\0\0";

/// A connection of one case.
struct Case<'c> {
    frames: Frames,
    path: &'c str,
    streams_max: u32,
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("two digits");
    (0..hexadecimal.len()).step_by(2).map(digits).collect()
}

/// A field as a literal without indexing (RFC 7541 section 6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 127);
        [&[length.expect("short")], text.as_bytes()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}

impl Case<'_> {
    fn request(&self, method: &str) -> Vec<u8> {
        let fields = [(":method", method), (":scheme", "http"), (":path", self.path)];
        let fields = fields.iter().chain(&[(":authority", "a.test")]);
        fields.flat_map(|(name, value)| field(name, value)).collect()
    }

    fn block(&self, text: &str) -> Vec<u8> {
        let part = |part: &str| match part {
            "none" => Vec::new(),
            "get" => self.request("GET"),
            "head" => self.request("HEAD"),
            "post" => self.request("POST"),
            "dummy" => field("x-dummy0", "a value"),
            "big" => (0..200).flat_map(|_| field("x-dummy", &"v".repeat(100))).collect(),
            part => match part.strip_prefix("hex:") {
                Some(hexadecimal) => bytes_of(hexadecimal),
                None => {
                    let at = part[1..].find(':').expect("a field") + 1;
                    field(&part[..at], &part[at + 1..].replace('_', " "))
                }
            },
        };
        text.split('+').flat_map(part).collect()
    }

    /// Sends a HEADERS frame, or one with a block like it.
    fn headers(&mut self, kind: u8, stream: u32, flags: &str, block: &str) {
        let block = self.block(block);
        let (mut bits, mut payload) = (0, Vec::new());
        for flag in flags.chars() {
            match flag {
                'e' => bits |= 0x1,
                'h' => bits |= 0x4,
                'd' => (bits, payload) = (bits | 0x8, vec![8]),
                'i' => {
                    (bits, payload) =
                        (bits | 0x8, vec![u8::try_from(block.len()).expect("short") + 2])
                }
                'p' => (bits, payload) = (bits | 0x20, vec![0, 0, 0, 0, 255]),
                's' => {
                    (bits, payload) = (bits | 0x20, [&stream.to_be_bytes()[..], &[255]].concat())
                }
                other => panic!("no flag: {other}"),
            }
        }
        payload.extend_from_slice(&block);
        payload.resize(payload.len() + if flags.contains('d') { 8 } else { 0 }, 0);
        self.frames.send(kind, bits, stream, &payload);
    }

    fn settings(&mut self, text: &str) {
        let setting = |setting: &str| {
            let (id, value) = setting.split_once('=').expect("a setting");
            [
                &u16::try_from(number(id)).expect("short").to_be_bytes()[..],
                &number(value).to_be_bytes(),
            ]
            .concat()
        };
        let payload: Vec<u8> = text.split(',').flat_map(setting).collect();
        self.frames.send(SETTINGS, 0, 0, &payload);
    }

    /// Sends what a word stands for, or waits. The connection may have ended.
    fn run(&mut self, word: &str) {
        match word {
            "PING" => drop(self.frames.send(PING, 0, 0, ASKED)),
            "ack" => drop(self.until(|kind, flags, _| kind == SETTINGS && flags & 1 == 1)),
            "end" => drop(
                self.until(|kind, flags, _| (kind == DATA || kind == HEADERS) && flags & 1 == 1),
            ),
            "data" => drop(self.until(|kind, _, _| kind == DATA)),
            "many" => {
                (0..=self.streams_max).for_each(|at| self.headers(HEADERS, 2 * at + 1, "eh", "get"))
            }
            _ => self.frame(word),
        }
    }

    fn frame(&mut self, word: &str) {
        let (kind, rest) = word.split_at(1);
        if kind == "X" {
            drop(self.frames.stream.write_all(&bytes_of(rest)));
            return;
        }
        let (stream, rest) = rest.split_once('.').expect("a stream");
        let stream = if stream.is_empty() { 0 } else { number(stream) };
        let (flags, content) = rest.split_once('.').unwrap_or(("", rest));
        let send = match kind {
            "H" => return self.headers(HEADERS, stream, flags, content),
            "C" => return self.headers(CONTINUATION, stream, flags, content),
            "S" => return self.settings(rest),
            "D" => (DATA, u8::from(flags == "e"), vec![b't'; number(content) as usize]),
            "R" => (RST_STREAM, 0, number(rest).to_be_bytes().to_vec()),
            "W" => (WINDOW_UPDATE, 0, number(rest).to_be_bytes().to_vec()),
            "G" => (GOAWAY, 0, [[0; 4], number(rest).to_be_bytes()].concat()),
            "U" => (PUSH_PROMISE, 4, [3_u32.to_be_bytes().to_vec(), self.block(rest)].concat()),
            "P" => {
                let exclusive = if rest.starts_with('x') { 1 << 31 } else { 0 };
                let on = number(rest.trim_start_matches('x')) | exclusive;
                (PRIORITY, 0, [&on.to_be_bytes()[..], &[255]].concat())
            }
            other => panic!("no frame: {other}"),
        };
        let (kind, flags, payload) = send;
        self.frames.send(kind, flags, stream, &payload);
    }

    /// Reads frames until one is `right`. Returns its payload, or what came instead.
    fn until(&mut self, right: impl Fn(u8, u8, &[u8]) -> bool) -> Result<Vec<u8>, String> {
        let mut last = "nothing".to_owned();
        while let Some((kind, flags, stream, payload)) = self.frames.next_frame() {
            if right(kind, flags, &payload) {
                return Ok(payload);
            }
            last = format!(
                "type {kind}, flags {flags}, stream {stream}: {:?}",
                &payload[..payload.len().min(16)]
            );
        }
        Err(format!("the end after {last}"))
    }

    /// Checks what follows.
    fn expect(&mut self, expected: &str) -> Result<(), String> {
        let mut words = expected.split(' ');
        let word = words.next().expect("a word");
        let codes: Vec<u32> = words.map(number).collect();
        let has_code = |payload: &[u8]| {
            let code = payload.last_chunk().map(|code| u32::from_be_bytes(*code));
            code.is_some_and(|code| codes.contains(&code))
        };
        let is_answer =
            |kind, flags, payload: &[u8]| kind == PING && flags == 1 && payload == ASKED;
        let found = match word {
            "conn" => self.until(|kind, _, payload| kind == GOAWAY && has_code(&payload[4..8])),
            "stream" => self.until(|kind, _, payload| match kind {
                GOAWAY => has_code(&payload[4..8]),
                RST_STREAM => has_code(payload),
                _ => false,
            }),
            "closed" => self.until(|_, _, _| false),
            "goaway" => self.until(|kind, _, _| kind == GOAWAY),
            "ping-or-closed" => self.until(is_answer),
            "ping" if self.until(is_answer).is_ok() => return Ok(()),
            "headers" if self.until(|kind, _, _| kind == HEADERS).is_ok() => return Ok(()),
            "settings" if self.until(|kind, _, _| kind == SETTINGS).is_ok() => return Ok(()),
            "ack" if self.until(|kind, flags, _| kind == SETTINGS && flags == 1).is_ok() => {
                return Ok(());
            }
            "data" if self.until(|kind, _, _| kind == DATA).is_ok() => return Ok(()),
            "data1" => match self.until(|kind, _, _| kind == DATA)? {
                payload if payload.len() == 1 => return Ok(()),
                payload => return Err(format!("{} bytes", payload.len())),
            },
            _ => return Err("the end".to_owned()),
        };
        // The end of the connection is an error of the connection, too; silence is none.
        found.map(drop).or_else(|instead| {
            let mut byte = [0];
            let read = self.frames.stream.read(&mut byte);
            let is_silent = read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            if word != "goaway" && !is_silent { Ok(()) } else { Err(instead) }
        })
    }
}

/// Runs a row on a connection of its own.
fn run(pagewell: &Pagewell, path: &str, words: &str, expected: &str) -> Result<(), String> {
    let mut case = Case { frames: Frames::connect(pagewell), path, streams_max: 0 };
    if words.starts_with('X') && words.ends_with("first-not") {
        let bytes = bytes_of(words.split(' ').next().expect("a word")[1..].trim());
        case.frames.stream.write_all(&bytes).expect("sent");
        return case.expect(expected);
    }
    case.frames.stream.write_all(PREFACE).expect("sent");
    case.settings("4=65535");
    if words == "first" {
        return case.expect(expected);
    }
    let payload = case.until(|kind, flags, _| kind == SETTINGS && flags == 0)?;
    let setting = |id: u16| {
        let mut all = payload.chunks_exact(6).filter(|one| one[..2] == id.to_be_bytes());
        all.next().and_then(|one| one.last_chunk()).map(|value| u32::from_be_bytes(*value))
    };
    case.streams_max = setting(MAX_STREAMS).expect("a limit of streams");
    case.frames.send(SETTINGS, 1, 0, &[]);
    case.until(|kind, flags, _| kind == SETTINGS && flags == 1)?;
    words.split(' ').for_each(|word| case.run(word));
    case.expect(expected)
}

#[test]
fn every_case_of_h2spec_for_plain_hits_and_for_other_responses() {
    let site = Site::new(&[
        ("page.php", "<?php keep(); echo 'a page';"),
        ("other.php", "<?php header('Cache-Control: no-store'); echo 'a page';"),
    ]);
    let pagewell = site.serve("");
    for _ in 0..2 {
        client(&pagewell).host("a.test").get("/page.php").expect("an answer");
    }
    let (mut wrong, mut cases) = (Vec::new(), 0);
    for row in include_str!("h2spec.txt").lines().filter(|row| !row.starts_with('#')) {
        let [section, words, expected] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("no row: {row}");
        };
        for path in ["/page.php", "/other.php"] {
            cases += 1;
            if let Err(instead) = run(&pagewell, path, words, expected) {
                wrong.push(format!("{section} {path}: {words} => {expected}, not {instead}"));
            }
        }
    }
    assert_eq!(cases, 2 * 147);
    assert_eq!(wrong, [""; 0], "{} of {cases}", wrong.len());
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").status, 200);
}
