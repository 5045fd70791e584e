//! All that a site chooses about its pages, and what the whole of its rules says.
//!
//! Not here: how the rules are read (`compile`), and the decisions on a request (`plan`) and on its response
//! (`revise`).

use crate::cookies::{CookieLists, Names};
use crate::edge::EdgeRules;
use crate::form::KeyForm;
use crate::mark::Secret;
use crate::rule::Rule;
use crate::unreached::{CACHING, ListedRule, Remaining, find_unreached};
use http_cache::Policy;
use rule_conditions::ComparisonKind;

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

    /// Warnings about rules that no request reaches, because an earlier one decides for all their requests. One that
    /// only several rules together cover is not found.
    pub fn unreached_rules(&self) -> Vec<String> {
        let listed = |rule: &Rule| ListedRule {
            number: rule.number,
            key: CACHING,
            has_conditions: !rule.conditions.are_none() || rule.response.is_some(),
        };
        let listed: Vec<ListedRule> = self.rules.iter().map(listed).collect();
        let of_cache = find_unreached(&listed, |earlier, later| {
            let (first, rule) = (&self.rules[earlier], &self.rules[later]);
            let covers_response = match (&first.response, &rule.response) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(other)) => own.cover(other),
            };
            let covers =
                covers_response && first.conditions.cover(&rule.conditions, ComparisonKind::Pages);
            covers.then_some(Remaining::Nothing)
        });
        let all = of_cache.into_iter().chain(self.edge.unreached_rules());
        all.map(|rules| rules.warning(|number| self.named_rule(number))).collect()
    }

    /// A warning about the last rule if it has no effect: it sets nothing, and no rule follows from which
    /// it could keep requests.
    pub fn without_effect(&self) -> Option<String> {
        let last = self.named_rule(self.last_sets_nothing?);
        Some(format!(
            "rule {last} has no effect: it sets nothing, and there is no rule after it that it could keep requests from"
        ))
    }

    /// Whether a rule depends on the load. Only then need the caller determine it.
    pub fn watches_load(&self) -> bool {
        self.watches_load
    }
}
