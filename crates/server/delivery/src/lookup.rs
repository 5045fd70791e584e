//! Decides whether a stored page answers a request. Only this module calls [`http_cache::decide`].
//! It also applies the site's rules and its ESI option to the verdict.
//!
//! | candidates | request fields that select a variant | a soft change counts | a page may be used if |
//! |---|---|---|---|
//! | [`StoredPages::Shared`] | as the plan changes them | yes | the rules allow it for this client's cookies |
//! | [`StoredPages::Rendered`] | as the plan changes them | no: the lease rule for sharing has been applied | the same |
//! | [`StoredPages::Private`] | as the client sent them | yes | it is a private copy |
//! | [`StoredPages::SignedIn`] | as the client sent them | yes | it is not a private copy |
//!
//! A template is used only while ESI is on. Invariants: `choose` takes no lock, does no I/O and
//! reads no clock. The verdict contains the answer (200, 206, 304, 412 or 416); callers never
//! compute it again.

use crate::esi;
use crate::site::Site;
use http::HeaderMap;
use http_cache::{
    Answer, Candidate, Failure, Fields, RequestFacts, Timestamp, UnusableBecause, Verdict, answer,
    decide, may_use_stale_on,
};
use page_store::Candidates;
use site_rules::{Plan, PlannedFields, key_without_vary};
use std::slice;
use stored_pages::page::{SharedPage, StoredPage, marked};
use telemetry::request_fields::AsSent;

