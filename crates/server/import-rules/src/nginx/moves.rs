//! `return`, `rewrite`, `try_files` and `if`: redirects, rewrites, the front controller, HTTPS and the canonical host.
//!
//! Not here: the conditions of `if` (`conditions`), and targets (`target`).

use super::Translation;
use super::access::denial_status;
use super::conditions::{self, IfCondition};
use super::locations::{Location, LocationKind};
use super::maps;
use super::scope::Scope;
use super::tries::{fallback, find_front_controller};
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::pattern::{Exactness, PathPattern, script_begins};
use crate::source::Directive;
use crate::target::MoveTarget;

/// Whether a server block refuses all requests: by `return`, or without a certificate.
pub(super) fn only_refuses(server: &Directive) -> bool {
    let refuses = |one: &&Directive| one.name == "return" && denial_status(one.word(0)).is_some();
    let all = server.inner();
    let mut in_root = all.iter().filter(|one| one.name == "location" && one.word(0) == "/");
    rejects_handshakes(server)
        || only_redirects(server)
            && match all.iter().find(|one| one.name == "return") {
                Some(answer) => refuses(&answer),
                None => in_root.any(|one| one.inner().iter().find(refuses).is_some()),
            }
}

fn rejects_handshakes(server: &Directive) -> bool {
    server.inner().iter().any(|one| one.name == "ssl_reject_handshake" && one.word(0) == "on")
}

/// Whether a server block does nothing but redirect or refuse.
pub(super) fn only_redirects(server: &Directive) -> bool {
    if rejects_handshakes(server) {
        return true;
    }
    let all = server.inner();
    let moves = |one: &Directive| {
        one.name == "return"
            || one.name == "rewrite" && one.words.iter().any(|word| word == "permanent")
    };
    let serves =
        |one: &Directive| matches!(one.name.as_str(), "fastcgi_pass" | "try_files" | "proxy_pass");
    let in_root = |one: &Directive| {
        one.name == "location" && one.word(0) == "/" && one.inner().iter().any(moves)
    };
    let is_plain = !all.iter().any(|one| serves(one) || one.inner().iter().any(serves));
    is_plain && all.iter().any(|one| moves(one) || in_root(one))
}

/// The host to which a server redirects all requests with their path, and the status.
pub(super) fn canonical_target(
    translation: &Translation<'_>,
    scope: &Scope<'_>,
) -> Option<(String, u16)> {
    let in_root =
        scope.locations.iter().filter(|one| one.word(0) == "/").flat_map(|one| one.inner());
    let answer = scope.answer.into_iter().chain(in_root.filter(|one| one.name == "return"));
    let written = answer.map(|one| (one.word(0).to_owned(), one.word(1).to_owned()));
    let rewrite =
        scope.rewrites.iter().filter(|one| one.words.iter().any(|word| word == "permanent"));
    let rewritten =
        rewrite.map(|one| ("301".to_owned(), one.word(1).replace("$1", "$request_uri")));
    for (status, target) in written.chain(rewritten) {
        let target = MoveTarget::read(&translation.expanded(&target), None);
        if let Ok(MoveTarget { host: Some(host), needs_path: true, .. }) = target {
            return Some((host, if status == "308" { 308 } else { 301 }));
        }
    }
    None
}

/// The moves of a whole server, before those of its locations.
pub(super) fn server<'a>(translation: &mut Translation<'a>, scope: &Scope<'a>) {
    if let Some(answer) = scope.answer {
        self::answer(translation, answer, &Around::default());
    }
    steps(translation, scope, &Around::default());
}

/// The moves of all locations.
pub(super) fn emit<'a>(
    translation: &mut Translation<'a>,
    server: &Scope<'a>,
    locations: &[Location<'a>],
) {
    for location in locations.iter().filter(|one| one.is_catch_all()) {
        find_front_controller(translation, &location.scope, locations);
    }
    find_front_controller(translation, server, locations);
    let places = locations.iter().enumerate();
    for (index, location) in places.filter(|(_, one)| one.kind != LocationKind::Named) {
        let around = Around {
            conditions: location.conditions.clone(),
            regex: location.regex.clone(),
            is_catch_all: location.is_catch_all(),
            runs_scripts: location.scope.php.is_some(),
        };
        if let Some(answer) = location.scope.answer {
            self::answer(translation, answer, &around);
        } else if location.is_exact && redirects_later(locations, index) {
            let rule = RuleDraft::new(location.directive.at, location.conditions.clone());
            translation.site.rules.push(rule.with("redirect", "false".into()));
        }
        steps(translation, &location.scope, &around);
        if let Some(try_files) = location.scope.try_files {
            fallback(translation, try_files, &around, locations);
        }
    }
    if let Some(try_files) = server.try_files {
        let around = Around { is_catch_all: true, ..Around::default() };
        fallback(translation, try_files, &around, locations);
    }
    for named in locations.iter().filter(|one| one.kind == LocationKind::Named) {
        for one in &named.scope.rewrites {
            if !translation.judgements.has(one) {
                translation.judgements.not_translated(one, "no try_files leads here");
            }
        }
    }
}

