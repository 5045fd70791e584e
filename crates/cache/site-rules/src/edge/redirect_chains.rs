//! Chains of redirects that browsers do not follow to an end.
//!
//! Only redirects count that certainly happen: of rules about the client (`from`, `cookie`, …) only those that are for all
//! clients of the rule at which the chain begins, because others may be for different clients. So each chain that is
//! reported never ends; one that only some captures cause may be missed.
//!
//! A million lines are searched at each start and reload. So the redirects that follow from a line are counted once,
//! however many lines lead to it, in a byte for each place of their table. With so many lines and rules that their
//! comparison would take seconds, the last lines are compared with lines only.

use super::redirect_map::{RedirectLine, RedirectMap};
use super::redirects::{Redirect, RedirectRule, redirect_of_line};
use crate::rules::SiteRules;
use http::Method;
use rule_conditions::RequestView;
use std::borrow::Cow;
use std::fmt;

/// The number of redirects of the longest chain that is accepted: browsers follow 20.
const HOPS_MAX: usize = 20;
/// The maximum number of URLs that a message lists.
const SHOWN_MAX: usize = 6;
/// The maximum number of comparisons of a URL with a rule in a search through all lines: they take half a second.
const COMPARISONS_MAX: usize = 20_000_000;

/// A URL in a chain of redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hop<'h> {
    host: Cow<'h, str>,
    path_and_query: String,
}

impl<'h> Hop<'h> {
    /// The URL of a `Location`, as sent by this host; `None` if it is of another site, which has none of these hosts.
    pub(super) fn at(
        mut location: String,
        host: Cow<'h, str>,
        hosts: &[&'h str],
    ) -> Option<Hop<'h>> {
        if let Some(end) = location.find('#') {
            location.truncate(end);
        }
        if location.starts_with('/') {
            return Some(Hop { host, path_and_query: location });
        }
        let (_, rest) = location.split_once("://")?;
        let (named, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let is_named = |own: &str| own.eq_ignore_ascii_case(named);
        let of_site = hosts.iter().find(|own| is_named(own)).map(|own| Cow::Borrowed(*own));
        let host = of_site.or_else(|| is_named(&host).then_some(host))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        Some(Hop { host, path_and_query: format!("{slash}{path}") })
    }

    /// The old URL of a line of a file.
    pub(super) fn of_line(line: RedirectLine<'_>, hosts: &[&'h str]) -> Hop<'h> {
        let mut path_and_query = String::from_utf8_lossy(line.path).into_owned();
        if let Some(query) = line.query {
            path_and_query.push('?');
            path_and_query.push_str(query);
        }
        Hop { host: Cow::Borrowed(hosts.first().copied().unwrap_or_default()), path_and_query }
    }

    /// The URL of a redirect from here.
    fn next(&self, redirect: Redirect, hosts: &[&'h str]) -> Option<Hop<'h>> {
        Hop::at(redirect.location?, self.host.clone(), hosts)
    }

    fn view(&self) -> RequestView<'_> {
        RequestView::of_url(&Method::GET, "http", &self.host, &self.path_and_query)
    }
}

/// A chain of redirects that browsers do not follow to an end.
pub(super) struct EndlessChain<'h> {
    hops: Vec<Hop<'h>>,
    /// Whether the last URL occurs twice. Otherwise the chain is longer than browsers follow.
    is_loop: bool,
    /// The number of the first line that makes one of its redirects, if there is one.
    pub(super) line: Option<u32>,
}

impl fmt::Display for EndlessChain<'_> {
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
        let mut all: Vec<&str> = self.hops.iter().map(|hop| hop.path_and_query.as_str()).collect();
        if all.len() > SHOWN_MAX {
            // The end of a loop is the URL to which it comes back.
            let end = all.len() - usize::from(self.is_loop);
            all.splice(SHOWN_MAX - 2..end, ["…"]);
        }
        f.write_str(&all.join(" → "))
    }
}

impl<'h> EndlessChain<'h> {
    /// The chain from this URL on, whose redirect leads to the first. A loop that comes back to it ends there.
    pub(super) fn after(mut self, begin: Hop<'h>) -> EndlessChain<'h> {
        let back = self.hops.iter().position(|hop| *hop == begin).filter(|_| self.is_loop);
        if let Some(at) = back {
            self.hops.truncate(at + 1);
        }
        self.hops.insert(0, begin);
        self
    }
}

/// The rule at which a chain begins, and the host of the first request.
#[derive(Clone, Copy)]
pub(super) struct ChainBegin<'b> {
    pub(super) rule: &'b RedirectRule,
    pub(super) host: &'b str,
}

