//! Rule 9 of the freshness promise: a final answer of the origin ends every use of the older pages
//! of the same request. It does so even if it is not stored (decision 0076).
//!
//! | answer | older pages that the request selects |
//! |---|---|
//! | stored | replaced; those of another variant are removed |
//! | 304 to a condition | freshened |
//! | 5xx that stale-if-error covers, or to a refresh that no client waits for | stay: the origin has failed |
//! | none, or one that cannot be read | stay |
//! | refused because of a change, or for another cause that is not the response (`Reason::is_of_this_render`) | removed, but for those that a soft change has marked |
//! | 206 and 416 to a range | stay; parts are removed where the answer forbids storing |
//! | any other | removed |
//! | any, to a request with `Authorization`; with an unknown cookie or custom fields that its `Vary` does not name | stay; a render without them follows |
//!
//! A page is newer than the answer if its lease is larger, or if the lease is the same and its
//! request was sent later. Then the answer ends nothing. The number that the store assigns to the
//! answer refuses renders that are still in flight (`page_store`, `supersede.rs`). Responses to
//! bypassing requests do not come here.

use super::admission::{to_fill, to_refresh};
use super::reference::neutral;
use super::refresh::refresh_by;
use super::{Ranges, Render, RenderPermit, RenderRequest};
use delivery::plan::{may_refresh, plan};
use delivery::site::Site;
use history::ChangeSource;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_cache::validators::strong_match;
use http_cache::variants::NominatedFields;
use http_cache::{Fields, ForwardReason, StoredResponse, Timestamp};
use origin::OriginResponse;
use page_store::{ChangeTarget, Key, Lease, Number};
use reasons::Reason;
use site_rules::{Handling, PlannedFields, key_without_vary};
use std::pin::Pin;
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage, variant_of};
use telemetry::client::ClientExtras;
use telemetry::request_fields::AsSent;

/// Maximum number of lookups for older pages: a page may get another form between two steps.
const ROUNDS_MAX: usize = 8;

/// A predicate that selects pages.
type Selects<'a> = &'a dyn Fn(&SharedPage) -> bool;

/// A response of the origin that is not stored.
#[derive(Clone, Copy)]
pub(super) struct UnstoredResponse<'a> {
    /// The status code of the response.
    pub(super) status: StatusCode,
    /// The header fields of the response.
    pub(super) headers: &'a HeaderMap,
    /// The reason why it is not stored.
    pub(super) reason: Reason,
}

impl<'a> UnstoredResponse<'a> {
    /// A response whose fields would allow storing it.
    pub(super) fn of(stored: &'a StoredResponse, reason: Reason) -> UnstoredResponse<'a> {
        UnstoredResponse { status: stored.status, headers: &stored.headers, reason }
    }
}

/// A final answer of the origin, and the render that received it.
struct FinalAnswer<'a> {
    site: &'a Site,
    lease: &'a Lease,
    /// When its request was sent.
    asked: Timestamp,
    /// Path and query of the page.
    url: &'a str,
    cause: ChangeSource,
}

impl Render {
    /// Ends the older pages for which a response that is not stored is the new answer. From then on
    /// they are not used as a fallback.
    pub(super) fn end_older(&mut self, response: &OriginResponse, reason: Reason) {
        let (status, headers) = (response.status, &response.headers);
        self.answered =
            self.supersede(UnstoredResponse { status, headers, reason }).or(self.answered);
        if !self.is_personal(headers, reason) {
            self.ask.fallback = None;
        }
    }

    /// Whether a later answer of the origin supersedes the part that this render has stored. If so,
    /// the part is removed. A later answer came after this render began, and after the render's own
    /// last answer. This is checked after the insertion, so that no answer can come in between.
    pub(super) fn is_part_superseded(&self, part: &SharedPage) -> bool {
        let store = &self.site.store;
        let stored = &part.payload().stored;
        let mut page = self.site.dependencies(stored, None, self.ask.target.page(), None);
        page.place(store.key(&self.ask.key), part.variant());
        let lease = self.right.lease();
        let since = self.answered.unwrap_or(lease.number());
        let is_superseded = store.may_share(since, store.number(), &page).is_err();
        if is_superseded {
            store.supersede(part.key(), &[], lease, std::slice::from_ref(part));
        }
        is_superseded
    }

