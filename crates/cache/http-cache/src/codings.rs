//! Compression of responses: which content coding answers a request, which responses may be compressed, and
//! which header fields change (RFC 9110 §8.4, §8.8.3.3, §12.5.3).
//!
//! Invariants: a coding that the request does not accept is never chosen. The uncompressed content
//! (`identity`) is the last resort even if the request refuses it, which §12.5.3 allows, because it is more
//! useful than no response. Choosing allocates nothing, and costs nothing if there is no choice. Not in
//! this module: the compression itself, `Transfer-Encoding`, and media types other than their names.

mod accept;
mod etag;
mod types;

pub use accept::{CodingSet, choose};
pub use etag::{coded_etag, coding_of_match};
pub(crate) use etag::{strong_match_any_form, weak_match_any_form};
pub use types::{MediaTypes, WrongPattern};

use crate::request::{Method, RequestFacts};
use crate::stored::StoredFacts;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_fields::fields;

/// A content coding that this cache can encode and decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878; within the window of RFC 9659).
    Zstd,
}

impl Coding {
    /// All content codings of this enum.
    pub const ALL: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

    /// The registered name, as used in `Content-Encoding`.
    pub fn as_str(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding with this name, in any case; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    pub fn from_name(name: &[u8]) -> Option<Coding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.as_str().as_bytes()))
    }

    /// The suffix that distinguishes the entity tag of this coding from that of the uncompressed content.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Gzip => "-gz",
            Coding::Brotli => "-br",
            Coding::Zstd => "-zst",
        }
    }
}

/// The value of a response's `Content-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEncoding {
    /// Absent or `identity`: the content is not compressed.
    Not,
    /// One known coding.
    In(Coding),
    /// Several codings, or an unknown one: the content must be forwarded unchanged.
    Otherwise,
}

/// Reads `Content-Encoding` (RFC 9110 §8.4).
pub fn encoded(headers: &HeaderMap) -> ResponseEncoding {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut members = lines
        .flat_map(|line| fields::members(line.as_bytes()))
        .filter(|name| !name.eq_ignore_ascii_case(b"identity"));
    match (members.next(), members.next()) {
        (None, _) => ResponseEncoding::Not,
        (Some(name), None) => {
            Coding::from_name(name).map_or(ResponseEncoding::Otherwise, ResponseEncoding::In)
        }
        _ => ResponseEncoding::Otherwise,
    }
}

/// The reason why a response is sent only as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCompressible {
    /// The status of the response has no content, or only a part of the content.
    Status,
    /// The response is compressed already.
    Encoded,
    /// `no-transform` (RFC 9111 §5.2.2.6).
    NoTransform,
    /// The response has a digest of the content (RFC 9530 §2, RFC 1864), which compression would make wrong.
    Digest,
    /// The media type is not in the list of compressible types.
    MediaType,
    /// The content is shorter than the minimum length.
    Short,
}

impl NotCompressible {
    /// All reasons of this enum.
    pub const ALL: [NotCompressible; 6] = [
        NotCompressible::Status,
        NotCompressible::Encoded,
        NotCompressible::NoTransform,
        NotCompressible::Digest,
        NotCompressible::MediaType,
        NotCompressible::Short,
    ];

    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            NotCompressible::Status => "status",
            NotCompressible::Encoded => "encoded",
            NotCompressible::NoTransform => "no-transform",
            NotCompressible::Digest => "digest",
            NotCompressible::MediaType => "media-type",
            NotCompressible::Short => "short",
        }
    }
}

/// The conditions for compressing a response.
#[derive(Clone, Debug)]
pub struct CompressionFilter {
    /// The compressible media types.
    pub types: MediaTypes,
    /// The minimum length of the content in bytes.
    pub bytes_min: u64,
}