/// Whether a later location redirects paths of this one.
fn redirects_later(locations: &[Location<'_>], index: usize) -> bool {
    let redirects = |one: &Location<'_>| {
        one.scope.answer.is_some_and(|answer| denial_status(answer.word(0)).is_none())
    };
    let location = &locations[index];
    !location.is_catch_all()
        && locations[index + 1..].iter().any(|later| redirects(later) && location.may_meet(later))
}

/// Where a directive stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    pub(super) conditions: RuleConditions,
    /// The expression of the location, whose groups are captures.
    pub(super) regex: Option<String>,
    pub(super) is_catch_all: bool,
    pub(super) runs_scripts: bool,
}

impl Around {
    pub(super) fn and(&self, more: &RuleConditions) -> Option<Around> {
        let conditions = self.conditions.and(more)?;
        Some(Around { conditions, ..self.clone() })
    }
}

/// `rewrite` and `if` of a block.
fn steps<'a>(translation: &mut Translation<'a>, scope: &Scope<'a>, around: &Around) {
    for one in &scope.rewrites {
        rewrite(translation, one, around);
    }
    for one in &scope.ifs {
        condition(translation, one, scope, around);
    }
    if let Some(referers) = scope.referers {
        let has_star = referers.words.iter().any(|word| word.contains(['*', '~']));
        if has_star {
            let why = "pages of hosts with a pattern are refused: write each host";
            translation.judgements.translated_but(referers, why);
        } else {
            translation.judgements.translated(referers);
        }
    }
}

/// `return`.
pub(super) fn answer(translation: &mut Translation<'_>, one: &Directive, around: &Around) {
    let (code, target) = match one.words.as_slice() {
        [target] if target.contains("://") => ("302", target.clone()),
        [code, target] => (code.as_str(), target.clone()),
        [code] => (code.as_str(), String::new()),
        _ => ("", String::new()),
    };
    if let Some(status) = denial_status(code) {
        if *one.name == *"return" && one.word(0) != status.to_string() {
            translation.judgements.translated_but(one, &format!("with the status {status}"));
        } else {
            translation.judgements.translated(one);
        }
        // In an `if`, the rule is written there; in a location, by `access`.
        return;
    }
    if !matches!(code, "301" | "302" | "303" | "307" | "308") {
        translation.judgements.not_translated(one, "a fixed content needs a file");
        return;
    }
    let target = MoveTarget::read(&translation.expanded(&target), around.regex.as_deref());
    match target {
        Ok(target) => redirect(translation, one, (code, &target, target.keeps_query), around),
        Err(why) => translation.judgements.not_translated(one, &why),
    }
}

/// A redirect: to HTTPS, to the canonical host, or by a rule.
pub(super) fn redirect(
    translation: &mut Translation<'_>,
    one: &Directive,
    (code, target, keeps_query): (&str, &MoveTarget, bool),
    around: &Around,
) {
    let is_all = around.conditions.is_empty() || around.is_catch_all;
    let permanent = if code == "308" { 308 } else { 301 };
    if is_all
        && target.needs_path
        && target.is_https
        && target.host.is_none()
        && target.text == "$1"
    {
        translation.site.https_redirect = Some(permanent);
        translation.https.push(one.clone());
        translation.judgements.translated(one);
        return;
    }
    if is_all && target.needs_path && target.host.is_some() && target.text.ends_with("$1") {
        let host = target.host.clone().unwrap_or_default();
        translation.site.canonical(&host);
        translation.site.canonical_redirect = Some(permanent);
        // A host that is redirected to itself was requested over plain HTTP.
        if translation.server_names.contains(&host) {
            over_https(translation, one, &target.text, permanent);
        }
        translation.judgements.translated_but(one, "as site.canonical_redirect");
        return;
    }
    let mut conditions = around.conditions.clone();
    if target.needs_path || target.text.contains("$1") {
        let regex = around.regex.clone().filter(|_| !target.needs_path);
        conditions = match (regex, conditions.get("path_regex").is_some()) {
            (Some(regex), _) => with_captures(&conditions, &regex),
            (None, false) => conditions.with_regex("^(/.*)$"),
            (None, true) => {
                translation.judgements.not_translated(
                    one,
                    "the target needs the whole path, and the location its own expression",
                );
                return;
            }
        };
    }
    let mut rule = RuleDraft::new(one.at, conditions).with("redirect", string(&target.text));
    if code != "301" {
        rule = rule.with("redirect_status", code.to_owned());
    }
    translation.site.rules.push(rule);
    if keeps_query || target.text.contains('?') {
        translation.judgements.translated(one);
    } else {
        translation.judgements.translated_but(one, "the query of the client is appended");
    }
}

