//! `IfModule`, `IfDefine` and `IfVersion`: which content counts.
//!
//! The modules of PHP sites are usually there, and Apache is 2.4: `IfModule x` and `IfVersion >= 2.4` count. The content
//! of others stays in its section, which nothing translates, so that the report has its restrictions as lost. Two
//! sections leave no trace: one for a missing module without restrictions, and one whose counterpart restricts instead.

use super::known;
use crate::report::Judgements;
use crate::source::Directive;

/// The sections with a test.
const TESTS: [&str; 3] = ["<ifmodule", "<ifdefine", "<ifversion"];

/// The directives with the content that counts in the place of its section.
pub(super) fn resolved(all: Vec<Directive>, judgements: &mut Judgements) -> Vec<Directive> {
    let mut kept = Vec::new();
    let tests: Vec<Directive> =
        all.iter().filter(|one| TESTS.contains(&one.name.as_str())).cloned().collect();
    for mut one in all {
        if !TESTS.contains(&one.name.as_str()) {
            one.block = one.block.map(|inner| resolved(inner, judgements));
            kept.push(one);
            continue;
        }
        if counts(&one) {
            kept.extend(resolved(one.block.unwrap_or_default(), judgements));
            continue;
        }
        if !known::restricts(&one) && one.name == "<ifmodule" {
            continue;
        }
        if tests.iter().any(|other| replaces(other, &one)) {
            judge_all(&one, judgements);
        }
        kept.push(one);
    }
    kept
}

/// Whether the content of a section counts.
fn counts(section: &Directive) -> bool {
    match section.name.as_str() {
        "<ifmodule" => !section.word(0).starts_with('!'),
        "<ifversion" => {
            let words = (section.word(0), section.word(1));
            matches!(
                words,
                (">=", "2.4" | "2.4.0" | "2.3" | "2.2") | (">", "2.2" | "2.3" | "2.3.0")
            )
        }
        _ => false,
    }
}

/// Whether another section, which counts, has the restriction of this one for the other case.
fn replaces(other: &Directive, dropped: &Directive) -> bool {
    let is_opposite = match dropped.name.as_str() {
        "<ifmodule" => dropped.word(0).strip_prefix('!') == Some(other.word(0)),
        "<ifversion" => {
            let is_old = dropped.word(1).starts_with("2.4") || dropped.word(1).starts_with("2.3");
            is_old && matches!(dropped.words.len(), 2) && dropped.word(0).starts_with('<')
        }
        _ => false,
    };
    is_opposite
        && other.name == dropped.name
        && counts(other)
        && covers(other.inner(), dropped.inner())
}

/// Whether each restriction of the dropped directives has a counterpart: access directives in the same sections.
fn covers(counted: &[Directive], dropped: &[Directive]) -> bool {
    dropped.iter().filter(|one| known::restricts(one)).all(|one| {
        if is_access(one) {
            return counted.iter().any(is_access);
        }
        let is_same = |other: &&Directive| other.name == one.name && other.words == one.words;
        one.block.is_some()
            && counted.iter().filter(is_same).any(|other| covers(other.inner(), one.inner()))
    })
}

/// Whether a directive says which clients are allowed: Apache 2.2 and 2.4 have different ones.
fn is_access(one: &Directive) -> bool {
    matches!(one.name.as_str(), "require" | "order" | "allow" | "deny" | "satisfy")
        || one.name.starts_with("<require")
}

fn judge_all(section: &Directive, judgements: &mut Judgements) {
    let why = "the section for the other case counts";
    judgements.not_needed_because(section, why);
    for one in section.inner() {
        judge_all(one, judgements);
    }
}
