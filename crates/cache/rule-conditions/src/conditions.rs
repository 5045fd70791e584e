//! The conditions of a rule on requests, and on responses.
//!
//! All conditions of a rule must hold. Of several words in one condition, one must match, and none of those
//! written with `!`.
//!
//! Not here: how they are written (`read`), and whether those of one rule cover those of another (`coverage`).

use crate::agent::Agent;
use crate::client_networks::ClientNetworks;
use crate::glob::Globs;
use crate::named_condition::NamedCondition;
use crate::regexes::Regexes;
use crate::view::RequestView;
use http::{HeaderMap, Method, StatusCode};

/// The conditions on a request.
#[derive(Clone, Debug, Default)]
pub struct RequestConditions {
    /// Patterns of the host, without its port.
    pub host: Globs,
    /// Patterns of the path.
    pub path: Globs,
    /// Regular expressions for the path.
    pub regex: Regexes,
    /// The methods without `!`: it must have one of them, if there are any.
    pub methods: Vec<Method>,
    /// The methods written with `!`.
    pub methods_excluded: Vec<Method>,
    /// Parameters of the query.
    pub query: Vec<NamedCondition>,
    /// Cookies of the request.
    pub cookie: Vec<NamedCondition>,
    /// Header lines of the request.
    pub header: Vec<NamedCondition>,
    /// The classes of clients: its client must belong to one, if there are any.
    pub agents: Vec<Agent>,
    /// Networks of the client's address.
    pub from: ClientNetworks,
}

impl RequestConditions {
    /// Whether every request matches.
    pub fn are_none(&self) -> bool {
        let named = [&self.query, &self.cookie, &self.header];
        (self.host.is_empty() && self.path.is_empty() && self.regex.is_empty())
            && (self.methods.is_empty() && self.methods_excluded.is_empty())
            && (self.agents.is_empty() && self.from.is_empty())
            && named.iter().all(|all| all.is_empty())
    }

    /// Whether all conditions hold for a request.
    pub fn fit(&self, view: &RequestView<'_>) -> bool {
        self.fit_method(view.method)
            && ((self.path.is_empty() && self.regex.is_empty()) || {
                let path = view.plain_path();
                self.path.fit(&path) && self.regex.fit(&path)
            })
            && self.fit_host_and_query(view)
            && self.fit_client(view)
    }

    /// Whether the conditions on URL and method hold.
    pub fn fit_url(&self, view: &RequestView<'_>) -> bool {
        let path = view.plain_path();
        self.fit_url_but_regex(view, &path) && self.regex.fit(&path)
    }

    /// Whether the conditions on URL and method hold, but for `path_regex`. `path` is the plain path of the request.
    #[inline]
    pub fn fit_url_but_regex(&self, view: &RequestView<'_>, path: &[u8]) -> bool {
        self.fit_method(view.method) && self.path.fit(path) && self.fit_host_and_query(view)
    }

    /// Whether the conditions on the method hold.
    #[inline]
    pub(crate) fn fit_method(&self, method: &Method) -> bool {
        (self.methods.is_empty() || self.methods.contains(method))
            && !self.methods_excluded.contains(method)
    }

    /// The same for access rules: HEAD counts as GET, unless a condition names it.
    pub fn fit_method_or_get(&self, method: &Method) -> bool {
        let names = |all: &[Method]| {
            let contains = |method| all.contains(method);
            !all.is_empty()
                && (contains(method) || (method == Method::HEAD && contains(&Method::GET)))
        };
        (self.methods.is_empty() || names(&self.methods)) && !names(&self.methods_excluded)
    }

    #[inline]
    fn fit_host_and_query(&self, view: &RequestView<'_>) -> bool {
        (self.host.is_empty() || self.host.fit(view.host_name().as_bytes()))
            && (self.query.is_empty()
                || NamedCondition::fit(&self.query, |named| named.fits_query(view.query())))
    }

    /// Whether the conditions on the client hold.
    pub fn fit_client(&self, view: &RequestView<'_>) -> bool {
        (self.agents.is_empty() || self.agents.contains(&view.class()))
            && NamedCondition::fit(&self.cookie, |named| named.fits_cookie(view.fields))
            && NamedCondition::fit(&self.header, |named| named.fits_header(view.fields))
            && (self.from.is_empty() || self.from.fit(view.client.address()))
    }

    /// Whether clients are distinguished by something that is not in the key.
    #[inline]
    pub fn distinguish_clients(&self) -> bool {
        (!self.cookie.is_empty() || !self.header.is_empty())
            || (!self.agents.is_empty() || !self.from.is_empty())
    }
}

/// The conditions on a response.
#[derive(Clone, Debug)]
pub struct ResponseConditions {
    /// Its status must be in one of these ranges, if there are any.
    pub statuses: Vec<StatusRange>,
    /// Header lines of the response.
    pub header: Vec<NamedCondition>,
}

impl ResponseConditions {
    /// Whether all conditions hold for a response.
    pub fn fit(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let code = status.as_u16();
        (self.statuses.is_empty() || self.statuses.iter().any(|range| range.has(code)))
            && NamedCondition::fit(&self.header, |named| named.fits_header(headers))
    }
}

/// A status or a class of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The first status of the class.
    pub first: u16,
    /// The last status, which belongs to it.
    pub last: u16,
}

impl StatusRange {
    pub(crate) fn has(self, code: u16) -> bool {
        (self.first..=self.last).contains(&code)
    }
}
