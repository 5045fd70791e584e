//! Reads the conditions on requests as they are written in a rule. The errors are messages for the operator, which name
//! the key and a valid alternative.
//!
//! Not here: the format of the configuration, and the conditions on a status.

use crate::agent::Agent;
use crate::client_networks::ClientNetworks;
use crate::conditions::RequestConditions;
use crate::glob::{Glob, Globs};
use crate::named_condition::NamedCondition;
use crate::regexes::Regexes;

/// The words of the conditions on requests, by their keys in a rule. A word with `!` before it excludes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestConditionWords<'r> {
    /// Patterns of hosts, without ports.
    pub host: &'r [String],
    /// Patterns of paths, with wildcards.
    pub path: &'r [String],
    /// Regular expressions for paths.
    pub path_regex: &'r [String],
    /// Methods in upper case, as they are sent.
    pub method: &'r [String],
    /// Parameters of the query: `name` or `name=value`.
    pub query: &'r [String],
    /// Cookies of the request: `name` or `name=value`.
    pub cookie: &'r [String],
    /// Header lines of the request: `name` or `name: value`.
    pub header: &'r [String],
    /// Classes of clients ([`Agent`]), by their names.
    pub agent: &'r [String],
    /// Networks of the client's address.
    pub from: &'r [String],
}

impl RequestConditions {
    /// Reads the conditions of a rule.
    ///
    /// # Errors
    /// A message that names the key and the error.
    pub fn read(words: &RequestConditionWords<'_>) -> Result<RequestConditions, String> {
        let agent = |word: &String| {
            Agent::from_name(word)
                .ok_or_else(|| format!("agent: {word:?}: write crawler, phone, tablet or desktop"))
        };
        if let Some(bad) = words.path.iter().find(|word| {
            let word = word.trim_start_matches('!');
            !word.starts_with('/') && !word.starts_with('*')
        }) {
            return Err(format!("path: {bad:?}: begin with / or *"));
        }
        if let Some(bad) = words.host.iter().find(|word| {
            word.bytes()
                .any(|byte| matches!(byte, b'/' | b'@' | b'?') || byte.is_ascii_whitespace())
        }) {
            return Err(format!(
                "host: {bad:?} is no host: write for instance example.org or *.example.org"
            ));
        }
        let (excluded, methods): (Vec<_>, Vec<_>) =
            words.method.iter().partition(|word| word.starts_with('!'));
        Ok(RequestConditions {
            host: Globs::of_names(words.host).map_err(|e| format!("host: {e}"))?,
            path: Globs::of_paths(words.path).map_err(|e| format!("path: {e}"))?,
            regex: Regexes::read(words.path_regex).map_err(|e| format!("path_regex: {e}"))?,
            methods: methods.into_iter().map(|word| method(word)).collect::<Result<_, _>>()?,
            methods_excluded: excluded
                .into_iter()
                .map(|word| method(&word[1..]))
                .collect::<Result<_, _>>()?,
            query: NamedCondition::read_all(words.query, "query", '=')?,
            cookie: NamedCondition::read_all(words.cookie, "cookie", '=')?,
            header: NamedCondition::read_lines(words.header, "header")?,
            agents: words.agent.iter().map(agent).collect::<Result<_, _>>()?,
            from: ClientNetworks::read(words.from).map_err(|e| format!("from: {e}"))?,
        })
    }
}

/// Reads a method. Methods are case-sensitive (RFC 9110 §9.1), so another spelling of a known method is an
/// error.
fn method(word: &str) -> Result<http::Method, String> {
    const KNOWN: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"];
    match KNOWN.iter().find(|known| **known != word && known.eq_ignore_ascii_case(word)) {
        Some(known) => Err(format!("method: {word:?}: write {known}")),
        None => http::Method::from_bytes(word.as_bytes())
            .map_err(|_| format!("method: {word:?} is none")),
    }
}

impl NamedCondition {
    /// Reads conditions on header lines: `name` or `name: value`. `key` is their key in a rule.
    ///
    /// # Errors
    /// A message that names the key and the error.
    pub fn read_lines(words: &[String], key: &str) -> Result<Vec<NamedCondition>, String> {
        NamedCondition::read_all(words, key, ':')
    }

    /// Reads `name` or `name=value`, each with wildcards. `!` before it means that it must be absent.
    fn read_all(
        words: &[String],
        key: &str,
        separator: char,
    ) -> Result<Vec<NamedCondition>, String> {
        let read = |word: &String| {
            let (absent, word) = match word.strip_prefix('!') {
                Some(word) => (true, word),
                None => (false, word.as_str()),
            };
            let (name, value) = match word.split_once(separator) {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (word.trim(), None),
            };
            let is_header = separator == ':';
            if is_header && http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("{key}: {word:?}: write name or name: value"));
            }
            let name = if is_header { name.to_ascii_lowercase() } else { name.to_owned() };
            let glob = |text: &str| Glob::of_name(text).map_err(|e| format!("{key}: {e}"));
            Ok(NamedCondition { name: glob(&name)?, value: value.map(glob).transpose()?, absent })
        };
        words.iter().map(read).collect()
    }
}
