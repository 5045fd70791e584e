//! Content codings: which one a request is answered in, which responses may be coded at all, and what
//! changes in the header section of one that is (RFC 9110 §8.4, §8.8.3.3, §12.5.3).
//!
//! Invariants: a coding that the request does not accept is never chosen; the untouched form
//! (`identity`) is the last resort even where it is refused, for an answer in it is of more use than
//! none (§12.5.3 lets a server). Choosing allocates nothing, and costs nothing where there is no choice.
//! Deliberately not here: the coding itself; codings of a hop (`Transfer-Encoding`); media types other
//! than by their names.

mod accept;
mod etag;
mod types;

pub use accept::{CodingSet, choose};
pub use etag::{coded_etag, coding_of_match};
pub(crate) use etag::{strong_match_any_form, weak_match_any_form};
pub use types::{MediaTypes, WrongPattern};

use crate::fields;
use crate::request::{Method, RequestFacts};
use crate::stored::StoredFacts;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

/// A content coding that is made and understood here.
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
    /// Every coding there is.
    pub const ALL: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

    /// Its registered name, as `Content-Encoding` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding of this name, in any case; `x-gzip` is `gzip` (RFC 9110 §8.4.1.3).
    pub fn from_name(name: &[u8]) -> Option<Coding> {
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        Coding::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.as_str().as_bytes()))
    }

    /// What tells the entity tag of this form from that of the untouched one.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Gzip => "-gz",
            Coding::Brotli => "-br",
            Coding::Zstd => "-zst",
        }
    }
}

/// What a response's `Content-Encoding` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// Nothing, or `identity`: the content is as it is.
    Not,
    /// One coding that is understood here.
    In(Coding),
    /// Several, or one that is not understood: to be passed on untouched.
    Otherwise,
}

/// Reads `Content-Encoding` (RFC 9110 §8.4).
pub fn encoded(headers: &HeaderMap) -> Encoded {
    let lines = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut members = lines
        .flat_map(|line| fields::members(line.as_bytes()))
        .filter(|name| !name.eq_ignore_ascii_case(b"identity"));
    match (members.next(), members.next()) {
        (None, _) => Encoded::Not,
        (Some(name), None) => Coding::from_name(name).map_or(Encoded::Otherwise, Encoded::In),
        _ => Encoded::Otherwise,
    }
}

/// Why a response is sent in no other form than its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCoded {
    /// Its status goes with no content, or with a part of it.
    Status,
    /// It is encoded already.
    Encoded,
    /// `no-transform` (RFC 9111 §5.2.2.6).
    NoTransform,
    /// A digest of the content goes with it (RFC 9530 §2, RFC 1864), which a coding would belie.
    Digest,
    /// Its media type is not among those that shrink.
    MediaType,
    /// It is shorter than what is worth it.
    Short,
}

impl NotCoded {
    /// Every reason there is.
    pub const ALL: [NotCoded; 6] = [
        NotCoded::Status,
        NotCoded::Encoded,
        NotCoded::NoTransform,
        NotCoded::Digest,
        NotCoded::MediaType,
        NotCoded::Short,
    ];

    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NotCoded::Status => "status",
            NotCoded::Encoded => "encoded",
            NotCoded::NoTransform => "no-transform",
            NotCoded::Digest => "digest",
            NotCoded::MediaType => "media-type",
            NotCoded::Short => "short",
        }
    }
}

/// What may be coded.
#[derive(Clone, Debug)]
pub struct Codable {
    /// The media types that shrink.
    pub types: MediaTypes,
    /// The shortest content that is worth it, in bytes.
    pub bytes_min: u64,
}

impl Codable {
    /// Whether a response may be sent in a coding. `length` is that of its content in bytes, if known.
    ///
    /// # Errors
    /// The first reason that stands against it.
    pub fn check(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        length: Option<u64>,
    ) -> Result<(), NotCoded> {
        if matches!(status.as_u16(), 100..=199 | 204 | 205 | 206 | 304 | 416)
            || headers.contains_key(header::CONTENT_RANGE)
        {
            return Err(NotCoded::Status);
        }
        if encoded(headers) != Encoded::Not {
            return Err(NotCoded::Encoded);
        }
        if says_no_transform(headers) {
            return Err(NotCoded::NoTransform);
        }
        if ["content-digest", "content-md5", "digest"]
            .iter()
            .any(|name| fields::is_there(headers, name))
        {
            return Err(NotCoded::Digest);
        }
        if !self.types.contain(fields::first(headers, "content-type").unwrap_or_default()) {
            return Err(NotCoded::MediaType);
        }
        match length {
            Some(length) if length < self.bytes_min => Err(NotCoded::Short),
            _ => Ok(()),
        }
    }
}

/// Whether nobody on the way may change the content (RFC 9111 section 5.2.2.6).
pub fn says_no_transform(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .flat_map(|line| fields::members(line.as_bytes()))
        .any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// Adds `Accept-Encoding` to `Vary`, unless it is there or `*` is (RFC 9110 §12.5.5).
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

/// Makes a header section that of the same content in `coding`: `Content-Encoding`, an entity tag of
/// its own, `Vary`. `Content-Length`, if it is there, is the caller's to mend.
pub fn describe(headers: &mut HeaderMap, coding: Coding) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.as_str()));
    vary_on_accept_encoding(headers);
    let tag = headers.get(header::ETAG).and_then(|tag| coded_etag(tag.as_bytes(), coding));
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
}

/// Makes the validators of a header section weak (RFC 9110 §8.8.1), for content that is equal in
/// meaning and not in every byte.
pub fn weaken(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).filter(|tag| tag.as_bytes().starts_with(b"\""));
    let weak = tag.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(header::ETAG, weak);
    }
}

/// The fields that say how content is coded; a response that was decoded has them no more.
pub const CODED_FIELDS: [HeaderName; 2] = [header::CONTENT_ENCODING, header::CONTENT_LENGTH];

/// The form in which the whole of `stored` is sent, out of those that there are, the smallest first;
/// none for the untouched one.
///
/// A request for a part is about the untouched form (RFC 9110 §14.2 speaks of the selected
/// representation, and selecting is ours): parts of two forms cannot be put together, and an offset
/// into compressed content is of use to nobody who has not the same form.
pub fn form_of_whole(request: &RequestFacts<'_>, forms: &[Coding]) -> Option<Coding> {
    if forms.is_empty() || (request.range.is_some() && request.method == Method::Get) {
        return None;
    }
    choose(request.accept_encoding.get()?, forms)
}

/// The form that a 304 speaks of: the one whose entity tag the client gave, so that its own cache finds
/// what to freshen (RFC 9111 §4.3.4); the negotiated one where it gave none or any.
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
