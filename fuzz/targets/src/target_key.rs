//! The target URI and its cache key (RFC 9110 section 7.1): the two functions that build keys agree, and a key
//! decodes to its parts.
//!
//! The data are a request target and a Host, one per line.

use front::hit::find::{Schemes, write_plain_origin, write_plain_path};
use http::{HeaderMap, HeaderValue, Uri, header};
use request_values::target::{TargetUri, normal_host};

/// Builds the key in both ways.
pub fn run(data: &[u8]) {
    let mut lines = data.splitn(2, |b| *b == b'\n');
    let (path, host) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let Ok(uri) = Uri::try_from(path) else { return };
    let Ok(value) = HeaderValue::from_bytes(host) else { return };
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, value);
    let read = TargetUri::read(&uri, &headers, "fallback", "http");
    let (mut plain, mut key) = (Vec::new(), Vec::new());
    let written = std::str::from_utf8(path).ok().and_then(|path| {
        let schemes = Schemes { target: "http", connection: "http" };
        write_plain_origin(schemes, host, &mut plain)?;
        write_plain_path(path, &mut plain)
    });
    let Ok(target) = read else {
        return assert!(written.is_none(), "only one of them refuses");
    };
    target.write_key(&mut key);
    if written.is_some() {
        assert_eq!(plain, key);
    }
    assert!(target.path_and_query.starts_with('/') || target.path_and_query == "*");
    assert!(!target.host.is_empty() && !target.host.contains(['/', '@', '#', '?', ' ']));
    assert!(!target.host.bytes().any(|b| b.is_ascii_uppercase() || b.is_ascii_control()));
    assert_eq!(normal_host(&target.host, target.scheme).as_deref(), Ok(&target.host[..]));
}
