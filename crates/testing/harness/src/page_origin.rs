//! Minimal HTTP origins: one answers every request with the same page, one with HTML that has another nonce in each
//! answer. Their pages may be cached for ten hours.
//!
//! For measurements of the server in front of them. They end with the program that started them.

use random_number::random_number;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Stands for the nonce of a page: 16 hexadecimal digits, as of a number.
const NONCE: &str = "0123456789abcdef";
/// The words of HTML pages, and how many of them make a paragraph.
const TEXT: [&str; 7] = ["the", "editors", "of", "this", "site", "write", "articles"];
const PARAGRAPH: usize = 20;

/// Starts an origin whose page has `bytes` bytes, with one thread per connection. Returns its address.
///
/// # Errors
/// Errors of the system.
pub fn page_origin(bytes: usize) -> io::Result<SocketAddr> {
    start(response("ETag: \"0123456789abcdef\"\r\n", &"x".repeat(bytes)), None)
}

/// Starts an origin whose page is HTML of `words` words. At two thirds of it is a form whose nonce is another one in each
/// answer. Returns its address, and the length of the content in bytes.
///
/// # Errors
/// Errors of the system.
pub fn nonce_origin(words: usize) -> io::Result<(SocketAddr, usize)> {
    let mut content = String::from("<!doctype html>\n<title>Articles</title>\n");
    for (number, word) in TEXT.iter().copied().cycle().take(words).enumerate() {
        if number == words * 2 / 3 {
            content += "\n<form><input type=\"hidden\" name=\"nonce\" value=\"";
            content += NONCE;
            content += "\"></form>";
        }
        content += if number.is_multiple_of(PARAGRAPH) { "\n<p>" } else { " " };
        content += word;
    }
    let response = response("", &content);
    let nonce_at = response.find(NONCE);
    Ok((start(response, nonce_at)?, content.len()))
}

/// A response with this content and these further header lines.
fn response(lines: &str, content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
         Cache-Control: max-age=36000\r\n{lines}Content-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

/// Starts an origin with this response, whose nonce begins at this byte.
fn start(response: String, nonce_at: Option<usize>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let serve = move || {
        for stream in listener.incoming().flatten() {
            let response = response.clone().into_bytes();
            thread::spawn(move || answer(&stream, response, nonce_at));
        }
    };
    thread::Builder::new().name("origin".into()).spawn(serve)?;
    Ok(address)
}

fn answer(mut stream: &TcpStream, mut response: Vec<u8>, nonce_at: Option<usize>) {
    let mut lines = BufReader::new(stream).lines();
    // Requests have no content: a head, an answer, the next head.
    while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
        if let Some(at) = nonce_at {
            let nonce = format!("{:016x}", random_number());
            response[at..at + NONCE.len()].copy_from_slice(nonce.as_bytes());
        }
        if stream.write_all(&response).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[test]
    fn answers_with_a_nonce_differ_in_it_alone() {
        let (address, bytes) = nonce_origin(4_000).expect("an origin");
        let mut client = Client::new(address);
        let mut parts = || {
            let answer = client.get("/").expect("an answer");
            assert_eq!((answer.status, answer.content.len()), (200, bytes));
            let text = answer.text();
            let at = text.find("value=\"").expect("a form") + "value=\"".len();
            let (before, rest) = text.split_at(at);
            let (nonce, after) = rest.split_at(NONCE.len());
            assert!(after.starts_with("\"></form>") && before.len() > after.len());
            (nonce.to_owned(), before.to_owned() + after)
        };
        let (first, second) = (parts(), parts());
        assert_ne!(first.0, second.0);
        assert_eq!(first.1, second.1);
    }
}
