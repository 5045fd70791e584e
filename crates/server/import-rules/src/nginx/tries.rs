//! `try_files`: the front controller, and scripts for paths without a file.
//!
//! Not here: other moves of a request (`moves`).

use super::Translation;
use super::locations::{Location, LocationKind};
use super::moves::{Around, answer, rewrite, with_captures};
use super::scope::Scope;
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::source::Directive;
use crate::target::MoveTarget;

/// The script for all paths without a file, if `try_files` names one. It decides what other locations need.
pub(super) fn find_front_controller(
    translation: &mut Translation<'_>,
    scope: &Scope<'_>,
    locations: &[Location<'_>],
) {
    let Some(last) = scope.try_files.and_then(|one| one.words.last()) else { return };
    let target = match last.strip_prefix('@') {
        Some(name) => {
            let mut named = locations.iter().filter(|one| one.text.strip_prefix('@') == Some(name));
            match named.next().map(|one| one.scope.rewrites.as_slice()) {
                Some([only]) => only.word(1),
                _ => return,
            }
        }
        None => last.as_str(),
    };
    let end = target.find(['$', '?']).unwrap_or(target.len());
    let script = target[..end].trim_matches('/');
    if script.ends_with(".php") && script != "index.php" && !target.contains('=') {
        translation.site.front_controller = Some(script.to_owned());
    }
}

/// `try_files`: the last word is the answer to a path without a file.
pub(super) fn fallback<'a>(
    translation: &mut Translation<'a>,
    one: &'a Directive,
    around: &Around,
    locations: &[Location<'a>],
) {
    let Some((last, tried)) = one.words.split_last() else { return };
    let odd = tried
        .iter()
        .find(|word| !matches!(word.as_str(), "$uri" | "$uri/" | "$fastcgi_script_name"));
    if let Some(odd) = odd {
        let why = format!("{odd} is not tried");
        translation.judgements.not_translated(one, &why);
    }
    let directories = "a directory without an index file is answered by the front controller";
    let missing = RuleConditions::default().with("file", vec!["missing".into()]);
    if last.starts_with('=') {
        let why = "a path without a file is answered by the front controller, if the root has one";
        translation.judgements.built_in_but(one, why);
    } else if let Some(name) = last.strip_prefix('@') {
        let named = locations
            .iter()
            .find(|other| other.kind == LocationKind::Named && other.text[1..] == *name);
        match (named, around.and(&missing)) {
            (Some(named), Some(inner)) => {
                for step in &named.scope.rewrites {
                    rewrite(translation, step, &inner);
                }
                if let Some(step) = named.scope.answer {
                    answer(translation, step, &inner);
                }
                translation.judgements.built_in_but(one, directories);
            }
            _ => translation.judgements.not_translated(one, "there is no such location"),
        }
    } else {
        let expanded = translation.expanded(last);
        match MoveTarget::read(&expanded, around.regex.as_deref()) {
            Ok(target) => front_controller(translation, one, &target, around),
            Err(why) => translation.judgements.not_translated(one, &why),
        }
    }
}

fn front_controller(
    translation: &mut Translation<'_>,
    one: &Directive,
    target: &MoveTarget,
    around: &Around,
) {
    let directories = "a directory without an index file is answered by the front controller";
    // `/index.php$uri` gives the path as PATH_INFO; the front controller reads it in REQUEST_URI.
    let script = target.text.strip_suffix("$1").filter(|script| script.ends_with(".php"));
    let text = script.unwrap_or(&target.text);
    let is_script = text.ends_with(".php") && !text.contains(['$', '?']);
    if is_script && around.is_catch_all {
        let name = text.trim_start_matches('/').to_owned();
        if name != "index.php" {
            translation.site.front_controller = Some(name);
        }
        translation.judgements.built_in_but(one, directories);
        return;
    }
    let front = translation.site.front_controller.as_deref().unwrap_or("index.php");
    if is_script && text.trim_start_matches('/') == front {
        translation.judgements.built_in_but(one, directories);
        return;
    }
    let mut conditions = around.conditions.clone().with("file", vec!["missing".into()]);
    if target.needs_path && script.is_none() {
        if conditions.get("path_regex").is_some() {
            translation.judgements.not_translated(one, "the target needs the whole path");
            return;
        }
        conditions = conditions.with_regex("^(/.*)$");
    } else if text.contains('$')
        && let Some(regex) = &around.regex
    {
        conditions = with_captures(&conditions, regex);
    }
    translation.site.rules.push(RuleDraft::new(one.at, conditions).with("rewrite", string(text)));
    translation.judgements.translated_but(one, directories);
}
