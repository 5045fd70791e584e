//! `RewriteCond` and `RewriteRule`: denials, redirects, rewrites, the front controller, HTTPS and the canonical host.
//!
//! Conditions with `[OR]` become one rule for each alternative. A denial without one of its conditions is wider; it is
//! written only if others are left.

use super::Translation;
use super::conditions::{self, RewriteCondition};
use super::section::SectionScope;
use crate::draft::{RuleConditions, RuleDraft, string};
use crate::pattern::{Exactness, PathPattern};
use crate::source::Directive;
use crate::target::MoveTarget;

/// The maximum number of alternatives of one rule.
const ALTERNATIVES_MAX: usize = 16;

/// Writes the rules of all `RewriteRule` of a block.
pub(super) fn emit(translation: &mut Translation<'_>, all: &[Directive], context: &SectionScope) {
    let mut conditions: Vec<&Directive> = Vec::new();
    let mut base = None;
    let mut follows_front = false;
    for one in all {
        match one.name.as_str() {
            "rewriteengine" | "rewriteoptions" => translation.judgements.not_needed(one),
            "rewritebase" => {
                base = Some(one.word(0).to_owned());
                translation.judgements.translated(one);
            }
            "rewritecond" => conditions.push(one),
            "rewriterule" => {
                let conditions = std::mem::take(&mut conditions);
                let mut rule = RewriteRule::new(one, conditions, base.as_deref(), context);
                rule.follows_front = follows_front;
                follows_front |= rule.emit(translation);
            }
            _ => {}
        }
    }
    for one in conditions {
        translation.judgements.not_needed_because(one, "no RewriteRule follows");
    }
}

struct RewriteRule<'a> {
    directive: &'a Directive,
    conditions: Vec<&'a Directive>,
    flags: Vec<String>,
    context: &'a SectionScope,
    base: Option<&'a str>,
    /// Whether paths without a file do not come here: an earlier rule has them.
    follows_front: bool,
}

/// One way in which all conditions hold.
#[derive(Debug, Clone, Default)]
struct Alternative {
    conditions: RuleConditions,
    is_missing: bool,
    is_existing: bool,
    is_plain_http: bool,
    other_host: Option<String>,
    has_host_pattern: bool,
    unknown: Option<String>,
}

