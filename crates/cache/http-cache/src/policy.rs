//! What a site may choose. Plain data: where it comes from (flags, a file, rules) is not known here.
//!
//! The defaults are those of a site that says nothing: obey what the origin declares, ignore what
//! visitors ask of caches, guess nothing.

use crate::tags::internal_tag_fields;
use http::StatusCode;
use http::header::HeaderName;

/// The choices that the functions of this crate are given. See each field for its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether visitors' Cache-Control and Pragma count. Default: ignored.
    pub request_directives: RequestControl,
    /// Heuristic freshness, RFC 9111 §4.2.2. Default: none. The share of the time since the last modification
    /// says nothing of when a page was taken back, and a program's own 304 confirms what it has not changed.
    pub heuristic: Option<Heuristic>,
    /// A lifetime, in milliseconds from the reception, for responses that declare none (the
    /// micro-cache). Given to 200, 203, 204, 300, 301, 302, 307, 308, 404, 405, 410 and 414; never to
    /// server errors. Goes before the heuristic. Default: none.
    pub default_lifetime_ms: Option<u64>,
    /// stale-while-revalidate in seconds, for responses that do not say. Default: 0.
    pub stale_while_revalidate_seconds: u32,
    /// How long a response that a soft invalidation has marked may be used while a new one is fetched, in
    /// seconds from the invalidation, beside what stale-while-revalidate allows. Default: 0.
    pub soft_seconds: u32,
    /// stale-if-error in seconds, for responses that do not say. Default: 0.
    pub stale_if_error_seconds: u32,
    /// For how many seconds a response that was fresh once may be used stale when the origin cannot
    /// be reached ([`Failure::is_disconnection`]) and nobody has said anything about it: RFC 9111
    /// §4.2.4 leaves that to a cache that is disconnected. Default: 3,600.
    pub stale_if_disconnected_seconds: u32,
    /// On which failures a stale response may be used at all, whether the response or this policy
    /// allows it. Default: all of them.
    pub stale_if_error_causes: FailureSet,
    /// The targeted fields that are obeyed, the first valid one counts (RFC 9213 §2.2). Default:
    /// `Pagewell-Cache-Control`, `CDN-Cache-Control`.
    pub targets: Vec<HeaderName>,
    /// Whether `Surrogate-Control` is obeyed, after the targeted fields. Default: yes.
    pub surrogate_control: FieldUse,
    /// Whether LiteSpeed's fields are obeyed, right after the targeted field that bears this cache's own
    /// name ([`litespeed`](crate::litespeed)). Default: yes.
    pub litespeed: FieldUse,
    /// Whether `X-Accel-Expires` is obeyed, after `Surrogate-Control`. Default: yes.
    pub x_accel_expires: FieldUse,
    /// Whether `Accept-Encoding` tells variants apart. To be ignored where this cache codes the content
    /// itself and the field does not go to the origin ([`codings`](crate::codings)): then no response
    /// depends on it, whatever its `Vary` says. Default: it does.
    pub accept_encoding: FieldUse,
    /// The name by which this cache calls itself in Cache-Status (RFC 9211 §2), and by which a
    /// parameter of `Surrogate-Control` may address it. Default: `pagewell`.
    pub cache_name: String,
    /// The longest content that is stored, in bytes, as far as Content-Length tells; who reads the
    /// content goes on counting. Default: 64 MiB.
    pub content_max_bytes: u64,
    /// The most fields that `Vary` may nominate. Default: 16.
    pub nominated_max: usize,
    /// Fields meant for this cache and not for clients: not kept. Default: those of `targets` and
    /// `Surrogate-*` that address an accelerator, LiteSpeed's, and every field of tags, except
    /// `CDN-Cache-Control` (a further cache may stand in front, RFC 9213 §3) and `Cache-Groups`
    /// (clients' caches use it too, RFC 9875). Tags name rows of the application's tables, and are no
    /// business of visitors.
    pub internal_fields: Vec<HeaderName>,
}

/// What speaks to this cache alone, but for the fields of tags.
const INTERNAL_FIELDS: [&str; 12] = [
    "pagewell-cache-control",
    "surrogate-control",
    "x-accel-expires",
    "x-litespeed-cache-control",
    "x-litespeed-vary",
    "x-litespeed-purge",
    "x-litespeed-purge2",
    "x-litespeed-cache",
    "x-litespeed-debug",
    "lsc-cookie",
    "x-accel-charset",
    "x-accel-limit-rate",
];

/// Fields that name a file of the machine, for a web server to send in place of the response.
pub const SENDFILE_FIELDS: [&str; 5] = [
    "x-accel-redirect",
    "x-sendfile",
    "x-sendfile2",
    "x-lighttpd-send-file",
    "x-lighttpd-send-tempfile",
];

impl Default for Policy {
    fn default() -> Policy {
        let names = |list: &[&'static str]| -> Vec<_> {
            list.iter().map(|name| HeaderName::from_static(name)).collect()
        };
        let mut internal_fields = names(&INTERNAL_FIELDS);
        internal_fields.extend(names(&SENDFILE_FIELDS));
        internal_fields.extend(internal_tag_fields().map(HeaderName::from_static));
        Policy {
            request_directives: RequestControl::Ignore,
            heuristic: None,
            default_lifetime_ms: None,
            stale_while_revalidate_seconds: 0,
            soft_seconds: 0,
            stale_if_error_seconds: 0,
            stale_if_disconnected_seconds: 3_600,
            stale_if_error_causes: FailureSet::ALL,
            targets: names(&["pagewell-cache-control", "cdn-cache-control"]),
            surrogate_control: FieldUse::Obey,
            litespeed: FieldUse::Obey,
            x_accel_expires: FieldUse::Obey,
            accept_encoding: FieldUse::Obey,
            cache_name: "pagewell".to_owned(),
            content_max_bytes: 64 << 20,
            nominated_max: 16,
            internal_fields,
        }
    }
}

