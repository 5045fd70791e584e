//! Which reason the reasons of lower crates are.
//!
//! Each match is complete, so that a new variant there needs a row in the table here.

use super::Reason;
use super::refusal::Refusal;
use http_cache::{Failure, ForwardReason, NotFreshened, NotStored, StaleBecause, UnusableBecause};
use page_store::StoreRefusal;
use site_rules::{BypassBecause, NoOwner, Refusal as RuleRefusal};

/// Converts an enum whose variants have the same names here.
macro_rules! same_names {
    ($lower:ident: $($name:ident)*) => {
        impl From<$lower> for Reason {
            fn from(reason: $lower) -> Reason {
                match reason {
                    $($lower::$name => Reason::$name,)*
                }
            }
        }
    };
}

same_names!(NotStored:
    Method Interim PartialContent PartUnreadable PartNotStrong NotModified StatusNotUnderstood
    DirectivesUnreadable NoStore RequestNoStore Private SetCookie Authorization NotOffered NoLifetime
    ServerError NeverReusable VaryStar VaryUnreadable VaryTooLong TooLarge MemoryShort TagsTooLong
    TagsUnreadable VaryValue SharedCookies EsiUnsupported);
same_names!(StoreRefusal:
    ChangedSince Unsettled LeaseTooOld Superseded TooLarge TooManyTags TagTooLong OwnerUnclear);
same_names!(RuleRefusal: Rule UnknownCookie RedirectToItself VaryCookieSet SessionForAll);
same_names!(ForwardReason: Bypass Method UriMiss VaryMiss Miss Request Stale Partial);
same_names!(Refusal:
    Malformed BareLineFeed TargetTooLong TargetInvalid HeadTooLarge TooManyHeaders HostMissing
    HostRepeated LengthInvalid LengthAndCoding CodingUnknown ContentTooLarge MethodConnect HeadTimeout
    ContentTimeout ContentTooSlow ContentMalformed ContentNoRoom ContentNotKept TooManyStreams);

impl From<BypassBecause> for Reason {
    fn from(reason: BypassBecause) -> Reason {
        match reason {
            BypassBecause::Rule => Reason::Rule,
            BypassBecause::SessionCookie => Reason::SessionCookie,
            BypassBecause::PersonalQuery => Reason::PersonalQuery,
            BypassBecause::AfterWrite => Reason::AfterWrite,
            BypassBecause::UnknownCookie => Reason::UnknownCookie,
            BypassBecause::Credential => Reason::CredentialField,
            BypassBecause::PartialPage => Reason::PartialPage,
            BypassBecause::FieldTooLong => Reason::FieldTooLong,
        }
    }
}

impl From<NoOwner> for Reason {
    fn from(reason: NoOwner) -> Reason {
        match reason {
            // Such a request is like any other with a session cookie.
            NoOwner::Nobody => Reason::SessionCookie,
            NoOwner::Twice => Reason::OwnerCookieTwice,
            NoOwner::TooLong => Reason::OwnerCookiesTooLong,
            NoOwner::Authorization => Reason::OwnerAuthorization,
        }
    }
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Reason {
        match failure {
            Failure::Refused => Reason::OriginRefused,
            Failure::HungUp => Reason::HungUp,
            Failure::TimedOut => Reason::TimedOut,
            Failure::InvalidResponse => Reason::InvalidResponse,
            Failure::Overloaded => Reason::Overloaded,
            Failure::Deferred => Reason::Deferred,
            Failure::Limited(_) => Reason::RateLimited,
            Failure::Status(status) => match status.as_u16() {
                500 => Reason::Status500,
                502 => Reason::Status502,
                503 => Reason::Status503,
                504 => Reason::Status504,
                _ => Reason::OtherStatus,
            },
        }
    }
}

impl From<StaleBecause> for Reason {
    fn from(because: StaleBecause) -> Reason {
        match because {
            StaleBecause::WhileRevalidate => Reason::StaleWhileRevalidate,
            StaleBecause::MaxStale => Reason::MaxStale,
        }
    }
}

impl From<UnusableBecause> for Reason {
    fn from(because: UnusableBecause) -> Reason {
        match because {
            UnusableBecause::Authorization => Reason::Authorization,
            UnusableBecause::UnknownCookie => Reason::UnknownCookie,
            UnusableBecause::EsiOff => Reason::EsiUnsupported,
            UnusableBecause::Owner => Reason::Private,
        }
    }
}

impl From<NotFreshened> for Reason {
    fn from(reason: NotFreshened) -> Reason {
        match reason {
            NotFreshened::OtherValidator => Reason::OtherValidator,
            NotFreshened::NotStored(reason) => reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration, the counters and the logs of lower crates use their own texts.
    #[test]
    fn a_reason_has_the_name_of_the_lower_crate() {
        for lower in NotStored::ALL {
            assert_eq!(Reason::from(lower).as_str(), lower.as_str());
        }
        for lower in StoreRefusal::ALL {
            assert_eq!(Reason::from(lower).as_str(), lower.as_str());
        }
        for lower in ForwardReason::ALL {
            assert_eq!(Reason::from(lower).as_str(), lower.as_str());
        }
        for code in [500, 502, 503, 504, 599] {
            let lower = Failure::Status(http::StatusCode::from_u16(code).expect("a status"));
            assert_eq!(Reason::from(lower).as_str(), lower.as_str());
        }
        let rules = [RuleRefusal::Rule, RuleRefusal::UnknownCookie];
        for lower in rules {
            assert_eq!(Reason::from(lower).as_str(), lower.as_str());
        }
        assert_eq!(Reason::from(BypassBecause::Rule).as_str(), BypassBecause::Rule.as_str());
        assert_eq!(Reason::from(NoOwner::Nobody).as_str(), NoOwner::Nobody.as_str());
    }
}
