//! Compiles the rules as written into the rules as used: it checks every value, parses every pattern and
//! computes the policy of each rule. Contradictions are refused with a message that names the rule, the key
//! and a valid alternative. Nothing is read from files here.

use crate::cookies::{CookieLists, Names, UnknownCookies, cookie_glob};
use crate::duration::parse_duration;
use crate::edge::{self, EdgeRules, FileSurroundings, RedirectMap};
use crate::fields::{self, KEY_FIELDS_MAX};
use crate::form::KeyForm;
use crate::ignored::IgnoredFields;
use crate::mark::Secret;
use crate::raw::{self, Status, Statuses, Store, Words};
use crate::rule::{Policies, Rule};
use crate::rules::SiteRules;
use http_cache::{Failure, FailureSet, Policy};
use miss_control::RequestRate;
use rule_conditions::{NamedCondition, RequestConditions, ResponseConditions, StatusRange};
use std::fmt;

/// The maximum number of rules of a site.
const RULES_MAX: usize = 500;
/// The statuses that may get a lifetime: those of `Policy::default_lifetime_ms`.
const STORE_STATUSES: &[u16] = &[200, 203, 204, 300, 301, 302, 307, 308, 404, 405, 410, 414];

/// A message for the operator that describes an error in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(pub String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// Further input for the rules.
pub struct Surroundings {
    /// The policy for pages without a rule.
    pub base: Policy,
    /// The key that signs the after-write cookies.
    pub secret: Secret,
    /// Whether the site trusts any proxy.
    pub has_trusted_proxies: bool,
    /// The document root; `None` in front of an HTTP origin.
    pub files: Option<FileSurroundings>,
}

impl SiteRules {
    /// Reads the rules of a site.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn read(
        rules: &[raw::Rule],
        keys: &raw::Keys,
        cookies: &raw::Cookies,
        around: Surroundings,
    ) -> Result<SiteRules, RuleError> {
        let unknown = match cookies.unknown.as_deref() {
            None | Some("declared") => UnknownCookies::Declared,
            Some("ignore") => UnknownCookies::Ignore,
            Some("bypass") => UnknownCookies::Bypass,
            Some(other) => {
                return Err(RuleError(format!(
                    "cookies.unknown: {other:?}: declared, ignore or bypass"
                )));
            }
        };
        let mut lists = CookieLists::new(&cookies.session, &cookies.ignore, unknown)
            .map_err(|error| RuleError(format!("cookies: {error}")))?;
        let form = KeyForm::read(keys).map_err(|error| RuleError(format!("keys.{error}")))?;
        if rules.len() > RULES_MAX {
            return Err(RuleError(format!("rule: {RULES_MAX} rules at most")));
        }
        let (rules, edge) = read_rules(rules, &around)?;
        let last_sets_nothing = rules.last().filter(|(_, sets)| !sets).map(|(rule, _)| rule.number);
        let rules: Vec<Rule> = rules.into_iter().map(|(rule, _)| rule).collect();
        for rule in &rules {
            let added = lists.add_conditions(&rule.conditions.cookie);
            let named = || edge.named_rule(rule.number);
            added.map_err(|error| RuleError(format!("rule {}: cookie: {error}", named())))?;
        }
        let mut rules = SiteRules {
            after_write: rules.iter().filter_map(|rule| rule.after_write_ms).max(),
            times: rules.iter().any(|rule| rule.server_timing.is_some()),
            responsive: rules.iter().any(|rule| rule.response.is_some()),
            watches_load: rules.iter().any(|rule| rule.saturated.is_some()),
            base: around.base,
            secret: around.secret,
            key_fields: key_fields(&keys.fields, &rules)?,
            harmless_fields: harmless_fields(&keys.harmless_fields)?,
            rules,
            edge,
            lists,
            form,
            last_sets_nothing,
        };
        rules.set_redirect_map(RedirectMap::default());
        Ok(rules)
    }
}