impl<'a> RewriteRule<'a> {
    fn new(
        directive: &'a Directive,
        conditions: Vec<&'a Directive>,
        base: Option<&'a str>,
        context: &'a SectionScope,
    ) -> RewriteRule<'a> {
        let flags = RewriteRule::flags(directive);
        RewriteRule { directive, conditions, flags, context, base, follows_front: false }
    }

    fn flags(directive: &Directive) -> Vec<String> {
        let flags = directive.words.get(2).map_or("", String::as_str).trim_matches(['[', ']']);
        flags.split(',').map(|flag| flag.trim().to_owned()).collect()
    }

    /// The value of a flag, or an empty text if it has none.
    fn flag(&self, names: &[&str]) -> Option<&str> {
        self.flags.iter().find_map(|flag| {
            let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
            names.iter().any(|one| one.eq_ignore_ascii_case(name)).then_some(value)
        })
    }

    fn all(&self) -> impl Iterator<Item = &'a Directive> {
        std::iter::once(self.directive).chain(self.conditions.clone())
    }

    fn translated(&self, translation: &mut Translation<'_>) {
        self.all().for_each(|one| translation.judgements.translated(one));
    }

    /// Writes the rule, and returns whether it is that of the front controller.
    fn emit(&self, translation: &mut Translation<'_>) -> bool {
        let others = self.emit_others(translation);
        others.is_some_and(|target| self.rewrite(translation, &target))
    }

    /// Writes everything but a rewrite, whose target is returned.
    fn emit_others(&self, translation: &mut Translation<'_>) -> Option<String> {
        let target = self.directive.word(1).to_owned();
        let forbidden = self.flag(&["F", "forbidden"]).is_some();
        let gone = self.flag(&["G", "gone"]).is_some();
        let redirect = self.flag(&["R", "redirect"]);
        let status = redirect.and_then(|status| status.parse::<u16>().ok());
        let denial = match status {
            _ if forbidden => Some(403),
            _ if gone => Some(410),
            Some(status) => refusal(status),
            None => None,
        };
        if let Some(status) = denial {
            self.deny(translation, status);
            return None;
        }
        if self.is_environment() {
            self.all().for_each(|one| translation.judgements.built_in(one));
            return None;
        }
        let sets_variable =
            self.flags.iter().any(|flag| flag.to_ascii_uppercase().starts_with("E="));
        if sets_variable && target == "-" && self.flag(&["L", "last", "END"]).is_none() {
            let why = "a variable of Apache";
            self.all().for_each(|one| translation.judgements.not_needed_because(one, why));
            return None;
        }
        if target == "-" {
            self.pass(translation);
            return None;
        }
        let is_absolute = target.contains("://");
        if redirect.is_some() || is_absolute {
            let status = match redirect {
                Some("permanent") => 301,
                Some("seeother") => 303,
                _ => status.unwrap_or(302),
            };
            self.redirect(translation, &target, status);
            return None;
        }
        Some(target)
    }

    /// Whether it only passes `Authorization`, or the base of the URL, to PHP.
    fn is_environment(&self) -> bool {
        let sets = self.flags.iter().any(|flag| {
            let name = flag.to_ascii_uppercase();
            name.starts_with("E=HTTP_AUTHORIZATION")
                || name.starts_with("E=BASE")
                || name.starts_with("E=REWRITEBASE")
                || name.starts_with("E=REDIRECT_BASE")
                || name.starts_with("E=HTTP_X_XSRF_TOKEN")
        });
        sets && matches!(self.directive.word(1), "-" | "")
    }

    /// The pattern, which may be negated, as conditions; the expression for captures.
    fn pattern(&self, exactness: Exactness) -> Result<(RuleConditions, String, bool), String> {
        let written = self.directive.word(0);
        let (is_not, written) = match written.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, written),
        };
        let ignores_case = self.flag(&["NC", "nocase"]).is_some();
        let expression = self.context.expression(written);
        let exactness = if is_not { Exactness::Exact } else { exactness };
        let pattern = PathPattern::read(&expression, ignores_case, exactness)?;
        let conditions = RuleConditions::default();
        let base = &self.context.base;
        let everything =
            ["^/", "^/.", "^/.*", "^/(.*)", "^/.*$", "^/(.*)$", "^/.*?", ".*", "^", "(.*)"];
        let own = if is_not {
            conditions.with("path_regex", vec![format!("!{}", pattern.regex)])
        } else if everything.contains(&pattern.regex.trim_start_matches("(?i)")) && base == "/" {
            conditions
        } else {
            conditions.with_pattern(&pattern)
        };
        Ok((own, pattern.regex, pattern.is_exact))
    }

    /// All ways in which the conditions hold.
    fn alternatives(&self) -> Vec<Alternative> {
        let mut all = vec![Alternative::default()];
        let mut group: Vec<RewriteCondition> = Vec::new();
        for one in &self.conditions {
            group.push(conditions::read(one));
            let flags = one.words.get(2).map_or(String::new(), |flags| flags.to_ascii_uppercase());
            let continues = flags
                .trim_matches(['[', ']'])
                .split(',')
                .any(|flag| matches!(flag.trim(), "OR" | "ORNEXT"));
            if continues {
                continue;
            }
            let group = std::mem::take(&mut group);
            // Two of `-f`, `-d`, `-l` are one condition here.
            let mut group = group;
            group.dedup();
            all = all
                .iter()
                .flat_map(|begin| group.iter().map(|one| begin.and(one)).collect::<Vec<_>>())
                .collect();
            all.truncate(ALTERNATIVES_MAX * ALTERNATIVES_MAX);
        }
        all
    }

    fn deny(&self, translation: &mut Translation<'_>, status: u16) {
        let lost = |translation: &mut Translation<'_>, why: &str| {
            self.all().for_each(|one| translation.judgements.lost_restriction(one, why));
        };
        let (own, _, is_exact) = match self.pattern(Exactness::MayWiden) {
            Ok(found) => found,
            Err(why) => return lost(translation, &why),
        };
        let alternatives = self.alternatives();
        if alternatives.len() > ALTERNATIVES_MAX {
            return lost(translation, "too many alternatives");
        }
        let around = self.context.conditions.clone();
        let mut remark =
            (!is_exact || self.follows_front).then(|| "wider than in Apache".to_owned());
        let mut rules = Vec::new();
        for alternative in &alternatives {
            let outer = if own.get("path").is_some() || own.get("path_regex").is_some() {
                around.without("path")
            } else {
                around.clone()
            };
            let path = outer.and(&own).unwrap_or_else(|| own.clone());
            let (conditions, is_whole) = match path.and(&alternative.conditions) {
                Some(both) => (both, true),
                // Without one of two expressions for the path, the rule is wider.
                None => (path.clone(), false),
            };
            let is_wider = !is_whole
                || alternative.unknown.is_some()
                || alternative.is_existing
                || alternative.is_missing
                || alternative.other_host.is_some()
                || alternative.has_host_pattern
                || alternative.is_plain_http;
            if is_wider {
                remark = Some(
                    alternative.unknown.clone().unwrap_or_else(|| "wider than in Apache".into()),
                );
            }
            if conditions.is_empty() {
                let why = alternative
                    .unknown
                    .clone()
                    .unwrap_or_else(|| "it would refuse every request".into());
                return lost(translation, &why);
            }
            rules.push(
                RuleDraft::new(self.directive.at, conditions)
                    .with("deny", status.to_string())
                    .remarked(remark.clone()),
            );
        }
        translation.site.rules.extend(rules);
        match remark {
            Some(why) => self.all().for_each(|one| {
                translation.judgements.translated_but(one, &format!("wider: {why}"))
            }),
            None => self.translated(translation),
        }
    }

    /// A rule that ends the rewriting: files, directories and the front controller need none.
    fn pass(&self, translation: &mut Translation<'_>) {
        let is_file = self.conditions.iter().all(|one| {
            matches!(
                conditions::read(one),
                RewriteCondition::FileExists
                    | RewriteCondition::FirstPass
                    | RewriteCondition::Always
            )
        });
        let has_file = self.conditions.iter().any(|one| {
            conditions::read(one) == RewriteCondition::FileExists
                || conditions::read(one) == RewriteCondition::FirstPass
        });
        let is_front = self.directive.word(0).contains("index\\.php")
            || self.directive.word(0).contains("index.php");
        if self.flag(&["S", "skip"]).is_some() {
            let why = "the next rules apply to more paths";
            return self.all().for_each(|one| translation.judgements.translated_but(one, why));
        }
        if is_file && (has_file || is_front) {
            return self.all().for_each(|one| translation.judgements.built_in(one));
        }
        let Ok((own, _, _)) = self.pattern(Exactness::Exact) else {
            return self.all().for_each(|one| {
                translation.judgements.not_translated(one, "its expression has no counterpart")
            });
        };
        let alternatives = self.alternatives();
        let plain = alternatives.first().filter(|one| {
            alternatives.len() == 1
                && one.unknown.is_none()
                && !one.is_missing
                && !one.is_plain_http
                && !own.is_empty()
        });
        match plain.and_then(|one| own.and(&one.conditions)) {
            Some(conditions) => {
                let rule = RuleDraft::new(self.directive.at, conditions);
                translation.site.rules.push(rule.with("rewrite", "false".into()));
                self.all().for_each(|one| {
                    translation
                        .judgements
                        .translated_but(one, "it exempts from rewrites, not from denials")
                });
            }
            None => self.all().for_each(|one| {
                translation.judgements.not_needed_because(one, "it changes nothing")
            }),
        }
    }

    fn redirect(&self, translation: &mut Translation<'_>, target: &str, status: u16) {
        let none = |translation: &mut Translation<'_>, why: &str| {
            self.all().for_each(|one| translation.judgements.not_translated(one, why));
        };
        let alternatives = self.alternatives();
        let (own, regex, _) = match self.pattern(Exactness::Exact) {
            Ok(found) => found,
            Err(why) => return none(translation, &why),
        };
        let target = target.strip_suffix('?').unwrap_or(target);
        let read = match MoveTarget::read(target, Some(&regex)) {
            Ok(read) => read,
            Err(_)
                if target.contains("%1") && alternatives.iter().any(|one| one.has_host_pattern) =>
            {
                return none(translation, "write site.host, aliases and canonical_redirect = 301");
            }
            Err(why) => return none(translation, &why),
        };
        if own.is_empty() && self.is_option(translation, &read, &alternatives, status) {
            return self.translated(translation);
        }
        // A redirect that adds or removes the slash at the end of a path.
        if let Some(slash) = slash(self.directive.word(0), target) {
            let rule = RuleDraft::new(self.directive.at, self.context.conditions.clone());
            translation.site.rules.push(rule.with("slash", string(slash)));
            return self
                .all()
                .for_each(|one| translation.judgements.translated_but(one, "for GET and HEAD"));
        }
        let own = if read.text.contains("$1") && !own.is_empty() {
            RuleConditions::default().with_regex(&regex)
        } else if read.text.contains("$1") {
            RuleConditions::default().with_regex("^/(.*)$")
        } else {
            own
        };
        for alternative in &alternatives {
            let unknown = alternative.unknown.clone();
            let is_other = alternative.is_missing
                || alternative.is_existing
                || alternative.is_plain_http
                || alternative.other_host.is_some();
            let conditions =
                own.and(&alternative.conditions).filter(|_| unknown.is_none() && !is_other);
            let Some(conditions) = conditions else {
                return none(
                    translation,
                    &unknown.unwrap_or_else(|| {
                        "its conditions have no counterpart for a redirect".into()
                    }),
                );
            };
            let text = self.below_base(&read.text);
            let mut rule =
                RuleDraft::new(self.directive.at, conditions).with("redirect", string(&text));
            if status != 301 {
                rule = rule.with("redirect_status", status.to_string());
            }
            translation.site.rules.push(rule);
        }
        self.translated(translation);
    }

    /// Whether the redirect is an option of the site: to HTTPS, or to the canonical host.
    fn is_option(
        &self,
        translation: &mut Translation<'_>,
        target: &MoveTarget,
        alternatives: &[Alternative],
        status: u16,
    ) -> bool {
        let permanent = if status == 308 { 308 } else { 301 };
        let is_plain_http = alternatives.iter().any(|one| one.is_plain_http);
        let is_path = target.text == "$1" || target.text == "/$1";
        if is_plain_http && target.is_https && is_path {
            translation.https.extend(self.all().cloned());
            translation.site.https_redirect = Some(permanent);
            return true;
        }
        let has_path = target.needs_path || target.text.ends_with("$1");
        let Some(host) = target.host.as_ref().filter(|_| has_path) else { return false };
        let about_host = |one: &Alternative| {
            one.other_host.is_some() || one.has_host_pattern || one.conditions.get("host").is_some()
        };
        if !is_plain_http && !alternatives.iter().any(about_host) {
            return false;
        }
        for alias in alternatives.iter().filter_map(|one| one.conditions.get("host")).flatten() {
            translation.site.host(alias);
        }
        translation.site.canonical(host);
        translation.site.canonical_redirect = Some(permanent);
        if is_plain_http && target.text.starts_with("https") {
            translation.https.extend(self.all().cloned());
            translation.site.https_redirect = Some(permanent);
        }
        true
    }

    /// A target without a slash is below the directory of the file.
    fn below_base(&self, target: &str) -> String {
        if target.starts_with('/') || target.contains("://") {
            return target.to_owned();
        }
        let base = self.base.unwrap_or(&self.context.base).trim_end_matches('/');
        format!("{base}/{target}")
    }

    fn rewrite(&self, translation: &mut Translation<'_>, target: &str) -> bool {
        let none = |translation: &mut Translation<'_>, why: &str| {
            self.all().for_each(|one| translation.judgements.not_translated(one, why));
            false
        };
        let (own, regex, _) = match self.pattern(Exactness::Exact) {
            Ok(found) => found,
            Err(why) => return none(translation, &why),
        };
        let (target, drops_query) = match target.strip_suffix('?') {
            Some(target) => (target, true),
            None => (target, false),
        };
        let read = match MoveTarget::read(target, Some(&regex)) {
            Ok(read) => read,
            Err(why) => return none(translation, &why),
        };
        let text = self.below_base(&read.text);
        let alternatives = self.alternatives();
        let front = translation.site.front_controller.as_deref().unwrap_or("index.php");
        let plain = text.strip_suffix("/$1").unwrap_or(&text).trim_start_matches('/').to_owned();
        let is_missing = alternatives.iter().all(|one| one.is_missing);
        let only_excludes = |conditions: &RuleConditions| conditions.only_exclude();
        let is_for_all =
            alternatives.iter().all(|one| only_excludes(&one.conditions)) && only_excludes(&own);
        let is_script = plain.ends_with(".php") && !plain.contains(['$', '?']);
        if is_for_all && is_script && (is_missing || plain == front) {
            if plain != "index.php" {
                translation.site.front_controller = Some(plain);
            }
            self.all().for_each(|one| translation.judgements.built_in(one));
            return true;
        }
        let uses_captures = text.contains('$');
        let own = match (uses_captures, own.is_empty()) {
            (true, true) => RuleConditions::default().with_regex("^/(.*)$"),
            (true, false) => RuleConditions::default().with_regex(&regex),
            (false, _) => own,
        };
        for alternative in &alternatives {
            let unknown = alternative.unknown.clone();
            let is_other = alternative.is_plain_http || alternative.other_host.is_some();
            let Some(mut conditions) =
                own.and(&alternative.conditions).filter(|_| unknown.is_none() && !is_other)
            else {
                return none(
                    translation,
                    &unknown.unwrap_or_else(|| {
                        "its conditions have no counterpart for a rewrite".into()
                    }),
                );
            };
            if alternative.is_missing || alternative.is_existing {
                let word = if alternative.is_missing { "missing" } else { "exists" };
                conditions = conditions.with("file", vec![word.into()]);
            }
            let rule = RuleDraft::new(self.directive.at, conditions);
            translation.site.rules.push(rule.with("rewrite", string(&text)));
        }
        let has_query =
            self.flag(&["QSA", "qsappend"]).is_some() || !text.contains('?') && !drops_query;
        if has_query {
            self.translated(translation);
        } else {
            self.all().for_each(|one| {
                translation.judgements.translated_but(one, "the query of the client is kept")
            });
        }
        false
    }
}

