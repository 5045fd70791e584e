//! `RewriteCond` as the conditions of a rule.
//!
//! Not here: the rule to which they belong (`rewrites`), and expressions as patterns (`pattern`).

use crate::draft::{RuleConditions, signed};
use crate::fields;
use crate::pattern::{Exactness, PathPattern, literal, value_globs};
use crate::source::Directive;

/// The condition of a `RewriteCond`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RewriteCondition {
    /// No file has the path of the request.
    FileMissing,
    /// A file or directory has it.
    FileExists,
    /// The request came over plain HTTP.
    NotHttps,
    /// The request came over HTTPS, or a condition that always holds.
    Always,
    /// The host differs from this one.
    OtherHost(String),
    /// A pattern of hosts, such as `^www\.(.*)`.
    HostPattern,
    /// It concerns the first pass only: not after an internal redirect.
    FirstPass,
    /// Conditions of a rule.
    Conditions(RuleConditions),
    /// It has no counterpart.
    Unknown(String),
}

/// Reads a condition.
pub(super) fn read(one: &Directive) -> RewriteCondition {
    let (subject, written) = (one.word(0), one.word(1));
    let flags = one.words.get(2).map_or("", String::as_str);
    let ignores_case = flags.contains("NC") || flags.contains("nocase");
    let (is_not, value) = match written.strip_prefix('!') {
        Some(value) => (true, value),
        None => (false, written),
    };
    if matches!(value, "-f" | "-d" | "-l" | "-s" | "-F" | "-e") {
        let is_request = subject.contains("REQUEST_FILENAME")
            || subject.contains("SCRIPT_FILENAME")
            || subject.contains("%{DOCUMENT_ROOT}") && subject.contains("REQUEST_URI");
        return match (is_request, is_not) {
            (false, _) => RewriteCondition::Unknown("only the requested file can be tested".into()),
            (true, true) => RewriteCondition::FileMissing,
            (true, false) => RewriteCondition::FileExists,
        };
    }
    let name =
        subject.strip_prefix("%{").and_then(|rest| rest.strip_suffix('}')).unwrap_or(subject);
    known(name, is_not, value, ignores_case)
}

fn known(name: &str, is_not: bool, value: &str, ignores_case: bool) -> RewriteCondition {
    use RewriteCondition as Condition;
    let unknown = || Condition::Unknown(format!("the condition on {name} has no counterpart"));
    let conditions = RuleConditions::default();
    // `=` compares texts.
    let expression;
    let value = match value.strip_prefix('=') {
        Some(text) => {
            expression = format!("^{}$", crate::pattern::escaped(text));
            &expression
        }
        None => value,
    };
    match name {
        "HTTPS" => {
            let is_on = value.contains("on");
            if is_on == is_not { Condition::NotHttps } else { Condition::Always }
        }
        "SERVER_PORT" if value.contains("80") && !is_not || value.contains("443") && is_not => {
            Condition::NotHttps
        }
        "REQUEST_SCHEME" | "HTTP:X-Forwarded-Proto" if is_not == value.contains("https") => {
            Condition::NotHttps
        }
        "ENV:REDIRECT_STATUS" => Condition::FirstPass,
        "HTTP_HOST" | "SERVER_NAME" => host(is_not, value),
        "REQUEST_METHOD" => method(is_not, value).map_or_else(unknown, Condition::Conditions),
        "REQUEST_URI" => {
            path(is_not, value, ignores_case).map_or_else(Condition::Unknown, Condition::Conditions)
        }
        "REMOTE_ADDR" => {
            let plain = value.trim_start_matches('^').trim_end_matches('$').replace("\\.", ".");
            let is_address = plain.parse::<std::net::IpAddr>().is_ok();
            if is_address && value.ends_with('$') {
                Condition::Conditions(conditions.with("from", signed(vec![plain], is_not)))
            } else {
                unknown()
            }
        }
        "HTTP_USER_AGENT" => header("user-agent", is_not, value),
        "HTTP_REFERER" => header("referer", is_not, value),
        "HTTP_COOKIE" => unknown(),
        "QUERY_STRING" => query(is_not, value),
        name => match name.strip_prefix("HTTP:") {
            Some(field) => header(field, is_not, value),
            None => unknown(),
        },
    }
}

