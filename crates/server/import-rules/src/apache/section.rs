//! The requests to which a file or section of Apache applies, as the conditions of a rule.
//!
//! Not here: the choice among sections (`access`), and their syntax (`syntax`).

use crate::draft::RuleConditions;
use crate::pattern::{Exactness, PathPattern, escaped};
use crate::source::Directive;
use std::path::Path;

/// Where a directive stands.
#[derive(Debug, Clone)]
pub(super) struct SectionScope {
    /// The directory, as the begin and end of a path: `/`, or `/images/`.
    pub(super) base: String,
    /// Whether patterns of `RewriteRule` see the path below the directory.
    pub(super) is_directory: bool,
    pub(super) conditions: RuleConditions,
    /// Whether the conditions match exactly what the section does.
    pub(super) is_exact: bool,
    /// Whether the section is about names of files: it applies after directories.
    pub(super) is_files: bool,
    /// Whether the section is about URLs: it applies last.
    pub(super) is_location: bool,
}

/// The conditions of a restriction on names of files: Apache applies it to a path behind the name, too.
pub(super) fn with_path_behind(conditions: &RuleConditions) -> RuleConditions {
    let mut all = conditions.clone();
    if let Some(globs) = conditions.get("path") {
        let behind =
            globs.iter().filter(|glob| !glob.ends_with('*')).map(|glob| format!("{glob}/**"));
        let words = globs.iter().cloned().chain(behind).collect();
        all = all.without("path").with("path", words);
    }
    if let Some([regex]) = conditions.get("path_regex")
        && let Some(begin) = regex.strip_suffix('$')
    {
        all = all.without("path_regex").with_regex(&format!("{begin}(?:/|$)"));
    }
    all
}

impl SectionScope {
    /// The context of a file in a directory below the root.
    pub(super) fn of_directory(directory: &Path) -> SectionScope {
        let parts: Vec<_> = directory.iter().filter_map(|part| part.to_str()).collect();
        let base = if parts.is_empty() { "/".to_owned() } else { format!("/{}/", parts.join("/")) };
        SectionScope::below(base)
    }

    fn below(base: String) -> SectionScope {
        let conditions = if base == "/" {
            RuleConditions::default()
        } else if base.contains('*') {
            RuleConditions::default().with_regex(&format!("^{}", escaped(&base)))
        } else {
            let words = vec![base.trim_end_matches('/').to_owned(), format!("{base}**")];
            RuleConditions::default().with("path", words)
        };
        SectionScope {
            base,
            is_directory: true,
            conditions,
            is_exact: true,
            is_files: false,
            is_location: false,
        }
    }

    /// The place in the order in which Apache applies sections: directories from outer to inner ones, names of files,
    /// and URLs, whose sections have the order of the file.
    pub(super) fn rank(&self) -> (u8, usize) {
        match (self.is_location, self.is_files) {
            (true, _) => (2, 0),
            (false, is_files) => (u8::from(is_files), self.base.matches('/').count()),
        }
    }

    /// The conditions of a restriction.
    pub(super) fn restricted(&self) -> RuleConditions {
        if self.is_files { with_path_behind(&self.conditions) } else { self.conditions.clone() }
    }

