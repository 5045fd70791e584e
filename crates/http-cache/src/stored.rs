//! A stored response, but for its content: what was worked out once when it was stored, so that a
//! hit need only compare numbers (RFC 9111 §4.2).
//!
//! Invariants: `headers` holds end-to-end fields only, with a Date and without Age, Content-Length
//! and Set-Cookie, but for the cookies that are for everybody (`lsc-cookie`); nominated fields are sorted by name and normalised. Times are milliseconds.

use crate::directives::ResponseDirectives;
use crate::freshness::LifetimeSource;
use crate::litespeed::{CacheControl, Switch};
use crate::tags::Tags;
use crate::targeted::{DateField, date_field};
use crate::time::{SECONDS_MAX, Timestamp};
use crate::validators::EntityTag;
use crate::variants::Nominated;
use bytes::Bytes;
use http::header::{ETAG, HeaderValue, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};

/// A stored response without its content.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The status; never 1xx, 206 or 304.
    pub status: StatusCode,
    /// The end-to-end fields to send with it. Age, Content-Length and Cache-Status are added on
    /// sending, from [`Stored::age_seconds`], the content, and the verdict.
    pub headers: HeaderMap,
    /// When the request was sent to the origin.
    pub request_time: Timestamp,
    /// When the response came.
    pub response_time: Timestamp,
    /// Its age when it came, in milliseconds (corrected initial age, RFC 9111 §4.2.3).
    pub initial_age_ms: u64,
    /// Its freshness lifetime in milliseconds (RFC 9111 §4.2.1).
    pub lifetime_ms: u64,
    /// What gave it that lifetime.
    pub lifetime_source: LifetimeSource,
    /// The directives it came with, from the field that speaks to this cache.
    pub directives: ResponseDirectives,
    /// The nominated fields and the values the request had (RFC 9111 §4.1).
    pub nominated: Nominated,
    /// The tags of its page. Whoever indexes the page by them elsewhere may take them out of here,
    /// unless the response [can be validated](Stored::can_be_validated): a 304 may leave them out.
    pub tags: Tags,
    /// Of a private copy: the tags that only its owner's changes touch.
    pub owner_tags: Tags,
    /// The entity tag, from the origin or our own.
    pub etag: EntityTag,
    /// Whether its content may be sent in other forms, whose entity tags meet conditions as well.
    pub forms: Forms,
    /// What LiteSpeed's field says of the content, where there is one: `esi=on`, `no-vary`.
    pub litespeed: Option<CacheControl>,
    /// The length of the content in bytes, once known: set it when the content is complete if the
    /// origin gave no Content-Length. Until then ranges are ignored.
    pub content_length: Option<u64>,
    /// The fields meant for this cache alone: not sent, but needed when a 304 updates the rest.
    pub(crate) internal: HeaderMap,
    /// Last-Modified as a point in time, where it can be read.
    pub(crate) modified: Option<Timestamp>,
    /// Date as a point in time.
    pub(crate) date: Timestamp,
}

/// In how many forms a stored response is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forms {
    /// In the one that came.
    #[default]
    One,
    /// In content codings too, each form with a tag of its own ([`codings`](crate::codings)).
    ByCoding,
}

impl Stored {
    /// Moves the values of its header lines into an allocation of their own. As they came they are
    /// pieces of what was read from the origin's connection, and each keeps all of that in memory.
    pub fn own_values(&mut self) {
        own_values(&mut self.headers);
        own_values(&mut self.internal);
    }

    /// A file, of which the caller knows all: its fields (ETag and Last-Modified among them) and its
    /// length in bytes. For [`answer`](crate::answer) only; it has no lifetime and is never stored.
    pub fn of_file(headers: HeaderMap, length: u64, now: Timestamp) -> Stored {
        let etag = EntityTag::of_origin(&headers);
        let mut stored = Stored {
            status: StatusCode::OK,
            headers,
            request_time: now,
            response_time: now,
            initial_age_ms: 0,
            lifetime_ms: 0,
            lifetime_source: LifetimeSource::None,
            directives: ResponseDirectives::default(),
            nominated: Nominated::default(),
            etag,
            forms: Forms::One,
            tags: Tags::default(),
            owner_tags: Tags::default(),
            internal: HeaderMap::new(),
            litespeed: None,
            content_length: Some(length),
            modified: None,
            date: now,
        };
        stored.read_dates();
        stored
    }

    /// The current age in milliseconds (RFC 9111 §4.2.3); at most 2^31 seconds.
    pub fn age_ms(&self, now: Timestamp) -> u64 {
        let resident = now.since(self.response_time);
        self.initial_age_ms.saturating_add(resident).min(u64::from(SECONDS_MAX) * 1000)
    }

    /// The value of the Age field, in seconds (RFC 9111 §5.1), required on every reuse.
    pub fn age_seconds(&self, now: Timestamp) -> u64 {
        self.age_ms(now) / 1000
    }

