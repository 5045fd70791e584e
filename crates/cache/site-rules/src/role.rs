//! Pages that the signed-in visitors of a role share (LiteSpeed's ESI): which requests can be for one, and the use
//! of each cookie of such a request.
//!
//! | cookie | for a page of a role |
//! |---|---|
//! | in the key: it selects a variant, or a rule names it | forwarded |
//! | a login: named in `cookies.session` or `private.cookies`, or of an application with a LiteSpeed plugin | forwarded: the vary cookie stands for it |
//! | of scripts; ignored by a rule; unknown with `cookies.unknown = "ignore"` | left out |
//! | any other, also one that only looks like a session | forwarded, but the response is stored only if it varies by the cookie |
//!
//! Invariant: a page of a role depends on no cookie that its other visitors may lack, so none of them can
//! choose what the others get. The list of session cookies is no help here: it is wide, because a request
//! with one of them is never answered from the pages of others. Not here: who is confirmed as a visitor
//! of the role, and storing (`exchange::signed_in`).

use crate::cookies::{COOKIES_REPORTED_MAX, CookieKind, UnknownCookies};
use crate::owner::{OWNER_KEY_BYTES_MAX, OWNER_PART};
use crate::plan::{BypassBecause, Handling, Plan};
use crate::rule::Rule;
use crate::rules::SiteRules;
use http_cache::variants::NominatedFields;
use http_cache::{CookieName, Fields};
use http_fields::cookies::pairs;

/// The vary value of visitors who have commented without an account.
const COMMENTER: &[u8] = b"commenter";

/// The reason why a request cannot be for a page that the visitors of a role share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRole {
    /// The site does not use LiteSpeed's ESI, or the include element says that its fragment is for one visitor.
    NotOffered,
    /// It is not forwarded because of a session cookie.
    NoSession,
    /// It has no cookie that selects a variant.
    NoVaryCookie,
    /// A cookie of the request is on no list, and the site treats these as session cookies.
    UnknownCookie,
    /// The rule distinguishes visitors by device, language or country.
    RuleDistinguishes,
    /// The vary cookie is that of commenters, which LiteSpeed's plugin does not correct.
    Commenter,
    /// The cookies that identify the visitor are longer than [`OWNER_KEY_BYTES_MAX`].
    TooLong,
    /// LiteSpeed's plugin does not correct the vary cookie in the response: to a client that requests a fragment,
    /// in the REST API, to its own crawler.
    Uncorrected,
}

/// The cookies of a request for a page that the visitors of a role share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleCookies {
    /// The cookies that the origin gets for such a page, as one line.
    pub forwarded: Vec<u8>,
    /// Whether the request has further cookies, which the origin does not get.
    pub leaves_some_out: bool,
    /// The names of forwarded cookies that are neither in the key nor a login. The name of a pair without `=` is
    /// empty, because that text may be its value. If there are more than [`COOKIES_REPORTED_MAX`], one empty
    /// name stands for the others.
    pub at_large: Vec<Box<str>>,
}

impl RoleCookies {
    /// Whether a response varies by each cookie that is at large, so that it answers only requests with the same.
    pub fn are_nominated(&self, nominated: &NominatedFields) -> bool {
        self.at_large.iter().all(|name| nominated.has_cookie(&CookieName::of(name.as_bytes())))
    }
}

/// The use of a cookie for a page of a role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RoleUse {
    /// The page may depend on it.
    Known,
    /// The origin does not get it.
    LeftOut,
    /// The origin gets it, and others do not have it.
    AtLarge,
}

