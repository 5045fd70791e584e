//! LiteSpeed's fields and tag fields with arbitrary bytes: the length of a parsed list is bounded, and a purge
//! is parsed completely or not at all. A page never gets a wider scope than declared.
//!
//! The data are the lines of a response's header section; a line without a colon is a purge.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_cache::litespeed::{
    CacheControl, PURGE_ITEMS_MAX, PurgeTarget, Scope, StorePermission, read_purges, tags_by_scope,
};
use http_cache::tags::{self, TAG_MAX_BYTES};
use http_cache::{Policy, RequestFacts, Timestamp, storable};

const NOW: Timestamp = Timestamp::from_seconds(784_111_777);

/// Reads the data as response header fields, and checks what each set of compatibility headers gives.
pub fn run(data: &[u8]) {
    let headers = lines(data);
    purges(&headers);
    scopes(&headers);
    stored(&headers);
}

fn lines(data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(200) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':');
        let named = colon.and_then(|at| {
            Some((HeaderName::from_bytes(&line[..at]).ok()?, line[at + 1..].trim_ascii()))
        });
        let (name, value) = named.unwrap_or((HeaderName::from_static("x-litespeed-purge"), line));
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}

fn purges(headers: &HeaderMap) {
    let Ok(purges) = read_purges(headers) else { return };
    assert!(purges.len() <= PURGE_ITEMS_MAX);
    for purge in &purges {
        match &purge.what {
            PurgeTarget::Tag(tag) => {
                assert!(!tag.is_empty() && tag.len() <= TAG_MAX_BYTES);
                // Every selected tag could be the tag of a page, so that no page is missed.
                assert!(
                    !tag.contains(&b',') && !tag.contains(&b';') && !tag.contains(&b'*') || {
                        let inner = &tag[1..tag.len() - 1];
                        inner.contains(&b'*')
                    }
                );
            }
            PurgeTarget::Url(url) => assert!(url.starts_with('/') && !url.contains(';')),
            PurgeTarget::Everything => {}
        }
    }
}

fn scopes(headers: &HeaderMap) {
    let whole = tags_by_scope(headers, Scope::Public);
    let own = tags_by_scope(headers, Scope::Private);
    if let (Ok(whole), Ok(own)) = (whole, own) {
        assert!(whole.private.is_empty());
        assert!(own.public.len() <= whole.public.len());
        for tag in own.public.iter().chain(own.private.iter()) {
            assert!(whole.public.iter().any(|known| known == tag));
        }
    }
}

fn stored(headers: &HeaderMap) {
    let facts = RequestFacts::read(&Method::GET, std::iter::empty());
    let none = HeaderMap::new();
    let policy = Policy::default();
    let found = storable(&facts, &none, StatusCode::OK, headers, NOW, NOW, &policy);
    let Ok(stored) = found else { return };
    assert!(tags::read_tags(headers).is_ok());
    assert!(!headers.contains_key("set-cookie"));
    for name in stored.headers.keys() {
        assert!(!policy.internal_fields.contains(name), "{name}");
    }
    if let Some(said) =
        CacheControl::read(headers).filter(|_| !headers.contains_key("pagewell-cache-control"))
    {
        assert!(said.scope == Scope::Public && said.keeping != StorePermission::Forbidden);
    }
}
