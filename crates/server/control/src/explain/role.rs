//! Explains the pages that the signed-in visitors of a role share (LiteSpeed's ESI): whether the request is for one,
//! which page answers it, what would be stored, and otherwise the reason why not, with advice.
//!
//! The facts are those by which `exchange::signed_in` answers. Like all explanations, it shows no value of a
//! cookie, and changes nothing.

use super::ExplainRequest;
use delivery::esi::is_litespeeds;
use delivery::site::Site;
use exchange::private::owner;
use exchange::signed_in::{RoleState, SignedInRequest, is_key_of_role};
use http::Method;
use http_cache::RequestFacts;
use page_store::ChangeTarget;
use reasons::Reason;
use request_values::target::TargetUri;
use site_rules::{BypassBecause, Handling, NoRole, Plan};
use telemetry::request_fields::AsSent;

/// The most pages of a URL that are looked through for those of roles.
const PAGES_MAX: usize = 64;

/// A URL as a page that signed-in visitors share.
pub(super) enum Role {
    /// Nothing: the site does not use LiteSpeed's ESI, or the request has nothing to do with it.
    Unused,
    /// The request is for such a page. The names are those of cookies on which it must not depend.
    Shared(RoleState, Vec<Box<str>>),
    /// The request has a session, but is not for such a page.
    NotShared(NoRole),
    /// The request has no session, and so many pages of its URL are for visitors who have one.
    Others(usize),
}

impl Role {
    /// Determines it for a request with this plan and key.
    pub(super) fn of(
        asked: &ExplainRequest,
        target: &TargetUri,
        (plan, key): (&Plan, &[u8]),
        facts: &RequestFacts<'_>,
    ) -> Role {
        let (site, headers) = (&asked.site, &asked.headers);
        let is_read = matches!(asked.method, Method::GET | Method::HEAD);
        if !is_litespeeds(site) || !is_read {
            return Role::Unused;
        }
        let client = super::client(asked);
        let is_forwarded = |request: &SignedInRequest| {
            let copies = site.config.private.as_ref();
            copies.is_some_and(|copies| owner(site, copies, plan, Some(request), headers).is_err())
        };
        match (plan.handling, SignedInRequest::of(site, target, &client, (plan, key), headers)) {
            (_, Ok(request)) if is_forwarded(&request) => Role::Unused,
            (_, Ok(request)) => {
                let cookies = site.config.rules.role_cookies(plan, &AsSent(headers));
                Role::Shared(request.state(site, facts, headers, plan), cookies.at_large)
            }
            (Handling::Bypass(BypassBecause::SessionCookie), Err(reason)) => {
                Role::NotShared(reason)
            }
            (Handling::Store, Err(_)) => Role::of_others(site, target),
            (Handling::Bypass(_), Err(_)) => Role::Unused,
        }
    }

    /// The pages of other visitors under this URL.
    fn of_others(site: &Site, target: &TargetUri) -> Role {
        let url = ChangeTarget::Url(target.page().as_bytes());
        let pages = site.store.pages(site.name, &url, 0, PAGES_MAX).pages;
        match pages.iter().filter(|page| is_key_of_role(page.key().bytes())).count() {
            0 => Role::Unused,
            count => Role::Others(count),
        }
    }

    /// The facts about the shared page, if the request is for one.
    pub(super) fn state(&self) -> Option<&RoleState> {
        match self {
            Role::Shared(state, _) => Some(state),
            Role::Unused | Role::NotShared(_) | Role::Others(_) => None,
        }
    }

    /// The sentence for a request that is answered from the shared page.
    pub(super) fn hit(&self) -> Option<String> {
        self.state().map(|_| {
            "It is answered from the page that signed-in visitors with the same vary cookies share."
                .into()
        })
    }

