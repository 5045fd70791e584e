//! The end of a word: after its delimiters, so that a nonce within a script or a URL is a word of its own; and before a
//! number in writing without spaces.
//!
//! All of it is by bytes: a text in another coding than UTF-8 has words, too.

/// The number of bytes before the first delimiter of a text, or before a number that follows a letter beyond ASCII.
pub(crate) fn letters(text: &[u8]) -> usize {
    let is_number = |at: usize| at > 0 && text[at].is_ascii_digit() && !text[at - 1].is_ascii();
    let is_end = |at: &usize| delimiter(&text[*at..]) > 0 || is_number(*at);
    (0..text.len()).find(is_end).unwrap_or(text.len())
}

/// The number of bytes of the delimiters with which a text begins.
pub(crate) fn marks(text: &[u8]) -> usize {
    let mut length = 0;
    loop {
        match delimiter(&text[length..]) {
            0 => return length,
            more => length += more,
        }
    }
}

/// The number of bytes of the delimiter with which a text begins, 0 if there is none. Beyond ASCII: signs of Latin 1 (with
/// the space that does not break), Arabic marks, and the punctuation and spaces of all languages, of Chinese, and of full
/// width.
fn delimiter(text: &[u8]) -> usize {
    match text {
        [byte, ..] if byte.is_ascii_alphanumeric() => 0,
        [byte, ..] if b"\"'<>=&;,:(){}[]?|/\\.-+_".contains(byte) => 1,
        [0xC2, 0x80..=0xBF, ..] | [0xD8, 0x8C | 0x9B | 0x9F, ..] => 2,
        [0xE2 | 0xE3, 0x80, _, ..] | [0xEF, 0xBC, 0x81..=0x8F | 0x9A..=0xA0, ..] => 3,
        _ => 0,
    }
}
