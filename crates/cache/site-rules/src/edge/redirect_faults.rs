//! The faults of a site's redirects: loops, and lines and rules that are never reached.
//!
//! A loop is found by following redirects, beginning with the target of each rule (with samples for its captures) and of
//! each line. Only redirects count that certainly happen: of rules about the client (`from`, `cookie`, …) only the one
//! at which the search begins, because two such rules may be for different clients. So each loop that is reported is
//! one; a loop that only some captures cause may be missed.

use super::checks::Check;
use super::redirects::{RedirectAction, RedirectRule, redirect_of_line};
use crate::rule::Conditions;
use crate::rules::SiteRules;
use crate::view::RequestView;
use http::Method;
use std::fmt;

/// The number of redirects of the longest chain that is accepted: browsers follow 20.
const HOPS_MAX: usize = 20;
/// The maximum number of messages about lines.
const MESSAGES_MAX: usize = 10;
/// Samples for the captures of a rule, and for wildcards.
const SAMPLES: [&str; 3] = ["x", "1", "a/b"];

/// A URL in a chain of redirects.
#[derive(Clone, PartialEq, Eq)]
struct Hop {
    host: String,
    path_and_query: String,
}

impl SiteRules {
    /// The loops of redirects that begin with a rule: messages for the operator. `hosts` are those of the site.
    pub fn loops_of_rules(&self, hosts: &[&str]) -> Vec<String> {
        let looping = |rule: &RedirectRule| {
            let chain = SAMPLES.iter().find_map(|sample| {
                let first = rule.first_hop(sample, hosts)?;
                self.loop_from(first, Some(rule), hosts)
            })?;
            let name = self.rule_name(rule.number).map(|name| format!(" ({name})"));
            let (number, name) = (rule.number, name.unwrap_or_default());
            Some(format!("rule {number}{name}: redirect: {chain}"))
        };
        self.edge.redirects.iter().filter_map(looping).collect()
    }

    /// The loops of redirects that begin with a line of a file: messages for the operator.
    pub fn loops_of_lines(&self, hosts: &[&str]) -> Vec<String> {
        let Some(map) = &self.edge.redirect_map else { return Vec::new() };
        let host = hosts.first().copied().unwrap_or_default();
        let looping = map.all().filter_map(|line| {
            let location = redirect_of_line(line, None).location?;
            let chain = self.loop_from(Hop::at(&location, host, hosts)?, None, hosts)?;
            let old = String::from_utf8_lossy(line.path);
            Some(format!("the redirect of {old} {chain}"))
        });
        looping.take(MESSAGES_MAX).collect()
    }

    /// Lines of redirect files that never count, because a rule denies their path to everybody.
    pub fn denied_lines(&self, host: &str) -> Vec<String> {
        let Some(map) = self.edge.redirect_map.as_ref().filter(|_| self.has_access_rules()) else {
            return Vec::new();
        };
        let denied = map.all().filter(|line| {
            let path = String::from_utf8_lossy(line.path).replace('%', "%25");
            self.is_denied_to_all(RequestView::of_url(&Method::GET, "http", host, &path))
        });
        let texts = denied.map(|line| {
            let old = String::from_utf8_lossy(line.path);
            format!("the redirect of {old} never happens: a rule denies this path")
        });
        texts.take(MESSAGES_MAX).collect()
    }

    /// Warnings about rules of other kinds than caching that nothing reaches: an earlier rule of their kind has no
    /// conditions.
    pub fn edge_rules_never_reached(&self) -> Vec<String> {
        let edge = &self.edge;
        let (slashes, targets): (Vec<_>, Vec<_>) =
            edge.redirects.iter().partition(|rule| matches!(rule.action, RedirectAction::Slash(_)));
        let redirects = |all: Vec<&RedirectRule>| -> Vec<(usize, bool)> {
            all.into_iter().map(|rule| (rule.number, rule.conditions.are_none())).collect()
        };
        let of_access =
            |rule: &super::access::AccessRule| (rule.number, rule.conditions.are_none());
        let of_scripts = |rule: &super::scripts::ScriptRule| {
            (rule.number, rule.host.is_empty() && rule.path.is_empty() && rule.regex.is_empty())
        };
        let of_rewrites = |rule: &super::rewrites::RewriteRule| {
            (rule.number, rule.conditions.are_none() && rule.file.is_none())
        };
        let kinds = [
            ("rewrite", edge.rewrites.iter().map(of_rewrites).collect()),
            ("deny", edge.access.iter().map(of_access).collect()),
            ("limit", edge.limits.iter().map(Check::reach).collect()),
            ("auth_file", edge.auth.iter().map(Check::reach).collect()),
            ("redirect", redirects(targets)),
            ("slash", redirects(slashes)),
            ("php", edge.scripts.iter().map(of_scripts).collect::<Vec<_>>()),
        ];
        kinds.into_iter().flat_map(|(kind, rules)| never_reached(kind, &rules)).collect()
    }

