//! Tests of `codings`: negotiation by RFC 9110 §12.5.3, entity tags by coding, compressible responses.
//!
//! The most important property, that a refused coding is never chosen, is tested with every pair of names
//! and weights.

use super::*;
use crate::policy::{FieldUse, Policy};
use Coding::{Brotli, Gzip, Zstd};
use http_fields::fields::Fields;

const FORMS: [Coding; 3] = [Brotli, Zstd, Gzip];

fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let lines = lines
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    HeaderMap::from_iter(lines)
}

fn request<'a>(lines: &[(&'a str, &'a str)]) -> RequestFacts<'a> {
    let lines = lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    RequestFacts::read(&http::Method::GET, lines)
}

fn file(headers: HeaderMap) -> crate::StoredResponse {
    let mut stored = crate::StoredResponse::of_file(headers, 1_000, http_fields::Timestamp(0));
    stored.forms = crate::Forms::ByCoding;
    stored
}

#[test]
fn the_highest_weight_wins_and_among_equals_the_first() {
    // RFC 9110 §12.5.3, §12.4.2.
    for (line, chosen) in [
        ("gzip, deflate, br, zstd", Some(Brotli)),
        ("gzip, deflate", Some(Gzip)),
        ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
        ("zstd, gzip", Some(Zstd)),
        ("GZIP", Some(Gzip)),
        ("x-gzip", Some(Gzip)),
        ("*", Some(Brotli)),
        ("*, br;q=0", Some(Zstd)),
        ("br;q=0, *;q=0.1", Some(Zstd)),
        ("*;q=0, gzip", Some(Gzip)),
        ("*;q=0", None),
        ("identity", None),
        ("identity, gzip;q=0.5", None),
        ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
        ("identity;q=0, gzip;q=0.001", Some(Gzip)),
        ("identity;q=0", None),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("", None),
        ("deflate, compress", None),
        // Unreadable weights refuse.
        ("gzip;q=2", None),
        ("gzip;q=", None),
        ("gzip;q=0.0001", None),
        ("gzip;q=-1, br;q=x", None),
        ("gzip ; q=0.5 , br ; Q=0.4", Some(Gzip)),
        ("gzip;a=b;q=0.3, br;q=0.2", Some(Gzip)),
        ("gzip, gzip;q=0", None),
        ("gzipp, agzip", None),
    ] {
        assert_eq!(choose(&[line.as_bytes()], &FORMS), chosen, "{line}");
    }
    assert_eq!(choose(&[b"gzip;q=0.5", b"br;q=0.1"], &FORMS), Some(Gzip));
    assert_eq!(choose(&[b"br"], &[Gzip]), None);
    assert_eq!(choose(&[b"gzip, br"], &[]), None);
}

#[test]
fn a_refused_coding_is_never_chosen() {
    let weights = ["0", "0.0", "0.5", "1", "2", "x"];
    let names = ["gzip", "br", "zstd", "*", "identity"];
    for one in names {
        for other in names {
            for (w, v) in weights.iter().flat_map(|w| weights.iter().map(move |v| (w, v))) {
                let line = format!("{one};q={w}, {other};q={v}");
                let Some(chosen) = choose(&[line.as_bytes()], &FORMS) else { continue };
                let named =
                    [(one, w), (other, v)].into_iter().filter(|(n, _)| *n == chosen.as_str());
                let named: Vec<_> = named.collect();
                let accepted = |weight: &str| matches!(weight, "0.5" | "1");
                assert!(named.iter().all(|(_, weight)| accepted(weight)), "{line}: {chosen:?}");
                let by_star = [(one, w), (other, v)].iter().any(|(n, w)| *n == "*" && accepted(w));
                assert!(!named.is_empty() || by_star, "{line}: {chosen:?}");
            }
        }
    }
}

#[test]
fn a_range_request_gets_the_uncompressed_content() {
    let both = request(&[("accept-encoding", "br"), ("range", "bytes=0-9")]);
    assert_eq!(form_of_whole(&both, &FORMS), None);
    assert_eq!(form_of_whole(&request(&[("accept-encoding", "br")]), &FORMS), Some(Brotli));
    assert_eq!(form_of_whole(&request(&[]), &FORMS), None);
    // RFC 9110 §14.2: Range has no meaning with HEAD.
    let mut head = both;
    head.method = Method::Head;
    assert_eq!(form_of_whole(&head, &FORMS), Some(Brotli));
}

