//! The freshness lifetime and the initial age of a response (RFC 9111 §4.2.1–§4.2.3, §5.1).
//!
//! Invariants: both are computed once, when the response is stored, in milliseconds, at most 2^31 seconds.
//! A heuristic never replaces a declared lifetime.

use crate::policy::Policy;
use crate::targeted::{DateField, Declaration, DeclaredBy, date_field};
use http::{HeaderMap, StatusCode};
use http_fields::fields;
use http_fields::time::{SECONDS_MAX, Timestamp, milliseconds};

/// The source of a response's freshness lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// A targeted field (RFC 9213).
    Targeted,
    /// X-LiteSpeed-Cache-Control.
    LiteSpeed,
    /// Surrogate-Control.
    SurrogateControl,
    /// X-Accel-Expires.
    XAccelExpires,
    /// `s-maxage` of Cache-Control.
    SMaxage,
    /// `max-age` of Cache-Control.
    MaxAge,
    /// Expires minus Date.
    Expires,
    /// The site's rule for responses without caching headers.
    Rule,
    /// The site's maximum for a response that depends on everything it was made from. It is stored only if
    /// these reads are known.
    Reads,
    /// A heuristic from Last-Modified (RFC 9111 §4.2.2).
    Heuristic,
    /// None: the response is stored and validated on each use.
    None,
}

impl LifetimeSource {
    /// The name of the source, as explanations and logs show it.
    pub fn as_str(self) -> &'static str {
        match self {
            LifetimeSource::Targeted => "targeted",
            LifetimeSource::LiteSpeed => "litespeed",
            LifetimeSource::SurrogateControl => "surrogate-control",
            LifetimeSource::XAccelExpires => "x-accel-expires",
            LifetimeSource::SMaxage => "s-maxage",
            LifetimeSource::MaxAge => "max-age",
            LifetimeSource::Expires => "expires",
            LifetimeSource::Rule => "rule",
            LifetimeSource::Reads => "reads",
            LifetimeSource::Heuristic => "heuristic",
            LifetimeSource::None => "none",
        }
    }
}

/// The times of one exchange with the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When the request was sent.
    pub(crate) request: Timestamp,
    /// When the response's header section was received.
    pub(crate) response: Timestamp,
}

/// The corrected initial age in milliseconds (RFC 9111 §4.2.3).
///
/// Date has a resolution of one second, so a difference of one second counts as zero. Otherwise a page with
/// `max-age=1` would usually be stale at once.
pub(crate) fn initial_age_ms(headers: &HeaderMap, times: Times) -> u64 {
    let apparent = match date_field(headers, "date", times.response) {
        DateField::At(date) => times.response.seconds().saturating_sub(date.seconds()),
        DateField::Absent | DateField::Invalid => 0,
    };
    let apparent = if apparent <= 1 { 0 } else { apparent * 1000 };
    let response_delay = times.response.since(times.request);
    let corrected = milliseconds(age_value(headers)).saturating_add(response_delay);
    apparent.max(corrected).min(milliseconds(SECONDS_MAX))
}

/// The Age field in seconds: the first member of the first line; 0 if it is not a number (RFC 9111 §5.1).
pub(crate) fn age_value(headers: &HeaderMap) -> u32 {
    fields::first(headers, "age")
        .and_then(|line| line.split(|byte| *byte == b',').next())
        .and_then(|member| fields::digits(fields::trim(member), u64::from(SECONDS_MAX)))
        .map_or(0, |age| age as u32)
}

/// The freshness lifetime in milliseconds and its source; `None` if there is none.
pub(crate) fn lifetime(
    status: StatusCode,
    headers: &HeaderMap,
    declared: &Declaration,
    initial_age_ms: u64,
    times: Times,
    policy: &Policy,
) -> Option<(u64, LifetimeSource)> {
    let directives = &declared.directives;
    if let Some(seconds) = directives.s_maxage {
        return Some((milliseconds(seconds), declared.by.source(LifetimeSource::SMaxage)));
    }
    if let Some(seconds) = directives.max_age {
        let lifetime = match declared.by {
            // nginx counts from the time of reception.
            DeclaredBy::XAccelExpires => {
                milliseconds(seconds).saturating_add(initial_age_ms).min(milliseconds(SECONDS_MAX))
            }
            _ => milliseconds(seconds),
        };
        return Some((lifetime, declared.by.source(LifetimeSource::MaxAge)));
    }
    if declared.by == DeclaredBy::CacheControl
        && let Some(lifetime) = expires(headers, times)
    {
        return Some((lifetime, LifetimeSource::Expires));
    }
    if let Some(rule) = policy.default_lifetime_ms.filter(|_| may_default(status)) {
        // The site's rule counts from the time of reception, whatever the age of the response.
        let lifetime = rule.saturating_add(initial_age_ms).min(milliseconds(SECONDS_MAX));
        return Some((lifetime, LifetimeSource::Rule));
    }
    if let Some(reads) =
        policy.reads_lifetime_ms.filter(|_| may_read(status) && !directives.no_cache)
    {
        let lifetime = reads.saturating_add(initial_age_ms).min(milliseconds(SECONDS_MAX));
        return Some((lifetime, LifetimeSource::Reads));
    }
    let guess = guess(status, headers, declared, times, policy)?;
    Some((guess, LifetimeSource::Heuristic))
}

/// Expires minus Date. An unreadable Expires, usually "0", is in the past (RFC 9111 §5.3). If Date is
/// missing or unreadable, the time of reception replaces it (RFC 9110 §6.6.1).
fn expires(headers: &HeaderMap, times: Times) -> Option<u64> {
    let expires = match date_field(headers, "expires", times.response) {
        DateField::Absent => return None,
        DateField::Invalid => return Some(0),
        DateField::At(expires) => expires,
    };
    let date = match date_field(headers, "date", times.response) {
        DateField::At(date) => date,
        DateField::Absent | DateField::Invalid => times.response,
    };
    Some(expires.since(date).min(milliseconds(SECONDS_MAX)))
}

/// Heuristic freshness (RFC 9111 §4.2.2): a percentage of the time since the last modification, in
/// milliseconds.
fn guess(
    status: StatusCode,
    headers: &HeaderMap,
    declared: &Declaration,
    times: Times,
    policy: &Policy,
) -> Option<u64> {
    let heuristic = policy.heuristic?;
    let public = declared.directives.public && heuristic.applies_to_public;
    if !is_heuristically_cacheable(status) && !public {
        return None;
    }
    let DateField::At(modified) = date_field(headers, "last-modified", times.response) else {
        return None;
    };
    let date = match date_field(headers, "date", times.response) {
        DateField::At(date) => date,
        DateField::Absent | DateField::Invalid => times.response,
    };
    let share = date.since(modified) / 100 * u64::from(heuristic.percent.min(100));
    Some(share.min(milliseconds(heuristic.max_seconds)))
}

/// The statuses that are heuristically cacheable by RFC 9110 §15.1, except 206.
pub(crate) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The statuses that get a site's default lifetime: these without server errors, and the temporary
/// redirects.
fn may_default(status: StatusCode) -> bool {
    matches!(status.as_u16(), 302 | 307) || may_read(status)
}

/// The statuses that get the lifetime of automatic dependencies. Not the temporary redirects: applications answer so
/// what is decided for one request, such as a basket that was just made.
fn may_read(status: StatusCode) -> bool {
    is_heuristically_cacheable(status) && !status.is_server_error()
}

#[cfg(test)]
#[path = "freshness_tests.rs"]
mod tests;
