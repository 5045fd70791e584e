//! Reads the keys of rules that do not concern the cache, and refuses what cannot work: a condition on the response
//! for a decision before it, a condition on the client for something that is stored with a page, a field that
//! belongs to the message or to the cache.

use super::access::{AccessRule, Denial};
use super::checks;
use super::redirects::RedirectRule;
use super::response_fields::FieldRule;
use super::scripts::{EntryPoints, ScriptRule};
use super::{EdgeRules, redirects, rewrites};
use crate::duration::parse_duration;
use crate::raw::{self, Deny, Words};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use rule_conditions::{Globs, Regexes, RequestConditions, ResponseConditions};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The document root of a site, for rules about scripts.
#[derive(Clone, Debug)]
pub struct FileSurroundings {
    /// The script for paths that are no files, relative to the root.
    pub front_controller: String,
    /// The endings of scripts (`site.scripts`), without a dot.
    pub scripts: Vec<String>,
    /// The patterns of `site.entry_points`, if it is set.
    pub entry_points: Option<Vec<String>>,
}

/// The statuses of `deny`.
const DENY_STATUSES: [StatusCode; 5] = [
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::GONE,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// The default of `retry_after`, in seconds.
const RETRY_AFTER_SECONDS: u32 = 60;
/// The maximum length of the value of a field that a rule sets, in bytes.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// Fields of the message, of the connection, and of the cache, which no rule changes.
const REFUSED_FIELDS: [&str; 28] = [
    "age",
    "cache-control",
    "cache-status",
    "cdn-cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "location",
    "pagewell-cache-control",
    "proxy-authenticate",
    "proxy-connection",
    "retry-after",
    "set-cookie",
    "surrogate-control",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
    "x-accel-expires",
    "x-litespeed-cache-control",
];

/// Whether the rule has an action of these kinds.
pub(crate) fn is_edge_rule(raw: &raw::Rule) -> bool {
    (is_access_rule(raw) || raw.php.is_some() || has_fields(raw))
        || (raw.redirect.is_some() || raw.slash.is_some() || raw.redirect_status.is_some())
        || (raw.rewrite.is_some() || raw.file.is_some())
}

/// Whether the rule decides which requests are refused.
pub(crate) fn is_access_rule(raw: &raw::Rule) -> bool {
    raw.deny.is_some() || raw.auth_file.is_some() || raw.limit.is_some()
}

fn has_fields(raw: &raw::Rule) -> bool {
    !raw.set_headers.is_empty()
        || !raw.add_headers.is_empty()
        || !raw.remove_headers.as_slice().is_empty()
        || raw.file_cache.is_some()
}

/// Adds the actions of a rule. `number` counts from 1.
pub(crate) fn read(
    edge: &mut EdgeRules,
    (number, raw): (usize, &raw::Rule),
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
    files: Option<&FileSurroundings>,
) -> Result<(), String> {
    if let Some(denial) = deny(raw, number, conditions, response)? {
        edge.access.push(AccessRule { number, conditions: conditions.clone(), denial });
    }
    checks::read(edge, (number, raw), conditions, response)?;
    edge.redirects.extend(redirects::read(raw, number, conditions, response)?);
    edge.rewrites.extend(rewrites::read(raw, number, conditions, response, files)?);
    if let Some(runs) = raw.php {
        edge.scripts.push(script_rule(number, runs, conditions, response, files)?);
    }
    if has_fields(raw) {
        if raw.file_cache.is_some() && files.is_none() {
            return Err("file_cache: needs site.root: an HTTP origin serves its own files".into());
        }
        edge.fields.push(field_rule(raw, number, conditions, response)?);
    }
    Ok(())
}

/// The methods of HTTP and WebDAV, and those of purge requests.
const METHODS: [&str; 23] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "MKCALENDAR",
    "PURGE",
    "BAN",
    "REFRESH",
];

