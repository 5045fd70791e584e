//! The reasons for which a response is not stored: their names, and what to do about each.
//!
//! Invariant: a reason's name is part of the product: it stands in Cache-Status, in logs and metrics,
//! and in the scenarios that show it. Which reason applies is decided in `storing`.

use crate::tags::TagsRefused;
use crate::variants::NotSelectable;
use std::fmt;

/// Why a response is not stored. [`NotStored::advice`] says what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStored {
    /// The request's method is not GET (RFC 9111 §3).
    Method,
    /// An interim response, or 101 (RFC 9111 §3: "the response status code is final").
    Interim,
    /// A part is not stored as the whole (RFC 9111 §3.3).
    PartialContent,
    /// A part whose Content-Range cannot be read, or contradicts the content (RFC 9110 §14.4).
    PartUnreadable,
    /// A part without a strong entity tag, which alone tells what it is a part of (RFC 9111 §3.4).
    PartNotStrong,
    /// A 304 to a request that did not come from a stored response.
    NotModified,
    /// `must-understand` with a status that is not known here (RFC 9111 §5.2.2.3).
    StatusNotUnderstood,
    /// A quoted string in Cache-Control never closes: what is behind it may be a directive.
    DirectivesUnreadable,
    /// `no-store`, RFC 9111 §5.2.2.5.
    NoStore,
    /// The request said `no-store` (RFC 9111 §5.2.1.5), and the site honours that.
    RequestNoStore,
    /// `private`, RFC 9111 §5.2.2.7.
    Private,
    /// A cookie is set: for one visitor, not for all.
    SetCookie,
    /// An answer to Authorization that is not marked as shareable (RFC 9111 §3.5).
    Authorization,
    /// No lifetime is declared, none given by a rule, and none can be guessed.
    NoLifetime,
    /// The origin has failed (5xx) and does not say that its answer may be kept.
    ServerError,
    /// It could not be reused: stale at once, no validator, and no permission to use it stale.
    NeverReusable,
    /// `Vary: *`, RFC 9111 §4.1.
    VaryStar,
    /// Vary lists what is not a field name.
    VaryUnreadable,
    /// Vary nominates more fields than the site allows.
    VaryTooLong,
    /// The content is longer than the site stores.
    TooLarge,
    /// A tag, or the list of tags, is over the limit.
    TagsTooLong,
    /// The tags cannot be read.
    TagsUnreadable,
    /// `X-LiteSpeed-Vary: value=`: for requests that the server gives a word which this one did not get.
    VaryValue,
    /// `lsc-cookie` has no name, or there are too many or too long ones.
    SharedCookies,
    /// `esi=on`, and there are elements of ESI in the content, which would be sent as they are.
    EsiUnsupported,
}

impl NotStored {
    /// Every reason there is.
    pub const ALL: [NotStored; 25] = [
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
        NotStored::NoLifetime,
        NotStored::ServerError,
        NotStored::NeverReusable,
        NotStored::VaryStar,
        NotStored::VaryUnreadable,
        NotStored::VaryTooLong,
        NotStored::TooLarge,
        NotStored::TagsTooLong,
        NotStored::TagsUnreadable,
        NotStored::VaryValue,
        NotStored::SharedCookies,
        NotStored::EsiUnsupported,
    ];

    /// The reason's name, as in the `detail` of Cache-Status.
    pub fn as_str(self) -> &'static str {
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
            NotStored::NoLifetime => "no-lifetime",
            NotStored::ServerError => "server-error",
            NotStored::NeverReusable => "never-reusable",
            NotStored::VaryStar => "vary-star",
            NotStored::VaryUnreadable => "vary-unreadable",
            NotStored::VaryTooLong => "vary-too-long",
            NotStored::TooLarge => "too-large",
            NotStored::TagsTooLong => "tags-too-long",
            NotStored::TagsUnreadable => "tags-unreadable",
            NotStored::VaryValue => "vary-value",
            NotStored::SharedCookies => "lsc-cookie",
            NotStored::EsiUnsupported => "esi-unsupported",
        }
    }

    /// What to do to have it stored, in one sentence.
    pub fn advice(self) -> &'static str {
        match self {
            NotStored::Method => "Only responses to GET are stored.",
            NotStored::Interim => "Only final responses are stored.",
            NotStored::PartialContent => {
                "Answer with the whole content (200): parts are cut from the stored page."
            }
            NotStored::PartUnreadable => {
                "Say in Content-Range which bytes these are, and of how many, as they are."
            }
            NotStored::PartNotStrong => "Send a strong ETag with the parts of a response.",
            NotStored::NotModified => "Answer 304 only to If-None-Match or If-Modified-Since.",
            NotStored::StatusNotUnderstood => {
                "Leave out must-understand, or use a status that RFC 9110 defines."
            }
            NotStored::DirectivesUnreadable => {
                "Close every quoted string in Cache-Control with a quotation mark."
            }
            NotStored::NoStore => {
                "Leave out no-store; PHP's session_start() sends it unless session.cache_limiter is empty."
            }
            NotStored::RequestNoStore => {
                "The visitor asked for it; the site can choose to ignore that."
            }
            NotStored::Private => {
                "Leave out private, or name the private fields: private=\"x-name\"."
            }
            NotStored::SetCookie => {
                "Set cookies on pages of their own, or start sessions only when needed."
            }
            NotStored::Authorization => {
                "Send public, s-maxage or must-revalidate if the page is the same for everybody."
            }
            NotStored::NoLifetime => {
                "Say what it is made from (tags), send Cache-Control with max-age or s-maxage, or give the site a default lifetime."
            }
            NotStored::ServerError => {
                "Mend the page: the origin answered with an error, and errors are not kept. See origin-stderr in the log."
            }
            NotStored::NeverReusable => {
                "Send a longer max-age, a validator (ETag, Last-Modified), or stale-while-revalidate."
            }
            NotStored::VaryStar => "Name the fields that the page depends on instead of Vary: *.",
            NotStored::VaryUnreadable => "List field names in Vary, separated by commas.",
            NotStored::VaryTooLong => "Nominate fewer fields in Vary.",
            NotStored::TooLarge => "Raise the limit on a page's content, or let the page be.",
            NotStored::TagsTooLong => {
                "Use fewer or shorter tags; a list that was cut could miss a change."
            }
            NotStored::TagsUnreadable => {
                "Write Cache-Groups as a list of strings: Cache-Groups: \"news\", \"news:4\"."
            }
            NotStored::VaryValue => {
                "Let a rule tell device classes apart, or leave out value= in X-LiteSpeed-Vary."
            }
            NotStored::SharedCookies => {
                "Give lsc-cookie a name and a value, eight of them at most, 4 KB in all."
            }
            NotStored::EsiUnsupported => "Switch ESI off in the application or its plugin.",
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
    fn names_are_distinct_and_every_reason_has_advice() {
        for (at, reason) in NotStored::ALL.iter().enumerate() {
            assert!(NotStored::ALL[..at].iter().all(|other| other.as_str() != reason.as_str()));
            assert!(reason.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
            assert!(reason.advice().ends_with('.'), "{reason}");
        }
    }
}
