//! The decision on a request before the store lookup.
//!
//! | the first of these that holds | plan |
//! |---|---|
//! | the client has just sent a write (its after-write cookie is valid) | bypass: after-write |
//! | the rule sets bypass | bypass: rule |
//! | a session cookie that the rule neither has in the key nor removes | bypass: session-cookie |
//! | the query has a parameter with personal data | bypass: personal-query |
//! | an unknown cookie, if these count as sessions | bypass: unknown-cookie |
//! | a field of the key is too long | bypass: field-too-long |
//! | otherwise | use the store |
//!
//! Invariant: under a plan that uses the store, no session cookie counts except those in the key. Nothing
//! here allocates for a site without rules. A plan is small and copied; it contains indices into the rules.

use crate::cookies::{AFTER_WRITE_COOKIE, COOKIES_REPORTED_MAX, CookieKind, UnknownCookies};
use crate::language;
use crate::rule::{Load, Rule};
use crate::rules::SiteRules;
use http_cache::litespeed::is_vary_cookie;
use http_cache::{CookieName, Fields, Policy, StoredFacts};
use http_fields::cookies::{CookiePair, pairs};
use miss_control::RequestRate;
use rule_conditions::{Agent, Peer, RequestView};
use std::collections::BTreeSet;

/// The handling of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Look it up in the store; the response may be stored.
    Store,
    /// Forward it unchanged; the response is not stored.
    Bypass(BypassBecause),
}

/// The reason why a request bypasses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassBecause {
    /// A rule sets it.
    Rule,
    /// It has a session or login cookie.
    SessionCookie,
    /// Its query has a parameter with personal data, such as a mail address or a token.
    PersonalQuery,
    /// Its client has just sent a write.
    AfterWrite,
    /// It has a cookie that is on no list, and the site treats these as session cookies.
    UnknownCookie,
    /// It has a field that identifies the client, such as `X-Api-Key`.
    Credential,
    /// It has a field that requests a part of the page, or another form of it.
    PartialPage,
    /// A field of the key has a longer value than the limit.
    FieldTooLong,
}

impl BypassBecause {
    /// The name of the reason, as in the `detail` of Cache-Status.
    pub const fn as_str(self) -> &'static str {
        match self {
            BypassBecause::Rule => "rule",
            BypassBecause::SessionCookie => "session-cookie",
            BypassBecause::PersonalQuery => "personal-query",
            BypassBecause::AfterWrite => "after-write",
            BypassBecause::UnknownCookie => "unknown-cookie",
            BypassBecause::Credential => "credential-field",
            BypassBecause::PartialPage => "partial-page",
            BypassBecause::FieldTooLong => "field-too-long",
        }
    }
}

/// The handling of a request, and the rule that applies.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Whether the request uses the store.
    pub handling: Handling,
    /// The index of the rule that applies, if there is one.
    pub(crate) rule: Option<usize>,
    pub(crate) load: Load,
    pub(crate) device: Option<Agent>,
    /// The index among the rule's languages.
    pub(crate) language: Option<usize>,
    pub(crate) country: Option<[u8; 2]>,
    pub(crate) cookies: CookieSummary,
}

/// The kinds of cookies in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CookieSummary {
    /// A cookie that counts as a session cookie and is not in the key.
    pub(crate) session: bool,
    /// A session cookie that is in the key.
    pub(crate) named_session: bool,
    /// A cookie that selects a variant.
    pub(crate) vary: bool,
    /// A cookie of a language.
    pub(crate) language: bool,
    /// A cookie that is on no list.
    pub(crate) unknown: bool,
    /// A cookie that the rule removes.
    pub(crate) withheld: bool,
    /// A valid after-write cookie.
    pub(crate) wrote: bool,
}

/// A rule, for explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling<'r> {
    /// The number of the rule, from 1.
    pub number: usize,
    /// The name of the rule, if it has one.
    pub name: Option<&'r str>,
    /// The paths of the rule as they were written; empty if it applies to all.
    pub path: &'r str,
    /// Whether the rule names cookies that are in the key.
    pub has_vary_cookies: bool,
}