    /// Processes a final answer of the origin that is not stored. Returns the number of the answer
    /// if it got one.
    pub(super) fn supersede(&self, unstored: UnstoredResponse<'_>) -> Option<Number> {
        let UnstoredResponse { status, headers, reason } = unstored;
        let has_failed = status.is_server_error() || reason.is_failure();
        // RFC 9111 section 4.3.3: the failure is treated as if the origin had not answered.
        if has_failed && self.for_nobody.is_some() {
            return None;
        }
        if self.is_personal(headers, reason) {
            self.ask_for_everybody(false);
            return None;
        }
        let mut number = None;
        let answer = self.final_answer(status, reason);
        let is_of_range = self.ask.ranges == Ranges::Forwarded
            && [StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE].contains(&status);
        let is_outdated = reason.is_of_this_render();
        self.with_fields(&mut |fields| {
            let selects = |page: &SharedPage| is_selected(page, fields);
            if !is_of_range {
                let ends = |page: &SharedPage| selects(page) && !(is_outdated && page.is_marked());
                let policy = self.site.config.rules.policy(&self.ask.plan);
                // An error says nothing about the responses of older renders.
                let of = NominatedFields::read(headers, fields, policy).filter(|_| !has_failed);
                let of = of.map_or(StandsFor::Ended, |of| {
                    if of.is_empty() {
                        StandsFor::EveryVariant
                    } else {
                        StandsFor::Variant(variant_of(&of))
                    }
                });
                if let SupersedeOutcome::Older(given) =
                    answer.end(&self.ask.key, &selects, &ends, of)
                {
                    number = given;
                }
                answer.end_without_vary(&self.ask.key, &selects, &ends, of);
            }
            if !is_of_range || reason.forbids_storing() {
                // Pages that are too large to be stored whole are stored in parts.
                let tag = headers.get(header::ETAG).map(|value| value.as_bytes());
                let is_kept = |page: &SharedPage| {
                    reason == Reason::TooLarge && is_same_representation(page, tag)
                };
                let ends = |page: &SharedPage| selects(page) && !is_kept(page);
                answer.end(&self.ask.parts_key(), &selects, &ends, StandsFor::Ended);
            }
        });
        number
    }

    /// Ends older pages because the answer was stored as `new`: other variants that the request
    /// would select, and parts of another representation. If a newer variant was stored between the
    /// check and the insertion, `new` ends instead.
    pub(super) fn replaced(&self, new: &SharedPage) {
        if self.is_replacing_nothing(new) {
            return;
        }
        let answer = self.final_answer(new.payload().stored.status, Reason::Replaced);
        self.with_fields(&mut |fields| {
            let selects = |page: &SharedPage| is_selected(page, fields);
            let ends = |page: &SharedPage| selects(page) && !page.is(new);
            if answer.end(&self.ask.key, &selects, &ends, StandsFor::Ended)
                == SupersedeOutcome::Overtaken
            {
                self.site.store.supersede(
                    new.key(),
                    &[],
                    self.right.lease(),
                    std::slice::from_ref(new),
                );
                return;
            }
            answer.end_without_vary(&self.ask.key, &selects, &ends, StandsFor::Ended);
            let tag = new.field(&header::ETAG);
            let is_other = |page: &SharedPage| selects(page) && !is_same_representation(page, tag);
            answer.end(&self.ask.parts_key(), &selects, &is_other, StandsFor::Ended);
        });
    }

    /// Whether a stored page that the request would select, of this variant or another, is newer
    /// than this render.
    pub(super) fn is_overtaken(&self, key: Key<'_>, variant: u32) -> bool {
        let own = (self.right.lease().number(), self.asked);
        let (pages, now) = (self.site.store.peek(key), self.site.clock.now());
        let newer = |page: &&SharedPage| is_newer(page, own, now);
        let mut is_overtaken = false;
        self.with_fields(&mut |fields| {
            is_overtaken = pages
                .iter()
                .filter(newer)
                .any(|page| page.variant() == variant || is_selected(page, fields));
        });
        is_overtaken
    }