/// Reads the rules into the list about the cache, each with whether it sets anything, and the lists of other kinds. A
/// rule without any action belongs to the first: it exempts.
fn read_rules(
    rules: &[raw::Rule],
    around: &Surroundings,
) -> Result<(Vec<(Rule, bool)>, EdgeRules), RuleError> {
    let (mut of_cache, mut edge) = (Vec::new(), EdgeRules::default());
    for (at, raw) in rules.iter().enumerate() {
        let number = at + 1;
        let mut read = || -> Result<(), String> {
            let conditions = RequestConditions::read(&raw.request_conditions())?;
            let response = response(raw)?;
            let files = around.files.as_ref();
            edge::read(&mut edge, (number, raw), &conditions, response.as_ref(), files)?;
            let sets = !sets_nothing(raw);
            if sets || !edge::is_edge_rule(raw) {
                of_cache.push((rule((number, raw), around, conditions, response)?, sets));
            }
            Ok(())
        };
        read().map_err(|error| {
            let named = raw.named(number);
            RuleError(format!("rule {named}: {error}"))
        })?;
    }
    edge::complete(&mut edge, rules, around.files.as_ref())
        .map_err(|error| RuleError(format!("site.entry_points: {error}")))?;
    Ok((of_cache, edge))
}

impl raw::Rule {
    /// This rule without what decides only which requests are refused or redirected; `None` if nothing else is left. The stored
    /// pages do not depend on it.
    pub fn without_access(mut self) -> Option<raw::Rule> {
        let is_access =
            edge::is_access_rule(&self) || self.redirect.is_some() || self.slash.is_some();
        (self.deny, self.retry_after, self.limit) = (None, None, None);
        (self.auth_file, self.auth_realm, self.auth_forward) = (None, None, None);
        (self.redirect, self.redirect_status, self.slash) = (None, None, None);
        let is_only_access = is_access && sets_nothing(&self) && !edge::is_edge_rule(&self);
        (!is_only_access).then_some(self)
    }
}

impl raw::Rule {
    /// This rule without its rewrite; `None` if nothing else is left.
    pub fn without_rewrite(mut self) -> Option<raw::Rule> {
        let is_rewrite = self.rewrite.is_some();
        (self.rewrite, self.file) = (None, None);
        let is_only_rewrite = is_rewrite && sets_nothing(&self) && !edge::is_edge_rule(&self);
        (!is_only_rewrite).then_some(self)
    }
}

/// The request fields in the key. These are the fields that the site names, and the fields in conditions of
/// rules with copies of their own or of bypass rules. A rule may therefore test any field.
fn key_fields(named: &[String], rules: &[Rule]) -> Result<Vec<Box<str>>, RuleError> {
    let mut fields: Vec<Box<str>> = Vec::new();
    let mut add = |name: &str| {
        if !fields.iter().any(|known| **known == *name) {
            fields.push(name.into());
        }
    };
    for name in named {
        let name = name.to_ascii_lowercase();
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(RuleError(format!("keys.fields: {name:?} is no name of a field")));
        }
        if let Some(instead) = fields::other_option(&name) {
            return Err(RuleError(format!("keys.fields: {name:?}: {instead}")));
        }
        add(&name);
    }
    for rule in rules.iter().filter(|rule| rule.response.is_none()) {
        let conditions = rule.conditions.header.iter();
        for named in conditions.filter(|named| rule.own_copies || (rule.bypass && named.absent)) {
            if !fields::is_shared(named.name.as_str()) {
                add(named.name.as_str());
            }
        }
    }
    if fields.len() > KEY_FIELDS_MAX {
        Err(RuleError(format!(
            "keys.fields: {KEY_FIELDS_MAX} fields at most, with those that rules name in `header`"
        )))
    } else {
        Ok(fields)
    }
}

