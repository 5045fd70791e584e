//! `Require`, `Order`, `Allow`, `Deny`, `Satisfy`, and passwords.
//!
//! In Apache, sections about files win over directories, deeper directories over outer ones, and later sections over
//! earlier ones. The rules stand in that order, so that the first one that matches is Apache's decision. A decision
//! that allows exempts only if its conditions are exact.

use super::Translation;
use super::section::{SectionScope, with_path_behind};
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::report::Judgements;
use crate::source::{Directive, SourceLine};

/// The decisions of all sections.
#[derive(Debug, Default)]
pub(super) struct AccessDecisions {
    all: Vec<AccessDecision>,
}

#[derive(Debug)]
struct AccessDecision {
    at: SourceLine,
    conditions: RuleConditions,
    is_exact: bool,
    /// The place in Apache's order; later ones win.
    rank: ((u8, usize), usize),
    /// The conditions of a restriction.
    restricted: RuleConditions,
    access: ClientAccess,
    password: Option<(String, Option<String>)>,
}

/// The clients that a section allows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientAccess {
    All,
    Nobody,
    /// Only these networks.
    Only(Vec<String>),
    /// All but these networks.
    Except(Vec<String>),
    /// Only the first networks, without the second ones.
    OnlyBut(Vec<String>, Vec<String>),
    /// Everybody with a password.
    WithPassword,
}

/// Reads the access directives of a block.
pub(super) fn collect(
    translation: &mut Translation<'_>,
    all: &[Directive],
    context: &SectionScope,
) {
    let judgements = &mut *translation.judgements;
    let is_any =
        all.iter().any(|one| one.name == "satisfy" && one.word(0).eq_ignore_ascii_case("any"));
    let granted = granted(judgements, all, is_any);
    let word =
        |name: &str| all.iter().find(|one| one.name == name).map(|one| one.word(0).to_owned());
    let (file, realm) = (word("authuserfile"), word("authname"));
    judge_passwords(judgements, all);
    let needs_password = granted == Some(ClientAccess::WithPassword);
    let has_password = needs_password
        || all.iter().any(|one| one.name == "require" && one.word(0).contains("user"));
    let password = file.filter(|_| has_password).map(|file| (file, realm));
    if has_password && password.is_none() {
        for one in all.iter().filter(|one| one.name == "require") {
            judgements.lost_restriction(one, "AuthUserFile is not in the same file or section");
        }
    }
    let Some(mut access) = granted else { return };
    // With `Satisfy Any`, the networks need no password.
    let mut conditions = context.conditions.clone();
    if let (true, Some(_), ClientAccess::Only(networks)) = (is_any, &password, &access) {
        let except = networks.iter().map(|network| format!("!{network}")).collect();
        conditions = conditions.with("from", except);
        access = ClientAccess::WithPassword;
    }
    let at = all.iter().find(|one| {
        matches!(
            one.name.as_str(),
            "require" | "order" | "deny" | "allow" | "<requireall" | "<requireany"
        )
    });
    let rank = (context.rank(), translation.access.all.len());
    let restricted =
        if context.is_files { with_path_behind(&conditions) } else { conditions.clone() };
    let at = at.map_or(SourceLine::default(), |one| one.at);
    translation.access.all.push(AccessDecision {
        at,
        conditions,
        is_exact: context.is_exact,
        rank,
        restricted,
        access,
        password,
    });
}

/// The access that a block gives. `Require`, and `Order` with its lists, both apply, unless `Satisfy Any` is there.
fn granted(judgements: &mut Judgements, all: &[Directive], is_any: bool) -> Option<ClientAccess> {
    let granted = required(judgements, all, false);
    let Some(ordered) = ordered(judgements, all) else { return granted };
    Some(match granted {
        // The password has a rule of its own.
        Some(ClientAccess::WithPassword) if ordered == ClientAccess::All => {
            ClientAccess::WithPassword
        }
        Some(ClientAccess::WithPassword) if is_any && ordered == ClientAccess::Nobody => {
            ClientAccess::WithPassword
        }
        Some(ClientAccess::WithPassword) | None => ordered,
        Some(known) if is_any => either(known, ordered),
        Some(known) => {
            let is_one_nobody = known == ClientAccess::Nobody || ordered == ClientAccess::Nobody;
            let both = both(known, ordered);
            if both == ClientAccess::Nobody && !is_one_nobody {
                let why = "Require and Deny together: nobody is allowed, wider than in Apache";
                all.iter()
                    .filter(|one| one.name == "require")
                    .for_each(|one| judgements.translated_but(one, why));
            }
            both
        }
    })
}

