//! `map` of paths: `map $uri $new { /old /new; }` with `if ($new) { return 301 $new; }` becomes redirects.
//!
//! As in nginx, paths come before expressions. Paths without other conditions become lines of a redirect file, if the
//! caller can write one and they are many; all else becomes rules. An empty value exempts.
//!
//! Not here: maps of other variables, and other uses of their value.

use super::Translation;
use super::moves::{Around, redirect};
use crate::draft::{RuleConditions, RuleDraft};
use crate::pattern::{Exactness, PathPattern};
use crate::source::Directive;
use crate::target::MoveTarget;

/// Up to so many paths become rules.
const RULES_AT_MOST: usize = 20;
/// The variables for the path of a request.
const PATHS: [&str; 3] = ["$uri", "$document_uri", "$request_uri"];
/// Words of a map that are no paths.
const WORDS: [&str; 3] = ["default", "hostnames", "volatile"];

/// The redirect in an `if` about a map: its status, and its target with the variable.
struct MapRedirect<'a> {
    map: &'a Directive,
    variable: String,
    code: String,
    target: String,
}

/// Translates an `if` that redirects to the value of a map. Returns whether it is one.
pub(super) fn translated(
    translation: &mut Translation<'_>,
    one: &Directive,
    around: &Around,
) -> bool {
    let Some(found) = map_redirect(translation, one) else { return false };
    let (mut paths, mut expressions) = (Vec::new(), Vec::new());
    for entry in found.map.inner() {
        if WORDS.contains(&entry.name.as_str()) {
            if entry.name == "default" && !entry.word(0).is_empty() {
                translation.judgements.not_translated(entry, "all other paths are redirected");
            } else {
                translation.judgements.built_in(entry);
            }
        } else if entry.name.starts_with('~') {
            expressions.push(entry);
        } else {
            paths.push(entry);
        }
    }
    let as_lines = translation.has_redirect_file
        && around.conditions.is_empty()
        && (paths.len() > RULES_AT_MOST || paths.iter().any(|entry| entry.name.contains('?')));
    for entry in paths {
        path(translation, &found, entry, (around, as_lines));
    }
    for entry in expressions {
        expression(translation, &found, entry, around);
    }
    for directive in std::iter::once(one).chain(one.inner()).chain([found.map]) {
        translation.judgements.translated(directive);
    }
    true
}

/// The redirect of an `if` whose condition is that a map has a value for the path.
fn map_redirect<'a>(translation: &Translation<'a>, one: &Directive) -> Option<MapRedirect<'a>> {
    let text = one.words.join(" ");
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let (subject, test) = inner.split_once(' ').unwrap_or((inner, ""));
    if !matches!(test.replace(['"', '\'', ' '], "").as_str(), "" | "!=" | "~." | "~^/") {
        return None;
    }
    let variable = subject.strip_prefix('$')?.trim_matches(['{', '}']).to_owned();
    let map = *translation.maps.get(&variable)?;
    let is_of_path = PATHS.contains(&map.word(0));
    let [answer] = one.inner() else { return None };
    let (code, target) = match (answer.name.as_str(), answer.words.as_slice()) {
        ("return", [code, target]) => (code.as_str(), target),
        ("rewrite", [_, target, flag]) if flag == "permanent" => ("301", target),
        ("rewrite", [_, target, flag]) if flag == "redirect" => ("302", target),
        _ => return None,
    };
    let target = target.replace(&format!("${{{variable}}}"), &format!("${variable}"));
    let is_redirect = matches!(code, "301" | "302" | "303" | "307" | "308");
    (is_of_path && is_redirect && target.contains(&format!("${variable}"))).then(|| MapRedirect {
        map,
        variable,
        code: code.to_owned(),
        target,
    })
}

impl MapRedirect<'_> {
    /// The target for a value of the map.
    fn target(&self, value: &str, captures: Option<&str>) -> Result<MoveTarget, String> {
        let target = self.target.replace(&format!("${}", self.variable), value);
        let target = MoveTarget::read(&target, captures)?;
        let is_target = target.text.starts_with('/') || target.host.is_some();
        if target.needs_path {
            Err("its target has a variable".into())
        } else if is_target && !target.text.contains(|c: char| c.is_control()) {
            Ok(target)
        } else {
            Err("its target is neither a path nor a URL".into())
        }
    }
}

/// A path of the map.
fn path(
    translation: &mut Translation<'_>,
    found: &MapRedirect<'_>,
    entry: &Directive,
    (around, as_line): (&Around, bool),
) {
    let name = entry.name.trim_start_matches('\\');
    let (old, query) = match name.split_once('?') {
        Some((old, query)) => (old, Some(query)),
        None => (name, None),
    };
    if !old.starts_with('/') || old.contains(['*', '!', '"']) || name.contains(char::is_control) {
        return translation.judgements.not_translated(entry, "it is no path");
    }
    let value = entry.word(0);
    if as_line && !value.is_empty() {
        match found.target(value, None) {
            Ok(target) => {
                let line = [name.to_owned(), target.text, found.code.clone()];
                translation.site.redirect_lines.push(line);
                translation.judgements.translated(entry);
            }
            Err(why) => translation.judgements.not_translated(entry, &why),
        }
    } else if query.is_some() {
        let why = "a path with a query needs a redirect file: import with --output";
        translation.judgements.not_translated(entry, why);
    } else {
        let conditions = RuleConditions::default().with("path", vec![old.to_owned()]);
        rule(translation, found, entry, (around, &conditions, None));
    }
}

/// An expression of the map.
fn expression(
    translation: &mut Translation<'_>,
    found: &MapRedirect<'_>,
    entry: &Directive,
    around: &Around,
) {
    let written = entry.name.trim_start_matches('~');
    let ignores_case = written.starts_with('*');
    let written = written.trim_start_matches('*');
    if written.contains("\\?") {
        return translation.judgements.not_translated(entry, "it is about the query, too");
    }
    match PathPattern::read(written, ignores_case, Exactness::Exact) {
        Ok(pattern) => {
            let conditions = RuleConditions::default().with_regex(&pattern.regex);
            rule(translation, found, entry, (around, &conditions, Some(&pattern.regex)));
        }
        Err(why) => translation.judgements.not_translated(entry, &why),
    }
}

/// The rule of an entry.
fn rule(
    translation: &mut Translation<'_>,
    found: &MapRedirect<'_>,
    entry: &Directive,
    (around, own, regex): (&Around, &RuleConditions, Option<&str>),
) {
    let Some(around) = around.and(own) else {
        return translation.judgements.not_translated(entry, "two expressions for one path");
    };
    let value = entry.word(0);
    if value.is_empty() {
        let exemption = RuleDraft::new(entry.at, around.conditions);
        translation.site.rules.push(exemption.with("redirect", "false".into()));
        return translation.judgements.translated(entry);
    }
    match found.target(value, regex) {
        Ok(target) => {
            let regex = regex.map(str::to_owned);
            let inner = Around { regex, is_catch_all: false, ..around };
            let keeps_query = target.keeps_query;
            redirect(translation, entry, (&found.code, &target, keeps_query), &inner);
        }
        Err(why) => translation.judgements.not_translated(entry, &why),
    }
}
