//! The effective configuration for human readers: every key, its value and the source of the value.
//! Flags override the file, and the file overrides defaults. Secrets are not shown. `resolve`
//! computes the values; this module only prints them. Text that is not a value is printed after a
//! `#`.

use super::purging::LOOPBACK;
use super::secret::hidden;
use super::table::{LIMITS, OPTIONS};
use super::written::{WrittenKey, keys};
use super::{Config, OriginConfig};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The column of the comments, if the values leave enough room.
const COLUMN: usize = 48;
/// Tables that the file may repeat: without any of them, there are no values.
const LISTS: [&str; 7] =
    ["automatic.ignore", "change", "database", "rule", "site.rule", "tls", "wake"];

/// The keys and values that flags set.
pub type Flags = Vec<(&'static str, String)>;

/// Returns one line per key: first those that are set, in the order of flags and file, then the
/// others. `text` is the file, or empty.
pub fn shown(config: &Config, text: &str, flags: &Flags) -> (String, String) {
    let written = keys(text);
    let flag_of = |key: &str| OPTIONS.iter().find(|row| row.key == key).map_or("", |row| row.flag);
    let (mut set, mut default) = (String::new(), String::new());
    for (key, value) in flags {
        let flag = flag_of(key);
        line(&mut set, key, value, if flag.is_empty() { "command line" } else { flag });
    }
    let by_flag: HashSet<&str> = flags.iter().map(|(key, _)| *key).collect();
    for WrittenKey { key, value, line: at } in &written {
        if !by_flag.contains(&**key) {
            line(&mut set, key, value, &format!("line {at}"));
        }
    }
    let in_file: HashSet<&str> = written.iter().map(|one| one.key.as_str()).collect();
    let all = OPTIONS.iter().map(|row| (row.key.to_owned(), row.default));
    let limits = LIMITS.iter().map(|row| (format!("limits.{}", row.key), row.default));
    for (key, words) in all.chain(limits) {
        let is_set = by_flag.contains(&*key) || in_file.contains(&*key);
        if is_set || is_of_a_list(&key, &written) {
            continue;
        }
        match (found_out(config, &key), as_value(words)) {
            (Some(value), _) => line(&mut default, &key, &value, &format!("default: {words}")),
            (None, Some(value)) => line(&mut default, &key, &value, "default"),
            (None, None) => {
                let _ = writeln!(default, "# {key}: {words}");
            }
        }
    }
    (set, default)
}

/// A default in the syntax of the file; `None` if it is not a value.
fn as_value(words: &str) -> Option<String> {
    if toml::from_str::<toml::Table>(&format!("value = {words}")).is_ok() {
        return Some(words.to_owned());
    }
    let is_one = words != "none" && !words.contains([' ', '`', ',']);
    is_one.then(|| format!("{words:?}"))
}

fn line(out: &mut String, key: &str, value: &str, from: &str) {
    let value = hidden(key, value);
    // A value over several lines is printed in one.
    let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("{key} = {value}");
    // Writing to a String does not fail.
    let _ = writeln!(out, "{said:<COLUMN$} # {from}");
}

/// Whether a key is in a repeatable table, or is such a table itself.
fn is_of_a_list(key: &str, written: &[WrittenKey]) -> bool {
    let is_list = LISTS.iter().any(|list| key == *list || key.starts_with(&format!("{list}.")));
    let has_below = |one: &WrittenKey| {
        one.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.') || rest.starts_with('['))
    };
    is_list || written.iter().any(has_below)
}

/// Returns the effective value of an unset key, if it depends on the machine or on other keys, or
/// is a list.
fn found_out(config: &Config, key: &str) -> Option<String> {
    let files = config.site.files.as_ref();
    let php = match &config.site.origin {
        OriginConfig::OwnPhp(php) => Some(php),
        _ => None,
    };
    match key {
        "memory" => Some(format!("\"{}M\"", config.memory_bytes >> 20)),
        "connections_exempt" | "purge.from" => Some(format!("{LOOPBACK:?}")),
        "site.root" => Some(format!("{:?}", files?.root.display().to_string())),
        "site.hidden" => Some(format!("{:?}", files?.hidden)),
        "php.children" => Some(php?.children.to_string()),
        "php.user" => Some(format!("{:?}", config.user.as_ref().unwrap_or(&php?.user))),
        "keys.drop" => Some(format!("{:?}", known_names::TRACKING)),
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
        let (set, default) = shown(&config, text, &flags);
        assert!(set.starts_with("listen = ") && !set.contains("default"), "{set}");
        let shown = format!("{set}{default}");
        let said = |key: &str| {
            let starts = [format!("{key} = "), format!("# {key}: ")];
            let found: Vec<_> = shown
                .lines()
                .filter(|line| starts.iter().any(|start| line.starts_with(start)))
                .collect();
            assert_eq!(found.len(), 1, "{key} in {shown}");
            found[0].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said("listen"), "listen = [\":80\"] # --listen");
        assert_eq!(said("memory"), "memory = \"64M\" # line 1");
        assert_eq!(said("rule[0].path"), "rule[0].path = [ \"/a\", ] # line 5");
        assert_eq!(said("php.env.A"), "php.env.A = (not shown) # line 3");
        assert_eq!(said("limits.headers"), "limits.headers = 100 # default");
        assert_eq!(said("limits.uri_bytes"), "limits.uri_bytes = \"8K\" # default");
        assert_eq!(said("site.php"), "# site.php: the table `[php]`");
        let exempt = "purge.from = [\"127.0.0.0/8\", \"::1\"] # default: `127.0.0.0/8` and `::1`";
        assert_eq!(said("purge.from"), exempt);
        assert!(!shown.contains("database.url") && !shown.contains("\"it\""), "{shown}");
        let all = OPTIONS.iter().filter(|row| !is_of_a_list(row.key, &keys(text)));
        for row in all {
            said(row.key);
        }
    }
}
