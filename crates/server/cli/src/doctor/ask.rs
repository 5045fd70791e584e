//! Requests one page with GET, as a client without cookies that accepts gzip.
//!
//! It uses HTTP/1.0, so that the end of the connection is the end of the response. Over TLS any
//! certificate is accepted, because the request contains nothing confidential. One redirect is
//! followed, to the same host only. Time and size are bounded. The calls block, because
//! `pagewell doctor` does nothing else at the same time.

use config::{Config, DatabaseTls, Trust};
use database_links::link::client as tls_client;
use doctor::Answer;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for the connection, and for each read and write.
const WITHIN: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a response that are read.
const ANSWER_BYTES: u64 = 4 << 20;

/// The addresses of a configured site, so that its name need not be resolved.
#[derive(Debug, Clone)]
pub(super) struct SiteAddresses {
    /// The host to request; `None` for the address itself.
    pub(super) host: Option<String>,
    /// The addresses without TLS and with TLS.
    pub(super) plain: Option<SocketAddr>,
    pub(super) secure: Option<SocketAddr>,
}

/// The first addresses in the configuration that clients connect to without a proxy in between.
pub(super) fn own(config: &Config) -> SiteAddresses {
    use config::Address;
    let first = |all: &[Address]| {
        let mut open = all.iter().filter(|one| !config.proxied.contains(one));
        let mut address = open.find_map(|one| match one {
            Address::Tcp(tcp) => Some(*tcp),
            Address::Unix(_) => None,
        })?;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        Some(address)
    };
    let host = config.hosts.canonical.clone();
    SiteAddresses { host, plain: first(&config.listen), secure: first(&config.listen_tls) }
}

/// Requests the root page of a site. `None` if the site has no such address.
pub(super) fn root(own: &SiteAddresses) -> Option<Answer> {
    let (scheme, address) = match (own.plain, own.secure) {
        (Some(plain), _) => ("http", plain),
        (None, Some(secure)) => ("https", secure),
        (None, None) => return None,
    };
    let host = own.host.clone().unwrap_or_else(|| address.to_string());
    ask_of(&format!("{scheme}://{host}/"), Some(own)).ok()
}

/// Requests one page. If there is no response, the result has no status.
///
/// # Errors
/// `url` is not a valid URL.
pub(super) fn ask(url: &str) -> Result<Answer, String> {
    ask_of(url, None)
}

fn ask_of(url: &str, own: Option<&SiteAddresses>) -> Result<Answer, String> {
    let place = Place::read(url)?;
    let first = answer(url, &exchange(&place, own).unwrap_or_default());
    let to = first.location.as_deref().map(|to| {
        if to.starts_with('/') {
            format!("{}://{}{to}", place.scheme(), place.authority)
        } else {
            to.to_owned()
        }
    });
    let Some(to) = to else { return Ok(first) };
    let first = Answer { location: Some(to.clone()), ..first };
    let next = Place::read(&to).ok().filter(|next| next.host() == place.host() && to != url);
    // Without a configured address for the new scheme, the redirect leads to another server.
    let next = next.filter(|next| own.is_none_or(|own| own.at(next).is_some()));
    let found = next.and_then(|next| exchange(&next, own).ok());
    Ok(found.map_or(first, |bytes| answer(&to, &bytes)))
}

impl SiteAddresses {
    fn at(&self, place: &Place<'_>) -> Option<SocketAddr> {
        if place.secure { self.secure } else { self.plain }
    }
}

/// A URL, parsed into scheme, authority and path.
struct Place<'a> {
    secure: bool,
    authority: &'a str,
    path: &'a str,
}

impl<'a> Place<'a> {
    fn read(url: &'a str) -> Result<Place<'a>, String> {
        if url.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return Err(format!("--url {url}: there is no blank in an address"));
        }
        let plain = url.strip_prefix("http://").map(|rest| (false, rest));
        let (secure, rest) = plain
            .or_else(|| url.strip_prefix("https://").map(|rest| (true, rest)))
            .ok_or_else(|| format!("--url {url}: write http://host/path or https://host/path"))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        Ok(Place { secure, authority, path })
    }

    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// The host without the port.
    fn host(&self) -> &'a str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => self.authority,
        }
    }

    fn address(&self) -> std::io::Result<SocketAddr> {
        let port = if self.secure { 443 } else { 80 };
        let place = if self.host() == self.authority {
            format!("{}:{port}", self.authority)
        } else {
            self.authority.to_owned()
        };
        place.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable.into())
    }
}

fn exchange(place: &Place<'_>, own: Option<&SiteAddresses>) -> std::io::Result<Vec<u8>> {
    let address = own.and_then(|own| own.at(place)).map_or_else(|| place.address(), Ok)?;
    let stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    if place.secure {
        read_answer(place, secure(place.host(), stream)?)
    } else {
        read_answer(place, stream)
    }
}

/// Starts TLS on a connection. Any certificate is accepted.
///
/// # Errors
/// The host is not a name for TLS.
pub fn secure(
    host: &str,
    stream: TcpStream,
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let tls = DatabaseTls { trust: Trust::Anybody, authorities: None };
    let config = tls_client(&tls).map_err(|_| ErrorKind::Unsupported)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| ErrorKind::InvalidInput)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Verifies the certificate of a server for a host, by a handshake. `authorities` is a PEM file of those to trust
/// instead of the system's.
///
/// # Errors
/// It is not trusted, or the handshake failed: a sentence.
pub fn verify_certificate(
    host: &str,
    mut stream: TcpStream,
    authorities: Option<&Path>,
) -> Result<(), String> {
    let tls =
        DatabaseTls { trust: Trust::SignedForHost, authorities: authorities.map(Path::to_owned) };
    let config = tls_client(&tls).map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let mut connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Sends the request, and reads the response until its end or an error. An error counts only if nothing
/// was received.
fn read_answer(place: &Place<'_>, mut stream: impl Read + Write) -> std::io::Result<Vec<u8>> {
    let slash = if place.path.starts_with('/') { "" } else { "/" };
    let request = format!(
        "GET {slash}{} HTTP/1.0\r\nHost: {}\r\nAccept-Encoding: gzip\r\n\
         User-Agent: pagewell-doctor\r\n\r\n",
        place.path, place.authority
    );
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut bytes = Vec::new();
    let read = stream.take(ANSWER_BYTES).read_to_end(&mut bytes);
    if bytes.is_empty() {
        read?;
    }
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
        location: field("location")
            .filter(|_| status.is_some_and(|code: u16| (300..400).contains(&code)))
            .map(str::to_owned),
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
    fn urls_other_than_http_are_refused() {
        for url in ["ftp://a/", "a", "http://a/ b", "http://a/\r\nX: y"] {
            assert!(ask(url).is_err(), "{url:?}");
        }
    }
}
