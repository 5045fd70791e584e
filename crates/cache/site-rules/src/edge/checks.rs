//! `limit` and `auth_file`: requests that are counted, and requests that need a password.
//!
//! Of each kind, the first rule that applies decides, as for `deny` (`access`); `limit = false` and `auth_file = false`
//! exempt. A path is tested in all its forms.
//!
//! Not here: the counts (`miss_control`), the passwords (`passwords`), the responses (`exchange`).

use super::EdgeRules;
use super::access::{AccessRequest, PageAccess, exempts, restricts, restricts_url};
use crate::raw::{self, AuthFile, LimitKeys, RateLimit};
use crate::rules::SiteRules;
use miss_control::RequestRate;
use rule_conditions::{RequestConditions, ResponseConditions};

/// The default of `auth_realm`.
const REALM: &str = "Restricted";
/// The longest `auth_realm`, in bytes.
const REALM_BYTES_MAX: usize = 200;

/// A rule of one of these kinds.
#[derive(Clone, Debug)]
pub(crate) struct Check<T> {
    /// The number of the rule, from 1.
    pub(super) number: usize,
    pub(super) conditions: RequestConditions,
    /// The demand of the rule; `None`: it exempts.
    pub(super) demand: Option<T>,
}

/// A password that requests need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRule {
    /// The number of the rule, from 1.
    pub rule: usize,
    /// The path of the password file, as it was written.
    pub file: Box<str>,
    /// The name of the protected area, which browsers may show.
    pub realm: Box<str>,
    /// Whether the origin gets the password and the user, and answers every request.
    pub is_forwarded: bool,
}

/// A limit on the rate of requests of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRule {
    /// The number of the rule, from 1.
    pub rule: usize,
    /// The requests of a client that it allows.
    pub rate: RequestRate,
    /// Which requests count under it.
    pub count: LimitCount,
}

/// Which requests a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitCount {
    /// Those that are sent to the origin.
    Origin,
    /// All, also those that are answered from the cache.
    All,
}

impl SiteRules {
    /// The password that a request needs.
    pub fn auth_rule(&self, asked: &AccessRequest<'_>) -> Option<&AuthRule> {
        first(&self.edge.auth, asked)
    }

    /// All rules that demand a password.
    pub fn auth_rules(&self) -> impl Iterator<Item = &AuthRule> {
        self.edge.auth.iter().filter_map(|check| check.demand.as_ref())
    }

    /// The limit under which a request counts.
    pub fn limit_rule(&self, asked: &AccessRequest<'_>) -> Option<LimitRule> {
        first(&self.edge.limits, asked).copied()
    }

    /// Whether a rule has `limit`.
    pub fn has_limits(&self) -> bool {
        !self.edge.limits.is_empty()
    }

    /// Whether a rule has `limit` or `auth_file`.
    #[inline]
    pub fn has_checks(&self) -> bool {
        !self.edge.limits.is_empty() || !self.edge.auth.is_empty()
    }

    /// Whether some client that sends this request needs a password.
    pub(super) fn needs_password(&self, asked: &AccessRequest<'_>) -> bool {
        applies_to_some(&self.edge.auth, |_| true, asked)
    }

    /// Whether a rule has `auth_file`.
    #[inline]
    pub fn has_passwords(&self) -> bool {
        !self.edge.auth.is_empty()
    }

    /// Whether this request counts under a limit for some client, also if a cached page answers it.
    pub(super) fn is_counted(&self, asked: &AccessRequest<'_>) -> bool {
        let counts_all = |limit: &LimitRule| limit.count == LimitCount::All;
        applies_to_some(&self.edge.limits, counts_all, asked)
    }

    /// The password that this request needs, if that is the same for all clients. `None` also if the origin gets the
    /// password, because it answers each request.
    pub(super) fn password_of_all(&self, asked: &AccessRequest<'_>) -> Option<PageAccess> {
        let mut is_for_all = true;
        for Check { conditions, demand, .. } in &self.edge.auth {
            let is_for_some = conditions.distinguish_clients();
            match demand {
                Some(auth) if restricts_url(conditions, asked) => {
                    let is_plain = is_for_all && !is_for_some && !auth.is_forwarded;
                    return is_plain.then_some(PageAccess::Password(auth.rule));
                }
                None if is_for_some => is_for_all &= !restricts_url(conditions, asked),
                None if exempts(conditions, asked) => break,
                Some(_) | None => {}
            }
        }
        Some(PageAccess::Everybody)
    }
}

