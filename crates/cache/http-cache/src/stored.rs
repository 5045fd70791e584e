//! A stored response without its content. Everything that a hit needs was computed when it was stored, so
//! that a hit only compares numbers (RFC 9111 §4.2).
//!
//! Invariants: `headers` has end-to-end fields only, with Date and without Age, Content-Length and
//! Set-Cookie, except the shared cookies of `lsc-cookie`. Nominated fields are sorted by name and
//! normalised. Times are in milliseconds.

use crate::freshness::LifetimeSource;
use crate::litespeed::{CacheControl, Switch};
use crate::packed::{Directives, LastModified, Length, Millis};
use crate::sparse::{MaybeEmpty, Sparse};
use crate::tags::Tags;
use crate::targeted::{DateField, date_field};
use crate::validators::{EntityTag, EtagSource};
use crate::variants::NominatedFields;
use http::header::{ETAG, HeaderValue, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use http_fields::directives::ResponseDirectives;
use http_fields::time::{SECONDS_MAX, Timestamp};
use std::ops::{Deref, DerefMut};

/// A stored response without its content: the header fields to send, and the facts computed from them, to
/// which it dereferences.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// The end-to-end fields to send. Age, Content-Length and Cache-Status are added when it is sent, from
    /// [`StoredFacts::age_seconds`], the content and the verdict.
    pub headers: HeaderMap,
    /// The fields for this cache only: they are not sent, but needed when a 304 updates the response.
    pub(crate) internal: HeaderMap,
    /// The facts that decide reuse.
    pub(crate) facts: StoredFacts,
}

/// The facts of a stored response that decide reuse, without content and header fields. A store keeps these
/// and chooses its own form for the header fields. Values behind methods are packed, which halves their
/// memory.
#[derive(Clone, Debug)]
pub struct StoredFacts {
    /// The status; never 1xx, 206 or 304.
    pub status: StatusCode,
    /// The time at which the response was received.
    pub response_time: Timestamp,
    /// The time between request and response, in milliseconds, at most 49 days.
    delay_ms: u32,
    initial_age: Millis,
    lifetime: Millis,
    /// The source of the lifetime.
    pub lifetime_source: LifetimeSource,
    /// The directives of the response, from the field that applies to this cache.
    pub directives: Directives,
    /// The values that most stored responses do not have.
    few: Sparse<SparseFacts>,
    /// The entity tag, from the origin or from this cache.
    pub etag: EntityTag,
    /// Whether the content may be sent in other codings, whose entity tags satisfy conditions as well.
    pub forms: Forms,
    content_length: Length,
    /// Last-Modified as a point in time, if it is readable.
    modified: LastModified,
    /// Date as a point in time.
    date: Millis,
}

/// Values that some stored responses have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SparseFacts {
    tags: Tags,
    nominated: Sparse<NominatedFields>,
    extras: Sparse<ResponseExtras>,
}

impl MaybeEmpty for SparseFacts {
    const EMPTY: &'static SparseFacts =
        &SparseFacts { tags: Tags::NONE, nominated: Sparse::NOTHING, extras: Sparse::NOTHING };

    fn is_nothing(&self) -> bool {
        self.tags.is_empty() && self.nominated.is_empty() && self.extras.is_nothing()
    }
}

/// Values that few stored responses have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseExtras {
    /// For a private copy: the tags whose changes affect only its owner's copies.
    pub owner_tags: Tags,
    /// LiteSpeed's field about the content, if present: `esi=on`, `no-vary`.
    pub litespeed: Option<CacheControl>,
}

impl MaybeEmpty for ResponseExtras {
    const EMPTY: &'static ResponseExtras =
        &ResponseExtras { owner_tags: Tags::NONE, litespeed: None };

    fn is_nothing(&self) -> bool {
        self.owner_tags.is_empty() && self.litespeed.is_none()
    }
}

impl Deref for StoredResponse {
    type Target = StoredFacts;

    fn deref(&self) -> &StoredFacts {
        &self.facts
    }
}

impl DerefMut for StoredResponse {
    fn deref_mut(&mut self) -> &mut StoredFacts {
        &mut self.facts
    }
}

/// The forms in which a stored response is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forms {
    /// Only as received.
    #[default]
    One,
    /// As received, and in content codings, each with an entity tag of its own ([`codings`](crate::codings)).
    ByCoding,
    /// Never as stored: it is a template, from which a response is assembled for each client. Conditions
    /// and ranges concern the assembled response, which is unknown here.
    Assembled,
}

impl StoredResponse {
    /// A static file, whose fields (including ETag and Last-Modified) and length in bytes the caller knows.
    /// For [`answer`](crate::answer) only; it has no lifetime and is never stored.
    pub fn of_file(headers: HeaderMap, length: u64, now: Timestamp) -> StoredResponse {
        let mut facts = StoredFacts::of(StatusCode::OK, now);
        facts.etag = EntityTag::of_origin(&headers);
        facts.set_content_length(Some(length));
        let mut stored = StoredResponse { headers, internal: HeaderMap::new(), facts };
        stored.read_dates();
        stored
    }

