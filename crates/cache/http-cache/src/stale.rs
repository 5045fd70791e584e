//! When a stale response may be used: while it is refreshed, or because the origin failed (RFC 9111 §4.2.4,
//! RFC 5861).
//!
//! Invariants: never against `no-cache`, `must-revalidate` and `proxy-revalidate`. `s-maxage` implies
//! `proxy-revalidate` (RFC 9111 §5.2.2.10), so it overrides permissions of the request and of the site's
//! policy. But if the same response has stale-while-revalidate or stale-if-error, this more specific
//! directive applies. RFC 9111 does not define this case; sites that send `s-maxage=60,
//! stale-while-revalidate=30` intend it.

use crate::policy::{Failure, Policy, RequestControl};
use crate::request::RequestFacts;
use crate::stored::StoredFacts;
use http_fields::time::{Timestamp, milliseconds};

/// The source of the permission to use a stale response after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleUse {
    /// The response's stale-if-error.
    ByResponse,
    /// The request's stale-if-error (RFC 5861 §4), if the site honours request directives.
    ByRequest,
    /// The site's policy.
    ByPolicy,
    /// No directive applies, and the origin is unreachable (RFC 9111 §4.2.4).
    Disconnected,
}

/// The reason why a stale response may not be used after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStaleUse {
    /// The response forbids it: `no-cache`, `must-revalidate`, `proxy-revalidate`, or `s-maxage`.
    Forbidden,
    /// The site excludes this failure, or the status is not a failure.
    CauseNotChosen,
    /// Nothing permits it.
    NotAllowed,
    /// The response has been stale for longer than permitted.
    TooStale,
}

impl NoStaleUse {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            NoStaleUse::Forbidden => "stale-forbidden",
            NoStaleUse::CauseNotChosen => "cause-not-chosen",
            NoStaleUse::NotAllowed => "stale-not-allowed",
            NoStaleUse::TooStale => "too-stale",
        }
    }
}

/// Whether `stored`, stale or `marked` by a soft invalidation, may be used although the origin failed (RFC
/// 5861 §4). A marked response counts as stale from its invalidation. [`StaleUse::Disconnected`] applies
/// only to responses that have expired, not to marked ones, which are known to be outdated.
///
/// # Errors
/// The reason why not; the client then receives the failure.
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
        (seconds, StaleUse::ByPolicy) if seconds > 0 && failure == Failure::Deferred => {
            (seconds.max(policy.stale_if_deferred_seconds), StaleUse::ByPolicy)
        }
        // A response that was never fresh was meant to be validated on each use.
        (0, StaleUse::ByPolicy)
            if failure.is_disconnection() && stored.lifetime_ms() > 0 && marked.is_none() =>
        {
            let seconds = match failure {
                Failure::Deferred => policy.stale_if_deferred_seconds,
                _ => policy.stale_if_disconnected_seconds,
            };
            (seconds, StaleUse::Disconnected)
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

/// How long a response may be used stale after a failure, in seconds, and the source of the permission.
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

/// Whether a stale or marked response may be used while it is refreshed: within stale-while-revalidate (RFC
/// 5861 §3), or shortly after it was marked. The latter is the site's choice for its own soft invalidations
/// and applies only within the response's lifetime. `s-maxage` concerns responses that are stale by age and
/// does not forbid it.
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

/// Whether each use of the response needs a request to the origin: it may be stored, and shared with no other request
/// (RFC 9111 §5.2.2.4).
pub fn must_be_validated(stored: &StoredFacts, policy: &Policy, now: Timestamp) -> bool {
    !stored.may_be_shared(now) && !is_allowed_while_revalidating(stored, None, policy, now)
}

/// How long a response has been stale, in milliseconds: by its age, or since it was marked.
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

/// Whether the response can ever be used stale.
pub(crate) fn may_ever_be(stored: &StoredFacts, policy: &Policy) -> bool {
    let if_error = match stored.directives.stale_if_error() {
        Some(seconds) => seconds > 0 && !is_forbidden_by_name(stored),
        None => policy.stale_if_error_seconds > 0 && !is_forbidden(stored),
    };
    if_error || while_revalidate_seconds(stored, policy) > 0
}

/// Whether any directive of the response forbids its use in a stale state (RFC 9111 §4.2.4).
pub(crate) fn is_forbidden(stored: &StoredFacts) -> bool {
    is_forbidden_by_name(stored) || stored.directives.has_s_maxage()
}

fn is_forbidden_by_name(stored: &StoredFacts) -> bool {
    let directives = stored.directives;
    directives.no_cache() || directives.is_to_be_revalidated()
}