/// Judges the directives about passwords.
fn judge_passwords(judgements: &mut Judgements, all: &[Directive]) {
    for one in all.iter().filter(|one| {
        matches!(
            one.name.as_str(),
            "authtype" | "authname" | "authuserfile" | "authgroupfile" | "authbasicprovider"
        )
    }) {
        if one.name == "authtype" && !one.word(0).eq_ignore_ascii_case("basic")
            || one.name == "authgroupfile"
        {
            judgements.lost_restriction(one, "only Basic with a file of users");
        } else {
            judgements.translated(one);
        }
    }
}

/// `Require` with its sections.
fn required(judgements: &mut Judgements, all: &[Directive], is_all: bool) -> Option<ClientAccess> {
    let mut found: Option<ClientAccess> = None;
    for one in all {
        let granted = match one.name.as_str() {
            "require" => require(judgements, one),
            "<requireall" | "<requireany" => {
                judgements.translated(one);
                required(judgements, one.inner(), one.name == "<requireall")
            }
            "<requirenone" => {
                judgements.lost_restriction(one, "RequireNone has no counterpart");
                one.inner().iter().for_each(|inner| {
                    judgements.lost_restriction(inner, "RequireNone has no counterpart")
                });
                None
            }
            _ => continue,
        };
        found = match (found, granted) {
            (found, None) => found,
            (None, granted) => granted,
            (Some(one), Some(other)) => {
                Some(if is_all { both(one, other) } else { either(one, other) })
            }
        };
    }
    found
}

/// The access that both allow; the narrower one if there is no exact answer.
fn both(one: ClientAccess, other: ClientAccess) -> ClientAccess {
    match (one, other) {
        (ClientAccess::All, other) | (other, ClientAccess::All) => other,
        (ClientAccess::Except(mut all), ClientAccess::Except(more)) => {
            all.extend(more);
            ClientAccess::Except(all)
        }
        (ClientAccess::Only(only), ClientAccess::Except(denied))
        | (ClientAccess::Except(denied), ClientAccess::Only(only)) => {
            ClientAccess::OnlyBut(only, denied)
        }
        (ClientAccess::OnlyBut(only, mut denied), ClientAccess::Except(more))
        | (ClientAccess::Except(more), ClientAccess::OnlyBut(only, mut denied)) => {
            denied.extend(more);
            ClientAccess::OnlyBut(only, denied)
        }
        (one, other) if one == other => one,
        _ => ClientAccess::Nobody,
    }
}

/// The access that one of the two allows; the narrower one if there is no exact answer.
fn either(one: ClientAccess, other: ClientAccess) -> ClientAccess {
    match (one, other) {
        (ClientAccess::Nobody, other) | (other, ClientAccess::Nobody) => other,
        (ClientAccess::All, _) | (_, ClientAccess::All) => ClientAccess::All,
        (ClientAccess::Only(mut all), ClientAccess::Only(more)) => {
            all.extend(more);
            ClientAccess::Only(all)
        }
        (ClientAccess::WithPassword, _) | (_, ClientAccess::WithPassword) => {
            ClientAccess::WithPassword
        }
        (one, _) => one,
    }
}

fn require(judgements: &mut Judgements, one: &Directive) -> Option<ClientAccess> {
    let words: Vec<&str> = one.words.iter().map(String::as_str).collect();
    let granted = match words.as_slice() {
        ["all", "granted"] => ClientAccess::All,
        ["all", "denied"] => ClientAccess::Nobody,
        ["ip", networks @ ..] => {
            ClientAccess::Only(networks.iter().map(|one| network(one)).collect())
        }
        ["not", "ip", networks @ ..] => {
            ClientAccess::Except(networks.iter().map(|one| network(one)).collect())
        }
        ["local"] => ClientAccess::Only(vec!["127.0.0.0/8".into(), "::1".into()]),
        ["valid-user"] => ClientAccess::WithPassword,
        ["user" | "group", ..] => {
            judgements.lost_restriction(
                one,
                "every user of the file is allowed: give these users a file of their own",
            );
            return Some(ClientAccess::WithPassword);
        }
        _ => {
            judgements.lost_restriction(one, "networks and passwords only");
            return None;
        }
    };
    judgements.translated(one);
    Some(granted)
}

/// A network of Apache: an address, a begin of one (`10.1`), a network with bits or a mask.
fn network(written: &str) -> String {
    if let Some((address, mask)) = written.split_once('/') {
        let bits = mask.parse::<std::net::Ipv4Addr>().map(|mask| u32::from(mask).count_ones());
        return bits.map_or_else(|_| written.to_owned(), |bits| format!("{address}/{bits}"));
    }
    if written.parse::<std::net::IpAddr>().is_ok() {
        return written.to_owned();
    }
    let parts: Vec<&str> = written.trim_end_matches('.').split('.').collect();
    let is_begin = parts.len() < 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    if is_begin {
        let zeros = ".0".repeat(4 - parts.len());
        return format!("{}{zeros}/{}", parts.join("."), 8 * parts.len());
    }
    written.to_owned()
}

