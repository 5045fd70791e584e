//! Look-around in regular expressions, which the linear-time engine of Pagewell does not have.
//!
//! `(?!a|b)` with fixed texts, at the end of an expression or before `.*`, equals an expression without it: the end of
//! the text, another character, or the first character of a text and then not its rest.

/// The expression without look-around, if that is equal. An expression without any stays as it is.
pub(super) fn expanded(expression: &str) -> Option<String> {
    let Some((begin, end, kind)) = first(expression) else { return Some(expression.to_owned()) };
    if kind != "(?!" {
        return None;
    }
    let (before, after) = (&expression[..begin], &expression[end..]);
    if !ends_here(after) {
        return None;
    }
    let texts: Option<Vec<Vec<char>>> =
        expression[begin + kind.len()..end - 1].split('|').map(literal).collect();
    let texts = texts?;
    if texts.len() > 16 || texts.iter().any(|text| text.len() > 32) {
        return None;
    }
    let (not, after) = (none_of(&texts)?, expanded(after)?);
    Some(format!("{before}{not}{after}"))
}

/// Whether nothing but `.*` follows in this alternative and after the groups around it.
fn ends_here(after: &str) -> bool {
    let mut rest = after;
    let mut has_star = false;
    for star in [".*", "[^/]*"] {
        if let Some(behind) = rest.strip_prefix(star) {
            (rest, has_star) = (behind, true);
        }
    }
    loop {
        match rest.chars().next() {
            None => return true,
            Some('$') => return has_star,
            Some('|') => match closing_of_group(rest) {
                Some(end) => rest = &rest[end..],
                None => return true,
            },
            Some(')') => rest = &rest[1..],
            Some(_) => return false,
        }
    }
}

/// The index after the parenthesis that closes the group around a text, if one does.
fn closing_of_group(text: &str) -> Option<usize> {
    let (mut open, mut is_escaped) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {}
            '(' => open += 1,
            ')' if open == 0 => return Some(at + 1),
            ')' => open -= 1,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

/// The expression without its look-arounds: it matches at least what the original matches.
pub(super) fn removed(expression: &str) -> String {
    let mut text = expression.to_owned();
    while let Some((begin, end, _)) = first(&text) {
        text.replace_range(begin..end, "");
    }
    text
}

/// The first look-around: where it begins and ends, and its opening.
fn first(expression: &str) -> Option<(usize, usize, &'static str)> {
    let bytes = expression.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'\\' {
            at += 2;
            continue;
        }
        for kind in ["(?!", "(?=", "(?<!", "(?<="] {
            if bytes[at..].starts_with(kind.as_bytes()) {
                return Some((at, closing(bytes, at)?, kind));
            }
        }
        at += 1;
    }
    None
}

/// The index after the parenthesis that closes the one at `begin`.
fn closing(bytes: &[u8], begin: usize) -> Option<usize> {
    let (mut at, mut open) = (begin, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'(' => open += 1,
            b')' => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// A text without special characters.
fn literal(text: &str) -> Option<Vec<char>> {
    let mut all = Vec::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let c = match c {
            '\\' => characters.next().filter(|c| !c.is_ascii_alphanumeric())?,
            c if "()[]{}*+?.^$".contains(c) => return None,
            c => c,
        };
        all.push(c);
    }
    (!all.is_empty()).then_some(all)
}

/// An expression for: none of these texts begins here.
fn none_of(texts: &[Vec<char>]) -> Option<String> {
    if texts.iter().any(Vec::is_empty) {
        return None;
    }
    let mut firsts: Vec<char> = texts.iter().filter_map(|text| text.first().copied()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let class: String = firsts
        .iter()
        .map(|c| if c.is_alphanumeric() || *c == '/' { c.to_string() } else { format!("\\{c}") })
        .collect();
    let mut alternatives = vec!["$".to_owned(), format!("[^{class}]")];
    for first in firsts {
        let rests: Vec<Vec<char>> = texts
            .iter()
            .filter(|text| text.first() == Some(&first))
            .map(|text| text[1..].to_vec())
            .collect();
        if let Some(inner) = none_of(&rests) {
            alternatives.push(format!("{}{inner}", super::escaped(&first.to_string())));
        }
    }
    Some(format!("(?:{})", alternatives.join("|")))
}