    fn final_answer(&self, status: StatusCode, reason: Reason) -> FinalAnswer<'_> {
        FinalAnswer {
            site: &self.site,
            lease: self.right.lease(),
            asked: self.asked,
            url: self.ask.target.page(),
            cause: ChangeSource::Superseded { status: status.as_u16(), reason },
        }
    }

    /// Calls `to` with the fields by which the render's pages are selected.
    fn with_fields(&self, to: &mut dyn FnMut(&dyn Fields)) {
        let fields = AsSent(&*self.ask.headers);
        match self.ask.owner {
            Some(_) => to(&fields),
            None => to(&PlannedFields::new(&self.site.config.rules, self.ask.plan, &fields)),
        }
    }

    /// Whether the answer may be specific to this request, and so says nothing about the page for
    /// others. Otherwise a client with a made-up cookie or field could empty the store.
    fn is_personal(&self, headers: &HeaderMap, reason: Reason) -> bool {
        let is_own = || {
            let mut nominated = None;
            let policy = self.site.config.rules.policy(&self.ask.plan);
            self.with_fields(&mut |fields| {
                nominated = NominatedFields::read(headers, fields, policy);
            });
            self.ask.is_own_beside(&self.site, &nominated.unwrap_or_default())
        };
        reason == Reason::RequestNoStore
            || self.ask.owner.is_none()
                && (self.ask.headers.contains_key(header::AUTHORIZATION)
                    || self.ask.is_visitors(&self.site)
                    || is_own())
    }

    /// Whether a page that was just stored says nothing about other variants of the page, because its request had
    /// `Authorization`.
    fn is_replacing_nothing(&self, new: &SharedPage) -> bool {
        let nominated = new.payload().stored.nominated();
        self.ask.owner.is_none()
            && (self.ask.headers.contains_key(header::AUTHORIZATION)
                || self.ask.is_own_beside(&self.site, nominated))
    }

    /// Begins a render of the page for everybody, without the client's own fields, if the page is due or if `is_for_all`:
    /// the application marks it as shared. The render is entered before this returns, so that requests find it.
    fn ask_for_everybody(&self, is_for_all: bool) {
        let is_due = self.ask.fallback.is_some();
        if !(is_due || is_for_all) || !may_refresh(&self.site) {
            return;
        }
        let now_ms = self.site.clock.now().0;
        let is_neutral = self.site.audit.limit_of(&self.ask.target, now_ms).is_neutral;
        let without = if is_neutral { neutral } else { for_everybody };
        let Some(ask) = without(&self.site, &self.ask) else { return };
        let right = if is_due { to_refresh(&self.site, &ask) } else { to_fill(&self.site, &ask) };
        if let Some(right) = right {
            tokio::spawn(later(self.site.clone(), ask, right));
        }
    }

    /// Lets the page of an own request be rendered for everybody in the background, if it is due or `is_for_all`.
    /// Returns whether such a render is in progress, which the followers of this one can join.
    pub(super) fn is_filled(&self, is_for_all: bool) -> bool {
        if is_for_all && self.ask.fallback.is_none() {
            self.ask_for_everybody(true);
        }
        let is_own = self.ask.owner.is_none() && self.ask.is_own(&self.site);
        is_own && self.site.fills.followers(self.site.store.key(&self.ask.key)).is_some()
    }
}

/// A separate function, because the type of the render's future would otherwise contain itself.
fn later(
    site: Arc<Site>,
    ask: RenderRequest,
    right: RenderPermit,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        refresh_by(site, ask, right).await;
    })
}

/// Returns the request without the client's own fields, but for those that the stored page nominates: they select it.
/// `None` if that is a request for another page, or selects another variant.
pub(super) fn for_everybody(site: &Arc<Site>, ask: &RenderRequest) -> Option<RenderRequest> {
    let stored = ask.fallback.as_ref().map(|page| page.payload().stored.nominated());
    let nominated = stored.cloned().unwrap_or_default();
    let mut headers = (*ask.headers).clone();
    RenderRequest::remove_own_fields(site, &mut headers, &nominated);
    for name in [header::AUTHORIZATION, header::COOKIE, header::CACHE_CONTROL, header::PRAGMA] {
        headers.remove(name);
    }
    // Cookies that are part of the key are preserved.
    for line in ask.headers.get_all(header::COOKIE) {
        let of_key = site.config.rules.key_cookies(&ask.plan, line.as_bytes());
        if let Some(of_key) = of_key.and_then(|line| HeaderValue::from_bytes(&line).ok()) {
            headers.append(header::COOKIE, of_key);
        }
    }
    let mut client = ask.client.clone();
    client.extras = ClientExtras::default();
    let (plan, key) = plan(site, &Method::GET, &headers, &ask.target, &client);
    let fields = AsSent(&headers);
    let planned = PlannedFields::new(&site.config.rules, plan, &fields);
    let is_same = ask.fallback.as_ref().is_none_or(|page| is_selected(page, &planned));
    if plan.handling != Handling::Store || key != ask.key || !is_same {
        return None;
    }
    let (method, why, ranges) = (Method::GET, ForwardReason::Stale, Ranges::Cut);
    let headers = Arc::new(headers);
    let all = RenderRequest { method, why, ranges, headers, client, plan, ..ask.clone() };
    (!all.is_own_beside(site, &nominated)).then_some(all)
}

