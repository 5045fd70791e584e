//! `if` of nginx as the conditions of a rule.
//!
//! Not here: the content of the block (`moves`), and expressions as patterns (`pattern`).

use super::Translation;
use super::scope::Scope;
use crate::draft::{RuleConditions, signed};
use crate::fields;
use crate::pattern::{Exactness, PathPattern, literal, value_globs};
use crate::source::Directive;

/// The condition of an `if`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IfCondition {
    /// The request came over plain HTTP.
    NotHttps,
    /// The host differs from this one, or has another form of it.
    OtherHost(String),
    /// The host begins with `www.`.
    Www,
    /// Conditions of a rule.
    Conditions(RuleConditions),
}

/// Reads the condition of an `if`.
///
/// # Errors
/// It has no counterpart: the reason.
pub(super) fn read(
    translation: &Translation<'_>,
    of: &Directive,
    scope: &Scope<'_>,
) -> Result<IfCondition, String> {
    let text = of.words.join(" ");
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.ok_or("its condition has no parentheses")?.trim();
    let (subject, rest) = inner.split_once(' ').unwrap_or((inner, ""));
    let rest = rest.trim();
    if let Some(test) = subject.strip_prefix("!-").or_else(|| subject.strip_prefix('-')) {
        return file_test(subject.starts_with('!'), test, rest);
    }
    let (operator, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let value = translation.expanded(value.trim().trim_matches(['"', '\'']));
    let subject = subject.trim_start_matches('$').trim_matches(['{', '}']);
    compare(subject, operator, &value, (scope, &translation.server_names))
}

fn file_test(is_not: bool, test: &str, path: &str) -> Result<IfCondition, String> {
    let is_request = [
        "$request_filename",
        "$document_root$uri",
        "$document_root/$uri",
        "$document_root$request_uri",
    ]
    .contains(&path.trim_matches('"'));
    if !is_request || !matches!(test, "f" | "e" | "d") {
        return Err("only the requested file can be tested".into());
    }
    let word = match (is_not, test) {
        (true, _) => "missing",
        (false, "d") => return Err("a directory cannot be tested".into()),
        (false, _) => "exists",
    };
    Ok(IfCondition::Conditions(RuleConditions::default().with("file", vec![word.into()])))
}

fn compare(
    subject: &str,
    operator: &str,
    value: &str,
    (scope, names): (&Scope<'_>, &[String]),
) -> Result<IfCondition, String> {
    let is_not = operator.starts_with('!');
    let is_regex = operator.contains('~');
    let conditions = RuleConditions::default();
    let whole = |conditions: RuleConditions| Ok(IfCondition::Conditions(conditions));
    let none = || Err(format!("the condition on ${subject} has no counterpart"));
    match (subject, operator) {
        ("scheme", "=") if value == "http" => return Ok(IfCondition::NotHttps),
        ("scheme" | "http_x_forwarded_proto", "!=") if value == "https" => {
            return Ok(IfCondition::NotHttps);
        }
        ("https", "!=") if value == "on" => return Ok(IfCondition::NotHttps),
        ("https" | "ssl_protocol", "=") if value.is_empty() => return Ok(IfCondition::NotHttps),
        _ => {}
    }
    match subject {
        "host" | "http_host" | "server_name" => {
            let name = if is_regex { literal(value) } else { Some(value.to_owned()) };
            match name {
                Some(name) if is_not => Ok(IfCondition::OtherHost(name)),
                Some(name) => whole(conditions.with("host", vec![name])),
                None if !is_not && value.trim_start_matches('^').starts_with("www\\.") => {
                    Ok(IfCondition::Www)
                }
                None => none(),
            }
        }
        "request_method" => {
            let words = if is_regex { value_globs(value) } else { Some(vec![value.to_owned()]) };
            let is_name = |word: &String| word.bytes().all(|byte| byte.is_ascii_uppercase());
            let Some(words) = words.filter(|words| words.iter().all(is_name)) else {
                return none();
            };
            whole(conditions.with("method", signed(words, is_not)))
        }
        "remote_addr" if !is_regex => {
            whole(conditions.with("from", signed(vec![value.to_owned()], is_not)))
        }
        "uri" | "document_uri" | "request_uri" | "fastcgi_script_name" => {
            path(is_not, is_regex, operator.contains('*'), value).and_then(whole)
        }
        "invalid_referer" if operator.is_empty() => referers(scope, names).and_then(whole),
        _ => named(subject, operator, value).map_or_else(none, whole),
    }
}

fn path(
    is_not: bool,
    is_regex: bool,
    ignores_case: bool,
    value: &str,
) -> Result<RuleConditions, String> {
    let conditions = RuleConditions::default();
    if !is_regex {
        return Ok(conditions.with("path", signed(vec![value.to_owned()], is_not)));
    }
    if value.contains("\\?") {
        return Err("the condition is on the query, too".into());
    }
    let pattern = PathPattern::read(value, ignores_case, Exactness::Exact)?;
    Ok(if is_not {
        conditions.with("path_regex", vec![format!("!{}", pattern.regex)])
    } else {
        conditions.with_pattern(&pattern)
    })
}

/// Conditions on fields, cookies and parameters by name.
fn named(subject: &str, operator: &str, value: &str) -> Option<RuleConditions> {
    let (key, name, separator) = if let Some(name) = subject.strip_prefix("http_") {
        if name == "cookie" {
            // The expression sees all cookies: only a name can be tested.
            let word = value.trim_matches(['(', ')', '^', '*', '.']);
            let is_name = |name: &str| {
                !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
            };
            let words: Vec<String> = word.split('|').map(str::to_owned).collect();
            let all = words.iter().all(|word| is_name(word)) && operator.starts_with('~');
            return all.then(|| {
                let words = words.into_iter().map(|word| format!("*{word}*")).collect();
                RuleConditions::default().with("cookie", words)
            });
        }
        let name = name.replace('_', "-");
        if fields::is_from_proxies(&name) {
            return None;
        }
        ("header", name, ": ")
    } else if let Some(name) = subject.strip_prefix("cookie_") {
        ("cookie", name.to_owned(), "=")
    } else {
        ("query", subject.strip_prefix("arg_")?.to_owned(), "=")
    };
    let is_not = operator.starts_with('!');
    let values = match operator {
        "" => return Some(RuleConditions::default().with(key, vec![name])),
        "=" | "!=" if value.is_empty() => return None,
        "=" | "!=" => vec![value.to_owned()],
        _ => value_globs(value)?,
    };
    if values.iter().any(|value| value.starts_with('!')) {
        return None;
    }
    let words = values.into_iter().map(|value| format!("{name}{separator}{value}")).collect();
    Some(RuleConditions::default().with(key, signed(words, is_not)))
}

/// Excludes the pages of a host.
fn valid_host(name: &str, words: &mut Vec<String>) {
    for scheme in ["http", "https"] {
        words.push(format!("!referer: {scheme}://{name}/*"));
        words.push(format!("!referer: {scheme}://{name}"));
    }
}

/// `valid_referers`: another page sends the visitor.
fn referers(scope: &Scope<'_>, names: &[String]) -> Result<RuleConditions, String> {
    let valid = scope.referers.ok_or("valid_referers is missing")?;
    let mut words = vec!["referer".to_owned()];
    for word in &valid.words {
        match word.as_str() {
            "none" | "blocked" => {}
            "server_names" if names.is_empty() => {
                return Err("the site's own pages would be refused: write server_name".into());
            }
            "server_names" => names.iter().for_each(|name| valid_host(name, &mut words)),
            // A star would match other hosts, too: such pages are refused.
            name if name.contains(['*', '~']) => {}
            name => valid_host(name, &mut words),
        }
    }
    if !valid.words.iter().any(|word| word == "none") {
        return Err("requests without a Referer would be refused, too".into());
    }
    Ok(RuleConditions::default().with("header", words))
}
