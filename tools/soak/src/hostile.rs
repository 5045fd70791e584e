//! Hostile clients, more than 24 kinds of them at once, each in a thread of its own.
//!
//! An act of a kind takes a second or two at most, and is followed by a pause: they are to be in the way
//! of honest visitors, and not to find out how many requests a machine can take. They come from another
//! address of loopback than honest visitors do. What Pagewell does to them is its business; that it ends
//! their connections is what they expect.

mod flood;
mod http2;
mod odd;
mod slow;

use super::site::Ports;
use harness::Chance;
use harness::Deadline;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Where they come from.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// How long a write, or the wait for an answer, may take.
const PATIENCE: Duration = Duration::from_millis(500);
/// After an act.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one that is slow, or does nothing, goes on.
const HOLDS: Duration = Duration::from_secs(3);
/// Between two bytes of one that is slow.
const DRIPS: Duration = Duration::from_millis(100);
/// How many connections one that holds them holds.
const HELD: usize = 8;

/// One kind: its name, and one act of it.
pub struct Kind {
    /// The name of this kind of client.
    pub name: &'static str,
    act: fn(&Arena, &mut Chance) -> io::Result<()>,
}

const fn kind(name: &'static str, act: fn(&Arena, &mut Chance) -> io::Result<()>) -> Kind {
    Kind { name, act }
}

/// All kinds of hostile clients.
pub const KINDS: [Kind; 36] = [
    kind("a header section that never ends (slowloris)", slow::head),
    kind("content byte by byte (slow POST)", slow::content),
    kind("chunks byte by byte", slow::chunks),
    kind("a response read byte by byte", slow::read),
    kind("connections that say nothing", slow::silent),
    kind("a request byte by byte", slow::whole),
    kind("half a request, and then the end", slow::half),
    kind("a WebSocket that is left half open", slow::websocket),
    kind("a TLS handshake that stops", slow::handshake),
    kind("a PROXY header that never ends", slow::proxied),
    kind("Expect: 100-continue, and gone", odd::expect),
    kind("gone in the middle of a response", odd::gone),
    kind("a header section of a megabyte", odd::huge_head),
    kind("ten thousand header lines", odd::many_lines),
    kind("a target of 100 KB", odd::long_target),
    kind("two framings in one request (smuggling)", odd::smuggling),
    kind("chunks that are none", odd::chunks),
    kind("a thousand ranges", odd::ranges),
    kind("30 KB of cookies", odd::cookies),
    kind("a thousand entity tags", odd::conditions),
    kind("random bytes", odd::garbage),
    kind("HTTP where TLS is spoken", odd::not_tls),
    kind("garbage in place of a PROXY header", odd::not_proxied),
    kind("pipelined requests, answers not read", flood::pipelined),
    kind("random queries (key flood)", flood::keys),
    kind("random hosts", flood::hosts),
    kind("purges without the right to", flood::purges),
    kind("connect and leave", flood::connections),
    kind("HTTP/2: reset at once (rapid reset)", http2::rapid_reset),
    kind("HTTP/2: endless CONTINUATION", http2::continuation),
    kind("HTTP/2: SETTINGS flood", http2::settings),
    kind("HTTP/2: PING flood", http2::pings),
    kind("HTTP/2: no window for answers", http2::no_window),
    kind("HTTP/2: a thousand streams", http2::streams),
    kind("HTTP/2: header compression bomb", http2::compression),
    kind("HTTP/2: frames that may not be", http2::malformed),
];

/// The servers that hostile clients attack.
pub struct Arena<'a> {
    visitors: SocketAddr,
    proxied: SocketAddr,
    secure: SocketAddr,
    over: &'a AtomicBool,
}

/// All of them at once, until `over`; returns how often each has acted.
pub fn all(ports: &Ports, seed: u64, over: &AtomicBool) -> Vec<(&'static str, u64)> {
    let acted: Vec<AtomicU64> = KINDS.iter().map(|_| AtomicU64::new(0)).collect();
    let arena = Arena {
        visitors: ports.visitors.address(),
        proxied: ports.proxied.address(),
        secure: ports.secure.address(),
        over,
    };
    thread::scope(|scope| {
        for (number, (kind, acted)) in KINDS.iter().zip(&acted).enumerate() {
            let arena = &arena;
            scope.spawn(move || {
                let mut chance = Chance::new(seed, 5_000 + number as u64);
                while !arena.over.load(SeqCst) {
                    // Pagewell may well end the connection: that is not counted as a fault of anybody.
                    let _ = (kind.act)(arena, &mut chance);
                    acted.fetch_add(1, SeqCst);
                    thread::park_timeout(PAUSE);
                }
            });
        }
    });
    KINDS.iter().zip(&acted).map(|(kind, acted)| (kind.name, acted.load(SeqCst))).collect()
}

/// So many connections that say nothing, and stay until they are dropped.
pub fn idle(ports: &Ports, count: usize) -> Vec<TcpStream> {
    (0..count).filter_map(|_| open(ports.visitors.address(), None).ok()).collect()
}

/// A connection from the address of hostile clients; `window`: how much it takes at once, in bytes.
fn open(to: SocketAddr, window: Option<usize>) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = window {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    bind(&socket, &SocketAddr::from((FROM, 0)))?;
    connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Arena<'_> {
    fn visit(&self) -> io::Result<TcpStream> {
        open(self.visitors, None)
    }

    /// Sends something over a connection of its own, and reads what comes back within its patience.
    fn say(&self, bytes: &[u8]) -> io::Result<()> {
        exchange_bytes(self.visit()?, bytes)
    }

    /// Opens connections that each begin with these bytes, and then drip others, until Pagewell has
    /// ended all of them, or for a while.
    fn drip(&self, to: SocketAddr, begin: &[u8], drop: &[u8]) -> io::Result<()> {
        let mut held = Vec::new();
        for _ in 0..HELD {
            let mut stream = open(to, None)?;
            stream.write_all(begin)?;
            held.push(stream);
        }
        let until = Deadline::after(HOLDS);
        while !held.is_empty() && !until.passed() && !self.over.load(SeqCst) {
            held.retain_mut(|stream| stream.write_all(drop).is_ok());
            thread::park_timeout(DRIPS);
        }
        Ok(())
    }
}

fn exchange_bytes(mut stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    take(&mut stream)
}

/// Reads until nothing comes any more, and no more than a megabyte.
fn take(stream: &mut TcpStream) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    for _ in 0..64 {
        if stream.read(&mut piece)? == 0 {
            break;
        }
    }
    stream.shutdown(Shutdown::Both)
}
