//! Rule 9 of the freshness promise: a final answer of the origin ends every use of the older pages that it
//! answers for, also where it is not stored (decision 0076).
//!
//! | answer | older pages that the request selects |
//! |---|---|
//! | stored | replaced; those of another variant are removed |
//! | 304 to a condition | freshened |
//! | 5xx that stale-if-error covers, or to a refresh that no client waits for | stay: the origin has failed |
//! | none, or one that cannot be read | stay |
//! | refused by the store because of a change | removed, but for those that a soft change has marked |
//! | 206 and 416 to a range | stay; parts are removed where the answer forbids storing |
//! | any other | removed |
//! | any, to a request with `Authorization`, an unknown cookie or custom fields | stay; a request without them follows |
//!
//! A page is newer than the answer if its lease is larger, or its lease is the same and its request was sent
//! later: then the answer ends nothing. The number that the store gives the answer keeps out renders that are
//! still under way (`page_store`, `supersede.rs`). Responses to requests that bypass the cache do not come here.

use super::turns::is_personal;
use super::{Ask, Ranges, Render, refresh};
use crate::exchange::{may_refresh, plan};
use crate::site::Site;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_cache::validators::strong_match;
use http_cache::variants::NominatedFields;
use http_cache::{Fields, ForwardReason, NotStored, StoredResponse, Timestamp};
use origin::OriginResponse;
use page_store::{ChangeTarget, Key, Lease, Number};
use site_rules::{Handling, PlannedFields, key_without_vary};
use site_state::client::Besides;
use site_state::page::{ReadPage, SharedPage, variant_of};
use site_state::request_fields::AsSent;
use site_state::why::Cause;
use std::pin::Pin;
use std::sync::Arc;

/// How often older pages are looked for again: a page may get another form between two steps.
const ROUNDS_MAX: usize = 8;

/// Refusals of the store that say only that something has changed since the render began.
const OUTDATED: [&str; 3] = ["changed-since", "unsettled", "lease-too-old"];

/// Selects pages.
type Selects<'a> = &'a dyn Fn(&SharedPage) -> bool;

/// An answer of the origin that is not stored.
#[derive(Clone, Copy)]
pub(super) struct Unstored<'a> {
    /// Its status.
    pub(super) status: StatusCode,
    /// Its fields.
    pub(super) headers: &'a HeaderMap,
    /// Why it is not stored.
    pub(super) reason: &'static str,
}

impl<'a> Unstored<'a> {
    /// A response that could have been stored as far as its fields say.
    pub(super) fn of(stored: &'a StoredResponse, reason: &'static str) -> Unstored<'a> {
        Unstored { status: stored.status, headers: &stored.headers, reason }
    }
}

/// A final answer of the origin, and the render that it was given to.
struct FinalAnswer<'a> {
    site: &'a Site,
    lease: &'a Lease,
    /// When its request was sent.
    asked: Timestamp,
    /// Path and query of the page.
    url: &'a str,
    cause: Cause,
}

impl Render {
    /// Ends the older pages that a response which is not stored answers for: from here on nothing falls back
    /// on them.
    pub(super) fn end_older(&mut self, response: &OriginResponse, reason: &'static str) {
        let (status, headers) = (response.status, &response.headers);
        self.answered = self.supersede(Unstored { status, headers, reason }).or(self.answered);
        if !self.is_personal(reason) {
            self.ask.fallback = None;
        }
    }

    /// Whether an answer that came after this render began, and after what it was answered itself, stands
    /// against what it has stored as a part: then the part is removed. It is looked at after the insertion, so
    /// that no answer comes in between.
    pub(super) fn is_part_superseded(&self, part: &SharedPage) -> bool {
        let store = &self.site.store;
        let stored = &part.payload().stored;
        let mut page = self.site.dependencies(stored, self.ask.target.page(), None);
        page.place(store.key(&self.ask.key), part.variant());
        let lease = self.right.lease();
        let since = self.answered.unwrap_or(lease.number());
        let is_superseded = store.may_share(since, store.number(), &page).is_err();
        if is_superseded {
            store.supersede(part.key(), &[], lease, std::slice::from_ref(part));
        }
        is_superseded
    }

