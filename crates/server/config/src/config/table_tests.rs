//! Compares the tables of options and limits with the code. Every default can be parsed, every
//! option is a key of the file, every limit is a field.
//!
//! Scenario tests show what the options do; these tests only compare names.

use super::Limits;
use super::table::{LIMITS, OPTIONS};

#[test]
fn every_default_can_be_read_and_none_is_left_out() {
    let limits = format!("{:?}", Limits::default());
    for row in LIMITS {
        assert!(limits.contains(row.key), "{} is no field", row.key);
    }
    assert_eq!(limits.matches(": ").count(), LIMITS.len(), "a field without a row: {limits}");
}

#[test]
fn every_option_is_a_key_of_the_file() {
    for row in OPTIONS {
        let value = value_of(row.key);
        let text = match row.key.split_once('.') {
            Some(("tls", _)) => "[[tls]]\ncertificate = \"x\"\nkey = \"y\"\n".to_owned(),
            Some(("database", "manage")) => "[[database]]\nurl = \"x\"\nmanage = true\n".to_owned(),
            Some(("database", key)) if key != "url" => {
                format!("[[database]]\nurl = \"x\"\n{key} = \"y\"\n")
            }
            Some(("database", _)) => "[[database]]\nurl = \"x\"\n".to_owned(),
            Some(("change", key)) => {
                let more = match key {
                    "table" | "tags" => String::new(),
                    "database" => "database = \"z\"\n".to_owned(),
                    "searches" => "searches = { kind = \"z\", columns = [\"a\"] }\n".to_owned(),
                    "where" | "unless" => format!("{key} = {{ a = [\"b\", 1], c = \"d*\" }}\n"),
                    key => format!("{key} = [\"a\"]\n"),
                };
                format!("[[change]]\ntable = \"x\"\ntags = [\"y\"]\n{more}")
            }
            Some(("automatic", key)) if key.starts_with("ignore") => ignore(key),
            Some(("misses", key)) if key.starts_with("crawlers") => {
                "[[misses.crawlers]]\nname = \"x\"\nranges = \"y\"\nhosts = [\"z\"]\nrate = \"1/s\"\n".to_owned()
            }
            Some(("wake", _)) => "[[wake]]\nurl = \"/x\"\nevery = \"1m\"\n".to_owned(),
            Some((table, key)) => format!("[{table}]\n{key} = {value}\n"),
            None => format!("{} = {value}\n", row.key),
        };
        assert!(toml::from_str::<super::raw::File>(&text).is_ok(), "{text}");
    }
}

/// A value that this key may have.
fn value_of(key: &str) -> &'static str {
    match key {
        "site.hidden" | "codings.make" | "codings.types" => "[\"*.x\"]",
        "site.allow_symlinks"
        | "hits_in_front"
        | "keys.sort"
        | "cache.server_timing"
        | "cache.esi"
        | "access_log.mask_addresses"
        | "access_log.mask_queries"
        | "keys.lower_case"
        | "codings.on_the_way"
        | "dialects.litespeed"
        | "dialects.litespeed_esi"
        | "rewarm.enabled"
        | "automatic.enabled"
        | "automatic.look_up"
        | "private.enabled"
        | "codings.files_beside" => "true",
        "site.aliases"
        | "site.redirect_files"
        | "trusted_proxies"
        | "acme.fallback"
        | "keys.drop"
        | "keys.drop_also"
        | "keys.keep"
        | "keys.index"
        | "keys.fields"
        | "keys.harmless_fields"
        | "automatic.content_types"
        | "cookies.ignore"
        | "cookies.session"
        | "private.cookies"
        | "trial.accept"
        | "trial.never" => "[\"x\"]",
        "connections_exempt" | "misses.exempt" | "purge.from" => "[\"10.0.0.0/8\"]",
        "error_pages"
        | "site.error_pages"
        | "site.internal_files"
        | "site.php"
        | "site.cache"
        | "site.keys"
        | "site.cookies"
        | "site.dialects"
        | "site.private"
        | "site.trial"
        | "site.cluster"
        | "site.automatic"
        | "acme.eab" => "{}",
        "dialects.pass_on" => "[\"cache-tag\"]",
        "rule" | "site.rule" => "[{ path = \"/x\" }]",
        "php.children"
        | "cache.heuristic_percent"
        | "codings.min_bytes"
        | "rewarm.pages_per_second"
        | "rewarm.at_once"
        | "private.pages_per_owner"
        | "cluster.keep"
        | "rewarm.min_uses"
        | "traces.share" => "1",
        "site.database" | "site.change" | "site.wake" => "[]",
        "audit" => "\"1 in 10\"",
        "https_redirect" | "site.canonical_redirect" => "308",
        "php.env" | "php.ini" => "{ a = \"b\" }",
        _ => "\"x\"",
    }
}

/// An `[[automatic.ignore]]` table with this key.
fn ignore(key: &str) -> String {
    let more = match key {
        "ignore.table" => "",
        "ignore.column" => "column = \"x\"\n",
        "ignore.values" => "values = [\"x\"]\n",
        _ => "columns = [\"x\"]\n",
    };
    format!("[[automatic.ignore]]\ntable = \"x\"\n{more}")
}