/// `Order`, `Allow from` and `Deny from` of Apache 2.2.
fn ordered(judgements: &mut Judgements, all: &[Directive]) -> Option<ClientAccess> {
    let (mut allowed, mut denied): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut order = None;
    let mut is_there = false;
    for one in all {
        match one.name.as_str() {
            "order" => {
                let text = one.words.join("").to_ascii_lowercase();
                order = Some(text.starts_with("deny"));
                judgements.translated(one);
                is_there = true;
            }
            "allow" | "deny" => {
                let list = if one.name == "allow" { &mut allowed } else { &mut denied };
                let words = one.words.iter().skip(1);
                let is_known = |word: &String| {
                    word == "all"
                        || network(word).parse::<std::net::IpAddr>().is_ok()
                        || network(word).contains('/')
                };
                if words.clone().all(is_known) {
                    list.extend(
                        words.map(|word| if word == "all" { word.clone() } else { network(word) }),
                    );
                    judgements.translated(one);
                } else if one.name == "deny" {
                    judgements.lost_restriction(
                        one,
                        "networks only: names and variables have no counterpart",
                    );
                } else {
                    judgements
                        .translated_but(one, "wider: names and variables have no counterpart");
                }
                is_there = true;
            }
            _ => {}
        }
    }
    if !is_there {
        return None;
    }
    let is_deny_first = order.unwrap_or(true);
    let (allows_all, denies_all) =
        (allowed.iter().any(|one| one == "all"), denied.iter().any(|one| one == "all"));
    Some(match (is_deny_first, allows_all, denies_all) {
        (true, true, _) => ClientAccess::All,
        (true, false, true) if allowed.is_empty() => ClientAccess::Nobody,
        (true, false, true) => ClientAccess::Only(allowed),
        (true, false, false) if denied.is_empty() => ClientAccess::All,
        // A client in both lists is allowed in Apache, and refused here.
        (true, false, false) => ClientAccess::Except(denied),
        (false, _, true) => ClientAccess::Nobody,
        (false, true, false) if denied.is_empty() => ClientAccess::All,
        (false, true, false) => ClientAccess::Except(denied),
        (false, false, false) if allowed.is_empty() => ClientAccess::Nobody,
        (false, false, false) if denied.is_empty() => ClientAccess::Only(allowed),
        (false, false, false) => ClientAccess::OnlyBut(allowed, denied),
    })
}

impl AccessDecisions {
    /// Writes the rules, the strongest first.
    pub(super) fn emit(mut self, translation: &mut Translation<'_>) {
        self.all.sort_by_key(|one| std::cmp::Reverse(one.rank));
        for index in 0..self.all.len() {
            let decision = &self.all[index];
            let weaker = &self.all[index + 1..];
            let restricts_later = weaker.iter().any(|one| one.access != ClientAccess::All);
            let remark = (!decision.is_exact).then(|| "wider than in Apache".to_owned());
            let rule = RuleDraft::new(decision.at, decision.conditions.clone()).remarked(remark);
            let restricted = &decision.restricted;
            let deny = |conditions: RuleConditions| {
                RuleDraft { conditions, ..rule.clone() }.with("deny", "403".into())
            };
            let rules = &mut translation.site.rules;
            let with = |networks: &[String], sign: &str| {
                let words = networks.iter().map(|network| format!("{sign}{network}")).collect();
                restricted.clone().with("from", words)
            };
            match &decision.access {
                ClientAccess::Nobody => rules.push(deny(restricted.clone())),
                ClientAccess::Only(networks) => rules.push(deny(with(networks, "!"))),
                ClientAccess::Except(networks) => rules.push(deny(with(networks, ""))),
                ClientAccess::OnlyBut(allowed, denied) => {
                    rules.push(deny(with(allowed, "!")));
                    rules.push(deny(with(denied, "")));
                }
                ClientAccess::All | ClientAccess::WithPassword => {
                    let is_some = !decision.conditions.is_empty();
                    if restricts_later && is_some && decision.is_exact {
                        let has_deny = weaker.iter().any(|one| {
                            !matches!(one.access, ClientAccess::All | ClientAccess::WithPassword)
                        });
                        if has_deny {
                            rules.push(rule.clone().with("deny", "false".into()));
                        }
                        if decision.access == ClientAccess::All
                            && weaker.iter().any(|one| one.access == ClientAccess::WithPassword)
                        {
                            rules.push(rule.clone().with("auth_file", "false".into()));
                        }
                    }
                }
            }
            if let Some((file, realm)) = &decision.password {
                let conditions = restricted.clone();
                let rule = RuleDraft { conditions, ..rule.clone() };
                let mut rule = rule.with("auth_file", string(file));
                if let Some(realm) = realm {
                    rule = rule.with("auth_realm", string(realm));
                }
                translation.site.rules.push(rule);
            }
        }
    }
}