/// The fields that the site vouches for. One that identifies the client, or that has a meaning of its own, cannot
/// be among them.
fn harmless_fields(named: &[String]) -> Result<Names, RuleError> {
    for name in named {
        let name = name.to_ascii_lowercase();
        let refused = |why: &str| Err(RuleError(format!("keys.harmless_fields: {name:?}: {why}")));
        if name.bytes().all(|byte| byte == b'*') {
            return refused("name the fields; `*` may only stand for a part of a name");
        }
        if http::HeaderName::from_bytes(name.replace('*', "x").as_bytes()).is_err() {
            return refused("is no name of a field");
        }
        if let Some(instead) = fields::other_option(&name) {
            return refused(instead);
        }
        if fields::reason_to_bypass(name.as_bytes(), b"").is_some() {
            return refused(
                "it is for one client; name it in keys.fields to store one copy for each value",
            );
        }
    }
    Names::read(named.iter().map(String::as_str))
        .map_err(|error| RuleError(format!("keys.harmless_fields: {error}")))
}

fn rule(
    (number, raw): (usize, &raw::Rule),
    around: &Surroundings,
    conditions: RequestConditions,
    response: Option<ResponseConditions>,
) -> Result<Rule, String> {
    contradictions(raw, around)?;
    without_effect(raw, &conditions, response.as_ref())?;
    let normal = policies(raw, raw.store.as_ref(), &raw.stale_while_revalidate, &around.base)?;
    let saturated = match &raw.when_saturated {
        None => None,
        Some(other) => {
            let store = other.store.as_ref().or(raw.store.as_ref());
            let stale =
                other.stale_while_revalidate.as_ref().or(raw.stale_while_revalidate.as_ref());
            Some(policies(raw, store, &stale.cloned(), &around.base)?)
        }
    };
    let ignored = ignored(&raw.ignore)?;
    let stores = raw.store.is_some() || !ignored.is_empty() || saturated.is_some();
    let globs = |words: &Words| {
        let read = |word: &String| cookie_glob(word);
        words.as_slice().iter().map(read).collect::<Result<Vec<_>, _>>()
    };
    Ok(Rule {
        number,
        name: raw.name.as_deref().map(Into::into),
        path_written: raw.path.as_slice().join(", ").into(),
        own_copies: stores && conditions.distinguish_clients(),
        conditions,
        response,
        bypass: raw.bypass,
        normal,
        saturated,
        ignored,
        after_write_ms: raw
            .after_write
            .as_deref()
            .map(|text| milliseconds("after_write", text))
            .transpose()?,
        server_timing: raw.server_timing,
        renders: raw
            .renders
            .as_deref()
            .map(|text| RequestRate::read(text).map_err(|why| format!("renders: {why}")))
            .transpose()?,
        vary_cookies: globs(&raw.vary_cookies)?,
        session_cookies: globs(&raw.session_cookie)?,
        ignore_cookies: Names::of_cookies(
            raw.ignore_cookies.as_slice().iter().map(String::as_str),
        )?,
        shared_with_sessions: raw.shared_with_sessions,
        device_classes: raw.device_classes,
        languages: languages(&raw.language)?,
        country_header: raw.country_header.as_ref().map(|name| name.to_ascii_lowercase().into()),
    })
}

/// Reads languages.
fn languages(words: &Words) -> Result<Vec<Box<str>>, String> {
    words.as_slice().iter().map(|word| language(word)).collect()
}