    /// The sentences for a request that is forwarded.
    pub(super) fn forwarded(&self) -> Option<String> {
        let Role::Shared(state, at_large) = self else { return None };
        let there = if state.page.is_some() {
            "The page of the role is cached, but this visitor does not get it yet: the application has not confirmed \
             the visitor's cookies within `private.lifetime_max`. So the request is forwarded to the origin"
        } else {
            "It is forwarded to the origin: no fresh page is cached for signed-in visitors with these vary cookies"
        };
        let stored = match (at_large.first(), state.is_known) {
            (Some(cookie), _) => {
                let cookie = if cookie.is_empty() { "without a name" } else { cookie };
                format!(
                    "The response is not stored for the others, unless `X-LiteSpeed-Vary` names the cookie \
                     `{cookie}`: it is neither in the key nor a known login (`cookie-not-in-key`)."
                )
            }
            (None, true) => format!("{WANTED}."),
            (None, false) => format!(
                "{WANTED}. The first such response is only forwarded if the request has more fields or cookies than \
                 shared pages need, as that of a browser has."
            ),
        };
        Some(format!("{there}. {stored}"))
    }

    /// The addition to the sentences about a request that is not for a shared page.
    pub(super) fn addition(&self) -> String {
        match self {
            Role::NotShared(reason) => {
                reason_and_advice(*reason).0.map_or_else(String::new, |why| {
                    format!(" Visitors with the same vary cookies do not share it: {why}.")
                })
            }
            Role::Others(count) => {
                let are = if *count == 1 { "page is" } else { "pages are" };
                format!(
                    " Under this URL, {count} other {are} cached for signed-in visitors. To explain one, add the \
                     session cookie and the vary cookies of a visitor (`--cookie`)."
                )
            }
            Role::Shared(..) | Role::Unused => String::new(),
        }
    }

    /// The advice on a request that is forwarded.
    pub(super) fn remedy(&self) -> Option<&'static str> {
        match self {
            Role::Shared(state, _) if state.page.is_some() => {
                Some("Nothing: the response confirms the visitor if it can be shared.")
            }
            Role::Shared(_, at_large) if !at_large.is_empty() => Reason::CookieNotInKey.advice(),
            Role::Shared(..) => Some(
                "Nothing, unless it stays so: then see X-LiteSpeed-Cache-Control and Set-Cookie of the response.",
            ),
            Role::NotShared(reason) => reason_and_advice(*reason).1,
            Role::Others(_) | Role::Unused => None,
        }
    }
}

/// The conditions for storing a response for the visitors of a role.
const WANTED: &str = "A response is stored for all these visitors if `X-LiteSpeed-Cache-Control` says `public` with a lifetime and \
                      `esi=on`, and it sets no cookie";

/// Why a request with a session is not for a shared page, in words, and what to do about it.
fn reason_and_advice(reason: NoRole) -> (Option<&'static str>, Option<&'static str>) {
    let (why, advice) = match reason {
        NoRole::NotOffered | NoRole::NoSession => return (None, None),
        NoRole::NoVaryCookie => (
            "the request has no vary cookie, such as `_lscache_vary`",
            "Add the vary cookie that the plugin has set for the visitor. If it sets none, turn on ESI in the plugin.",
        ),
        NoRole::UnknownCookie => (
            "it has a cookie that is on no list, and `cookies.unknown` is `bypass`",
            "Name the cookie in cookies.ignore if pages do not depend on it.",
        ),
        NoRole::RuleDistinguishes => (
            "the rule distinguishes devices, languages or countries",
            "Remove device_classes, language and country_header from the rule if its pages need none of them.",
        ),
        NoRole::Commenter => (
            "the vary cookie is that of commenters, which the plugin does not correct",
            "Nothing: the response can be stored for the visitor only.",
        ),
        NoRole::TooLong => {
            ("its session and vary cookies are too long", "Send shorter or fewer cookies: 4 KiB.")
        }
        NoRole::Uncorrected => (
            "the plugin does not correct the vary cookie at the address of a fragment, in the REST API, and for its \
             crawler",
            "Nothing: use the address of a page.",
        ),
    };
    (Some(why), Some(advice))
}