    /// The context of a section in this one.
    ///
    /// # Errors
    /// It has no counterpart: the reason.
    pub(super) fn inside(
        &self,
        section: &Directive,
        root: Option<&str>,
    ) -> Result<SectionScope, String> {
        let word = match section.words.as_slice() {
            [mark, word] if mark == "~" => word.as_str(),
            words => words.first().map_or("", String::as_str),
        };
        let is_regex = section.name.ends_with("match") || section.word(0) == "~";
        match section.name.as_str() {
            "<virtualhost" => Ok(SectionScope { is_directory: false, ..self.clone() }),
            "<directory" if !is_regex => {
                let root = root.ok_or("a Directory before DocumentRoot")?.trim_end_matches('/');
                let path = word.trim_end_matches('/');
                if path.contains(['*', '?', '[']) {
                    return Err("a Directory with a pattern".into());
                }
                match path.strip_prefix(root) {
                    Some("") => Ok(SectionScope::below("/".into())),
                    Some(below) if below.starts_with('/') => {
                        Ok(SectionScope::below(format!("{below}/")))
                    }
                    _ if root.starts_with(path) => Ok(SectionScope::below("/".into())),
                    _ => Err("the directory is not below the document root".into()),
                }
            }
            "<location" if !is_regex => {
                let (words, is_exact) = location_globs(word)?;
                let inner = self.with(RuleConditions::default().with("path", words), is_exact)?;
                Ok(SectionScope { is_location: true, ..inner })
            }
            "<locationmatch" | "<location" => {
                Ok(SectionScope { is_location: true, ..self.with_regex(word)? })
            }
            "<files" if !is_regex && word.contains('[') => {
                Err("a pattern with a class of characters".into())
            }
            "<files" | "<filesmatch" => {
                let name = if is_regex { name_expression(word) } else { name_of_glob(word) };
                let (regex, is_exact) = self.below_base(name);
                let mut inner = self.with_regex(&regex)?;
                inner.is_exact &= is_exact;
                inner.is_files = true;
                Ok(inner)
            }
            "<limit" | "<limitexcept" => {
                let not = if section.name == "<limit" { "" } else { "!" };
                let words = section
                    .words
                    .iter()
                    .map(|method| format!("{not}{}", method.to_ascii_uppercase()));
                self.with(RuleConditions::default().with("method", words.collect()), true)
            }
            _ => Err("it has no counterpart".into()),
        }
    }

    /// An expression on the name of a file as one below this directory, and whether it is exact.
    fn below_base(&self, name: String) -> (String, bool) {
        let base = self.base.trim_end_matches('/');
        if base.is_empty() {
            return (name, true);
        }
        let (case, name) = match name.strip_prefix("(?i)") {
            Some(rest) => ("(?i)", rest),
            None => ("", name.as_str()),
        };
        let base = escaped(base);
        if name.starts_with(['/', '(']) {
            let is_exact = case.is_empty() && name.starts_with('/');
            return (format!("{case}^{base}(?:/.*)?{name}"), is_exact);
        }
        (format!("{case}^{base}/.*{name}"), case.is_empty())
    }

    fn with_regex(&self, regex: &str) -> Result<SectionScope, String> {
        let ignores_case = regex.starts_with("(?i)") || regex.starts_with("(?i:");
        let pattern =
            PathPattern::read(regex.trim_start_matches("(?i)"), ignores_case, Exactness::MayWiden)?;
        let conditions = RuleConditions::default().with_pattern(&pattern);
        // The pattern has the directory in it.
        let alone = SectionScope { conditions: RuleConditions::default(), ..self.clone() };
        let around = self.conditions.without("path");
        let mut inner = alone.with(conditions, pattern.is_exact)?;
        inner.conditions = around.and(&inner.conditions).ok_or("two expressions for one path")?;
        Ok(inner)
    }

    fn with(&self, more: RuleConditions, is_exact: bool) -> Result<SectionScope, String> {
        let conditions = self.conditions.and(&more).ok_or("two conditions on one path")?;
        Ok(SectionScope { conditions, is_exact: self.is_exact && is_exact, ..self.clone() })
    }

    /// The expression of a `RewriteRule` as one for the whole path.
    pub(super) fn expression(&self, written: &str) -> String {
        if !self.is_directory {
            return written.to_owned();
        }
        let base = escaped(&self.base);
        let alternatives: Vec<String> =
            top_alternatives(written).iter().map(|one| self.alternative(one, &base)).collect();
        alternatives.join("|")
    }

    /// One alternative of an expression.
    fn alternative(&self, written: &str, base: &str) -> String {
        let anchored = anchors_replaced(written, &format!("^{base}"));
        if anchored != *written {
            anchored
        } else if matches!(written, "" | "." | ".*" | "(.*)" | "(.*)$") {
            format!("^{base}{written}")
        } else if self.base != "/" || written.starts_with(['/', '.', '[', '(']) {
            format!("^{base}.*?{written}")
        } else {
            written.to_owned()
        }
    }
}

