//! Expressions over tags, as programs put them together from a list, and back to the list:
//!
//! | who | what |
//! |---|---|
//! | FOSHttpCache | `(^\|,)(a\|b)(,\|$)`, the tags escaped as by `preg_quote` |
//! | Magento | `((^\|,)cat_p_1(,\|$))\|((^\|,)cat_p_2(,\|$))`, or `.*` |
//! | Drupal | `node:1\|node_list`, or with spaces between |
//!
//! So a purge by tag is a look-up, and nothing is searched. What is left of an expression when its
//! bounds, brackets and bars are gone has to be plain text; a dot in it is a dot, for no program
//! means anything else by `config:system.menu`. Everything else is not recognised, and never guessed.

/// What an expression over tags was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagPattern {
    /// These tags.
    Tags(Vec<Vec<u8>>),
    /// Every tag there is: `.*`.
    Any,
    /// Not put together from a list.
    Unknown,
}

/// Where a tag begins, in the ways it is written.
const BEGINS: [&str; 10] = [
    "(^|,)",
    "(?:^|,)",
    "(^| )",
    "(^|\\s)",
    "(\\s|^)",
    "(,|^)",
    "(^|,| )",
    "(^|[\\s,])",
    "^",
    "\\b",
];
/// Where it ends.
const ENDS: [&str; 10] = [
    "(,|$)",
    "(?:,|$)",
    "( |$)",
    "(\\s|$)",
    "($|\\s)",
    "($|,)",
    "(,| |$)",
    "([\\s,]|$)",
    "$",
    "\\b",
];
/// No page has a longer tag, so a list that is longer as a whole is not one tag.
const TAG_BYTES_MAX: usize = 1_024;
/// Brackets within brackets; the programs above need two.
const DEPTH_MAX: usize = 6;

/// Reads an expression over tags. It is looked at once for each level of brackets.
pub fn read_tag_pattern(text: &str) -> TagPattern {
    let text = text.trim();
    if matches!(text, ".*" | ".+" | "^.*$" | "^.*" | ".*$") {
        return TagPattern::Any;
    }
    let mut tags = Vec::new();
    match read_into(text, 0, &mut tags) {
        Some(()) => TagPattern::Tags(tags),
        None => TagPattern::Unknown,
    }
}

fn read_into(text: &str, depth: usize, tags: &mut Vec<Vec<u8>>) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    for alternative in alternatives(text)? {
        let bounded = without_bounds(alternative)?;
        match inside(bounded) {
            Some(inner) => read_into(inner, depth + 1, tags)?,
            None => plain_words(bounded, tags)?,
        }
    }
    Some(())
}

/// The parts between the bars outside of brackets; `None` where the brackets do not fit.
fn alternatives(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0usize, 0);
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()?),
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b'|' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    (depth == 0).then_some(parts)
}

/// What stands between the bounds, if there are any; `None` where there is one at one side only: that is
/// the beginning of many tags, or the end.
fn without_bounds(text: &str) -> Option<&str> {
    let begun = BEGINS.iter().find_map(|bound| text.strip_prefix(bound));
    // A dollar that is escaped is the tag's own; an escaped backslash before it is rare enough.
    let without_end = |text: &'_ str| {
        let rest = ENDS.iter().find_map(|bound| Some(text.strip_suffix(bound)?.len()));
        rest.filter(|length| !text[..*length].ends_with('\\'))
    };
    match (begun, without_end(begun.unwrap_or(text))) {
        (Some(begun), Some(length)) => Some(&begun[..length]),
        (None, None) => Some(text),
        _ => None,
    }
}

/// What stands in the one pair of brackets that the text is.
fn inside(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    // `(a)(b)` is no pair.
    alternatives(inner).map(|_| inner)
}

