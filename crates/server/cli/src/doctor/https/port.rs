//! The answer to a challenge that nobody has begun, at one address of a host.
//!
//! Pagewell says of it that it has no such challenge (`acme-challenge` in `Cache-Status`). For TLS only the connection
//! is tried: the handshake for a host without a certificate fails. Bounds: the header section has at most
//! [`HEAD_BYTES_MAX`], and all of it the time of the caller.

use super::Deadline;
use doctor::PortAnswer;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The longest header section that is read, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The longest text of a server that is shown.
const SHOWN_MAX: usize = 200;

/// Requests a challenge of a host; without one, the connection alone counts.
pub(super) fn answer(at: SocketAddr, host: Option<&str>, deadline: Deadline) -> PortAnswer {
    let stream = deadline.wait().and_then(|wait| TcpStream::connect_timeout(&at, wait));
    let head = match (stream, host) {
        (Ok(_), None) => return PortAnswer::Pagewell,
        (Ok(stream), Some(host)) => head(stream, host, deadline),
        (Err(error), _) => Err(error),
    };
    match head {
        Ok(head) => judged(&head),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            PortAnswer::Silent("it took too long".into())
        }
        Err(error) => PortAnswer::Silent(error.to_string()),
    }
}

fn head(mut stream: TcpStream, host: &str, deadline: Deadline) -> std::io::Result<String> {
    let request = format!(
        "GET /.well-known/acme-challenge/pagewell-doctor HTTP/1.1\r\nHost: {host}\r\n\
         User-Agent: pagewell-doctor\r\nConnection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(deadline.wait()?))?;
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            return Ok(String::from_utf8_lossy(&bytes[..end]).into_owned());
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(Error::other("an endless header section"));
        }
        stream.set_read_timeout(Some(deadline.wait()?))?;
        match stream.read(&mut piece)? {
            0 => return Err(Error::other("the connection was closed without an answer")),
            count => bytes.extend(&piece[..count]),
        }
    }
}

fn judged(head: &str) -> PortAnswer {
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/")?.split(' ').nth(1));
    let Some(status) = status.and_then(|status| status.parse::<u16>().ok()) else {
        return PortAnswer::Silent("it is no HTTP".into());
    };
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(is, _)| is.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    };
    let is_ours = |status: &str| status.contains("detail=acme-challenge");
    if field("cache-status").is_some_and(is_ours) {
        return PortAnswer::Pagewell;
    }
    match field("location").filter(|_| (300..400).contains(&status)) {
        Some(location) => PortAnswer::Redirect(shown(location)),
        None => PortAnswer::Other(status, field("server").map(shown)),
    }
}

/// The text of a server, for a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(SHOWN_MAX).collect()
}

#[test]
fn an_answer_is_judged() {
    let of = |text: &str| judged(&text.replace('\n', "\r\n"));
    let ours = "HTTP/1.1 404 Not Found\nCache-Status: Pagewell; detail=acme-challenge";
    assert_eq!(of(ours), PortAnswer::Pagewell);
    let to = "HTTP/1.1 301 x\nlocation: https://a.org/\x1b[2J";
    assert_eq!(of(to), PortAnswer::Redirect("https://a.org/[2J".into()));
    let other = "HTTP/1.1 404 x\nServer: nginx";
    assert_eq!(of(other), PortAnswer::Other(404, Some("nginx".into())));
    assert_eq!(of("HTTP/1.1 200 OK"), PortAnswer::Other(200, None));
    assert_eq!(of("SSH-2.0-OpenSSH"), PortAnswer::Silent("it is no HTTP".into()));
    assert_eq!(of(""), PortAnswer::Silent("it is no HTTP".into()));
}