/// A redirect of plain HTTP to a fixed host: to HTTPS, too, if the target says so.
fn over_https(translation: &mut Translation<'_>, one: &Directive, target: &str, status: u16) {
    if target.starts_with("https://") {
        translation.site.https_redirect = Some(status);
        translation.https.push(one.clone());
    }
}

/// The conditions with the expression instead of the globs that it became.
pub(super) fn with_captures(conditions: &RuleConditions, regex: &str) -> RuleConditions {
    if conditions.get("path_regex").is_some_and(|all| all == [regex.to_owned()]) {
        return conditions.clone();
    }
    conditions.without("path").with_regex(regex)
}

/// `rewrite EXPRESSION TARGET FLAG`.
pub(super) fn rewrite(translation: &mut Translation<'_>, one: &Directive, around: &Around) {
    let [regex, target, flags @ ..] = one.words.as_slice() else {
        translation.judgements.not_translated(one, "it needs an expression and a target");
        return;
    };
    let flag = flags.first().map_or("", String::as_str);
    let regex = translation.expanded(regex);
    let pattern = match PathPattern::read(&regex, false, Exactness::Exact) {
        Ok(pattern) => pattern,
        Err(_) if around.runs_scripts && only_these_scripts(translation, &regex) => {
            let why = "as entry_points: another script is refused, which is wider than in nginx";
            return translation.judgements.translated_but(one, why);
        }
        Err(why) => return translation.judgements.not_translated(one, &why),
    };
    let target = translation.expanded(target);
    let (target, drops_query) = match target.strip_suffix('?') {
        Some(target) => (target.to_owned(), true),
        None => (target, false),
    };
    let target = match MoveTarget::read(&target, Some(&pattern.regex)) {
        Ok(target) => target,
        Err(why) => return translation.judgements.not_translated(one, &why),
    };
    let is_redirect =
        matches!(flag, "redirect" | "permanent") || target.host.is_some() || target.is_https;
    let matches_all = EVERYTHING.contains(&pattern.regex.as_str());
    let uses_captures = target.text.contains('$');
    let conditions = combined(around, &pattern, (matches_all, uses_captures));
    let Some(conditions) = conditions else {
        translation.judgements.not_translated(one, "two expressions for one path");
        return;
    };
    let inner = Around { conditions, regex: Some(pattern.regex.clone()), ..around.clone() };
    if is_redirect {
        let code = if flag == "permanent" { "301" } else { "302" };
        let inner =
            if matches_all { Around { regex: inner.regex, ..around.clone() } } else { inner };
        let mut target = target;
        if matches_all && target.text.ends_with("$1") {
            target.needs_path = true;
        }
        redirect(translation, one, (code, &target, !drops_query), &inner);
    } else {
        internal(translation, one, &target.text, &inner, drops_query);
    }
}

/// Expressions that every path matches.
const EVERYTHING: [&str; 11] =
    ["^", "^.*$", "^(.*)$", "^/(.*)$", "^(.*)", "^/(.*)", ".*", "(.*)", "^/", "/(.*)$", "^(/.*)$"];

/// The conditions of a location and those of an expression in it, if both can stand in one rule.
fn combined(
    around: &Around,
    pattern: &PathPattern,
    (matches_all, uses_captures): (bool, bool),
) -> Option<RuleConditions> {
    let none = RuleConditions::default;
    let own = match (uses_captures, matches_all) {
        (true, _) => none().with_regex(&pattern.regex),
        (false, true) => none(),
        (false, false) => none().with_pattern(pattern),
    };
    let both = around.conditions.and(&own);
    let as_regex = || around.conditions.and(&none().with_regex(&pattern.regex));
    both.or_else(as_regex).or_else(|| implied(around, pattern, &own))
}

/// `^/(?!a|b)` where scripts run: only scripts that begin so are run.
fn only_these_scripts(translation: &mut Translation<'_>, regex: &str) -> bool {
    let inner = regex.strip_prefix("^/(?!").and_then(|rest| rest.strip_suffix(')'));
    let begins = inner.and_then(|inner| script_begins(&format!("^/(?:{inner})")));
    let Some(begins) = begins else { return false };
    translation.site.entry_points = Some(begins);
    true
}

