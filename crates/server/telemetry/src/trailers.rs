//! Trailer fields (RFC 9110 section 6.5): which of them are forwarded, in either direction.
//!
//! Trailers after streamed content are forwarded to a recipient that accepts them (`TE: trailers`,
//! section 10.1.4), and dropped otherwise, as section 6.5.1 allows. Over HTTP/1.1, hyper forwards only
//! fields that `Trailer` has announced. Fields for framing, routing, authentication or caching are
//! always dropped. The reason: some software treats trailers as header fields, so an attacker could
//! inject such fields.

use http::{HeaderMap, HeaderName, header};
use http_cache::fields;
use request_values::steering_fields::{is_plain, is_steering};

/// Whether trailers are forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trailers {
    /// The client does not accept them.
    #[default]
    Dropped,
    /// The client accepts them.
    Wanted,
}

/// Fields that must not be trailers (RFC 9110 section 6.5.1), in addition to hop-by-hop fields.
const NEVER: &[&str] = &[
    "age",
    "authorization",
    "cache-control",
    "cdn-cache-control",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "vary",
    "www-authenticate",
];

/// Whether a client accepts trailers, according to its `TE` field.
pub fn wanted(headers: &HeaderMap) -> Trailers {
    let lines = headers.get_all(header::TE).iter();
    let mut words = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    if words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"trailers")) {
        Trailers::Wanted
    } else {
        Trailers::Dropped
    }
}

/// Copies the `Trailer` fields, which announce trailers.
pub fn announce(from: &HeaderMap, to: &mut HeaderMap) {
    for line in from.get_all(header::TRAILER) {
        to.append(header::TRAILER, line.clone());
    }
}

/// The client's trailers that are forwarded; without names that an application could confuse with
/// another field.
pub fn permitted_of_client(trailers: HeaderMap) -> HeaderMap {
    let mut kept = permitted(trailers, &[]);
    let odd: Vec<HeaderName> =
        kept.keys().filter(|name| !is_plain(name.as_str())).cloned().collect();
    for name in odd {
        kept.remove(name);
    }
    kept
}

/// The trailers that are forwarded; without the fields in `internal`.
pub fn permitted(mut trailers: HeaderMap, internal: &[HeaderName]) -> HeaderMap {
    fields::remove_hop_by_hop(&mut trailers);
    let refused = |name: &HeaderName| {
        let is_known = NEVER.contains(&name.as_str()) || is_steering(name.as_str());
        is_known || internal.contains(name)
    };
    let refused: Vec<HeaderName> = trailers.keys().filter(|name| refused(name)).cloned().collect();
    for name in refused {
        trailers.remove(name);
    }
    trailers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn trailers_are_sent_only_if_te_asks_for_them() {
        assert_eq!(wanted(&fields(&[("te", "gzip, Trailers")])), Trailers::Wanted);
        assert_eq!(wanted(&fields(&[("te", "trailers")])), Trailers::Wanted);
        for none in [fields(&[]), fields(&[("te", "gzip;q=0.5")]), fields(&[("te", "trailersx")])] {
            assert_eq!(wanted(&none), Trailers::Dropped);
        }
    }

    #[test]
    fn only_permitted_trailers_are_forwarded() {
        let all = fields(&[
            ("x-checksum", "1"),
            ("grpc-status", "0"),
            ("set-cookie", "a=b"),
            ("x-forwarded-for", "6.6.6.6"),
            ("transfer-encoding", "chunked"),
            ("x-internal", "1"),
        ]);
        let kept = permitted(all, &[header::HeaderName::from_static("x-internal")]);
        assert_eq!(kept, fields(&[("x-checksum", "1"), ("grpc-status", "0")]));
        let all = fields(&[("x-checksum", "1"), ("x_forwarded_for", "6.6.6.6"), ("x.sum", "1")]);
        assert_eq!(permitted(all.clone(), &[]), all);
        assert_eq!(permitted_of_client(all), fields(&[("x-checksum", "1")]));
    }
}
