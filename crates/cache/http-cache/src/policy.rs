//! The choices of a site, as plain data. Their origin (flags, a file, rules) is unknown here.
//!
//! The defaults are those of a site without configuration: caching headers of the origin are obeyed, cache
//! directives of requests are ignored, and nothing is cached by heuristics.

use crate::tags::{TABLE_TAGS_FIELD, TAGGED_TABLES_FIELD, internal_tag_fields};
use http::StatusCode;
use http::header::HeaderName;

/// The choices of a site, which the functions of this crate take. Each field documents its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether Cache-Control and Pragma of requests are obeyed. Default: no.
    pub request_directives: RequestControl,
    /// Heuristic freshness, RFC 9111 §4.2.2. Default: none. The time since the last modification does not
    /// say when a page is withdrawn. An application's own 304 may confirm a page that it did not check.
    pub heuristic: Option<Heuristic>,
    /// A lifetime in milliseconds, from the time of reception, for responses without caching headers
    /// (micro-caching). It applies to 200, 203, 204, 300, 301, 302, 307, 308, 404, 405, 410 and 414, never
    /// to server errors. It takes precedence over the heuristic. Default: none.
    pub default_lifetime_ms: Option<u64>,
    /// A lifetime in milliseconds for responses without caching headers that depend on everything they were
    /// made from ([`LifetimeSource::Reads`]): the caller stores such a response only if these dependencies are
    /// known. The default lifetime takes precedence. Default: none.
    ///
    /// [`LifetimeSource::Reads`]: crate::LifetimeSource::Reads
    pub reads_lifetime_ms: Option<u64>,
    /// stale-while-revalidate in seconds, for responses without one. Default: 0.
    pub stale_while_revalidate_seconds: u32,
    /// How long a response marked by a soft invalidation may be used while it is refreshed, in seconds from
    /// the invalidation. It applies in addition to stale-while-revalidate. Default: 0.
    pub soft_seconds: u32,
    /// stale-if-error in seconds, for responses without one. Default: 0.
    pub stale_if_error_seconds: u32,
    /// How many seconds a formerly fresh response may be used stale while the origin is unreachable
    /// ([`Failure::is_disconnection`]) and no directive applies. RFC 9111 §4.2.4 permits this to a
    /// disconnected cache. Default: 3,600.
    pub stale_if_disconnected_seconds: u32,
    /// How many seconds a formerly fresh response may be used stale while the cache defers requests
    /// ([`Failure::Deferred`]) and no directive applies. Default: 3,600.
    pub stale_if_deferred_seconds: u32,
    /// The failures on which a stale response may be used at all, whether the response or this policy
    /// permits it. Default: all.
    pub stale_if_error_causes: FailureSet,
    /// The targeted fields that are obeyed; the first valid one applies (RFC 9213 §2.2). Default:
    /// `Pagewell-Cache-Control`, `CDN-Cache-Control`.
    pub targets: Vec<HeaderName>,
    /// Whether `Surrogate-Control` is obeyed, after the targeted fields. Default: yes.
    pub surrogate_control: FieldUse,
    /// Whether LiteSpeed's fields are obeyed, directly after the targeted field with this cache's own name
    /// ([`litespeed`](crate::litespeed)). Default: yes.
    pub litespeed: FieldUse,
    /// Whether `X-Accel-Expires` is obeyed, after `Surrogate-Control`. Default: yes.
    pub x_accel_expires: FieldUse,
    /// Whether `Accept-Encoding` selects variants. Ignore it if this cache compresses the content itself
    /// and does not forward the field ([`codings`](crate::codings)): then no response depends on it,
    /// whatever its `Vary` says. Default: yes.
    pub accept_encoding: FieldUse,
    /// The name of this cache in Cache-Status (RFC 9211 §2), by which a parameter of `Surrogate-Control`
    /// may address it. Default: `pagewell`.
    pub cache_name: String,
    /// The maximum length of stored content in bytes, checked here against Content-Length only; the caller
    /// checks the actual content. Default: 64 MiB.
    pub content_max_bytes: u64,
    /// The maximum number of fields in `Vary`. Default: 16.
    pub nominated_max: usize,
    /// Fields for this cache that are not sent to clients. Default: `Pagewell-Cache-Control`, the fields
    /// about tables, `Surrogate-Control`, nginx's and LiteSpeed's fields, [`SENDFILE_FIELDS`], and the tag fields.
    /// `CDN-Cache-Control` is not among them, because another cache may be in front (RFC 9213 §3). Neither
    /// is `Cache-Groups`, because clients' caches use it (RFC 9875). Tags name rows of the application's
    /// tables and are not meant for clients.
    pub internal_fields: Vec<HeaderName>,
}