impl CompressionFilter {
    /// Checks whether a response may be compressed. `length` is the length of its content in bytes, if
    /// known.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn check(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        length: Option<u64>,
    ) -> Result<(), NotCompressible> {
        if matches!(status.as_u16(), 100..=199 | 204 | 205 | 206 | 304 | 416)
            || headers.contains_key(header::CONTENT_RANGE)
        {
            return Err(NotCompressible::Status);
        }
        if encoded(headers) != ResponseEncoding::Not {
            return Err(NotCompressible::Encoded);
        }
        if says_no_transform(headers) {
            return Err(NotCompressible::NoTransform);
        }
        if ["content-digest", "content-md5", "digest"]
            .iter()
            .any(|name| fields::is_there(headers, name))
        {
            return Err(NotCompressible::Digest);
        }
        if !self.types.contain(fields::first(headers, "content-type").unwrap_or_default()) {
            return Err(NotCompressible::MediaType);
        }
        match length {
            Some(length) if length < self.bytes_min => Err(NotCompressible::Short),
            _ => Ok(()),
        }
    }
}

/// Whether `no-transform` forbids to change the content (RFC 9111 §5.2.2.6).
pub fn says_no_transform(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .flat_map(|line| fields::members(line.as_bytes()))
        .any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// Adds `Accept-Encoding` to `Vary`, unless it is listed already or `*` is (RFC 9110 §12.5.5).
pub fn vary_on_accept_encoding(headers: &mut HeaderMap) {
    let named = headers.get_all(header::VARY).iter().any(|line| {
        fields::members(line.as_bytes())
            .any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
    });
    if named {
        return;
    }
    let lines: Vec<&[u8]> = headers.get_all(header::VARY).iter().map(|l| l.as_bytes()).collect();
    let mut all = lines.join(&b", "[..]);
    if !all.is_empty() {
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(b"Accept-Encoding");
    if let Ok(value) = HeaderValue::from_bytes(&all) {
        headers.insert(header::VARY, value);
    }
}

/// Changes a header section to that of the same content in `coding`: it sets `Content-Encoding`, an entity
/// tag of its own, and `Vary`. The caller corrects `Content-Length`, if there is one.
pub fn describe(headers: &mut HeaderMap, coding: Coding) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    vary_on_accept_encoding(headers);
    let tag = headers.get(header::ETAG).and_then(|tag| coded_etag(tag.as_bytes(), coding));
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
}

/// Makes the entity tag of a header section weak (RFC 9110 §8.8.1), for content that is equivalent but not
/// identical byte for byte.
pub fn weaken(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    let weak = tag.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// The fields that describe a compressed content; a decoded response does not have them.
pub const CODED_FIELDS: [HeaderName; 2] = [header::CONTENT_ENCODING, header::CONTENT_LENGTH];

/// The coding in which the whole of `stored` is sent; `None` for the uncompressed content. `forms` are the
/// codings available, the smallest first.
///
/// A range request is answered from the uncompressed content. Ranges refer to the selected representation
/// (RFC 9110 §14.2), and the cache selects it. Ranges of two codings cannot be combined, and a client
/// without the same compressed content cannot use an offset into it.
pub fn form_of_whole(request: &RequestFacts<'_>, forms: &[Coding]) -> Option<Coding> {
    if forms.is_empty() || (request.range.is_some() && request.method == Method::Get) {
        return None;
    }
    choose(request.accept_encoding.get()?, forms)
}

/// The coding to which a 304 refers: that of the entity tag in `If-None-Match`, so that the client's cache
/// finds the response to freshen (RFC 9111 §4.3.4). Without a matching tag, or with `*`, it is the
/// negotiated coding.
pub fn form_of_not_modified(
    request: &RequestFacts<'_>,
    stored: &StoredFacts,
    forms: &[Coding],
) -> Option<Coding> {
    let negotiated = form_of_whole(request, forms);
    let (Some(lines), Some(tag)) = (request.if_none_match.get(), stored.etag.text()) else {
        return negotiated;
    };
    coding_of_match(lines, &tag, negotiated)
}

#[cfg(test)]
#[path = "codings/tests.rs"]
mod tests;
