//! Denials, networks, passwords, limits, and which scripts run.
//!
//! Each location has one decision for each kind, its own or that of the block around it. The rules stand in the order in
//! which nginx chooses locations; a location without a restriction exempts its paths if a later rule could match them.
//! A location that runs every script exempts only if it says so, because its paths are those of all others.

use super::Translation;
use super::locations::{Location, LocationKind};
use super::scope::Scope;
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::pattern::{GlobShape, script_globs};
use crate::source::{Directive, SourceLine};
use std::iter::successors;

/// A decision about access.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    Denied(u16),
    /// Networks in their order, each with whether it is allowed. All others are allowed.
    Networks(Vec<(bool, String)>),
}

/// A password.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Password {
    file: String,
    realm: Option<String>,
    /// The networks that need none.
    except: Vec<String>,
}

/// Writes the rules of all locations, and of the server last.
pub(super) fn emit(
    translation: &mut Translation<'_>,
    server: &Scope<'_>,
    locations: &[Location<'_>],
) {
    let outer = access(translation, server);
    let all: Vec<_> = inherited(locations, &outer, |location| access(translation, &location.scope));
    let explicit = |location: &Location<'_>| !location.scope.networks.is_empty();
    decide(translation, locations, &Decisions { all, outer, key: "deny" }, explicit, access_rules);

    let outer = password(translation, server);
    let all = inherited(locations, &outer, |location| password(translation, &location.scope));
    let explicit = |location: &Location<'_>| !location.scope.auth.is_empty();
    decide(
        translation,
        locations,
        &Decisions { all, outer, key: "auth_file" },
        explicit,
        |password, _, rule| {
            let except: Vec<String> =
                password.except.iter().map(|network| format!("!{network}")).collect();
            let conditions = rule.conditions.clone().with("from", except);
            let mut rule =
                RuleDraft { conditions, ..rule }.with("auth_file", string(&password.file));
            if let Some(realm) = &password.realm {
                rule = rule.with("auth_realm", string(realm));
            }
            vec![rule]
        },
    );

    let outer = limit(translation, server);
    let all = inherited(locations, &outer, |location| limit(translation, &location.scope));
    decide(
        translation,
        locations,
        &Decisions { all, outer, key: "limit" },
        |_| false,
        |limit, _, rule| vec![rule.with("limit", limit.clone())],
    );
    scripts(translation, locations);
    internal_files(translation, locations);
}

/// The decision of each location. `own` has `None` if the location inherits.
fn inherited<D: Clone>(
    locations: &[Location<'_>],
    outer: &Option<Option<D>>,
    mut own: impl FnMut(&Location<'_>) -> Option<Option<D>>,
) -> Vec<Option<Option<D>>> {
    let own: Vec<Option<Option<D>>> = locations.iter().map(&mut own).collect();
    let of = |index: usize| {
        let mut at = Some(index);
        // A location has at most as many around it as there are locations.
        for _ in 0..=locations.len() {
            let Some(index) = at else { break };
            if own[index].is_some() {
                return own[index].clone();
            }
            at = locations[index].parent;
        }
        outer.clone()
    };
    (0..locations.len()).map(of).collect()
}

/// The decisions of one kind.
struct Decisions<D> {
    /// By location.
    all: Vec<Option<Option<D>>>,
    /// Of the server.
    outer: Option<Option<D>>,
    /// The key that exempts.
    key: &'static str,
}

fn decide<D: Clone + PartialEq>(
    translation: &mut Translation<'_>,
    locations: &[Location<'_>],
    decisions: &Decisions<D>,
    is_explicit: impl Fn(&Location<'_>) -> bool,
    rules: impl Fn(&D, bool, RuleDraft) -> Vec<RuleDraft>,
) {
    let decided = |one: usize| decisions.all[one].clone().flatten();
    let outer = decisions.outer.clone().flatten();
    let mut has_catch_all = false;
    for (index, location) in locations.iter().enumerate() {
        if location.kind == LocationKind::Named {
            continue;
        }
        let own = decided(index);
        let later = (index + 1..locations.len()).filter(|later| {
            locations[*later].kind != LocationKind::Named && location.may_meet(&locations[*later])
        });
        let differs = later.map(decided).any(|other| other != own);
        has_catch_all |= location.is_catch_all();
        if !differs
            && (own == outer && !location.is_catch_all() || own.is_none() && outer.is_none())
        {
            continue;
        }
        let rule = RuleDraft::new(location.directive.at, location.conditions.clone());
        match own {
            Some(_) if is_covered(locations, index, decided) => {}
            Some(decision) => {
                let is_sure = location.is_exact && is_chosen_first(locations, index);
                let remark = (!location.is_exact).then(|| "wider than in nginx".to_owned());
                if !is_sure && decisions.key != "deny" && replaces(locations, index, decided) {
                    let why = "it would replace the password or limit of a location after it";
                    translation.judgements.lost_restriction(location.directive, why);
                }
                translation.site.rules.extend(rules(&decision, is_sure, rule.remarked(remark)));
            }
            None if location.is_catch_all() => {}
            None => {
                let may_exempt = location.is_exact
                    && is_chosen_first(locations, index)
                    && (!location.runs_any_script() || is_explicit(location))
                    && !(location.kind == LocationKind::Prefix
                        && later_is_preferred(locations, index));
                if may_exempt && location.scope.php.is_some() && decisions.key == "deny" {
                    let why = "a path behind the script is refused: wider than in nginx";
                    translation.judgements.translated_but(location.directive, why);
                }
                if may_exempt {
                    translation.site.rules.push(rule.with(decisions.key, "false".into()));
                } else if is_explicit(location) {
                    let why = "this exemption is not translated, because it could be too wide";
                    translation.judgements.translated_but(location.directive, why);
                } else if location.runs_any_script() && decisions.key == "deny" {
                    let why = "restrictions of other locations apply to scripts, too: wider than in nginx";
                    translation.judgements.translated_but(location.directive, why);
                } else if location.parent.is_some() && differs {
                    let why =
                        "restrictions of other locations apply here, too: wider than in nginx";
                    translation.judgements.translated_but(location.directive, why);
                }
            }
        }
    }
    if let (Some(decision), false) = (outer, has_catch_all) {
        let rule = RuleDraft::new(SourceLine::default(), RuleConditions::default());
        let rule = rule.remarked(Some("for the whole server".into()));
        translation.site.rules.extend(rules(&decision, true, rule));
    }
}

/// Whether nginx takes this location for each path that it matches and no earlier one does. One in another location is
/// an expression only within the paths of the outer one, or loses against a longer prefix beside the outer one.
fn is_chosen_first(locations: &[Location<'_>], index: usize) -> bool {
    let location = &locations[index];
    let Some(parent) = location.parent else { return true };
    let mut outermost = parent;
    while let Some(outer) = locations[outermost].parent {
        outermost = outer;
    }
    let outer = &locations[outermost];
    let is_longer = |other: &Location<'_>| {
        other.parent.is_none()
            && matches!(other.kind, LocationKind::Prefix | LocationKind::Preferred)
            && other.text.len() > outer.text.len()
            && (location.text.starts_with(&other.text) || other.text.starts_with(&location.text))
    };
    // A preferred prefix in a plain one does not keep nginx from the expressions beside the outer one.
    let is_kept = location.kind != LocationKind::Preferred || outer.kind == LocationKind::Preferred;
    location.kind != LocationKind::Regex
        && is_kept
        && outer.kind != LocationKind::Regex
        && !locations.iter().any(is_longer)
}

/// Whether a later location has another decision of the same kind for one of these paths.
fn replaces<D: PartialEq>(
    locations: &[Location<'_>],
    index: usize,
    decision: impl Fn(usize) -> Option<D>,
) -> bool {
    let own = decision(index);
    (index + 1..locations.len()).any(|later| {
        let other = decision(later);
        other.is_some() && other != own && locations[index].may_meet(&locations[later])
    })
}

/// Whether the location around this one has the same decision, and no location between them has another one for paths
/// of both. The rule of the outer location is then enough.
fn is_covered<D: PartialEq>(
    locations: &[Location<'_>],
    index: usize,
    decision: impl Fn(usize) -> D,
) -> bool {
    let location = &locations[index];
    let Some(outer) = location.parent.filter(|outer| *outer > index) else { return false };
    let own = decision(index);
    let around = |one: &usize| locations[*one].parent;
    let meets = |one: usize| {
        location.may_meet(&locations[one]) && locations[outer].may_meet(&locations[one])
    };
    let differs = |between: usize| {
        locations[between].kind != LocationKind::Named
            && decision(between) != own
            && successors(Some(between), around).all(meets)
    };
    locations[outer].kind != LocationKind::Named
        && decision(outer) == own
        && !(index + 1..outer).any(differs)
}

/// Whether this plain prefix stands before expressions because of a preferred one after it.
fn later_is_preferred(locations: &[Location<'_>], index: usize) -> bool {
    locations[index + 1..]
        .iter()
        .any(|later| later.kind == LocationKind::Preferred || later.kind == LocationKind::Regex)
}

fn access(translation: &mut Translation<'_>, scope: &Scope<'_>) -> Option<Option<Access>> {
    for one in &scope.networks {
        translation.judgements.translated(one);
    }
    if let Some(status) = scope.answer.and_then(|one| denial_status(one.word(0))) {
        return Some(Some(Access::Denied(status)));
    }
    if let Some(internal) = scope.internal {
        translation.judgements.translated(internal);
        return Some(Some(Access::Denied(404)));
    }
    if scope.networks.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    for one in &scope.networks {
        let (network, allowed) = (translation.expanded(one.word(0)), one.name == "allow");
        match network.as_str() {
            "all" if all.is_empty() => {
                return Some((!allowed).then_some(Access::Denied(403)));
            }
            "all" => {
                if !allowed {
                    all.push((false, "all".to_owned()));
                }
                break;
            }
            "unix:" => {
                let why = "a client over a Unix socket is in no network";
                translation.judgements.translated_but(one, why);
            }
            _ => all.push((allowed, network)),
        }
    }
    // With `satisfy any`, the networks are those without a password.
    let is_password =
        scope.satisfy_any == Some(true) && !scope.auth.is_empty() && only_these(&all).is_some();
    Some((!is_password && !all.is_empty()).then_some(Access::Networks(all)))
}

/// The allowed networks, if all others are denied.
fn only_these(all: &[(bool, String)]) -> Option<Vec<String>> {
    let ((false, last), begin) = all.split_last().filter(|(last, _)| last.1 == "all")? else {
        return None;
    };
    let _ = last;
    begin.iter().map(|(allowed, network)| allowed.then(|| network.clone())).collect()
}

/// The rules of a decision. If it is not sure that the location is nginx's choice, none of them exempts.
fn access_rules(access: &Access, is_sure: bool, rule: RuleDraft) -> Vec<RuleDraft> {
    match access {
        Access::Denied(status) => vec![rule.with("deny", status.to_string())],
        Access::Networks(all) => {
            if let Some(allowed) = only_these(all) {
                let except = allowed.iter().map(|network| format!("!{network}")).collect();
                let conditions = rule.conditions.clone().with("from", except);
                return vec![RuleDraft { conditions, ..rule }.with("deny", "403".into())];
            }
            if !is_sure {
                return denied_networks(all, &rule);
            }
            let of = |(allowed, network): &(bool, String)| {
                let words = if network == "all" { Vec::new() } else { vec![network.clone()] };
                let conditions = rule.conditions.clone().with("from", words);
                let value = if *allowed { "false" } else { "403" };
                RuleDraft { conditions, ..rule.clone() }.with("deny", value.into())
            };
            all.iter().map(of).collect()
        }
    }
}

/// The denied networks, each without those that were allowed before.
fn denied_networks(all: &[(bool, String)], rule: &RuleDraft) -> Vec<RuleDraft> {
    let (mut allowed, mut rules) = (Vec::new(), Vec::new());
    for (is_allowed, network) in all {
        if *is_allowed {
            allowed.push(format!("!{network}"));
            continue;
        }
        let own = (network != "all").then(|| network.clone());
        let words = own.into_iter().chain(allowed.iter().cloned()).collect();
        let conditions = rule.conditions.clone().with("from", words);
        rules.push(RuleDraft { conditions, ..rule.clone() }.with("deny", "403".into()));
    }
    rules
}

/// The status of `return`, if it refuses the request.
pub(super) fn denial_status(written: &str) -> Option<u16> {
    match written.parse::<u16>().ok()? {
        status @ (403 | 404 | 405 | 410 | 503) => Some(status),
        400..=499 => Some(403),
        _ => None,
    }
}

fn password(translation: &mut Translation<'_>, scope: &Scope<'_>) -> Option<Option<Password>> {
    if scope.auth.is_empty() {
        return None;
    }
    let word = |name: &str| scope.auth.iter().find(|one| one.name == name).map(|one| one.word(0));
    let realm = word("auth_basic").map(str::to_owned);
    for one in &scope.auth {
        translation.judgements.translated(one);
    }
    if realm.as_deref() == Some("off") {
        return Some(None);
    }
    let Some(file) = word("auth_basic_user_file") else {
        for one in &scope.auth {
            let why = "auth_basic and auth_basic_user_file in different blocks";
            translation.judgements.lost_restriction(one, why);
        }
        return None;
    };
    let mut networks = Vec::new();
    if scope.satisfy_any == Some(true) {
        let all: Vec<(bool, String)> = scope
            .networks
            .iter()
            .map(|one| (one.name == "allow", translation.expanded(one.word(0))))
            .collect();
        networks = only_these(&all).unwrap_or_default();
    }
    Some(Some(Password { file: translation.expanded(file), realm, except: networks }))
}

fn limit(translation: &mut Translation<'_>, scope: &Scope<'_>) -> Option<Option<String>> {
    let one = scope.limit?;
    let value = |key: &str| one.words.iter().find_map(|word| word.strip_prefix(key));
    let rate = value("zone=").and_then(|zone| translation.zones.get(zone)).cloned();
    let Some(rate) = rate else {
        translation.judgements.lost_restriction(one, "its limit_req_zone is not in these files");
        return None;
    };
    let burst: u32 = value("burst=").and_then(|burst| burst.parse().ok()).unwrap_or(0);
    if one.words.iter().any(|word| word == "nodelay") || burst == 0 {
        translation.judgements.translated(one);
    } else {
        translation.judgements.translated_but(one, "a request of the burst is answered at once");
    }
    Some(Some(format!("{{ rate = {}, burst = {burst}, count = \"all\" }}", string(&rate))))
}

/// Which scripts run: entry points if no location runs all, else `php = false` for the locations that run none.
fn scripts(translation: &mut Translation<'_>, locations: &[Location<'_>]) {
    let generic = locations.iter().position(Location::runs_any_script);
    let running: Vec<&Location<'_>> =
        locations.iter().filter(|one| one.scope.php.is_some()).collect();
    let Some(generic) = generic else {
        if !running.is_empty() {
            entry_points(translation, locations, &running);
        }
        return;
    };
    let why = "a script that is missing is answered by the front controller";
    translation.judgements.translated_but(locations[generic].directive, why);
    let script = GlobShape::of("**.php");
    for (index, location) in locations[..generic].iter().enumerate() {
        let has_php = |one: &Location<'_>| one.scope.php.is_some() || one.scope.answer.is_some();
        let nested = locations.iter().any(|inner| inner.parent == Some(index) && has_php(inner));
        let runs_none = !has_php(location)
            && !nested
            && location.kind != LocationKind::Named
            && location.parent.is_none_or(|outer| locations[outer].is_catch_all())
            && location.shapes.iter().any(|shape| shape.may_meet(&script));
        let is_denied =
            location.scope.networks.iter().any(|one| one.word(0) == "all" && one.name == "deny");
        if runs_none && !is_denied && !location.is_catch_all() && location.scope.internal.is_none()
        {
            let rule = RuleDraft::new(location.directive.at, location.conditions.clone());
            let rule = rule.remarked(Some("no fastcgi_pass: scripts do not run".into()));
            translation.site.rules.push(rule.with("php", "false".into()));
            let why = "nginx sends the source of scripts here; Pagewell answers 404";
            translation.judgements.translated_but(location.directive, why);
        }
    }
}

fn entry_points(
    translation: &mut Translation<'_>,
    locations: &[Location<'_>],
    running: &[&Location<'_>],
) {
    let (mut globs, mut regexes, mut unnamed) = (Vec::new(), Vec::new(), None);
    for location in running {
        let outer = location.parent.map(|index| &locations[index]);
        match (location.kind, &location.regex) {
            (LocationKind::Regex, Some(regex)) if !is_script_expression(location, outer) => {
                match outer.filter(|outer| ends_scripts(regex) && is_prefix(outer)) {
                    // The scripts below the location around the expression.
                    Some(outer) => globs.push(format!("{}**.php", outer.text)),
                    None => {
                        let why = "the scripts that run here cannot be named: they are refused";
                        translation.judgements.translated_but(location.directive, why);
                        unnamed = Some(location.directive);
                    }
                }
            }
            (LocationKind::Regex, Some(regex)) => match script_globs(regex) {
                Some(all) => globs.extend(all),
                None => regexes.push((location.directive, regex.clone())),
            },
            (LocationKind::Exact, _) if location.text.ends_with(".php") => {
                globs.push(location.text.clone());
            }
            (LocationKind::Prefix | LocationKind::Preferred, _) => {
                globs.push(format!("{}**.php", location.text));
            }
            _ => {}
        }
    }
    globs.dedup();
    if let (Some(directive), true) = (unnamed, globs.is_empty() && regexes.is_empty()) {
        let why = "every script runs: write site.entry_points";
        return translation.judgements.lost_restriction(directive, why);
    }
    // The root of a site has a front controller: without one of its own, the first index.
    let is_fixed = |glob: &&String| !glob.contains('*') && glob.ends_with("/index.php");
    let index = globs.iter().find(is_fixed).map(|glob| glob[1..].to_owned());
    if translation.site.front_controller.is_none() && !globs.iter().any(|glob| fits_index(glob)) {
        translation.site.front_controller = index;
    }
    if regexes.is_empty() {
        translation.site.entry_points = (!globs.is_empty()).then_some(globs);
        return;
    }
    // Expressions have no globs: the scripts that run are exempt from a rule for all.
    let mut exempt = |at: SourceLine, conditions: RuleConditions| {
        translation.site.rules.push(RuleDraft::new(at, conditions).with("php", "true".into()));
    };
    let at = regexes[0].0.at;
    if !globs.is_empty() {
        exempt(at, RuleConditions::default().with("path", globs));
    }
    for (directive, regex) in regexes {
        exempt(directive.at, RuleConditions::default().with_regex(&regex));
    }
    let rule = RuleDraft::new(at, RuleConditions::default());
    let rule = rule.remarked(Some("no other script has a fastcgi_pass".into()));
    translation.site.rules.push(rule.with("php", "false".into()));
}

fn is_prefix(location: &Location<'_>) -> bool {
    matches!(location.kind, LocationKind::Prefix | LocationKind::Preferred)
}

/// Whether an expression says exactly which scripts run. One in another location only sees the paths of that.
fn is_script_expression(location: &Location<'_>, outer: Option<&Location<'_>>) -> bool {
    let regex = location.regex.as_deref().unwrap_or_default();
    let is_inside = |outer: &Location<'_>| {
        outer.is_catch_all() || is_prefix(outer) && regex.starts_with(&format!("^{}", outer.text))
    };
    location.is_exact && outer.is_none_or(is_inside)
}

/// Whether an expression is one for all scripts.
fn ends_scripts(regex: &str) -> bool {
    script_globs(regex).is_some_and(|globs| globs.iter().all(|glob| glob == "/**.php"))
}

/// Whether a glob of scripts has the usual front controller.
fn fits_index(glob: &str) -> bool {
    glob == "/index.php" || glob.starts_with("/*") || glob.starts_with("/index*")
}

/// `internal` with `alias`: the directories of `X-Accel-Redirect`.
fn internal_files(translation: &mut Translation<'_>, locations: &[Location<'_>]) {
    for location in locations {
        let Some(internal) = location.scope.internal else { continue };
        let directory: Option<&Directive> = location.scope.alias.or(location.scope.root);
        let Some(directory) = directory else { continue };
        let prefix = location.text.clone();
        let is_prefix = matches!(location.kind, LocationKind::Prefix | LocationKind::Preferred);
        let mut path = translation.expanded(directory.word(0));
        if directory.name == "root" {
            path = format!("{}{prefix}", path.trim_end_matches('/'));
        }
        if !is_prefix || !prefix.ends_with('/') || path.contains('$') {
            let why = "internal files need a prefix that ends with a slash, and a fixed directory";
            translation.judgements.not_translated(directory, why);
            continue;
        }
        let path = path.trim_end_matches('/').to_owned();
        translation.site.internal_files.push((prefix, path));
        translation.judgements.translated(directory);
        translation.judgements.translated(internal);
    }
}
