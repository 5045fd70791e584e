//! Purge requests and their meaning: nothing panics, and a valid request selects something and is bounded. A
//! lookup that replaces an expression selects at least the same pages. Parsing twice gives the same result.
//!
//! The data is a request line and header lines, as in `PURGE /a HTTP/1.1`, CR LF, `xkey: a b`.

use http::{HeaderMap, HeaderName, HeaderValue};
use purge_requests::{
    Conditions, PageProperties, Pattern, Purge, PurgeRefusal, Selection, TAGS_MAX, TagPattern,
    UrlPattern, read, read_get, read_tag_pattern, read_url_pattern,
};

/// A URL on which expressions are tried, in addition to the request's own.
const ADDRESS: &str = "/news/4/?page=2";

/// Parses the data as a request, and each of its values as an expression.
pub fn run(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let (method, address) = first.split_once(' ').unwrap_or((&first, "/"));
    let address = address.split(' ').next().unwrap_or_default();
    let address = if address.starts_with('/') { address.to_owned() } else { format!("/{address}") };
    let mut fields = HeaderMap::new();
    for line in lines.take(100) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let value = value.trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            fields.append(name, value);
        }
        if let Ok(text) = std::str::from_utf8(value) {
            expression(text, &address);
        }
    }
    let found = [read(method, &address, &fields), read_get("/purge", &address, &fields)];
    for found in found.into_iter().flatten() {
        judge(found, &address);
    }
}

fn judge(found: Result<Purge, PurgeRefusal>, address: &str) {
    match found {
        Ok(purge) => {
            assert!(!purge.hard.is_empty() || !purge.soft.is_empty());
            assert!(purge.hard.len() + purge.soft.len() <= 2 * TAGS_MAX + 2);
            purge.hard.iter().chain(&purge.soft).for_each(|one| selected(one, address));
        }
        Err(unread) => assert!(!unread.as_str().is_empty() && unread.explain().len() < 1_000),
    }
}

fn selected(one: &Selection, address: &str) {
    match one {
        Selection::Tag(tag) => assert!(!tag.is_empty()),
        Selection::Url(url) | Selection::Path(url) => assert!(url.starts_with('/')),
        Selection::Below(path) => assert!(path.starts_with('/') && path.ends_with('/')),
        Selection::Where(conditions) => drop(holds(conditions, address)),
        Selection::Everything => {}
    }
}

fn holds(conditions: &Conditions, address: &str) -> bool {
    let aliases = ["b.test".to_owned()];
    let (host, url) = ("a.test", address.as_bytes());
    conditions.hold(&PageProperties {
        host,
        aliases: &aliases,
        url,
        spelled: &page_store::normal_spelling(url),
        content_type: Some(b"text/html"),
    })
}

fn expression(text: &str, address: &str) {
    if let TagPattern::Tags(tags) = read_tag_pattern(text) {
        assert!(!tags.is_empty() && tags.iter().all(|tag| !tag.is_empty()));
        // A plain text has four readings.
        assert!(tags.iter().map(Vec::len).sum::<usize>() <= 4 * text.len());
    }
    let (Ok(found), Ok(oracle)) = (read_url_pattern(text), Pattern::read(text)) else { return };
    for address in [ADDRESS, address] {
        let taken = match &found {
            UrlPattern::Any => true,
            UrlPattern::Exact(url) => url == address,
            UrlPattern::Below(path) => address.starts_with(path.as_str()),
            UrlPattern::Search(pattern) => {
                let url = address.as_bytes();
                pattern.is_in(url, &page_store::normal_spelling(url))
            }
        };
        // "Any" means any URL; URLs begin with a slash.
        assert!(taken || !oracle.is_in(address.as_bytes()), "{text:?} {address:?}");
    }
}
