//! Rewrites the errors of the TOML parser for the author of the file: the key, the problem, a valid
//! alternative, and the line itself. The parser's own messages refer to Rust types.
//!
//! It only changes the message: what the parser rejects stays rejected.

use super::table::{LIMITS, OPTIONS};
use super::written::{key_at, placed};
use std::ops::Range;

/// Repeatable tables, by the last part of their names.
const LISTS: [&str; 6] = ["automatic.ignore", "change", "database", "rule", "tls", "wake"];
/// Keys whose values are sizes, by the last part of their names.
const SIZES: [&str; 5] = ["memory", "max_size", "buffer", "item_bytes", "keep_log"];
/// Keys whose values are durations, which need quotes and a unit.
const DURATIONS: [&str; 15] = [
    "default_lifetime",
    "heuristic_max",
    "stale_while_revalidate",
    "stale_if_error",
    "soft_for",
    "inactive",
    "every",
    "unwatched",
    "lag_max",
    "barrier",
    "settle",
    "lifetime_max",
    "render_time",
    "after_write",
    "store",
];
/// Keys whose values are shares, which need quotes and the sign.
const SHARES: [&str; 2] = ["trial.serve", "trial.budget"];
/// Tables and keys that people guess, with the keys that are meant.
const GUESSES: [(&str, &str); 5] = [
    ("control", CONTROL_KEYS),
    ("api", CONTROL_KEYS),
    ("dashboard", CONTROL_KEYS),
    ("token_file", CONTROL_KEYS),
    (
        "status",
        "`deny = 404` refuses a request, `when_status` is a condition, `redirect_status` belongs to redirects",
    ),
];
const CONTROL_KEYS: &str = "the keys of the control interface are `admin` (its address) and \
    `admin_token_file`, at the top of the file";
/// Tables that each of several sites may have.
const OF_SITES: [&str; 10] = [
    "automatic",
    "cache",
    "cluster",
    "cookies",
    "dialects",
    "error_pages",
    "keys",
    "php",
    "private",
    "trial",
];
/// The minimum similarity, of 1, for suggesting one word instead of another.
const ALIKE: f64 = 0.8;

/// Describes an error in a file, and its position.
pub(super) fn message(text: &str, error: &toml::de::Error) -> String {
    let Some(place) = error.span() else { return error.message().to_owned() };
    let words = match key_at(text, &place) {
        Some(key) => words(error.message(), &key),
        None => not_toml(error.message(), text, &place),
    };
    placed(text, place, &words)
}

/// Describes an error in a file that is not valid TOML.
fn not_toml(message: &str, text: &str, place: &Range<usize>) -> String {
    match message {
        "duplicate key" => twice(text, place),
        _ if message.starts_with("invalid ") => {
            format!("{message}; write text in quotes, such as listen = \"127.0.0.1:8080\"")
        }
        _ => message.to_owned(),
    }
}

/// Describes a key or table that is set twice. With several sites, it may be meant for another one.
fn twice(text: &str, place: &Range<usize>) -> String {
    let at = text.get(place.clone()).unwrap_or_default();
    let before = text.get(..place.start).unwrap_or_default();
    let opening = before.rsplit('\n').next().unwrap_or_default().trim();
    let is_table = matches!(opening, "[" | "[[");
    let has_sites = text.lines().any(|line| line.trim_start().starts_with("[[site]]"));
    match at {
        "site" if is_table => {
            format!("{at}: is set twice; with several sites, write each as [[site]]")
        }
        _ if is_table && has_sites && OF_SITES.contains(&at) => {
            format!("{at}: is set twice; for the second site, write [site.{at}] after its [[site]]")
        }
        _ => format!("{at}: is set twice; remove one of them"),
    }
}

fn words(message: &str, key: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let known: Vec<&str> = quoted.skip(1).collect();
        return unknown(key, &known);
    }
    let key = called(key);
    if message.starts_with("missing field") {
        return format!("{key}: needs `{}`", quoted.next().unwrap_or_default());
    }
    let wanted = ["invalid type: ", "invalid value: "]
        .into_iter()
        .find_map(|start| message.strip_prefix(start)?.split_once(", expected "))
        .and_then(|(found, expected)| wanted(&key, found, expected));
    match wanted {
        Some(wanted) => format!("{key}: {wanted}"),
        None if message.starts_with("write ") => format!("{key}: {message}"),
        None => message.to_owned(),
    }
}

