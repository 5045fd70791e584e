//! The configuration that an import writes: a site, its rules, and their text.
//!
//! The names of all keys of Pagewell are here. Every value is a TOML string with its special characters escaped, and
//! comments have one line, so that no value of the original can add a line.

use crate::pattern::PathPattern;
use crate::source::{SourceLine, Sources};
pub(crate) use option_table::toml_string as string;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A condition of a rule: its key, and its words.
pub(crate) type ConditionWords = (&'static str, Vec<String>);

/// The words of a condition, each negated if the condition is.
pub(crate) fn signed(words: Vec<String>, is_not: bool) -> Vec<String> {
    if is_not { words.into_iter().map(|word| format!("!{word}")).collect() } else { words }
}

/// The conditions of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuleConditions {
    words: Vec<ConditionWords>,
}

impl RuleConditions {
    pub(crate) fn with(mut self, key: &'static str, words: Vec<String>) -> RuleConditions {
        if !words.is_empty() {
            self.words.push((key, words));
        }
        self
    }

    /// Adds the path, as globs if there are any.
    pub(crate) fn with_pattern(self, pattern: &PathPattern) -> RuleConditions {
        if pattern.globs.is_empty() {
            self.with_regex(&pattern.regex)
        } else {
            self.with("path", pattern.globs.clone())
        }
    }

    /// Adds the path as a regular expression, whose groups are captures.
    pub(crate) fn with_regex(self, regex: &str) -> RuleConditions {
        self.with("path_regex", vec![regex.to_owned()])
    }

    /// Both conditions, if each key occurs in one of them only.
    pub(crate) fn and(&self, other: &RuleConditions) -> Option<RuleConditions> {
        let mut all = self.clone();
        for (key, words) in &other.words {
            match all.words.iter().find(|(known, _)| known == key) {
                Some((_, known)) if known == words => {}
                // Exclusions hold together with anything; two choices do not.
                Some((_, known)) if [words, known].iter().any(|all| excludes(all)) => {
                    let place = all.words.iter_mut().find(|(known, _)| known == key)?;
                    place.1.extend(words.iter().cloned());
                }
                Some(_) => return None,
                None => all.words.push((key, words.clone())),
            }
        }
        Some(all)
    }

    /// The conditions without those of one key.
    pub(crate) fn without(&self, key: &str) -> RuleConditions {
        RuleConditions {
            words: self.words.iter().filter(|(known, _)| *known != key).cloned().collect(),
        }
    }

