//! All that a site chooses about its pages, and what the whole of its rules says.
//!
//! Not here: how the rules are read (`compile`), and the decisions on a request (`plan`) and on its response
//! (`revise`).

use crate::cookies::{CookieLists, Names};
use crate::edge::EdgeRules;
use crate::form::KeyForm;
use crate::mark::Secret;
use crate::rule::Rule;
use http_cache::Policy;

/// All that a site chooses about its pages.
#[derive(Clone, Debug)]
pub struct SiteRules {
    pub(crate) base: Policy,
    /// The rules about the cache.
    pub(crate) rules: Vec<Rule>,
    /// The other rules.
    pub(crate) edge: EdgeRules,
    pub(crate) lists: CookieLists,
    pub(crate) form: KeyForm,
    pub(crate) secret: Secret,
    /// The longest `after_write` of all rules in milliseconds, if any rule has one.
    pub(crate) after_write: Option<u64>,
    /// Whether a rule sets `server_timing`.
    pub(crate) times: bool,
    /// Whether a rule has conditions on responses.
    pub(crate) responsive: bool,
    pub(crate) watches_load: bool,
    /// The number of the last rule, if it sets nothing.
    pub(crate) last_sets_nothing: Option<usize>,
    /// The names of the request fields in the key, in lower case.
    pub(crate) key_fields: Vec<Box<str>>,
    /// The request fields that the site vouches for: forwarded, and neither in the key nor in a variant.
    pub(crate) harmless_fields: Names,
}

impl SiteRules {
    /// The URL normalisation of the site.
    pub fn form(&self) -> &KeyForm {
        &self.form
    }

    /// The numbers of the rules about the cache, in their order. Rules with other actions only are not among them.
    pub fn caching_rules(&self) -> impl Iterator<Item = usize> {
        self.rules.iter().map(|rule| rule.number)
    }

    /// Whether a request without cookies may get different plans, or has more in its key than its URL.
    #[inline]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty() || !self.key_fields.is_empty()
    }

    /// A warning about rules that no request reaches, because an earlier rule matches every request.
    pub fn never_reached(&self) -> Option<String> {
        let fits_all = |rule: &Rule| rule.conditions.are_none() && rule.response.is_none();
        let at = self.rules.iter().position(fits_all)?;
        let first = self.rules[at].number;
        let which = match &self.rules[at + 1..] {
            [] => return None,
            [only] => format!("rule {} is", only.number),
            [after, .., last] => format!("rules {} to {} are", after.number, last.number),
        };
        Some(format!(
            "{which} never reached: rule {first} has no conditions, so that it fits every request, and the first rule that fits counts"
        ))
    }

    /// A warning about the last rule if it has no effect: it sets nothing, and no rule follows from which
    /// it could keep requests.
    pub fn without_effect(&self) -> Option<String> {
        let last = self.last_sets_nothing?;
        Some(format!(
            "rule {last} has no effect: it sets nothing, and there is no rule after it that it could keep requests from"
        ))
    }

    /// Whether a rule depends on the load. Only then need the caller determine it.
    pub fn watches_load(&self) -> bool {
        self.watches_load
    }
}