    /// The origin has given a final answer that is not stored. Returns the number of the answer, if it got one.
    pub(super) fn supersede(&self, unstored: Unstored<'_>) -> Option<Number> {
        let Unstored { status, headers, reason } = unstored;
        let has_failed = status.is_server_error() || reason == "php-fatal-error";
        // RFC 9111 section 4.3.3: as if the origin had not answered.
        if has_failed && self.for_nobody.is_some() {
            return None;
        }
        if self.is_personal(reason) {
            self.ask_for_everybody();
            return None;
        }
        let mut number = None;
        let answer = self.final_answer(status, reason);
        let is_of_range = self.ask.ranges == Ranges::Forwarded
            && [StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE].contains(&status);
        let is_outdated = OUTDATED.contains(&reason);
        self.with_fields(&mut |fields| {
            let selects = |page: &SharedPage| is_selected(page, fields);
            if !is_of_range {
                let ends = |page: &SharedPage| selects(page) && !(is_outdated && page.is_marked());
                let policy = self.site.config.rules.policy(&self.ask.plan);
                // An error says nothing of what an older render got.
                let of = NominatedFields::read(headers, fields, policy).filter(|_| !has_failed);
                let of = of.map_or(StandsFor::Ended, |of| match of.is_empty() {
                    true => StandsFor::EveryVariant,
                    false => StandsFor::Variant(variant_of(&of)),
                });
                if let Ended::Older(given) = answer.end(&self.ask.key, &selects, &ends, of) {
                    number = given;
                }
                answer.end_without_vary(&self.ask.key, &selects, &ends, of);
            }
            if !is_of_range
                || [NotStored::NoStore, NotStored::Private].iter().any(|r| r.as_str() == reason)
            {
                // Pages that are too large to be stored whole are stored in parts.
                let tag = headers.get(header::ETAG).map(|value| value.as_bytes());
                let is_kept = |page: &SharedPage| {
                    reason == NotStored::TooLarge.as_str() && is_same_representation(page, tag)
                };
                let ends = |page: &SharedPage| selects(page) && !is_kept(page);
                answer.end(&self.ask.parts_key(), &selects, &ends, StandsFor::Ended);
            }
        });
        number
    }

    /// The answer is stored as `new`: other variants that the request would select are older, and end, and so
    /// do parts of another representation. Where one of the variants is newer and came in between the look
    /// and the insertion, it is `new` that ends.
    pub(super) fn replaced(&self, new: &SharedPage) {
        if self.is_personal("replaced") {
            return;
        }
        let answer = self.final_answer(new.payload().stored.status, "replaced");
        self.with_fields(&mut |fields| {
            let selects = |page: &SharedPage| is_selected(page, fields);
            let ends = |page: &SharedPage| selects(page) && !page.is(new);
            if answer.end(&self.ask.key, &selects, &ends, StandsFor::Ended) == Ended::Overtaken {
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

    /// Whether a page that is already stored, as this variant or another that the request would select, is
    /// newer than what was rendered.
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

    fn final_answer(&self, status: StatusCode, reason: &'static str) -> FinalAnswer<'_> {
        FinalAnswer {
            site: &self.site,
            lease: self.right.lease(),
            asked: self.asked,
            url: self.ask.target.page(),
            cause: Cause::Superseded { status: status.as_u16(), reason },
        }
    }

    /// Hands out the fields by which the render's pages are selected.
    fn with_fields(&self, to: &mut dyn FnMut(&dyn Fields)) {
        let fields = AsSent(&*self.ask.headers);
        match self.ask.owner {
            Some(_) => to(&fields),
            None => to(&PlannedFields::new(&self.site.config.rules, self.ask.plan, &fields)),
        }
    }

    /// Whether the answer may be what it is for the sake of this request alone: then it says nothing of
    /// the page for others, or a client with a made-up cookie could empty the store.
    pub(super) fn is_personal(&self, reason: &str) -> bool {
        reason == NotStored::RequestNoStore.as_str()
            || self.ask.owner.is_none()
                && (is_personal(&self.site, &self.ask) || self.ask.has_sent_custom())
    }

    /// Where an older page was to be renewed, has it renewed by a request that says nothing of its client.
    fn ask_for_everybody(&self) {
        if self.ask.fallback.is_none() || !may_refresh(&self.site) {
            return;
        }
        if let Some(ask) = for_everybody(&self.site, &self.ask) {
            tokio::spawn(later(self.site.clone(), ask));
        }
    }
}

/// Apart from the render that begins it, whose type would contain itself otherwise.
fn later(site: Arc<Site>, ask: Ask) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        refresh(site, ask).await;
    })
}

/// The same request without what is its client's own; `None` where that is a request for another page, or
/// selects another.
pub(super) fn for_everybody(site: &Arc<Site>, ask: &Ask) -> Option<Ask> {
    let mut headers = (*ask.headers).clone();
    for name in [header::AUTHORIZATION, header::COOKIE, header::CACHE_CONTROL, header::PRAGMA] {
        headers.remove(name);
    }
    // Those that choose the page stay.
    for line in ask.headers.get_all(header::COOKIE) {
        let of_key = site.config.rules.key_cookies(&ask.plan, line.as_bytes());
        if let Some(of_key) = of_key.and_then(|line| HeaderValue::from_bytes(&line).ok()) {
            headers.append(header::COOKIE, of_key);
        }
    }
    let mut visitor = ask.visitor.clone();
    visitor.besides = Besides::default();
    let (plan, key) = plan(site, &Method::GET, &headers, &ask.target, &visitor);
    let fields = AsSent(&headers);
    let planned = PlannedFields::new(&site.config.rules, plan, &fields);
    let is_same = ask.fallback.as_ref().is_none_or(|page| is_selected(page, &planned));
    if plan.handling != Handling::Store || key != ask.key || !is_same {
        return None;
    }
    let (method, why, ranges) = (Method::GET, ForwardReason::Stale, Ranges::Cut);
    let headers = Arc::new(headers);
    let extra_fields = ask.extra_fields.without_custom();
    let all = Ask { method, why, ranges, headers, visitor, plan, extra_fields, ..ask.clone() };
    (!is_personal(site, &all)).then_some(all)
}

/// A response for the owner of private copies is not stored: those that are stored under `key` are over.
pub fn end_private_copies(
    site: &Site,
    (key, url): (&[u8], &str),
    (lease, asked): (&Lease, Timestamp),
    (status, reason): (StatusCode, &'static str),
) {
    let cause = Cause::Superseded { status: status.as_u16(), reason };
    let all = |_: &SharedPage| true;
    FinalAnswer { site, lease, asked, url, cause }.end(key, &all, &all, StandsFor::EveryVariant);
}

/// The variants that an answer stands for, beside those of the pages that it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StandsFor {
    /// None.
    Ended,
    /// The one as which it would have been stored.
    Variant(u32),
    /// All: it names no fields by which it differs.
    EveryVariant,
}

/// The outcome of ending older pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// They are gone; with the number of the answer, where it got one.
    Older(Option<Number>),
    /// None: a page is newer than the answer.
    Overtaken,
}

impl FinalAnswer<'_> {
    /// [`end`](Self::end) for pages that are the same for all vary cookies: they are under the key without them.
    fn end_without_vary(&self, key: &[u8], selects: Selects<'_>, ends: Selects<'_>, of: StandsFor) {
        let Some(plain) = key_without_vary(key) else { return };
        let selects = |page: &SharedPage| selects(page) && is_for_all(page);
        let ends = |page: &SharedPage| ends(page) && is_for_all(page);
        self.end(&plain, &selects, &ends, of);
    }

