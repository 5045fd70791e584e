//! A request as the rules see it.
//!
//! Invariant: a path is read as an application reads it, so that an unusual spelling evades no rule. Not
//! here: the request under its plan (`site_rules::PlannedFields`).

use crate::agent::Agent;
use http::Method;
use http_fields::Fields;
use http_fields::percent::decode;
use memchr::memchr;
use std::borrow::Cow;
use std::net::IpAddr;

/// The properties of a request that the rules read.
#[derive(Clone, Copy)]
pub struct RequestView<'a> {
    /// The method of the request.
    pub method: &'a Method,
    /// The scheme: `http` or `https`.
    pub scheme: &'a str,
    /// Host as in the key.
    pub host: &'a str,
    /// Path and query, normalised.
    pub path_and_query: &'a str,
    /// The header lines that may be forwarded to the origin.
    pub fields: &'a dyn Fields,
    /// The client that sent it.
    pub client: &'a dyn RequestClient,
}

/// The client of a request. Nothing is computed before it is used.
pub trait RequestClient {
    /// The address of the client: behind a trusted proxy, the one that the proxy names. `None` if it is not known.
    fn address(&self) -> Option<IpAddr>;

    /// Whether the connection comes from a trusted proxy.
    fn peer(&self) -> Peer;
}

/// A client without a known address.
impl RequestClient for Peer {
    fn address(&self) -> Option<IpAddr> {
        None
    }

    fn peer(&self) -> Peer {
        *self
    }
}

/// The peer of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A proxy that the site trusts.
    Trusted,
    /// Any other client or proxy.
    Anybody,
}

/// No header lines.
static NO_FIELDS: &[(&[u8], &[u8])] = &[];

impl<'a> RequestView<'a> {
    /// A request with nothing but its method and URL.
    #[inline]
    pub fn of_url(
        method: &'a Method,
        scheme: &'a str,
        host: &'a str,
        path_and_query: &'a str,
    ) -> RequestView<'a> {
        let (fields, client) = (&NO_FIELDS, &Peer::Anybody);
        RequestView { method, scheme, host, path_and_query, fields, client }
    }

    /// The class of the client.
    #[inline]
    pub fn class(&self) -> Agent {
        Agent::of(self.fields)
    }

    /// The host without its port.
    #[inline]
    pub fn host_name(&self) -> &'a str {
        match self.host.rfind(':') {
            Some(at) if !self.host[at..].contains(']') => &self.host[..at],
            _ => self.host,
        }
    }

    /// The path as it was sent, without the query.
    #[inline]
    pub fn path(&self) -> &'a str {
        match memchr(b'?', self.path_and_query.as_bytes()) {
            Some(end) => &self.path_and_query[..end],
            None => self.path_and_query,
        }
    }

    /// The query without its `?`, if there is one.
    #[inline]
    pub fn query(&self) -> Option<&'a str> {
        let end = memchr(b'?', self.path_and_query.as_bytes())?;
        Some(&self.path_and_query[end + 1..])
    }

    /// The path as an application reads it: decoded, without doubled slashes and dot segments. An unusual
    /// spelling of a path therefore does not evade a rule.
    #[inline]
    pub fn plain_path(&self) -> Cow<'a, [u8]> {
        plain_path(self.path())
    }
}

/// A path as an application reads it: decoded, without doubled slashes and dot segments. Paths of requests are compared
/// with configured ones in this form.
#[inline]
pub fn plain_path(path: &str) -> Cow<'_, [u8]> {
    if !is_respelt(path) {
        return Cow::Borrowed(path.as_bytes());
    }
    Cow::Owned(without_dots(&decode(path.as_bytes())))
}

/// Whether a path is perhaps written in another way than an application reads it: it has `%`, `//` or `/.`.
#[inline]
pub fn is_respelt(path: &str) -> bool {
    let mut before = 0;
    for byte in path.as_bytes() {
        if *byte == b'%' || before == b'/' && matches!(byte, b'/' | b'.') {
            return true;
        }
        before = *byte;
    }
    false
}

/// Resolves dot segments and repeated slashes of a decoded path.
pub fn without_dots(decoded: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let last = decoded.split(|byte| *byte == b'/').next_back().unwrap_or_default();
    for segment in decoded.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let mut plain = Vec::with_capacity(decoded.len());
    for segment in &segments {
        plain.push(b'/');
        plain.extend_from_slice(segment);
    }
    if segments.is_empty() || matches!(last, b"" | b"." | b"..") {
        plain.push(b'/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_gets_around_a_rule() {
        let none: &[(&[u8], &[u8])] = &[];
        for (path, plain) in [
            ("/a/b?c", "/a/b"),
            ("/%61/b", "/a/b"),
            ("//a///b/", "/a/b/"),
            ("/x/../a/./b", "/a/b"),
            ("/a/b/..", "/a/"),
            ("/%2e%2e/a", "/a"),
            ("/a%2Fb", "/a/b"),
            ("/%zz%4", "/%zz%4"),
            ("/%+1%1+", "/%+1%1+"),
            ("/..", "/"),
        ] {
            let view = RequestView {
                method: &Method::GET,
                scheme: "http",
                host: "a:80",
                path_and_query: path,
                fields: &none,
                client: &Peer::Anybody,
            };
            assert_eq!(view.plain_path(), plain.as_bytes(), "{path}");
            assert_eq!(view.host_name(), "a");
        }
    }
}
