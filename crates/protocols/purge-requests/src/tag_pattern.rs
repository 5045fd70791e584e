//! Converts expressions over tags, which programs build from a list of tags, back to the list:
//!
//! | program | expression |
//! |---|---|
//! | FOSHttpCache | `(^\|,)(a\|b)(,\|$)`, the tags escaped with `preg_quote` |
//! | Magento | `((^\|,)cat_p_1(,\|$))\|((^\|,)cat_p_2(,\|$))`, or `.*` |
//! | Drupal | `node:1\|node_list`, or separated by spaces |
//!
//! A purge by tag is therefore a lookup, and nothing is searched. Without boundaries, groups and alternatives
//! the expression must be plain text. A dot counts as a dot, because `config:system.menu` never means anything
//! else. Other expressions are reported as unknown; nothing is guessed.

/// The tags that an expression was built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagPattern {
    /// These tags.
    Tags(Vec<Vec<u8>>),
    /// Every tag: `.*`.
    Any,
    /// The expression was not built from a list of tags.
    Unknown,
}

/// The forms in which programs write the beginning of a tag.
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
/// The forms in which programs write the end of a tag.
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
/// No page has a longer tag, so a longer text is a list of tags.
const TAG_BYTES_MAX: usize = 1_024;
/// The maximum nesting depth of groups; the programs above need two.
const DEPTH_MAX: usize = 6;

/// Parses an expression over tags. The text is scanned once for each nesting level.
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

/// The alternatives between the bars that are outside groups; `None` if the parentheses are unbalanced.
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

/// The text between the boundaries, if there are any. `None` if only one side has a boundary: that is a prefix
/// or a suffix of many tags.
fn without_bounds(text: &str) -> Option<&str> {
    let begun = BEGINS.iter().find_map(|bound| text.strip_prefix(bound));
    // An escaped dollar sign belongs to the tag. A dollar sign after an escaped backslash is too rare to
    // matter.
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

/// The content of the group, if the text is one group.
fn inside(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let inner = inner.strip_prefix("?:").unwrap_or(inner);
    // `(a)(b)` is not one group.
    alternatives(inner).map(|_| inner)
}

/// Adds the tags that a plain text may mean: the whole text without its escapes, and its parts.
///
/// Responses separate tags by commas or by spaces, and a tag may contain the other character. The expression
/// does not show which of the two a program uses, so both readings are added. One tag too many costs a render;
/// one too few would leave an outdated page.
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

/// The text without its escapes; `None` if it is more than plain text.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => match bytes.next()? {
                // `\d`, `\s` and the like are character classes.
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
    fn tag_patterns_of_known_programs_become_tags() {
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
