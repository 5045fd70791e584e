//! Percent-encoding (RFC 3986 section 2.1) of what is written in text: paths of requests, and the parts of
//! a database's URL. Each is decoded once, as PHP's readers of `REQUEST_URI` do: what is still encoded
//! after that is a value of its own. Text that is not UTF-8 once it is decoded is refused.

use std::borrow::Cow;

/// Undoes percent-encoding (RFC 3986 section 2.1); `None` for a bad escape, or what is no UTF-8.
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
