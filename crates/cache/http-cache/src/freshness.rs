//! Freshness lifetime and initial age of a response (RFC 9111 §4.2.1–§4.2.3, §5.1).
//!
//! Invariants: both are computed once, when the response is stored; in milliseconds, and never more
//! than 2^31 seconds. A declared lifetime is never replaced by a guess.

use crate::fields;
use crate::policy::{HeuristicStatuses, Policy};
use crate::targeted::{DateField, Declared, DeclaredBy, date_field};
use crate::time::{SECONDS_MAX, Timestamp, milliseconds};
use http::{HeaderMap, StatusCode};

/// Where a response's freshness lifetime comes from.
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
    /// Expires, less Date.
    Expires,
    /// The site's rule for responses that declare none.
    Rule,
    /// A guess from Last-Modified (RFC 9111 §4.2.2).
    Heuristic,
    /// Nothing: the response is stored to be validated each time.
    None,
}

impl LifetimeSource {
    /// The source's name, as in explanations and logs.
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
    /// When the response's header section had come.
    pub(crate) response: Timestamp,
}

/// The corrected initial age, in milliseconds (RFC 9111 §4.2.3).
///
/// Date has whole seconds only: a difference of one may be due to that alone and is taken for none,
/// for otherwise a page with `max-age=1` would mostly be born stale.
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

/// The Age field in seconds: first line, first member; what is not a number is ignored
/// (RFC 9111 §5.1).
pub(crate) fn age_value(headers: &HeaderMap) -> u32 {
    fields::first(headers, "age")
        .and_then(|line| line.split(|byte| *byte == b',').next())
        .and_then(|member| fields::digits(fields::trim(member), u64::from(SECONDS_MAX)))
        .map_or(0, |age| age as u32)
}

/// The freshness lifetime in milliseconds, and its source; `None` when nothing gives one.
pub(crate) fn lifetime(
    status: StatusCode,
    headers: &HeaderMap,
    declared: &Declared,
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
            // nginx counts from the reception.
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
        // The site's rule counts from the reception, whatever age the response came with.
        let lifetime = rule.saturating_add(initial_age_ms).min(milliseconds(SECONDS_MAX));
        return Some((lifetime, LifetimeSource::Rule));
    }
    let guess = guess(status, headers, declared, times, policy)?;
    Some((guess, LifetimeSource::Heuristic))
}

/// Expires less Date; a date that cannot be read, "0" above all, is past (RFC 9111 §5.3). Without
/// Date, or with one that cannot be read, the time of reception stands for it (RFC 9110 §6.6.1).
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

/// Heuristic freshness (RFC 9111 §4.2.2): a share of the time since the last modification.
fn guess(
    status: StatusCode,
    headers: &HeaderMap,
    declared: &Declared,
    times: Times,
    policy: &Policy,
) -> Option<u64> {
    let heuristic = policy.heuristic?;
    let public =
        declared.directives.public && heuristic.statuses == HeuristicStatuses::ListedOrPublic;
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

/// The statuses that RFC 9110 §15.1 calls heuristically cacheable, save 206.
pub(crate) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The statuses to which a site's default lifetime is given: those, the temporary redirects, and no
/// server errors.
fn may_default(status: StatusCode) -> bool {
    matches!(status.as_u16(), 302 | 307)
        || (is_heuristically_cacheable(status) && !status.is_server_error())
}

#[cfg(test)]
#[path = "freshness_tests.rs"]
mod tests;
