//! Resolves a URI reference in a response (RFC 3986 §5.2): `Location`, `Content-Location`. All questions about
//! the page that such a field names are answered by this one function.
//!
//! Invariant: browsers and this module agree on the page. Browsers take a backslash for a slash, a reference
//! with the page's own scheme and no host for a relative one, and encode characters that no URI has (WHATWG URL).

use std::borrow::Cow;

/// A reference to an http or https URI, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The scheme in lower case, if the reference names one; otherwise it is that of the page.
    pub scheme: Option<&'static str>,
    /// The host with its port as written, without user information; `None`: the host of the page.
    pub host: Option<String>,
    /// The path and query.
    pub page: String,
}

impl Reference {
    /// Resolves `reference` in the page with the path and query `target`. `None` if it is not an http or https
    /// URI.
    pub fn resolve(reference: &str, target: &str) -> Option<Reference> {
        let reference = reference.trim().split('#').next().unwrap_or_default();
        let reference = as_browsers_read(reference);
        let (scheme, rest) = match scheme_of(&reference) {
            Some((name, rest)) => {
                let known = ["http", "https"].into_iter().find(|s| name.eq_ignore_ascii_case(s));
                (Some(known?), rest)
            }
            None => (None, &*reference),
        };
        if let Some(rest) = rest.strip_prefix("//") {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, rest) = rest.split_at(end);
            let host = host.rsplit('@').next().unwrap_or_default();
            let slash = if rest.starts_with('/') { "" } else { "/" };
            let page = without_dots(&format!("{slash}{rest}"));
            return Some(Reference { scheme, host: Some(host.to_owned()), page });
        }
        let target_path = target.split('?').next().unwrap_or_default();
        let page = match rest.chars().next() {
            None => target.to_owned(),
            Some('?') => format!("{target_path}{rest}"),
            Some('/') => without_dots(rest),
            Some(_) => {
                let directory = target_path.rfind('/').map_or("/", |slash| &target_path[..=slash]);
                without_dots(&format!("{directory}{rest}"))
            }
        };
        Some(Reference { scheme, host: None, page })
    }
}

/// The reference with slashes for the backslashes before its query, and with the characters encoded that are not
/// allowed in a URI.
fn as_browsers_read(reference: &str) -> Cow<'_, str> {
    let is_odd = |byte: u8| byte >= 0x7f || byte <= b' ' || matches!(byte, b'"' | b'<' | b'>');
    if !reference.bytes().any(|byte| is_odd(byte) || byte == b'\\') {
        return Cow::Borrowed(reference);
    }
    let (mut read, mut is_query) = (String::with_capacity(reference.len() + 16), false);
    for byte in reference.bytes() {
        is_query |= byte == b'?';
        match byte {
            b'\t' | b'\n' | b'\r' => {}
            b'\\' if !is_query => read.push('/'),
            byte if is_odd(byte) => read.push_str(&format!("%{byte:02X}")),
            byte => read.push(char::from(byte)),
        }
    }
    Cow::Owned(read)
}

/// Splits a reference into its scheme and the text after the colon (RFC 3986 §3.1), if it has a scheme.
fn scheme_of(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once(':')?;
    let letters = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (letters && scheme.chars().all(plain)).then_some((scheme, rest))
}

/// Removes `.` and `..` segments from the path (RFC 3986 §5.2.4) and keeps the query.
fn without_dots(path_and_query: &str) -> String {
    let (path, query) = match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    let path = format!("/{}", kept.join("/"));
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(reference: &str) -> Option<(Option<&'static str>, Option<String>, String)> {
        let found = Reference::resolve(reference, "/a/b?c")?;
        Some((found.scheme, found.host, found.page))
    }

    #[test]
    fn references_are_resolved_as_browsers_do() {
        for (reference, scheme, host, page) in [
            ("", None, None, "/a/b?c"),
            ("#top", None, None, "/a/b?c"),
            ("?d", None, None, "/a/b?d"),
            ("b?d", None, None, "/a/b?d"),
            ("../x/./y/..", None, None, "/x/"),
            ("/x?y#z", None, None, "/x?y"),
            (" /x ", None, None, "/x"),
            ("\\x", None, None, "/x"),
            ("/x y", None, None, "/x%20y"),
            ("/é?\\", None, None, "/%C3%A9?\\"),
            ("http:b", Some("http"), None, "/a/b"),
            ("HTTPS://u:p@A.test:8443?q", Some("https"), Some("A.test:8443"), "/?q"),
            ("//b.test", None, Some("b.test"), "/"),
        ] {
            let right = (scheme, host.map(str::to_owned), page.to_owned());
            assert_eq!(resolved(reference), Some(right), "{reference:?}");
        }
        assert_eq!(resolved("mailto:a@b"), None);
    }
}
