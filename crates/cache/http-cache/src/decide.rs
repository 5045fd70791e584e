//! The heart: what is done with a request, given the stored responses for its page (RFC 9111 §4).
//!
//! Invariants: pure, and the only place where reuse is decided; nothing here allocates, unless a
//! candidate nominates fields; each verdict that goes to the origin says why (RFC 9211 §2.2). The
//! decision is a table, beside [`decide`]. How failures of the origin are met is in `stale`.

use crate::conditional::{Answer, answer};
use crate::fields::Fields;
use crate::policy::{Policy, RequestControl};
use crate::request::{Method, RequestFacts};
use crate::stale;
use crate::stored::StoredFacts;
use crate::time::{Timestamp, milliseconds};

/// A stored response for the page that a request is about.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'c> {
    /// The response.
    pub stored: &'c StoredFacts,
    /// When a soft invalidation has marked it, if one has: it counts as stale from then on.
    pub marked: Option<Timestamp>,
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A stored response is used.
    Reuse {
        /// Which of the candidates, counted from 0.
        candidate: usize,
        /// Whether it is fresh.
        state: Reuse,
        /// What to send of it.
        answer: Answer,
    },
    /// The request goes to the origin.
    Forward {
        /// Why.
        why: ForwardReason,
        /// The candidate to validate, see [`make_conditional`](crate::make_conditional).
        validate: Option<usize>,
        /// The candidate to ask [`may_use_stale_on`](crate::may_use_stale_on) about should the
        /// origin fail.
        fallback: Option<usize>,
    },
    /// `only-if-cached`, and there is nothing to use: 504 (RFC 9111 §5.2.1.7).
    Unsatisfied,
}

/// In which state a response is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Fresh.
    Fresh,
    /// Stale, but allowed.
    Stale(StaleBecause),
}

/// Why a stale response is used without asking the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleBecause {
    /// RFC 5861 §3: a new one is to be fetched meanwhile.
    WhileRevalidate,
    /// The request's `max-stale` (RFC 9111 §5.2.1.2), where the site honours it.
    MaxStale,
}

/// Why a request goes to the origin: the `fwd` values of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// The cache is configured not to handle this request.
    Bypass,
    /// The method's semantics require it.
    Method,
    /// Nothing is stored for the page.
    UriMiss,
    /// Something is stored for the page, but not for a request like this.
    VaryMiss,
    /// Nothing is stored; which of the two is not known.
    Miss,
    /// There was a fresh response, but the request's directives did not allow it.
    Request,
    /// There was a response, but it was stale.
    Stale,
    /// There was a part of a response only. Never decided here: who keeps parts finds out
    /// ([`parts`](crate::parts)).
    Partial,
}

impl ForwardReason {
    /// Every reason there is.
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
    pub fn as_str(self) -> &'static str {
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

/// Decides what is done with a request. The first line that fits counts:
///
/// | method | selected response | | verdict |
/// |---|---|---|---|
/// | not GET, HEAD | | | forward: method |
/// | | none | | forward: uri-miss, or vary-miss |
/// | | made without Authorization, the request has it | | forward: bypass |
/// | | any | the request forbids, the site honours it | forward: request |
/// | | fresh, not marked, without no-cache | | reuse |
/// | | stale or marked | within stale-while-revalidate, or marked lately | reuse, and refresh |
/// | | stale | within the request's max-stale, honoured | reuse |
/// | | otherwise | | forward: stale |
///
/// Under `only-if-cached` each *forward* of a GET or HEAD becomes *unsatisfied*.
///
/// `fields` are the request's as they would go to the origin (the same that
/// [`storable`](crate::storable) is given); `candidates` all that is stored for its page.
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
    let verdict = match select(fields, candidates) {
        Selection::Found { index, candidate } => weigh(request, index, candidate, policy, now),
        Selection::Missing(why) => Verdict::Forward { why, validate: None, fallback: None },
    };
    match verdict {
        // §5.2.1.7; honoured whatever the policy, for it asks for less work, not more.
        Verdict::Forward { .. } if request.cache_control.only_if_cached => Verdict::Unsatisfied,
        verdict => verdict,
    }
}

/// What selecting by nominated fields comes to.
enum Selection<'c> {
    Found { index: usize, candidate: Candidate<'c> },
    Missing(ForwardReason),
}

/// The most recent of the candidates that the request selects (RFC 9111 §4.1).
fn select<'c>(
    fields: &dyn Fields,
    candidates: impl Iterator<Item = Candidate<'c>>,
) -> Selection<'c> {
    let mut selection = Selection::Missing(ForwardReason::UriMiss);
    for (index, candidate) in candidates.enumerate() {
        let nominated = candidate.stored.nominated();
        let selected = nominated.is_empty() || nominated.is_selected_by(fields);
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

/// §4.1: the most recent is told by Date; among equals by the time of reception. A Date of the future is of an
/// origin whose clock is fast: it is no younger than what came later.
fn recency(stored: &StoredFacts) -> (Timestamp, Timestamp) {
    (stored.date().min(stored.response_time), stored.response_time)
}

/// Whether the selected response may be used.
fn weigh(
    request: &RequestFacts<'_>,
    index: usize,
    candidate: Candidate<'_>,
    policy: &Policy,
    now: Timestamp,
) -> Verdict {
    let Candidate { stored, marked } = candidate;
    // §3.5 forbids to store an answer to Authorization unless marked. We do not use an unmarked
    // answer for a request with it either: a PHP page that shows more to those who sign in by HTTP
    // rarely says so in Vary.
    if request.authorization && !stored.directives.allows_authorization() {
        return Verdict::Forward { why: ForwardReason::Bypass, validate: None, fallback: None };
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
    // §5.2.1.2. Not for marked responses: those are known to be outdated.
    let max_stale = request.cache_control.max_stale.filter(|_| honours && marked.is_none());
    if let Some(seconds) = max_stale
        && !stale::is_forbidden(stored)
        && stored.staleness_ms(now) <= milliseconds(seconds)
    {
        return reuse(Reuse::Stale(StaleBecause::MaxStale));
    }
    forward(ForwardReason::Stale)
}

/// Whether the request's directives forbid a response that would otherwise do (RFC 9111 §5.2.1).
fn is_refused_by_request(request: &RequestFacts<'_>, stored: &StoredFacts, now: Timestamp) -> bool {
    let directives = &request.cache_control;
    if request.asks_validation() {
        return true; // §5.2.1.4, §5.4
    }
    let age = stored.age_ms(now);
    // §5.2.1.1: not older than that. Nothing is of age 0, so max-age=0 asks for validation.
    if directives.max_age.is_some_and(|seconds| age > milliseconds(seconds) || seconds == 0) {
        return true;
    }
    // §5.2.1.3; a stale response is no matter of min-fresh.
    let left = stored.lifetime_ms().saturating_sub(age);
    stored.is_fresh(now) && directives.min_fresh.is_some_and(|s| left < milliseconds(s))
}