/// Describes the expected value without Rust types; `None` if the parser's message is clear enough.
fn wanted(key: &str, found: &str, expected: &str) -> Option<String> {
    let last = last(key);
    let written = found.split('`').nth(1).or_else(|| found.split('"').nth(1)).unwrap_or_default();
    Some(match expected {
        "a string" if found.starts_with("integer") && SIZES.contains(&last) => {
            format!("write a size in quotes, such as \"{written}M\"")
        }
        "a string" if found.starts_with("integer") && DURATIONS.contains(&last) => {
            format!("write a duration in quotes, such as \"{written}s\"")
        }
        "a string" if !written.is_empty() && SHARES.iter().any(|share| key.ends_with(share)) => {
            format!("write a share in quotes, such as \"{written}%\"")
        }
        "a string" | "path string" if written.is_empty() => "write one string in quotes".into(),
        "a string" | "path string" => format!("write a string in quotes: \"{written}\""),
        "a boolean" => "write true or false, without quotes".into(),
        "u8" => "write a whole number from 0 to 255, without quotes".into(),
        "u16" if last.ends_with("_redirect") => "write 301 or 308, without quotes".into(),
        "u16" => "write a whole number from 0 to 65535, without quotes".into(),
        "usize" | "u32" | "u64" => "write a whole number, 0 or more, without quotes".into(),
        "f64" => "write a number, without quotes".into(),
        "a sequence" if LISTS.contains(&last) => {
            format!("write [[{key}]] in two pairs of brackets: there may be several")
        }
        "a sequence" => format!("write a list: [\"{written}\"]"),
        "a map" if key.contains(' ') => {
            format!("write {} = {{ name = \"value\" }}", key.rsplit(' ').next().unwrap_or(last))
        }
        "a map" => format!("write [{key}], and its names and values below it"),
        // An element of a list has no header of its own.
        _ if expected.starts_with("struct ") && key.ends_with(" when_saturated") => {
            let store = if written.is_empty() { "2s" } else { written };
            format!("write when_saturated = {{ store = \"{store}\" }}")
        }
        _ if expected.starts_with("struct ") || expected.starts_with("a table ") => {
            format!("write {}, and its keys below it", bracketed(key))
        }
        _ => return None,
    })
}

/// The message for an unknown key in a table, whose known keys are `known`.
pub(super) fn unknown(key: &str, known: &[&str]) -> String {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let at = match table {
        "" => "at the top of the file".to_owned(),
        table => format!("in {}", bracketed(table)),
    };
    let called = called(key);
    if !table.is_empty()
        && let Some(place) = of_the_top(name)
    {
        return format!("{called}: there is no such key {at}: {place}");
    }
    if let Some((_, meant)) = GUESSES.iter().find(|(guess, _)| *guess == name) {
        return format!("{called}: there is no such key {at}; {meant}");
    }
    let hint = elsewhere(name).or_else(|| nearest(name, known.iter().copied()).map(str::to_owned));
    match hint {
        // The other keys would hide the suggestion.
        Some(hint) => format!("{called}: there is no such key {at}; did you mean `{hint}`?"),
        None => format!("{called}: there is no such key {at}\nknown there: {}", known.join(", ")),
    }
}

/// The place of a key that belongs at the top of the file or is a table.
fn of_the_top(name: &str) -> Option<String> {
    let of_table = |key: &str| key.split_once('.').is_some_and(|(table, _)| table == name);
    if name == "limits" || OPTIONS.iter().any(|row| of_table(row.key)) || LISTS.contains(&name) {
        return Some(format!("it is a table of its own, {}", bracketed(name)));
    }
    let is_key = OPTIONS.iter().any(|row| row.key == name);
    is_key.then(|| format!("`{name}` belongs at the top of the file, before the first [table]"))
}

