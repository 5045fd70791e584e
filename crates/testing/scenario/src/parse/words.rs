//! Splits a line: words, separators between spaces, fields separated by two spaces, quoted text.
//!
//! Double quotes protect everything between them; there is no other protection. An unclosed quote is an error,
//! because a separator could otherwise be missed inside it.

use super::LineError;
use crate::blanks;
use crate::story::Text;

/// The first word of `text`, and the rest without the space between them.
pub(super) fn first(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

/// For each byte, whether it is outside double quotes. Inside them, a backslash protects the next byte.
fn outside_quotes(text: &str) -> Result<Vec<bool>, LineError> {
    let (mut quoted, mut protected) = (false, false);
    let mut outside = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        outside.push(!quoted);
        match byte {
            _ if protected => protected = false,
            b'\\' if quoted => protected = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    if quoted { Err(("a closing quote", text.to_owned())) } else { Ok(outside) }
}

/// Splits at the first `separator` outside quotes that has spaces, or the line's end, on both sides. Both
/// halves are trimmed.
pub(super) fn split_at<'t>(
    text: &'t str,
    separator: &str,
) -> Result<(&'t str, Option<&'t str>), LineError> {
    let outside = outside_quotes(text)?;
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices(separator) {
        let end = at + separator.len();
        let alone_before = at == 0 || bytes[at - 1].is_ascii_whitespace();
        let alone_after = bytes.get(end).is_none_or(u8::is_ascii_whitespace);
        if outside[at] && alone_before && alone_after {
            return Ok((text[..at].trim(), Some(text[end..].trim())));
        }
    }
    Ok((text.trim(), None))
}

/// Splits at two or more spaces outside quotes.
pub(super) fn split_fields(text: &str) -> Result<Vec<&str>, LineError> {
    let outside = outside_quotes(text)?;
    let (mut pieces, mut from) = (Vec::new(), 0);
    for (at, _) in text.match_indices("  ") {
        if outside[at] && at >= from {
            pieces.push(text[from..at].trim());
            from = at + 1;
        }
    }
    pieces.push(text[from..].trim());
    pieces.retain(|piece| !piece.is_empty());
    Ok(pieces)
}

/// Parses `name: value`; the name is converted to lower case. A value that seems to contain another field is
/// rejected, because a space is missing.
pub(super) fn field(piece: &str) -> Result<(String, Text), LineError> {
    let expected = "name: value";
    let (name, value) = piece.split_once(':').ok_or((expected, piece.to_owned()))?;
    if !is_token(name) {
        return Err((expected, piece.to_owned()));
    }
    let outside = outside_quotes(value)?;
    let mut at = 0;
    for word in value.split(' ') {
        let looks = word.strip_suffix(':').is_some_and(is_token);
        if looks && outside.get(at) == Some(&true) {
            return Err(("two spaces between fields", piece.to_owned()));
        }
        at += word.len() + 1;
    }
    Ok((name.to_ascii_lowercase(), text(value.trim().as_bytes())?))
}

/// Whether `name` is a token (RFC 9110 section 5.6.2).
pub(super) fn is_token(name: &str) -> bool {
    let tchar = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(tchar)
}

/// Parses content. If it is one quoted text, its escapes are decoded; otherwise it is literal, so that JSON
/// needs no escapes.
pub(super) fn content(piece: &str) -> Result<Text, LineError> {
    let outside = outside_quotes(piece)?;
    let inner = outside.get(1..).unwrap_or_default();
    if piece.starts_with('"') && !inner.is_empty() && !inner.contains(&true) {
        quoted(piece)
    } else {
        text(piece.as_bytes())
    }
}

/// Parses quoted text: `\r \n \t \\ \" \xNN`.
pub(super) fn quoted(piece: &str) -> Result<Text, LineError> {
    let expected = "text in double quotes, with \\r \\n \\t \\\\ \\\" \\xNN";
    let wrong = || (expected, piece.to_owned());
    let inside = piece.strip_prefix('"').and_then(|p| p.strip_suffix('"')).ok_or_else(wrong)?;
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'"' {
            return Err(wrong());
        }
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().ok_or_else(wrong)? {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'x' => {
                let digits = [rest.next(), rest.next()].map(|b| b.map(char::from));
                let digit = |c: Option<char>| c.and_then(|c| c.to_digit(16)).ok_or_else(wrong);
                let value = digit(digits[0])? * 16 + digit(digits[1])?;
                u8::try_from(value).map_err(|_| wrong())?
            }
            b @ (b'\\' | b'"') => b,
            _ => return Err(wrong()),
        });
    }
    text(&bytes)
}

/// Text whose placeholders have been checked.
pub(super) fn text(bytes: &[u8]) -> Result<Text, LineError> {
    blanks::check(bytes).map_err(|why| ("text with blanks", why))?;
    Ok(Text(bytes.to_vec()))
}

/// Parses an integer.
pub(super) fn number<T: std::str::FromStr>(word: &str) -> Result<T, LineError> {
    word.parse().map_err(|_| ("a number", word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_stand_alone_and_outside_quotes() {
        assert_eq!(split_at("a => b", "=>").unwrap(), ("a", Some("b")));
        assert_eq!(split_at(r#"raw "a => b" => 400"#, "=>").unwrap().1, Some("400"));
        assert_eq!(split_at("text/html; charset=x ; hit", ";").unwrap().1, Some("hit"));
        assert_eq!(split_at("200 |", "|").unwrap(), ("200", Some("")));
        assert_eq!(split_at("| ; hit", "|").unwrap(), ("", Some("; hit")));
        assert!(split_at("a \" b", "|").is_err());
    }

    #[test]
    fn fields_are_two_spaces_apart() {
        let pieces = split_fields("a: 1  b: \"x  y\"   !c").unwrap();
        assert_eq!(pieces, ["a: 1", "b: \"x  y\"", "!c"]);
        assert!(field("a: 1 b: 2").unwrap_err().0.contains("two spaces"));
        assert!(field("a: \"x b: y\"").is_ok());
        assert!(field("date: Sun, 06 Nov 1994 08:49:37 GMT").is_ok());
        assert_eq!(field("X-Empty:").unwrap(), ("x-empty".into(), Text(Vec::new())));
    }

    #[test]
    fn quoted_text_has_escapes() {
        assert_eq!(quoted(r#""a\r\n\x00\"\\""#).unwrap().0, b"a\r\n\0\"\\");
        assert!(quoted(r#""a\q""#).is_err());
        assert_eq!(content(r#""a\n""#).unwrap().0, b"a\n");
        assert_eq!(content(r#""a":"b""#).unwrap().0, br#""a":"b""#);
        assert!(quoted(r#""a" b"#).is_err());
    }
}
