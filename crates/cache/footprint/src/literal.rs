//! Constants in the text of a statement, as they are written.
//!
//! Not here: how values of a column are compared with them, which depends on the column.

/// A constant, as the statement writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A number in decimal notation, without a sign.
    Number(Box<str>),
    /// Text, with its escape sequences resolved.
    Text(Box<str>),
    /// Text of a connection whose character set is `binary`, if it is UTF-8. It is compared by its bytes.
    Bytes(Box<str>),
    /// The constants of an `IN` list.
    List(Vec<Literal>),
    /// A constant whose value is not known here: binary, with a character set, not UTF-8.
    Opaque,
}

impl Literal {
    /// The value as a whole number: of a number, or of a text that is written exactly as a number is. `None`
    /// beyond 63 bits.
    pub(crate) fn integer(&self) -> Option<i64> {
        /// Within this number of digits, the database's comparison by floating point is exact.
        const DIGITS_MAX: usize = 15;
        match self {
            Literal::Number(digits) => digits.parse().ok(),
            Literal::Text(text) | Literal::Bytes(text) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                let is_canonical = !digits.starts_with('0') || text.as_ref() == "0";
                let is_exact = (1..=DIGITS_MAX).contains(&digits.len());
                if is_number && is_canonical && is_exact { text.parse().ok() } else { None }
            }
            Literal::List(_) | Literal::Opaque => None,
        }
    }
}
