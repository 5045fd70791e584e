//! Compares two configurations key by key, as written, and lists the keys that may change without a
//! restart. Only settings that are read for every request or connection are in that list. Settings
//! used at startup (addresses, memory, the origin, databases) are not.

use config::secret;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// A key whose value differs from before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    /// The key, such as `limits.idle_timeout` or `rule[1].path`; counted from 1.
    pub key: String,
    /// The old value as written; `None` if the key was absent. Secrets are hidden.
    pub from: Option<String>,
    /// The new value, in the same form.
    pub to: Option<String>,
}

/// The tables and keys outside `[limits]` that may change.
const TABLES: [&str; 21] = [
    "cache",
    "connections_exempt",
    "cookies",
    "error_pages",
    "keys",
    "misses",
    "mode",
    "purge",
    "rule",
    "site.aliases",
    "site.cache",
    "site.canonical_redirect",
    "site.cookies",
    "site.error_pages",
    "site.keys",
    "site.mode",
    "site.redirect_files",
    "site.rule",
    "site.trial",
    "trial",
    "trusted_proxies",
];

/// The limits that may change, because they are read on each use.
const LIMITS: [&str; 20] = [
    "body_bytes",
    "body_rate",
    "certificate_look",
    "client_backlog_bytes",
    "connection_requests",
    "connections_per_address",
    "drain",
    "half_closed_timeout",
    "handshake_timeout",
    "header_bytes",
    "header_timeout",
    "headers",
    "http2_resets",
    "http2_streams",
    "http2_streams_per_address",
    "idle_timeout",
    "page_bytes",
    "upgrade_idle_timeout",
    "uri_bytes",
    "write_rate",
];

/// Returns whether a key, in the form of [`Changed`] or the manual, may change without a restart.
pub fn may_change(key: &str) -> bool {
    // The key rule[1].path counts as one of the table `rule`.
    let mut plain = String::new();
    let mut depth = 0;
    for character in key.chars() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            other if depth == 0 => plain.push(other),
            _ => {}
        }
    }
    if let Some(limit) = plain.strip_prefix("limits.") {
        return LIMITS.contains(&limit);
    }
    let is_in = |table: &&str| {
        plain.strip_prefix(*table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    TABLES.iter().any(is_in)
}

/// Returns the keys that differ.
pub fn between(before: &Table, after: &Table) -> Vec<ChangedKey> {
    let (before, after) = (flat(before), flat(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let shown = |key: &str, value: Option<&String>| value.map(|value| secret::hidden(key, value));
    differing
        .map(|key| ChangedKey {
            key: key.clone(),
            from: shown(key, before.get(key)),
            to: shown(key, after.get(key)),
        })
        .collect()
}

/// Returns every key with its value as written.
fn flat(table: &Table) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    put("", &Value::Table(table.clone()), &mut all);
    all
}

fn put(key: &str, value: &Value, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                let dot = if key.is_empty() { "" } else { "." };
                put(&format!("{key}{dot}{name}"), value, all);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_table) => {
            for (at, value) in list.iter().enumerate() {
                put(&format!("{key}[{}]", at + 1), value, all);
            }
        }
        value => drop(all.insert(key.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::table::{LIMITS as ALL_LIMITS, OPTIONS};

    fn changes(before: &str, after: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let all = between(&before.parse().unwrap(), &after.parse().unwrap());
        all.into_iter().map(|one| (one.key, one.from, one.to)).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn each_key_that_differs_is_there_once() {
        assert_eq!(changes("a = 1\n[b]\nc = [1, 2]", "b.c = [1, 2]\na = 1"), []);
        assert_eq!(
            changes(
                "listen = \":80\"\n[[rule]]\npath = \"/a\"\n[limits]\nheaders = 5",
                "[[rule]]\npath = \"/b\"\n[[rule]]\npath = \"/c\"\n[limits]\nheaders = 5"
            ),
            [
                ("listen".into(), some("\":80\""), None),
                ("rule[1].path".into(), some("\"/a\""), some("\"/b\"")),
                ("rule[2].path".into(), None, some("\"/c\"")),
            ]
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let all = changes("php.env.A = \"x1\"", "php.env.A = \"x2\"");
        assert!(all.len() == 1 && !format!("{all:?}").contains('x'), "{all:?}");
    }

    #[test]
    fn every_reloadable_name_is_a_key_of_the_configuration() {
        for table in TABLES {
            let is = |key: &str| key == table || key.starts_with(&format!("{table}."));
            assert!(OPTIONS.iter().any(|row| is(row.key)), "{table}");
        }
        for limit in LIMITS {
            assert!(ALL_LIMITS.iter().any(|row| row.key == limit), "{limit}");
        }
        for (key, right) in [
            ("rule[3].path", true),
            ("site[1].rule[0].query[2]", true),
            ("site[1].host", false),
            ("cache.soft_for", true),
            ("cached", false),
            ("limits.idle_timeout", true),
            ("limits.connections", false),
            ("database[0].url", false),
            ("listen", false),
        ] {
            assert_eq!(may_change(key), right, "{key}");
        }
    }
}