impl EdgeRules {
    /// Whether a rule may refuse a request that a cached page could answer.
    pub(super) fn may_refuse(&self) -> bool {
        let mut limits = self.limits.iter().filter_map(|check| check.demand);
        !self.access.is_empty()
            || !self.auth.is_empty()
            || limits.any(|limit| limit.count == LimitCount::All)
    }
}

/// The demand of the first rule that applies.
fn first<'r, T>(checks: &'r [Check<T>], asked: &AccessRequest<'_>) -> Option<&'r T> {
    let applies = |check: &&Check<T>| match check.demand {
        Some(_) => restricts(&check.conditions, asked),
        None => exempts(&check.conditions, asked),
    };
    checks.iter().find(applies)?.demand.as_ref()
}

/// Whether one of these rules applies to some client that sends this request, and no earlier one exempts all.
fn applies_to_some<T>(
    checks: &[Check<T>],
    is_one: impl Fn(&T) -> bool,
    asked: &AccessRequest<'_>,
) -> bool {
    for Check { conditions, demand, .. } in checks {
        match demand {
            Some(demand) if is_one(demand) && restricts_url(conditions, asked) => {
                return true;
            }
            None if !conditions.distinguish_clients() && exempts(conditions, asked) => {
                return false;
            }
            Some(_) | None => {}
        }
    }
    false
}

/// Adds the limit and the password of a rule. `number` counts from 1.
pub(super) fn read(
    edge: &mut EdgeRules,
    (number, raw): (usize, &raw::Rule),
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
) -> Result<(), String> {
    let (limit, auth) = (limit(raw, number)?, auth(raw, number)?);
    let key = if limit.is_some() { "limit" } else { "auth_file" };
    if response.is_some() && (limit.is_some() || auth.is_some()) {
        return Err(format!(
            "{key}: is decided before the response, so when_status and when_header cannot be conditions"
        ));
    }
    let conditions = || conditions.clone();
    edge.limits.extend(limit.map(|demand| Check { number, conditions: conditions(), demand }));
    edge.auth.extend(auth.map(|demand| Check { number, conditions: conditions(), demand }));
    Ok(())
}

/// The limit of a rule: `None` if it has none, `Some(None)` if it exempts.
fn limit(raw: &raw::Rule, number: usize) -> Result<Option<Option<LimitRule>>, String> {
    let LimitKeys { rate, burst, count } = match &raw.limit {
        None => return Ok(None),
        Some(RateLimit::Flag(false)) => return Ok(Some(None)),
        Some(RateLimit::Flag(true)) => {
            return Err("limit: true: write the rate, for instance { rate = \"10/m\" }".into());
        }
        Some(RateLimit::Rate(keys)) => keys,
    };
    let rate = RequestRate::read(rate).map_err(|why| format!("limit.rate: {why}"))?;
    let rate = match burst {
        Some(burst) => rate.with_burst(*burst).map_err(|why| format!("limit.burst: {why}"))?,
        None => rate,
    };
    let count = match count.as_deref() {
        None | Some("origin") => LimitCount::Origin,
        Some("all") => LimitCount::All,
        Some(other) => return Err(format!("limit.count: {other:?}: origin or all")),
    };
    Ok(Some(Some(LimitRule { rule: number, rate, count })))
}

/// The password of a rule: `None` if it has none, `Some(None)` if it exempts.
fn auth(raw: &raw::Rule, number: usize) -> Result<Option<Option<AuthRule>>, String> {
    let file = match &raw.auth_file {
        Some(AuthFile::Path(file)) if !file.is_empty() => file,
        Some(AuthFile::Path(_)) => return Err("auth_file: is empty; write a path".into()),
        Some(AuthFile::Flag(true)) => {
            return Err("auth_file: true: write the path of a password file".into());
        }
        other => {
            let key = match (&raw.auth_realm, raw.auth_forward) {
                (Some(_), _) => "auth_realm",
                (_, Some(_)) => "auth_forward",
                (None, None) => return Ok(other.as_ref().map(|_| None)),
            };
            return Err(format!("{key}: belongs to auth_file with the path of a file"));
        }
    };
    let realm = raw.auth_realm.as_deref().unwrap_or(REALM);
    let is_visible = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if realm.len() > REALM_BYTES_MAX || !realm.bytes().all(is_visible) {
        return Err(format!(
            "auth_realm: {realm:?}: at most {REALM_BYTES_MAX} visible ASCII characters, without quotes and backslashes"
        ));
    }
    Ok(Some(Some(AuthRule {
        rule: number,
        file: file.as_str().into(),
        realm: realm.into(),
        is_forwarded: raw.auth_forward.unwrap_or(false),
    })))
}
