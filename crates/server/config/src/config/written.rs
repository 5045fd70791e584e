//! The keys of the configuration file with their positions, and the position to which an error
//! message refers.
//!
//! It parses the same text as `raw`, but only for messages.

use super::secret::blotted;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenKey {
    /// The full key, such as `limits.headers` or `rule[1].path`.
    pub key: String,
    /// The value as written in the file.
    pub value: String,
    /// The line number, from 1.
    pub line: usize,
}

/// Returns every key of a file, in its order; empty if it is not valid TOML.
pub fn keys(text: &str) -> Vec<WrittenKey> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    walk(table.get_ref(), "", &mut found);
    found.sort_by_key(|(_, place)| place.start);
    let all = found.into_iter();
    all.map(|(key, place)| {
        let line = line_of(text, place.start).0;
        WrittenKey { key, value: text[place].to_owned(), line }
    })
    .collect()
}

/// Prefixes an error about a value of a file with its position, if that can be determined.
pub fn with_place(text: &str, error: &str) -> String {
    match place_of(text, error) {
        Some(place) => placed(text, place, error),
        None => error.to_owned(),
    }
}

/// Prefixes an error with its position and the line as written.
pub(super) fn placed(text: &str, place: Range<usize>, error: &str) -> String {
    let (line, from) = line_of(text, place.start);
    let end = text[from..].find('\n').map_or(text.len(), |at| from + at);
    let key = key_at(text, &place).unwrap_or_default();
    let shown = blotted(&key, text[from..end].trim_end_matches('\r'));
    let before = text[from..place.start.min(end)].chars().count();
    let marked = text[place.start.min(end)..place.end.min(end).max(place.start.min(end))].chars();
    let margin = " ".repeat(line.to_string().len());
    let (blank, marks) = (" ".repeat(before), "^".repeat(marked.count().max(1)));
    format!(
        "at line {line}, column {}\n{margin} |\n{line} | {shown}\n{margin} | {blank}{marks}\n{error}",
        before + 1
    )
}

/// Returns the key at a position of a file, or the key whose value or table is there.
pub(super) fn key_at(text: &str, place: &Range<usize>) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let mut all = Vec::new();
    places(table.get_ref(), "", &mut all);
    let around = |one: &Range<usize>| one.start <= place.start && place.end <= one.end;
    let mut found: Vec<_> = all.into_iter().filter(|(_, one)| around(one)).collect();
    // Of keys at the same position, the innermost one is wanted, which comes last.
    found.reverse();
    found.sort_by_key(|(_, one)| one.len());
    found.into_iter().next().map(|(key, _)| key)
}

/// Returns the positions of all keys, values and tables, each table before its content.
fn places(table: &DeTable<'_>, prefix: &str, all: &mut Vec<(String, Range<usize>)>) {
    for (name, value) in table {
        let dot = if prefix.is_empty() { "" } else { "." };
        let key = format!("{prefix}{dot}{}", name.get_ref());
        all.push((key.clone(), name.span()));
        places_below(&key, value, all);
    }
}

fn places_below(key: &str, value: &Spanned<DeValue<'_>>, all: &mut Vec<(String, Range<usize>)>) {
    all.push((key.to_owned(), value.span()));
    match value.get_ref() {
        DeValue::Table(table) => places(table, key, all),
        DeValue::Array(list) if list.iter().any(|one| one.get_ref().is_table()) => {
            for (at, one) in list.iter().enumerate() {
                places_below(&format!("{key}[{at}]"), one, all);
            }
        }
        _ => {}
    }
}

/// Returns the number of a line, from 1, and its first offset.
fn line_of(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let from = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, from)
}

fn walk(table: &DeTable<'_>, prefix: &str, found: &mut Vec<(String, Range<usize>)>) {
    for (name, value) in table {
        let dot = if prefix.is_empty() { "" } else { "." };
        put(&format!("{prefix}{dot}{}", name.get_ref()), value, found);
    }
}

fn put(key: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<(String, Range<usize>)>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, key, found),
        DeValue::Array(list) if list.iter().any(|one| one.get_ref().is_table()) => {
            for (at, one) in list.iter().enumerate() {
                put(&format!("{key}[{at}]"), one, found);
            }
        }
        _ => found.push((key.to_owned(), value.span())),
    }
}

/// Returns the position for an error message. Messages begin with the key, or with the host of its
/// site.
fn place_of(text: &str, error: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let table = table.get_ref();
    if let Some(place) = find(text, table, error) {
        return Some(place);
    }
    let (host, rest) = error.split_once(": ")?;
    let of_site = site(table, host)
        .and_then(|site| find(text, site, rest.strip_prefix("site.").unwrap_or(rest)));
    of_site.or_else(|| find(text, table, rest))
}