impl Plan {
    /// This plan, changed to bypass the cache for this reason.
    pub fn bypassing(self, because: BypassBecause) -> Plan {
        Plan { handling: Handling::Bypass(because), ..self }
    }

    /// Whether the plan distinguishes devices: each class has a page of its own.
    pub fn has_device(&self) -> bool {
        self.device.is_some()
    }

    /// Whether the plan distinguishes devices, and the client's is a phone or a tablet.
    pub fn is_mobile(&self) -> bool {
        matches!(self.device, Some(Agent::Phone | Agent::Tablet))
    }
}

impl SiteRules {
    /// Plans a GET or HEAD. `now_ms` is the time in milliseconds since the Unix epoch, for after-write
    /// cookies.
    pub fn plan(&self, view: &RequestView<'_>, load: Load, now_ms: u64) -> Plan {
        let at = self.ruling(view);
        let rule = at.map(|at| &self.rules[at]);
        let cookies = self.find_cookies(rule, view, now_ms);
        let plain = Plan { rule: at, load, cookies, ..self.plain_plan() };
        let bypass = |because| Plan { handling: Handling::Bypass(because), ..plain };
        if cookies.wrote {
            return bypass(BypassBecause::AfterWrite);
        }
        if rule.is_some_and(|rule| rule.bypass) {
            return bypass(BypassBecause::Rule);
        }
        let shared = rule.is_some_and(|rule| rule.shared_with_sessions);
        if cookies.session && !shared {
            return bypass(BypassBecause::SessionCookie);
        }
        if view.query().is_some_and(|query| self.form.personal_parameter(query).is_some()) {
            return bypass(BypassBecause::PersonalQuery);
        }
        if cookies.unknown && !shared && self.lists.unknown == UnknownCookies::Bypass {
            return bypass(BypassBecause::UnknownCookie);
        }
        if self.has_long_field(view.fields) {
            return bypass(BypassBecause::FieldTooLong);
        }
        let Some(rule) = rule else { return plain };
        Plan {
            device: rule.device_classes.then(|| view.class().device()),
            language: (!rule.languages.is_empty())
                .then(|| language::preferred(&rule.languages, view.fields)),
            country: rule.country_header.as_ref().map(|header| country(view, header)),
            ..plain
        }
    }