/// Whether a visitor's Cache-Control and Pragma count (RFC 9111 §5.2.1, §5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestControl {
    /// They do not: a reload must not be able to wake PHP. This cache stands in for the origin, whose
    /// pages it knows to be current; RFC 9111 §5.2.1 calls the request directives advisory.
    /// `only-if-cached` is honoured all the same, for it costs nothing.
    #[default]
    Ignore,
    /// They do.
    Honour,
}

/// Whether a field counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUse {
    /// It does.
    Obey,
    /// It does not.
    Ignore,
}

/// Freshness guessed from Last-Modified (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The share of the time since the last modification, in percent. Default: 10, as §4.2.2 has it.
    pub percent: u32,
    /// The longest lifetime guessed, in seconds. Default: 600. A page that sends Last-Modified alone
    /// leaves it to caches how long it lives, but a day, which the share often comes to, is long to
    /// wait for a correction; ten minutes is what sites choose for a micro-cache.
    pub max_seconds: u32,
    /// For which statuses. Default: those that RFC 9110 lists, and what is marked `public`.
    pub statuses: HeuristicStatuses,
}

impl Default for Heuristic {
    fn default() -> Heuristic {
        Heuristic { percent: 10, max_seconds: 600, statuses: HeuristicStatuses::ListedOrPublic }
    }
}

/// The statuses whose lifetime may be guessed (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeuristicStatuses {
    /// Those that RFC 9110 §15.1 calls heuristically cacheable.
    Listed,
    /// Those, and any other that the origin marks `public`: it has said in so many words that the
    /// response may be stored (RFC 9111 §4.2.2, §5.2.2.9).
    ListedOrPublic,
}

/// Why the origin gave no usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    Refused,
    /// The connection was closed before the response was complete.
    HungUp,
    /// The response did not come in time.
    TimedOut,
    /// What came was not HTTP, nor CGI.
    InvalidResponse,
    /// The origin has no room: its queue is full.
    Overloaded,
    /// A response with this status, which says that the origin failed.
    Status(StatusCode),
}

impl Failure {
    /// The failure's name, as in configuration, logs and the `detail` of Cache-Status.
    pub fn as_str(&self) -> &'static str {
        match self {
            Failure::Refused => "refused",
            Failure::HungUp => "hung-up",
            Failure::TimedOut => "timed-out",
            Failure::InvalidResponse => "invalid-response",
            Failure::Overloaded => "overloaded",
            Failure::Status(status) => match status.as_u16() {
                500 => "500",
                502 => "502",
                503 => "503",
                504 => "504",
                _ => "other-status",
            },
        }
    }

    /// Whether the cache was cut off from the origin: there was no answer at all, not even a bad one
    /// (RFC 9111 §4.2.4, "disconnected").
    pub fn is_disconnection(&self) -> bool {
        match self {
            Failure::Refused | Failure::HungUp | Failure::TimedOut | Failure::Overloaded => true,
            Failure::InvalidResponse | Failure::Status(_) => false,
        }
    }

    /// The failure of that name; `None` when there is none, or it cannot be chosen.
    pub fn from_name(name: &str) -> Option<Failure> {
        Failure::ALL.iter().find(|failure| failure.as_str() == name).copied()
    }

    /// Every failure on which a stale response may be used (RFC 5861 §4: "an error is any situation
    /// that would result in a 500, 502, 503, or 504").
    pub const ALL: [Failure; 9] = [
        Failure::Refused,
        Failure::HungUp,
        Failure::TimedOut,
        Failure::InvalidResponse,
        Failure::Overloaded,
        Failure::Status(StatusCode::INTERNAL_SERVER_ERROR),
        Failure::Status(StatusCode::BAD_GATEWAY),
        Failure::Status(StatusCode::SERVICE_UNAVAILABLE),
        Failure::Status(StatusCode::GATEWAY_TIMEOUT),
    ];
}

/// A set of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureSet(u16);

impl FailureSet {
    /// Every failure there is.
    pub const ALL: FailureSet = FailureSet((1 << Failure::ALL.len()) - 1);
    /// None.
    pub const NONE: FailureSet = FailureSet(0);

    /// The set with `failure` in it. A status that is not in [`Failure::ALL`] is never in a set.
    #[must_use]
    pub fn with(self, failure: Failure) -> FailureSet {
        FailureSet(self.0 | bit(failure))
    }

    /// Whether `failure` is in the set.
    pub fn contains(self, failure: Failure) -> bool {
        self.0 & bit(failure) != 0
    }
}

fn bit(failure: Failure) -> u16 {
    Failure::ALL.iter().position(|known| *known == failure).map_or(0, |at| 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_chosen_one_by_one() {
        for failure in Failure::ALL {
            assert_eq!(Failure::from_name(failure.as_str()), Some(failure));
            assert!(FailureSet::ALL.contains(failure));
            let only = FailureSet::NONE.with(failure);
            assert_eq!(Failure::ALL.iter().filter(|known| only.contains(**known)).count(), 1);
        }
    }

    #[test]
    fn other_statuses_are_no_failures() {
        let gone = Failure::Status(StatusCode::GONE);
        assert!(!FailureSet::ALL.with(gone).contains(gone));
        assert_eq!(Failure::from_name("other-status"), None);
    }
}
