//! One GET of a page, as a visitor without cookies who accepts gzip, in HTTP/1.0 so that the end of the
//! connection is the end of the answer. Bounded in time and bytes. It speaks HTTP in the clear only, and
//! blocks: nothing else is going on in `pagewell doctor`.

use doctor::Answer;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the connection, and each read of it, may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const ANSWER_BYTES: u64 = 4 << 20;

/// Asks for one page.
///
/// # Errors
/// When the address is none; a page that does not come is an answer without a status.
pub(super) fn ask(url: &str) -> Result<Answer, String> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| format!("--url {url}: write http://host/path; https is not asked for"))?;
    if url.contains(|c: char| c.is_ascii_control() || c == ' ') {
        return Err(format!("--url {url}: there is no blank in an address"));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let bytes = exchange(host, path).unwrap_or_default();
    Ok(answer(url, &bytes))
}

fn exchange(host: &str, path: &str) -> std::io::Result<Vec<u8>> {
    let place = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let address = place.to_socket_addrs()?.next();
    let address = address.ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    let request = format!(
        "GET /{path} HTTP/1.0\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\
         User-Agent: pagewell-doctor\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn answer(url: &str, bytes: &[u8]) -> Answer {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let field = |name: &str| fields.iter().find(|(is, _)| is == name).map(|(_, value)| *value);
    let cookies = fields.iter().filter(|(name, _)| name == "set-cookie");
    Answer {
        url: url.to_owned(),
        status,
        validator: field("etag").or(field("last-modified")).is_some(),
        cookies: cookies
            .filter_map(|(_, value)| Some(value.split_once('=')?.0.to_owned()))
            .collect(),
        cache_control: field("cache-control").map(str::to_owned),
        cache_status: field("cache-status").map(str::to_owned),
        bytes: bytes.len().saturating_sub(end + 4) as u64,
        compressed: field("content-encoding").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let bytes = b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nSet-Cookie: a=1; Path=/\r\n\
             Cache-Control: no-store\r\nContent-Encoding: gzip\r\n\r\nfour";
        let answer = answer("u", bytes);
        assert_eq!((answer.status, answer.validator, answer.bytes), (Some(200), true, 4));
        assert_eq!((answer.cookies, answer.compressed), (vec!["a".to_owned()], true));
        assert_eq!(answer.cache_control.as_deref(), Some("no-store"));
        assert_eq!(super::answer("u", b"").status, None);
        assert_eq!(super::answer("u", b"nonsense\r\n\r\n").status, None);
    }

    #[test]
    fn what_is_no_address_of_http_is_refused() {
        for url in ["https://a/", "a", "http://a/ b", "http://a/\r\nX: y"] {
            assert!(ask(url).is_err(), "{url:?}");
        }
    }
}
