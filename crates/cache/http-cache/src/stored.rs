//! A stored response, but for its content: what was worked out once when it was stored, so that a
//! hit need only compare numbers (RFC 9111 §4.2).
//!
//! Invariants: `headers` holds end-to-end fields only, with a Date and without Age, Content-Length
//! and Set-Cookie, but for the cookies that are for everybody (`lsc-cookie`); nominated fields are sorted by name and normalised. Times are milliseconds.

use crate::directives::ResponseDirectives;
use crate::freshness::LifetimeSource;
use crate::litespeed::{CacheControl, Switch};
use crate::packed::{Directives, Length, Millis, Modified};
use crate::rare::{Emptiable, Rare};
use crate::tags::Tags;
use crate::targeted::{DateField, date_field};
use crate::time::{SECONDS_MAX, Timestamp};
use crate::validators::{EntityTag, Whose};
use crate::variants::Nominated;
use http::header::{ETAG, HeaderValue, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use std::ops::{Deref, DerefMut};

/// A stored response without its content: the fields that are sent with it, and what was worked out
/// of them. It is read as the latter is, and lent wherever that is asked for.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The end-to-end fields to send with it. Age, Content-Length and Cache-Status are added on
    /// sending, from [`StoredFacts::age_seconds`], the content, and the verdict.
    pub headers: HeaderMap,
    /// The fields meant for this cache alone: not sent, but needed when a 304 updates the rest.
    pub(crate) internal: HeaderMap,
    /// What reuse needs.
    pub(crate) facts: StoredFacts,
}

/// A stored response as far as reuse needs it: without content and fields. Whoever keeps many keeps
/// these, and the fields as they like. What is behind a method is packed: so it takes half of the bytes.
#[derive(Clone, Debug)]
pub struct StoredFacts {
    /// The status; never 1xx, 206 or 304.
    pub status: StatusCode,
    /// When the response came.
    pub response_time: Timestamp,
    /// How long after the request, in milliseconds, up to 49 days.
    delay_ms: u32,
    initial_age: Millis,
    lifetime: Millis,
    /// What gave it its lifetime.
    pub lifetime_source: LifetimeSource,
    /// The directives it came with, from the field that speaks to this cache.
    pub directives: Directives,
    /// What some have and most have nothing of.
    few: Rare<Few>,
    /// The entity tag, from the origin or our own.
    pub etag: EntityTag,
    /// Whether its content may be sent in other forms, whose entity tags meet conditions as well.
    pub forms: Forms,
    content_length: Length,
    /// Last-Modified as a point in time, where it can be read.
    modified: Modified,
    /// Date as a point in time.
    date: Millis,
}

/// What some stored responses have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Few {
    tags: Tags,
    nominated: Rare<Nominated>,
    beside: Rare<Beside>,
}

impl Emptiable for Few {
    const EMPTY: &'static Few =
        &Few { tags: Tags::NONE, nominated: Rare::NOTHING, beside: Rare::NOTHING };

    fn is_nothing(&self) -> bool {
        self.tags.is_empty() && self.nominated.is_empty() && self.beside.is_nothing()
    }
}

/// What few stored responses have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Of a private copy: the tags that only its owner's changes touch.
    pub owner_tags: Tags,
    /// What LiteSpeed's field says of the content, where there is one: `esi=on`, `no-vary`.
    pub litespeed: Option<CacheControl>,
}

impl Emptiable for Beside {
    const EMPTY: &'static Beside = &Beside { owner_tags: Tags::NONE, litespeed: None };

    fn is_nothing(&self) -> bool {
        self.owner_tags.is_empty() && self.litespeed.is_none()
    }
}

impl Deref for Stored {
    type Target = StoredFacts;

    fn deref(&self) -> &StoredFacts {
        &self.facts
    }
}

impl DerefMut for Stored {
    fn deref_mut(&mut self) -> &mut StoredFacts {
        &mut self.facts
    }
}

/// In how many forms a stored response is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forms {
    /// In the one that came.
    #[default]
    One,
    /// In content codings too, each form with a tag of its own ([`codings`](crate::codings)).
    ByCoding,
    /// Never as it is: it is a template, and what is sent of it is put together for each visitor. Conditions
    /// and ranges are about what is sent, of which nothing is known here.
    Assembled,
}

impl Stored {
    /// A file, of which the caller knows all: its fields (ETag and Last-Modified among them) and its
    /// length in bytes. For [`answer`](crate::answer) only; it has no lifetime and is never stored.
    pub fn of_file(headers: HeaderMap, length: u64, now: Timestamp) -> Stored {
        let mut facts = StoredFacts::of(StatusCode::OK, now);
        facts.etag = EntityTag::of_origin(&headers);
        facts.set_content_length(Some(length));
        let mut stored = Stored { headers, internal: HeaderMap::new(), facts };
        stored.read_dates();
        stored
    }

    /// What it was taken apart into, with all its fields, put together again.
    pub fn of_parts(facts: StoredFacts, headers: HeaderMap, internal: HeaderMap) -> Stored {
        Stored { headers, internal, facts }
    }

