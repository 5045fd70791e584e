//! Percent-encoding (RFC 3986 section 2.1), decoded leniently: an escape that is none stays as it is.
//!
//! For comparisons with what an application reads. Not here: the strict reader, which refuses such escapes
//! (`config::percent_encoding`).

/// Decodes the percent-encoded bytes of a path or a query.
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
