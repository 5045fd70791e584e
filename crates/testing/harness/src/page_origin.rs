//! A minimal HTTP origin: it answers every request with one page that may be cached for a long time.
//!
//! For measurements of the server in front of it. It ends with the program that started it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Starts an origin whose page has `bytes` bytes, with one thread per connection. Returns its address.
///
/// # Errors
/// Errors of the system.
pub fn page_origin(bytes: usize) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let page = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
         Cache-Control: max-age=36000\r\nETag: \"0123456789abcdef\"\r\n\
         Content-Length: {bytes}\r\n\r\n{}",
        "x".repeat(bytes)
    );
    let serve = move || {
        for stream in listener.incoming().flatten() {
            let page = page.clone();
            thread::spawn(move || answer(&stream, page.as_bytes()));
        }
    };
    thread::Builder::new().name("origin".into()).spawn(serve)?;
    Ok(address)
}

fn answer(mut stream: &TcpStream, page: &[u8]) {
    let mut lines = BufReader::new(stream).lines();
    // Requests have no content: a head, an answer, the next head.
    while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
        if stream.write_all(page).is_err() {
            return;
        }
    }
}
