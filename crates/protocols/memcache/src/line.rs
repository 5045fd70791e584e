//! Splits a command line into tokens, and parses numbers like the C library.
//!
//! Invariants: as in memcached, [`Tokens`] ends at a NUL byte and holds at most 23 tokens (only `get` reads the
//! ones after that). No token is empty.

/// memcached's `MAX_TOKENS`, which includes the end marker.
const TOKENS_MAX: usize = 24;

/// The first tokens of a line.
#[derive(Debug)]
pub(crate) struct Tokens<'a> {
    tokens: [&'a [u8]; TOKENS_MAX],
    count: usize,
}

impl<'a> Tokens<'a> {
    /// Splits `line`, which has no line end.
    pub(crate) fn of(line: &'a [u8]) -> Tokens<'a> {
        let mut tokens = Tokens { tokens: [b""; TOKENS_MAX], count: 0 };
        for token in all(line).take(TOKENS_MAX - 1) {
            tokens.tokens[tokens.count] = token;
            tokens.count += 1;
        }
        tokens
    }

    /// The number of tokens, at most 23.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The token with this index, or an empty slice. The command has index 0.
    pub(crate) fn at(&self, at: usize) -> &'a [u8] {
        self.tokens.get(at).copied().unwrap_or_default()
    }

    /// The tokens from index `at` on.
    pub(crate) fn from(&self, at: usize) -> &[&'a [u8]] {
        self.tokens.get(at..self.count).unwrap_or_default()
    }

    /// The last token.
    pub(crate) fn last(&self) -> &'a [u8] {
        self.at(self.count.saturating_sub(1))
    }
}

/// All tokens of a line, without a limit.
pub(crate) fn all(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
    line[..end].split(|byte| *byte == b' ').filter(|token| !token.is_empty())
}

/// Parses a signed 32-bit number like memcached's `safe_strtol`, which drops the upper 32 bits on 64-bit
/// systems.
pub(crate) fn signed(text: &[u8]) -> Option<i32> {
    let (sign, magnitude) = number(text)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    Some(if sign == Sign::Minus { -magnitude } else { magnitude } as i32)
}

/// Parses an unsigned 32-bit number like memcached's `safe_strtoul`, which drops the upper 32 bits on 64-bit
/// systems.
pub(crate) fn unsigned(text: &[u8]) -> Option<u32> {
    large(text).map(|number| number as u32)
}

/// Parses an unsigned 64-bit number like memcached's `safe_strtoull`. A minus sign is accepted if the result,
/// as a signed number, is not negative.
pub(crate) fn large(text: &[u8]) -> Option<u64> {
    let (sign, magnitude) = number(text)?;
    let value = if sign == Sign::Minus { magnitude.wrapping_neg() } else { magnitude };
    (sign == Sign::Plus || value.cast_signed() >= 0).then_some(value)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

/// Parses a number like `strtoull`: white space, a sign, digits, and then white space or the end. `None` if it
/// overflows.
fn number(text: &[u8]) -> Option<(Sign, u64)> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte))?;
    let (sign, digits) = match text[start] {
        b'-' => (Sign::Minus, &text[start + 1..]),
        b'+' => (Sign::Plus, &text[start + 1..]),
        _ => (Sign::Plus, &text[start..]),
    };
    let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let ends_well = digits.get(end).is_none_or(|byte| blank(byte) || *byte == 0);
    if end == 0 || !ends_well {
        return None;
    }
    let digit = |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    digits[..end].iter().try_fold(0, digit).map(|magnitude| (sign, magnitude))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_c_library_reads_them() {
        assert_eq!(signed(b"-1"), Some(-1));
        assert_eq!(signed(b"+2147483647"), Some(i32::MAX));
        assert_eq!(signed(b"2147483648"), Some(i32::MIN));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!(signed(b"12x"), None);
        assert_eq!(signed(b"12\t"), Some(12));
        assert_eq!(signed(b""), None);
        assert_eq!(unsigned(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned(b"4294967296"), Some(0));
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(large(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(large(b"18446744073709551616"), None);
        assert_eq!(large(b"-1"), None);
        assert_eq!(large(b"12 34"), Some(12));
    }

    #[test]
    fn tokens_end_at_a_nul_and_are_counted_to_a_bound() {
        let tokens = Tokens::of(b"  get  a b\0 c");
        assert_eq!((tokens.count(), tokens.at(0), tokens.last()), (3, &b"get"[..], &b"b"[..]));
        let many = b"a ".repeat(40);
        assert_eq!(Tokens::of(&many).count(), 23);
        assert_eq!(all(&many).count(), 40);
    }
}