#[test]
fn tags_by_form() {
    // RFC 9110 §8.8.3.3.
    for (tag, coded) in [
        ("\"a\"", Some("\"a-gz\"")),
        ("W/\"a\"", Some("W/\"a-gz\"")),
        (" \"a\" ", Some("\"a-gz\"")),
        ("\"\"", Some("\"-gz\"")),
        ("a", None),
        ("\"", None),
    ] {
        let made = coded_etag(tag.as_bytes(), Gzip);
        assert_eq!(made.as_ref().map(|v| v.to_str().unwrap()), coded, "{tag}");
    }
}

#[test]
fn conditions_are_met_by_the_tag_of_any_coding() {
    use crate::{Answer, answer};
    let stored = file(map(&[("etag", "\"a\"")]));
    for (name, value, expected) in [
        ("if-none-match", "\"a\"", Answer::NotModified),
        ("if-none-match", "\"a-gz\"", Answer::NotModified),
        ("if-none-match", "W/\"a-br\"", Answer::NotModified),
        ("if-none-match", "\"b\", \"a-zst\"", Answer::NotModified),
        ("if-none-match", "\"a-gzip\"", Answer::Whole),
        ("if-none-match", "\"a-gz-br\"", Answer::Whole),
        ("if-none-match", "\"-gz\"", Answer::Whole),
        ("if-match", "\"a-gz\"", Answer::Whole),
        ("if-match", "W/\"a-gz\"", Answer::PreconditionFailed),
        ("if-match", "\"b\"", Answer::PreconditionFailed),
    ] {
        assert_eq!(answer(&request(&[(name, value)]), &stored, Some(1_000)), expected, "{value}");
    }
    // Ranges are cut from the uncompressed content.
    let part =
        |tag| answer(&request(&[("range", "bytes=0-1"), ("if-range", tag)]), &stored, Some(9));
    assert!(matches!(part("\"a\""), Answer::Ranges(_)));
    assert_eq!(part("\"a-gz\""), Answer::Whole);
    // For a response without codings, suffixes have no meaning.
    let mut one = stored;
    one.forms = crate::Forms::One;
    let asked = request(&[("if-none-match", "\"a-gz\"")]);
    assert_eq!(answer(&asked, &one, Some(9)), Answer::Whole);
}

#[test]
fn a_304_refers_to_the_coding_that_the_client_has() {
    // RFC 9111 §4.3.4.
    let stored = file(map(&[("etag", "\"a\"")]));
    for (tags, expected) in [
        ("\"a-gz\"", Some(Gzip)),
        ("\"a\"", None),
        ("\"a\", \"a-br\"", Some(Brotli)),
        ("*", Some(Brotli)),
        ("\"x\", \"a-zst\"", Some(Zstd)),
    ] {
        let asked = request(&[("accept-encoding", "br"), ("if-none-match", tags)]);
        assert_eq!(form_of_not_modified(&asked, &stored, &FORMS), expected, "{tags}");
    }
    let since = request(&[("accept-encoding", "br"), ("if-modified-since", "x")]);
    assert_eq!(form_of_not_modified(&since, &stored, &FORMS), Some(Brotli));
}

#[test]
fn vary_names_it_once() {
    for (before, after) in [
        (&[][..], "Accept-Encoding"),
        (&[("vary", "Cookie")], "Cookie, Accept-Encoding"),
        (&[("vary", "accept-encoding, Cookie")], "accept-encoding, Cookie"),
        (&[("vary", "*")], "*"),
        (&[("vary", "")], "Accept-Encoding"),
    ] {
        let mut headers = map(before);
        vary_on_accept_encoding(&mut headers);
        vary_on_accept_encoding(&mut headers);
        let lines: Vec<_> = headers.get_all("vary").iter().collect();
        assert_eq!(lines, [after], "{before:?}");
    }
    let mut headers = map(&[("vary", "Cookie")]);
    headers.append("vary", HeaderValue::from_static("Accept"));
    vary_on_accept_encoding(&mut headers);
    assert_eq!(headers.get_all("vary").iter().count(), 1);
    assert_eq!(headers["vary"], "Cookie, Accept, Accept-Encoding");
}