    /// What reuse needs, the fields that are sent, and those meant for this cache alone. The first is
    /// apart from the others in memory as well: as they came, values are pieces of what was read from the
    /// origin's connection, and each keeps all of that.
    pub fn into_parts(self) -> (StoredFacts, HeaderMap, HeaderMap) {
        let Stored { headers, internal, mut facts } = self;
        if !headers.contains_key(LAST_MODIFIED) {
            facts.modified = Modified::ABSENT;
        } else if !facts.modified.is_there() {
            facts.modified = Modified::UNREADABLE;
        }
        if let Some(few) = facts.few.there() {
            few.tags.shrink();
            few.beside.there().into_iter().for_each(|beside| beside.owner_tags.shrink());
        }
        (facts, headers, internal)
    }

    /// Gives it an entity tag of our own, made by [`own_etag`](crate::validators::own_etag), unless
    /// the origin gave one; the ETag field then goes to clients, but never to the origin.
    pub fn set_own_etag(&mut self, tag: HeaderValue) {
        if self.etag.whose() != Some(Whose::Origins) {
            self.etag = EntityTag::of(Whose::Own, tag.as_bytes());
            self.headers.insert(ETAG, tag);
        }
    }

    /// Last-Modified as it came, if there.
    pub fn last_modified(&self) -> Option<&HeaderValue> {
        self.headers.get(LAST_MODIFIED)
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
        let came = self.response_time;
        let date = match date_field(&self.headers, "date", came) {
            DateField::At(date) => date,
            DateField::Absent | DateField::Invalid => {
                let now = crate::date::format(came);
                let value = HeaderValue::from_bytes(&now).expect("a date is visible ASCII");
                self.headers.insert(http::header::DATE, value);
                Timestamp::from_seconds(came.seconds())
            }
        };
        self.facts.date = Millis::of(date.0);
        self.facts.modified = match date_field(&self.headers, "last-modified", came) {
            DateField::At(modified) => Modified::at(modified),
            _ if self.headers.contains_key(LAST_MODIFIED) => Modified::UNREADABLE,
            DateField::Absent | DateField::Invalid => Modified::ABSENT,
        };
    }
}

impl StoredFacts {
    /// Of a response with this status that came at this time, for the rest to be set.
    pub(crate) fn of(status: StatusCode, response_time: Timestamp) -> StoredFacts {
        StoredFacts {
            status,
            response_time,
            delay_ms: 0,
            initial_age: Millis::of(0),
            lifetime: Millis::of(0),
            lifetime_source: LifetimeSource::None,
            directives: Directives::from(&ResponseDirectives::default()),
            few: Rare::default(),
            etag: EntityTag::NONE,
            forms: Forms::One,
            content_length: Length::of(None),
            modified: Modified::ABSENT,
            date: Millis::of(response_time.0),
        }
    }

    /// The nominated fields and the values the request had (RFC 9111 §4.1).
    pub fn nominated(&self) -> &Nominated {
        &self.few.nominated
    }

    /// Says which these are.
    pub fn set_nominated(&mut self, nominated: Nominated) {
        self.few.change(|few| few.nominated = nominated.into());
    }

    /// The tags of its page. Whoever indexes the page by them elsewhere may take them out of here,
    /// unless the response [can be validated](StoredFacts::can_be_validated): a 304 may leave them out.
    pub fn tags(&self) -> &Tags {
        &self.few.tags
    }

    /// Gives its page these tags and no others.
    pub fn set_tags(&mut self, tags: Tags) {
        self.few.change(|few| few.tags = tags);
    }

    /// What few have.
    pub fn beside(&self) -> &Beside {
        &self.few.beside
    }

    /// Says what it has of that.
    pub fn set_beside(&mut self, beside: Beside) {
        self.few.change(|few| few.beside = beside.into());
    }

    /// When the request was sent to the origin.
    pub fn request_time(&self) -> Timestamp {
        Timestamp(self.response_time.0.saturating_sub(self.delay_ms.into()))
    }

    /// Says when that was; it is kept as how long before the response.
    pub fn set_request_time(&mut self, sent: Timestamp) {
        self.delay_ms = u32::try_from(self.response_time.since(sent)).unwrap_or(u32::MAX);
    }

    /// Its age when it came, in milliseconds (corrected initial age, RFC 9111 §4.2.3).
    pub fn initial_age_ms(&self) -> u64 {
        self.initial_age.get()
    }

    /// Sets its age when it came, in milliseconds: at most 2^31 seconds.
    pub fn set_initial_age_ms(&mut self, age_ms: u64) {
        self.initial_age = Millis::of(age_ms);
    }

