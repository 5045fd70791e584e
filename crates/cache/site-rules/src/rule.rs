//! One rule: its conditions on requests and responses, and its effects.
//!
//! A rule may distinguish clients by something that is not in the key (cookie, header, agent) and also influence
//! storing. Such a rule has copies of its own, so that its pages are served only to clients that match it.

use crate::cookies::Names;
use crate::ignored::IgnoredFields;
use http::StatusCode;
use http_cache::{CookieName, Policy};
use miss_control::RequestRate;
use rule_conditions::{Glob, RequestConditions, ResponseConditions};

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
    pub(crate) conditions: RequestConditions,
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