/// The conditions of a location and an expression that implies it: the expression alone.
fn implied(around: &Around, pattern: &PathPattern, own: &RuleConditions) -> Option<RuleConditions> {
    let outer = around.regex.as_deref()?.trim_start_matches("(?i)");
    let inner = pattern.regex.trim_start_matches("(?i)");
    let literal = |regex: &str| {
        let end = regex.find(['(', '[', '.', '*', '+', '?', '\\', '$', '|', '{']);
        regex[..end.unwrap_or(regex.len())].to_owned()
    };
    let is_begin =
        outer.starts_with('^') && literal(outer) == outer && literal(inner).starts_with(outer);
    (is_begin || inner.starts_with(outer)).then(|| own.clone())
}

/// A rewrite within the site.
fn internal(
    translation: &mut Translation<'_>,
    one: &Directive,
    target: &str,
    around: &Around,
    drops_query: bool,
) {
    let front = translation.site.front_controller.as_deref().unwrap_or("index.php");
    let is_front = target.trim_start_matches('/') == front;
    let is_missing = around.conditions.get("file").is_some();
    let others = around.conditions.without("file");
    if is_front && is_missing && others.is_empty() {
        translation.judgements.built_in(one);
        return;
    }
    // A path after the script is PATH_INFO; the script reads it in REQUEST_URI.
    let script = ["/$1", "$1"].iter().find_map(|end| target.strip_suffix(end));
    let script = script.filter(|script| script.ends_with(".php") && !script.contains(['$', '?']));
    if let Some(script) = script.filter(|_| is_missing && around.is_catch_all) {
        translation.site.front_controller = Some(script.trim_start_matches('/').to_owned());
        translation.judgements.translated_but(one, "as front_controller");
        return;
    }
    let target = script.unwrap_or(target);
    let conditions = if script.is_some() {
        around.conditions.without("path_regex")
    } else {
        around.conditions.clone()
    };
    if target.is_empty() || !target.starts_with('/') {
        translation.judgements.not_translated(one, "the target is no path below the root");
        return;
    }
    let rule = RuleDraft::new(one.at, conditions).with("rewrite", string(target));
    translation.site.rules.push(rule);
    if !target.contains(".php") {
        translation.judgements.translated_but(one, "a rewrite is applied once");
    } else if drops_query {
        translation.judgements.translated_but(one, "the query of the client is kept");
    } else {
        translation.judgements.translated(one);
    }
}

/// `if`.
fn condition<'a>(
    translation: &mut Translation<'a>,
    one: &'a Directive,
    scope: &Scope<'a>,
    around: &Around,
) {
    if maps::translated(translation, one, around) {
        return;
    }
    let read = conditions::read(translation, one, scope);
    let refuses = one
        .inner()
        .iter()
        .any(|inner| inner.name == "return" && denial_status(inner.word(0)).is_some());
    match read {
        Ok(IfCondition::NotHttps) => moved_host(translation, one, (None, true), around),
        Ok(IfCondition::OtherHost(host)) => {
            moved_host(translation, one, (Some(&host), false), around);
        }
        Ok(IfCondition::Www) => moved_host(translation, one, (None, false), around),
        Ok(IfCondition::Conditions(more)) => match around.and(&more) {
            Some(around) => body(translation, one, &around),
            None => lost(translation, one, "two expressions for one path", refuses),
        },
        Err(why) => {
            let script_test = "$document_root$fastcgi_script_name";
            if one.words.iter().any(|word| word.contains(script_test)) {
                let why = "a script that is missing is answered by the front controller";
                translation.judgements.built_in_but(one, why);
                one.inner()
                    .iter()
                    .for_each(|inner| translation.judgements.built_in_but(inner, why));
            } else {
                lost(translation, one, &why, refuses);
            }
        }
    }
}

fn lost(translation: &mut Translation<'_>, one: &Directive, why: &str, refuses: bool) {
    let sets_cache = one.inner().iter().all(|inner| {
        let name = inner.word(0).to_ascii_lowercase();
        inner.name == "set" && ["cache", "skip", "bypass"].iter().any(|word| name.contains(word))
    });
    for directive in std::iter::once(one).chain(one.inner()) {
        if refuses {
            translation.judgements.lost_restriction(directive, why);
        } else if sets_cache {
            translation
                .judgements
                .not_needed_because(directive, "Pagewell decides about caching itself");
        } else {
            translation.judgements.not_translated(directive, why);
        }
    }
}

