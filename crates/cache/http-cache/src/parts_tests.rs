//! Parts: valid and invalid Content-Range fields, the stored parts, and that two combined parts have the
//! bytes of the whole at every position.

use super::*;
use crate::headers_tests::headers;
use http::Method;

const WHOLE: &[u8] = b"0123456789";

fn kept(range: &str, more: &[(&'static str, &str)]) -> Result<(StoredResponse, Part), NotStored> {
    let facts = RequestFacts::read(&Method::GET, std::iter::empty());
    let mut lines = headers(&[("cache-control", "max-age=60"), ("content-range", range)]);
    for (name, value) in more {
        lines.insert(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"));
    }
    let now = Timestamp(1_000_000);
    storable_part(&facts, &HeaderMap::new(), &lines, now, now, &Policy::default())
}

fn part(first: u64, last: u64, tag: &str) -> StoredResponse {
    kept(&format!("bytes {first}-{last}/10"), &[("etag", tag)]).expect("storable").0
}

fn content(stored: &StoredResponse) -> &'static [u8] {
    let range =
        Part::of(stored).map_or(0..10, |p| p.range.first as usize..p.range.last as usize + 1);
    &WHOLE[range]
}

#[test]
fn content_range_is_read_strictly() {
    let good = Part { range: ByteRange { first: 2, last: 4 }, complete_length: 10 };
    assert_eq!(Part::read(b"bytes 2-4/10"), Some(good));
    assert_eq!(Part::read(b"Bytes 02-4/10"), Some(good));
    for wrong in [
        "bytes 4-2/10",
        "bytes 2-10/10",
        "bytes 2-4/*",
        "bytes */10",
        "lines 2-4/10",
        "bytes 2-4",
        "bytes=2-4/10",
        "bytes 2-/10",
        "bytes -4/10",
        "bytes 2 - 4/10",
        "",
        "bytes",
        "bytes 2-4/99999999999999999999999",
    ] {
        let found = Part::read(wrong.as_bytes());
        // Numbers over the limit become the maximum; the part is as declared.
        assert!(found.is_none() || wrong.len() > 30, "{wrong}");
    }
}

#[test]
fn only_parts_that_can_be_trusted_are_stored() {
    let strong = ("etag", "\"1\"");
    assert!(kept("bytes 2-4/10", &[strong]).is_ok());
    assert!(kept("bytes 2-4/10", &[strong, ("content-length", "3")]).is_ok());
    let reason = |range, more: &[(&'static str, &str)]| kept(range, more).err();
    assert_eq!(reason("bytes 2-4/10", &[]), Some(NotStored::PartNotStrong));
    assert_eq!(reason("bytes 2-4/10", &[("etag", "W/\"1\"")]), Some(NotStored::PartNotStrong));
    assert_eq!(reason("bytes 2-4/*", &[strong]), Some(NotStored::PartUnreadable));
    assert_eq!(reason("bytes 2-4/10", &[("etag", "1")]), Some(NotStored::PartNotStrong));
    let short = [strong, ("content-length", "2")];
    assert_eq!(reason("bytes 2-4/10", &short), Some(NotStored::PartUnreadable));
    let private = [strong, ("cache-control", "private, max-age=60")];
    assert_eq!(reason("bytes 2-4/10", &private), Some(NotStored::Private));
    let cookie = [strong, ("set-cookie", "a=b")];
    assert_eq!(reason("bytes 2-4/10", &cookie), Some(NotStored::SetCookie));
}

#[test]
fn parts_are_joined_to_bytes_of_the_whole() {
    for (first, last) in (0..10).flat_map(|first| (first..10).map(move |last| (first, last))) {
        for (other, end) in (0..10).flat_map(|first| (first..10).map(move |last| (first, last))) {
            let (older, newer) = (part(first, last, "\"1\""), part(other, end, "\"1\""));
            let held = |stored| StoredPart { stored, content: content(stored) };
            let apart = other > last + 1 || first > end + 1;
            match joined(&held(&older), &held(&newer), 1 << 20) {
                None => assert!(apart, "{first}-{last} {other}-{end}"),
                Some((stored, bytes)) => {
                    assert!(!apart && bytes == content(&stored), "{first}-{last} {other}-{end}");
                    let whole = first.min(other) == 0 && last.max(end) == 9;
                    assert_eq!(Part::of(&stored).is_none(), whole);
                    assert_eq!(stored.content_length(), Some(10));
                }
            }
        }
    }
}

#[test]
fn parts_of_different_wholes_are_not_joined() {
    // RFC 9110 §15.3.7.3: "if they all share the same strong validator".
    let older = part(0, 4, "\"1\"");
    let old = StoredPart { stored: &older, content: &WHOLE[..5] };
    let other_tag = part(5, 9, "\"2\"");
    assert!(joined(&old, &StoredPart { stored: &other_tag, content: &WHOLE[5..] }, 99).is_none());
    let newer = part(4, 9, "\"1\"");
    assert!(joined(&old, &StoredPart { stored: &newer, content: b"x56789" }, 99).is_none());
    assert!(joined(&old, &StoredPart { stored: &newer, content: &WHOLE[4..] }, 9).is_none());
    assert!(joined(&old, &StoredPart { stored: &newer, content: &WHOLE[4..] }, 10).is_some());
    let longer = kept("bytes 5-9/11", &[("etag", "\"1\"")]).expect("storable").0;
    assert!(joined(&old, &StoredPart { stored: &longer, content: &WHOLE[5..] }, 99).is_none());
}

#[test]
fn parts_with_other_fields_are_not_joined() {
    let with = |range, field| kept(range, &[("etag", "\"1\""), field]).expect("storable").0;
    let (older, newer) = (("x-a", "1"), ("x-a", "2"));
    let (older, newer) = (with("bytes 0-4/10", older), with("bytes 5-9/10", newer));
    let held = |stored| StoredPart { stored, content: content(stored) };
    assert!(joined(&held(&older), &held(&newer), 99).is_none());
    let (first, plain) = (part(0, 4, "\"1\""), part(5, 9, "\"1\""));
    assert!(joined(&held(&older), &held(&plain), 99).is_none());
    assert!(joined(&held(&first), &held(&newer), 99).is_none());
    let later = with("bytes 5-9/10", ("date", "Sun, 06 Nov 1994 08:49:37 GMT"));
    assert!(joined(&held(&first), &held(&later), 99).is_some());
}

#[test]
fn the_tags_of_both_parts_count() {
    // Surrogate-Key may differ, because it is removed from the fields.
    let tagged = |range, tags| {
        kept(range, &[("etag", "\"1\""), ("surrogate-key", tags)]).expect("storable").0
    };
    let (older, newer) = (tagged("bytes 0-4/10", "a"), tagged("bytes 5-9/10", "b"));
    let held = |stored| StoredPart { stored, content: content(stored) };
    let (stored, _) = joined(&held(&older), &held(&newer), 99).expect("joined");
    let tags: Vec<&[u8]> = stored.tags().iter().collect();
    assert_eq!(tags, [b"b", b"a"]);
}

#[test]
fn a_part_answers_only_ranges_wholly_inside() {
    let stored = part(2, 6, "\"1\"");
    let inside = |range: &str| {
        let lines = [(&b"range"[..], range.as_bytes())];
        let facts = RequestFacts::read(&Method::GET, lines.into_iter());
        range_inside(&facts, &stored).map(|(range, at)| (range.first, range.last, at))
    };
    assert_eq!(inside("bytes=2-6"), Some((2, 6, 0..5)));
    assert_eq!(inside("bytes=3-4"), Some((3, 4, 1..3)));
    for outside in
        ["bytes=1-3", "bytes=3-7", "bytes=3-", "bytes=-1", "bytes=2-3,5-6", "bytes=10-", "x"]
    {
        assert_eq!(inside(outside), None, "{outside}");
    }
}
