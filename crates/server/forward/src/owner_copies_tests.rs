//! Tests of private copies' names: an owner's are nobody else's, and no tag of a response is one.

use super::*;
use http::HeaderValue;
use http_cache::litespeed::tags_by_scope;

#[test]
fn names_of_owners_are_their_own() {
    let names: Vec<_> = [b"a=1", b"a=2"]
        .iter()
        .flat_map(|cookie| {
            [
                CopySelection::Everything,
                CopySelection::Url("/a"),
                CopySelection::Url("/b"),
                CopySelection::Tag(b"/a"),
                CopySelection::Tag(b""),
            ]
            .map(|what| name(&cookie[..], what))
        })
        .collect();
    for (at, one) in names.iter().enumerate() {
        assert!(one.len() < 100 && one[0] == 0);
        assert!(names[..at].iter().all(|other| other != one));
    }
}

#[test]
fn no_field_can_name_an_owner() {
    assert!(HeaderValue::from_bytes(&name(b"a=1", CopySelection::Everything)).is_err());
    let mut headers = HeaderMap::new();
    headers.insert("x-litespeed-tag", HeaderValue::from_static("owner ,owner-tag x"));
    let tags = tags_by_scope(&headers, Scope::Public).expect("readable");
    assert!(tags.public.iter().all(|tag| tag[0] != 0));
}
