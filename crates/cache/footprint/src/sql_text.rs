//! Names and values in the text of statements that Pagewell sends.
//!
//! A value is written as hexadecimal digits, and an identifier in backquotes, so that no SQL mode and no character set
//! changes their meaning. Invariant: no name and no value can end its quotation. Not here: the statements.

use crate::schema::SqlColumnKind;
use std::fmt::Write as _;

/// The maximum length of a selected text in bytes. One character more is selected, so that a longer one is noticed.
pub const TEXT_MAX: usize = 2_048;
/// The longest integer in digits, with its sign.
const INTEGER_MAX: usize = 20;

/// Appends an identifier in backquotes to a statement.
pub fn put_name(sql: &mut String, name: &str) {
    sql.push('`');
    sql.push_str(&name.replace('`', "``"));
    sql.push('`');
}

/// Appends a value to a statement, as a constant for comparisons with a column of this kind.
pub fn put_value(sql: &mut String, kind: SqlColumnKind, value: &str) {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_integer = !digits.is_empty()
        && value.len() <= INTEGER_MAX
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if kind == SqlColumnKind::Integer && is_integer {
        return sql.push_str(value);
    }
    if value.is_empty() {
        return sql.push_str("''");
    }
    sql.push_str(if kind == SqlColumnKind::Bytes { "_binary 0x" } else { "_utf8mb4 0x" });
    for byte in value.bytes() {
        // Writing to a string cannot fail.
        let _ = write!(sql, "{byte:02x}");
    }
}

/// Appends the expression for the value of a column to a select list. Nothing is selected of an opaque column, and of
/// texts only as much as is compared.
pub fn put_column(sql: &mut String, name: &str, kind: SqlColumnKind) {
    match kind {
        SqlColumnKind::Integer | SqlColumnKind::Number | SqlColumnKind::Moment => {
            put_name(sql, name);
        }
        SqlColumnKind::Text { .. } | SqlColumnKind::Bytes => {
            sql.push_str("LEFT(");
            put_name(sql, name);
            let _ = write!(sql, ",{})", TEXT_MAX + 1);
        }
        SqlColumnKind::Opaque => sql.push_str("NULL"),
    }
}