impl ChainBegin<'_> {
    /// Whether a rule is for all clients of this one, in a request for this host.
    fn is_for_same(&self, rule: &RedirectRule, host: &str) -> bool {
        // Another host may not get the cookies, nor a field such as `Authorization`.
        let conditions = &rule.conditions;
        let depends = !conditions.cookie.is_empty() || !conditions.header.is_empty();
        (!depends || host == self.host) && rule.conditions.cover_clients(&self.rule.conditions)
    }
}

impl SiteRules {
    /// The chain of redirects that begins with this URL, if browsers do not follow it to an end.
    pub(super) fn endless_chain<'h>(
        &self,
        first: Hop<'h>,
        begin: Option<ChainBegin<'_>>,
        hosts: &[&'h str],
    ) -> Option<EndlessChain<'h>> {
        let (mut chain, mut line) = (vec![first], None);
        loop {
            let hop = chain.last()?;
            let redirect = self.certain_redirect(&hop.view(), begin)?;
            line = line.or(redirect.source.line);
            let is_own = begin.is_some_and(|begin| redirect.source.rule == Some(begin.rule.number));
            let next = hop.next(redirect, hosts)?;
            let is_loop = chain.contains(&next);
            // The rule itself has closed the loop: it is shown from there.
            let own = (is_own && chain.first() == Some(&next)).then(|| hop.clone());
            chain.push(next);
            // With the redirect to the first URL.
            if is_loop || chain.len() > HOPS_MAX {
                let chain = EndlessChain { hops: chain, is_loop, line };
                return Some(match own {
                    Some(own) => chain.after(own),
                    None => chain,
                });
            }
        }
    }

    /// The redirect of a GET that every client gets, or every client that the rule `begin` is for.
    fn certain_redirect(
        &self,
        view: &RequestView<'_>,
        begin: Option<ChainBegin<'_>>,
    ) -> Option<Redirect> {
        if self.is_denied_to_all(*view) {
            return None;
        }
        let path = view.plain_path();
        match self.line_of(&path, view.query()) {
            Some(line) => Some(redirect_of_line(line, view.query())),
            None => self.certain_rule(view, &path, begin),
        }
    }

    fn certain_rule(
        &self,
        view: &RequestView<'_>,
        path: &[u8],
        begin: Option<ChainBegin<'_>>,
    ) -> Option<Redirect> {
        self.first_redirect(view, path, |rule| {
            let is_certain = !rule.conditions.distinguish_clients()
                || begin.is_some_and(|begin| begin.is_for_same(rule, view.host));
            is_certain && rule.conditions.fit_url_but_regex(view, path)
        })
    }
}

/// A search through all lines for those that begin an endless chain.
pub(super) struct LineSearch<'a> {
    rules: &'a SiteRules,
    map: &'a RedirectMap,
    hosts: &'a [&'a str],
    /// The host of the requests with which chains begin.
    host: &'a str,
    /// For the place of each line in the table, the number of redirects from its old path to the end; 0 if it is not
    /// known yet.
    lengths: Vec<u8>,
    comparisons_left: usize,
}

