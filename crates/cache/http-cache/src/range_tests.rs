//! Tests of `range`, by section of RFC 9110.
//!
//! The properties at the end hold for any field: ranges lie inside the content and do not overlap.

use super::*;
use proptest::prelude::*;

fn parts(field: &str, length: u64) -> Option<Vec<(u64, u64)>> {
    match resolve(field.as_bytes(), length) {
        ResolvedRange::Parts(ranges) => {
            Some(ranges.as_slice().iter().map(|range| (range.first, range.last)).collect())
        }
        _ => None,
    }
}

#[test]
fn single_ranges() {
    // §14.1.2.
    for (field, expected) in [
        ("bytes=0-499", (0, 499)),
        ("bytes=500-", (500, 999)),
        ("bytes=-100", (900, 999)),
        ("bytes=-5000", (0, 999)),
        ("bytes=999-999", (999, 999)),
        ("bytes=990-5000", (990, 999)),
        ("BYTES=0-0", (0, 0)),
        ("bytes=0-99999999999999999999999", (0, 999)),
        ("bytes= 1-2 ,", (1, 2)),
        ("bytes=2000-, 5-6", (5, 6)),
    ] {
        assert_eq!(parts(field, 1000), Some(vec![expected]), "{field}");
    }
}

#[test]
fn a_field_that_is_not_understood_is_ignored() {
    // §14.2: "MUST ignore a Range header field that … is invalid" or of an unknown unit.
    for field in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=5-1",
        "bytes=a-b",
        "bytes=1",
        "items=0-1",
        "bytes=0-1,x",
        "bytes=--1",
        "bytes=1-2-3",
        "bytes =0-1",
        "bytes=+1-2",
    ] {
        assert_eq!(resolve(field.as_bytes(), 1000), ResolvedRange::Whole, "{field}");
    }
}

#[test]
fn ranges_outside_are_unsatisfiable() {
    // §15.5.17.
    for field in ["bytes=1000-", "bytes=1000-1001", "bytes=-0", "bytes=99999999999999999999999-"] {
        assert_eq!(resolve(field.as_bytes(), 1000), ResolvedRange::Unsatisfiable, "{field}");
    }
    assert_eq!(resolve(b"bytes=0-", 0), ResolvedRange::Unsatisfiable);
    assert_eq!(resolve(b"bytes=-5", 0), ResolvedRange::Whole);
    assert_eq!(unsatisfied_content_range(1000), "bytes */1000");
}

#[test]
fn several_ranges_keep_their_order_and_join_where_they_touch() {
    // §15.3.7.2.
    assert_eq!(parts("bytes=500-599,0-9", 1000), Some(vec![(500, 599), (0, 9)]));
    assert_eq!(parts("bytes=0-9,5-20", 1000), Some(vec![(0, 20)]));
    assert_eq!(parts("bytes=0-9,10-20", 1000), Some(vec![(0, 20)]));
    assert_eq!(parts("bytes=0-9,100-109,200-209,5-205", 1000), Some(vec![(0, 209)]));
    assert_eq!(parts("bytes=200-209,0-9,100-109,5-105", 1000), Some(vec![(200, 209), (0, 109)]));
    let many = |count: usize| {
        let specs: Vec<String> = (0..count).map(|at| format!("{0}-{0}", at * 2)).collect();
        format!("bytes={}", specs.join(","))
    };
    assert_eq!(parts(&many(RANGES_MAX), 1000).map(|list| list.len()), Some(RANGES_MAX));
    assert_eq!(resolve(many(RANGES_MAX + 1).as_bytes(), 1000), ResolvedRange::Whole);
}

#[test]
fn multipart() {
    // §14.6.
    let ResolvedRange::Parts(ranges) = resolve(b"bytes=0-1,4-4", 5) else { panic!("satisfiable") };
    let content_type = Some(&b"text/plain"[..]);
    let answer = Multipart { ranges, boundary: "B", content_type, complete_length: 5 };
    let mut body = answer.part_head(0);
    body.extend_from_slice(b"he");
    body.extend_from_slice(&answer.part_head(1));
    body.extend_from_slice(b"o");
    body.extend_from_slice(&answer.closing());
    let expected = "--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/5\r\n\r\nhe\r\n--B\r\n\
                    Content-Type: text/plain\r\nContent-Range: bytes 4-4/5\r\n\r\no\r\n--B--\r\n";
    assert_eq!(String::from_utf8_lossy(&body), expected);
    assert_eq!(answer.content_length(), body.len() as u64);
    assert_eq!(answer.content_type(), "multipart/byteranges; boundary=B");
}

proptest! {
    #[test]
    fn ranges_lie_inside_the_content_and_apart(
        specs in proptest::collection::vec((0u64..60, 0u64..60, 0u8..3), 1..12),
        length in 0u64..50,
    ) {
        let specs: Vec<String> = specs.iter().map(|(one, other, form)| match form {
            0 => format!("{}-{}", one.min(other), one.max(other)),
            1 => format!("{one}-"),
            _ => format!("-{one}"),
        }).collect();
        if let Some(list) = parts(&format!("bytes={}", specs.join(",")), length) {
            prop_assert!(!list.is_empty() && list.len() <= RANGES_MAX);
            for (at, (first, last)) in list.iter().enumerate() {
                prop_assert!(first <= last && *last < length);
                for (other_first, other_last) in &list[at + 1..] {
                    prop_assert!(last + 1 < *other_first || other_last + 1 < *first);
                }
            }
        }
    }

    #[test]
    fn never_panics(field in "(bytes=)?[0-9,\\- \"\\\\]{0,60}", length: u64) {
        let _ = resolve(field.as_bytes(), length);
    }
}
