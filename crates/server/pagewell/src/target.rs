//! What a request is for: the target URI, put together from the request line and Host as RFC 9110
//! section 7.1 says, and the cache key made from it.
//!
//! The key is scheme, host, path and query, the host in lower case and without the scheme's own
//! port, path and query in their normal form (see `site_rules::KeyForm`). Apart from that form, path
//! and query stay as they were written: to PHP they differ when their bytes do.

use http::{HeaderMap, Uri, header};

/// A request's target URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Host, and port where it is not the scheme's own; in lower case.
    pub host: String,
    /// Path and query as they go to the origin: as they were written, less what a page that may be
    /// shared must not know.
    pub path_and_query: String,
    /// The name by which the page is stored and invalidated, where it is another.
    pub normal: Option<String>,
    /// The path as it was written, where it is another: files are found by it.
    pub written: Option<String>,
}

/// Why a request has no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// Host is no host.
    HostInvalid,
    /// The request line's form is for proxies of other sites, or for none.
    FormInvalid,
}

impl TargetError {
    /// Its name, as it stands in the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetError::HostInvalid => "host-invalid",
            TargetError::FormInvalid => "target-invalid",
        }
    }
}

impl Target {
    /// Reads the target of a request over a connection of this scheme. `fallback` is the host of a
    /// client that names none (HTTP/1.0).
    ///
    /// # Errors
    /// See [`TargetError`]; to be answered with 400.
    pub fn read(
        uri: &Uri,
        headers: &HeaderMap,
        fallback: &str,
        scheme: &'static str,
    ) -> Result<Target, TargetError> {
        // A target of another scheme cannot have been meant for this connection.
        if uri.scheme_str().is_some_and(|named| named != scheme) {
            return Err(TargetError::FormInvalid);
        }
        let in_header = headers.get(header::HOST).map(|value| value.as_bytes());
        // RFC 9112 section 3.2.2: in absolute form, Host is ignored in favour of the target's.
        let host = match (uri.authority(), in_header) {
            // The form of CONNECT: a bare authority.
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
        Ok(Target {
            scheme,
            host: normal_host(host, scheme)?,
            path_and_query,
            normal: None,
            written: None,
        })
    }

    /// The target of a page's key, as [`write_key`](Self::write_key) writes it; `None` where the key has
    /// more in it.
    pub fn of_key(key: &[u8]) -> Option<Target> {
        let uri: Uri = str::from_utf8(key).ok()?.parse().ok()?;
        let scheme = match uri.scheme_str()? {
            "http" => "http",
            "https" => "https",
            _ => return None,
        };
        Target::read(&uri, &HeaderMap::new(), "", scheme).ok()
    }

    /// The path alone.
    pub fn path(&self) -> &str {
        self.path_and_query.split('?').next().unwrap_or_default()
    }

    /// The page's path and query in their normal form.
    pub fn page(&self) -> &str {
        self.normal.as_deref().unwrap_or(&self.path_and_query)
    }

    /// The same target by another scheme, which a trusted proxy has named.
    pub fn by_scheme(mut self, scheme: &'static str) -> Target {
        let own_port = if scheme == "https" { ":443" } else { ":80" };
        if let Some(at) = self.host.len().checked_sub(own_port.len())
            && self.host.ends_with(own_port)
        {
            self.host.truncate(at);
        }
        self.scheme = scheme;
        self
    }

    /// Writes the cache key into `out`, which it empties first.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        out.clear();
        for part in [self.scheme, "://", &self.host, self.page()] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// The URI by which the page is stored.
    pub fn uri_of_page(&self) -> String {
        [self.scheme, "://", &self.host, self.page()].concat()
    }

    /// The URI in one piece.
    pub fn uri(&self) -> String {
        [self.scheme, "://", &self.host, &self.path_and_query].concat()
    }
}

/// A host as it stands in the key, if it is one (RFC 3986 section 3.2.2).
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

    fn read(uri: &str, host: Option<&str>) -> Result<Target, TargetError> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        Target::read(&uri.parse().unwrap(), &headers, "fallback", "http")
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