fn get<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(known, _)| known.get_ref() == name).map(|(_, value)| value)
}

/// Returns the `[[site]]` table of a host.
fn site<'t, 'i>(table: &'t DeTable<'i>, host: &str) -> Option<&'t DeTable<'i>> {
    let mut sites = get(table, "site")?.get_ref().as_array()?.iter();
    sites.find_map(|site| {
        let site = site.get_ref().as_table()?;
        (get(site, "host")?.get_ref().as_str()? == host).then_some(site)
    })
}

/// Returns the position of the key with which an error begins. For a rule it is the position of the
/// rule's key, if one is named.
fn find(text: &str, table: &DeTable<'_>, error: &str) -> Option<Range<usize>> {
    let (key, rest) = error.split_once(": ")?;
    let Some(number) = rule_number(key) else { return find_key(text, table, key, error) };
    let rule = get(table, "rule")?.get_ref().as_array()?.get(number)?;
    let of_key = rule.get_ref().as_table().and_then(|rule| {
        // Of several contradictory keys, the first one present.
        let mut keys = rest.split_once(": ")?.0.split(", ");
        keys.find_map(|key| find_key(text, rule, key, error))
    });
    Some(of_key.unwrap_or(rule.span()))
}

/// Returns the position of a key. If several tables of a list have it, the one is chosen whose
/// value is in the error message, or else the first.
fn find_key(text: &str, table: &DeTable<'_>, key: &str, error: &str) -> Option<Range<usize>> {
    let (name, rest) = match key.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (key, None),
    };
    let value = get(table, name)?;
    let Some(rest) = rest else { return Some(value.span()) };
    match value.get_ref() {
        DeValue::Table(table) => find_key(text, table, rest, error),
        DeValue::Array(list) => {
            let tables = list.iter().filter_map(|one| one.get_ref().as_table());
            let all: Vec<_> =
                tables.filter_map(|table| find_key(text, table, rest, error)).collect();
            let named = all.iter().find(|place| error.contains(&text[(**place).clone()]));
            named.or(all.first()).cloned()
        }
        _ => None,
    }
}

/// Parses a rule's number: `rule 2` and `rule 2 (name)` are the second rule.
fn rule_number(key: &str) -> Option<usize> {
    let digits = key.strip_prefix("rule ")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse::<usize>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\nlisten = \":80\"\n\n[limits]\nidle_timeout = \"soon\"\n\
        [[rule]]\npath = \"/a\"\n[[rule]]\npath = \"/b\"\n\
        [[site]]\nhost = \"x.test\"\ncache.soft_for = \"é never\"\n";

    #[test]
    fn every_key_has_its_line() {
        let all: Vec<_> = keys(FILE)
            .into_iter()
            .map(|one| format!("{} {} {}", one.line, one.key, one.value))
            .collect();
        assert_eq!(
            all,
            [
                "2 listen \":80\"",
                "5 limits.idle_timeout \"soon\"",
                "7 rule[0].path \"/a\"",
                "9 rule[1].path \"/b\"",
                "11 site[0].host \"x.test\"",
                "12 site[0].cache.soft_for \"é never\"",
            ]
        );
    }

    #[test]
    fn no_error_shows_a_secret() {
        let file = "cluster.url = \"redis://me:it@/a@host:x\"\n[php.env]\nKEY = \"abc\"\n";
        let url = with_place(file, "cluster.url: no port");
        assert!(!url.contains("redis") && url.contains("\n1 | cluster.url =****"), "{url}");
        let env = with_place(file, "php.env.KEY: no");
        assert!(env.contains("\n3 | KEY =******\n"), "{env}");
    }

    #[test]
    fn an_error_is_shown_where_it_is() {
        assert_eq!(
            with_place(FILE, "limits.idle_timeout: \"soon\" is no duration"),
            "at line 5, column 16\n  |\n5 | idle_timeout = \"soon\"\n  |                ^^^^^^\n\
             limits.idle_timeout: \"soon\" is no duration"
        );
        for (error, place) in [
            ("listen: nobody", "at line 2, column 10\n"),
            ("x.test: cache.soft_for: no", "at line 12, column 18\n"),
            ("rule 2: no", "at line 8, column 1\n"),
            ("rule 2: path: no", "at line 9, column 8\n"),
            ("rule 2 (b): store, path: no", "at line 9, column 8\n"),
            ("rule.path: \"/b\" is bad", "at line 9, column 8\n"),
        ] {
            let said = with_place(FILE, error);
            assert!(said.starts_with(place) && said.ends_with(error), "{said}");
        }
        for nowhere in ["memory: too small", "no key at all", "limits.headers: no"] {
            assert_eq!(with_place(FILE, nowhere), nowhere);
        }
    }
}