    /// The rule that applies, if there is one.
    pub fn ruling_of(&self, plan: &Plan) -> Option<Ruling<'_>> {
        let at = plan.rule?;
        let rule = self.rules.get(at)?;
        Some(Ruling {
            number: rule.number,
            name: rule.name.as_deref(),
            path: &rule.path_written,
            has_vary_cookies: !rule.vary_cookies.is_empty(),
        })
    }

    /// The names of the cookies that make the request bypass the cache. Empty if it does not, or for
    /// another reason.
    pub fn bypassing_cookies(&self, plan: &Plan, fields: &dyn Fields) -> Vec<Box<str>> {
        let kind = match plan.handling {
            Handling::Bypass(BypassBecause::SessionCookie) => CookieKind::Session,
            Handling::Bypass(BypassBecause::UnknownCookie) => CookieKind::Unknown,
            _ => return Vec::new(),
        };
        self.cookies_of_kind(kind, plan, fields, name_of)
    }

    /// The names of the request's cookies that are on no list and that the origin receives. The response
    /// may depend on them. Empty if there are none, or if they do not count ([`SiteRules::has_strangers`]).
    pub fn stranger_cookies(&self, plan: &Plan, fields: &dyn Fields) -> Vec<Box<str>> {
        if !self.has_strangers(plan) {
            return Vec::new();
        }
        self.cookies_of_kind(CookieKind::Unknown, plan, fields, name_of)
    }

    /// The same cookies as they were written, with their values: each pair once, in the order of its bytes.
    pub fn stranger_pairs(&self, plan: &Plan, fields: &dyn Fields) -> BTreeSet<Box<[u8]>> {
        if !self.has_strangers(plan) {
            return BTreeSet::new();
        }
        let written = |pair: &CookiePair<'_>| Box::<[u8]>::from(pair.written);
        self.cookies_of_kind(CookieKind::Unknown, plan, fields, written).into_iter().collect()
    }

    /// A part of each of the request's cookies of one kind, without those that the plan's rule names.
    fn cookies_of_kind<T>(
        &self,
        kind: CookieKind,
        plan: &Plan,
        fields: &dyn Fields,
        part: impl Fn(&CookiePair<'_>) -> T,
    ) -> Vec<T> {
        let rule = plan.rule.map(|at| &self.rules[at]);
        let of_rule = |name: &CookieName<'_>| {
            rule.is_some_and(|rule| {
                rule.names_cookie(name) || rule.ignore_cookies.have_cookie(name)
            })
        };
        let mut parts = Vec::new();
        fields.values("cookie", &mut |line| {
            for pair in pairs(line).take(COOKIES_REPORTED_MAX) {
                // A cookie without a name would expose its value here.
                let is_named = pair.written.contains(&b'=');
                if is_named && self.lists.kind(&pair.name) == kind && !of_rule(&pair.name) {
                    parts.push(part(&pair));
                }
            }
        });
        parts
    }

    /// The plan for a request without cookies at a site without rules.
    #[inline]
    pub fn plain_plan(&self) -> Plan {
        Plan {
            handling: Handling::Store,
            rule: None,
            load: Load::Normal,
            device: None,
            language: None,
            country: None,
            cookies: CookieSummary::default(),
        }
    }

    /// Whether a render under the plan gets one User-Agent for each class of devices, although no rule says so:
    /// pages that declare nothing may be stored by what they read, and must not depend on the client's own.
    pub fn fixes_device(&self, plan: &Plan) -> bool {
        self.base.reads_lifetime_ms.is_some()
            && plan.device.is_none()
            && plan.handling == Handling::Store
    }

    /// How long the client of a successful unsafe request bypasses the cache, in milliseconds.
    pub fn after_write_ms(&self, view: &RequestView<'_>) -> Option<u64> {
        self.after_write?;
        self.rules[self.ruling(view)?].after_write_ms
    }

    /// Whether the response reports the origin's duration in `Server-Timing`; `None` if no rule sets it.
    pub fn server_timing(&self, view: &RequestView<'_>) -> Option<bool> {
        self.rules[self.ruling(view)?].server_timing
    }

    /// Whether any rule sets `server_timing`. Only then need the rule be determined for it.
    pub fn have_timing(&self) -> bool {
        self.times
    }

    /// The number of the rule that limits renders under this plan, and its rate.
    pub fn renders(&self, plan: &Plan) -> Option<(usize, RequestRate)> {
        let rule = &self.rules[plan.rule?];
        Some((rule.number, rule.renders?))
    }

    /// The Set-Cookie value that marks a client that has sent a write, for `for_ms` milliseconds.
    pub fn mark(&self, view: &RequestView<'_>, now_ms: u64, for_ms: u64) -> String {
        self.secret.set_cookie(view.host, now_ms, for_ms, view.scheme == "https")
    }

    /// The first rule whose conditions on the request hold and that has none on the response.
    fn ruling(&self, view: &RequestView<'_>) -> Option<usize> {
        self.rules.iter().position(|rule| rule.response.is_none() && rule.conditions.fit(view))
    }

    fn find_cookies(
        &self,
        rule: Option<&Rule>,
        view: &RequestView<'_>,
        now_ms: u64,
    ) -> CookieSummary {
        let mut found = CookieSummary::default();
        view.fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                if pair.name.written() == AFTER_WRITE_COOKIE.as_bytes() {
                    let holds = || self.secret.holds(pair.value, view.host, now_ms);
                    found.wrote |= self.after_write.is_some() && holds();
                    continue;
                }
                match rule {
                    Some(rule) if rule.names_session(&pair.name) => found.named_session = true,
                    Some(rule) if rule.names_cookie(&pair.name) => {}
                    Some(rule) if rule.ignore_cookies.have_cookie(&pair.name) => {
                        found.withheld = true
                    }
                    _ => match self.lists.kind(&pair.name) {
                        CookieKind::Vary => found.vary = true,
                        CookieKind::Language => found.language = true,
                        CookieKind::Session => found.session = true,
                        CookieKind::Unknown => found.unknown = true,
                        CookieKind::ScriptOnly => {}
                    },
                }
            }
        });
        found
    }

    /// Whether a cookie is forwarded to the origin, and may select a variant, under a plan that uses the
    /// store.
    pub(crate) fn counts(&self, plan: &Plan, name: &CookieName<'_>) -> bool {
        let rule = plan.rule.map(|at| &self.rules[at]);
        match rule {
            Some(rule) if rule.names_cookie(name) => true,
            Some(rule) if rule.ignore_cookies.have_cookie(name) => false,
            _ if self.is_in_key(name) => true,
            Some(rule) if rule.shared_with_sessions => false,
            _ => {
                self.lists.unknown == UnknownCookies::Declared
                    && self.lists.kind(name) == CookieKind::Unknown
            }
        }
    }

    /// Whether a cookie is part of the key on every site.
    fn is_in_key(&self, name: &CookieName<'_>) -> bool {
        matches!(self.lists.kind(name), CookieKind::Language | CookieKind::Vary)
    }

    /// The policy for stored pages under the plan.
    pub fn policy(&self, plan: &Plan) -> &Policy {
        match plan.rule {
            Some(at) => &self.rules[at].policies(plan.load).general,
            None => &self.base,
        }
    }

    /// Whether a stored page may answer the request. A page with a lifetime from a rule or a heuristic must
    /// not answer a client that the application may know individually.
    pub fn may_use(&self, plan: &Plan, stored: &StoredFacts) -> bool {
        !self.has_strangers(plan) || crate::declared::is_declared(stored)
    }

    /// Whether unknown cookies are forwarded. The response is then specific to the client, unless the
    /// application marks it as shared.
    pub fn has_strangers(&self, plan: &Plan) -> bool {
        let shared = plan.rule.is_some_and(|at| self.rules[at].shared_with_sessions);
        plan.cookies.unknown
            && !plan.cookies.named_session
            && !shared
            && self.lists.unknown == UnknownCookies::Declared
    }

    /// The cookies of a line that are in the key, as they were written; `None` if there are none.
    pub fn key_cookies(&self, plan: &Plan, line: &[u8]) -> Option<Vec<u8>> {
        let rule = plan.rule.map(|at| &self.rules[at]);
        let of_key = |pair: &CookiePair<'_>| {
            self.is_in_key(&pair.name) || rule.is_some_and(|rule| rule.varies_by_cookie(&pair.name))
        };
        let kept: Vec<&[u8]> = pairs(line).filter(of_key).map(|pair| pair.written).collect();
        (!kept.is_empty()).then(|| kept.join(&b"; "[..]))
    }

    /// Whether a cookie that may be a session cookie was removed from the request. Cookies that its
    /// response sets are then not meant for this client and must not reach it.
    pub fn withholds_session(&self, plan: &Plan) -> bool {
        let shared = plan.rule.is_some_and(|at| self.rules[at].shared_with_sessions);
        let found = plan.cookies;
        plan.handling == Handling::Store
            && (found.withheld || (shared && (found.session || found.unknown)))
    }

    /// Appends to a cache key the parts by which the plan selects a variant. No URL contains a line feed.
    pub fn write_key(&self, plan: &Plan, fields: &dyn Fields, key: &mut Vec<u8>) {
        if plan.cookies.vary || plan.cookies.language {
            self.write_vary_cookies(plan, fields, key);
        }
        self.write_fields(fields, key);
        let Some(at) = plan.rule else { return };
        let rule = &self.rules[at];
        let mut part = |name: &str, value: &[u8]| {
            key.push(b'\n');
            key.extend_from_slice(name.as_bytes());
            key.push(b' ');
            key.extend_from_slice(value);
        };
        if rule.own_copies {
            part("rule", at.to_string().as_bytes());
        }
        for (name, globs) in [("session", &rule.session_cookies), ("cookie", &rule.vary_cookies)] {
            for glob in globs {
                fields.values("cookie", &mut |line| {
                    let fits = |pair: &CookiePair<'_>| pair.name.any(|reading| glob.fits(reading));
                    for pair in pairs(line).filter(fits) {
                        part(name, pair.written);
                    }
                });
            }
        }
        if let Some(device) = plan.device {
            part("device", device.as_str().as_bytes());
        }
        if let Some(language) = plan.language.and_then(|at| rule.languages.get(at)) {
            part("language", language.as_bytes());
        }
        if let Some(country) = plan.country {
            part("country", &country);
        }
    }

    /// Writes the cookies that select a variant on every site. The cookies that the rule names are written
    /// with its own parts.
    fn write_vary_cookies(&self, plan: &Plan, fields: &dyn Fields, key: &mut Vec<u8>) {
        fields.values("cookie", &mut |line| {
            for pair in pairs(line).filter(|pair| self.counts(plan, &pair.name)) {
                let part = if is_vary_cookie(&pair.name) {
                    VARY_PART
                } else if self.lists.kind(&pair.name) == CookieKind::Language {
                    COOKIE_PART
                } else {
                    continue;
                };
                key.extend_from_slice(part);
                key.extend_from_slice(pair.written);
            }
        });
    }

    /// The field with the plan's country.
    pub(crate) fn country_header(&self, plan: &Plan) -> Option<&str> {
        plan.country?;
        self.rules[plan.rule?].country_header.as_deref()
    }

    pub(crate) fn language(&self, plan: &Plan, at: usize) -> Option<&str> {
        self.rules[plan.rule?].languages.get(at).map(|language| &**language)
    }
}