/// The key of this name in another table, if there is exactly one.
fn elsewhere(name: &str) -> Option<String> {
    let limits = LIMITS.iter().map(|row| format!("limits.{}", row.key));
    let all = OPTIONS.iter().map(|row| row.key.to_owned()).chain(limits);
    let mut same = all.filter(|key| last(key) == name);
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The most similar word of `known`, if one is similar enough. Sizes have the unit in their names
/// here.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let sized = word.replace("size", "bytes");
    let likeness = |candidate: &str| match candidate.strip_suffix("_bytes") {
        _ if candidate == sized => 1.0,
        Some(of) if of == word => 1.0,
        _ if candidate.strip_suffix(word).is_some_and(|before| before.ends_with('_')) => 1.0,
        _ => strsim::jaro_winkler(word, candidate),
    };
    known
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

/// A key in the form for messages: `rule[1].path` becomes `rule 2: path`, and `site[0].host`
/// becomes `site.host`.
fn called(key: &str) -> String {
    let mut said = String::new();
    for part in key.split('.') {
        let (name, number) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((name, number)) => (name, number.parse::<usize>().ok()),
            None => (part, None),
        };
        if !said.is_empty() && !said.ends_with(' ') {
            said.push('.');
        }
        match number.filter(|_| name == "rule") {
            Some(number) => said.push_str(&format!("rule {}: ", number + 1)),
            None => said.push_str(name),
        }
    }
    said.trim_end_matches([' ', ':']).to_owned()
}

/// The header of a table as in the file.
fn bracketed(table: &str) -> String {
    let is_list = table.ends_with(']') || LISTS.contains(&last(table));
    let names: Vec<&str> = table.split('.').filter_map(|part| part.split('[').next()).collect();
    let names = names.join(".");
    if is_list { format!("[[{names}]]") } else { format!("[{names}]") }
}

#[cfg(test)]
mod tests {
    use super::super::raw::File;
    use super::*;

    fn said(text: &str) -> String {
        message(text, &toml::from_str::<File>(text).unwrap_err())
    }

    /// Checks where the message of a text is, and how it begins.
    fn is_said(text: &str, (place, right): (&str, &str)) {
        let said = said(text);
        let (at, why) = said.rsplit_once('\n').unwrap();
        assert!(at.starts_with(&format!("at {place}")), "{text}: {said}");
        assert!(why.starts_with(right), "{text}: {said}");
    }

    #[test]
    fn a_wrong_type_gets_the_right_form_in_the_words_of_the_file() {
        for (text, place, right) in [
            ("[[rule]]\nstore = 1", "line 2, column 9", "rule 1: store: write \"10m\", or"),
            ("memory = 64", "line 1, column 10", "memory: write a size in quotes, such as \"64M\""),
            (
                "cache.soft_for = 5",
                "line 1",
                "cache.soft_for: write a duration in quotes, such as \"5s\"",
            ),
            (
                "trial.budget = 50",
                "line 1",
                "trial.budget: write a share in quotes, such as \"50%\"",
            ),
            (
                "[trial]\nserve = 0.5",
                "line 2",
                "trial.serve: write a share in quotes, such as \"0.5%\"",
            ),
            ("php.children = \"x\"", "line 1", "php.children: write a whole number, 0 or more"),
            (
                "https_redirect = 99999",
                "line 1",
                "https_redirect: write 301 or 308, without quotes",
            ),
            (
                "[[rule]]\nset_headers = \"X-A: x\"",
                "line 2",
                "rule 1: set_headers: write set_headers = { name = \"value\" }",
            ),
            (
                "[[rule]]\nwhen_saturated = \"3s\"",
                "line 2",
                "rule 1: when_saturated: write when_saturated = { store = \"3s\" }",
            ),
            ("cache = \"1s\"", "line 1", "cache: write [cache], and its keys below it"),
            ("site = \"x\"", "line 1", "site: write [site], and its keys below it"),
            ("rule = [\"x\"]", "line 1", "rule: write [[rule]], and its keys below it"),
            ("[rule]\nstore = \"1s\"", "line 1", "rule: write [[rule]] in two pairs of brackets"),
            ("listen = 80", "line 1", "listen: write a string, or a list of strings"),
            (
                "[[rule]]\n[[rule]]\nbypass = \"yes\"",
                "line 3",
                "rule 2: bypass: write true or false",
            ),
            ("[[rule]]\npath = 5", "line 2, column 8", "rule 1: path: write a string, or a list"),
            (
                "[[rule]]\nwhen_status = [true]",
                "line 2",
                "rule 1: when_status: write 404 or \"4xx\"",
            ),
            ("[[database]]\nname = \"x\"", "line 1", "database: needs `url`"),
            (
                "[[change]]\ntable = \"x\"\ntags = \"x\"",
                "line 3",
                "change.tags: write a list: [\"x\"]",
            ),
            (
                "[php.ini]\na = [1]",
                "line 2",
                "php.ini.a: write a string, a whole number, true or false",
            ),
            ("site.root = 5", "line 1", "site.root: write a string in quotes: \"5\""),
        ] {
            is_said(text, (place, right));
        }
    }

