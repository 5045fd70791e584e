//! Parts of a response (206): which may be stored, and how two are combined (RFC 9110 §14.4, §15.3.7.3, RFC
//! 9111 §3.3, §3.4).
//!
//! Invariants: a part never counts as the whole, and answers only ranges that lie completely inside it
//! (§3.3). It is stored only with a strong entity tag of the origin, if Content-Range and content agree,
//! and without If-Range, which may omit fields (§15.3.7). Two parts are combined only if their tags match
//! strongly and they have the same complete length. They must also touch or overlap with equal bytes, and
//! have the same fields except for times: a change that affects the older part then also affects the
//! combined one. Not in this module: several ranges in one response, and the validity of the older part,
//! which leases ensure (it must be in the store after the newer request was sent).

use crate::conditional::{Answer, answer};
use crate::not_stored::NotStored;
use crate::policy::Policy;
use crate::range::ByteRange;
use crate::request::RequestFacts;
use crate::stored::StoredResponse;
use crate::storing::storable;
use crate::validators::{EtagSource, TagText, strong_match};
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, DATE, EXPIRES, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_fields::fields::{self, Fields, digits};
use http_fields::time::Timestamp;
use std::ops::Range;

/// The position of a part in the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes of the part.
    pub range: ByteRange,
    /// The length of the whole in bytes.
    pub complete_length: u64,
}

impl Part {
    /// Reads a Content-Range (RFC 9110 §14.4). `None` for another unit, an unknown complete length, or a
    /// value that §14.4 calls invalid: a last position before the first, or beyond the complete length.
    pub fn read(value: &[u8]) -> Option<Part> {
        let space = value.iter().position(|byte| *byte == b' ')?;
        if !value[..space].eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        let rest = &value[space + 1..];
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        let dash = rest[..slash].iter().position(|byte| *byte == b'-')?;
        let number = |text: &[u8]| digits(text, u64::MAX);
        let range =
            ByteRange { first: number(&rest[..dash])?, last: number(&rest[dash + 1..slash])? };
        let complete_length = number(&rest[slash + 1..])?;
        let is_valid = range.first <= range.last && range.last < complete_length;
        is_valid.then_some(Part { range, complete_length })
    }

    /// The part in a stored response; `None` if the response is a whole one.
    pub fn of(stored: &StoredResponse) -> Option<Part> {
        Part::read(stored.headers.get(CONTENT_RANGE)?.as_bytes())
    }

    /// Whether the part is the whole.
    pub fn is_whole(&self) -> bool {
        self.range.length() == self.complete_length
    }

    /// How to combine this part with a newer one of the same whole. `None` if bytes between them are
    /// missing.
    fn join(&self, newer: &Part) -> Option<Join> {
        let (old, new) = (self.range, newer.range);
        let apart =
            new.first > old.last.saturating_add(1) || old.first > new.last.saturating_add(1);
        if apart || self.complete_length != newer.complete_length {
            return None;
        }
        let range = ByteRange { first: old.first.min(new.first), last: old.last.max(new.last) };
        // Both parts are in memory, so their lengths fit `usize`.
        let at = |position: u64| (position - old.first) as usize;
        let before = 0..if old.first < new.first { at(new.first) } else { 0 };
        let end = old.length() as usize;
        let after = if old.last > new.last { at(new.last + 1)..end } else { end..end };
        Some(Join { part: Part { range, complete_length: self.complete_length }, before, after })
    }
}

/// The combination of two parts: bytes of the older part, the newer part, bytes of the older part.
struct Join {
    part: Part,
    before: Range<usize>,
    after: Range<usize>,
}

/// Whether the 206 to `request` may be stored as a part (RFC 9111 §3.3), and the stored part. The stored
/// fields are those of a whole response, plus Content-Range. The content must have the length of the part.
///
/// The other parameters are those of [`storable`].
///
/// # Errors
/// The first reason against storing it.
pub fn storable_part(
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    headers: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> Result<(StoredResponse, Part), NotStored> {
    let mut lines = headers.get_all(CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(NotStored::PartUnreadable);
    };
    let part = Part::read(line.as_bytes()).ok_or(NotStored::PartUnreadable)?;
    let announced = fields::first(headers, "content-length").map(|text| digits(text, u64::MAX));
    if announced.is_some_and(|length| length != Some(part.range.length())) {
        return Err(NotStored::PartUnreadable);
    }
    // A compressed part cannot be decoded and is not cut further.
    if request.if_range.is_some() || headers.contains_key(CONTENT_ENCODING) {
        return Err(NotStored::PartialContent);
    }
    if part.range.length() > policy.content_max_bytes {
        return Err(NotStored::TooLarge);
    }
    let (asked, came) = (request_time, response_time);
    // The other conditions of RFC 9111 §3 are the same for a part as for the whole.
    let mut stored =
        storable(request, request_fields, StatusCode::OK, headers, asked, came, policy)?;
    if strong_tag(&stored).is_none() {
        return Err(NotStored::PartNotStrong);
    }
    stored.set_content_length(Some(part.complete_length));
    Ok((stored, part))
}

fn strong_tag(stored: &StoredResponse) -> Option<TagText<'_>> {
    // A malformed entity tag matches nothing, not even itself.
    let tag = stored.etag.as_it_came().filter(|tag| strong_match(tag, tag));
    tag.filter(|_| stored.etag.source() == Some(EtagSource::Origins))
}

