//! The configuration as it counts, for people: every key with its value, and where that comes from. What
//! the flags say wins over the file, and the file over what holds anyway. Secrets are not shown.
//! What counts is decided by `resolve`; here it is only told.

use super::secret::hidden;
use super::table::{LIMITS, OPTIONS};
use super::written::{Written, keys};
use super::{Config, OriginConfig};
use std::collections::HashSet;
use std::fmt::Write as _;

/// How far the comments are from the left, where the values leave them room.
const COLUMN: usize = 48;
/// Tables of which there are as many as the file has: they have no values where it has none.
const LISTS: [&str; 5] = ["change", "database", "rule", "site.rule", "tls"];

/// What the flags say: their keys and values.
pub type Flags = Vec<(&'static str, String)>;

/// Every key, a line each. `text` is the file, where there is one.
pub fn shown(config: &Config, text: &str, flags: &Flags) -> String {
    let written = keys(text);
    let by_flag: HashSet<&str> = flags.iter().map(|(key, _)| *key).collect();
    let in_file: HashSet<&str> = written.iter().map(|one| one.key.as_str()).collect();
    let mut out = String::new();
    let all = OPTIONS.iter().map(|row| (row.key.to_owned(), row.flag, row.default));
    let limits = LIMITS.iter().map(|row| (format!("limits.{}", row.key), "", row.default));
    for (key, flag, default) in all.chain(limits) {
        if by_flag.contains(&*key) {
            let flag = if flag.is_empty() { "command line" } else { flag };
            for (_, value) in flags.iter().filter(|(known, _)| *known == key) {
                line(&mut out, &key, value, flag);
            }
        } else if !in_file.contains(&*key) && !is_of_a_list(&key, &written) {
            match found_out(config, &key) {
                Some(value) => line(&mut out, &key, &value, &format!("default: {default}")),
                None => line(&mut out, &key, default, "default"),
            }
        }
    }
    for Written { key, value, line: at } in &written {
        if !by_flag.contains(&**key) {
            line(&mut out, key, value, &format!("line {at}"));
        }
    }
    out
}

fn line(out: &mut String, key: &str, value: &str, from: &str) {
    let value = hidden(key, value);
    // A value over several lines is one value all the same.
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("{key} = {value}");
    // Writing to a String does not fail.
    let _ = writeln!(out, "{said:<COLUMN$} # {from}");
}

/// Whether a key stands in tables of which the file has as many as it likes, or has such tables below it.
fn is_of_a_list(key: &str, written: &[Written]) -> bool {
    let is_list = LISTS.iter().any(|list| key == *list || key.starts_with(&format!("{list}.")));
    let has_below = |one: &Written| {
        one.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.') || rest.starts_with('['))
    };
    is_list || written.iter().any(has_below)
}

/// What holds where nothing is said, for keys of which that depends on the machine.
fn found_out(config: &Config, key: &str) -> Option<String> {
    match key {
        "memory" => Some(format!("{}M", config.memory_bytes >> 20)),
        "site.root" => {
            let files = config.site.files.as_ref()?;
            Some(format!("{:?}", files.root.display().to_string()))
        }
        "php.children" => match &config.site.origin {
            OriginConfig::OwnPhp(php) => Some(php.children.to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve;
    use super::*;

    #[test]
    fn each_value_says_where_it_comes_from() {
        let text = "memory = \"64M\"\nsite.origin = \"http://127.0.0.1:1\"\nphp.env.A = \"it\"\n\
                    [[rule]]\npath = [\n  \"/a\",\n]\nbypass = true\n";
        let config = resolve(&toml::from_str(text).unwrap()).unwrap();
        let flags = vec![("listen", "[\":80\"]".to_owned())];
        let shown = shown(&config, text, &flags);
        let said = |key: &str| {
            let found: Vec<_> =
                shown.lines().filter(|line| line.starts_with(&format!("{key} = "))).collect();
            assert_eq!(found.len(), 1, "{key} in {shown}");
            found[0].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said("listen"), "listen = [\":80\"] # --listen");
        assert_eq!(said("memory"), "memory = \"64M\" # line 1");
        assert_eq!(said("rule[0].path"), "rule[0].path = [ \"/a\", ] # line 5");
        assert_eq!(said("php.env.A"), "php.env.A = (not shown) # line 3");
        assert_eq!(said("limits.headers"), "limits.headers = 100 # default");
        assert!(!shown.contains("database.url") && !shown.contains("\"it\""), "{shown}");
        let all = OPTIONS.iter().filter(|row| !is_of_a_list(row.key, &keys(text)));
        for row in all {
            said(row.key);
        }
    }
}
