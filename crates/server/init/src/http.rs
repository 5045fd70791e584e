//! One request of `init --verify`: the status and the header section of the response. The content is not read.
//!
//! Over TLS any certificate is accepted, because the requests contain nothing confidential; whether clients trust it
//! is a check of its own ([`ProbedPlace::trust`]). Time and size are bounded. The calls block.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Time limit for the connection, and for each read and write.
const WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of a header section.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// A connection in both directions.
pub trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// Starts TLS on a connection, with the host for SNI.
pub type StartTls<'a> = &'a dyn Fn(&str, TcpStream) -> io::Result<Box<dyn Duplex>>;

/// Verifies the certificate of the server at the other end of a connection for a host, as a browser does. The error
/// is a sentence.
pub type VerifyTls<'a> = &'a dyn Fn(&str, TcpStream) -> Result<(), String>;

/// A place at which the site is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPlace {
    /// Whether the connection is over TLS.
    pub secure: bool,
    /// The address to connect to; `None`: that of the host.
    pub address: Option<SocketAddr>,
    /// The value of `Host`.
    pub authority: String,
    /// The path with its query.
    pub path: String,
}

/// The beginning of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code of the response.
    pub status: u16,
    fields: Vec<(String, String)>,
}

impl ProbedPlace {
    /// The place of a URL.
    ///
    /// # Errors
    /// It is not a URL of HTTP: a sentence.
    pub fn of_url(url: &str) -> Result<ProbedPlace, String> {
        let wrong = || format!("--url {url}: write http://host/path or https://host/path");
        if url.contains(|c: char| c.is_control() || c == ' ') {
            return Err(wrong());
        }
        let plain = url.strip_prefix("http://").map(|rest| (false, rest));
        let secure = || url.strip_prefix("https://").map(|rest| (true, rest));
        let (secure, rest) = plain.or_else(secure).ok_or_else(wrong)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() {
            return Err(wrong());
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(ProbedPlace {
            secure,
            address: None,
            authority: authority.to_ascii_lowercase(),
            path: format!("{slash}{path}"),
        })
    }

    /// The URL of this place.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The same place with another path.
    #[must_use]
    pub fn with_path(&self, path: &str) -> ProbedPlace {
        ProbedPlace { path: path.to_owned(), ..self.clone() }
    }

    /// The place of a redirect, if it is the same host. Another scheme is at its usual port.
    #[must_use]
    pub fn redirected(&self, location: &str) -> Option<ProbedPlace> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(self.with_path(location));
        }
        let next = ProbedPlace::of_url(location).ok()?;
        if next.host() != self.host() {
            return None;
        }
        let port = if next.secure { 443 } else { 80 };
        let address = match (self.address, next.secure == self.secure) {
            (Some(address), true) => Some(address),
            (Some(address), false) => Some(SocketAddr::new(address.ip(), port)),
            (None, _) => None,
        };
        Some(ProbedPlace { address, ..next })
    }

    /// The host without its port.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }

    fn address(&self) -> io::Result<SocketAddr> {
        if let Some(address) = self.address {
            return Ok(address);
        }
        let port = if self.secure { 443 } else { 80 };
        let has_port = self.host() != self.authority;
        let named =
            if has_port { self.authority.clone() } else { format!("{}:{port}", self.authority) };
        named.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable.into())
    }

    /// Verifies the certificate of this place.
    ///
    /// # Errors
    /// No connection, or clients do not trust the certificate: a sentence.
    pub fn trust(&self, verify: VerifyTls<'_>) -> Result<(), String> {
        let stream = self.connect().map_err(|error| error.to_string())?;
        verify(self.name(), stream)
    }

    /// The host for SNI.
    fn name(&self) -> &str {
        self.host().trim_start_matches('[').trim_end_matches(']')
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address()?, WITHIN)?;
        stream.set_read_timeout(Some(WITHIN))?;
        stream.set_write_timeout(Some(WITHIN))?;
        Ok(stream)
    }

    /// Sends a request without content, with these header lines, and reads the beginning of its response.
    ///
    /// # Errors
    /// There was no response.
    pub fn request(
        &self,
        method: &str,
        lines: &str,
        tls: StartTls<'_>,
    ) -> io::Result<ResponseHead> {
        let stream = self.connect()?;
        let mut stream: Box<dyn Duplex> =
            if self.secure { tls(self.name(), stream)? } else { Box::new(stream) };
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: pagewell-init\r\n{lines}Connection: close\r\n\r\n",
            self.path, self.authority
        );
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        read_head(stream)
    }
}

fn read_head(stream: impl Read) -> io::Result<ResponseHead> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    let mut stream = stream.take(HEAD_BYTES_MAX);
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if bytes.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.split("\r\n\r\n").next().unwrap_or_default().split("\r\n");
    let status =
        lines.next().and_then(|line| line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok());
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    match status {
        Some(status) => Ok(ResponseHead { status, fields }),
        None => Err(io::Error::new(ErrorKind::InvalidData, "the response is not HTTP")),
    }
}

impl ResponseHead {
    /// The first field with this name, in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    /// The entry of Pagewell in `Cache-Status`, if Pagewell answered.
    #[must_use]
    pub fn cache_status(&self) -> Option<&str> {
        let all = self.fields.iter().filter(|(name, _)| name == "cache-status");
        let mut entries = all.flat_map(|(_, value)| value.split(','));
        entries.find(|entry| entry.trim().starts_with("pagewell")).map(str::trim)
    }

    /// Whether Pagewell answered from its cache.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.cache_status().is_some_and(|status| status.split(';').any(|part| part.trim() == "hit"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_redirects() {
        let place = ProbedPlace::of_url("http://Example.org:8080/a?b#c").unwrap();
        assert_eq!(
            (place.host(), place.url().as_str()),
            ("example.org", "http://example.org:8080/a?b")
        );
        assert_eq!(ProbedPlace::of_url("https://x").unwrap().url(), "https://x/");
        for wrong in ["x", "ftp://x/", "http:///x", "http://a b/", "http://a/\r\nX: y"] {
            assert!(ProbedPlace::of_url(wrong).is_err(), "{wrong}");
        }
        let at = ProbedPlace {
            address: Some(([127, 0, 0, 1], 80).into()),
            ..ProbedPlace::of_url("http://a/").unwrap()
        };
        let next = at.redirected("https://a/x").unwrap();
        assert_eq!(
            (next.url().as_str(), next.address),
            ("https://a/x", Some(([127, 0, 0, 1], 443).into()))
        );
        assert_eq!(at.redirected("/y").map(|place| place.url()).as_deref(), Some("http://a/y"));
        assert_eq!((at.redirected("http://b/"), at.redirected("//b/")), (None, None));
    }

    #[test]
    fn the_beginning_of_a_response_is_read() {
        let bytes = b"HTTP/1.1 200 OK\r\nCache-Status: other; hit, pagewell; fwd=uri-miss; stored\r\nX: 1\r\n\r\nhit";
        let head = read_head(&bytes[..]).unwrap();
        assert_eq!((head.status, head.field("x"), head.is_hit()), (200, Some("1"), false));
        assert!(
            read_head(&b"HTTP/1.1 304 \r\ncache-status: pagewell; hit; ttl=3\r\n\r\n"[..])
                .unwrap()
                .is_hit()
        );
        for wrong in ["", "nonsense", "HTTP/1.1\r\n\r\n"] {
            assert!(read_head(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
