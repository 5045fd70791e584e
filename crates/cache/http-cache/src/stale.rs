//! When a stale response may be used: while a new one is fetched, or because none can be had
//! (RFC 9111 §4.2.4, RFC 5861).
//!
//! Invariants: never against `no-cache`, `must-revalidate` and `proxy-revalidate`. `s-maxage` implies
//! `proxy-revalidate` (RFC 9111 §5.2.2.10), so it forbids what the visitor or the site's policy would
//! allow; but where the same response spells out stale-while-revalidate or stale-if-error, that is
//! the more specific word and counts. RFC 9111 has no sentence for that case; sites that write
//! `s-maxage=60, stale-while-revalidate=30` mean it.

use crate::policy::{Failure, Policy, RequestControl};
use crate::request::RequestFacts;
use crate::stored::StoredFacts;
use crate::time::{Timestamp, milliseconds};

/// Who allows a stale response in place of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleUse {
    /// The response: its stale-if-error.
    ByResponse,
    /// The request: its stale-if-error (RFC 5861 §4), where the site honours requests.
    ByRequest,
    /// The site's policy.
    ByPolicy,
    /// Nobody has said anything, and the origin cannot be reached (RFC 9111 §4.2.4).
    Disconnected,
}

/// Why a stale response may not be used in place of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStaleUse {
    /// The response forbids it: `no-cache`, `must-revalidate`, `proxy-revalidate`, or `s-maxage`.
    Forbidden,
    /// The site does not want it on this failure, or the status is no failure.
    CauseNotChosen,
    /// Nobody allows it.
    NotAllowed,
    /// It has been stale for longer than is allowed.
    TooStale,
}

impl NoStaleUse {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NoStaleUse::Forbidden => "stale-forbidden",
            NoStaleUse::CauseNotChosen => "cause-not-chosen",
            NoStaleUse::NotAllowed => "stale-not-allowed",
            NoStaleUse::TooStale => "too-stale",
        }
    }
}

/// Whether `stored`, stale or `marked` by a soft invalidation, may be used although the origin failed
/// (RFC 5861 §4). A marked response counts as stale from its invalidation.
/// [`StaleUse::Disconnected`] is for responses that have only run out: not for marked ones, of which
/// is known that they are outdated.
///
/// # Errors
/// The reason why not; the failure is then what the client gets.
pub fn may_use_stale_on(
    failure: Failure,
    stored: &StoredFacts,
    marked: Option<Timestamp>,
    request: &RequestFacts<'_>,
    policy: &Policy,
    now: Timestamp,
) -> Result<StaleUse, NoStaleUse> {
    if !policy.stale_if_error_causes.contains(failure) {
        return Err(NoStaleUse::CauseNotChosen);
    }
    let (seconds, by) = match if_error(stored, request, policy)? {
        // What was never fresh was meant to be asked about each time.
        (0, StaleUse::ByPolicy)
            if failure.is_disconnection() && stored.lifetime_ms() > 0 && marked.is_none() =>
        {
            (policy.stale_if_disconnected_seconds, StaleUse::Disconnected)
        }
        allowed => allowed,
    };
    if seconds == 0 {
        return Err(NoStaleUse::NotAllowed);
    }
    if staleness_ms(stored, marked, now) > milliseconds(seconds) {
        return Err(NoStaleUse::TooStale);
    }
    Ok(by)
}

/// The longest that a response may be used stale on a failure, and who says so.
fn if_error(
    stored: &StoredFacts,
    request: &RequestFacts<'_>,
    policy: &Policy,
) -> Result<(u32, StaleUse), NoStaleUse> {
    if is_forbidden_by_name(stored) {
        return Err(NoStaleUse::Forbidden);
    }
    if let Some(seconds) = stored.directives.stale_if_error() {
        return Ok((seconds, StaleUse::ByResponse));
    }
    if is_forbidden(stored) {
        return Err(NoStaleUse::Forbidden);
    }
    match request.cache_control.stale_if_error {
        Some(seconds) if policy.request_directives == RequestControl::Honour => {
            Ok((seconds, StaleUse::ByRequest))
        }
        _ => Ok((policy.stale_if_error_seconds, StaleUse::ByPolicy)),
    }
}

/// Whether a stale or marked response may be used while a new one is fetched: within
/// stale-while-revalidate (RFC 5861 §3), or because it was marked lately. The latter is the site's word
/// about its own soft invalidations, and only while the response's lifetime lasts: `s-maxage`, which is
/// about responses that are stale by age, does not stand against it.
pub(crate) fn is_allowed_while_revalidating(
    stored: &StoredFacts,
    marked: Option<Timestamp>,
    policy: &Policy,
    now: Timestamp,
) -> bool {
    let within = |ms: u64, seconds: u32| seconds > 0 && ms <= milliseconds(seconds);
    if within(staleness_ms(stored, marked, now), while_revalidate_seconds(stored, policy)) {
        return true;
    }
    let Some(marked) = marked else { return false };
    stored.is_fresh(now)
        && !is_forbidden_by_name(stored)
        && within(now.0.saturating_sub(marked.0), policy.soft_seconds)
}

/// For how long a response has been stale: by its age, or since it was marked.
fn staleness_ms(stored: &StoredFacts, marked: Option<Timestamp>, now: Timestamp) -> u64 {
    let since = marked.map_or(0, |marked| now.0.saturating_sub(marked.0));
    stored.staleness_ms(now).max(since)
}

fn while_revalidate_seconds(stored: &StoredFacts, policy: &Policy) -> u32 {
    if is_forbidden_by_name(stored) {
        return 0;
    }
    match stored.directives.stale_while_revalidate() {
        Some(seconds) => seconds,
        None if is_forbidden(stored) => 0,
        None => policy.stale_while_revalidate_seconds,
    }
}

/// Whether there is any case in which the response could be used stale.
pub(crate) fn may_ever_be(stored: &StoredFacts, policy: &Policy) -> bool {
    let if_error = match stored.directives.stale_if_error() {
        Some(seconds) => seconds > 0 && !is_forbidden_by_name(stored),
        None => policy.stale_if_error_seconds > 0 && !is_forbidden(stored),
    };
    if_error || while_revalidate_seconds(stored, policy) > 0
}

/// Whether use in a stale state is forbidden by anything the response says (RFC 9111 §4.2.4).
pub(crate) fn is_forbidden(stored: &StoredFacts) -> bool {
    is_forbidden_by_name(stored) || stored.directives.has_s_maxage()
}

fn is_forbidden_by_name(stored: &StoredFacts) -> bool {
    let directives = stored.directives;
    directives.no_cache() || directives.is_to_be_revalidated()
}