/// An `if` about the host, or the scheme (`is_plain`): its redirect is an option of the site.
fn moved_host(
    translation: &mut Translation<'_>,
    one: &Directive,
    (host, is_plain): (Option<&str>, bool),
    around: &Around,
) {
    for inner in one.inner() {
        let (code, written) = match inner.name.as_str() {
            "return" if denial_status(inner.word(0)).is_some() => {
                refused_host(translation, (one, inner), host, around);
                continue;
            }
            "return" => (inner.word(0).to_owned(), inner.word(1).to_owned()),
            "rewrite" => {
                let code = if inner.word(2) == "permanent" { "301" } else { "302" };
                (code.to_owned(), inner.word(1).replace("$1", "$request_uri"))
            }
            _ => continue,
        };
        let permanent = if code == "308" { 308 } else { 301 };
        match MoveTarget::read(&translation.expanded(&written), None) {
            Ok(target) if target.host.is_some() && target.needs_path => {
                if is_plain {
                    over_https(translation, inner, &target.text, permanent);
                }
                translation.site.canonical(&target.host.unwrap_or_default());
                translation.site.canonical_redirect = Some(permanent);
                translation.judgements.translated(inner);
            }
            Ok(target) if target.is_https && target.needs_path => {
                translation.site.https_redirect = Some(permanent);
                translation.https.push(inner.clone());
                translation.judgements.translated(inner);
            }
            _ if host.is_none() && written.contains("$1") => {
                let why = "write site.host and aliases, and canonical_redirect = 301";
                translation.judgements.not_translated(inner, why);
            }
            _ => translation.judgements.not_translated(inner, "the target is not the same path"),
        }
    }
    if let Some(host) = host {
        translation.site.canonical(host);
    }
    translation.judgements.translated(one);
}

/// A refusal by the scheme or the host.
fn refused_host(
    translation: &mut Translation<'_>,
    (one, inner): (&Directive, &Directive),
    host: Option<&str>,
    around: &Around,
) {
    let Some(host) = host else {
        let why = "a refusal of plain HTTP, or of www., has no counterpart";
        return translation.judgements.lost_restriction(inner, why);
    };
    let host = host.to_ascii_lowercase();
    if translation.server_names.iter().all(|name| *name == host) && !translation.has_open_names {
        let why = "requests for other hosts are refused (421)";
        translation.site.refuses_others = true;
        return translation.judgements.built_in_but(inner, why);
    }
    let other = RuleConditions::default().with("host", vec![format!("!{host}")]);
    let status = denial_status(inner.word(0)).unwrap_or(403);
    match around.and(&other) {
        Some(around) => denied(translation, one, inner, (status, &around)),
        None => translation.judgements.lost_restriction(inner, "two conditions on the host"),
    }
}

/// The directives in an `if` whose condition is known.
fn body(translation: &mut Translation<'_>, one: &Directive, around: &Around) {
    for inner in one.inner() {
        match inner.name.as_str() {
            "return" => {
                if let Some(status) = denial_status(inner.word(0)) {
                    denied(translation, one, inner, (status, around));
                } else {
                    answer(translation, inner, around);
                }
            }
            "rewrite" => rewrite(translation, inner, around),
            "break" | "access_log" => translation.judgements.not_needed(inner),
            "set" => {
                let why = "Pagewell decides about caching itself; other uses of variables are not translated";
                translation.judgements.not_needed_because(inner, why);
            }
            _ if super::known::restricts(inner) => {
                let why = "it has no counterpart in a condition";
                translation.judgements.lost_restriction(inner, why);
            }
            _ => {
                translation.judgements.not_translated(inner, "it has no counterpart in a condition")
            }
        }
    }
    translation.judgements.translated(one);
}

fn denied(
    translation: &mut Translation<'_>,
    one: &Directive,
    inner: &Directive,
    (status, around): (u16, &Around),
) {
    if around.conditions.get("file").is_some() {
        let why = "a path without a file is answered by the front controller";
        if around.runs_scripts
            || around.conditions.get("file").is_none_or(|file| file != ["exists"])
        {
            translation.judgements.built_in_but(inner, why);
        } else {
            translation.judgements.lost_restriction(inner, "deny has no condition on files");
        }
        return;
    }
    translation
        .site
        .rules
        .push(RuleDraft::new(one.at, around.conditions.clone()).with("deny", status.to_string()));
    let same = inner.word(0) == status.to_string();
    if same {
        translation.judgements.translated(inner);
    } else {
        translation.judgements.translated_but(inner, &format!("with the status {status}"));
    }
}
