//! Range requests for a page that is not stored as a whole, because it is too large or not
//! shareable.
//!
//! If the whole page is stored, the range is cut from it. Otherwise the origin is asked for the
//! whole. If that cannot be stored and the origin supports ranges, the request is sent again with
//! its Range. For a while, others for the page are so at once. The 206 response may be stored as a
//! part (RFC 9111 section 3.3) and combined with older parts (section 3.4). A complete part becomes
//! the page.
//!
//! Leases: older parts are looked up after the render's lease was taken. A change before the lease
//! has removed them. A change after it refuses the insertion, because the combined part has the
//! dependencies of both.

use super::{Render, RenderOutcome, RenderRequest};
use bytes::Bytes;
use delivery::body::ResponseBody;
use delivery::lookup::decide_on;
use delivery::serve;
use delivery::site::Site;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_cache::parts::{Part, StoredPart, joined, range_inside, whole_if_complete};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{ForwardReason, Reuse, StoredResponse, Verdict};
use origin::OriginResponse;
use reasons::Reason;
use std::sync::Arc;
use stored_pages::page::{NewPage, ReadPage, SharedPage, variant};

/// The suffix of a page's key in the key of its parts. Key parts added by rules contain a space
/// (name and value), so they never equal it.
const OF_PARTS: &[u8] = b"\nparts";

/// How the Range field of a request is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The whole page is requested, and the range is cut from it.
    Cut,
    /// The Range is forwarded to the origin, because the whole page will not be stored.
    Forwarded,
}

impl RenderRequest {
    fn has_range(&self) -> bool {
        // If there is a page to validate, the whole is requested.
        let is_new = self.validate.is_none() && self.fallback.is_none();
        is_new && self.method == Method::GET && self.headers.contains_key(header::RANGE)
    }

    /// How to handle the request's Range if the whole page is not stored.
    pub(super) fn for_range(&self) -> Ranges {
        if self.has_range() { Ranges::Forwarded } else { Ranges::Cut }
    }

    /// Restores the client's `Range` and `If-Range` if they have to be forwarded.
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

/// Answers from a stored part that is fresh and contains the requested range. If a part does not
/// contain it, the request is forwarded with the reason `partial` (RFC 9211 section 2.2).
pub(super) fn from_store(
    site: &Arc<Site>,
    ask: &mut RenderRequest,
) -> Option<Response<ResponseBody>> {
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

/// Converts a part into the response that the client gets while it is collected: a 206. A part in
/// which nothing is missing becomes the whole page (RFC 9110 section 15.3.7.3).
pub(super) fn while_collected(stored: StoredResponse, part: Part) -> StoredResponse {
    let mut stored = whole_if_complete(stored, part);
    if !part.is_whole() {
        stored.status = StatusCode::PARTIAL_CONTENT;
        stored.set_content_length(Some(part.range.length()));
    }
    stored
}

/// Whether the response being collected is a part.
pub(super) fn is_part(stored: &StoredResponse) -> bool {
    stored.status == StatusCode::PARTIAL_CONTENT
}

impl Render {
    /// Whether to request the range, now that the whole page will not be stored.
    pub(super) fn is_worth_a_range(&self, response: &OriginResponse) -> bool {
        let knows_ranges = response.headers.get(header::ACCEPT_RANGES).is_some_and(|value| {
            value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"bytes") // RFC 9110 section 14.3
        });
        self.ask.ranges == Ranges::Cut
            && self.ask.has_range()
            && response.status == StatusCode::OK
            && knows_ranges
    }

    /// Stores a part that is complete, and answers the client with it.
    pub(super) fn store_part(
        self: Box<Self>,
        stored: StoredResponse,
        content: Bytes,
        mut status: CacheStatus<'static>,
    ) {
        let refused = self.put_part(&stored, content.clone());
        status.stored = refused.is_none();
        status.detail = status.detail.or(refused.map(Reason::as_str));
        let now = self.site.clock.now();
        status.ttl_seconds = Some(stored.ttl_seconds(now));
        let page = NewPage::new(stored, content).apart();
        let response = serve::unstored_page(&self.ask.facts(), &page, now, &status);
        self.give_up(response, RenderOutcome::NotShared);
    }

    /// Stores a part, combined with the older parts. Returns the reason if it was refused.
    pub(super) fn put_part(&self, came: &StoredResponse, content: Bytes) -> Option<Reason> {
        let part = Part::of(came)?;
        if content.len() as u64 != part.range.length() {
            return Some(Reason::PartUnreadable);
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
        let made_from = site.dependencies(&stored, None, path, Some(self.right.lease().number()));
        let page = NewPage::new(stored, content);
        self.outdate();
        let lease = self.right.lease();
        match page.put(|new| site.store.insert(key, variant, &made_from, lease, new)) {
            Ok(part) if self.is_part_superseded(&part) => {
                site.counters.store_refused.add();
                Some(Reason::Superseded)
            }
            Ok(_) => {
                site.counters.stored.add();
                None
            }
            Err(not_stored) => {
                site.counters.store_refused.add();
                Some(not_stored.reason.into())
            }
        }
    }

    /// Combines a part with an older one.
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