    /// Removes the pages under `key` that it `ends`, unless one that it `selects` is newer.
    fn end(&self, key: &[u8], selects: Selects<'_>, ends: Selects<'_>, of: StandsFor) -> Ended {
        let store = &self.site.store;
        let key = store.key(key);
        let own = (self.lease.number(), self.asked);
        let mut variants: Vec<u32> = match of {
            StandsFor::Variant(variant) => vec![variant],
            StandsFor::Ended | StandsFor::EveryVariant => Vec::new(),
        };
        let (mut removed, mut ended) = (0, Ended::Older(None));
        for round in 0..ROUNDS_MAX {
            let pages = store.peek(key);
            let now = self.site.clock.now();
            if pages.iter().any(|page| selects(page) && is_newer(page, own, now)) {
                ended = Ended::Overtaken;
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
            ended = Ended::Older(Some(done.number));
            for page in &done.removed {
                let (number, now_ms) = (done.number.get(), self.site.clock.now().0);
                self.site.why.superseded(page, number, now_ms, self.cause.clone());
            }
        }
        self.site.counters.superseded.add_many(removed as u64);
        if removed > 0 || self.site.has_pages_elsewhere() {
            self.site.changes().ended_elsewhere(&[ChangeTarget::Url(self.url.as_bytes())]);
        }
        ended
    }
}

/// Whether the page's render began later than the one with this lease, whose request was sent at this time. A page
/// of a future request is of an earlier process, before the machine's clock was set back.
fn is_newer(page: &SharedPage, own: (Number, Timestamp), now: Timestamp) -> bool {
    let asked = page.payload().stored.request_time();
    asked <= now && (page.lease(), asked) > own
}

fn is_selected(page: &SharedPage, fields: &dyn Fields) -> bool {
    let nominated = page.payload().stored.nominated();
    nominated.is_empty() || nominated.is_selected_by(fields)
}

/// Whether a page under the key without vary cookies is for requests that have them as well.
fn is_for_all(page: &SharedPage) -> bool {
    page.payload().stored.says_no_vary()
}

/// Whether the page has this strong entity tag, a response's (RFC 9110 section 8.8.3.2).
fn is_same_representation(page: &SharedPage, tag: Option<&[u8]>) -> bool {
    tag.zip(page.field(&header::ETAG)).is_some_and(|(one, other)| strong_match(one, other))
}