/// A stored part with its content.
pub struct StoredPart<'a> {
    /// The stored response of the part.
    pub stored: &'a StoredResponse,
    /// The content: the bytes of the part.
    pub content: &'a [u8],
}

/// Combines a part with an older one (RFC 9111 §3.4, RFC 9110 §15.3.7.3). The result has the fields of the
/// newer part and the tags of both. `None` if they must not be combined, or if the result would exceed
/// `content_max_bytes`.
pub fn joined(
    older: &StoredPart<'_>,
    newer: &StoredPart<'_>,
    content_max_bytes: u64,
) -> Option<(StoredResponse, Vec<u8>)> {
    let is_same = strong_match(&strong_tag(older.stored)?, &strong_tag(newer.stored)?);
    if !is_same || older.stored.nominated() != newer.stored.nominated() {
        return None;
    }
    if !has_same_fields(older.stored, newer.stored) {
        return None;
    }
    let (old_part, new_part) = (Part::of(older.stored)?, Part::of(newer.stored)?);
    let Join { part, before, after } = old_part.join(&new_part)?;
    if part.range.length() > content_max_bytes {
        return None;
    }
    // Overlapping bytes must be equal; otherwise the entity tag is wrong.
    let (kept_end, content) = (older.content.len().checked_sub(after.len())?, newer.content);
    let shared = older.content.get(before.len()..kept_end)?;
    let skipped = old_part.range.first.saturating_sub(new_part.range.first) as usize;
    if !shared.is_empty() && content.get(skipped..skipped + shared.len()) != Some(shared) {
        return None;
    }
    let whole = [older.content.get(before)?, content, older.content.get(after)?].concat();
    let mut stored = newer.stored.clone();
    let tags = stored.tags().clone().joined(older.stored.tags()).ok()?;
    stored.set_tags(tags);
    set_part(&mut stored, part);
    Some((stored, whole))
}

/// Whether both have the same fields, except those for their times and for their position in the whole.
fn has_same_fields(one: &StoredResponse, other: &StoredResponse) -> bool {
    let may_differ = |name: &HeaderName| [CONTENT_RANGE, DATE, EXPIRES].contains(name);
    let all_in = |one: &HeaderMap, other: &HeaderMap| {
        one.keys()
            .filter(|name| !may_differ(name))
            .all(|name| one.get_all(name).iter().eq(other.get_all(name).iter()))
    };
    [(&one.headers, &other.headers), (&one.internal, &other.internal)]
        .into_iter()
        .all(|(one, other)| all_in(one, other) && all_in(other, one))
}

/// Sets Content-Range to `part`, or removes it if the part is the whole.
fn set_part(stored: &mut StoredResponse, part: Part) {
    if part.is_whole() {
        stored.headers.remove(CONTENT_RANGE);
        return;
    }
    let value = part.range.content_range(part.complete_length);
    let value = HeaderValue::from_str(&value).expect("digits and visible signs");
    stored.headers.insert(CONTENT_RANGE, value);
}

/// The stored response of a part; if the part is complete, that of the whole (RFC 9110 §15.3.7.3).
pub fn whole_if_complete(mut stored: StoredResponse, part: Part) -> StoredResponse {
    set_part(&mut stored, part);
    stored
}

/// The range of a stored part that answers a request: a single range, completely inside the part (RFC 9111
/// §3.3). Returns its position in the whole and its position in the content of the part.
pub fn range_inside(
    request: &RequestFacts<'_>,
    stored: &StoredResponse,
) -> Option<(ByteRange, Range<usize>)> {
    let part = Part::of(stored)?;
    let Answer::Ranges(ranges) = answer(request, stored, Some(part.complete_length)) else {
        return None;
    };
    let [range] = ranges.as_slice() else { return None };
    if range.first < part.range.first || range.last > part.range.last {
        return None;
    }
    let first = usize::try_from(range.first - part.range.first).ok()?;
    let length = usize::try_from(range.length()).ok()?;
    Some((*range, first..first.checked_add(length)?))
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