/// The candidates: the stored pages from which [`choose`] selects one.
#[derive(Clone, Copy)]
pub enum StoredPages<'p> {
    /// The pages under the key of a shared page.
    Shared(&'p [SharedPage]),
    /// The page of a render that the request has waited for. The caller has checked that no change
    /// between the render's lease and the request's arrival invalidates it. A later change may have
    /// marked the page, but it does not affect this request (rule 2).
    Rendered(&'p SharedPage),
    /// The pages under the key of a client's private copies.
    Private(&'p [SharedPage]),
    /// The pages under the key of a page that signed-in visitors share (LiteSpeed's ESI).
    SignedIn(&'p [SharedPage]),
}

impl<'p> StoredPages<'p> {
    #[inline]
    fn as_slice(self) -> &'p [SharedPage] {
        match self {
            StoredPages::Shared(pages)
            | StoredPages::Private(pages)
            | StoredPages::SignedIn(pages) => pages,
            StoredPages::Rendered(page) => slice::from_ref(page),
        }
    }

    #[inline]
    fn candidate(self, page: &SharedPage) -> Candidate<'_> {
        let marked = match self {
            StoredPages::Shared(_) | StoredPages::Private(_) | StoredPages::SignedIn(_) => {
                marked(page)
            }
            StoredPages::Rendered(_) => None,
        };
        Candidate { stored: &page.payload().stored, marked }
    }

    /// Whether the page at this index may be used for the request of this plan: see
    /// [`site_rules::SiteRules::may_use`].
    #[inline]
    fn may_use(self, site: &Site, plan: &Plan, at: usize) -> bool {
        let stored = &self.as_slice()[at].payload().stored;
        let is_for_client = match self {
            StoredPages::Shared(_) | StoredPages::Rendered(_) => {
                site.config.rules.may_use(plan, stored)
            }
            StoredPages::Private(_) => stored.is_private(),
            StoredPages::SignedIn(_) => !stored.is_private(),
        };
        is_for_client && esi::may_use(site, stored)
    }

    /// Why the page at this index may not be used.
    #[cold]
    fn unusable(self, site: &Site, at: usize) -> UnusableBecause {
        let stored = &self.as_slice()[at].payload().stored;
        match self {
            _ if !esi::may_use(site, stored) => UnusableBecause::EsiOff,
            StoredPages::Shared(_) | StoredPages::Rendered(_) => UnusableBecause::UnknownCookie,
            StoredPages::Private(_) | StoredPages::SignedIn(_) => UnusableBecause::Owner,
        }
    }
}

/// Decides at the time `now` which of the stored pages answers a request, and how. Otherwise the
/// verdict contains the reason why the request goes to the origin (RFC 9111 section 4). `fields`
/// are the request's fields that are forwarded to the origin. `plan` is the result of the site's
/// rules for the request. A page that may not be used for this client is neither served, nor
/// validated, nor used as a fallback.
#[inline]
pub fn choose(
    site: &Site,
    request: &RequestFacts<'_>,
    fields: &dyn Fields,
    plan: &Plan,
    candidates: StoredPages<'_>,
    now: Timestamp,
) -> Verdict {
    let rules = &site.config.rules;
    let pages = candidates.as_slice();
    let listed = pages.iter().map(|page| candidates.candidate(page));
    let planned = PlannedFields::new(rules, *plan, fields);
    let fields = match candidates {
        StoredPages::Private(_) | StoredPages::SignedIn(_) => fields,
        StoredPages::Shared(_) | StoredPages::Rendered(_) => &planned,
    };
    let mut verdict = decide(request, fields, listed, rules.policy(plan), now);
    let may_use = |at: &usize| candidates.may_use(site, plan, *at);
    match &mut verdict {
        Verdict::Reuse { candidate, .. } if may_use(candidate) => {}
        Verdict::Reuse { candidate, .. } => {
            verdict = unusable(request, candidates.unusable(site, *candidate));
        }
        Verdict::Forward { validate, fallback, .. } => {
            *validate = validate.filter(may_use);
            *fallback = fallback.filter(may_use);
        }
        Verdict::Bypass(_) | Verdict::Unsatisfied => {}
    }
    verdict
}

/// Returns the pages stored under a key, and the verdict on a request for it. If they do not answer
/// the request, the key without vary cookies is tried.
pub fn decide_on(
    site: &Site,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    plan: &Plan,
    key: &[u8],
) -> (Candidates<StoredPage>, Verdict) {
    decide_by(site, facts, headers, (plan, key), |site, key| {
        site.store.candidates(site.store.key(key))
    })
}

/// Does the same as [`decide_on`], but `look` returns the pages stored under a key.
pub fn decide_by(
    site: &Site,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    (plan, key): (&Plan, &[u8]),
    look: impl Fn(&Site, &[u8]) -> Candidates<StoredPage>,
) -> (Candidates<StoredPage>, Verdict) {
    let under = |key: &[u8]| {
        let candidates = look(site, key);
        let (fields, now) = (AsSent(headers), site.clock.now());
        let stored = StoredPages::Shared(candidates.as_slice());
        let verdict = choose(site, facts, &fields, plan, stored, now);
        (candidates, verdict)
    };
    let (candidates, verdict) = under(key);
    if matches!(verdict, Verdict::Reuse { .. }) {
        return (candidates, verdict);
    }
    // A page with the `no-vary` directive is stored once, under the key without vary cookies.
    let Some(plain) = key_without_vary(key) else { return (candidates, verdict) };
    let (others, other) = under(&plain);
    let is_for_all = others.iter().all(|page| page.payload().stored.says_no_vary());
    let is_better = matches!(other, Verdict::Reuse { .. }) || candidates.as_slice().is_empty();
    if is_for_all && is_better { (others, other) } else { (candidates, verdict) }
}

/// Decides whether the fallback page answers a request whose render has failed with `failure` (RFC
/// 5861 section 4, RFC 9111 section 4.2.4), and how. The page may be stale, but [`choose`] must
/// return it for the request, either to use or as the fallback.
pub fn choose_on_failure(
    site: &Site,
    request: &RequestFacts<'_>,
    fields: &dyn Fields,
    plan: &Plan,
    page: &SharedPage,
    (failure, now): (Failure, Timestamp),
) -> Option<Answer> {
    let stored = &page.payload().stored;
    // The request has been sent to the origin already, so `only-if-cached` no longer matters.
    let mut asked = *request;
    asked.cache_control.only_if_cached = false;
    let alone = StoredPages::Shared(slice::from_ref(page));
    let answer = match choose(site, &asked, fields, plan, alone, now) {
        Verdict::Reuse { answer, .. } => answer,
        Verdict::Forward { fallback: Some(_), .. } => {
            answer(request, stored, stored.content_length())
        }
        Verdict::Forward { fallback: None, .. } | Verdict::Bypass(_) | Verdict::Unsatisfied => {
            return None;
        }
    };
    let policy = site.config.rules.policy(plan);
    let allowed = may_use_stale_on(failure, stored, marked(page), request, policy, now);
    allowed.is_ok().then_some(answer)
}

/// The verdict if the selected page may not be used for this client.
#[cold]
fn unusable(request: &RequestFacts<'_>, because: UnusableBecause) -> Verdict {
    if request.cache_control.only_if_cached {
        // RFC 9111 section 5.2.1.7.
        Verdict::Unsatisfied
    } else {
        Verdict::Bypass(because)
    }
}