impl<'a> LineSearch<'a> {
    /// A search through these lines. `hosts` are those of the site.
    pub(super) fn new(
        rules: &'a SiteRules,
        map: &'a RedirectMap,
        hosts: &'a [&'a str],
    ) -> LineSearch<'a> {
        let host = hosts.first().copied().unwrap_or_default();
        let (lengths, comparisons_left) = (vec![0; map.places()], COMPARISONS_MAX);
        LineSearch { rules, map, hosts, host, lengths, comparisons_left }
    }

    /// The URL to which a line leads.
    pub(super) fn target(&self, line: RedirectLine<'_>) -> Option<Hop<'a>> {
        let location = redirect_of_line(line, None).location?;
        Hop::at(location, Cow::Borrowed(self.host), self.hosts)
    }

    /// Whether the chain that begins with a line is perhaps endless. One that is endless is never missed, unless rules
    /// were not compared any more.
    pub(super) fn may_be_endless(&mut self, line: RedirectLine<'_>) -> bool {
        let Some((begin, _)) = self.map.place_of(line.path, line.query) else { return false };
        if self.lengths[begin] > 0 {
            return false;
        }
        // The lines that follow, each with the number of redirects before its own.
        let mut passed: Vec<(usize, usize)> = Vec::new();
        let (mut count, mut next) = (1, self.target(line));
        let rest = loop {
            let Some(hop) = next else { break 0 };
            if count > HOPS_MAX {
                return true;
            }
            let Some((redirect, place)) = self.redirect(&hop) else { break 0 };
            if let Some(place) = place {
                match self.lengths[place] {
                    0 => passed.push((place, count)),
                    known => break usize::from(known),
                }
            }
            count += 1;
            next = hop.next(redirect, self.hosts);
        };
        let length = count + rest;
        if length > HOPS_MAX {
            return true;
        }
        for (place, before) in passed.into_iter().chain([(begin, 0)]) {
            self.lengths[place] = (length - before) as u8;
        }
        false
    }

    /// The redirect of a GET that every client gets; with the place of the line that makes it, if the chain goes on from
    /// here like one that begins with that line.
    fn redirect(&mut self, hop: &Hop<'_>) -> Option<(Redirect, Option<usize>)> {
        let view = hop.view();
        let compares_rules = self.may_compare_rules();
        if compares_rules && self.rules.is_denied_to_all(view) {
            return None;
        }
        let (path, query) = (view.plain_path(), view.query());
        if let Some((place, line)) = self.map.place_of(&path, query) {
            let is_beginning = (query.is_none() || line.query.is_some()) && *hop.host == *self.host;
            return Some((redirect_of_line(line, query), is_beginning.then_some(place)));
        }
        let of_rule = compares_rules.then(|| self.rules.certain_rule(&view, &path, None));
        of_rule.flatten().map(|redirect| (redirect, None))
    }

    fn may_compare_rules(&mut self) -> bool {
        let edge = &self.rules.edge;
        let left = self.comparisons_left.checked_sub(edge.access.len() + edge.redirects.len());
        self.comparisons_left = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::KeyForm;
    use crate::raw;
    use crate::{Secret, Surroundings};
    use proptest::prelude::*;

    const HOSTS: [&str; 2] = ["a.test", "www.a.test"];

    fn site(rules: &[raw::Rule], lines: impl Iterator<Item = (String, String)>) -> SiteRules {
        let around = Surroundings {
            base: http_cache::Policy::default(),
            secret: Secret::new([7; 32]),
            has_trusted_proxies: false,
            files: None,
        };
        let (keys, cookies) = (raw::Keys::default(), raw::Cookies::default());
        let mut rules = SiteRules::read(rules, &keys, &cookies, around).unwrap();
        let (form, mut map) = (KeyForm::read(&keys).unwrap(), RedirectMap::default());
        for (old, target) in lines {
            map.add(&form, &old, &target, None).unwrap();
        }
        rules.set_redirect_map(map);
        rules
    }

    fn denial(path: &str) -> raw::Rule {
        toml::from_str(&format!("path = {path:?}\ndeny = 403")).unwrap()
    }

    /// Each line leads to the next, but for every twentieth. Each is passed once, although searches begin at all.
    #[test]
    fn a_line_is_passed_once() {
        const LINES: usize = 20_000;
        let target = |at: usize| if at % 20 == 19 { "/end".into() } else { format!("/{}", at + 1) };
        let lines = (0..LINES).map(|at| (format!("/{at}"), target(at)));
        let rules = site(&[denial("/x")], lines);
        let map = rules.redirect_map().unwrap();
        let mut search = LineSearch::new(&rules, map, &HOSTS);
        assert!(map.all().all(|line| !search.may_be_endless(line)));
        assert_eq!(COMPARISONS_MAX - search.comparisons_left, LINES, "one rule, for each line");
    }

    /// The last lines are compared with lines only.
    #[test]
    fn comparisons_with_rules_are_bounded() {
        let lines = [("/a", "/1"), ("/b", "/c"), ("/c", "/b")];
        let lines = lines.map(|(old, target)| (old.to_owned(), target.to_owned()));
        let rules = site(&[denial("/x"), denial("/y")], lines.into_iter());
        let map = rules.redirect_map().unwrap();
        let mut search = LineSearch::new(&rules, map, &HOSTS);
        search.comparisons_left = 3;
        let found = map.all().map(|line| search.may_be_endless(line));
        assert_eq!(found.collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(search.comparisons_left, 0);
    }

    proptest! {
        /// The search through all lines finds what following each of them finds.
        #[test]
        fn no_endless_chain_is_missed(
            targets in prop::collection::vec(
                ("(https://(a|www\\.a|b)\\.test)?", 0..40_usize, "(\\?x|\\?y=1)?(#z)?"), 1..40,
            ),
            with_query in 0..40_usize,
        ) {
            let old = |at: usize| format!("/{at}{}", if at == with_query { "?x" } else { "" });
            let lines = targets.iter().enumerate();
            let lines = lines.map(|(at, (host, to, end))| (old(at), format!("{host}/{to}{end}")));
            let rules = site(&[denial("/1")], lines);
            let map = rules.redirect_map().unwrap();
            let mut search = LineSearch::new(&rules, map, &HOSTS);
            for line in map.all() {
                let first = search.target(line);
                let chain = first.and_then(|first| rules.endless_chain(first, None, &HOSTS));
                prop_assert!(chain.is_none() || search.may_be_endless(line), "{:?}", targets);
            }
        }
    }
}
