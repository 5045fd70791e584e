//! The decision on a response before it is stored: the policy that applies, the response fields that are
//! ignored, and the reasons against storing in addition to those of RFC 9111.
//!
//! Invariants: a redirect to the page itself is never stored, because every client would be caught in a
//! loop. The response to a request with an unknown cookie is stored only if its `Vary` names all cookies.

use crate::cookies::CookieKind;
use crate::declared::is_marked_as_shared;
use crate::ignored::IgnoredFields;
use crate::plan::Plan;
use crate::rule::Load;
use crate::rules::SiteRules;
use http::header::{COOKIE, LOCATION, SET_COOKIE};
use http::{HeaderMap, StatusCode};
use http_cache::litespeed::LSC_COOKIE;
use http_cache::variants::NominatedFields;
use http_cache::{CookieName, FieldUse, Fields, Policy, Reference, StoredFacts};
use http_fields::cookies::pairs;
use rule_conditions::RequestView;

/// The decision on a response.
#[derive(Clone, Copy, Debug)]
pub struct Revision<'r> {
    /// The policy under which it may be stored.
    pub policy: &'r Policy,
    /// The response fields that are ignored.
    pub ignored: IgnoredFields,
    /// The reason against storing, if there is one.
    pub refusal: Option<Refusal>,
}

/// The reason why a response is not stored, in addition to those of RFC 9111.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rule forbids it.
    Rule,
    /// The request has a cookie that is on no list, and the response's `Vary` does not name the cookies.
    UnknownCookie,
    /// It redirects to the requested page itself.
    RedirectToItself,
    /// It sets a cookie that selects a variant, so it belongs to another variant than the request.
    VaryCookieSet,
    /// It sets a cookie with the name of a session cookie for every client (`lsc-cookie`).
    SessionForAll,
}

impl Refusal {
    /// The name of the reason, as in the `detail` of Cache-Status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refusal::Rule => "rule",
            Refusal::UnknownCookie => "unknown-cookie",
            Refusal::RedirectToItself => "redirect-to-itself",
            Refusal::VaryCookieSet => "vary-cookie-set",
            Refusal::SessionForAll => "session-for-all",
        }
    }
}

impl SiteRules {
    /// Decides on the response to a request whose plan is to use the store.
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
            if status.is_redirection() && self.redirects_to_itself(view, headers) {
                return Some(Refusal::RedirectToItself);
            }
            self.against_cookies(headers)
        };
        match at.map(|at| &self.rules[at]) {
            None => Revision {
                policy: &self.base,
                ignored: IgnoredFields::default(),
                refusal: against(),
            },
            Some(rule) => Revision {
                policy: rule.policies(load).of(status),
                ignored: rule.ignored,
                refusal: if rule.bypass { Some(Refusal::Rule) } else { against() },
            },
        }
    }

    /// Checks a response that RFC 9111 permits to store.
    ///
    /// # Errors
    /// The reason why it is not stored.
    pub fn keeps(
        &self,
        plan: &Plan,
        fields: &dyn Fields,
        stored: &StoredFacts,
    ) -> Result<(), Refusal> {
        let is_marked = is_marked_as_shared(stored);
        if self.are_strangers_apart(plan, fields, stored.nominated(), is_marked) {
            Ok(())
        } else {
            Err(Refusal::UnknownCookie)
        }
    }

    /// Whether the unknown cookies of a request select its response: the response nominates all cookies or each of
    /// these. A cookie in a condition of the rule that applies selects the rule's own copy, if the response
    /// `is_marked` as shared.
    pub fn are_strangers_apart(
        &self,
        plan: &Plan,
        fields: &dyn Fields,
        nominated: &NominatedFields,
        is_marked: bool,
    ) -> bool {
        if !self.has_strangers(plan) || nominated.names().any(|name| *name == COOKIE) {
            return true;
        }
        let rule = plan.rule.map(|at| &self.rules[at]).filter(|rule| is_marked && rule.own_copies);
        let is_condition = |name: &CookieName<'_>| {
            rule.is_some_and(|rule| {
                let mut named = rule.conditions.cookie.iter().filter(|named| !named.absent);
                named.any(|named| name.any(|reading| named.name.fits(reading)))
            })
        };
        let mut are_apart = true;
        fields.values("cookie", &mut |line| {
            let counting = pairs(line).filter(|pair| self.counts(plan, &pair.name));
            for pair in counting.filter(|pair| self.lists.kind(&pair.name) == CookieKind::Unknown) {
                are_apart &= nominated.has_cookie(&pair.name) || is_condition(&pair.name);
            }
        });
        are_apart
    }

    /// The reason against storing that follows from the cookies in a response, even if a rule ignores
    /// Set-Cookie.
    fn against_cookies(&self, headers: &HeaderMap) -> Option<Refusal> {
        let of = |line: &'_ [u8]| pairs(line).next().map(|pair| self.lists.kind(&pair.name));
        let kinds = |name| headers.get_all(name).iter().filter_map(move |v| of(v.as_bytes()));
        if kinds(SET_COOKIE.as_str()).any(|kind| kind == CookieKind::Vary) {
            return Some(Refusal::VaryCookieSet);
        }
        let refused = |kind| match kind {
            CookieKind::Session => Some(Refusal::SessionForAll),
            CookieKind::Vary => Some(Refusal::VaryCookieSet),
            CookieKind::ScriptOnly | CookieKind::Unknown | CookieKind::Language => None,
        };
        let obeyed = self.base.litespeed == FieldUse::Obey;
        kinds(LSC_COOKIE).find_map(refused).filter(|_| obeyed)
    }

    /// Whether Location refers to the cache key of the requested page, in whatever spelling.
    fn redirects_to_itself(&self, view: &RequestView<'_>, headers: &HeaderMap) -> bool {
        let Some(location) = headers.get(LOCATION) else { return false };
        let location = String::from_utf8_lossy(location.as_bytes());
        let Some(found) = Reference::resolve(&location, view.path_and_query) else { return false };
        let own_port = if view.scheme == "https" { ":443" } else { ":80" };
        let is_own = |host: &str| {
            host.strip_suffix(own_port).unwrap_or(host).eq_ignore_ascii_case(view.host)
        };
        found.scheme.is_none_or(|scheme| scheme == view.scheme)
            && found.host.as_deref().is_none_or(is_own)
            && self.form.normal(&found.page).page == self.form.normal(view.path_and_query).page
    }
}
