//! Whether a stored page answers a request. This is the only module of the server that calls
//! [`http_cache::decide`]; what the site's rules and its ESI option leave of the verdict is applied here too.
//!
//! | candidates | request fields that select a variant | a soft change counts | a page may be used if |
//! |---|---|---|---|
//! | [`StoredPages::Shared`] | as the plan changes them | yes | the rules allow it for this client's cookies |
//! | [`StoredPages::Rendered`] | as the plan changes them | no: the lease rule for sharing has been applied | the same |
//! | [`StoredPages::Private`] | as the client sent them | yes | it is a private copy |
//!
//! A template is used only while ESI is on. Invariants: `choose` takes no lock, does no I/O and reads no clock. The
//! verdict contains the answer (200, 206, 304, 412 or 416), which callers pass on and never compute again.
//! Not here: the cache key, and the lease rules.

use crate::esi;
use crate::site::Site;
use http::HeaderMap;
use http_cache::{
    Answer, Candidate, Failure, Fields, ForwardReason, RequestFacts, Timestamp, Verdict, answer,
    decide, may_use_stale_on,
};
use page_store::Candidates;
use site_rules::{Plan, PlannedFields, key_without_vary};
use site_state::page::{SharedPage, StoredPage, marked};
use site_state::request_fields::AsSent;
use std::slice;

/// The stored pages among which one is chosen.
#[derive(Clone, Copy)]
pub enum StoredPages<'p> {
    /// The pages under the key of a shared page.
    Shared(&'p [SharedPage]),
    /// The page of a render that the request has waited for. The caller has checked that no change between
    /// the render's lease and the request's arrival touches it; a later one, which may have marked it, does
    /// not concern this request (rule 2).
    Rendered(&'p SharedPage),
    /// The pages under the key of a client's private copies.
    Private(&'p [SharedPage]),
}

impl<'p> StoredPages<'p> {
    #[inline]
    fn as_slice(self) -> &'p [SharedPage] {
        match self {
            StoredPages::Shared(pages) | StoredPages::Private(pages) => pages,
            StoredPages::Rendered(page) => slice::from_ref(page),
        }
    }

    #[inline]
    fn candidate(self, page: &SharedPage) -> Candidate<'_> {
        let marked = match self {
            StoredPages::Shared(_) | StoredPages::Private(_) => marked(page),
            StoredPages::Rendered(_) => None,
        };
        Candidate { stored: &page.payload().stored, marked }
    }

    /// Whether a page may be used for the request of this plan: see [`site_rules::SiteRules::may_use`].
    #[inline]
    fn may_use(self, site: &Site, plan: &Plan, at: usize) -> bool {
        let stored = &self.as_slice()[at].payload().stored;
        let is_for_client = match self {
            StoredPages::Shared(_) | StoredPages::Rendered(_) => {
                site.config.rules.may_use(plan, stored)
            }
            StoredPages::Private(_) => stored.is_private(),
        };
        is_for_client && esi::may_use(site, stored)
    }
}

/// Decides which of the stored pages answers a request at the time `now`, and how, or why the request goes to
/// the origin (RFC 9111 section 4). `fields` are the request's fields without those that the origin does not
/// get; `plan` is what the site's rules make of the request. A page that may not be used for this client is
/// neither used nor validated nor fallen back on.
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
        StoredPages::Private(_) => fields,
        StoredPages::Shared(_) | StoredPages::Rendered(_) => &planned,
    };
    let mut verdict = decide(request, fields, listed, rules.policy(plan), now);
    let may_use = |at: &usize| candidates.may_use(site, plan, *at);
    match &mut verdict {
        Verdict::Reuse { candidate, .. } if may_use(candidate) => {}
        Verdict::Reuse { .. } => verdict = unusable(request),
        Verdict::Forward { validate, fallback, .. } => {
            *validate = validate.filter(may_use);
            *fallback = fallback.filter(may_use);
        }
        Verdict::Unsatisfied => {}
    }
    verdict
}

/// The pages stored under a key, or under the same key without vary cookies, and the verdict on a request for it.
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

/// The same, where `look` gives the pages under a key.
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
    // A page that says `no-vary` is kept once, under the key without vary cookies.
    let Some(plain) = key_without_vary(key) else { return (candidates, verdict) };
    let (others, other) = under(&plain);
    let is_for_all = others.iter().all(|page| page.payload().stored.says_no_vary());
    let is_better = matches!(other, Verdict::Reuse { .. }) || candidates.as_slice().is_empty();
    match is_for_all && is_better {
        true => (others, other),
        false => (candidates, verdict),
    }
}

/// Decides whether the page that a request falls back on answers it, because its render has failed with
/// `failure` (RFC 5861 section 4, RFC 9111 section 4.2.4), and how. The page may be stale, but has to be one that
/// [`choose`] gives for the request, to use or to fall back on.
pub fn choose_on_failure(
    site: &Site,
    request: &RequestFacts<'_>,
    fields: &dyn Fields,
    plan: &Plan,
    page: &SharedPage,
    (failure, now): (Failure, Timestamp),
) -> Option<Answer> {
    let stored = &page.payload().stored;
    // The origin has been asked: whether that was allowed is not the question here.
    let mut asked = *request;
    asked.cache_control.only_if_cached = false;
    let alone = StoredPages::Shared(slice::from_ref(page));
    let answer = match choose(site, &asked, fields, plan, alone, now) {
        Verdict::Reuse { answer, .. } => answer,
        Verdict::Forward { fallback: Some(_), .. } => {
            answer(request, stored, stored.content_length())
        }
        Verdict::Forward { fallback: None, .. } | Verdict::Unsatisfied => return None,
    };
    let policy = site.config.rules.policy(plan);
    let allowed = may_use_stale_on(failure, stored, marked(page), request, policy, now);
    allowed.is_ok().then_some(answer)
}

/// The verdict where the page that would answer may not be used.
#[cold]
fn unusable(request: &RequestFacts<'_>) -> Verdict {
    match request.cache_control.only_if_cached {
        // RFC 9111 section 5.2.1.7.
        true => Verdict::Unsatisfied,
        false => Verdict::Forward { why: ForwardReason::Bypass, validate: None, fallback: None },
    }
}
