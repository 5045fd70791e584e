//! Those who send what is too large, malformed, or to be read in two ways; and those who leave. An act is
//! one connection, with one thing that is wrong; where there are several kinds of it they are drawn. What
//! comes back is read and not judged: that an honest visitor is served all the same is.

use super::{Arena, Chance, exchange_bytes, open, take};
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Waits for `100 Continue`, and leaves.
pub fn expect(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = arena.visit()?;
    stream.write_all(
        b"POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\nContent-Length: 100\r\n\
          Expect: 100-continue\r\n\r\n",
    )?;
    stream.read(&mut [0; 64]).map(|_| ())
}

/// A few bytes of a long page, and the connection is reset.
pub fn gone(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let mut stream = arena.visit()?;
    stream.write_all(b"GET /big.php HTTP/1.1\r\nHost: soak.test\r\n\r\n")?;
    let _ = stream.read(&mut [0; 100])?;
    Ok(sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?)
}

fn get(lines: &str) -> Vec<u8> {
    format!("GET /item.php?id=3 HTTP/1.1\r\nHost: soak.test\r\n{lines}\r\n").into_bytes()
}

/// One line of a megabyte.
pub fn huge_head(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    arena.say(&get(&format!("X-A: {}\r\n", "a".repeat(1 << 20))))
}

/// Short lines, and many.
pub fn many_lines(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    arena.say(&get(&"X-A: a\r\n".repeat(10_000)))
}

/// Beyond what any target may have.
pub fn long_target(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let path = "a".repeat(100_000);
    arena.say(format!("GET /{path} HTTP/1.1\r\nHost: soak.test\r\n\r\n").as_bytes())
}

/// Requests that two readers would understand in two ways.
pub fn smuggling(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let framings = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: +4\r\n",
        "Content-Length : 4\r\n",
        "X: a\r\n Content-Length: 4\r\n",
        "X: a\nContent-Length: 4\r\n",
    ];
    let framing = framings[chance.below(framings.len())];
    let smuggled = "0\r\n\r\nGET /fresh.php?id=5 HTTP/1.1\r\nHost: soak.test\r\n\r\n";
    arena.say(
        format!(
            "POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\n{framing}\r\n{smuggled}"
        )
        .as_bytes(),
    )
}

/// Sizes, extensions and ends as no grammar has them.
pub fn chunks(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let odd = [
        "ffffffffffffffffff\r\na\r\n0\r\n\r\n".to_owned(),
        format!("1;{}\r\na\r\n0\r\n\r\n", "e=f;".repeat(20_000)),
        "1\r\nabc\r\n0\r\n\r\n".to_owned(),
        "-1\r\na\r\n0\r\n\r\n".to_owned(),
        "1\na\n0\n\n".to_owned(),
        format!("0\r\n{}\r\n", "X-T: a\r\n".repeat(20_000)),
    ];
    let head = "POST /write.php?id=0&value=0 HTTP/1.1\r\nHost: soak.test\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    arena.say(format!("{head}{}", odd[chance.below(odd.len())]).as_bytes())
}

/// Of a long page, so that each would be a part of the answer.
pub fn ranges(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    let ranges: Vec<String> = (0..1_000).map(|at| format!("{at}-")).collect();
    let lines = format!("Range: bytes={}\r\n", ranges.join(","));
    arena.say(format!("GET /big.php HTTP/1.1\r\nHost: soak.test\r\n{lines}\r\n").as_bytes())
}

/// As many as a request may have.
pub fn cookies(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let one =
        |number: usize| format!("c{number}{}={}; ", chance.clone().below(1000), "v".repeat(900));
    let all: String = (0..32).map(one).collect();
    arena.say(&get(&format!("Cookie: {all}z=1\r\n")))
}

/// Each to be compared with the page's.
pub fn conditions(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let tags: Vec<String> =
        (0..1_000).map(|at| format!("\"{at}-{}\"", chance.below(1 << 20))).collect();
    arena.say(&get(&format!("If-None-Match: {}\r\n", tags.join(", "))))
}

/// Nothing that anybody could read.
pub fn garbage(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let bytes: Vec<u8> = (0..4_000).map(|_| u8::try_from(chance.below(256)).unwrap_or(0)).collect();
    arena.say(&bytes)
}

/// A request in the clear.
pub fn not_tls(arena: &Arena, _: &mut Chance) -> io::Result<()> {
    exchange_bytes(open(arena.secure, None)?, &get(""))
}

/// From one who may send the header, and sends something else.
pub fn not_proxied(arena: &Arena, chance: &mut Chance) -> io::Result<()> {
    let mut version2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff".to_vec();
    version2.extend_from_slice(&[0; 5_000]);
    let odd = [
        get(""),
        b"PROXY TCP4 999.0.0.1 127.0.0.1 1 1\r\n".to_vec(),
        b"PROXY UNKNOWN\r\nGET / HTTP/1.1\r\n\r\n".to_vec(),
        version2,
        vec![b'P'; 5_000],
    ];
    let mut stream = TcpStream::connect(arena.proxied)?;
    stream.set_read_timeout(Some(super::PATIENCE))?;
    stream.write_all(&odd[chance.below(odd.len())])?;
    take(&mut stream)
}
