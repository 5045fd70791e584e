//! Percent-encoding (RFC 3986 section 2.1) in paths of requests and in parts of a database's URL.
//! Each value is decoded once, as PHP applications decode `REQUEST_URI`; escapes that remain are
//! part of the value. Text that is not UTF-8 after decoding is refused.

use std::borrow::Cow;

/// Decodes percent-encoding (RFC 3986 section 2.1). `None` for an invalid escape, or if the result
/// is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
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
