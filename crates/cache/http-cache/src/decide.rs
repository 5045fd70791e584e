//! The central decision: what to do with a request, given the stored responses of its page (RFC 9111 §4).
//!
//! Invariants: it is a pure function and the only place that decides reuse. Nothing here allocates, unless
//! a candidate nominates fields. Each verdict that goes to the origin has a reason (RFC 9211 §2.2). The
//! decision is a table, at [`decide`]. The use of stale responses after failures of the origin is in
//! `stale`.

use crate::conditional::{Answer, answer};
use crate::policy::{Policy, RequestControl};
use crate::request::{Method, RequestFacts};
use crate::stale;
use crate::stored::StoredFacts;
use crate::variants::ImpliedFields;
use http_fields::fields::Fields;
use http_fields::time::{Timestamp, milliseconds};

/// A stored response of the requested page.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'c> {
    /// The facts of the stored response.
    pub stored: &'c StoredFacts,
    /// The time of the soft invalidation that marked it, if any. From then on it counts as stale.
    pub marked: Option<Timestamp>,
}

/// The decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A stored response is used.
    Reuse {
        /// The index of the candidate, from 0.
        candidate: usize,
        /// Whether it is fresh.
        state: Reuse,
        /// The part of it to send.
        answer: Answer,
    },
    /// The request goes to the origin.
    Forward {
        /// The reason.
        why: ForwardReason,
        /// The index of the candidate to validate, see [`make_conditional`](crate::make_conditional).
        validate: Option<usize>,
        /// The index of the candidate for [`may_use_stale_on`](crate::may_use_stale_on), if the origin
        /// fails.
        fallback: Option<usize>,
    },
    /// A stored response is selected, but it is not for this client: the request bypasses the cache
    /// ([`ForwardReason::Bypass`]).
    Bypass(UnusableBecause),
    /// `only-if-cached`, and no stored response can be used: 504 (RFC 9111 §5.2.1.7).
    Unsatisfied,
}

/// The reason why a selected response is not for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableBecause {
    /// The request has Authorization, and the response does not say that it may be shared (RFC 9111 §3.5).
    Authorization,
    /// The request has a cookie that may identify its client. Never returned by [`decide`], as the others below.
    UnknownCookie,
    /// The response is a template with ESI fragments, which are not assembled any more.
    EsiOff,
    /// The response is a private copy where shared pages are looked up, or the reverse.
    Owner,
}

/// The freshness of a response that is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The response is fresh (RFC 9111 §4.2).
    Fresh,
    /// The response is stale, but its use is allowed (RFC 9111 §4.2.4).
    Stale(StaleBecause),
}

/// The reason why a stale response is used without a request to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleBecause {
    /// RFC 5861 §3: it is refreshed in the background.
    WhileRevalidate,
    /// The request's `max-stale` (RFC 9111 §5.2.1.2), where the site honours it.
    MaxStale,
}

/// The reason why a request goes to the origin: the `fwd` values of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// The cache is configured not to handle this request.
    Bypass,
    /// The method's semantics require it.
    Method,
    /// No response is stored for the page.
    UriMiss,
    /// Responses are stored for the page, but none for a request like this one.
    VaryMiss,
    /// No response is stored; which of the two applies is unknown.
    Miss,
    /// A fresh response is stored, but the request's directives do not allow it.
    Request,
    /// A response is stored, but it is stale.
    Stale,
    /// Only a part of the response is stored. Never returned by [`decide`]: the keeper of parts determines
    /// it ([`parts`](crate::parts)).
    Partial,
}

impl ForwardReason {
    /// All reasons of this enum.
    pub const ALL: [ForwardReason; 8] = [
        ForwardReason::Bypass,
        ForwardReason::Method,
        ForwardReason::UriMiss,
        ForwardReason::VaryMiss,
        ForwardReason::Miss,
        ForwardReason::Request,
        ForwardReason::Stale,
        ForwardReason::Partial,
    ];

    /// The reason as RFC 9211 §2.2 writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ForwardReason::Bypass => "bypass",
            ForwardReason::Method => "method",
            ForwardReason::UriMiss => "uri-miss",
            ForwardReason::VaryMiss => "vary-miss",
            ForwardReason::Miss => "miss",
            ForwardReason::Request => "request",
            ForwardReason::Stale => "stale",
            ForwardReason::Partial => "partial",
        }
    }
}

