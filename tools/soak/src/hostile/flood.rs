//! Those who send what is well-formed, and far too much of it. Each act is bounded, so that what is measured
//! is how honest visitors fare beside them, and not how much a machine can take; answers are hardly ever
//! read to their end.

use super::{Arena, Chance, DRIPS, HELD, exchange_bytes};
use std::io::{self, Write};
use std::thread;

/// Sends requests without end, and reads no answer.
pub fn pipelined(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let request = b"GET /item.php?id=7 HTTP/1.1\r\nHost: soak.test\r\n\r\n".repeat(500);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = arena.visit()?;
        stream.write_all(&request)?;
        held.push(stream);
    }
    thread::park_timeout(DRIPS);
    Ok(())
}

/// Addresses that nobody has asked for before: each is a render, and a page in memory.
pub fn keys(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let mut requests = String::new();
    for _ in 0..HELD * 4 {
        let (name, value) = (chance.below(1 << 30), chance.below(1 << 30));
        requests +=
            &format!("GET /item.php?id=9&q{name}={value} HTTP/1.1\r\nHost: soak.test\r\n\r\n");
    }
    arena.say(requests.as_bytes())
}

/// Sites that there are not.
pub fn hosts(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    for _ in 0..HELD {
        let host = chance.below(1 << 30);
        arena.say(
            format!("GET / HTTP/1.1\r\nHost: h{host}.test\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
    }
    Ok(())
}

/// Everything, in all dialects, by one who may not.
pub fn purges(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    for (method, line) in [
        ("PURGE", ""),
        ("PURGEKEYS", "xkey: item:1\r\n"),
        ("BAN", "X-Ban-Url: .*\r\n"),
        ("PURGEALL", ""),
        ("GET", "Cache-Group-Invalidation: \"item:1\"\r\nX-LiteSpeed-Purge: *\r\n"),
    ] {
        let stream = arena.visit()?;
        let text = format!(
            "{method} /item.php?id=1 HTTP/1.1\r\nHost: soak.test\r\n{line}Connection: close\r\n\r\n"
        );
        exchange_bytes(stream, text.as_bytes())?;
    }
    Ok(())
}

/// Opens connections, and sends nothing.
pub fn connections(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    (0..HELD * 8).try_for_each(|_| arena.visit().map(drop))
}
