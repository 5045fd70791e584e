//! Regular expressions of PCRE as Pagewell's conditions: globs where they are equal, else `path_regex`.
//!
//! A negative look-ahead for fixed texts at the end of an expression is expanded into an equal expression without it.
//! For a restriction ([`Exactness::MayWiden`]), any other look-around is removed, which can only match more; the
//! caller reports that. Patterns are compiled as Pagewell compiles them, with its bound.
//!
//! A glob is equal if the expression consists of literals, alternatives, `.*`, `[^/]*` and anchors.

mod glob;
mod look_around;

pub(crate) use glob::{GlobShape, shapes};

use glob::{Plus, globs, globs_of};
use regex::bytes::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern, as in Pagewell.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The maximum length of an expression in bytes.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// Whether a pattern may match more than the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// It restricts requests: it may match more, never less.
    MayWiden,
    /// It must match exactly the same paths.
    Exact,
}

/// A condition on the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PathPattern {
    /// Patterns of `path`, if there are equal ones.
    pub(crate) globs: Vec<String>,
    /// The expression of `path_regex`.
    pub(crate) regex: String,
    /// Whether it matches exactly what the original matches.
    pub(crate) is_exact: bool,
}

impl PathPattern {
    /// The pattern for an expression on the whole path, which begins with a slash.
    ///
    /// # Errors
    /// It has no equal, or no wider one: the reason.
    pub(crate) fn read(
        expression: &str,
        ignores_case: bool,
        exactness: Exactness,
    ) -> Result<PathPattern, String> {
        if expression.len() > EXPRESSION_BYTES_MAX {
            return Err("the regular expression is longer than 8 KiB".into());
        }
        let plain = expression.replace("\\/", "/");
        let mut is_exact = true;
        let without = match look_around::expanded(&plain) {
            Some(text) => text,
            None if exactness == Exactness::MayWiden => {
                is_exact = false;
                look_around::removed(&plain)
            }
            None => return Err("it has a look-around, which path_regex does not have".into()),
        };
        let case = if ignores_case && !without.starts_with("(?i)") { "(?i)" } else { "" };
        let regex = format!("{case}{without}");
        compiled(&regex)?;
        let has_case = regex.starts_with("(?i)");
        let globs = if has_case { None } else { globs(&without, Plus::Refused) };
        Ok(PathPattern { globs: globs.unwrap_or_default(), regex, is_exact })
    }

    /// Whether a path matches.
    #[cfg(test)]
    pub(crate) fn matches(&self, path: &str) -> bool {
        compiled(&self.regex).is_ok_and(|regex| regex.is_match(path.as_bytes()))
    }
}

/// The globs of scripts: equal except for names that are never served, such as `/.php`.
pub(crate) fn script_globs(expression: &str) -> Option<Vec<String>> {
    let plain = expression.replace("\\/", "/");
    let all = globs(&plain, Plus::AsStar)?;
    let end = |glob: &String| glob.to_ascii_lowercase().ends_with(".php");
    let mut scripts: Vec<String> = all.iter().filter(|glob| end(glob)).cloned().collect();
    scripts.dedup();
    // A name with a path behind it is not a script.
    let is_behind = |glob: &String| {
        scripts.iter().any(|script| {
            glob.strip_prefix(script.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let complete = all.iter().filter(|glob| !end(glob)).all(is_behind);
    (complete && !scripts.is_empty()).then_some(scripts)
}

/// The globs of scripts whose path begins as an expression says.
pub(crate) fn script_begins(expression: &str) -> Option<Vec<String>> {
    let all = globs(&expression.replace("\\/", "/"), Plus::AsStar)?;
    let script = |glob: &String| glob.strip_suffix("**").map(|begin| format!("{begin}**.php"));
    all.iter().map(script).collect()
}

/// Compiles an expression as Pagewell does.
pub(crate) fn compiled(expression: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(expression)
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    built.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("path_regex cannot express it: {why}")
    })
}

/// The text that an expression matches, if it matches a single one as a whole or everywhere: for values of hosts.
pub(crate) fn literal(expression: &str) -> Option<String> {
    let inner = expression.strip_prefix('^')?.strip_suffix('$')?;
    let all = globs_of(&format!("^{inner}$"), Plus::Refused, false)?;
    match all.as_slice() {
        [one] if !one.contains('*') => Some(one.clone()),
        _ => None,
    }
}

/// The globs that match the same texts as an expression, for values without segments: hosts, agents, referrers.
pub(crate) fn value_globs(expression: &str) -> Option<Vec<String>> {
    let all = globs_of(expression, Plus::Refused, false)?;
    let one_star = |mut glob: String| {
        while glob.contains("**") {
            glob = glob.replace("**", "*");
        }
        glob
    };
    Some(all.into_iter().map(one_star).collect())
}

/// An expression that matches this text literally.
pub(crate) fn escaped(text: &str) -> String {
    regex::escape(text).replace("\\-", "-")
}

#[cfg(test)]
mod tests;