    /// Its freshness lifetime in milliseconds (RFC 9111 §4.2.1).
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime.get()
    }

    /// Sets its freshness lifetime in milliseconds: at most 2^31 seconds.
    pub fn set_lifetime_ms(&mut self, lifetime_ms: u64) {
        self.lifetime = Millis::of(lifetime_ms);
    }

    /// The length of the content in bytes, once known; until then ranges are ignored.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length.get()
    }

    /// Sets that length: when the content is complete, if the origin gave no Content-Length.
    pub fn set_content_length(&mut self, bytes: Option<u64>) {
        self.content_length = Length::of(bytes);
    }

    /// Last-Modified as a point in time, where it can be read.
    pub(crate) fn modified(&self) -> Option<Timestamp> {
        self.modified.get()
    }

    /// Date as a point in time.
    pub(crate) fn date(&self) -> Timestamp {
        Timestamp(self.date.get())
    }

    /// The current age in milliseconds (RFC 9111 §4.2.3); at most 2^31 seconds.
    pub fn age_ms(&self, now: Timestamp) -> u64 {
        let resident = now.since(self.response_time);
        self.initial_age_ms().saturating_add(resident).min(u64::from(SECONDS_MAX) * 1000)
    }

    /// The value of the Age field, in seconds (RFC 9111 §5.1), required on every reuse.
    pub fn age_seconds(&self, now: Timestamp) -> u64 {
        self.age_ms(now) / 1000
    }

    /// Whether the lifetime is longer than the age (RFC 9111 §4.2). Whether it may be *reused* is
    /// another question: `no-cache` responses may be fresh. See [`decide`](crate::decide).
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.lifetime_ms() > self.age_ms(now)
    }

    /// How long it stays fresh, in seconds; negative when stale. The `ttl` of Cache-Status
    /// (RFC 9211 §2.4).
    pub fn ttl_seconds(&self, now: Timestamp) -> i64 {
        (self.lifetime_ms() as i64 - self.age_ms(now) as i64).div_euclid(1000)
    }

    /// How long it has been stale, in milliseconds; 0 while fresh.
    pub fn staleness_ms(&self, now: Timestamp) -> u64 {
        self.age_ms(now).saturating_sub(self.lifetime_ms())
    }

    /// Until when it is fresh.
    pub fn fresh_until(&self) -> Timestamp {
        self.response_time.plus(self.lifetime_ms().saturating_sub(self.initial_age_ms()))
    }

    /// Whether requests that arrived while it was being made may be answered with it unseen by the
    /// origin: it is fresh at `now`, and needs no validation before reuse (RFC 9111 §5.2.2.4).
    pub fn may_be_shared(&self, now: Timestamp) -> bool {
        !self.directives.no_cache() && self.is_fresh(now)
    }

    /// Whether the origin can be asked if it still holds (RFC 9111 §4.3.1).
    pub fn can_be_validated(&self) -> bool {
        self.etag.whose() == Some(Whose::Origins) || self.modified.is_there()
    }

    /// Whether its content is marked as having elements of ESI in it.
    pub fn says_esi(&self) -> bool {
        self.beside().litespeed.is_some_and(|control| control.esi == Switch::On)
    }

    /// Whether one copy is for all, whatever the vary cookies are.
    pub fn says_no_vary(&self) -> bool {
        self.beside().litespeed.is_some_and(|control| control.no_vary == Switch::On)
    }

    /// Whether it is one visitor's copy, made by [`storable_for_owner`](crate::storable_for_owner).
    pub fn is_private(&self) -> bool {
        self.directives.private()
    }

    /// An estimate of the bytes it takes on the heap, for the page budget: what varies by anything, tags,
    /// the entity tag.
    pub fn heap_bytes(&self) -> usize {
        let Few { tags, nominated, beside } = &*self.few;
        let boxes = self.few.box_bytes() + nominated.box_bytes() + beside.box_bytes();
        nominated.heap_bytes()
            + tags.heap_bytes()
            + beside.owner_tags.heap_bytes()
            + boxes
            + self.etag.heap_bytes()
    }
}

/// What an allocator takes for an allocation of so many bytes: steps of 16, 8 of its own.
pub(crate) fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        bytes => ((bytes + 8 + 15) & !15).max(32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn facts_are_few_bytes() {
        assert_eq!(size_of::<StoredFacts>(), 96);
    }

    #[test]
    fn taken_apart_it_holds_nothing_of_what_was_read() {
        let read = Bytes::from(vec![b'x'; 8 << 10]);
        let mut headers = HeaderMap::new();
        let tag = HeaderValue::from_maybe_shared(read.slice(100..110)).unwrap();
        headers.insert(ETAG, tag);
        headers.insert(LAST_MODIFIED, HeaderValue::from_static("whenever"));
        let stored = Stored::of_file(headers, 1, Timestamp(0));
        let (facts, headers, internal) = stored.clone().into_parts();
        let tag = facts.etag.text().expect("it has one");
        assert_eq!((&*tag, facts.etag.whose()), (&read[100..110], Some(Whose::Origins)));
        assert!(!read.as_ptr_range().contains(&tag.as_ptr()));
        assert!(facts.can_be_validated() && facts.modified().is_none());
        let again = Stored::of_parts(facts, headers, internal);
        assert_eq!(again.headers, stored.headers);
    }
}