/// The name of a cookie for a report.
fn name_of(pair: &CookiePair<'_>) -> Box<str> {
    String::from_utf8_lossy(pair.name.written()).into()
}

/// The prefix in the key of a cookie that a rule names, and of a language.
const COOKIE_PART: &[u8] = b"\ncookie ";
/// The prefix in the key of a cookie that selects a variant on every site.
const VARY_PART: &[u8] = b"\nvary ";

/// The key without the cookies that select a variant on every site: the key of a page with `no-vary`.
/// `None` if the key has no such cookies.
pub fn key_without_vary(key: &[u8]) -> Option<Vec<u8>> {
    // Nearly every key is only a URL.
    if !key.contains(&b'\n') {
        return None;
    }
    let name = &VARY_PART[1..];
    let is_kept = |part: &&[u8]| !part.starts_with(name);
    let mut parts = key.split(|byte| *byte == b'\n');
    if parts.clone().all(|part| is_kept(&part)) {
        return None;
    }
    let mut kept = parts.next().unwrap_or_default().to_vec();
    for part in parts.filter(is_kept) {
        kept.push(b'\n');
        kept.extend_from_slice(part);
    }
    Some(kept)
}

/// The country of a client whose location no trusted proxy has reported.
pub(crate) const NOWHERE: [u8; 2] = *b"--";

/// The two letters that a trusted proxy has sent; any other value is [`NOWHERE`].
fn country(view: &RequestView<'_>, header: &str) -> [u8; 2] {
    let mut country = NOWHERE;
    if view.client.peer() == Peer::Trusted {
        view.fields.values(header, &mut |value| {
            if let [one, two] = value.trim_ascii()
                && one.is_ascii_alphanumeric()
                && two.is_ascii_alphanumeric()
            {
                country = [one.to_ascii_uppercase(), two.to_ascii_uppercase()];
            }
        });
    }
    country
}

#[cfg(test)]
mod tests {
    use super::key_without_vary;

    #[test]
    fn a_key_without_vary_cookies() {
        let key = b"http://a/x?vary y\nvary _lscache_vary=1\nvary X-Magento-Vary=2\nrule 1";
        assert_eq!(key_without_vary(key).unwrap(), b"http://a/x?vary y\nrule 1");
        assert_eq!(key_without_vary(b"http://a/x\ncookie vary =1"), None);
    }
}
