//! The target URI of a request, determined from the request line and Host as in RFC 9110 section 7.1,
//! the cache key, and the targets of references in a page (RFC 3986 section 5.2).
//!
//! The key consists of scheme, host, path and query. The host is in lower case and without the scheme's
//! default port; path and query are normalised (see `site_rules::KeyForm`). Apart from that
//! normalisation, path and query stay unchanged, because PHP distinguishes different bytes.

use crate::hosts::Hosts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Uri, header};
use reasons::Reason;

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
    /// The reason for the response.
    pub fn reason(self) -> Reason {
        match self {
            TargetError::HostInvalid => Reason::HostInvalid,
            TargetError::FormInvalid => Reason::TargetInvalid,
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

    /// Resolves a reference in this page (RFC 3986 section 5.2). `None` if it is not of the same site. Dot
    /// segments are removed later, with those of every request.
    pub fn resolve(&self, reference: &str, hosts: &Hosts) -> Option<TargetUri> {
        let reference = reference.trim().split('#').next()?;
        let after_scheme = ["http:", "https:"].iter().find_map(|scheme| {
            let is_it = reference.get(..scheme.len())?.eq_ignore_ascii_case(scheme);
            is_it.then(|| &reference[scheme.len()..])
        });
        let rest = after_scheme.unwrap_or(reference);
        let of_site = match rest.strip_prefix("//") {
            Some(rest) => {
                let at = rest.find(['/', '?']).unwrap_or(rest.len());
                let (host, path) = rest.split_at(at);
                let own_port = if self.scheme == "https" { ":443" } else { ":80" };
                let host = host.strip_suffix(own_port).unwrap_or(host);
                // A page that all hosts of the site share may refer to a host other than the requested one.
                let mut own = hosts.all().chain([&self.host]);
                if !own.any(|own| host.eq_ignore_ascii_case(own)) {
                    return None;
                }
                path
            }
            None if after_scheme.is_some() => return None,
            None => rest,
        };
        let path = self.path();
        let directory = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        let path_and_query = match of_site.as_bytes() {
            [] if after_scheme.is_none() && rest.is_empty() => return None,
            [] => "/".to_owned(),
            [b'/', ..] => of_site.to_owned(),
            [b'?', ..] if of_site.len() == rest.len() => format!("{path}{of_site}"),
            [b'?', ..] => format!("/{of_site}"),
            _ => format!("{directory}{of_site}"),
        };
        path_and_query.parse::<PathAndQuery>().ok()?;
        let (scheme, host) = (self.scheme, self.host.clone());
        Some(TargetUri { scheme, host, path_and_query, normal: None, written: None })
    }

    /// Whether the query may have a parameter of this name, in any way in which PHP reads it.
    pub fn may_have_parameter(&self, name: &str) -> bool {
        let query = self.path_and_query.split_once('?').map_or("", |(_, query)| query);
        // An encoded letter could hide the name. PHP also takes `name[x]` for the name, and these for `_`.
        query.split('&').any(|pair| {
            let written = pair.split('=').next().unwrap_or_default();
            let read = written.trim_start_matches('+').replace(['.', '+', '[', ' '], "_");
            written.contains('%') || read.starts_with(name)
        })
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
    fn invalid_hosts_and_targets_are_refused() {
        for host in ["", "a b", "a/b", "a,b", "a:x", "a:99999", "[::g]", "a@b", "[::1"] {
            assert_eq!(read("/", Some(host)), Err(TargetError::HostInvalid), "{host}");
        }
        assert_eq!(read("a", Some("a")), Err(TargetError::FormInvalid));
        assert_eq!(read("https://a/", Some("a")), Err(TargetError::FormInvalid));
        assert_eq!(read("http://u@a/", Some("a")), Err(TargetError::FormInvalid));
    }

    #[test]
    fn a_reference_stays_within_the_site() {
        let aliases = vec!["www.example.org".to_owned()];
        let hosts = Hosts { aliases, ..Hosts::default() };
        let page = TargetUri {
            scheme: "https",
            host: "example.org:8443".into(),
            path_and_query: "/news/4?full".into(),
            normal: None,
            written: None,
        };
        let cases = [
            ("/box", Some("/box")),
            (" /box?of=me#top ", Some("/box?of=me")),
            ("box", Some("/news/box")),
            ("../box", Some("/news/../box")),
            ("?short", Some("/news/4?short")),
            ("//EXAMPLE.org:8443/box", Some("/box")),
            ("http://www.example.org/box", Some("/box")),
            ("http://example.org:8443/box", Some("/box")),
            ("HTTPS://example.org:8443", Some("/")),
            ("https://example.org:8443?a", Some("/?a")),
            ("https://example.org/box", None),
            ("//other.test/box", None),
            ("https://example.org:8443@other.test/box", None),
            ("//user@example.org:8443/box", None),
            ("https:/box", None),
            ("", None),
            ("#top", None),
            ("/a b", None),
            ("/a\r\nx: y", None),
            ("/ä", Some("/ä")),
        ];
        for (reference, expected) in cases {
            let found = page.resolve(reference, &hosts);
            let path = found.as_ref().map(|target| target.path_and_query.as_str());
            assert_eq!(path, expected, "{reference:?}");
        }
        let plain = TargetUri { host: "example.org".into(), ..page.clone() };
        for reference in ["https://example.org:443/box", "//example.org/box"] {
            assert_eq!(plain.resolve(reference, &hosts).expect("its own").path_and_query, "/box");
        }
        // Another scheme is not another host: the result is a path, which is not requested over the
        // network.
        let odd = page.resolve("file:///etc/passwd", &hosts).expect("a path");
        assert_eq!((odd.scheme, &*odd.path_and_query), ("https", "/news/file:///etc/passwd"));
    }

    #[test]
    fn a_parameter_is_found_in_every_spelling() {
        let target = |path_and_query: &str| TargetUri {
            scheme: "https",
            host: "example.org".into(),
            path_and_query: path_and_query.into(),
            normal: None,
            written: None,
        };
        for url in ["/?lsesi=nonce", "/?a=1&lsesi=x", "/?lsesi[]=x", "/?%6csesi=x", "/?+lsesi=x"] {
            assert!(target(url).may_have_parameter("lsesi"), "{url}");
        }
        for url in ["/?rest.route=/", "/?rest+route=/", "/?rest[route=/", "/?rest_route[]=/"] {
            assert!(target(url).may_have_parameter("rest_route"), "{url}");
        }
        for url in ["/", "/?a=lsesi", "/lsesi", "/?a=%6c"] {
            assert!(!target(url).may_have_parameter("lsesi"), "{url}");
        }
    }
}
