//! Those who hold connections by being slow, or by saying nothing: what Pagewell has to give up of its own
//! accord, because nothing ever goes wrong with it. An act is over when all its connections have been
//! ended, or after a few seconds.

use super::{Arena, Chance, DRIPS, HELD, HOLDS, open, take};
use harness::Deadline;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

/// Header lines without an end.
pub fn head(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    arena.drip(arena.visitors, b"GET /item.php?id=1 HTTP/1.1\r\nHost: soak.test\r\nX-A: ", b"a")
}

/// Content of a length that is never reached.
pub fn content(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let begin = b"POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\n\
        Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n";
    arena.drip(arena.visitors, begin, b"a")
}

/// Chunks of one byte.
pub fn chunks(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let begin = b"POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    arena.drip(arena.visitors, begin, b"1\r\na\r\n")
}

/// Requests long pages, and reads a byte at a time.
pub fn read(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut held = Vec::new();
    for _ in 0..HELD {
        let mut stream = open(arena.visitors, Some(2 << 10))?;
        stream.write_all(b"GET /big.php HTTP/1.1\r\nHost: soak.test\r\n\r\n")?;
        held.push(stream);
    }
    hold(arena, held, |stream| stream.read(&mut [0]).is_ok_and(|count| count > 0))
}

/// Connects, and never sends a byte.
pub fn silent(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let held: io::Result<Vec<_>> = (0..HELD * 4).map(|_| arena.visit()).collect();
    hold(arena, held?, |_| true)
}

/// A request as it should be, byte by byte.
pub fn whole(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = arena.visit()?;
    for byte in b"GET /item.php?id=2 HTTP/1.1\r\nHost: soak.test\r\nConnection: close\r\n\r\n" {
        stream.write_all(&[*byte])?;
    }
    take(&mut stream)
}

/// Half of one, and no more to come.
pub fn half(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = arena.visit()?;
    stream.write_all(b"POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\nContent-Le")?;
    stream.shutdown(Shutdown::Write)?;
    take(&mut stream)
}

/// The protocol changes, and then nothing is said.
pub fn websocket(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = arena.visit()?;
    stream.write_all(
        b"GET /websocket HTTP/1.1\r\nHost: bad.test\r\nConnection: upgrade\r\n\
          Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
          Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )?;
    let mut piece = [0; 512];
    let _ = stream.read(&mut piece)?;
    stream.shutdown(Shutdown::Write)?;
    hold(arena, vec![stream], |_| true)
}

/// The beginning of a ClientHello.
pub fn handshake(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    arena.drip(arena.secure, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3], &[7])
}

/// The beginning of a PROXY header. It comes from nobody who may send one, or from one who may.
pub fn proxied(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    if chance.one_in(2) {
        return arena.drip(arena.proxied, b"PROXY TCP4 127.0.0.3 ", b"1");
    }
    let mut stream = TcpStream::connect(arena.proxied)?;
    stream.set_read_timeout(Some(super::PATIENCE))?;
    stream.write_all(b"PROXY TCP4 127.0.0.3 127.0.0.1 1")?;
    take(&mut stream)
}

/// Holds connections as long as `on` says so of them.
fn hold(
    arena: &Arena,
    mut held: Vec<TcpStream>,
    on: impl Fn(&mut TcpStream) -> bool,
) -> io::Result<()> {
    let until = Deadline::after(HOLDS);
    while !held.is_empty() && !until.passed() && !arena.over.load(SeqCst) {
        held.retain_mut(&on);
        thread::park_timeout(DRIPS);
    }
    Ok(())
}
