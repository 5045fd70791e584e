//! `DECIMAL` in its packed format: four bytes for nine digits, fewer for the rest, the sign in the first bit.
//!
//! Source: `strings/decimal.c` of both servers, `decimal2bin`. All bits of a negative number are inverted; the
//! first bit is set for numbers that are not negative.

use mysql_wire::Refusal;

const BYTES_FOR_DIGITS: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const DIGITS_MAX: u8 = 81;

/// The number of bytes of a packed number with this precision and scale.
///
/// # Errors
/// `BadLength` if there are too many digits, or more digits after the decimal point than in total.
pub(super) fn packed_len(precision: u8, scale: u8) -> Result<usize, Refusal> {
    if precision > DIGITS_MAX || scale > precision {
        return Err(Refusal::BadLength);
    }
    let bytes =
        |digits: u8| usize::from(digits / 9) * 4 + BYTES_FOR_DIGITS[usize::from(digits % 9)];
    Ok(bytes(precision - scale) + bytes(scale))
}

/// The number as SQL writes it.
///
/// # Errors
/// `BadLength`, `BadValue`.
pub(super) fn text(packed: &[u8], precision: u8, scale: u8) -> Result<String, Refusal> {
    if packed.len() != packed_len(precision, scale)? {
        return Err(Refusal::BadLength);
    }
    let is_negative = packed.first().is_some_and(|first| first & 0x80 == 0);
    let mask = if is_negative { 0xff } else { 0 };
    let mut bytes: Vec<u8> = packed.iter().map(|byte| byte ^ mask).collect();
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    let mut digits = String::with_capacity(usize::from(precision) + 3);
    let whole = precision - scale;
    let mut rest = bytes.as_slice();
    // Before the decimal point the incomplete group comes first, after it last.
    let groups = [whole % 9]
        .into_iter()
        .chain(std::iter::repeat_n(9, usize::from(whole / 9)))
        .chain(std::iter::repeat_n(9, usize::from(scale / 9)))
        .chain([scale % 9]);
    for count in groups.filter(|count| *count > 0) {
        let (group, after) = rest
            .split_at_checked(BYTES_FOR_DIGITS[usize::from(count)])
            .ok_or(Refusal::Truncated)?;
        rest = after;
        let number = group.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        let count = usize::from(count);
        let text = format!("{number:0count$}");
        if text.len() > count {
            return Err(Refusal::BadValue);
        }
        digits.push_str(&text);
    }
    Ok(assembled(&digits, usize::from(whole), is_negative))
}

fn assembled(digits: &str, whole: usize, is_negative: bool) -> String {
    let (whole, fraction) = digits.split_at(whole);
    let whole = whole.trim_start_matches('0');
    let mut text = String::with_capacity(digits.len() + 3);
    if is_negative {
        text.push('-');
    }
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the comments of `decimal2bin`: 1234567890.1234 as DECIMAL(14,4).
    #[test]
    fn the_example_of_the_source() {
        let packed = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(text(&packed, 14, 4).as_deref(), Ok("1234567890.1234"));
        let negative = packed.map(|byte| !byte);
        assert_eq!(text(&negative, 14, 4).as_deref(), Ok("-1234567890.1234"));
    }

    #[test]
    fn zero_and_small() {
        assert_eq!(text(&[0x80, 0x00], 3, 2).as_deref(), Ok("0.00"));
        assert_eq!(text(&[0x80, 0x05], 3, 2).as_deref(), Ok("0.05"));
        assert_eq!(text(&[0x7f, 0xfa], 3, 2).as_deref(), Ok("-0.05"));
    }

    #[test]
    fn impossible_decimals_are_refused() {
        assert_eq!(packed_len(5, 6), Err(Refusal::BadLength));
        assert_eq!(packed_len(200, 6), Err(Refusal::BadLength));
        assert_eq!(text(&[0xff, 0xff, 0xff, 0xff], 9, 0), Err(Refusal::BadValue));
    }
}
