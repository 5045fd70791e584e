//! Parts of a response (206): which may be stored, and how two become one (RFC 9110 §14.4, §15.3.7.3,
//! RFC 9111 §3.3, §3.4).
//!
//! Invariants: a part is never the whole, and is used only for ranges wholly inside it (§3.3). It is
//! stored only with a strong entity tag of the origin's, if Content-Range and content agree to the
//! byte, and if no If-Range selected it, for then fields may be missing (§15.3.7). Two become one only
//! if their tags match strongly, they are of one length, overlap or touch, are the same bytes where
//! they overlap, and have the same fields but for those that tell the time: so whatever a change is
//! aimed at in the older is to be found in both together. Not here: several ranges in one response;
//! and whether the older still holds, which is a matter of leases (it has to be in the store after the
//! newer's request was sent).

use crate::conditional::{Answer, answer};
use crate::fields::{self, Fields, digits};
use crate::not_stored::NotStored;
use crate::policy::Policy;
use crate::range::ByteRange;
use crate::request::RequestFacts;
use crate::stored::Stored;
use crate::storing::storable;
use crate::time::Timestamp;
use crate::validators::{TagText, Whose, strong_match};
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, DATE, EXPIRES, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use std::ops::Range;

/// Where a part lies in the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes it has.
    pub range: ByteRange,
    /// How many bytes the whole has.
    pub complete_length: u64,
}

impl Part {
    /// Reads a Content-Range (RFC 9110 §14.4). `None` for another unit, an unknown complete length,
    /// and what §14.4 calls invalid: a last position before the first, or beyond the complete length.
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

    /// The part that a stored response holds; `None` if it is a whole one.
    pub fn of(stored: &Stored) -> Option<Part> {
        Part::read(stored.headers.get(CONTENT_RANGE)?.as_bytes())
    }

    /// Whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.range.length() == self.complete_length
    }

    /// How this part and a newer one of the same whole become one; `None` where bytes between them
    /// are missing.
    fn join(&self, newer: &Part) -> Option<Join> {
        let (old, new) = (self.range, newer.range);
        let apart =
            new.first > old.last.saturating_add(1) || old.first > new.last.saturating_add(1);
        if apart || self.complete_length != newer.complete_length {
            return None;
        }
        let range = ByteRange { first: old.first.min(new.first), last: old.last.max(new.last) };
        // Both parts are in memory: their lengths, and what is left of them, fit.
        let at = |position: u64| (position - old.first) as usize;
        let before = 0..if old.first < new.first { at(new.first) } else { 0 };
        let end = old.length() as usize;
        let after = if old.last > new.last { at(new.last + 1)..end } else { end..end };
        Some(Join { part: Part { range, complete_length: self.complete_length }, before, after })
    }
}

/// Two parts as one: so much of the older, then the newer, then so much of the older.
struct Join {
    part: Part,
    before: Range<usize>,
    after: Range<usize>,
}

/// Whether the 206 that came to `request` may be stored as a part (RFC 9111 §3.3), and what is kept:
/// as of the whole, but for Content-Range, which stays. Its content has to be as long as the part.
///
/// The other parameters are those of [`storable`].
///
/// # Errors
/// The first reason that stands against it.
pub fn storable_part(
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    headers: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> Result<(Stored, Part), NotStored> {
    let mut lines = headers.get_all(CONTENT_RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(NotStored::PartUnreadable);
    };
    let part = Part::read(line.as_bytes()).ok_or(NotStored::PartUnreadable)?;
    let announced = fields::first(headers, "content-length").map(|text| digits(text, u64::MAX));
    if announced.is_some_and(|length| length != Some(part.range.length())) {
        return Err(NotStored::PartUnreadable);
    }
    // A coded part cannot be undone, and is not cut further.
    if request.if_range.is_some() || headers.contains_key(CONTENT_ENCODING) {
        return Err(NotStored::PartialContent);
    }
    if part.range.length() > policy.content_max_bytes {
        return Err(NotStored::TooLarge);
    }
    let (asked, came) = (request_time, response_time);
    // What else RFC 9111 §3 asks of the whole, it asks of a part.
    let mut stored =
        storable(request, request_fields, StatusCode::OK, headers, asked, came, policy)?;
    if strong_tag(&stored).is_none() {
        return Err(NotStored::PartNotStrong);
    }
    stored.set_content_length(Some(part.complete_length));
    Ok((stored, part))
}

fn strong_tag(stored: &Stored) -> Option<TagText<'_>> {
    // What is no entity tag at all matches nothing, itself neither.
    let tag = stored.etag.as_it_came().filter(|tag| strong_match(tag, tag));
    tag.filter(|_| stored.etag.whose() == Some(Whose::Origins))
}

/// A stored part with its content.
pub struct Held<'a> {
    /// The stored response.
    pub stored: &'a Stored,
    /// Its content: the part's bytes.
    pub content: &'a [u8],
}

/// A part and an older one put together (RFC 9111 §3.4, RFC 9110 §15.3.7.3): the fields are the
/// newer's, the tags both's. `None` if the two must not be put together, or would have more than
/// `content_max_bytes`.
pub fn joined(
    older: &Held<'_>,
    newer: &Held<'_>,
    content_max_bytes: u64,
) -> Option<(Stored, Vec<u8>)> {
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
    // Where both have bytes they are the same, or the tag is not what it says.
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

/// Whether both have the same fields, but for those that tell when they were made and which part they
/// are.
fn has_same_fields(one: &Stored, other: &Stored) -> bool {
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

/// Says which part it is; says nothing of parts any more once nothing is missing.
fn set_part(stored: &mut Stored, part: Part) {
    if part.is_whole() {
        stored.headers.remove(CONTENT_RANGE);
        return;
    }
    let value = part.range.content_range(part.complete_length);
    let value = HeaderValue::from_str(&value).expect("digits and visible signs");
    stored.headers.insert(CONTENT_RANGE, value);
}

/// The stored response of a part in which nothing is missing is that of the whole (RFC 9110
/// §15.3.7.3).
pub fn whole_if_complete(mut stored: Stored, part: Part) -> Stored {
    set_part(&mut stored, part);
    stored
}

/// The one range of a stored part that answers a request, if one does: asked for alone, and wholly
/// inside the part (RFC 9111 §3.3). First its place in the whole, then in the part's content.
pub fn range_inside(
    request: &RequestFacts<'_>,
    stored: &Stored,
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