/// The paths of `<Location WORD>`: the word, and what follows it after a slash; whether they are exact.
fn location_globs(word: &str) -> Result<(Vec<String>, bool), String> {
    if !word.starts_with('/') {
        return Err("a Location that is no path".into());
    }
    let begin = word.split('[').next().unwrap_or_default().replace('?', "*");
    let (mut glob, is_exact) = (String::new(), !word.contains(['*', '?', '[']));
    for c in begin.chars() {
        // A star beside another one would be another wildcard.
        if c != '*' || !glob.ends_with('*') {
            glob.push(c);
        }
    }
    if begin.len() < word.len() {
        return Ok((vec![format!("{}**", glob.trim_end_matches('*'))], false));
    }
    match glob.as_str() {
        glob if glob.ends_with('/') => Ok((vec![format!("{glob}**")], is_exact)),
        glob => Ok((vec![glob.to_owned(), format!("{glob}/**")], is_exact)),
    }
}

/// The alternatives of an expression outside of groups and classes.
fn top_alternatives(written: &str) -> Vec<&str> {
    let (mut all, mut begin, mut open, mut is_class, mut is_escaped) =
        (Vec::new(), 0, 0_usize, false, false);
    for (at, c) in written.char_indices() {
        match c {
            _ if is_escaped => {}
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => open += 1,
            ')' if !is_class => open = open.saturating_sub(1),
            '|' if !is_class && open == 0 => {
                all.push(&written[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    all.push(&written[begin..]);
    all
}

/// The expression with each `^` outside of a class replaced.
fn anchors_replaced(written: &str, anchor: &str) -> String {
    let (mut text, mut is_class, mut is_escaped) = (String::new(), false, false);
    for c in written.chars() {
        match c {
            '^' if !is_class && !is_escaped => text.push_str(anchor),
            c => text.push(c),
        }
        is_class = !is_escaped && (c == '[' || is_class && c != ']') || is_escaped && is_class;
        is_escaped = c == '\\' && !is_escaped;
    }
    text
}

/// An expression on the name of a file as one on the path.
fn name_expression(written: &str) -> String {
    let (case, written) = match written.strip_prefix("(?i)") {
        Some(rest) => ("(?i)", rest),
        None => ("", written),
    };
    let written = &names_only(written);
    let anchored = anchors_replaced(written, "/");
    let has_begin = anchored != *written;
    let ends = written.ends_with('$') && !written.ends_with("\\$");
    let every_ends = ends || written.ends_with("$)") || written.ends_with("$)?");
    let end = if every_ends { "" } else { "[^/]*$" };
    // An ending such as `\.php$` has no slash: it is the same for the name and the path.
    let is_ending = ends && !has_begin;
    let begin = if has_begin || is_ending { "" } else { "/[^/]*" };
    if anchored.contains('|') && !(is_ending || anchored.starts_with('(')) {
        return format!("{case}{begin}(?:{anchored}){end}");
    }
    format!("{case}{begin}{anchored}{end}")
}

/// A shell pattern on the name of a file as an expression.
fn name_of_glob(written: &str) -> String {
    let mut text = String::from("/");
    for c in written.chars() {
        match c {
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            c => text.push_str(&escaped(&c.to_string())),
        }
    }
    text.push('$');
    text
}

/// The expression with `.` as any character of a name.
fn names_only(written: &str) -> String {
    let (mut text, mut is_class, mut is_escaped) = (String::new(), false, false);
    for c in written.chars() {
        if c == '.' && !is_class && !is_escaped {
            text.push_str("[^/]");
        } else {
            text.push(c);
        }
        is_class = !is_escaped && (c == '[' || is_class && c != ']') || is_escaped && is_class;
        is_escaped = c == '\\' && !is_escaped;
    }
    text
}