    /// Whether all conditions only exclude requests.
    pub(crate) fn only_exclude(&self) -> bool {
        self.words.iter().all(|(_, words)| excludes(words))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&[String]> {
        self.words.iter().find(|(known, _)| *known == key).map(|(_, words)| words.as_slice())
    }
}

/// Whether all words exclude.
fn excludes(words: &[String]) -> bool {
    words.iter().all(|word| word.starts_with('!'))
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleDraft {
    /// The line from which it comes.
    pub(crate) at: SourceLine,
    pub(crate) conditions: RuleConditions,
    /// Keys and their values as TOML.
    pub(crate) actions: Vec<(&'static str, String)>,
    /// A remark, as a comment.
    pub(crate) remark: Option<String>,
}

impl RuleDraft {
    pub(crate) fn new(at: SourceLine, conditions: RuleConditions) -> RuleDraft {
        RuleDraft { at, conditions, actions: Vec::new(), remark: None }
    }

    pub(crate) fn with(mut self, key: &'static str, value: String) -> RuleDraft {
        self.actions.push((key, value));
        self
    }

    pub(crate) fn remarked(mut self, remark: Option<String>) -> RuleDraft {
        self.remark = remark;
        self
    }

    /// Whether it exempts from a restriction.
    pub(crate) fn exempts(&self) -> bool {
        self.actions.iter().any(|(key, value)| match *key {
            "deny" | "auth_file" | "limit" => value == "false",
            "php" => value == "true",
            _ => false,
        })
    }

    /// Whether it restricts requests.
    pub(crate) fn restricts(&self) -> bool {
        !self.exempts() && ["deny", "auth_file", "limit", "php"].iter().any(|key| self.has(key))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.actions.iter().any(|(known, _)| *known == key)
    }
}

/// The site, with everything that is not a rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteDraft {
    pub(crate) hosts: Vec<String>,
    pub(crate) root: Option<String>,
    pub(crate) front_controller: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) php_at: Option<String>,
    pub(crate) entry_points: Option<Vec<String>>,
    pub(crate) https_redirect: Option<u16>,
    pub(crate) canonical_redirect: Option<u16>,
    /// Whether unknown hosts are refused. With patterns among the names, they are not.
    pub(crate) refuses_others: bool,
    pub(crate) has_open_names: bool,
    pub(crate) certificate: Option<(String, String)>,
    pub(crate) internal_files: Vec<(String, String)>,
    pub(crate) error_pages: Vec<(String, String)>,
    /// Keys of `limits` and their values.
    pub(crate) limits: Vec<(&'static str, String)>,
    /// The lines of a redirect file: path, target, status.
    pub(crate) redirect_lines: Vec<[String; 3]>,
    /// The path of that file, if there is one.
    pub(crate) redirect_file: Option<PathBuf>,
    pub(crate) rules: Vec<RuleDraft>,
}

impl SiteDraft {
    /// The text of the redirect file, if there is one.
    pub(crate) fn redirects(&self) -> Option<String> {
        let line = |line: &[String; 3]| {
            let [path, target, status] = line.each_ref().map(|field| comment(field));
            format!("{path}\t{target}\t{status}\n")
        };
        let lines: String = self.redirect_lines.iter().map(line).collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// Adds a host, first the canonical one.
    pub(crate) fn host(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        if !self.hosts.contains(&name) {
            self.hosts.push(name);
        }
    }

    /// Moves a host to the first place.
    pub(crate) fn canonical(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        self.hosts.retain(|host| *host != name);
        self.hosts.insert(0, name);
    }

    /// The text of the configuration.
    pub(crate) fn text(&self, from: &str, sources: &Sources) -> String {
        let mut text = format!(
            "# Written by `pagewell import {from}` from {}.\n# The report says what is not in here. Check it: pagewell check --config FILE\n\n",
            comment(
                &sources.paths.first().map(|path| path.display().to_string()).unwrap_or_default()
            )
        );
        let tls = self.certificate.as_ref().map(|(certificate, key)| {
            format!("\n[[tls]]\ncertificate = {}\nkey = {}\n", string(certificate), string(key))
        });
        match (&tls, self.https_redirect) {
            (Some(_), redirect) => {
                text.push_str("listen = \":80\"\nlisten_tls = \":443\"\n");
                if let Some(status) = redirect {
                    let _ = writeln!(text, "https_redirect = {status}");
                }
            }
            (None, Some(status)) => {
                let _ = writeln!(
                    text,
                    "# The original redirects to HTTPS; it needs a certificate, and listen_tls.\n#https_redirect = {status}"
                );
            }
            (None, None) => {}
        }
        text.push_str(&tls.unwrap_or_default());
        self.site(&mut text);
        for rule in &self.rules {
            rule_text(&mut text, rule, sources);
        }
        text
    }

    fn site(&self, text: &mut String) {
        text.push_str("\n[site]\n");
        let mut line = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value}");
            }
        };
        let has_files = self.origin.is_none();
        line("root", self.root.as_deref().filter(|_| has_files).map(string));
        line("origin", self.origin.as_deref().map(string));
        line("host", self.hosts.first().map(|host| string(host)));
        line("aliases", self.hosts.get(1..).filter(|all| !all.is_empty()).map(words));
        line("canonical_redirect", self.canonical_redirect.map(|status| status.to_string()));
        let refuses = self.refuses_others && !self.has_open_names && !self.hosts.is_empty();
        line("other_hosts", refuses.then(|| string("refuse")));
        line("front_controller", self.front_controller.as_deref().map(string));
        line("entry_points", self.entry_points.as_deref().map(words));
        let redirects = self.redirect_file.as_ref().map(|path| path.display().to_string());
        line("redirect_files", redirects.map(|path| words(&[path])));
        line(
            "internal_files",
            (!self.internal_files.is_empty()).then(|| table(&self.internal_files)),
        );
        if !self.error_pages.is_empty() {
            text.push_str("\n[error_pages]\n");
            for (status, file) in &self.error_pages {
                let _ = writeln!(text, "{} = {}", string(status), string(file));
            }
        }
        if !self.limits.is_empty() {
            text.push_str("\n[limits]\n");
            for (key, value) in &self.limits {
                let _ = writeln!(text, "{key} = {}", string(value));
            }
        }
        if let Some(at) = &self.php_at {
            let _ = write!(text, "\n[php]\nat = {}\n", string(at));
        }
    }
}

fn rule_text(text: &mut String, rule: &RuleDraft, sources: &Sources) {
    let _ = write!(text, "\n# {}", comment(&sources.shown(rule.at)));
    if let Some(remark) = &rule.remark {
        let _ = write!(text, ": {}", comment(remark));
    }
    text.push_str("\n[[rule]]\n");
    for (key, all) in &rule.conditions.words {
        let _ = writeln!(text, "{key} = {}", words(all));
    }
    for (key, value) in &rule.actions {
        let _ = writeln!(text, "{key} = {value}");
    }
}

fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// One word, or a list of words.
pub(crate) fn words(all: &[String]) -> String {
    match all {
        [one] => string(one),
        all => format!("[{}]", all.iter().map(|word| string(word)).collect::<Vec<_>>().join(", ")),
    }
}

/// An inline table of strings.
pub(crate) fn table(all: &[(String, String)]) -> String {
    let rows: Vec<_> =
        all.iter().map(|(key, value)| format!("{} = {}", string(key), string(value))).collect();
    format!("{{ {} }}", rows.join(", "))
}
