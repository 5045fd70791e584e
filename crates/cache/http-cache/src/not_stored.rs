//! The reasons why a response is not stored, and their names. Advice for each is in the crate `reasons`.
//!
//! Invariant: the names are part of the product. They appear in Cache-Status, logs, metrics and scenario
//! tests. `storing` decides which reason applies.

use crate::tags::TagsRefused;
use crate::variants::NotSelectable;
use std::fmt;

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// The request's method is not GET (RFC 9111 §3).
    Method,
    /// An interim response, including 101 (RFC 9111 §3: "the response status code is final").
    Interim,
    /// A 206; a part is not stored as the whole (RFC 9111 §3.3).
    PartialContent,
    /// A part with an unreadable Content-Range, or one that contradicts the content (RFC 9110 §14.4).
    PartUnreadable,
    /// A part without a strong entity tag, which is needed to identify the whole (RFC 9111 §3.4).
    PartNotStrong,
    /// A 304 to a request that did not validate a stored response.
    NotModified,
    /// `must-understand` with an unknown status (RFC 9111 §5.2.2.3).
    StatusNotUnderstood,
    /// A quoted string in Cache-Control is not closed, so the text after it may be a directive.
    DirectivesUnreadable,
    /// `no-store`, RFC 9111 §5.2.2.5.
    NoStore,
    /// The request has `no-store` (RFC 9111 §5.2.1.5), and the site honours that.
    RequestNoStore,
    /// `private`, RFC 9111 §5.2.2.7.
    Private,
    /// The response sets a cookie, so it is for one client only.
    SetCookie,
    /// A response to a request with Authorization that is not marked as shared (RFC 9111 §3.5).
    Authorization,
    /// The application does not offer the page (`X-Pagewell-Refusal`), although its other fields permit
    /// storing it.
    NotOffered,
    /// The response declares no lifetime, no rule gives one, and there is no heuristic.
    NoLifetime,
    /// An error of the origin (5xx) that is not declared storable, or could never be reused.
    ServerError,
    /// The response could never be reused: it is stale at once, has no validator and must not be used
    /// stale.
    NeverReusable,
    /// `Vary: *`, RFC 9111 §4.1.
    VaryStar,
    /// Vary contains an invalid field name.
    VaryUnreadable,
    /// Vary names more fields than the site allows.
    VaryTooLong,
    /// The content is longer than the site's limit.
    TooLarge,
    /// Too much content of other responses is being collected.
    MemoryShort,
    /// A tag, or the list of tags, exceeds a limit.
    TagsTooLong,
    /// The tags are unreadable.
    TagsUnreadable,
    /// `X-LiteSpeed-Vary: value=` names another value than the server passed with this request.
    VaryValue,
    /// `lsc-cookie` has no name, or there are too many or too long ones.
    SharedCookies,
    /// `esi=on`, and the content has ESI elements, which would be sent unprocessed.
    EsiUnsupported,
}

impl NotStored {
    /// All reasons of this enum.
    pub const ALL: [NotStored; 27] = [
        NotStored::Method,
        NotStored::Interim,
        NotStored::PartialContent,
        NotStored::PartUnreadable,
        NotStored::PartNotStrong,
        NotStored::NotModified,
        NotStored::StatusNotUnderstood,
        NotStored::DirectivesUnreadable,
        NotStored::NoStore,
        NotStored::RequestNoStore,
        NotStored::Private,
        NotStored::SetCookie,
        NotStored::Authorization,
        NotStored::NotOffered,
        NotStored::NoLifetime,
        NotStored::ServerError,
        NotStored::NeverReusable,
        NotStored::VaryStar,
        NotStored::VaryUnreadable,
        NotStored::VaryTooLong,
        NotStored::TooLarge,
        NotStored::MemoryShort,
        NotStored::TagsTooLong,
        NotStored::TagsUnreadable,
        NotStored::VaryValue,
        NotStored::SharedCookies,
        NotStored::EsiUnsupported,
    ];

    /// The name of the reason, as in the `detail` of Cache-Status.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotStored::Method => "method",
            NotStored::Interim => "interim",
            NotStored::PartialContent => "partial-content",
            NotStored::PartUnreadable => "part-unreadable",
            NotStored::PartNotStrong => "part-not-strong",
            NotStored::NotModified => "not-modified",
            NotStored::StatusNotUnderstood => "status-not-understood",
            NotStored::DirectivesUnreadable => "directives-unreadable",
            NotStored::NoStore => "no-store",
            NotStored::RequestNoStore => "request-no-store",
            NotStored::Private => "private",
            NotStored::SetCookie => "set-cookie",
            NotStored::Authorization => "authorization",
            NotStored::NotOffered => "not-offered",
            NotStored::NoLifetime => "no-lifetime",
            NotStored::ServerError => "server-error",
            NotStored::NeverReusable => "never-reusable",
            NotStored::VaryStar => "vary-star",
            NotStored::VaryUnreadable => "vary-unreadable",
            NotStored::VaryTooLong => "vary-too-long",
            NotStored::TooLarge => "too-large",
            NotStored::MemoryShort => "memory-short",
            NotStored::TagsTooLong => "tags-too-long",
            NotStored::TagsUnreadable => "tags-unreadable",
            NotStored::VaryValue => "vary-value",
            NotStored::SharedCookies => "lsc-cookie",
            NotStored::EsiUnsupported => "esi-unsupported",
        }
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for NotStored {}

impl From<NotSelectable> for NotStored {
    fn from(reason: NotSelectable) -> NotStored {
        match reason {
            NotSelectable::Star => NotStored::VaryStar,
            NotSelectable::Unreadable => NotStored::VaryUnreadable,
            NotSelectable::TooLong => NotStored::VaryTooLong,
            NotSelectable::OtherValue => NotStored::VaryValue,
        }
    }
}

impl From<TagsRefused> for NotStored {
    fn from(reason: TagsRefused) -> NotStored {
        match reason {
            TagsRefused::TooLong => NotStored::TagsTooLong,
            TagsRefused::Unreadable => NotStored::TagsUnreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        for (at, reason) in NotStored::ALL.iter().enumerate() {
            assert!(NotStored::ALL[..at].iter().all(|other| other.as_str() != reason.as_str()));
            assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
        }
    }
}