/// Decides what to do with a request. The first matching row applies:
///
/// | method | selected response | condition | verdict |
/// |---|---|---|---|
/// | not GET, HEAD | | | forward: method |
/// | | none | | forward: uri-miss, or vary-miss |
/// | | stored without Authorization, the request has it | | bypass: authorization |
/// | | any | the request forbids it, the site honours that | forward: request |
/// | | fresh, not marked, without no-cache | | reuse |
/// | | stale or marked | within stale-while-revalidate, or marked recently | reuse, and refresh |
/// | | stale | within the request's max-stale, honoured | reuse |
/// | | otherwise | | forward: stale |
///
/// Under `only-if-cached` each *forward* and *bypass* of a GET or HEAD becomes *unsatisfied*.
///
/// `fields` are the request's fields as they would go to the origin, the same as for
/// [`storable`](crate::storable). `candidates` are all stored responses of its page.
pub fn decide<'c>(
    request: &RequestFacts<'_>,
    fields: &dyn Fields,
    candidates: impl Iterator<Item = Candidate<'c>>,
    policy: &Policy,
    now: Timestamp,
) -> Verdict {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Verdict::Forward { why: ForwardReason::Method, validate: None, fallback: None };
    }
    let verdict = match select(request, fields, candidates) {
        Selection::Found { index, candidate } => weigh(request, index, candidate, policy, now),
        Selection::Missing(why) => Verdict::Forward { why, validate: None, fallback: None },
    };
    match verdict {
        // §5.2.1.7; honoured under every policy, because it causes less work, not more.
        Verdict::Forward { .. } | Verdict::Bypass(_) if request.cache_control.only_if_cached => {
            Verdict::Unsatisfied
        }
        verdict => verdict,
    }
}

/// The result of selecting by nominated fields.
enum Selection<'c> {
    Found { index: usize, candidate: Candidate<'c> },
    Missing(ForwardReason),
}

/// The most recent candidate that the request selects (RFC 9111 §4.1).
fn select<'c>(
    request: &RequestFacts<'_>,
    fields: &dyn Fields,
    candidates: impl Iterator<Item = Candidate<'c>>,
) -> Selection<'c> {
    let mut selection = Selection::Missing(ForwardReason::UriMiss);
    let mut implied = None;
    for (index, candidate) in candidates.enumerate() {
        let nominated = candidate.stored.nominated();
        let selected = if request.may_imply {
            let implied = || *implied.get_or_insert_with(|| ImpliedFields::of(fields));
            nominated.is_selected(fields, implied)
        } else {
            nominated.is_empty() || nominated.has_values_of(fields)
        };
        selection = match selection {
            Selection::Found { index, candidate: known }
                if !selected || recency(known.stored) >= recency(candidate.stored) =>
            {
                Selection::Found { index, candidate: known }
            }
            _ if selected => Selection::Found { index, candidate },
            _ => Selection::Missing(ForwardReason::VaryMiss),
        };
    }
    selection
}

/// §4.1: the most recent response is that with the latest Date, and among equals that received last. A Date
/// in the future comes from an origin with a fast clock and does not make a response newer than later ones.
fn recency(stored: &StoredFacts) -> (Timestamp, Timestamp) {
    (stored.date().min(stored.response_time), stored.response_time)
}

/// Decides whether the selected response may be used.
fn weigh(
    request: &RequestFacts<'_>,
    index: usize,
    candidate: Candidate<'_>,
    policy: &Policy,
    now: Timestamp,
) -> Verdict {
    let Candidate { stored, marked } = candidate;
    // §3.5 forbids to store a response to a request with Authorization, unless marked as shared. An
    // unmarked response is not used for such a request either: PHP pages that show more with HTTP
    // authentication rarely send `Vary`.
    if request.authorization && !stored.directives.allows_authorization() {
        return Verdict::Bypass(UnusableBecause::Authorization);
    }
    let reuse = |state| {
        let answer = answer(request, stored, stored.content_length());
        Verdict::Reuse { candidate: index, state, answer }
    };
    let forward = |why| Verdict::Forward {
        why,
        validate: stored.can_be_validated().then_some(index),
        fallback: Some(index),
    };
    let honours = policy.request_directives == RequestControl::Honour;
    if honours && is_refused_by_request(request, stored, now) {
        return forward(ForwardReason::Request);
    }
    if stored.is_fresh(now) && marked.is_none() && !stored.directives.no_cache() {
        return reuse(Reuse::Fresh);
    }
    if stale::is_allowed_while_revalidating(stored, marked, policy, now) {
        return reuse(Reuse::Stale(StaleBecause::WhileRevalidate));
    }
    // §5.2.1.2. Not for marked responses, which are known to be outdated.
    let max_stale = request.cache_control.max_stale.filter(|_| honours && marked.is_none());
    if let Some(seconds) = max_stale
        && !stale::is_forbidden(stored)
        && stored.staleness_ms(now) <= milliseconds(seconds)
    {
        return reuse(Reuse::Stale(StaleBecause::MaxStale));
    }
    forward(ForwardReason::Stale)
}

/// Whether the request's directives forbid a response that could otherwise be reused (RFC 9111 §5.2.1).
fn is_refused_by_request(request: &RequestFacts<'_>, stored: &StoredFacts, now: Timestamp) -> bool {
    let directives = &request.cache_control;
    if request.asks_validation() {
        return true; // §5.2.1.4, §5.4
    }
    let age = stored.age_ms(now);
    // §5.2.1.1: not older than max-age. No response has age 0, so max-age=0 requires validation.
    if directives.max_age.is_some_and(|seconds| age > milliseconds(seconds) || seconds == 0) {
        return true;
    }
    // §5.2.1.3; min-fresh does not concern stale responses.
    let left = stored.lifetime_ms().saturating_sub(age);
    stored.is_fresh(now) && directives.min_fresh.is_some_and(|s| left < milliseconds(s))
}
