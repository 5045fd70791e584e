//! `Header`, `Expires*` and `ErrorDocument`.
//!
//! Not here: which fields may be changed (`fields`), and the sections around a directive (`section`).

use super::Translation;
use super::section::SectionScope;
use crate::draft::{RuleConditions, RuleDraft};
use crate::fields::FieldChanges;
use crate::source::Directive;

/// The file extensions of a media type.
const EXTENSIONS: [(&str, &[&str]); 24] = [
    ("text/css", &["css"]),
    ("application/javascript", &["js", "mjs"]),
    ("text/javascript", &["js", "mjs"]),
    ("application/x-javascript", &["js", "mjs"]),
    ("application/json", &["json"]),
    ("application/pdf", &["pdf"]),
    ("application/xml", &["xml"]),
    ("text/xml", &["xml"]),
    ("image/jpeg", &["jpg", "jpeg"]),
    ("image/jpg", &["jpg", "jpeg"]),
    ("image/png", &["png"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/svg+xml", &["svg", "svgz"]),
    ("image/x-icon", &["ico"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("font/woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("application/font-woff", &["woff"]),
    ("application/vnd.ms-fontobject", &["eot"]),
    ("font/ttf", &["ttf"]),
    ("font/otf", &["otf"]),
    ("video/mp4", &["mp4"]),
];

/// Writes the rules of a block.
pub(super) fn emit(translation: &mut Translation<'_>, all: &[Directive], context: &SectionScope) {
    let mut changes = FieldChanges::default();
    let mut at = None;
    for one in all {
        match one.name.as_str() {
            "header" => {
                at = at.or(Some(one.at));
                header(translation, one, &mut changes);
            }
            "expiresactive" => translation.judgements.not_needed(one),
            "expiresdefault" => {
                at = at.or(Some(one.at));
                match seconds(&one.words) {
                    Some(seconds) => {
                        changes.lifetime(&format!("max-age={seconds}"));
                        translation
                            .judgements
                            .translated_but(one, "for files: pages keep the Cache-Control of PHP");
                    }
                    None => translation.judgements.not_translated(one, "the time cannot be read"),
                }
            }
            "expiresbytype" => by_type(translation, one, context),
            "errordocument" => error_page(translation, one),
            _ => {}
        }
    }
    if let Some(at) = at
        && let Some(rule) = changes.rule(RuleDraft::new(at, context.conditions.clone()))
    {
        translation.site.rules.push(rule);
    }
}

fn header(translation: &mut Translation<'_>, one: &Directive, changes: &mut FieldChanges) {
    let mut words: Vec<&str> = one.words.iter().map(String::as_str).collect();
    if matches!(words.first(), Some(&("always" | "onsuccess"))) {
        words.remove(0);
    }
    let conditional =
        words.iter().skip(2).any(|word| word.starts_with("env=") || word.starts_with("expr="));
    if conditional {
        return translation
            .judgements
            .not_translated(one, "a rule for fields has no condition on variables");
    }
    match words.as_slice() {
        ["set" | "setifempty" | "append" | "merge", name, value, ..] => {
            changes.add(translation.judgements, one, name.trim_end_matches(':'), value, true);
        }
        ["add", name, value, ..] => {
            changes.add(translation.judgements, one, name.trim_end_matches(':'), value, false)
        }
        ["unset", name, ..] => {
            if matches!(
                name.to_ascii_lowercase().as_str(),
                "etag" | "last-modified" | "set-cookie" | "cache-control" | "expires" | "vary"
            ) {
                translation.judgements.not_needed_because(one, "Pagewell needs this field itself");
            } else {
                changes.remove(name);
                translation.judgements.translated(one);
            }
        }
        _ => translation.judgements.not_translated(one, "values are set, added or removed only"),
    }
}

fn by_type(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    let extensions = EXTENSIONS.iter().find(|(known, _)| *known == one.word(0));
    let time = seconds(one.words.get(1..).unwrap_or_default());
    match (extensions, time) {
        (_, None) => translation.judgements.not_translated(one, "the time cannot be read"),
        (None, Some(_)) if one.word(0).contains("html") => {
            translation.judgements.not_needed_because(one, "pages keep the Cache-Control of PHP");
        }
        (None, Some(_)) => translation
            .judgements
            .not_translated(one, "its file extensions are unknown: write path and file_cache"),
        (Some((_, extensions)), Some(seconds)) => {
            let words = extensions.iter().map(|extension| format!("/**.{extension}")).collect();
            let conditions = context
                .conditions
                .without("path")
                .and(&RuleConditions::default().with("path", words));
            if let Some(conditions) = conditions {
                let rule = RuleDraft::new(one.at, conditions);
                let value = format!("\"max-age={seconds}\"");
                translation.site.rules.push(rule.with("file_cache", value));
            }
            translation.judgements.translated(one);
        }
    }
}

/// `access plus 1 year 2 days`, `A2592000`.
fn seconds(words: &[String]) -> Option<u64> {
    let text = words.join(" ").to_ascii_lowercase();
    if let Some(number) = text
        .strip_prefix('a')
        .filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()) && !rest.is_empty())
    {
        return number.parse().ok();
    }
    let mut words = text.split_whitespace();
    if !matches!(words.next(), Some("access" | "now")) {
        return None;
    }
    let mut total: u64 = 0;
    let mut words = words.filter(|word| *word != "plus");
    while let Some(number) = words.next() {
        let number: u64 = number.parse().ok()?;
        let factor = match words.next()?.trim_end_matches('s') {
            "second" => 1,
            "minute" => 60,
            "hour" => 3_600,
            "day" => 86_400,
            "week" => 604_800,
            "month" => 2_592_000,
            "year" => 31_536_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(factor)?)?;
    }
    Some(total)
}

fn error_page(translation: &mut Translation<'_>, one: &Directive) {
    let (code, target) = (one.word(0), one.word(1));
    let front = translation.site.front_controller.as_deref().unwrap_or("index.php");
    if target.trim_start_matches('/').split('?').next() == Some(front) {
        let why = "a path without a file is answered by the front controller";
        return translation.judgements.built_in_but(one, why);
    }
    let is_file =
        target.starts_with('/') && !target.contains(['?', '%']) && !target.ends_with(".php");
    if !is_file {
        return translation
            .judgements
            .not_translated(one, "an error page is a file below the root");
    }
    translation.site.error_pages.push((code.to_owned(), target.trim_start_matches('/').to_owned()));
    translation.judgements.translated(one);
}
