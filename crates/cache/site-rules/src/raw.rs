//! The rules as written: TOML tables. Only their structure is checked here, and unknown keys are errors.
//! The guide to rules documents each key; a test compares the two.
//!
//! `compile` reads and checks the values.

use rule_conditions::RequestConditionWords;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// One word or a list of words.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write a string, or a list of them: [\"a\", \"b\"]")]
#[allow(missing_docs)]
pub enum Words {
    One(String),
    Many(Vec<String>),
}

impl Default for Words {
    fn default() -> Words {
        Words::Many(Vec::new())
    }
}

impl Words {
    /// The words as a slice.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Words::One(word) => std::slice::from_ref(word),
            Words::Many(words) => words,
        }
    }
}

/// A status or a class of statuses.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write 404 or \"4xx\"")]
#[allow(missing_docs)]
pub enum Status {
    Code(u16),
    Class(String),
}

/// One status or a list of statuses.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write 404 or \"4xx\", or a list of them")]
#[allow(missing_docs)]
pub enum Statuses {
    One(Status),
    Many(Vec<Status>),
}

/// One lifetime for all statuses, or one for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write \"10m\", or a lifetime for each status: { 200 = \"10m\" }")]
#[allow(missing_docs)]
pub enum Store {
    All(String),
    ByStatus(BTreeMap<String, String>),
}

/// The status of a refusal, or `false`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write 403, 404, 405, 410 or 503; or false")]
#[allow(missing_docs)]
pub enum Deny {
    Status(u16),
    Flag(bool),
}

/// The password file of a rule, or `false`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write the path of a password file; or false")]
#[allow(missing_docs)]
pub enum AuthFile {
    Path(String),
    Flag(bool),
}

/// The rate limit of a rule, or `false`.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "write { rate = \"10/m\", burst = 5, count = \"origin\" }, or less, but with rate; or false"
)]
#[allow(missing_docs)]
pub enum RateLimit {
    Rate(LimitKeys),
    Flag(bool),
}

/// The keys of `limit`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct LimitKeys {
    pub rate: String,
    pub burst: Option<u32>,
    pub count: Option<String>,
}

/// The target of a redirect or a rewrite, or `false`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "write a path or a URL; or false")]
#[allow(missing_docs)]
pub enum RuleTarget {
    To(String),
    Flag(bool),
}

/// The keys of the table `[keys]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Keys {
    #[serde(deserialize_with = "some_words")]
    pub drop: Option<Vec<String>>,
    #[serde(deserialize_with = "words")]
    pub drop_also: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub keep: Vec<String>,
    pub sort: Option<bool>,
    pub lower_case: bool,
    pub trailing_slash: Option<String>,
    #[serde(deserialize_with = "words")]
    pub index: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub fields: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub harmless_fields: Vec<String>,
}

/// The keys of the table `[cookies]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Cookies {
    #[serde(deserialize_with = "words")]
    pub ignore: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub session: Vec<String>,
    pub unknown: Option<String>,
    pub secret_file: Option<std::path::PathBuf>,
}

/// The keys of one `[[rule]]` table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Rule {
    pub name: Option<String>,
    pub host: Words,
    pub path: Words,
    pub path_regex: Words,
    pub method: Words,
    pub query: Words,
    pub cookie: Words,
    pub header: Words,
    pub agent: Words,
    pub from: Words,
    pub file: Option<String>,
    pub when_status: Option<Statuses>,
    pub when_header: Words,
    pub bypass: bool,
    pub store: Option<Store>,
    pub ignore: Words,
    pub after_write: Option<String>,
    pub server_timing: Option<bool>,
    pub renders: Option<String>,
    pub stale_while_revalidate: Option<String>,
    pub stale_if_error: Option<String>,
    pub stale_on: Option<Words>,
    pub vary_cookies: Words,
    pub session_cookie: Words,
    pub ignore_cookies: Words,
    pub shared_with_sessions: bool,
    pub device_classes: bool,
    pub language: Words,
    pub country_header: Option<String>,
    pub when_saturated: Option<WhenSaturated>,
    pub deny: Option<Deny>,
    pub retry_after: Option<String>,
    pub limit: Option<RateLimit>,
    pub auth_file: Option<AuthFile>,
    pub auth_realm: Option<String>,
    pub auth_forward: Option<bool>,
    pub redirect: Option<RuleTarget>,
    pub redirect_status: Option<u16>,
    pub slash: Option<String>,
    pub rewrite: Option<RuleTarget>,
    pub php: Option<bool>,
    pub set_headers: BTreeMap<String, Words>,
    pub add_headers: BTreeMap<String, Words>,
    pub remove_headers: Words,
    pub file_cache: Option<String>,
}

impl Rule {
    /// The number of this rule, with its name if it has one: `3 (admin)`.
    pub fn named(&self, number: usize) -> String {
        named(number, self.name.as_deref())
    }

    /// The words of its conditions on requests.
    pub(crate) fn request_conditions(&self) -> RequestConditionWords<'_> {
        RequestConditionWords {
            host: self.host.as_slice(),
            path: self.path.as_slice(),
            path_regex: self.path_regex.as_slice(),
            method: self.method.as_slice(),
            query: self.query.as_slice(),
            cookie: self.cookie.as_slice(),
            header: self.header.as_slice(),
            agent: self.agent.as_slice(),
            from: self.from.as_slice(),
        }
    }
}

/// The number of a rule with its name, for messages.
pub(crate) fn named(number: usize, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    }
}

/// The table `when_saturated` of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct WhenSaturated {
    pub store: Option<Store>,
    pub stale_while_revalidate: Option<String>,
}

/// Reads a list of words, or a single word as a list of one.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Words::deserialize(from).map(|words| words.as_slice().to_vec())
}

fn some_words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    words(from).map(Some)
}

/// All keys of a rule.
pub const RULE_KEYS: &[&str] = &[
    "name",
    "host",
    "path",
    "path_regex",
    "method",
    "query",
    "cookie",
    "header",
    "agent",
    "from",
    "file",
    "when_status",
    "when_header",
    "bypass",
    "store",
    "ignore",
    "after_write",
    "server_timing",
    "renders",
    "stale_while_revalidate",
    "stale_if_error",
    "stale_on",
    "vary_cookies",
    "session_cookie",
    "ignore_cookies",
    "shared_with_sessions",
    "device_classes",
    "language",
    "country_header",
    "when_saturated",
    "deny",
    "retry_after",
    "limit",
    "auth_file",
    "auth_realm",
    "auth_forward",
    "redirect",
    "redirect_status",
    "slash",
    "rewrite",
    "php",
    "set_headers",
    "add_headers",
    "remove_headers",
    "file_cache",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed() {
        let said = toml::from_str::<Rule>("nothing = 1").unwrap_err().to_string();
        let known = said.matches('`').count() / 2 - 1;
        assert!(RULE_KEYS.iter().all(|key| said.contains(&format!("`{key}`"))), "{said}");
        assert!(known >= RULE_KEYS.len(), "{known} keys, {} listed: {said}", RULE_KEYS.len());
    }
}
