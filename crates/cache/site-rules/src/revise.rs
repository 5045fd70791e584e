//! What is to be done with a response, before it is stored: which policy counts, which of its fields
//! do not, and what stands against storing besides RFC 9111.
//!
//! Invariants: a redirect to the page itself is never stored, for it would send everybody in circles;
//! the answer to a request with an unknown cookie is stored only if the application says, in a word
//! made for shared caches, that it is the same for all.

use crate::compile::SiteRules;
use crate::cookies::{CookieKind, pairs};
use crate::plan::{Load, Plan};
use crate::view::RequestView;
use http::header::{CACHE_CONTROL, COOKIE, EXPIRES, LOCATION, PRAGMA, SET_COOKIE};
use http::{HeaderMap, HeaderName, StatusCode, Uri};
use http_cache::litespeed::LSC_COOKIE;
use http_cache::{FieldUse, LifetimeSource, Policy, StoredFacts};

/// What is to be done with a response.
#[derive(Clone, Copy, Debug)]
pub struct Revision<'r> {
    /// The policy under which it may be stored.
    pub policy: &'r Policy,
    /// The fields that do not count.
    pub ignored: Ignored,
    /// What stands against storing, if something does.
    pub refusal: Option<Refusal>,
}

/// Why a response is not stored, besides the reasons of RFC 9111.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rule says so.
    Rule,
    /// The request had a cookie that is on no list, and the response is not marked as shareable.
    UnknownCookie,
    /// It redirects to the page itself.
    RedirectToItself,
    /// It sets a cookie that tells copies apart: it is of another kind than the request was.
    VaryCookieSet,
    /// It gives everybody (`lsc-cookie`) a cookie with the name of a session's.
    SessionForAll,
}

impl Refusal {
    /// The reason's name, as in the `detail` of Cache-Status.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Rule => "rule",
            Refusal::UnknownCookie => "unknown-cookie",
            Refusal::RedirectToItself => "redirect-to-itself",
            Refusal::VaryCookieSet => "vary-cookie-set",
            Refusal::SessionForAll => "session-for-all",
        }
    }
}

/// Fields of a response that a rule has ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    pub(crate) cache_control: bool,
    pub(crate) expires: bool,
    pub(crate) set_cookie: bool,
}

impl Ignored {
    /// Whether there are any.
    pub fn is_empty(self) -> bool {
        self == Ignored::default()
    }

    /// Takes the ignored fields out, so that they do not count.
    pub fn strip(self, headers: &mut HeaderMap) {
        for name in self.for_clients() {
            headers.remove(name);
        }
        if self.set_cookie {
            headers.remove(SET_COOKIE);
        }
    }

    /// Puts back what clients are to see: the application's word to browsers still holds for them. A
    /// cookie is not put back: it is for one visitor.
    pub fn restore(self, from: &HeaderMap, to: &mut HeaderMap) {
        for name in self.for_clients() {
            to.remove(&name);
            for value in from.get_all(&name) {
                to.append(name.clone(), value.clone());
            }
        }
    }

    fn for_clients(self) -> impl Iterator<Item = HeaderName> {
        let cache_control = self.cache_control.then_some([CACHE_CONTROL, PRAGMA]);
        cache_control.into_iter().flatten().chain(self.expires.then_some(EXPIRES))
    }
}

impl SiteRules {
    /// What is to be done with the response to a request that was planned to ask the store.
    pub fn revise(
        &self,
        plan: &Plan,
        view: &RequestView<'_>,
        status: StatusCode,
        headers: &HeaderMap,
        load: Load,
    ) -> Revision<'_> {
        let at = if self.responsive {
            self.rules.iter().position(|rule| {
                let response = rule.response.as_ref();
                response.is_none_or(|response| response.fit(status, headers))
                    && rule.conditions.fit(view)
            })
        } else {
            plan.rule
        };
        let against = || {
            if status.is_redirection() && self.leads_to_itself(view, headers) {
                return Some(Refusal::RedirectToItself);
            }
            self.against_cookies(headers)
        };
        match at.map(|at| &self.rules[at]) {
            None => {
                Revision { policy: &self.base, ignored: Ignored::default(), refusal: against() }
            }
            Some(rule) => Revision {
                policy: rule.policies(load).of(status),
                ignored: rule.ignored,
                refusal: if rule.bypass { Some(Refusal::Rule) } else { against() },
            },
        }
    }

    /// Whether a response that RFC 9111 lets be stored is kept.
    ///
    /// # Errors
    /// Why not.
    pub fn keeps(&self, plan: &Plan, stored: &StoredFacts) -> Result<(), Refusal> {
        match self.has_strangers(plan) && !is_shareable(stored) {
            true => Err(Refusal::UnknownCookie),
            false => Ok(()),
        }
    }

    /// What the cookies of a response say against storing it, whatever a rule makes of Set-Cookie.
    fn against_cookies(&self, headers: &HeaderMap) -> Option<Refusal> {
        let of = |line: &'_ [u8]| pairs(line).next().map(|pair| self.lists.kind(&pair.name));
        let kinds = |name| headers.get_all(name).iter().filter_map(move |v| of(v.as_bytes()));
        if kinds(SET_COOKIE.as_str()).any(|kind| kind == CookieKind::Vary) {
            return Some(Refusal::VaryCookieSet);
        }
        let refused = |kind| match kind {
            CookieKind::Session => Some(Refusal::SessionForAll),
            CookieKind::Vary => Some(Refusal::VaryCookieSet),
            CookieKind::ScriptOnly | CookieKind::Unknown => None,
        };
        let obeyed = self.base.litespeed == FieldUse::Obey;
        kinds(LSC_COOKIE).find_map(refused).filter(|_| obeyed)
    }

    /// Whether Location names the page that was asked for.
    fn leads_to_itself(&self, view: &RequestView<'_>, headers: &HeaderMap) -> bool {
        let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let location = location.split('#').next().unwrap_or_default();
        if location.starts_with('/') && !location.starts_with("//") {
            return self.form.normal(location).page == view.path_and_query;
        }
        let Ok(uri) = location.parse::<Uri>() else { return false };
        let same_scheme = uri.scheme_str() == Some(view.scheme);
        let same_host = uri.authority().is_some_and(|host| {
            let own_port = if view.scheme == "https" { ":443" } else { ":80" };
            let host = host.as_str();
            host.strip_suffix(own_port).unwrap_or(host).eq_ignore_ascii_case(view.host)
        });
        let page = uri.path_and_query().map_or("/", |both| both.as_str());
        same_scheme && same_host && self.form.normal(page).page == view.path_and_query
    }
}

/// Whether the response says in a word made for shared caches that it is the same for all, or is
/// selected by all cookies. Cookies named one by one (`X-LiteSpeed-Vary`) say nothing of the others.
fn is_shareable(stored: &StoredFacts) -> bool {
    let directives = stored.directives;
    let source = stored.lifetime_source;
    directives.public()
        || directives.has_s_maxage()
        || matches!(
            source,
            LifetimeSource::Targeted
                | LifetimeSource::LiteSpeed
                | LifetimeSource::SurrogateControl
                | LifetimeSource::XAccelExpires
        )
        || stored.tags().iter().next().is_some()
        || stored.nominated().names().any(|name| *name == COOKIE)
}

/// Whether the application has said how long the page is good, or is heard on its cookies.
pub(crate) fn is_declared(stored: &StoredFacts) -> bool {
    !matches!(stored.lifetime_source, LifetimeSource::Rule | LifetimeSource::Heuristic)
        || is_shareable(stored)
}
