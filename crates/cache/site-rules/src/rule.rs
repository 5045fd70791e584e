//! One rule: its conditions on requests and responses, and its effects.
//!
//! All conditions of a rule must hold. Of several words in one condition, one must match, and none of those
//! written with `!`. A rule may distinguish clients by something that is not in the key (cookie, header,
//! agent) and also influence storing. Such a rule has copies of its own, so that its pages are served only
//! to clients that match it.

use crate::agent::Agent;
use crate::client_networks::ClientNetworks;
use crate::condition::NamedCondition;
use crate::cookies::Names;
use crate::glob::{Glob, Globs};
use crate::ignored::IgnoredFields;
use crate::regexes::Regexes;
use crate::view::RequestView;
use http::{HeaderMap, Method, StatusCode};
use http_cache::{CookieName, Policy};
use miss_control::RequestRate;

/// The load of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Normal.
    Normal,
    /// Requests wait for one of the limited concurrent origin requests.
    Saturated,
}

/// A compiled rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// The number of the rule in the configuration, from 1.
    pub(crate) number: usize,
    /// The name of the rule, as it was written.
    pub(crate) name: Option<Box<str>>,
    pub(crate) path_written: Box<str>,
    pub(crate) conditions: Conditions,
    pub(crate) response: Option<ResponseConditions>,
    pub(crate) bypass: bool,
    pub(crate) normal: Policies,
    pub(crate) saturated: Option<Policies>,
    pub(crate) ignored: IgnoredFields,
    pub(crate) after_write_ms: Option<u64>,
    pub(crate) server_timing: Option<bool>,
    /// How many of its pages may be rendered, for clients without a confirmed session.
    pub(crate) renders: Option<RequestRate>,
    pub(crate) vary_cookies: Vec<Glob>,
    pub(crate) session_cookies: Vec<Glob>,
    pub(crate) ignore_cookies: Names,
    pub(crate) shared_with_sessions: bool,
    pub(crate) device_classes: bool,
    pub(crate) languages: Vec<Box<str>>,
    pub(crate) country_header: Option<Box<str>>,
    pub(crate) own_copies: bool,
}

impl Rule {
    pub(crate) fn policies(&self, load: Load) -> &Policies {
        match (load, &self.saturated) {
            (Load::Saturated, Some(policies)) => policies,
            _ => &self.normal,
        }
    }

    /// Whether the rule has the cookie of this name in the key.
    pub(crate) fn names_cookie(&self, name: &CookieName<'_>) -> bool {
        let mut globs = self.vary_cookies.iter().chain(&self.session_cookies);
        globs.any(|glob| name.any(|reading| glob.fits(reading)))
    }

    pub(crate) fn varies_by_cookie(&self, name: &CookieName<'_>) -> bool {
        self.vary_cookies.iter().any(|glob| name.any(|reading| glob.fits(reading)))
    }

    pub(crate) fn names_session(&self, name: &CookieName<'_>) -> bool {
        self.session_cookies.iter().any(|glob| name.any(|reading| glob.fits(reading)))
    }
}

/// The policies of a rule, by the response's status.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub(crate) general: Policy,
    pub(crate) by_status: Vec<(u16, Policy)>,
}

impl Policies {
    pub(crate) fn of(&self, status: StatusCode) -> &Policy {
        let named = self.by_status.iter().find(|(code, _)| *code == status.as_u16());
        named.map_or(&self.general, |(_, policy)| policy)
    }
}

/// The conditions on a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) host: Globs,
    pub(crate) path: Globs,
    pub(crate) regex: Regexes,
    pub(crate) methods: Vec<Method>,
    /// The methods written with `!`.
    pub(crate) methods_excluded: Vec<Method>,
    pub(crate) query: Vec<NamedCondition>,
    pub(crate) cookie: Vec<NamedCondition>,
    pub(crate) header: Vec<NamedCondition>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) from: ClientNetworks,
}

impl Conditions {
    /// Whether every request matches.
    pub(crate) fn are_none(&self) -> bool {
        let named = [&self.query, &self.cookie, &self.header];
        (self.host.is_empty() && self.path.is_empty() && self.regex.is_empty())
            && (self.methods.is_empty() && self.methods_excluded.is_empty())
            && (self.agents.is_empty() && self.from.is_empty())
            && named.iter().all(|all| all.is_empty())
    }

    pub(crate) fn fit(&self, view: &RequestView<'_>) -> bool {
        self.fit_method(view.method)
            && ((self.path.is_empty() && self.regex.is_empty()) || {
                let path = view.plain_path();
                self.path.fit(&path) && self.regex.fit(&path)
            })
            && self.fit_host_and_query(view)
            && self.fit_client(view)
    }

    /// Whether the conditions on URL and method hold.
    pub(crate) fn fit_url(&self, view: &RequestView<'_>) -> bool {
        let path = view.plain_path();
        self.fit_url_but_regex(view, &path) && self.regex.fit(&path)
    }

    /// Whether the conditions on URL and method hold, but for `path_regex`. `path` is the plain path of the request.
    pub(crate) fn fit_url_but_regex(&self, view: &RequestView<'_>, path: &[u8]) -> bool {
        self.fit_method(view.method) && self.path.fit(path) && self.fit_host_and_query(view)
    }

    /// Whether the conditions on the method hold.
    pub(crate) fn fit_method(&self, method: &Method) -> bool {
        (self.methods.is_empty() || self.methods.contains(method))
            && !self.methods_excluded.contains(method)
    }

    /// The same for access rules: HEAD counts as GET, unless a condition names it.
    pub(crate) fn fit_method_or_get(&self, method: &Method) -> bool {
        let names = |all: &[Method]| {
            let contains = |method| all.contains(method);
            !all.is_empty()
                && (contains(method) || (method == Method::HEAD && contains(&Method::GET)))
        };
        (self.methods.is_empty() || names(&self.methods)) && !names(&self.methods_excluded)
    }

    fn fit_host_and_query(&self, view: &RequestView<'_>) -> bool {
        (self.host.is_empty() || self.host.fit(view.host_name().as_bytes()))
            && (self.query.is_empty()
                || NamedCondition::fit(&self.query, |named| named.fits_query(view.query())))
    }

    /// Whether the conditions on the client hold.
    pub(crate) fn fit_client(&self, view: &RequestView<'_>) -> bool {
        (self.agents.is_empty() || self.agents.contains(&view.class()))
            && NamedCondition::fit(&self.cookie, |named| named.fits_cookie(view.fields))
            && NamedCondition::fit(&self.header, |named| named.fits_header(view.fields))
            && (self.from.is_empty() || self.from.fit(view.client.address()))
    }

    /// Whether clients are distinguished by something that is not in the key.
    pub(crate) fn distinguish_clients(&self) -> bool {
        (!self.cookie.is_empty() || !self.header.is_empty())
            || (!self.agents.is_empty() || !self.from.is_empty())
    }
}

/// The conditions on a response.
#[derive(Clone, Debug)]
pub(crate) struct ResponseConditions {
    pub(crate) statuses: Vec<StatusRange>,
    pub(crate) header: Vec<NamedCondition>,
}

impl ResponseConditions {
    pub(crate) fn fit(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let code = status.as_u16();
        (self.statuses.is_empty() || self.statuses.iter().any(|range| range.has(code)))
            && NamedCondition::fit(&self.header, |named| named.fits_header(headers))
    }
}

/// A status or a class of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusRange {
    pub(crate) first: u16,
    pub(crate) last: u16,
}

impl StatusRange {
    pub(crate) fn has(self, code: u16) -> bool {
        (self.first..=self.last).contains(&code)
    }
}
