//! `deny`: requests that are refused by a rule, whatever would answer them: a page, a file, a script.
//!
//! The first rule with `deny` that applies decides. `deny = false` exempts. Both are tested in the request as it was
//! sent and in its normal form: one of the two is enough for a restriction, an exemption needs both. So are the
//! forms of a path (`paths`). A condition of a restriction is read generously: HEAD counts as GET, and a parameter
//! is found in any spelling that PHP reads.
//!
//! Passwords and rate limits are found by the same comparisons (`checks`).
//!
//! Not here: the response (`exchange`), and the moment (`exchange::steps`).

use super::paths::{PathForms, PathPatterns};
use crate::rules::SiteRules;
use http::{Method, StatusCode};
use http_fields::percent::decode;
use rule_conditions::{NamedCondition, RequestConditions, RequestView};
use std::borrow::Cow;
use std::cell::OnceCell;

/// A rule with `deny`.
#[derive(Clone, Debug)]
pub(crate) struct AccessRule {
    pub(crate) number: usize,
    pub(crate) conditions: RequestConditions,
    /// The response; `None`: the rule exempts.
    pub(crate) denial: Option<Denial>,
}

/// The refusal of a request by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The number of the rule, from 1.
    pub rule: usize,
    /// The status of the response.
    pub status: StatusCode,
    /// The value of `Retry-After` in seconds, if the response has one.
    pub retry_after_seconds: Option<u32>,
    /// The methods that the rule does not refuse, as a set of bits.
    allowed: u8,
}

/// The methods that `Allow` may list.
static METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

impl Denial {
    pub(crate) fn new(
        rule: usize,
        status: StatusCode,
        retry_after_seconds: Option<u32>,
        conditions: &RequestConditions,
    ) -> Denial {
        let is_allowed = |at: &usize| !conditions.fit_method_or_get(&METHODS[*at]);
        let allowed = (0..METHODS.len()).filter(is_allowed).fold(0, |all, at| all | 1 << at);
        Denial { rule, status, retry_after_seconds, allowed }
    }

    /// The value of `Allow`: the methods that the rule does not refuse (RFC 9110 section 10.2.1).
    pub fn allow(self) -> String {
        let is_allowed = |at: &usize| self.allowed & 1 << at != 0;
        let names = (0..METHODS.len()).filter(is_allowed).map(|at| METHODS[at].as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Which clients get the page of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAccess {
    /// All clients.
    Everybody,
    /// All that have the password of the rule with this number.
    Password(usize),
}

/// The clients that `deny` refuses, of all that send a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeniedClients {
    None,
    Some,
    All,
}

/// A request as access rules see it.
pub struct AccessRequest<'a> {
    /// The request as it was sent.
    pub sent: RequestView<'a>,
    /// Its normal form, if that differs.
    pub normal: Option<RequestView<'a>>,
    /// The site's own endings of scripts.
    endings: &'a [Box<str>],
    /// The path as an application reads it, once it is needed.
    plain_path: OnceCell<Cow<'a, [u8]>>,
    /// The forms of its path, once a rule is compared with them: the rules of all kinds use the same.
    forms: OnceCell<PathForms<'a>>,
}

impl<'a> AccessRequest<'a> {
    /// A request to the site with these rules: as it was sent, and its normal form if that differs.
    pub fn new(
        rules: &'a SiteRules,
        sent: RequestView<'a>,
        normal: Option<RequestView<'a>>,
    ) -> AccessRequest<'a> {
        let endings = &rules.edge.script_endings;
        let (plain_path, forms) = (OnceCell::new(), OnceCell::new());
        AccessRequest { sent, normal, endings, plain_path, forms }
    }

    /// The path as an application reads it.
    pub(super) fn plain_path(&self) -> &Cow<'a, [u8]> {
        self.plain_path.get_or_init(|| self.sent.plain_path())
    }

    /// The forms of its path.
    fn forms(&self) -> &PathForms<'a> {
        self.forms.get_or_init(|| {
            let is_respelt = matches!(self.plain_path(), Cow::Owned(_));
            let forms = PathForms::of_spelling(self.sent.path(), is_respelt);
            let forms = forms.with_endings(self.endings);
            match &self.normal {
                Some(normal) => forms.with(normal.path()),
                None => forms,
            }
        })
    }

    fn hosts(&self) -> impl Iterator<Item = &'a [u8]> {
        let views = std::iter::once(&self.sent).chain(&self.normal);
        views.map(|view| view.host_name().trim_end_matches('.').as_bytes())
    }

    fn queries(&self) -> impl Iterator<Item = &'a str> {
        std::iter::once(&self.sent).chain(&self.normal).filter_map(|view| view.query())
    }
}

impl SiteRules {
    /// Whether any rule may refuse a request, whatever would answer it: `deny`, `auth_file`, `limit` for all requests.
    #[inline]
    pub fn has_access_rules(&self) -> bool {
        self.edge.may_refuse
    }

    /// Which clients get an answer other than a refusal, if nothing but a password decides: no rule denies the request of
    /// any client, or counts it. All rules of these kinds are compared once.
    pub fn access_of_all(&self, asked: &AccessRequest<'_>) -> Option<PageAccess> {
        let is_denied = self.denied_clients(asked) != DeniedClients::None;
        if is_denied || self.is_counted(asked) { None } else { self.password_of_all(asked) }
    }

