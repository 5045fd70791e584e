//! The faults of a site's redirects: loops, and lines that are never reached.
//!
//! A loop is found by following redirects (`redirect_chains`), beginning with the target of each rule (with samples for
//! its captures) and of each line.

use super::redirect_chains::{ChainBegin, Hop, LineSearch};
use super::redirects::{RedirectAction, RedirectRule};
use crate::rules::SiteRules;
use http::Method;
use rule_conditions::{RequestConditions, RequestView};
use std::borrow::Cow;

/// The maximum number of messages about lines.
const MESSAGES_MAX: usize = 10;
/// The maximum number of lines that are followed again for a message: some of them are denied at their last redirect.
const SUSPECTS_MAX: usize = 1_000;
/// Samples for the captures of a rule, and for wildcards.
const SAMPLES: [&str; 3] = ["x", "1", "a/b"];

/// A fault of the redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectFault {
    /// A message for the operator.
    pub message: String,
    /// The number of the line that has a part in it ([`RedirectMap::begin_line`](super::RedirectMap::begin_line)); `None`
    /// if rules alone make it.
    pub line: Option<u32>,
}

impl SiteRules {
    /// The loops of redirects that begin with a rule. `hosts` are those of the site.
    pub fn loops_of_rules(&self, hosts: &[&str]) -> Vec<RedirectFault> {
        let looping = |rule: &RedirectRule| {
            let host = rule.begin_host(hosts);
            let begin = ChainBegin { rule, host: &host };
            let chain = SAMPLES.iter().find_map(|sample| {
                let first = rule.first_hop(sample, hosts)?;
                self.endless_chain(first, Some(begin), hosts)
            })?;
            let message = format!("rule {}: redirect: {chain}", self.named_rule(rule.number));
            Some(RedirectFault { message, line: chain.line })
        };
        self.edge.redirects.iter().filter_map(looping).collect()
    }

    /// The loops of redirects that begin with a line of a file: at most ten.
    pub fn loops_of_lines(&self, hosts: &[&str]) -> Vec<RedirectFault> {
        let Some(map) = &self.edge.redirect_map else { return Vec::new() };
        let (mut found, mut suspects) = (Vec::new(), 0);
        let mut search = LineSearch::new(self, map, hosts);
        for line in map.all() {
            if !search.may_be_endless(line) {
                continue;
            }
            suspects += 1;
            let first = search.target(line);
            let chain = first.and_then(|first| self.endless_chain(first, None, hosts));
            found.extend(chain.map(|chain| {
                let old = String::from_utf8_lossy(line.path);
                let chain = chain.after(Hop::of_line(line, hosts));
                let message = format!("the redirect of {old} {chain}");
                RedirectFault { message, line: Some(line.number) }
            }));
            if found.len() == MESSAGES_MAX || suspects == SUSPECTS_MAX {
                break;
            }
        }
        found
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
}

impl RedirectRule {
    /// The URL to which the rule redirects, with this text for its captures.
    fn first_hop<'h>(&self, sample: &str, hosts: &[&'h str]) -> Option<Hop<'h>> {
        let RedirectAction::Target(target) = &self.action else { return None };
        let texts = [sample.as_bytes(); 9];
        let location = target.target.location(&texts, query_of(&self.conditions).as_deref());
        Hop::at(location, self.begin_host(hosts), hosts)
    }

    /// A host of the requests that the rule redirects.
    fn begin_host<'h>(&self, hosts: &[&'h str]) -> Cow<'h, str> {
        let of_rule = self.conditions.host.any.first().map(|glob| glob.as_str().replace('*', "x"));
        let of_site = || Cow::Borrowed(hosts.first().copied().unwrap_or_default());
        of_rule.map_or_else(of_site, Cow::Owned)
    }
}

/// A query that the conditions need.
fn query_of(conditions: &RequestConditions) -> Option<String> {
    let named = conditions.query.iter().find(|named| !named.absent)?;
    let text = |text: &str| text.replace('*', "x");
    let name = text(named.name.as_str());
    Some(match &named.value {
        Some(value) => format!("{name}={}", text(value.as_str())),
        None => name,
    })
}