/// Adds the tags that a plain text may mean: the whole text, its escapes undone, and its parts.
///
/// Responses list tags separated by commas or by spaces, and a tag may contain the other of the two.
/// Which of them a program means cannot be seen here, so each reading counts: a tag too many costs a
/// render, a tag too few would leave an outdated page.
fn plain_words(text: &str, tags: &mut Vec<Vec<u8>>) -> Option<()> {
    let plain = unescaped(text)?;
    let whole = plain.trim_ascii();
    if whole.is_empty() {
        return None;
    }
    let mut readings = vec![whole];
    let has_commas = whole.contains(&b',');
    if whole.iter().any(u8::is_ascii_whitespace) {
        let words = whole.split(u8::is_ascii_whitespace);
        readings.extend(words.flat_map(|word| word.split(|byte| *byte == b',')));
        if has_commas {
            readings.extend(whole.split(u8::is_ascii_whitespace));
        }
    }
    if has_commas {
        readings.extend(whole.split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    }
    let is_tag = |reading: &&[u8]| !reading.is_empty() && reading.len() <= TAG_BYTES_MAX;
    tags.extend(readings.into_iter().filter(is_tag).map(<[u8]>::to_owned));
    Some(())
}

/// The text without its escapes; `None` where it is more than plain text.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next()? {
                // `\d`, `\s` and the like are classes.
                class if class.is_ascii_alphanumeric() => return None,
                escaped => plain.push(escaped),
            },
            b'*' | b'+' | b'?' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'^' | b'$' | b'|' => {
                return None;
            }
            byte => plain.push(byte),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<String> {
        match read_tag_pattern(text) {
            TagPattern::Tags(mut tags) => {
                tags.sort();
                tags.dedup();
                tags.into_iter().map(|tag| String::from_utf8(tag).unwrap()).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_programs_write() {
        for (pattern, right) in [
            ("(^|,)(a|b)(,|$)", &["a", "b"][..]),
            ("(^|,)(post\\-1|x\\.y\\+z|\\(q\\)|a\\|b)(,|$)", &["(q)", "a|b", "post-1", "x.y+z"]),
            ("(^|,)(red wine|c)(,|$)", &["c", "red", "red wine", "wine"]),
            ("(^|,)(red\\ wine)(,|$)", &["red", "red wine", "wine"]),
            ("a,b", &["a", "a,b", "b"]),
            ("(^|,)( a, b c )(,|$)", &["a", "a,", "a, b c", "b", "b c", "c"]),
            ("((^|,)cat_p_1(,|$))", &["cat_p_1"]),
            ("((^|,)cat_p_1(,|$))|((^|,)cat_p_2(,|$))", &["cat_p_1", "cat_p_2"]),
            ("node:1|node_list", &["node:1", "node_list"]),
            ("node:1 node_list", &["node:1", "node:1 node_list", "node_list"]),
            ("config:system.menu.main", &["config:system.menu.main"]),
            ("(^|\\s)(node:1)(\\s|$)", &["node:1"]),
            ("(?:^|,)(?:a|b)(?:,|$)", &["a", "b"]),
            ("one", &["one"]),
            ("(one)", &["one"]),
            ("^one$", &["one"]),
            ("cost\\$", &["cost$"]),
        ] {
            assert_eq!(tags(pattern), right, "{pattern}");
        }
        for pattern in [".*", ".+", " .* ", "^.*$"] {
            assert_eq!(read_tag_pattern(pattern), TagPattern::Any, "{pattern}");
        }
    }

    #[test]
    fn everything_else_is_not_guessed() {
        for pattern in [
            "",
            "|",
            "a|",
            "|a",
            "a||b",
            "node:.*",
            "node:[0-9]+",
            "^node:",
            "list$",
            "(^|,)node:",
            "a|b(,|$)",
            "(^|,)(,|$)",
            "(a",
            "a)",
            ")a(",
            "(a)(b)",
            "a(b|c)",
            "node:\\d",
            "a\\",
            "a?",
            "(?i)a",
            "(?=a)",
            "((((((((a))))))))",
            "()",
        ] {
            assert_eq!(read_tag_pattern(pattern), TagPattern::Unknown, "{pattern}");
        }
    }
}