    /// The clients that `deny` refuses, of all that send this request.
    fn denied_clients(&self, asked: &AccessRequest<'_>) -> DeniedClients {
        let mut exempts_some = false;
        for rule in &self.edge.access {
            let conditions = &rule.conditions;
            let is_for_some = conditions.distinguish_clients();
            match rule.denial {
                Some(_) if restricts_url(conditions, asked) => {
                    let is_for_all = !exempts_some && !is_for_some;
                    return if is_for_all { DeniedClients::All } else { DeniedClients::Some };
                }
                None if is_for_some => exempts_some |= restricts_url(conditions, asked),
                None if exempts(conditions, asked) => return DeniedClients::None,
                Some(_) | None => {}
            }
        }
        DeniedClients::None
    }

    /// Whether nobody gets an answer for this URL, because a rule denies it to all clients.
    pub(crate) fn is_denied_to_all(&self, view: RequestView<'_>) -> bool {
        let asked = AccessRequest::new(self, view, None);
        for rule in &self.edge.access {
            let conditions = &rule.conditions;
            let is_for_some = conditions.distinguish_clients();
            match rule.denial {
                Some(_) if !is_for_some && restricts_url(conditions, &asked) => {
                    return true;
                }
                None if is_for_some || exempts(conditions, &asked) => return false,
                Some(_) | None => {}
            }
        }
        false
    }

    /// The refusal of a request, if a rule refuses it.
    pub fn denial(&self, asked: &AccessRequest<'_>) -> Option<Denial> {
        self.first_denial(asked, true)
    }

    /// The refusal of a page's request for a fragment. A plain `deny` protects a fragment from direct requests, so it
    /// counts only after an exemption for some clients: then it is for the others.
    pub fn fragment_denial(&self, asked: &AccessRequest<'_>) -> Option<Denial> {
        self.first_denial(asked, false)
    }

    fn first_denial(&self, asked: &AccessRequest<'_>, mut plain_counts: bool) -> Option<Denial> {
        for rule in &self.edge.access {
            let conditions = &rule.conditions;
            let is_for_some = conditions.distinguish_clients();
            match rule.denial {
                Some(denial) if (is_for_some || plain_counts) && restricts(conditions, asked) => {
                    return Some(denial);
                }
                None if exempts(conditions, asked) => return None,
                None if is_for_some && !plain_counts => {
                    plain_counts = restricts_url(conditions, asked);
                }
                Some(_) | None => {}
            }
        }
        None
    }

    /// Whether a rule about this URL depends on the client's address.
    pub fn depends_on_address(&self, asked: &AccessRequest<'_>) -> bool {
        let by_address = |conditions: &RequestConditions| {
            !conditions.from.is_empty() && restricts_url(conditions, asked)
        };
        self.edge.access.iter().any(|rule| by_address(&rule.conditions))
            || self.edge.redirects.iter().any(|rule| by_address(&rule.conditions))
    }

    /// Whether some clients get the response of this URL and others do not: it must not be stored by shared caches. By the
    /// same comparisons as [`page_access`](Self::page_access), which is never `Everybody` then.
    pub fn is_for_some_clients(&self, asked: &AccessRequest<'_>) -> bool {
        self.needs_password(asked) || self.denied_clients(asked) == DeniedClients::Some
    }
}

/// Whether the conditions on the URL and the method of a restriction hold.
pub(super) fn restricts_url(conditions: &RequestConditions, asked: &AccessRequest<'_>) -> bool {
    let host = &conditions.host;
    conditions.fit_method_or_get(asked.sent.method)
        && (host.include_all() || asked.hosts().any(|name| host.include(name)))
        && !(host.have_exceptions() && asked.hosts().all(|name| host.except(name)))
        && conditions.path.restrict(asked.forms())
        && conditions.regex.restrict(asked.forms())
        && NamedCondition::fit(&conditions.query, |named| {
            let is_there = if named.absent { is_written } else { has_parameter };
            asked.queries().any(|query| is_there(named, query))
        })
}

pub(super) fn restricts(conditions: &RequestConditions, asked: &AccessRequest<'_>) -> bool {
    restricts_url(conditions, asked) && conditions.fit_client(&asked.sent)
}

pub(super) fn exempts(conditions: &RequestConditions, asked: &AccessRequest<'_>) -> bool {
    let host = &conditions.host;
    conditions.fit_method_or_get(asked.sent.method)
        && (host.include_all() || asked.hosts().all(|name| host.include(name)))
        && !(host.have_exceptions() && asked.hosts().any(|name| host.except(name)))
        && conditions.path.exempt(asked.forms())
        && conditions.regex.exempt(asked.forms())
        && NamedCondition::fit(&conditions.query, |named| {
            let is_there = if named.absent { has_parameter } else { is_written };
            asked.queries().any(|query| is_there(named, query))
        })
        && conditions.fit_client(&asked.sent)
}

/// Whether the query has the parameter as it is written in the rule.
fn is_written(named: &NamedCondition, query: &str) -> bool {
    named.fits_query(Some(query))
}

/// Whether the query has the parameter in any spelling that PHP reads: encoded, with spaces before it, as an array
/// (`a[]`), or with another character for `_`.
fn has_parameter(named: &NamedCondition, query: &str) -> bool {
    if is_written(named, query) {
        return true;
    }
    query.split('&').any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let decoded = |text: &str| decode(text.replace('+', " ").as_bytes());
        let (name, value) = (decoded(name), decoded(value));
        // A name ends at a NUL.
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii_start();
        let base = name.split(|byte| *byte == b'[').next().unwrap_or_default();
        let as_php = |name: &[u8]| -> Vec<u8> {
            name.iter()
                .map(|byte| if matches!(byte, b'.' | b' ' | b'[') { b'_' } else { *byte })
                .collect()
        };
        named.fits(name, &value)
            || named.fits(base, &value)
            || named.fits(&as_php(base), &value)
            || named.fits(&as_php(name), &value)
    })
}