fn host(is_not: bool, value: &str) -> RewriteCondition {
    if value == "." {
        return RewriteCondition::Always;
    }
    let conditions = RuleConditions::default();
    match literal(value) {
        Some(host) if is_not => RewriteCondition::OtherHost(host),
        Some(host) => RewriteCondition::Conditions(conditions.with("host", vec![host])),
        None if value.contains("www") => RewriteCondition::HostPattern,
        None => match value_globs(value) {
            Some(words) => {
                RewriteCondition::Conditions(conditions.with("host", signed(words, is_not)))
            }
            None => {
                RewriteCondition::Unknown("the condition on the host has no counterpart".into())
            }
        },
    }
}

fn method(is_not: bool, value: &str) -> Option<RuleConditions> {
    let words = value_globs(value)?;
    let words: Vec<String> =
        words.into_iter().map(|word| word.trim_matches('*').to_owned()).collect();
    let is_name =
        |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let conditions = RuleConditions::default();
    words.iter().all(is_name).then(|| conditions.with("method", signed(words, is_not)))
}

fn path(is_not: bool, value: &str, ignores_case: bool) -> Result<RuleConditions, String> {
    let conditions = RuleConditions::default();
    let pattern = PathPattern::read(value, ignores_case, Exactness::Exact)?;
    let globs: Vec<String> = pattern.globs.clone();
    Ok(if is_not && !globs.is_empty() {
        conditions.with("path", signed(globs, true))
    } else if is_not {
        conditions.with("path_regex", vec![format!("!{}", pattern.regex)])
    } else {
        conditions.with_pattern(&pattern)
    })
}

fn header(name: &str, is_not: bool, value: &str) -> RewriteCondition {
    let unknown = |why: &str| RewriteCondition::Unknown(format!("{name}: {why}"));
    let conditions = RuleConditions::default();
    if fields::is_from_proxies(name) {
        return unknown("only trusted proxies set this field, and rules do not see it");
    }
    match value {
        "^$" if is_not => {
            return RewriteCondition::Conditions(conditions.with("header", vec![name.to_owned()]));
        }
        "^$" => return unknown("an empty field and a missing one are not the same here"),
        _ => {}
    }
    match value_globs(value) {
        Some(globs) if !globs.iter().any(|glob| glob == "*" || glob.is_empty()) => {
            let words = globs.into_iter().map(|glob| format!("{name}: {glob}")).collect();
            RewriteCondition::Conditions(conditions.with("header", signed(words, is_not)))
        }
        _ => unknown("the expression has no equal pattern"),
    }
}

/// A query that has one parameter.
fn query(is_not: bool, value: &str) -> RewriteCondition {
    let begin = ["(^|&)", "(?:^|&)", "(^|&|;)"].iter().find_map(|begin| value.strip_prefix(begin));
    let parameter = begin.or_else(|| value.strip_prefix('^')).unwrap_or(value);
    let parameter = ["(&|$)", "(?:&|$)", "($|&)", "$"]
        .iter()
        .find_map(|end| parameter.strip_suffix(end))
        .unwrap_or(parameter);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '=');
    let ends = parameter.len() < value.len() && value.ends_with(['$', ')']);
    if begin.is_some()
        && ends
        && !parameter.is_empty()
        && parameter.chars().all(is_plain)
        && parameter.contains('=')
    {
        let words = signed(vec![parameter.to_owned()], is_not);
        return RewriteCondition::Conditions(RuleConditions::default().with("query", words));
    }
    RewriteCondition::Unknown("a condition on the whole query: rules name its parameters".into())
}