/// Ends the private copies stored under `key`, because a response for their owner is not stored.
pub fn end_private_copies(
    site: &Site,
    (key, url): (&[u8], &str),
    (lease, asked): (&Lease, Timestamp),
    (status, reason): (StatusCode, Reason),
) {
    let cause = ChangeSource::Superseded { status: status.as_u16(), reason };
    let all = |_: &SharedPage| true;
    FinalAnswer { site, lease, asked, url, cause }.end(key, &all, &all, StandsFor::EveryVariant);
}

/// The variants for which an answer counts, in addition to those of the pages that it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StandsFor {
    /// No further variant.
    Ended,
    /// The variant as which it would have been stored.
    Variant(u32),
    /// All variants: the answer has no `Vary`.
    EveryVariant,
}

/// The outcome of ending older pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SupersedeOutcome {
    /// The older pages were removed; with the number of the answer if it got one.
    Older(Option<Number>),
    /// Nothing was removed, because a page is newer than the answer.
    Overtaken,
}

impl FinalAnswer<'_> {
    /// Like [`end`](Self::end), for pages that are the same for all vary cookies. They are stored
    /// under the key without them.
    fn end_without_vary(&self, key: &[u8], selects: Selects<'_>, ends: Selects<'_>, of: StandsFor) {
        let Some(plain) = key_without_vary(key) else { return };
        let selects = |page: &SharedPage| selects(page) && is_for_all(page);
        let ends = |page: &SharedPage| ends(page) && is_for_all(page);
        self.end(&plain, &selects, &ends, of);
    }

    /// Removes the pages under `key` for which `ends` is true, unless a page for which `selects` is
    /// true is newer.
    fn end(
        &self,
        key: &[u8],
        selects: Selects<'_>,
        ends: Selects<'_>,
        of: StandsFor,
    ) -> SupersedeOutcome {
        let store = &self.site.store;
        let key = store.key(key);
        let own = (self.lease.number(), self.asked);
        let mut variants: Vec<u32> = match of {
            StandsFor::Variant(variant) => vec![variant],
            StandsFor::Ended | StandsFor::EveryVariant => Vec::new(),
        };
        let (mut removed, mut ended) = (0, SupersedeOutcome::Older(None));
        for round in 0..ROUNDS_MAX {
            let pages = store.peek(key);
            let now = self.site.clock.now();
            if pages.iter().any(|page| selects(page) && is_newer(page, own, now)) {
                ended = SupersedeOutcome::Overtaken;
                break;
            }
            let older: Vec<_> = pages.iter().filter(|page| ends(page)).cloned().collect();
            if older.is_empty() && (round > 0 || of == StandsFor::Ended) {
                break;
            }
            variants.extend(older.iter().map(|page| page.variant()));
            variants.sort_unstable();
            variants.dedup();
            let done = match of {
                StandsFor::EveryVariant => store.supersede_key(key, self.lease, &older),
                _ => store.supersede(key, &variants, self.lease, &older),
            };
            removed += done.removed.len();
            ended = SupersedeOutcome::Older(Some(done.number));
            for page in &done.removed {
                let (number, now_ms) = (done.number.get(), self.site.clock.now().0);
                self.site.history.superseded(page, number, now_ms, self.cause.clone());
            }
        }
        self.site.counters.superseded.add_many(removed as u64);
        if removed > 0 || self.site.has_pages_elsewhere() {
            self.site.changes().ended_elsewhere(&[ChangeTarget::Url(self.url.as_bytes())]);
        }
        ended
    }
}

/// Whether the page's render began later than the one with this lease and request time. A page with
/// a request time in the future was stored by an earlier process, before the system clock was set
/// back.
fn is_newer(page: &SharedPage, own: (Number, Timestamp), now: Timestamp) -> bool {
    let asked = page.payload().stored.request_time();
    asked <= now && (page.lease(), asked) > own
}

fn is_selected(page: &SharedPage, fields: &dyn Fields) -> bool {
    page.payload().stored.nominated().is_selected_by(fields)
}

/// Whether a page under the key without vary cookies also answers requests that have them.
fn is_for_all(page: &SharedPage) -> bool {
    page.payload().stored.says_no_vary()
}

/// Whether the page has this strong entity tag of a response (RFC 9110 section 8.8.3.2).
fn is_same_representation(page: &SharedPage, tag: Option<&[u8]>) -> bool {
    tag.zip(page.field(&header::ETAG)).is_some_and(|(one, other)| strong_match(one, other))
}