#[test]
fn the_fields_of_a_compressed_response() {
    let mut headers = map(&[("etag", "\"a\""), ("vary", "Cookie")]);
    describe(&mut headers, Brotli);
    assert_eq!(headers["content-encoding"], "br");
    assert_eq!(headers["etag"], "\"a-br\"");
    assert_eq!(headers["vary"], "Cookie, Accept-Encoding");
    weaken(&mut headers);
    weaken(&mut headers);
    assert_eq!(headers["etag"], "W/\"a-br\"");
}

#[test]
fn each_reason_against_compression() {
    let codable = CompressionFilter { types: MediaTypes::default(), bytes_min: 256 };
    let html = ("content-type", "text/html; charset=utf-8");
    let check = |status: u16, lines: &[(&'static str, &'static str)], length| {
        codable.check(StatusCode::from_u16(status).unwrap(), &map(lines), length)
    };
    assert_eq!(check(200, &[html], Some(256)), Ok(()));
    assert_eq!(check(404, &[html], None), Ok(()));
    assert_eq!(check(206, &[html], None), Err(NotCompressible::Status));
    assert_eq!(check(304, &[html], None), Err(NotCompressible::Status));
    assert_eq!(check(200, &[html, ("content-range", "x")], None), Err(NotCompressible::Status));
    assert_eq!(
        check(200, &[html, ("content-encoding", "gzip")], None),
        Err(NotCompressible::Encoded)
    );
    assert_eq!(
        check(200, &[html, ("content-encoding", "x, y")], None),
        Err(NotCompressible::Encoded)
    );
    assert_eq!(check(200, &[html, ("content-encoding", "identity")], None), Ok(()));
    let forbids = ("cache-control", "max-age=9, No-Transform");
    assert_eq!(check(200, &[html, forbids], None), Err(NotCompressible::NoTransform));
    assert_eq!(check(200, &[html, ("content-digest", "x")], None), Err(NotCompressible::Digest));
    assert_eq!(check(200, &[("content-type", "image/png")], None), Err(NotCompressible::MediaType));
    assert_eq!(check(200, &[], None), Err(NotCompressible::MediaType));
    assert_eq!(check(200, &[html], Some(255)), Err(NotCompressible::Short));
    let names: Vec<_> = NotCompressible::ALL.iter().map(|reason| reason.as_str()).collect();
    assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
}

#[test]
fn media_types_by_pattern() {
    let types = MediaTypes::default();
    for yes in ["text/html", "TEXT/CSS;charset=x", "application/ld+json", "image/svg+xml ; a=b"] {
        assert!(types.contain(yes.as_bytes()), "{yes}");
    }
    for no in
        ["text/event-stream", "image/png", "font/woff2", "", "text", "application/zip", "+json"]
    {
        assert!(!types.contain(no.as_bytes()), "{no}");
    }
    let only = MediaTypes::read(&["!text/x-*", "text/*"]).unwrap();
    assert!(only.contain(b"text/x") && !only.contain(b"text/x-log"));
    for wrong in ["html", "*", "a/*/*"] {
        assert!(MediaTypes::read(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn codings_by_name() {
    let said = |value: &'static str| encoded(&map(&[("content-encoding", value)]));
    assert_eq!(said("gzip"), ResponseEncoding::In(Gzip));
    assert_eq!(said("X-GZIP"), ResponseEncoding::In(Gzip));
    assert_eq!(said("br, gzip"), ResponseEncoding::Otherwise);
    assert_eq!(said("deflate"), ResponseEncoding::Otherwise);
    assert_eq!(said(" identity "), ResponseEncoding::Not);
    let set = CodingSet::of(&[Gzip, Zstd]);
    assert!(set.contains(Gzip) && set.contains(Zstd) && !set.contains(Brotli) && !set.is_empty());
}

#[test]
fn accept_encoding_selects_nothing_where_it_is_not_sent() {
    let response = map(&[("vary", "Accept-Encoding, Cookie")]);
    let asked: &[(&[u8], &[u8])] = &[(b"accept-encoding", b"br")];
    let fields: &dyn Fields = &asked;
    let ignoring = Policy { accept_encoding: FieldUse::Ignore, ..Policy::default() };
    let names = |policy: &Policy| -> Vec<String> {
        let nominated = crate::variants::NominatedFields::of(&response, fields, policy).unwrap();
        nominated.names().map(ToString::to_string).collect()
    };
    assert_eq!(names(&Policy::default()), ["accept-encoding", "cookie"]);
    assert_eq!(names(&ignoring), ["cookie"]);
    assert_eq!(file(map(&[])).etag.source(), None);
}