    /// Combines the results of [`into_parts`](Self::into_parts), with all fields.
    pub fn of_parts(facts: StoredFacts, headers: HeaderMap, internal: HeaderMap) -> StoredResponse {
        StoredResponse { headers, internal, facts }
    }

    /// Returns the facts, the fields to send, and the fields for this cache only. The facts share no memory
    /// with the fields: received values are slices of the origin connection's read buffer, and each of them
    /// keeps the whole buffer alive.
    pub fn into_parts(self) -> (StoredFacts, HeaderMap, HeaderMap) {
        let StoredResponse { headers, internal, mut facts } = self;
        if !headers.contains_key(LAST_MODIFIED) {
            facts.modified = LastModified::ABSENT;
        } else if !facts.modified.is_there() {
            facts.modified = LastModified::UNREADABLE;
        }
        if let Some(few) = facts.few.there() {
            few.tags.shrink();
            few.extras.there().into_iter().for_each(|extras| extras.owner_tags.shrink());
        }
        (facts, headers, internal)
    }

    /// Sets an entity tag made by [`own_etag`](crate::validators::own_etag), unless the origin gave one.
    /// The ETag field is then sent to clients, but never to the origin.
    pub fn set_own_etag(&mut self, tag: HeaderValue) {
        if self.etag.source() != Some(EtagSource::Origins) {
            self.etag = EntityTag::of(EtagSource::Own, tag.as_bytes());
            self.headers.insert(ETAG, tag);
        }
    }

    /// Last-Modified as received, if present.
    pub fn last_modified(&self) -> Option<&HeaderValue> {
        self.headers.get(LAST_MODIFIED)
    }

    /// The fields for this cache only, to be saved with the others.
    pub fn internal_fields(&self) -> &HeaderMap {
        &self.internal
    }

    /// Sets the fields for this cache only.
    pub fn with_internal_fields(self, internal: HeaderMap) -> StoredResponse {
        StoredResponse { internal, ..self }
    }

    /// Computes the points in time of Date and Last-Modified from the fields, and adds a Date if there is
    /// no readable one (RFC 9110 §6.6.1).
    pub(crate) fn read_dates(&mut self) {
        let came = self.response_time;
        let date = match date_field(&self.headers, "date", came) {
            DateField::At(date) => date,
            DateField::Absent | DateField::Invalid => {
                let now = http_fields::date::format(came);
                let value = HeaderValue::from_bytes(&now).expect("a date is visible ASCII");
                self.headers.insert(http::header::DATE, value);
                Timestamp::from_seconds(came.seconds())
            }
        };
        self.facts.date = Millis::of(date.0);
        self.facts.modified = match date_field(&self.headers, "last-modified", came) {
            DateField::At(modified) => LastModified::at(modified),
            _ if self.headers.contains_key(LAST_MODIFIED) => LastModified::UNREADABLE,
            DateField::Absent | DateField::Invalid => LastModified::ABSENT,
        };
    }
}

impl StoredFacts {
    /// The facts of a response with this status that was received at this time. The caller sets the others.
    pub(crate) fn of(status: StatusCode, response_time: Timestamp) -> StoredFacts {
        StoredFacts {
            status,
            response_time,
            delay_ms: 0,
            initial_age: Millis::of(0),
            lifetime: Millis::of(0),
            lifetime_source: LifetimeSource::None,
            directives: Directives::from(&ResponseDirectives::default()),
            few: Sparse::default(),
            etag: EntityTag::NONE,
            forms: Forms::One,
            content_length: Length::of(None),
            modified: LastModified::ABSENT,
            date: Millis::of(response_time.0),
        }
    }

    /// The nominated fields, with the request's values (RFC 9111 §4.1).
    pub fn nominated(&self) -> &NominatedFields {
        &self.few.nominated
    }

    /// Sets the nominated fields.
    pub fn set_nominated(&mut self, nominated: NominatedFields) {
        self.few.change(|few| few.nominated = nominated.into());
    }

    /// The tags of the page. If they are indexed elsewhere, they may be removed from here, unless the
    /// response [can be validated](StoredFacts::can_be_validated): a 304 may omit them.
    pub fn tags(&self) -> &Tags {
        &self.few.tags
    }

    /// Replaces the tags of the page.
    pub fn set_tags(&mut self, tags: Tags) {
        self.few.change(|few| few.tags = tags);
    }

    /// The values that few responses have.
    pub fn extras(&self) -> &ResponseExtras {
        &self.few.extras
    }

    /// Sets the values that few responses have.
    pub fn set_extras(&mut self, extras: ResponseExtras) {
        self.few.change(|few| few.extras = extras.into());
    }

    /// The time at which the request was sent to the origin.
    pub fn request_time(&self) -> Timestamp {
        Timestamp(self.response_time.0.saturating_sub(self.delay_ms.into()))
    }

    /// Sets that time; it is stored as a difference to the response time.
    pub fn set_request_time(&mut self, sent: Timestamp) {
        self.delay_ms = u32::try_from(self.response_time.since(sent)).unwrap_or(u32::MAX);
    }