/// The status of a refusal for one of a redirect.
pub(super) fn refusal(status: u16) -> Option<u16> {
    (status >= 400).then_some(if matches!(status, 404 | 410) { status } else { 403 })
}

/// Whether a `RewriteRule` refuses.
pub(super) fn refuses(rule: &Directive) -> bool {
    RewriteRule::flags(rule).iter().any(|flag| {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        match name.to_ascii_lowercase().as_str() {
            "f" | "forbidden" | "g" | "gone" => true,
            "r" | "redirect" => value.parse().ok().and_then(refusal).is_some(),
            _ => false,
        }
    })
}

/// Whether a redirect only adds or removes the slash at the end.
fn slash(pattern: &str, target: &str) -> Option<&'static str> {
    let removes = matches!(pattern, "^(.*)/$" | "^(.+)/$" | "^(.+)/+$")
        && matches!(target, "/$1" | "$1" | "%1");
    let adds = matches!(pattern, "^(.*[^/])$" | "^([^/]+)$" | "^(.+[^/])$" | "^(.*)([^/])$")
        && matches!(target, "/$1/" | "$1/" | "/$1$2/");
    if removes {
        Some("remove")
    } else if adds {
        Some("add")
    } else {
        None
    }
}

impl Alternative {
    fn and(&self, condition: &RewriteCondition) -> Alternative {
        let mut all = self.clone();
        match condition {
            RewriteCondition::FileMissing => all.is_missing = true,
            RewriteCondition::FileExists => all.is_existing = true,
            RewriteCondition::NotHttps => all.is_plain_http = true,
            RewriteCondition::Always | RewriteCondition::FirstPass => {}
            RewriteCondition::OtherHost(host) => all.other_host = Some(host.clone()),
            RewriteCondition::HostPattern => all.has_host_pattern = true,
            RewriteCondition::Conditions(more) => match all.conditions.and(more) {
                Some(both) => all.conditions = both,
                None => all.unknown = Some("two conditions on one path".into()),
            },
            RewriteCondition::Unknown(why) => all.unknown = Some(why.clone()),
        }
        all
    }
}