    /// The chain of redirects that begins with this URL, if browsers do not follow it to an end.
    fn loop_from(
        &self,
        first: Hop,
        begin: Option<&RedirectRule>,
        hosts: &[&str],
    ) -> Option<EndlessChain> {
        let mut chain = vec![first];
        loop {
            let hop = chain.last()?;
            let view = RequestView::of_url(&Method::GET, "http", &hop.host, &hop.path_and_query);
            let next = self.certain_redirect(&view, begin)?;
            let next = Hop::at(&next, &hop.host, hosts)?;
            let is_loop = chain.contains(&next);
            chain.push(next);
            // With the redirect to the first URL.
            if is_loop || chain.len() > HOPS_MAX {
                return Some(EndlessChain { hops: chain, is_loop });
            }
        }
    }

    /// The redirect of a GET that every client gets, or every client that the rule `begin` is for.
    fn certain_redirect(
        &self,
        view: &RequestView<'_>,
        begin: Option<&RedirectRule>,
    ) -> Option<String> {
        if self.is_denied_to_all(*view) {
            return None;
        }
        if let Some(line) = self.line_of(view, view.query()) {
            return redirect_of_line(line, view.query()).location;
        }
        let redirect = self.first_redirect(view, |rule| {
            let is_certain = !rule.conditions.distinguish_clients()
                || begin.is_some_and(|begin| begin.number == rule.number);
            is_certain && rule.conditions.fit_url(view)
        });
        redirect?.location
    }
}

impl RedirectRule {
    /// The URL to which the rule redirects, with this text for its captures.
    fn first_hop(&self, sample: &str, hosts: &[&str]) -> Option<Hop> {
        let RedirectAction::Target(target) = &self.action else { return None };
        let texts = [sample.as_bytes(); 9];
        let location = target.target.location(&texts, query_of(&self.conditions).as_deref());
        let of_rule = self.conditions.host.any.first().map(|glob| glob.as_str().replace('*', "x"));
        let host = of_rule.as_deref().or(hosts.first().copied()).unwrap_or_default();
        Hop::at(&location, host, hosts)
    }
}

/// A query that the conditions need.
fn query_of(conditions: &Conditions) -> Option<String> {
    let named = conditions.query.iter().find(|named| !named.absent)?;
    let text = |text: &str| text.replace('*', "x");
    let name = text(named.name.as_str());
    Some(match &named.value {
        Some(value) => format!("{name}={}", text(value.as_str())),
        None => name,
    })
}

impl Hop {
    /// The URL of a `Location`, as sent by this host; `None` if it is of another site.
    fn at(location: &str, host: &str, hosts: &[&str]) -> Option<Hop> {
        let location = location.split('#').next()?;
        let hop = |host: &str, path_and_query: &str| {
            let slash = if path_and_query.starts_with('/') { "" } else { "/" };
            Hop { host: host.to_owned(), path_and_query: format!("{slash}{path_and_query}") }
        };
        if location.starts_with('/') {
            return Some(hop(host, location));
        }
        let (_, rest) = location.split_once("://")?;
        let (named, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let mut own = hosts.iter().copied().chain([host]);
        own.any(|own| own.eq_ignore_ascii_case(named)).then(|| hop(named, path))
    }
}

/// A chain of redirects that browsers do not follow to an end.
struct EndlessChain {
    hops: Vec<Hop>,
    /// Whether the last URL occurs twice. Otherwise the chain is longer than browsers follow.
    is_loop: bool,
}

impl fmt::Display for EndlessChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_loop {
            f.write_str("never ends: ")?;
        } else {
            let most = HOPS_MAX;
            write!(
                f,
                "takes more than {most} redirects, and browsers follow {most}; write the last address: "
            )?;
        }
        let all = self.hops.iter().take(4).map(|hop| hop.path_and_query.as_str());
        let more = if self.hops.len() > 4 { " → …" } else { "" };
        write!(f, "{}{more}", all.collect::<Vec<_>>().join(" → "))
    }
}

/// A warning about the rules after the first that fits every request.
fn never_reached(kind: &str, rules: &[(usize, bool)]) -> Option<String> {
    let at = rules.iter().position(|(_, fits_all)| *fits_all)?;
    let (first, _) = rules[at];
    let which = match &rules[at + 1..] {
        [] => return None,
        [(only, _)] => format!("rule {only} is"),
        [(after, _), .., (last, _)] => format!("rules {after} to {last} are"),
    };
    Some(format!(
        "{which} never reached for {kind}: rule {first} has no conditions, so that it fits every request, and the first rule with {kind} that fits counts"
    ))
}
