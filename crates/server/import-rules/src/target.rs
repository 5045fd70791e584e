//! The target of a redirect or rewrite: variables become captures, the query of the client, or the path.
//!
//! Not here: patterns, which have the captures (`pattern`).

use crate::pattern::compiled;

/// A target in Pagewell's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveTarget {
    /// Path or URL, with `$1` to `$9`.
    pub(crate) text: String,
    /// Whether `$1` stands for the whole path, so that a rule needs an expression for it.
    pub(crate) needs_path: bool,
    /// Whether the original names the client's query.
    pub(crate) keeps_query: bool,
    /// Whether it is an absolute URL with the host of the request.
    pub(crate) is_https: bool,
    /// The host, if it is an absolute URL with a fixed one.
    pub(crate) host: Option<String>,
}

/// Variables for the path of the request.
const PATHS: [&str; 5] =
    ["$request_uri", "$document_uri", "$uri", "%{REQUEST_URI}", "$request_filename"];
/// Variables for its host.
const HOSTS: [&str; 4] = ["$host", "$http_host", "$server_name", "%{HTTP_HOST}"];
/// Ends of a target that name the query of the client.
const QUERIES: [&str; 9] = [
    "$is_args$args",
    "$is_args$query_string",
    "?$args",
    "?$query_string",
    "&$args",
    "&$query_string",
    "?%{QUERY_STRING}",
    "&%{QUERY_STRING}",
    "%{QUERY_STRING}",
];

impl MoveTarget {
    /// Reads a target of nginx or Apache. `captures` is the expression whose groups it inserts.
    ///
    /// # Errors
    /// It has a variable without a counterpart.
    pub(crate) fn read(written: &str, captures: Option<&str>) -> Result<MoveTarget, String> {
        let mut text = written.to_owned();
        let names = captures.and_then(|regex| compiled(regex).ok());
        for (index, name) in names.iter().flat_map(|regex| regex.capture_names().enumerate()) {
            if let Some(name) = name {
                text = text.replace(&format!("${name}"), &format!("${index}"));
            }
        }
        for index in 1..=9 {
            text = text.replace(&format!("${{{index}}}"), &format!("${index}"));
        }
        let mut target = MoveTarget {
            text: String::new(),
            needs_path: false,
            keeps_query: text.contains("$request_uri"),
            is_https: false,
            host: None,
        };
        for query in QUERIES {
            if let Some(rest) = text.strip_suffix(query) {
                text = rest.to_owned();
                target.keeps_query = true;
            }
        }
        let path = without_host(&mut target, &text)?;
        let found: Vec<_> =
            PATHS.iter().filter(|path_variable| path.contains(*path_variable)).collect();
        let mut path = path;
        if let Some(variable) = found.first() {
            target.needs_path = true;
            let separator = format!("/{variable}");
            path = path.replace(&separator, "$1").replace(*variable, "$1");
        }
        let mut rest = path.as_str();
        while let Some(at) = rest.find(['$', '%']) {
            let is_encoded = rest[at..].starts_with('%') && !rest[at..].starts_with("%{");
            let is_capture = rest[at + 1..].starts_with(|c: char| c.is_ascii_digit() && c != '0');
            if !is_encoded && !is_capture
                || rest[at..].starts_with('%') && is_back_reference(&rest[at..])
            {
                return Err(format!("the target {written} has a variable without a counterpart"));
            }
            rest = &rest[at + 1..];
        }
        target.text.push_str(&path);
        Ok(target)
    }
}

/// Whether `%1` names a capture of a condition: one digit, and no second hexadecimal one.
fn is_back_reference(text: &str) -> bool {
    let mut bytes = text.bytes().skip(1);
    bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        && !bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
}

/// The target without a scheme and host of the request. A fixed host stays.
fn without_host(target: &mut MoveTarget, text: &str) -> Result<String, String> {
    let schemes = [
        ("https://", true),
        ("http://", false),
        ("$scheme://", false),
        ("%{REQUEST_SCHEME}://", false),
    ];
    let Some((rest, scheme, is_https)) = schemes.iter().find_map(|(scheme, is_https)| {
        text.strip_prefix(scheme).map(|rest| (rest, *scheme, *is_https))
    }) else {
        return Ok(text.to_owned());
    };
    for host in HOSTS {
        if let Some(path) = rest.strip_prefix(host) {
            target.is_https = is_https;
            return Ok(path.to_owned());
        }
    }
    let end = rest.find(['/', '$', '?', '%']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    if host.is_empty() || !host.chars().all(is_host) {
        return Err("the host of the target is not fixed".into());
    }
    let is_variable_path = path.is_empty()
        || path.starts_with('/')
        || path.starts_with("$request_uri")
        || path.starts_with("$uri")
        || path.starts_with("%{REQUEST_URI}");
    if !is_variable_path {
        return Err("the host of the target is not fixed".into());
    }
    target.host = Some(host.to_ascii_lowercase());
    let scheme = if scheme.starts_with("http") { scheme } else { "https://" };
    target.text = format!("{scheme}{host}");
    Ok(path.to_owned())
}
