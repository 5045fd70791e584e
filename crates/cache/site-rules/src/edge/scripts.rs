//! `php = false` and `site.entry_points`: which scripts do not run.
//!
//! Tested are the script that would run, by its path in the URL and its real path below the document root, and every
//! script that the URL names, although no such file is there. So neither `/uploads/x.php`, `/uploads/a.jpg/b.PHP` nor a
//! link to a file in `/uploads` runs. With `entry_points`, only the scripts that they name run, and the front
//! controller.
//!
//! Not here: which script a path leads to (`origin::routes`).

use super::paths::{PathForms, PathPatterns};
use crate::rules::SiteRules;
use rule_conditions::{Globs, Regexes};
use std::borrow::Cow;

/// A rule with `php`.
#[derive(Clone, Debug)]
pub(crate) struct ScriptRule {
    pub(crate) number: usize,
    pub(crate) host: Globs,
    pub(crate) path: Globs,
    pub(crate) regex: Regexes,
    /// Whether scripts run; if so, the rule exempts.
    pub(crate) runs: bool,
}

/// The scripts that may run.
#[derive(Clone, Debug)]
pub(crate) struct EntryPoints {
    pub(crate) globs: Globs,
    /// The URL path of the front controller.
    pub(crate) front_controller: Box<str>,
}

/// A script that would run.
#[derive(Clone, Copy)]
pub struct ScriptPath<'a> {
    /// Its path in the URL.
    pub name: &'a str,
    /// Its real path below the document root, with a leading slash, if it is there.
    pub real: Option<&'a str>,
}

/// Why a script does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRefusal {
    /// The rule with this number has `php = false`.
    Rule(usize),
    /// It is none of `site.entry_points`.
    NoEntryPoint,
    /// The path names so many scripts that it is not compared with the rules.
    TooManyScripts,
}

impl SiteRules {
    /// Whether any script may be refused.
    pub fn has_script_rules(&self) -> bool {
        !self.edge.scripts.is_empty() || self.edge.entry_points.is_some()
    }

    /// The reason why nothing runs for a URL: its host, its path as it was sent, and the script to which it leads.
    pub fn script_refusal(
        &self,
        host: &str,
        path: &str,
        script: Option<ScriptPath<'_>>,
    ) -> Option<ScriptRefusal> {
        let forms = PathForms::of(path).with_endings(&self.edge.script_endings);
        if self.has_script_rules() && forms.name_too_many_scripts() {
            return Some(ScriptRefusal::TooManyScripts);
        }
        let mut names: Vec<Cow<'_, [u8]>> = forms.scripts().map(Cow::Borrowed).collect();
        if let Some(script) = script {
            names.insert(0, Cow::Borrowed(script.name.as_bytes()));
            names.extend(script.real.map(|real| Cow::Borrowed(real.as_bytes())));
        }
        let (first, others) = names.split_first()?;
        let names = PathForms::of_names(first, others.to_vec());
        let host = host_name(host);
        let decides = |rule: &&ScriptRule| {
            (rule.host.is_empty() || rule.host.fit(host)) && rule.decides(&names)
        };
        match self.edge.scripts.iter().find(decides) {
            Some(rule) if rule.runs => return None,
            Some(rule) => return Some(ScriptRefusal::Rule(rule.number)),
            None => {}
        }
        let (entries, script) = (self.edge.entry_points.as_ref()?, script?);
        let is_one =
            *script.name == *entries.front_controller || entries.fit(script.name.as_bytes());
        (!is_one).then_some(ScriptRefusal::NoEntryPoint)
    }
}

impl EntryPoints {
    /// Whether a pattern names the script. Without patterns, or with exceptions only, none does.
    fn fit(&self, name: &[u8]) -> bool {
        !self.globs.any.is_empty() && self.globs.fit(name)
    }
}

impl ScriptRule {
    fn decides(&self, names: &PathForms<'_>) -> bool {
        if self.runs {
            self.path.exempt(names) && self.regex.exempt(names)
        } else {
            self.path.restrict(names) && self.regex.restrict(names)
        }
    }
}

/// A host without its port and a final dot.
fn host_name(host: &str) -> &[u8] {
    let name = match host.rfind(':') {
        Some(at) if !host[at..].contains(']') => &host[..at],
        _ => host,
    };
    name.trim_end_matches('.').as_bytes()
}