/// Warnings about methods of conditions that are none of [`METHODS`].
fn unusual_methods(rules: &[raw::Rule]) -> Vec<String> {
    let of_rule = |(at, rule): (usize, &raw::Rule)| -> Vec<String> {
        let words = rule.method.as_slice().iter().map(|word| word.trim_start_matches('!'));
        let unusual = words.filter(|word| !METHODS.contains(word));
        let warning = |word: &str| {
            format!(
                "rule {}: method: no known application uses {word:?}, so the rule fits no other request; known \
                 are {}",
                rule.named(at + 1),
                METHODS.join(", ")
            )
        };
        unusual.map(warning).collect()
    };
    rules.iter().enumerate().flat_map(of_rule).collect()
}

/// Completes the rules, when all are read.
pub(crate) fn complete(
    edge: &mut EdgeRules,
    rules: &[raw::Rule],
    files: Option<&FileSurroundings>,
) -> Result<(), String> {
    edge.may_refuse = edge.may_refuse();
    edge.redirects.sort_by_key(RedirectRule::is_slash);
    edge.answers_by_host = rules.iter().any(|rule| {
        let may_answer = is_access_rule(rule) || rule.redirect.is_some() || rule.slash.is_some();
        may_answer && !rule.host.as_slice().is_empty()
    });
    edge.names = rules.iter().map(|rule| rule.name.as_deref().map(Into::into)).collect();
    edge.unusual_methods = unusual_methods(rules);
    let mut hasher = DefaultHasher::new();
    for rule in rules.iter().filter(|rule| has_fields(rule)) {
        format!("{rule:?}").hash(&mut hasher);
    }
    edge.fields_print = hasher.finish();
    edge.fields_follow_path = edge.fields.iter().all(|rule| {
        let conditions = &rule.conditions;
        conditions.host.is_empty()
            && conditions.query.is_empty()
            && conditions.methods.is_empty()
            && conditions.methods_excluded.is_empty()
    });
    let endings = files.iter().flat_map(|files| &files.scripts);
    edge.script_endings = endings.map(|ending| ending.as_str().into()).collect();
    let Some((files, words)) = files.and_then(|files| Some((files, files.entry_points.as_ref()?)))
    else {
        return Ok(());
    };
    if let Some(bad) =
        words.iter().find(|word| !word.trim_start_matches('!').starts_with(['/', '*']))
    {
        return Err(format!("{bad:?}: begin with / or *, as in \"/wp-admin/**.php\""));
    }
    let globs = Globs::of_paths(words)?;
    let front_controller = format!("/{}", files.front_controller).into();
    edge.entry_points = Some(EntryPoints { globs, front_controller });
    Ok(())
}

/// What `deny` says: `None` if the rule has none, `Some(None)` if it exempts.
fn deny(
    raw: &raw::Rule,
    number: usize,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
) -> Result<Option<Option<Denial>>, String> {
    let written = match &raw.deny {
        None if raw.retry_after.is_some() => {
            return Err("retry_after: belongs to deny = 503".into());
        }
        None => return Ok(None),
        Some(written) => written,
    };
    if response.is_some() {
        return Err("deny: is decided before the response, so when_status and when_header cannot be conditions".into());
    }
    let status = match written {
        Deny::Status(code) => {
            DENY_STATUSES.into_iter().find(|status| status.as_u16() == *code).ok_or_else(|| {
                format!("deny: {code}: write 403, 404, 405, 410 or 503; or false, to exempt")
            })?
        }
        Deny::Flag(false) => return Ok(Some(None)),
        Deny::Flag(true) => return Err("deny: true: write the status, for instance 403".into()),
    };
    let retry_after_seconds = match (&raw.retry_after, status) {
        (None, StatusCode::SERVICE_UNAVAILABLE) => Some(RETRY_AFTER_SECONDS),
        (Some(text), StatusCode::SERVICE_UNAVAILABLE) => {
            let read = parse_duration(text).map_err(|error| format!("retry_after: {error}"))?;
            Some(u32::try_from(read.as_secs()).unwrap_or(u32::MAX))
        }
        (None, _) => None,
        (Some(_), _) => return Err("retry_after: belongs to deny = 503".into()),
    };
    Ok(Some(Some(Denial::new(number, status, retry_after_seconds, conditions))))
}

