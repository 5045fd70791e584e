//! Percent-encoding (RFC 3986 section 2.1), decoded in two ways: [`decode`] for comparisons with what an application
//! reads, [`decode_strictly`] for values that Pagewell itself acts on.
//!
//! Each value is decoded once, as PHP applications decode `REQUEST_URI`; escapes that remain are part of the value.

use std::borrow::Cow;

/// Decodes the percent-encoded bytes of a path or a query. An invalid escape stays as it is.
pub fn decode(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*path.get(at)?).to_digit(16).map(|digit| digit as u8);
    let (mut decoded, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(byte) = path.get(at) {
        let escaped = (*byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        decoded.push(escaped.map_or(*byte, |(high, low)| high << 4 | low));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// Decodes percent-encoded text. `None` for an invalid escape, or if the result is not UTF-8.
pub fn decode_strictly(text: &str) -> Option<Cow<'_, str>> {
    if !text.as_bytes().contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |d: u8| char::from(d).to_digit(16);
                bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
                tail
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(first);
                tail
            }
        };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_is_decoded_once() {
        assert_eq!(decode(b"/a%2fb%2541"), b"/a/b%41");
        assert_eq!(decode_strictly("/a%2fb%2541").as_deref(), Some("/a/b%41"));
        assert_eq!(decode_strictly("/\u{e4}%C3%A4").as_deref(), Some("/\u{e4}\u{e4}"));
    }

    #[test]
    fn an_invalid_escape_stays_or_is_refused() {
        for text in ["/%", "/%4", "/%4g", "/%g4"] {
            assert_eq!((&*decode(text.as_bytes()), decode_strictly(text)), (text.as_bytes(), None));
        }
        assert_eq!((decode(b"%ff"), decode_strictly("%ff")), (vec![0xff], None));
    }
}
