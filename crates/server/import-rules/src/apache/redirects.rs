//! `Redirect` and `RedirectMatch`.
//!
//! Not here: redirects by `RewriteRule` (`rewrites`), and targets (`target`).

use super::Translation;
use super::rewrites::refusal;
use super::section::SectionScope;
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::pattern::{Exactness, PathPattern, escaped};
use crate::source::Directive;
use crate::target::MoveTarget;

/// The status of a directive, and whether its first word is that.
fn status(one: &Directive) -> (u16, bool) {
    let named = match one.word(0) {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        word => word.parse::<u16>().ok(),
    };
    match named {
        Some(status) => (status, true),
        None => (if one.name == "redirectpermanent" { 301 } else { 302 }, false),
    }
}

/// Whether a directive refuses requests.
pub(super) fn refuses(one: &Directive) -> bool {
    one.name.starts_with("redirect") && refusal(status(one).0).is_some()
}

/// A refusal of all paths of a section: `Redirect 403` without a path.
fn refuse_section(
    translation: &mut Translation<'_>,
    one: &Directive,
    (status, context): (u16, &SectionScope),
) {
    if context.conditions.is_empty() {
        let why = "it would refuse every request";
        return translation.judgements.lost_restriction(one, why);
    }
    let rule = RuleDraft::new(one.at, context.restricted());
    translation.site.rules.push(rule.with("deny", status.to_string()));
    translation.judgements.translated(one);
}

/// Writes the rule of a directive.
pub(super) fn emit(translation: &mut Translation<'_>, one: &Directive, context: &SectionScope) {
    let (status, is_named) = status(one);
    let words: Vec<&str> = one.words.iter().skip(is_named.into()).map(String::as_str).collect();
    let is_match = one.name == "redirectmatch";
    let Some((path, rest)) = words.split_first() else {
        return match refusal(status) {
            Some(status) => refuse_section(translation, one, (status, context)),
            None => translation.judgements.not_translated(one, "it needs a path"),
        };
    };
    let exactness = if status >= 400 { Exactness::MayWiden } else { Exactness::Exact };
    let regex = if is_match {
        (*path).to_owned()
    } else if *path == "/" {
        "^/(.*)$".to_owned()
    } else {
        format!("^{}(?:/(.*))?$", escaped(path.trim_end_matches('/')))
    };
    let pattern = match PathPattern::read(&regex, false, exactness) {
        Ok(pattern) => pattern,
        Err(why) if status >= 400 => return translation.judgements.lost_restriction(one, &why),
        Err(why) => return translation.judgements.not_translated(one, &why),
    };
    let around = context.conditions.without("path");
    if let Some(refusal) = refusal(status) {
        let conditions = RuleConditions::default().with_pattern(&pattern);
        let conditions = around.and(&conditions).unwrap_or(conditions);
        translation
            .site
            .rules
            .push(RuleDraft::new(one.at, conditions).with("deny", refusal.to_string()));
        if refusal != status {
            let why = format!("with the status {refusal}");
            return translation.judgements.translated_but(one, &why);
        }
        return translation.judgements.translated(one);
    }
    let target = MoveTarget::read(rest.first().copied().unwrap_or_default(), Some(&regex));
    let target = match target {
        Ok(target) if !target.text.is_empty() && (300..400).contains(&status) => target.text,
        Ok(_) => return translation.judgements.not_translated(one, "it needs a target"),
        Err(why) => return translation.judgements.not_translated(one, &why),
    };
    let mut rule = |conditions: RuleConditions, target: String| {
        let conditions = around.and(&conditions).unwrap_or(conditions);
        let mut rule = RuleDraft::new(one.at, conditions).with("redirect", string(&target));
        if status != 301 {
            rule = rule.with("redirect_status", status.to_string());
        }
        translation.site.rules.push(rule);
    };
    if is_match {
        rule(RuleConditions::default().with_regex(&regex), target);
    } else {
        // The rest of the path is appended to the target.
        rule(RuleConditions::default().with("path", vec![(*path).to_owned()]), target.clone());
        let begin = path.trim_end_matches('/');
        let end = if path.ends_with('/') { "" } else { "/" };
        let more = RuleConditions::default().with_regex(&format!("^{}/(.+)$", escaped(begin)));
        rule(more, format!("{target}{end}$1"));
    }
    translation.judgements.translated(one);
}
