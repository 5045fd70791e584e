//! Response fields, lifetimes of files, and error pages.
//!
//! In nginx, the fields of a location replace those of the server; in Pagewell, all rules add up and the last one wins.
//! So the server comes first, and then the locations from the last choice to the first.

use super::Translation;
use super::locations::{Location, LocationKind};
use super::scope::Scope;
use crate::draft::{RuleConditions, RuleDraft};
use crate::fields::FieldChanges;
use crate::source::{Directive, SourceLine};

/// Writes the rules for fields, and the error pages.
pub(super) fn emit(
    translation: &mut Translation<'_>,
    server: &Scope<'_>,
    locations: &[Location<'_>],
) {
    fields(translation, &server.fields, RuleConditions::default(), false);
    for location in locations.iter().rev().filter(|one| one.kind != LocationKind::Named) {
        let runs = location.scope.php.is_some();
        fields(translation, &location.scope.fields, location.conditions.clone(), runs);
    }
    let inner = locations.iter().flat_map(|location| &location.scope.error_pages);
    for one in server.error_pages.iter().chain(inner) {
        error_page(translation, one);
    }
}

fn fields(
    translation: &mut Translation<'_>,
    all: &[&Directive],
    conditions: RuleConditions,
    runs_scripts: bool,
) {
    let Some(first) = all.first() else { return };
    let at: SourceLine = first.at;
    let mut changes = FieldChanges::default();
    for one in all {
        match one.name.as_str() {
            "add_header" => {
                let value = translation.expanded(one.word(1));
                changes.add(translation.judgements, one, one.word(0), &value, true);
            }
            "more_set_headers" => {
                for word in &one.words {
                    let (name, value) = word.split_once(':').unwrap_or((word, ""));
                    changes.add(translation.judgements, one, name.trim(), value.trim(), true);
                }
            }
            "fastcgi_hide_header" | "proxy_hide_header" | "more_clear_headers" => {
                one.words.iter().for_each(|name| changes.remove(name));
                translation.judgements.translated(one);
            }
            "expires" if runs_scripts => {
                translation.judgements.not_needed_because(one, "PHP decides about its pages");
            }
            "expires" => expires(translation, one, &mut changes),
            _ => translation.judgements.not_translated(one, "no trailers"),
        }
    }
    if let Some(rule) = changes.rule(RuleDraft::new(at, conditions)) {
        translation.site.rules.push(rule);
    }
}

fn expires(translation: &mut Translation<'_>, one: &Directive, changes: &mut FieldChanges) {
    let word = one.words.last().map_or("", String::as_str);
    let value = match word {
        "off" => return translation.judgements.not_needed(one),
        "max" => "max-age=315360000".to_owned(),
        "epoch" => "no-cache".to_owned(),
        word if word.starts_with('-') => "no-cache".to_owned(),
        word => match seconds(word) {
            Some(seconds) => format!("max-age={seconds}"),
            None => {
                return translation
                    .judgements
                    .not_translated(one, "the time has a variable: write file_cache");
            }
        },
    };
    changes.lifetime(&value);
    translation.judgements.translated(one);
}

/// A time of nginx (`1y 2d`, `30d`, `3600`) in seconds.
fn seconds(word: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut rest = word.trim_start_matches('+');
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit = rest.chars().next();
        let factor = match unit {
            None | Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            Some('M') => 2_592_000,
            Some('y') => 31_536_000,
            Some(_) => return None,
        };
        rest = &rest[unit.map_or(0, char::len_utf8)..];
        total = total.checked_add(number.checked_mul(factor)?)?;
    }
    (!word.is_empty()).then_some(total)
}

/// `error_page CODE… FILE`.
fn error_page(translation: &mut Translation<'_>, one: &Directive) {
    let Some((target, codes)) = one.words.split_last() else { return };
    let target = translation.expanded(target);
    if codes.iter().any(|code| code.starts_with('=')) || !target.starts_with('/') {
        translation.judgements.not_translated(one, "an error page is a file below the root");
        return;
    }
    let front = translation.site.front_controller.as_deref().unwrap_or("index.php");
    if target.trim_start_matches('/') == front && codes == ["404"] {
        let why = "a path without a file is answered by the front controller";
        translation.judgements.built_in_but(one, why);
        return;
    }
    if target.ends_with(".php") || target.contains(['?', '$']) {
        let why = "an error page is a file: scripts answer paths without a file anyway";
        translation.judgements.not_translated(one, why);
        return;
    }
    for code in codes {
        let page = (code.clone(), target.trim_start_matches('/').to_owned());
        if !translation.site.error_pages.iter().any(|(known, _)| known == code) {
            translation.site.error_pages.push(page);
        }
    }
    translation.judgements.translated(one);
}
