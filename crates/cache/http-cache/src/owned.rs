//! What may be kept of a private response for the one visitor it was made for (RFC 9111 §3, §5.2.2.7).
//! For such a copy this cache is a private one: `s-maxage` says nothing to it (§5.2.2.10).
//!
//! Invariants: all that stands against storing a response for everybody stands against this, but the
//! word `private` itself; a lifetime is never guessed and never a rule's; what is kept says `private` to
//! whoever gets it. Deliberately not here: who the owner is, and that nobody else finds the copy, which
//! is a matter of its key.

use crate::directives::ResponseDirectives;
use crate::fields::Fields;
use crate::freshness::{LifetimeSource, Times};
use crate::litespeed::{Scope, shared_cookies, tags_by_scope};
use crate::not_stored::NotStored;
use crate::policy::{FieldUse, Policy};
use crate::request::RequestFacts;
use crate::stored::{Beside, Stored};
use crate::storing::{content_length, keep, may_store};
use crate::tags::read_tags;
use crate::targeted::{Declared, DeclaredBy, declared};
use crate::time::{SECONDS_MAX, Timestamp};
use crate::variants::Nominated;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode};

/// Whose word that a response is for one visitor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateWord {
    /// That of whichever field speaks to this cache.
    Anybodys,
    /// That of `X-LiteSpeed-Cache-Control` only.
    LiteSpeeds,
}

/// When a response was asked for and came, and how it may be kept for its owner.
#[derive(Clone, Copy, Debug)]
pub struct OwnedTerms {
    /// When the request was sent to the origin.
    pub request_time: Timestamp,
    /// When the response came.
    pub response_time: Timestamp,
    /// Whose word counts.
    pub word: PrivateWord,
    /// The longest lifetime, from the reception, in milliseconds.
    pub lifetime_max_ms: u64,
}

/// What may be kept of a response for the visitor who sent `request`; `Ok(None)` where it is not said to
/// be for one visitor.
///
/// # Errors
/// The first reason that stands against it.
pub fn storable_for_owner(
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    status: StatusCode,
    headers: &HeaderMap,
    terms: OwnedTerms,
    policy: &Policy,
) -> Result<Option<Stored>, NotStored> {
    let Declared { mut directives, by } = declared(headers, policy, terms.response_time);
    // `private="x-name"` is not meant: it withholds fields of a page that is for all (§5.2.2.7).
    let is_asked =
        directives.private && (by == DeclaredBy::LiteSpeed || terms.word == PrivateWord::Anybodys);
    if !is_asked {
        return Ok(None);
    }
    if directives.no_store {
        return Err(NotStored::NoStore); // Also beside must-understand: when in doubt, not.
    }
    if directives.no_cache {
        return Err(NotStored::NeverReusable);
    }
    if request.authorization {
        return Err(NotStored::Authorization);
    }
    directives.private = false;
    directives.s_maxage = None; // §5.2.2.10: for shared caches.
    may_store(request, status, headers, &directives, policy)?;
    if content_length(headers).is_some_and(|length| length > policy.content_max_bytes) {
        return Err(NotStored::TooLarge);
    }
    let nominated = Nominated::of(headers, request_fields, policy)?;
    let cookies = match policy.litespeed {
        FieldUse::Obey => shared_cookies(headers).ok_or(NotStored::SharedCookies)?,
        FieldUse::Ignore => Vec::new(),
    };
    let times = Times { request: terms.request_time, response: terms.response_time };
    let mut stored = keep(status, headers, Declared { directives, by }, nominated, times, policy)?;
    limit(&mut stored, terms.lifetime_max_ms)?;
    for cookie in cookies {
        stored.headers.append(http::header::SET_COOKIE, cookie);
    }
    let (everybodys, owners) = tags(headers)?;
    stored.set_tags(everybodys);
    let litespeed = stored.beside().litespeed;
    stored.set_beside(Beside { owner_tags: owners, litespeed });
    stored.directives = stored.directives.made_private();
    say_private(&mut stored);
    Ok(Some(stored))
}

/// Takes a lifetime that the origin has declared, and no more of it than the site allows.
fn limit(stored: &mut Stored, max_ms: u64) -> Result<(), NotStored> {
    match stored.lifetime_source {
        LifetimeSource::Targeted
        | LifetimeSource::LiteSpeed
        | LifetimeSource::SurrogateControl
        | LifetimeSource::XAccelExpires
        | LifetimeSource::SMaxage
        | LifetimeSource::MaxAge
        | LifetimeSource::Expires => {}
        LifetimeSource::Rule | LifetimeSource::Heuristic | LifetimeSource::None => {
            return Err(NotStored::NoLifetime);
        }
    }
    let most = max_ms.saturating_add(stored.initial_age_ms()).min(u64::from(SECONDS_MAX) * 1000);
    let allowed = stored.lifetime_ms().min(most);
    stored.set_lifetime_ms(allowed);
    match stored.is_fresh(stored.response_time) {
        true => Ok(()),
        false => Err(NotStored::NeverReusable),
    }
}

/// The tags by which everybody's changes drop the copy, and those by which only its owner's do.
fn tags(headers: &HeaderMap) -> Result<(crate::tags::Tags, crate::tags::Tags), NotStored> {
    let mut others = headers.clone();
    others.remove("x-litespeed-tag");
    let scoped = tags_by_scope(headers, Scope::Private)?;
    Ok((read_tags(&others)?.joined(&scoped.public)?, scoped.private))
}

/// Caches on the way to the visitor go by Cache-Control, whatever field spoke to this one.
fn say_private(stored: &mut Stored) {
    let lines = stored.headers.get_all(CACHE_CONTROL).iter().map(|value| value.as_bytes());
    let said = ResponseDirectives::read(lines);
    if !said.private && !said.no_store {
        stored.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private"));
    }
}

#[cfg(test)]
#[path = "owned_tests.rs"]
mod tests;
