//! `Redirect` and `RedirectMatch`.

use super::Translation;
use super::context::Context;
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::pattern::{Exactness, PathPattern, escaped};
use crate::source::Directive;
use crate::target::MoveTarget;

/// Writes the rule of a directive.
pub(super) fn emit(translation: &mut Translation<'_>, one: &Directive, context: &Context) {
    let mut words: Vec<&str> = one.words.iter().map(String::as_str).collect();
    let mut status = match one.name.as_str() {
        "redirectpermanent" => 301,
        _ => 302,
    };
    let first = words.first().copied().unwrap_or_default();
    let named = match first {
        "permanent" => Some(301),
        "temp" => Some(302),
        "seeother" => Some(303),
        "gone" => Some(410),
        word => word.parse::<u16>().ok(),
    };
    if let Some(named) = named {
        status = named;
        words.remove(0);
    }
    let is_match = one.name == "redirectmatch";
    let Some((path, rest)) = words.split_first() else {
        return translation.judgements.not_translated(one, "it needs a path");
    };
    let exactness = if status >= 400 { Exactness::MayWiden } else { Exactness::Exact };
    let regex = if is_match {
        (*path).to_owned()
    } else {
        format!("^{}(?:/(.*))?$", escaped(path.trim_end_matches('/')))
    };
    let pattern = match PathPattern::read(&regex, false, exactness) {
        Ok(pattern) => pattern,
        Err(why) if status >= 400 => return translation.judgements.lost_restriction(one, &why),
        Err(why) => return translation.judgements.not_translated(one, &why),
    };
    let around = context.conditions.without("path");
    if matches!(status, 403 | 404 | 410) {
        let conditions = RuleConditions::default().with_pattern(&pattern);
        let conditions = around.and(&conditions).unwrap_or(conditions);
        translation
            .site
            .rules
            .push(RuleDraft::new(one.at, conditions).with("deny", status.to_string()));
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
        // What follows the path is appended to the target.
        rule(RuleConditions::default().with("path", vec![(*path).to_owned()]), target.clone());
        let begin = path.trim_end_matches('/');
        let end = if path.ends_with('/') { "" } else { "/" };
        let more = RuleConditions::default().with_regex(&format!("^{}/(.+)$", escaped(begin)));
        rule(more, format!("{target}{end}$1"));
    }
    translation.judgements.translated(one);
}