    /// Whether the lifetime is longer than the age (RFC 9111 §4.2). Whether it may be *reused* is
    /// another question: `no-cache` responses may be fresh. See [`decide`](crate::decide).
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.lifetime_ms > self.age_ms(now)
    }

    /// How long it stays fresh, in seconds; negative when stale. The `ttl` of Cache-Status
    /// (RFC 9211 §2.4).
    pub fn ttl_seconds(&self, now: Timestamp) -> i64 {
        (self.lifetime_ms as i64 - self.age_ms(now) as i64).div_euclid(1000)
    }

    /// How long it has been stale, in milliseconds; 0 while fresh.
    pub fn staleness_ms(&self, now: Timestamp) -> u64 {
        self.age_ms(now).saturating_sub(self.lifetime_ms)
    }

    /// Until when it is fresh.
    pub fn fresh_until(&self) -> Timestamp {
        self.response_time.plus(self.lifetime_ms.saturating_sub(self.initial_age_ms))
    }

    /// Whether requests that arrived while it was being made may be answered with it unseen by the
    /// origin: it is fresh at `now`, and needs no validation before reuse (RFC 9111 §5.2.2.4).
    pub fn may_be_shared(&self, now: Timestamp) -> bool {
        !self.directives.no_cache && self.is_fresh(now)
    }

    /// Whether the origin can be asked if it still holds (RFC 9111 §4.3.1).
    pub fn can_be_validated(&self) -> bool {
        matches!(self.etag, EntityTag::Origins(_)) || self.headers.contains_key(LAST_MODIFIED)
    }

    /// Whether its content is marked as having elements of ESI in it.
    pub fn says_esi(&self) -> bool {
        self.litespeed.is_some_and(|control| control.esi == Switch::On)
    }

    /// Whether one copy is for all, whatever the vary cookies are.
    pub fn says_no_vary(&self) -> bool {
        self.litespeed.is_some_and(|control| control.no_vary == Switch::On)
    }

    /// Gives it an entity tag of our own, made by [`own_etag`](crate::validators::own_etag), unless
    /// the origin gave one; the ETag field then goes to clients, but never to the origin.
    pub fn set_own_etag(&mut self, tag: HeaderValue) {
        if !matches!(self.etag, EntityTag::Origins(_)) {
            self.headers.insert(ETAG, tag.clone());
            self.etag = EntityTag::Own(tag);
        }
    }

    /// Last-Modified as it came, if there.
    pub fn last_modified(&self) -> Option<&HeaderValue> {
        self.headers.get(LAST_MODIFIED)
    }

    /// Whether it is one visitor's copy, made by [`storable_for_owner`](crate::storable_for_owner).
    pub fn is_private(&self) -> bool {
        self.directives.private
    }

    /// An estimate of the bytes it takes on the heap beside its content, for the page budget:
    /// names, values, and the tables that hold them.
    pub fn heap_bytes(&self) -> usize {
        let table = self.headers.capacity() * 4 / 3 * 4 + self.headers.len() * 104;
        let values: usize = self.headers.iter().map(|(n, v)| n.as_str().len() + v.len()).sum();
        table
            + values
            + self.nominated.heap_bytes()
            + self.tags.heap_bytes()
            + self.owner_tags.heap_bytes()
            + self.directives.withheld.len() * 32
    }

    /// The fields meant for this cache alone, to be written down with the rest.
    pub fn internal_fields(&self) -> &HeaderMap {
        &self.internal
    }

    /// Gives it back the fields meant for this cache alone.
    pub fn with_internal_fields(self, internal: HeaderMap) -> Stored {
        Stored { internal, ..self }
    }

    /// Works out again what depends on the fields: the points in time of Date and Last-Modified,
    /// and adds a Date where none can be read (RFC 9110 §6.6.1).
    pub(crate) fn read_dates(&mut self) {
        self.date = match date_field(&self.headers, "date", self.response_time) {
            DateField::At(date) => date,
            DateField::Absent | DateField::Invalid => {
                let now = crate::date::format(self.response_time);
                let value = HeaderValue::from_bytes(&now).expect("a date is visible ASCII");
                self.headers.insert(http::header::DATE, value);
                Timestamp::from_seconds(self.response_time.seconds())
            }
        };
        self.modified = match date_field(&self.headers, "last-modified", self.response_time) {
            DateField::At(modified) => Some(modified),
            DateField::Absent | DateField::Invalid => None,
        };
    }
}

/// Puts all values of these fields into one allocation, which holds nothing else.
fn own_values(headers: &mut HeaderMap) {
    let all: Vec<u8> = headers.values().flat_map(|value| value.as_bytes()).copied().collect();
    let all = Bytes::from(all.into_boxed_slice());
    let mut from = 0;
    for value in headers.values_mut() {
        let to = from + value.len();
        let (own, sensitive) = (all.slice(from..to), value.is_sensitive());
        *value = HeaderValue::from_maybe_shared(own).expect("what is a value stays one");
        value.set_sensitive(sensitive);
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_their_own_are_the_same_and_lie_together() {
        let read = Bytes::from(vec![b'x'; 8 << 10]);
        let piece = |from: usize, to: usize| HeaderValue::from_maybe_shared(read.slice(from..to));
        let mut headers = HeaderMap::new();
        headers.insert("a", piece(100, 110).unwrap());
        headers.append("a", piece(4_000, 4_000).unwrap());
        headers.append("a", piece(5_000, 5_003).unwrap());
        let mut secret = HeaderValue::from_bytes(b"caf\xe9\t1").unwrap();
        secret.set_sensitive(true);
        headers.insert("b", secret);
        let before = headers.clone();
        own_values(&mut headers);
        assert_eq!(headers, before);
        assert!(headers["b"].is_sensitive() && !headers["a"].is_sensitive());
        let places: Vec<_> = headers.values().map(|v| v.as_bytes().as_ptr_range()).collect();
        let (first, last) =
            (places.iter().map(|p| p.start).min(), places.iter().map(|p| p.end).max());
        assert_eq!(last.unwrap() as usize - first.unwrap() as usize, 10 + 3 + 6);
        assert!(!read.as_ptr_range().contains(&first.unwrap()));
    }
}
