//! Those who speak HTTP/2 (RFC 9113), frame by frame, in the clear.
//!
//! A frame is nine bytes (length, type, flags, stream) and what it carries; header sections are written
//! with the static table alone (RFC 7541), names by number, values as they are.

use super::{Arena, Chance, DRIPS, HOLDS, take};
use harness::Deadline;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, carries: &[u8]) -> Vec<u8> {
    let length = u32::try_from(carries.len()).unwrap_or(0).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(carries);
    bytes
}

/// `GET` of a path: `:method` and `:scheme` are numbers 2 and 6, `:path` and `:authority` 4 and 1.
fn get(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(4, path), (1, "soak.test")] {
        block.push(name);
        block.push(u8::try_from(value.len()).unwrap_or(0));
        block.extend_from_slice(value.as_bytes());
    }
    block
}

fn request(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &get(path))
}

/// A connection that has begun, with these settings.
fn begin(arena: &Arena, settings: &[u8]) -> io::Result<TcpStream> {
    let mut stream = arena.visit()?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat())?;
    Ok(stream)
}

fn send_all(mut stream: TcpStream, frames: &[u8]) -> io::Result<()> {
    stream.write_all(frames)?;
    take(&mut stream)
}

/// Asks, and takes it back in the same breath.
pub fn rapid_reset(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut frames = Vec::new();
    for number in 0..500 {
        let stream = number * 2 + 1;
        frames.extend(request(stream, "/fresh.php?id=11"));
        frames.extend(frame(RESET, 0, stream, &8_u32.to_be_bytes()));
    }
    send_all(begin(arena, &[])?, &frames)
}

/// A header section that goes on and on.
pub fn continuation(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut frames = frame(HEADERS, END_STREAM, 1, &get("/item.php?id=12"));
    let line = [&[0, 1, b'a', 100][..], &[b'v'; 100]].concat().repeat(20);
    for _ in 0..500 {
        frames.extend(frame(CONTINUATION, 0, 1, &line));
    }
    send_all(begin(arena, &[])?, &frames)
}

/// Each has to be acknowledged.
pub fn settings(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = begin(arena, &[])?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]).repeat(20_000))
}

/// Each has to be answered, and no answer is read.
pub fn pings(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = begin(arena, &[])?;
    stream.write_all(&frame(PING, 0, 0, &[7; 8]).repeat(20_000))
}

/// Long pages are asked for, and may not be sent.
pub fn no_window(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    let mut stream = begin(arena, &[0, 4, 0, 0, 0, 0])?;
    for number in 0..50 {
        stream.write_all(&request(number * 2 + 1, "/big.php"))?;
    }
    let until = Deadline::after(HOLDS);
    while !until.passed() && !arena.over.load(SeqCst) {
        // A byte of window now and then, so as not to seem dead.
        stream.write_all(&frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes()))?;
        thread::park_timeout(DRIPS);
    }
    Ok(())
}

/// Far more at once than are allowed.
pub fn streams(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let frames: Vec<u8> =
        (0..1_000).flat_map(|number| request(number * 2 + 1, "/item.php?id=13")).collect();
    send_all(begin(arena, &[])?, &frames)
}

/// A long value goes into the table once, and is meant by one byte thousands of times.
pub fn compression(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut block = get("/item.php?id=14");
    // A literal with indexing, of a new name; its value has 4,000 bytes (127 + 3,873).
    block.extend_from_slice(&[0x40, 1, b'b', 0x7f, 0xa1, 0x1e]);
    block.extend_from_slice(&[b'v'; 4_000]);
    block.extend_from_slice(&[0xbe; 8_000]);
    let frames = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block);
    send_all(begin(arena, &[])?, &frames)
}

/// Frames that the standard forbids, one kind at a time.
pub fn malformed(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let odd = [
        frame(DATA, END_STREAM, 0, b"on no stream"),
        frame(WINDOW_UPDATE, 0, 0, &[0; 4]),
        frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2),
        frame(HEADERS, END_HEADERS, 2, &get("/item.php?id=15")),
        frame(CONTINUATION, END_HEADERS, 1, &get("/item.php?id=15")),
        frame(SETTINGS, 0, 0, &[0; 5]),
        frame(0xff, 0xff, 1, &[0xff; 16_000]),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 100]),
        vec![0xff; 5_000],
    ];
    send_all(begin(arena, &[])?, &odd[chance.below(odd.len())])
}
