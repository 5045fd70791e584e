//! An HTTP origin that the test plays byte by byte, so that each step can be observed.
//!
//! Reads have a timeout. Connections are accepted one by one, in order. The tests decide which results are
//! correct.

use super::{BOUND, Site, binary, until};
use harness::Pagewell;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

/// Pagewell in front of such an origin. The caller must drop the site last.
pub fn before_origin(config: &str) -> (Pagewell, TcpListener, Site) {
    let site = Site::new(&[]);
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = origin.local_addr().expect("bound");
    let text = format!("site.origin = \"http://{address}\"\n{config}\n");
    let file = site.at("origin.toml");
    std::fs::write(&file, text).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    (pagewell, origin, site)
}

/// Accepts a connection and reads the head of a request, in lower case.
pub fn asked(origin: &TcpListener) -> (TcpStream, String) {
    origin.set_nonblocking(true).expect("can be set");
    let mut came = None;
    until("the origin is asked", || {
        came = origin.accept().ok();
        came.is_some()
    });
    origin.set_nonblocking(false).expect("can be set");
    let (mut stream, _) = came.expect("a connection");
    stream.set_nonblocking(false).expect("can be set");
    stream.set_read_timeout(Some(BOUND)).expect("can be set");
    let head = asked_again(&mut stream);
    (stream, head)
}

/// Waits for the beginning of another request: on this connection, or on another one, which then takes its place.
/// Returns whether it came on the same. An idle connection is used again only if it is idle in time, and not for long.
pub fn comes_again(origin: &TcpListener, stream: &mut TcpStream) -> bool {
    let has_begun = |stream: &TcpStream| matches!(stream.peek(&mut [0]), Ok(1..));
    let mut others: Vec<TcpStream> = Vec::new();
    origin.set_nonblocking(true).expect("can be set");
    stream.set_nonblocking(true).expect("can be set");
    until("the origin is asked again", || {
        while let Ok((other, _)) = origin.accept() {
            other.set_nonblocking(true).expect("can be set");
            others.push(other);
        }
        has_begun(stream) || others.iter().any(has_begun)
    });
    origin.set_nonblocking(false).expect("can be set");
    let is_same = has_begun(stream);
    if !is_same {
        let asked = others.into_iter().find(has_begun);
        *stream = asked.expect("one of them");
        stream.set_read_timeout(Some(BOUND)).expect("can be set");
    }
    stream.set_nonblocking(false).expect("can be set");
    is_same
}

/// Reads the head of another request on the same connection, in lower case.
pub fn asked_again(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request");
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).to_ascii_lowercase()
}