    #[test]
    fn a_table_that_is_set_twice_gets_the_form_for_several_sites() {
        for (text, place, right) in [
            ("memory = \"1G\"\nmemory = \"2G\"", "line 2", "memory: is set twice"),
            (
                "[site]\nhost = \"a\"\n[[site]]\nhost = \"b\"\n[site.php]\n",
                "line 3",
                "site: is set twice; with several sites, write each as [[site]]",
            ),
            (
                "[[site]]\nhost = \"a\"\n[site]\n",
                "line 3",
                "site: is set twice; with several sites, write each as [[site]]",
            ),
            (
                "[php]\n[[site]]\nhost = \"a\"\n[php]\n",
                "line 4",
                "php: is set twice; for the second site, write [site.php] after",
            ),
            (
                "[[site]]\n[site.php]\nat = \"x\"\n[site.php]\n",
                "line 4",
                "php: is set twice; remove one of them",
            ),
            ("[limits]\n[limits]\n[[site]]\n", "line 2", "limits: is set twice; remove one"),
        ] {
            is_said(text, (place, right));
        }
    }

    #[test]
    fn an_unknown_key_gets_its_table_or_a_suggestion() {
        for (text, right) in [
            (
                "[site]\nlisten = \":80\"",
                "site.listen: there is no such key in [site]: `listen` belongs at the top of the file, before the first [table]",
            ),
            (
                "[[site]]\nhttps_redirect = 301",
                "site.https_redirect: there is no such key in [[site]]: `https_redirect` belongs at the top",
            ),
            ("[site.limits]\nheaders = 1", "in [site]: it is a table of its own, [limits]"),
            ("[site]\ntls = 1", "in [site]: it is a table of its own, [[tls]]"),
            (
                "lisen = 1",
                "lisen: there is no such key at the top of the file; did you mean `listen`?",
            ),
            (
                "[[rule]]\n[[rule]]\nmetho = 1",
                "rule 2: metho: there is no such key in [[rule]]; did you mean `method`?",
            ),
            (
                "[[rule]]\nstatus = 404",
                "rule 1: status: there is no such key in [[rule]]; `deny = 404` refuses a request",
            ),
            ("[snapshot]\nsize = 1", "did you mean `max_size`?"),
            ("header_bytes = 1", "did you mean `limits.header_bytes`?"),
            ("root = \"/\"", "did you mean `site.root`?"),
            ("[cache]\nxyzzy = 1", "xyzzy: there is no such key in [cache]\nknown there: "),
            (
                "[control]\ntoken_file = \"/x\"",
                "at the top of the file; the keys of the control interface are `admin`",
            ),
        ] {
            let said = said(text);
            assert!(said.contains(right), "{text}: {said}");
            assert!(!said.contains("did you mean") || !said.contains("known there"), "{said}");
        }
        let limits = || LIMITS.iter().map(|row| row.key);
        for (word, right) in [
            ("body", "body_bytes"),
            ("body_size", "body_bytes"),
            ("header_size", "header_bytes"),
            ("body_rat", "body_rate"),
        ] {
            assert_eq!(nearest(word, limits()), Some(right), "{word}");
        }
    }

    #[test]
    fn one_word_may_stand_for_a_list_and_settings_of_php_are_no_texts_only() {
        let text = "trusted_proxies = \"10.0.0.0/8\"\nkeys.drop = \"x\"\n\
                    [php.ini]\na = true\nb = false\nc = 5\nd = \"e\"";
        let file: File = toml::from_str(text).unwrap();
        assert_eq!(file.trusted_proxies, ["10.0.0.0/8"]);
        assert_eq!(file.keys.drop.as_deref(), Some(&["x".to_owned()][..]));
        assert_eq!(file.php.ini.values().collect::<Vec<_>>(), ["1", "0", "5", "e"]);
    }
}
