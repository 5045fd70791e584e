//! Byte range requests: parsing, resolving against the stored content, and the part headers of a multipart
//! response (RFC 9110 §14).
//!
//! Invariants: every resolved range lies inside the content and is not empty. There are at most
//! [`RANGES_MAX`] ranges without overlap, in the order of the request. A field that is not understood is
//! ignored (§14.2). So is a field with more ranges, which §14.2 allows as a protection against abuse.

use http_fields::fields::{self, digits};

/// The maximum number of ranges in one response.
pub const RANGES_MAX: usize = 8;

/// A range of bytes of the content, both ends included, as in Content-Range (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first byte.
    pub first: u64,
    /// The position of the last byte.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes; never 0.
    pub fn length(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// The value of Content-Range for this range of `complete_length` bytes (RFC 9110 §14.4).
    pub fn content_range(&self, complete_length: u64) -> String {
        format!("bytes {}-{}/{complete_length}", self.first, self.last)
    }
}

/// The value of Content-Range in a 416 (RFC 9110 §15.5.17).
pub fn unsatisfied_content_range(complete_length: u64) -> String {
    format!("bytes */{complete_length}")
}

/// The ranges of a response; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    list: [ByteRange; RANGES_MAX],
    count: usize,
}

impl Ranges {
    /// The ranges in the order of the request. One range makes a plain 206, several make
    /// multipart/byteranges.
    pub fn as_slice(&self) -> &[ByteRange] {
        &self.list[..self.count]
    }

    /// Adds a range. It is joined with ranges that it overlaps or touches (RFC 9110 §15.3.7.2), at the
    /// position of the first of them. Returns false if there is no room.
    fn add(&mut self, mut range: ByteRange) -> bool {
        let mut place = None;
        let mut at = 0;
        while at < self.count {
            let known = self.list[at];
            if known.first > range.last.saturating_add(1)
                || range.first > known.last.saturating_add(1)
            {
                at += 1;
                continue;
            }
            range =
                ByteRange { first: known.first.min(range.first), last: known.last.max(range.last) };
            if place.is_some() {
                self.list.copy_within(at + 1..self.count, at);
                self.count -= 1;
            } else {
                place = Some(at);
                at += 1;
            }
            if let Some(place) = place {
                self.list[place] = range;
            }
        }
        if place.is_none() {
            if self.count == RANGES_MAX {
                return false;
            }
            self.list[self.count] = range;
            self.count += 1;
        }
        true
    }
}

/// The result of resolving a Range field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedRange {
    /// The field is not understood or selects everything: send the whole.
    Whole,
    /// Send these ranges.
    Parts(Ranges),
    /// No range lies in the content: 416 (RFC 9110 §15.5.17).
    Unsatisfiable,
}

/// Resolves the value of a Range field against content of `length` bytes (RFC 9110 §14.1.2, §14.2).
pub fn resolve(field: &[u8], length: u64) -> ResolvedRange {
    let Some(equals) = field.iter().position(|byte| *byte == b'=') else {
        return ResolvedRange::Whole;
    };
    if !field[..equals].eq_ignore_ascii_case(b"bytes") {
        return ResolvedRange::Whole; // Another unit, §14.1.
    }
    let mut ranges = Ranges { list: [ByteRange::default(); RANGES_MAX], count: 0 };
    let mut asked = 0;
    for spec in fields::members(&field[equals + 1..]) {
        asked += 1;
        match resolve_one(spec, length) {
            One::Malformed => return ResolvedRange::Whole,
            One::Outside => {}
            One::Inside(range) => {
                if !ranges.add(range) {
                    return ResolvedRange::Whole;
                }
            }
            One::All => return ResolvedRange::Whole,
        }
    }
    match (asked, ranges.count) {
        (0, _) => ResolvedRange::Whole,
        (_, 0) => ResolvedRange::Unsatisfiable,
        _ => ResolvedRange::Parts(ranges),
    }
}

/// The result of resolving one range-spec.
enum One {
    Malformed,
    Outside,
    Inside(ByteRange),
    /// A suffix of empty content, which has nothing to cut.
    All,
}

fn resolve_one(spec: &[u8], length: u64) -> One {
    let Some(dash) = spec.iter().position(|byte| *byte == b'-') else { return One::Malformed };
    let number = |text: &[u8]| digits(text, u64::MAX);
    match (&spec[..dash], &spec[dash + 1..]) {
        ([], suffix) => match number(suffix) {
            None => One::Malformed,
            Some(0) => One::Outside, // §14.1.2: "satisfiable if the suffix-length is non-zero".
            Some(_) if length == 0 => One::All,
            Some(wanted) => {
                One::Inside(ByteRange { first: length.saturating_sub(wanted), last: length - 1 })
            }
        },
        (first, last) => {
            let last = if last.is_empty() { Some(u64::MAX) } else { number(last) };
            let (Some(first), Some(last)) = (number(first), last) else { return One::Malformed };
            if last < first {
                return One::Malformed; // §14.1.1: "invalid if last-pos is less than first-pos".
            }
            if first >= length {
                return One::Outside;
            }
            One::Inside(ByteRange { first, last: last.min(length - 1) })
        }
    }
}

/// A multipart/byteranges response (RFC 9110 §14.6): the text before each part and at the end.
pub struct Multipart<'a> {
    /// The ranges of the response.
    pub ranges: Ranges,
    /// The boundary: up to 70 letters and digits that do not occur in the content (RFC 2046 §5.1.1).
    pub boundary: &'a str,
    /// The Content-Type of the whole, which each part repeats.
    pub content_type: Option<&'a [u8]>,
    /// The length of the whole in bytes.
    pub complete_length: u64,
}

impl Multipart<'_> {
    /// The Content-Type of the response.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// The text before the part with this index.
    pub fn part_head(&self, part: usize) -> Vec<u8> {
        let mut head = Vec::with_capacity(160);
        if part > 0 {
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"--");
        head.extend_from_slice(self.boundary.as_bytes());
        if let Some(content_type) = self.content_type {
            head.extend_from_slice(b"\r\nContent-Type: ");
            head.extend_from_slice(content_type);
        }
        head.extend_from_slice(b"\r\nContent-Range: ");
        let range = self.ranges.as_slice().get(part).copied().unwrap_or_default();
        head.extend_from_slice(range.content_range(self.complete_length).as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
        head
    }

    /// The text after the last part.
    pub fn closing(&self) -> Vec<u8> {
        [b"\r\n--", self.boundary.as_bytes(), b"--\r\n"].concat()
    }

    /// The Content-Length of the response: part headers, parts and closing text.
    pub fn content_length(&self) -> u64 {
        let parts = self.ranges.as_slice().iter().enumerate();
        let parts: u64 =
            parts.map(|(at, range)| self.part_head(at).len() as u64 + range.length()).sum();
        parts + self.closing().len() as u64
    }
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