impl SiteRules {
    /// Checks whether signed-in visitors with the same vary cookies may share a page under this plan, if the
    /// application declares that.
    ///
    /// # Errors
    /// The reason why not. If the site distinguishes clients by more than cookies, the request for such a
    /// page goes to the application unchanged, so its response is for one of them.
    pub fn shares_by_vary_cookies(&self, plan: &Plan) -> Result<(), NoRole> {
        let has_classes = |rule: &Rule| {
            rule.device_classes || !rule.languages.is_empty() || rule.country_header.is_some()
        };
        if plan.handling != Handling::Bypass(BypassBecause::SessionCookie) {
            Err(NoRole::NoSession)
        } else if !plan.cookies.vary {
            Err(NoRole::NoVaryCookie)
        } else if plan.cookies.unknown && self.lists.unknown == UnknownCookies::Bypass {
            Err(NoRole::UnknownCookie)
        } else if plan.rule.is_some_and(|at| has_classes(&self.rules[at])) {
            Err(NoRole::RuleDistinguishes)
        } else {
            Ok(())
        }
    }

    /// Whether a line of Set-Cookie sets a cookie that selects a variant.
    pub fn sets_vary_cookie(&self, line: &[u8]) -> bool {
        pairs(line).next().is_some_and(|pair| self.lists.kind(&pair.name) == CookieKind::Vary)
    }

    /// The cookies that identify a visitor to the application, with those that select a variant: one part for
    /// each, in order.
    ///
    /// # Errors
    /// They are too long, or LiteSpeed's plugin would not correct the variant: that of commenters
    /// (`vary.cls.php`, `_update_default_vary`).
    pub fn session_and_vary_cookies(&self, fields: &dyn Fields) -> Result<Vec<u8>, NoRole> {
        let (mut found, mut is_commenter) = (Vec::new(), false);
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                if matches!(self.lists.kind(&pair.name), CookieKind::Session | CookieKind::Vary) {
                    found.extend_from_slice(OWNER_PART);
                    found.extend_from_slice(pair.written);
                    is_commenter |=
                        pair.written.windows(COMMENTER.len()).any(|part| part == COMMENTER);
                }
            }
        });
        if is_commenter {
            Err(NoRole::Commenter)
        } else if found.len() > OWNER_KEY_BYTES_MAX {
            Err(NoRole::TooLong)
        } else {
            Ok(found)
        }
    }

    /// Sorts the cookies of a request by their use for a page that the visitors of a role share.
    pub fn role_cookies(&self, plan: &Plan, fields: &dyn Fields) -> RoleCookies {
        let mut all = RoleCookies::default();
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                match self.role_use(plan, &pair.name) {
                    RoleUse::LeftOut => {
                        all.leaves_some_out = true;
                        continue;
                    }
                    RoleUse::AtLarge if all.at_large.len() <= COOKIES_REPORTED_MAX => {
                        let is_named = pair.written.contains(&b'=')
                            && all.at_large.len() < COOKIES_REPORTED_MAX;
                        let name = if is_named { pair.name.written() } else { b"" };
                        all.at_large.push(String::from_utf8_lossy(name).into());
                    }
                    RoleUse::AtLarge | RoleUse::Known => {}
                }
                if !all.forwarded.is_empty() {
                    all.forwarded.extend_from_slice(b"; ");
                }
                all.forwarded.extend_from_slice(pair.written);
            }
        });
        all
    }

    fn role_use(&self, plan: &Plan, name: &CookieName<'_>) -> RoleUse {
        let rule = plan.rule.map(|at| &self.rules[at]);
        let is_ignored = self.lists.unknown == UnknownCookies::Ignore;
        match (rule, self.lists.kind(name)) {
            (Some(rule), _) if rule.names_cookie(name) => RoleUse::Known,
            (Some(rule), _) if rule.ignore_cookies.have_cookie(name) => RoleUse::LeftOut,
            (_, CookieKind::Vary) => RoleUse::Known,
            (_, CookieKind::ScriptOnly) => RoleUse::LeftOut,
            (_, CookieKind::Unknown) if is_ignored => RoleUse::LeftOut,
            (_, CookieKind::Session) if self.lists.is_login(name) => RoleUse::Known,
            (_, CookieKind::Session | CookieKind::Language | CookieKind::Unknown) => {
                RoleUse::AtLarge
            }
        }
    }
}