/// The fields that are meant for this cache only, without the tag fields.
const INTERNAL_FIELDS: [&str; 14] = [
    "pagewell-cache-control",
    TAGGED_TABLES_FIELD,
    TABLE_TAGS_FIELD,
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

/// Fields that name a file on the server, which a web server would send instead of the response.
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
            reads_lifetime_ms: None,
            stale_while_revalidate_seconds: 0,
            soft_seconds: 0,
            stale_if_error_seconds: 0,
            stale_if_disconnected_seconds: 3_600,
            stale_if_deferred_seconds: 3_600,
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

/// Whether Cache-Control and Pragma of requests are obeyed (RFC 9111 §5.2.1, §5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestControl {
    /// The directives are ignored, so that a browser reload does not cause an origin request. This cache acts as the
    /// origin and knows that its pages are current; RFC 9111 §5.2.1 calls request directives advisory.
    /// `only-if-cached` is honoured nevertheless, because it costs nothing.
    #[default]
    Ignore,
    /// The directives are obeyed.
    Honour,
}

/// Whether a field is obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldUse {
    /// The field is obeyed.
    Obey,
    /// The field is ignored.
    Ignore,
}

/// Heuristic freshness from Last-Modified (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristic {
    /// The percentage of the time since the last modification. Default: 10, as in §4.2.2.
    pub percent: u32,
    /// The maximum heuristic lifetime in seconds. Default: 600. Last-Modified alone leaves the lifetime to
    /// the cache, and the percentage often amounts to a day, which is too long for a correction. Ten
    /// minutes is a usual micro-cache lifetime.
    pub max_seconds: u32,
    /// Whether it applies to responses with `public`, and not only to the statuses listed in RFC 9110. Default:
    /// true.
    pub applies_to_public: bool,
}

impl Default for Heuristic {
    fn default() -> Heuristic {
        Heuristic { percent: 10, max_seconds: 600, applies_to_public: true }
    }
}

/// The failure due to which the origin gave no usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection was refused or not established.
    Refused,
    /// The connection was closed before the response was complete.
    HungUp,
    /// The response did not arrive in time.
    TimedOut,
    /// The response was neither HTTP nor CGI.
    InvalidResponse,
    /// The origin is overloaded: its queue is full.
    Overloaded,
    /// The cache deferred the request, because the origin is overloaded and others came first. A stale
    /// response may be used as for [`Failure::Overloaded`].
    Deferred,
    /// The client has reached a limit on the rate of its requests; the seconds until the next one is allowed. A stale
    /// response may be used as for [`Failure::Overloaded`].
    Limited(u32),
    /// A response with a status that indicates a failure of the origin.
    Status(StatusCode),
}

impl Failure {
    /// The name of the failure, as configuration, logs and the `detail` of Cache-Status show it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Failure::Refused => "origin-refused",
            Failure::HungUp => "hung-up",
            Failure::TimedOut => "timed-out",
            Failure::InvalidResponse => "invalid-response",
            Failure::Overloaded => "overloaded",
            Failure::Deferred => "deferred",
            Failure::Limited(_) => "rate-limited",
            Failure::Status(status) => match status.as_u16() {
                500 => "500",
                502 => "502",
                503 => "503",
                504 => "504",
                _ => "other-status",
            },
        }
    }

    /// Whether the cache was disconnected from the origin: there was no response at all (RFC 9111 §4.2.4,
    /// "disconnected").
    pub fn is_disconnection(&self) -> bool {
        match self {
            Failure::Refused
            | Failure::HungUp
            | Failure::TimedOut
            | Failure::Overloaded
            | Failure::Deferred
            | Failure::Limited(_) => true,
            Failure::InvalidResponse | Failure::Status(_) => false,
        }
    }

    /// The failure with this name; `None` if there is none, or if it is not configurable.
    pub fn from_name(name: &str) -> Option<Failure> {
        Failure::ALL.iter().find(|failure| failure.as_str() == name).copied()
    }

    /// All failures on which a stale response may be used (RFC 5861 §4: "an error is any situation that
    /// would result in a 500, 502, 503, or 504").
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
    /// The set of all failures.
    pub const ALL: FailureSet = FailureSet((1 << Failure::ALL.len()) - 1);
    /// The set without any failure.
    pub const NONE: FailureSet = FailureSet(0);

    /// The set with `failure` added. A status that is not in [`Failure::ALL`] is never in a set.
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
    let failure = match failure {
        Failure::Deferred | Failure::Limited(_) => Failure::Overloaded,
        other => other,
    };
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

    #[test]
    fn a_deferral_is_chosen_with_the_overload() {
        let overloaded = FailureSet::NONE.with(Failure::Overloaded);
        assert!(overloaded.contains(Failure::Deferred) && overloaded.contains(Failure::Limited(1)));
        assert!(!FailureSet::NONE.with(Failure::TimedOut).contains(Failure::Deferred));
        assert_eq!(Failure::from_name("deferred"), None);
    }
}
