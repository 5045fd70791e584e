//! Handlers, media types and flags of PHP: the address of php-fpm, and places in which no script runs.
//!
//! Not here: other directives without a counterpart (`known`).

use super::Translation;
use super::section::SectionScope;
use crate::draft::{RuleDraft, string};
use crate::pattern::{GlobShape, shapes};
use crate::source::Directive;

/// Endings of scripts of PHP. Pagewell runs the first one only, and never shows the others.
const SCRIPTS: [&str; 10] =
    ["php", "phtml", "pht", "phar", "php3", "php4", "php5", "php6", "php7", "php8"];

/// Whether a directive switches PHP off for a place, or for an ending.
pub(super) fn switches_off(one: &Directive) -> bool {
    let value = one.word(1);
    match one.name.as_str() {
        "php_flag" | "php_admin_flag" => {
            one.word(0) == "engine" && !(value.eq_ignore_ascii_case("on") || value == "1")
        }
        "php_value" | "php_admin_value" => {
            let is_on = ["on", "1", "yes", "true"].iter().any(|on| value.eq_ignore_ascii_case(on));
            one.word(0) == "engine" && !is_on
        }
        "sethandler" => !runs_php(one.word(0)),
        "forcetype" => !one.word(0).eq_ignore_ascii_case("none") && !runs_php(one.word(0)),
        "addhandler" | "addtype" => !runs_php(one.word(0)) && endings(one, 1).next().is_some(),
        "removehandler" | "removetype" => endings(one, 0).next().is_some(),
        _ => false,
    }
}

/// Whether a handler or type is one of PHP. One that shows the source is not.
fn runs_php(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("proxy:") || name.contains("php") && !name.contains("source")
}

/// The endings of scripts that a directive names.
fn endings(one: &Directive, from: usize) -> impl Iterator<Item = String> + '_ {
    let words = one.words.iter().skip(from);
    let endings = words.map(|word| word.trim_start_matches('.').to_ascii_lowercase());
    endings.filter(|ending| ending.split('.').any(|part| SCRIPTS.contains(&part)))
}

/// Whether a script may be in this place.
fn has_scripts(context: &SectionScope) -> bool {
    let script = GlobShape::of("**.php");
    let meets = |shape: &GlobShape| shape.may_meet(&script);
    let globs = context.conditions.get("path");
    let regexes = context.conditions.get("path_regex");
    globs.is_none_or(|all| all.iter().any(|glob| meets(&GlobShape::of(glob))))
        && regexes.is_none_or(|all| all.iter().any(|regex| shapes(regex).iter().any(meets)))
}

/// The address of php-fpm in a handler.
fn address(one: &Directive) -> Option<String> {
    let socket = one.words.iter().find_map(|word| {
        let inner = word.strip_prefix("proxy:unix:")?;
        inner.split('|').next().map(|path| format!("unix:{path}"))
    });
    let network = one.words.iter().find_map(|word| word.strip_prefix("proxy:fcgi://"));
    socket.or(network.map(|rest| rest.split('/').next().unwrap_or_default().to_owned()))
}

/// Translates a directive about PHP.
pub(super) fn php(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    let name = one.name.as_str();
    if let Some(at) = address(one) {
        translation.site.php_at = Some(at);
        translation.judgements.translated(one);
    } else if switches_off(one) && has_scripts(context) {
        off(translation, one, context);
    } else if matches!(name, "addtype" | "forcetype" | "removehandler" | "removetype")
        || matches!(name, "sethandler" | "addhandler") && runs_php(one.word(0))
    {
        translation.judgements.built_in(one);
    } else if matches!(name, "sethandler" | "addhandler") {
        translation.judgements.not_translated(one, "handlers are those of PHP only");
    } else if one.word(0) == "engine" {
        translation.judgements.built_in(one);
    } else {
        let why = format!(
            "set it in the pool of php-fpm: php_admin_value[{}] = {}",
            one.word(0),
            string(one.word(1))
        );
        translation.judgements.not_translated(one, &why);
    }
}

/// Switches PHP off for a place.
fn off(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    let from = usize::from(one.name.starts_with("add"));
    let has_endings = one.name.starts_with("add") || one.name.starts_with("remove");
    let is_run = |ending: String| ending.split('.').any(|part| part == "php");
    if has_endings && !endings(one, from).any(is_run) {
        let why = "files with these endings are refused";
        return translation.judgements.built_in_but(one, why);
    }
    if context.conditions.get("method").is_some() {
        let why = "whether scripts run does not depend on the method";
        return translation.judgements.lost_restriction(one, why);
    }
    let rule = RuleDraft::new(one.at, context.restricted()).with("php", "false".into());
    if !translation
        .site
        .rules
        .iter()
        .any(|known| known.conditions == rule.conditions && known.actions == rule.actions)
    {
        translation.site.rules.push(rule);
    }
    match one.name.as_str() {
        "sethandler" | "addhandler" | "addtype" | "forcetype" => {
            let why = "as php = false: the handler or type itself has no counterpart";
            translation.judgements.translated_but(one, why);
        }
        _ => translation.judgements.translated(one),
    }
}
