//! The rules of each kind but caching that no request reaches, because an earlier rule decides for all their requests.
//!
//! | kind | an earlier rule decides, if its conditions cover those of the later, and |
//! |---|---|
//! | access, rate limits, passwords, scripts | it is no exemption before a restriction, which is read generously where an exemption is read narrowly; or it has no condition on the URL |
//! | access, a plain `deny` | the later is not about fragments, to which a plain `deny` does not apply |
//! | redirects | rules with `slash` come after all others |
//! | rewrites | it has no `file`, or the same |
//!
//! The fields of all matching rules apply, so each of them is reached.

use super::EdgeRules;
use super::access::AccessRule;
use super::checks::Check;
use super::scripts::ScriptRule;
use crate::unreached::{ListedRule, Remaining, UnreachedRules, find_unreached};
use rule_conditions::{ComparisonKind, RequestConditions};

impl EdgeRules {
    /// The rules that no request reaches.
    pub(crate) fn unreached_rules(&self) -> Vec<UnreachedRules> {
        let of_kinds = [
            self.unreached_denials(),
            unreached_checks("limit", &self.limits),
            unreached_checks("auth_file", &self.auth),
            self.unreached_redirects(),
            self.unreached_rewrites(),
            self.unreached_scripts(),
        ];
        of_kinds.concat()
    }

    fn unreached_denials(&self) -> Vec<UnreachedRules> {
        let all = self.access.iter();
        let listed: Vec<_> =
            all.map(|rule| in_list("deny", rule.number, &rule.conditions)).collect();
        find_unreached(&listed, |earlier, later| {
            let (first, rule) = (&self.access[earlier], &self.access[later]);
            let demand = |rule: &AccessRule| rule.denial.is_some();
            let decides =
                decides((&first.conditions, demand(first)), (&rule.conditions, demand(rule)));
            let between = &self.access[earlier..later];
            decides.then(|| remaining(first, rule, between)).flatten()
        })
    }

    fn unreached_redirects(&self) -> Vec<UnreachedRules> {
        let all = &self.redirects;
        let listed = all.iter().map(|rule| {
            let key = if rule.is_slash() { "slash" } else { "redirect" };
            in_list(key, rule.number, &rule.conditions)
        });
        find_unreached(&listed.collect::<Vec<_>>(), |earlier, later| {
            let conditions = &all[earlier].conditions;
            let covers = conditions.cover(&all[later].conditions, ComparisonKind::AsGet);
            covers.then_some(Remaining::Nothing)
        })
    }

    fn unreached_rewrites(&self) -> Vec<UnreachedRules> {
        let all = &self.rewrites;
        let listed = all.iter().map(|rule| ListedRule {
            has_conditions: !rule.conditions.are_none() || rule.file.is_some(),
            ..in_list("rewrite", rule.number, &rule.conditions)
        });
        find_unreached(&listed.collect::<Vec<_>>(), |earlier, later| {
            let (first, rule) = (&all[earlier], &all[later]);
            let covers = (first.file.is_none() || first.file == rule.file)
                && first.conditions.cover(&rule.conditions, ComparisonKind::AsGet);
            covers.then_some(Remaining::Nothing)
        })
    }

    fn unreached_scripts(&self) -> Vec<UnreachedRules> {
        let conditions = |rule: &ScriptRule| RequestConditions {
            host: rule.host.clone(),
            path: rule.path.clone(),
            regex: rule.regex.clone(),
            ..RequestConditions::default()
        };
        let all = self.scripts.iter().map(|rule| (conditions(rule), !rule.runs));
        let all: Vec<(RequestConditions, bool)> = all.collect();
        let listed = self.scripts.iter().zip(&all);
        let listed = listed.map(|(rule, (conditions, _))| in_list("php", rule.number, conditions));
        find_unreached(&listed.collect::<Vec<_>>(), |earlier, later| {
            let (first, rule) = (&all[earlier], &all[later]);
            decides((&first.0, first.1), (&rule.0, rule.1)).then_some(Remaining::Nothing)
        })
    }
}

fn unreached_checks<T>(key: &'static str, all: &[Check<T>]) -> Vec<UnreachedRules> {
    let listed = all.iter().map(|check| in_list(key, check.number, &check.conditions));
    find_unreached(&listed.collect::<Vec<_>>(), |earlier, later| {
        let of = |at: usize| (&all[at].conditions, all[at].demand.is_some());
        decides(of(earlier), of(later)).then_some(Remaining::Nothing)
    })
}

fn in_list(key: &'static str, number: usize, conditions: &RequestConditions) -> ListedRule {
    ListedRule { number, key, has_conditions: !conditions.are_none() }
}

/// Whether a rule decides for all requests that a later one of its kind fits. Each has its conditions, and whether it
/// restricts; otherwise it exempts.
fn decides(
    (first, first_restricts): (&RequestConditions, bool),
    (rule, restricts): (&RequestConditions, bool),
) -> bool {
    let is_read_narrowly = !first_restricts && restricts;
    let is_for_every_url = first.host.is_empty()
        && first.path.is_empty()
        && first.regex.is_empty()
        && first.query.is_empty();
    (is_for_every_url || !is_read_narrowly) && first.cover(rule, ComparisonKind::Access)
}

/// The requests that reach a rule with `deny` after one that decides for all direct requests; `None` if those of
/// fragments are perhaps its purpose. `between` are the rules from the first on.
fn remaining(first: &AccessRule, rule: &AccessRule, between: &[AccessRule]) -> Option<Remaining> {
    let is_for_some = |rule: &AccessRule| rule.conditions.distinguish_clients();
    let is_plain = first.denial.is_some() && !is_for_some(first);
    // After such a rule, a plain `deny` applies to fragments, too.
    let exempts_some = |rule: &AccessRule| rule.denial.is_none() && is_for_some(rule);
    match rule.denial {
        Some(_) if is_plain && (is_for_some(rule) || between.iter().any(exempts_some)) => None,
        Some(_) => Some(Remaining::Nothing),
        None if is_plain => Some(Remaining::Fragments),
        None if exempts_some(rule) && !exempts_some(first) => Some(Remaining::Fragments),
        None => Some(Remaining::Nothing),
    }
}
