//! Ranges of what is not stored as a whole, because it is too large or not for everybody.
//!
//! A range is cut from the whole page wherever that is stored, and the whole is what the origin is
//! asked for. Where it turns out that the whole will not be stored, and the origin knows ranges, the
//! request goes there once more with its Range; for a while others for the same page go so at once.
//! What comes back (206) may be kept as a part (RFC 9111 section 3.3), put together with what is kept
//! already (section 3.4), and becomes the page when nothing is missing.
//!
//! Leases: the older part is looked up after the lease of this render was taken. A change before the
//! lease has dropped it; one after the lease is found by the insertion, for the two together depend
//! on what either depends on. So the render's lease is the right one for both.

use super::{Ask, Outcome, Render};
use crate::body::ResponseBody;
use crate::lookup::decide_on;
use crate::serve;
use crate::site::Site;
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_cache::parts::{Part, StoredPart, joined, range_inside, whole_if_complete};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{ForwardReason, NotStored, Reuse, StoredResponse, Verdict};
use origin::OriginResponse;
use site_state::page::{NewPage, ReadPage, SharedPage, variant};
use std::sync::Arc;

/// What follows the page's key in that of its parts. What rules add to a key has a space (a name, and a
/// value).
const OF_PARTS: &[u8] = b"\nparts";

/// What becomes of a request's Range on the way to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The whole is asked for, and the range cut from it.
    Cut,
    /// It goes to the origin, for the whole will not be stored.
    Forwarded,
}

impl Ask {
    fn has_range(&self) -> bool {
        // With a page to validate the origin is asked for the whole.
        let is_new = self.validate.is_none() && self.fallback.is_none();
        is_new && self.method == Method::GET && self.headers.contains_key(header::RANGE)
    }

    /// What becomes of its Range where the whole is not stored.
    pub(super) fn for_range(&self) -> Ranges {
        if self.has_range() { Ranges::Forwarded } else { Ranges::Cut }
    }

    /// Puts the Range back that the client sent, and its condition, where they are to be forwarded.
    pub(super) fn put_range(&self, headers: &mut HeaderMap) {
        if self.ranges == Ranges::Cut {
            return;
        }
        for name in [header::RANGE, header::IF_RANGE] {
            if let Some(value) = self.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
    }

    pub(super) fn parts_key(&self) -> Vec<u8> {
        [&self.key, OF_PARTS].concat()
    }
}

/// The answer from a stored part, if there is one that is fresh and has all that was asked for. One
/// that has not is why the request goes on (RFC 9211 section 2.2).
pub(super) fn from_store(site: &Arc<Site>, ask: &mut Ask) -> Option<Response<ResponseBody>> {
    if !ask.has_range() {
        return None;
    }
    let facts = ask.facts();
    let key = ask.parts_key();
    let (parts, verdict) = decide_on(site, &facts, &ask.headers, &ask.plan, &key);
    let Verdict::Reuse { candidate, state: Reuse::Fresh, .. } = verdict else { return None };
    let part = &parts.as_slice()[candidate];
    let Some((range, at)) = range_inside(&facts, &part.response()) else {
        ask.why = ForwardReason::Partial;
        return None;
    };
    site.counters.hits.add();
    let now = site.clock.now();
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
    status.ttl_seconds = Some(part.payload().stored.ttl_seconds(now));
    Some(serve::of_part(part, range, at, now, &status))
}

/// A part as it is while it comes: the 206 that the visitor gets. One in which nothing is missing is
/// the whole from the start (RFC 9110 section 15.3.7.3).
pub(super) fn while_collected(stored: StoredResponse, part: Part) -> StoredResponse {
    let mut stored = whole_if_complete(stored, part);
    if !part.is_whole() {
        stored.status = StatusCode::PARTIAL_CONTENT;
        stored.set_content_length(Some(part.range.length()));
    }
    stored
}

/// Whether what is being collected is a part.
pub(super) fn is_part(stored: &StoredResponse) -> bool {
    stored.status == StatusCode::PARTIAL_CONTENT
}

impl Render {
    /// Whether the range is worth asking for, now that the whole will not be stored.
    pub(super) fn is_worth_a_range(&self, response: &OriginResponse) -> bool {
        let knows_ranges = response.headers.get(header::ACCEPT_RANGES).is_some_and(|value| {
            value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"bytes") // RFC 9110 section 14.3
        });
        self.ask.ranges == Ranges::Cut
            && self.ask.has_range()
            && response.status == StatusCode::OK
            && knows_ranges
    }

    /// Stores a part that has come whole, and answers the visitor with it.
    pub(super) fn store_part(
        self: Box<Self>,
        stored: StoredResponse,
        content: Bytes,
        mut status: CacheStatus<'static>,
    ) {
        let refused = self.put_part(&stored, content.clone());
        status.stored = refused.is_none();
        status.detail = status.detail.or(refused);
        let now = self.site.clock.now();
        status.ttl_seconds = Some(stored.ttl_seconds(now));
        let page = NewPage::new(stored, content).apart();
        let response = serve::unstored_page(&self.ask.facts(), &page, now, &status);
        self.give_up(response, Outcome::NotShareable);
    }

    /// Puts a part in the store, together with what is there already; says why it is not there
    /// otherwise.
    pub(super) fn put_part(&self, came: &StoredResponse, content: Bytes) -> Option<&'static str> {
        let part = Part::of(came)?;
        if content.len() as u64 != part.range.length() {
            return Some(NotStored::PartUnreadable.as_str());
        }
        let mut stored = came.clone();
        stored.status = StatusCode::OK;
        stored.set_content_length(Some(part.complete_length));
        let site = &self.site;
        let bytes = self.ask.parts_key();
        let key = site.store.key(&bytes);
        let variant = variant(&stored);
        let older = site.store.candidates(key).iter().find(|p| p.variant() == variant).cloned();
        let (stored, content) = self.with_older(older.as_ref(), stored, content);
        if Part::of(&stored).is_none() {
            let refused = self.put(stored, content, Vec::new()).refused;
            if let (None, Some(older)) = (refused, &older) {
                site.store.remove(older);
            }
            return refused;
        }
        let path = self.ask.target.page();
        let made_from = site.dependencies(&stored, path, Some(self.right.lease().number()));
        let page = NewPage::new(stored, content);
        self.outdate();
        let lease = self.right.lease();
        match page.put(|new| site.store.insert(key, variant, &made_from, lease, new)) {
            Ok(part) if self.is_part_superseded(&part) => {
                site.counters.store_refused.add();
                Some("superseded")
            }
            Ok(_) => {
                site.counters.stored.add();
                None
            }
            Err(not_stored) => {
                site.counters.store_refused.add();
                Some(not_stored.reason.as_str())
            }
        }
    }

    /// A part, and what an older one adds to it.
    fn with_older(
        &self,
        older: Option<&SharedPage>,
        stored: StoredResponse,
        content: Bytes,
    ) -> (StoredResponse, Bytes) {
        let both = older.filter(|page| !page.is_marked()).and_then(|page| {
            let old_content = page.content();
            let old_response = page.response();
            let old = StoredPart { stored: &old_response, content: &old_content };
            let new = StoredPart { stored: &stored, content: &content };
            joined(&old, &new, self.site.limits.page_bytes as u64)
        });
        match both {
            Some((stored, content)) => (stored, Bytes::from(content)),
            None => (stored, content),
        }
    }
}