fn script_rule(
    number: usize,
    runs: bool,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
    files: Option<&FileSurroundings>,
) -> Result<ScriptRule, String> {
    if files.is_none() {
        return Err("php: needs site.root: an HTTP origin decides itself which scripts run".into());
    }
    let RequestConditions { host, path, regex, .. } = conditions;
    let others = RequestConditions {
        host: Globs::default(),
        path: Globs::default(),
        regex: Regexes::default(),
        ..conditions.clone()
    };
    if response.is_some() || !others.are_none() {
        return Err("php: a script runs for everybody or for nobody; only host, path and path_regex can be conditions (use deny for others)".into());
    }
    Ok(ScriptRule { number, host: host.clone(), path: path.clone(), regex: regex.clone(), runs })
}

/// Reads the value of `file_cache`: directives of RFC 9111 section 5.2.2, with seconds as numbers.
fn cache_control(text: &str) -> Result<HeaderValue, String> {
    let checked = value("file_cache", text)?;
    for directive in text.split(',').map(str::trim) {
        let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
        let is_word =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
        let has_seconds = matches!(
            &*name.to_ascii_lowercase(),
            "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error"
        );
        let is_number = !argument.is_empty() && argument.bytes().all(|b| b.is_ascii_digit());
        if !is_word || (has_seconds && !is_number) {
            return Err(format!(
                "file_cache: {directive:?} is no directive of Cache-Control; write for instance \"public, max-age=3600\""
            ));
        }
    }
    Ok(checked)
}

fn field_rule(
    raw: &raw::Rule,
    number: usize,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
) -> Result<FieldRule, String> {
    if conditions.distinguish_clients() {
        return Err("set_headers, add_headers, remove_headers, file_cache: fields are stored with the page, so cookie, header, agent and from cannot be conditions".into());
    }
    if conditions.methods.contains(&http::Method::HEAD) {
        return Err("method: write GET, which includes HEAD here".into());
    }
    let removed = raw.remove_headers.as_slice().iter();
    let added = fields("add_headers", &raw.add_headers)?;
    if added.iter().any(|(name, _)| name == http::header::CONTENT_TYPE) {
        return Err("add_headers: a response has one content-type; use set_headers".into());
    }
    let mut rule = FieldRule {
        number,
        conditions: conditions.clone(),
        response: response.cloned(),
        removed: removed.map(|word| name("remove_headers", word)).collect::<Result<_, _>>()?,
        set: fields("set_headers", &raw.set_headers)?,
        added,
        file_cache: raw.file_cache.as_deref().map(cache_control).transpose()?,
        is_special: false,
    };
    rule.is_special = (response.is_some() || !conditions.are_none()) && rule.changes_all();
    Ok(rule)
}

fn fields(
    key: &str,
    written: &BTreeMap<String, Words>,
) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mut all = Vec::new();
    for (word, values) in written {
        let name = name(key, word)?;
        if key == "set_headers" && values.as_slice().len() != 1 {
            return Err(format!(
                "{key}: {word:?}: one value; write several lines with add_headers"
            ));
        }
        for text in values.as_slice() {
            all.push((name.clone(), value(&format!("{key}: {word:?}"), text)?));
        }
    }
    Ok(all)
}

fn name(key: &str, word: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(word.as_bytes())
        .map_err(|_| format!("{key}: {word:?} is no name of a field"))?;
    if !REFUSED_FIELDS.contains(&name.as_str()) {
        return Ok(name);
    }
    let instead = match name.as_str() {
        "cache-control" | "expires" => "use store for pages, and file_cache for files",
        "location" => "use redirect",
        _ => "it belongs to the message or to the cache",
    };
    Err(format!("{key}: {word:?}: {instead}"))
}

fn value(key: &str, text: &str) -> Result<HeaderValue, String> {
    if text.trim().is_empty() {
        return Err(format!("{key}: the value is empty; remove a field with remove_headers"));
    }
    if text.len() > VALUE_BYTES_MAX {
        return Err(format!("{key}: {} bytes; {VALUE_BYTES_MAX} at most", text.len()));
    }
    HeaderValue::from_str(text.trim())
        .map_err(|_| format!("{key}: {text:?}: only visible ASCII characters, spaces and tabs"))
}
