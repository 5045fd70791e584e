//! The target URI of a request, determined from the request line and Host as in RFC 9110 section 7.1,
//! and the cache key.
//!
//! The key consists of scheme, host, path and query. The host is in lower case and without the scheme's
//! default port; path and query are normalised (see `site_rules::KeyForm`). Apart from that
//! normalisation, path and query stay unchanged, because PHP distinguishes different bytes.

use http::{HeaderMap, Uri, header};

/// The target URI of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUri {
    /// The scheme: `http` or `https`.
    pub scheme: &'static str,
    /// The host in lower case, with the port if it is not the scheme's default port.
    pub host: String,
    /// Path and query for the origin: as in the request, without parts that the origin must not see
    /// when it generates a shared page.
    pub path_and_query: String,
    /// The normalised path and query under which the page is stored and invalidated, if different.
    pub normal: Option<String>,
    /// The path as in the request, if different; it is used to find files.
    pub written: Option<String>,
}

/// Why the target of a request is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// The host is invalid.
    HostInvalid,
    /// The form of the request target is only for forward proxies, or invalid.
    FormInvalid,
}

impl TargetError {
    /// The reason's name, as in the response.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetError::HostInvalid => "host-invalid",
            TargetError::FormInvalid => "target-invalid",
        }
    }
}

impl TargetUri {
    /// Determines the target of a request over a connection with this scheme. `fallback` is the host
    /// for a client that sends none (HTTP/1.0).
    ///
    /// # Errors
    /// See [`TargetError`]; the response is 400.
    pub fn read(
        uri: &Uri,
        headers: &HeaderMap,
        fallback: &str,
        scheme: &'static str,
    ) -> Result<TargetUri, TargetError> {
        // A target with another scheme is not for this connection.
        if uri.scheme_str().is_some_and(|named| named != scheme) {
            return Err(TargetError::FormInvalid);
        }
        let in_header = headers.get(header::HOST).map(|value| value.as_bytes());
        // RFC 9112 section 3.2.2: in absolute form, the target's host takes precedence over Host.
        let host = match (uri.authority(), in_header) {
            // The authority form, which only CONNECT has.
            (Some(_), _) if uri.scheme().is_none() => return Err(TargetError::FormInvalid),
            (Some(authority), _) if authority.as_str().contains('@') => {
                return Err(TargetError::FormInvalid);
            }
            (Some(authority), _) => authority.as_str(),
            (None, Some(value)) => {
                std::str::from_utf8(value).map_err(|_| TargetError::HostInvalid)?
            }
            (None, None) => fallback,
        };
        let path_and_query = match uri.path_and_query().map(|both| both.as_str()) {
            Some(both) if both.starts_with('/') => both.to_owned(),
            Some(both) if both.starts_with('?') => format!("/{both}"),
            Some("*") => "*".to_owned(),
            None if uri.authority().is_some() => "/".to_owned(),
            _ => return Err(TargetError::FormInvalid),
        };
        Ok(TargetUri {
            scheme,
            host: normal_host(host, scheme)?,
            path_and_query,
            normal: None,
            written: None,
        })
    }

    /// Parses a page's key, as [`write_key`](Self::write_key) writes it; `None` if the key has
    /// additional parts.
    pub fn of_key(key: &[u8]) -> Option<TargetUri> {
        let uri: Uri = str::from_utf8(key).ok()?.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "http" => "http",
            "https" => "https",
            _ => return None,
        };
        TargetUri::read(&uri, &HeaderMap::new(), "", scheme).ok()
    }

    /// The path without the query.
    #[inline]
    pub fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    /// The page's path and query in their normal form.
    #[inline]
    pub fn page(&self) -> &str {
        self.normal.as_deref().unwrap_or(&self.path_and_query)
    }

    /// The same target with another scheme, which a trusted proxy has named.
    pub fn by_scheme(mut self, scheme: &'static str) -> TargetUri {
        let own_port = if scheme == "https" { ":443" } else { ":80" };
        if let Some(at) = self.host.len().checked_sub(own_port.len())
            && self.host.ends_with(own_port)
        {
            self.host.truncate(at);
        }
        self.scheme = scheme;
        self
    }

    /// Writes the cache key into `out`, which is cleared first.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        out.clear();
        for part in [self.scheme, "://", &self.host, self.page()] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// The URI under which the page is stored.
    pub fn uri_of_page(&self) -> String {
        [self.scheme, "://", &self.host, self.page()].concat()
    }

    /// The URI as one string.
    pub fn uri(&self) -> String {
        [self.scheme, "://", &self.host, &self.path_and_query].concat()
    }
}

/// The host as in the key, if it is valid (RFC 3986 section 3.2.2).
pub fn normal_host(host: &str, scheme: &str) -> Result<String, TargetError> {
    let (name, port) = match host.rfind(':') {
        Some(at) if !host[at..].contains(']') => (&host[..at], Some(&host[at + 1..])),
        _ => (host, None),
    };
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = match inside {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        }
    };
    let port = match port {
        None | Some("") => None,
        Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
            Some(text.parse::<u16>().map_err(|_| TargetError::HostInvalid)?)
        }
        Some(_) => return Err(TargetError::HostInvalid),
    };
    if !is_name || name.len() > 255 {
        return Err(TargetError::HostInvalid);
    }
    let name = name.to_ascii_lowercase();
    Ok(match (port, scheme) {
        (None, _) | (Some(80), "http") | (Some(443), "https") => name,
        (Some(port), _) => {
            let mut name = name;
            name.push(':');
            name.push_str(itoa::Buffer::new().format(port));
            name
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str, host: Option<&str>) -> Result<TargetUri, TargetError> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        TargetUri::read(&uri.parse().unwrap(), &headers, "fallback", "http")
    }

    fn key(uri: &str, host: Option<&str>) -> String {
        let mut key = Vec::new();
        read(uri, host).unwrap().write_key(&mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn keys() {
        assert_eq!(key("/a?b=1", Some("Example.ORG")), "http://example.org/a?b=1");
        assert_eq!(key("/a", Some("example.org:80")), "http://example.org/a");
        assert_eq!(key("/a", Some("example.org:8080")), "http://example.org:8080/a");
        assert_eq!(key("/a", Some("[::1]:80")), "http://[::1]/a");
        assert_eq!(key("http://B/x", Some("a")), "http://b/x");
        assert_eq!(key("/", None), "http://fallback/");
        assert_ne!(key("/%41", Some("a")), key("/A", Some("a")));
    }

    #[test]
    fn what_is_no_target() {
        for host in ["", "a b", "a/b", "a,b", "a:x", "a:99999", "[::g]", "a@b", "[::1"] {
            assert_eq!(read("/", Some(host)), Err(TargetError::HostInvalid), "{host}");
        }
        assert_eq!(read("a", Some("a")), Err(TargetError::FormInvalid));
        assert_eq!(read("https://a/", Some("a")), Err(TargetError::FormInvalid));
        assert_eq!(read("http://u@a/", Some("a")), Err(TargetError::FormInvalid));
    }
}