/// Reads a language as clients send it (RFC 5646 section 2.1): a code of two or three letters, and perhaps more parts.
fn language(word: &str) -> Result<Box<str>, String> {
    let mut parts = word.split('-');
    let code = parts.next().unwrap_or_default();
    let is_code = matches!(code.len(), 2 | 3) && code.bytes().all(|b| b.is_ascii_alphabetic());
    let is_part = |part: &str| {
        matches!(part.len(), 1..=8) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if is_code && parts.all(is_part) {
        return Ok(word.into());
    }
    Err(format!(
        "language: {word:?}: write it as browsers do, by its code of two or three letters: en, de or pt-BR"
    ))
}

/// Whether a rule has only conditions.
fn sets_nothing(raw: &raw::Rule) -> bool {
    let of_request = raw.bypass || raw.after_write.is_some() || raw.server_timing.is_some();
    let of_request = of_request || raw.renders.is_some();
    !of_request && !is_about_pages(raw)
}

/// Whether a rule concerns stored pages, which only GET and HEAD receive.
fn is_about_pages(raw: &raw::Rule) -> bool {
    let some = |words: &Words| !words.as_slice().is_empty();
    let stores = raw.store.is_some() || some(&raw.ignore) || raw.when_saturated.is_some();
    let stale = [&raw.stale_while_revalidate, &raw.stale_if_error].iter().any(|key| key.is_some());
    let lists = [&raw.vary_cookies, &raw.session_cookie, &raw.ignore_cookies, &raw.language];
    let copies = raw.shared_with_sessions || raw.device_classes || raw.country_header.is_some();
    stores || stale || raw.stale_on.is_some() || lists.into_iter().any(some) || copies
}

/// Refuses contradictory settings.
fn contradictions(raw: &raw::Rule, around: &Surroundings) -> Result<(), String> {
    let some = |words: &Words| !words.as_slice().is_empty();
    let stores = raw.store.is_some() || some(&raw.ignore) || raw.when_saturated.is_some();
    let copies = some(&raw.vary_cookies)
        || some(&raw.session_cookie)
        || some(&raw.ignore_cookies)
        || some(&raw.language)
        || raw.shared_with_sessions
        || raw.device_classes
        || raw.country_header.is_some();
    let stale = raw.stale_while_revalidate.is_some() || raw.stale_if_error.is_some();
    if raw.bypass && (stores || copies || stale) {
        return Err("bypass: a rule with bypass caches nothing, so it cannot also set options of storing or stale pages; remove them or bypass".into());
    }
    let ignores = |name: &str| raw.ignore.as_slice().iter().any(|word| word == name);
    let names_paths = raw.path.as_slice().iter().any(|word| {
        !word.starts_with('!') && word.bytes().any(|byte| !matches!(byte, b'*' | b'/'))
    });
    if ignores("set-cookie") && !names_paths {
        return Err("ignore: set-cookie needs a path that names the pages: a cookie that opens a session elsewhere would be lost".into());
    }
    if raw.shared_with_sessions && some(&raw.session_cookie) {
        return Err(
            "shared_with_sessions: and session_cookie are both given: one copy, or one for each?"
                .into(),
        );
    }
    if raw.when_status.is_some() || some(&raw.when_header) {
        let visitors = [&raw.cookie, &raw.header, &raw.agent, &raw.from].into_iter().any(some);
        let others = raw.after_write.is_some() || raw.server_timing.is_some();
        let others = others || raw.renders.is_some();
        if copies || stale || others || raw.when_saturated.is_some() {
            return Err(
                "when_status, when_header: only store, ignore and bypass can wait for the response"
                    .into(),
            );
        }
        if visitors && stores {
            return Err("when_status, when_header: variants cannot depend on cookie, header, agent or from after the response has arrived".into());
        }
    }
    if raw.country_header.is_some() && !around.has_trusted_proxies {
        return Err("country_header: is believed only when it comes from one of trusted_proxies, and there are none".into());
    }
    Ok(())
}

/// Refuses a rule that can have no effect: a lifetime for a status that may not get one, or storing for
/// methods whose responses are not stored.
fn without_effect(
    raw: &raw::Rule,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
) -> Result<(), String> {
    let statuses = response.map_or(&[][..], |response| &response.statuses);
    let fits = |code: &u16| {
        let mut fitting = statuses.iter();
        statuses.is_empty() || fitting.any(|range| (range.first..=range.last).contains(code))
    };
    if raw.store.is_some() && !STORE_STATUSES.iter().any(fits) {
        return Err(format!(
            "store: has no effect, because when_status names only statuses that are given no lifetime; they are given to {STORE_STATUSES:?}"
        ));
    }
    if let Some(Store::ByStatus(table)) = &raw.store {
        let known = |word: &String| word.parse().is_ok_and(|code| STORE_STATUSES.contains(&code));
        let missed = |word: &&String| known(word) && !word.parse().is_ok_and(|code| fits(&code));
        if let Some(word) = table.keys().find(missed) {
            return Err(format!("store: {word:?} has no effect, because when_status excludes it"));
        }
    }
    let gets_pages = |method: &http::Method| matches!(method.as_str(), "GET" | "HEAD");
    let methods = &conditions.methods;
    if is_about_pages(raw) && !methods.is_empty() && !methods.iter().any(gets_pages) {
        return Err("method: the rule has no effect, because it is about stored pages, and only GET and HEAD get those".into());
    }
    Ok(())
}

fn response(raw: &raw::Rule) -> Result<Option<ResponseConditions>, String> {
    let header = NamedCondition::read_lines(raw.when_header.as_slice(), "when_header")?;
    let statuses = match &raw.when_status {
        None => Vec::new(),
        Some(Statuses::One(one)) => vec![status(one)?],
        Some(Statuses::Many(many)) => many.iter().map(status).collect::<Result<_, _>>()?,
    };
    let any = !header.is_empty() || !statuses.is_empty();
    Ok(any.then_some(ResponseConditions { statuses, header }))
}

fn status(status: &Status) -> Result<StatusRange, String> {
    let wrong = |text: &dyn fmt::Display| format!("when_status: {text}: write 404 or \"4xx\"");
    match status {
        Status::Code(code @ 100..=599) => Ok(StatusRange { first: *code, last: *code }),
        Status::Code(code) => Err(wrong(code)),
        Status::Class(text) => match text.as_bytes() {
            [digit @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => {
                let first = u16::from(digit - b'0') * 100;
                Ok(StatusRange { first, last: first + 99 })
            }
            _ => Err(wrong(text)),
        },
    }
}

fn ignored(words: &Words) -> Result<IgnoredFields, String> {
    let mut ignored = IgnoredFields::default();
    for word in words.as_slice() {
        match word.to_ascii_lowercase().as_str() {
            "cache-control" => ignored.cache_control = true,
            "expires" => ignored.expires = true,
            "set-cookie" => ignored.set_cookie = true,
            _ => return Err(format!("ignore: {word:?}: cache-control, expires or set-cookie")),
        }
    }
    Ok(ignored)
}

/// The base policy with the changes of the rule.
fn policies(
    raw: &raw::Rule,
    store: Option<&Store>,
    stale_while_revalidate: &Option<String>,
    base: &Policy,
) -> Result<Policies, String> {
    let mut general = base.clone();
    let seconds = |key: &str, text: &str| milliseconds(key, text).map(|ms| (ms / 1000) as u32);
    if let Some(text) = stale_while_revalidate {
        general.stale_while_revalidate_seconds = seconds("stale_while_revalidate", text)?;
    }
    if let Some(text) = &raw.stale_if_error {
        general.stale_if_error_seconds = seconds("stale_if_error", text)?;
        general.stale_if_disconnected_seconds = 0;
    }
    if let Some(words) = &raw.stale_on {
        general.stale_if_error_causes =
            words.as_slice().iter().try_fold(FailureSet::NONE, |set, word| {
                let names = || Failure::ALL.map(|failure| failure.as_str()).join(", ");
                let failure = Failure::from_name(word)
                    .ok_or_else(|| format!("stale_on: {word:?}: one of {}", names()))?;
                Ok::<_, String>(set.with(failure))
            })?;
    }
    let mut by_status = Vec::new();
    match store {
        None => {}
        Some(Store::All(text)) => general.default_lifetime_ms = Some(milliseconds("store", text)?),
        Some(Store::ByStatus(table)) => {
            let other = table.get("other").map(|text| milliseconds("store", text)).transpose()?;
            general.default_lifetime_ms = other;
            for (word, text) in table.iter().filter(|(word, _)| *word != "other") {
                let code = word.parse().ok().filter(|code| STORE_STATUSES.contains(code));
                let code = code.ok_or_else(|| {
                    format!("store: {word:?}: other, or one of {STORE_STATUSES:?}")
                })?;
                let lifetime = Some(milliseconds("store", text)?);
                by_status.push((code, Policy { default_lifetime_ms: lifetime, ..general.clone() }));
            }
        }
    }
    Ok(Policies { general, by_status })
}

fn milliseconds(key: &str, text: &str) -> Result<u64, String> {
    let read = parse_duration(text).map(|duration| duration.as_millis() as u64);
    read.map_err(|error| format!("{key}: {error}"))
}