    /// The age at reception in milliseconds (corrected initial age, RFC 9111 §4.2.3).
    pub fn initial_age_ms(&self) -> u64 {
        self.initial_age.get()
    }

    /// Sets the age at reception in milliseconds, at most 2^31 seconds.
    pub fn set_initial_age_ms(&mut self, age_ms: u64) {
        self.initial_age = Millis::of(age_ms);
    }

    /// The freshness lifetime in milliseconds (RFC 9111 §4.2.1).
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime.get()
    }

    /// Sets the freshness lifetime in milliseconds, at most 2^31 seconds.
    pub fn set_lifetime_ms(&mut self, lifetime_ms: u64) {
        self.lifetime = Millis::of(lifetime_ms);
    }

    /// The length of the content in bytes; `None` while it is unknown, and ranges are then ignored.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length.get()
    }

    /// Sets the length of the content in bytes, once it is complete, if the origin sent no Content-Length.
    pub fn set_content_length(&mut self, bytes: Option<u64>) {
        self.content_length = Length::of(bytes);
    }

    /// Last-Modified as a point in time, if it is readable.
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

    /// The value of the Age field in seconds (RFC 9111 §5.1), which every reuse requires.
    pub fn age_seconds(&self, now: Timestamp) -> u64 {
        self.age_ms(now) / 1000
    }

    /// Whether the lifetime exceeds the age (RFC 9111 §4.2). This is not sufficient for reuse: a `no-cache`
    /// response may be fresh. See [`decide`](crate::decide).
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.lifetime_ms() > self.age_ms(now)
    }

    /// The remaining freshness lifetime in seconds, negative if stale: the `ttl` of Cache-Status (RFC 9211
    /// §2.4).
    pub fn ttl_seconds(&self, now: Timestamp) -> i64 {
        (self.lifetime_ms() as i64 - self.age_ms(now) as i64).div_euclid(1000)
    }

    /// How long the response has been stale, in milliseconds; 0 while it is fresh.
    pub fn staleness_ms(&self, now: Timestamp) -> u64 {
        self.age_ms(now).saturating_sub(self.lifetime_ms())
    }

    /// The time until which the response is fresh.
    pub fn fresh_until(&self) -> Timestamp {
        self.response_time.plus(self.lifetime_ms().saturating_sub(self.initial_age_ms()))
    }

    /// Whether it may answer requests that arrived during its render without another origin request: it is
    /// fresh at `now` and needs no validation (RFC 9111 §5.2.2.4).
    pub fn may_be_shared(&self, now: Timestamp) -> bool {
        !self.directives.no_cache() && self.is_fresh(now)
    }

    /// Whether the origin can validate it (RFC 9111 §4.3.1).
    pub fn can_be_validated(&self) -> bool {
        self.etag.source() == Some(EtagSource::Origins) || self.modified.is_there()
    }

    /// Whether its content is declared to have ESI elements.
    pub fn says_esi(&self) -> bool {
        self.extras().litespeed.is_some_and(|control| control.esi == Switch::On)
    }

    /// Whether one copy applies to all values of the vary cookies.
    pub fn says_no_vary(&self) -> bool {
        self.extras().litespeed.is_some_and(|control| control.no_vary == Switch::On)
    }

    /// Whether it is a private copy, made by [`storable_for_owner`](crate::storable_for_owner).
    pub fn is_private(&self) -> bool {
        self.directives.private()
    }

    /// An estimate of its heap bytes for the page budget: nominated fields, tags, entity tag.
    pub fn heap_bytes(&self) -> usize {
        let SparseFacts { tags, nominated, extras } = &*self.few;
        let boxes = self.few.box_bytes() + nominated.box_bytes() + extras.box_bytes();
        nominated.heap_bytes()
            + tags.heap_bytes()
            + extras.owner_tags.heap_bytes()
            + boxes
            + self.etag.heap_bytes()
    }
}

/// The heap bytes of an allocation of `bytes`: steps of 16, with 8 bytes of overhead.
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
    fn the_facts_share_no_memory_with_the_read_buffer() {
        let read = Bytes::from(vec![b'x'; 8 << 10]);
        let mut headers = HeaderMap::new();
        let tag = HeaderValue::from_maybe_shared(read.slice(100..110)).unwrap();
        headers.insert(ETAG, tag);
        headers.insert(LAST_MODIFIED, HeaderValue::from_static("whenever"));
        let stored = StoredResponse::of_file(headers, 1, Timestamp(0));
        let (facts, headers, internal) = stored.clone().into_parts();
        let tag = facts.etag.text().expect("it has one");
        assert_eq!((&*tag, facts.etag.source()), (&read[100..110], Some(EtagSource::Origins)));
        assert!(!read.as_ptr_range().contains(&tag.as_ptr()));
        assert!(facts.can_be_validated() && facts.modified().is_none());
        let again = StoredResponse::of_parts(facts, headers, internal);
        assert_eq!(again.headers, stored.headers);
    }
}
