//! Prepared statements: the text with the values of an execution ("COM_STMT_PREPARE", "COM_STMT_EXECUTE",
//! "Binary Protocol Value").
//!
//! Each placeholder becomes the constant that has the same meaning in SQL. A value of a type that PHP never
//! sends, a value that was sent in pieces, or a number of placeholders other than the server's is refused:
//! the text of the execution is then unknown. Not here: cursors and results, which read nothing more.

use crate::session::SessionMode;
use crate::text::{SqlPart, split};
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The maximum number of statements of a connection that are followed, and of their bytes.
const STATEMENTS_MAX: usize = 1_024;
const BYTES_MAX: usize = 4 << 20;
/// The flag of an unsigned parameter.
const UNSIGNED: u8 = 0x80;

/// The prepared statements of a connection.
#[derive(Debug, Default)]
pub struct PreparedStatements {
    by_id: HashMap<u32, PreparedStatement>,
    bytes: usize,
}

#[derive(Debug)]
struct PreparedStatement {
    text: Vec<u8>,
    mode: SessionMode,
    parameters: usize,
    /// The types of the last execution that sent them.
    types: Vec<[u8; 2]>,
    /// Whether a value is being sent in pieces.
    has_pieces: bool,
}

/// Why the text of an execution is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownExecution(pub &'static str);

impl From<Refusal> for UnknownExecution {
    fn from(_: Refusal) -> UnknownExecution {
        UnknownExecution("the values of a prepared statement could not be read")
    }
}

impl PreparedStatements {
    /// Adds a statement. One that exceeds a limit is left out: its executions are then unknown.
    pub fn add(&mut self, id: u32, text: Vec<u8>, mode: SessionMode, parameters: u16) {
        self.remove(id);
        if self.by_id.len() >= STATEMENTS_MAX || self.bytes + text.len() > BYTES_MAX {
            return;
        }
        self.bytes += text.len();
        let parameters = usize::from(parameters);
        let (types, has_pieces) = (Vec::new(), false);
        let statement = PreparedStatement { text, mode, parameters, types, has_pieces };
        self.by_id.insert(id, statement);
    }

    /// Removes a statement (COM_STMT_CLOSE).
    pub fn remove(&mut self, id: u32) {
        if let Some(statement) = self.by_id.remove(&id) {
            self.bytes -= statement.text.len();
        }
    }

    /// Removes all statements: the session was reset.
    pub fn clear(&mut self) {
        *self = PreparedStatements::default();
    }

    /// Notes that a value is sent in pieces, before the execution (COM_STMT_SEND_LONG_DATA).
    pub fn note_piece(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.has_pieces = true;
        }
    }

    /// Forgets the pieces of values (COM_STMT_RESET).
    pub fn forget_pieces(&mut self, id: u32) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.has_pieces = false;
        }
    }

    /// The text of an execution, from the payload after its first byte, and the mode in which it was
    /// prepared.
    ///
    /// # Errors
    /// [`UnknownExecution`].
    pub fn execute(&mut self, payload: &[u8]) -> Result<(Vec<u8>, SessionMode), UnknownExecution> {
        let mut reader = Reader::new(payload);
        let id = reader.u32()?;
        // Flags, number of iterations.
        reader.take(1 + 4)?;
        let statement = self
            .by_id
            .get_mut(&id)
            .ok_or(UnknownExecution("a prepared statement was executed that is not known"))?;
        if std::mem::take(&mut statement.has_pieces) {
            return Err(UnknownExecution("a value of a prepared statement was sent in pieces"));
        }
        Ok((statement.with_values(reader)?, statement.mode))
    }
}

impl PreparedStatement {
    fn with_values(&mut self, mut reader: Reader<'_>) -> Result<Vec<u8>, UnknownExecution> {
        let parts = split(&self.text, self.mode)
            .map_err(|_| UnknownExecution("the text of a prepared statement could not be split"))?;
        let places = parts.iter().filter_map(|part| match part {
            SqlPart::Placeholder(at) => Some(*at),
            _ => None,
        });
        let places: Vec<usize> = places.collect();
        if places.len() != self.parameters {
            return Err(UnknownExecution("a prepared statement has other placeholders than seen"));
        }
        if places.is_empty() {
            return Ok(self.text.clone());
        }
        let nulls = reader.take(places.len().div_ceil(8))?;
        if reader.u8()? == 1 {
            let types = (0..places.len()).map(|_| reader.array());
            self.types = types.collect::<Result<_, _>>()?;
        }
        if self.types.len() != places.len() {
            return Err(UnknownExecution("a prepared statement was executed without types"));
        }
        let (mut text, mut from) = (Vec::with_capacity(self.text.len() + payload_room(reader)), 0);
        for (number, (at, kind)) in places.into_iter().zip(&self.types).enumerate() {
            text.extend_from_slice(&self.text[from..at]);
            from = at + 1;
            // Blanks keep the constant apart from the words beside it.
            text.push(b' ');
            if nulls[number / 8] >> (number % 8) & 1 == 1 {
                text.extend_from_slice(b"NULL");
            } else {
                put_value(&mut text, *kind, &mut reader, self.mode)?;
            }
            text.push(b' ');
        }
        text.extend_from_slice(&self.text[from..]);
        Ok(text)
    }
}

fn payload_room(reader: Reader<'_>) -> usize {
    reader.rest().len()
}

/// Appends a value as a constant.
fn put_value(
    out: &mut Vec<u8>,
    [kind, flags]: [u8; 2],
    reader: &mut Reader<'_>,
    mode: SessionMode,
) -> Result<(), UnknownExecution> {
    let is_unsigned = flags & UNSIGNED != 0;
    let mut number = String::new();
    match kind {
        // MYSQL_TYPE_NULL
        6 => number.push_str("NULL"),
        // TINY, SHORT, LONG, LONGLONG
        1 | 2 | 3 | 8 => {
            let bytes = match kind {
                1 => 1,
                2 => 2,
                3 => 4,
                _ => 8,
            };
            let raw = reader.uint(bytes)?;
            let shift = 64 - 8 * bytes as u32;
            let _ = if is_unsigned {
                write!(number, "{raw}")
            } else {
                write!(number, "{}", (raw << shift).cast_signed() >> shift)
            };
        }
        // FLOAT, DOUBLE: the exponent makes the constant a DOUBLE and no DECIMAL.
        4 | 5 => {
            let value = if kind == 4 {
                f64::from(f32::from_le_bytes(reader.array()?))
            } else {
                f64::from_le_bytes(reader.array()?)
            };
            if !value.is_finite() {
                return Err(UnknownExecution("a value of a prepared statement is no number"));
            }
            let _ = write!(number, "{value:e}");
        }
        // VARCHAR, VAR_STRING, STRING
        15 | 253 | 254 => {
            put_text(out, reader.lenenc_bytes()?, mode);
            return Ok(());
        }
        // TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB
        249..=252 => {
            number.push_str("x'");
            for byte in reader.lenenc_bytes()? {
                let _ = write!(number, "{byte:02x}");
            }
            number.push('\'');
        }
        _ => return Err(UnknownExecution("a value of a prepared statement has another type")),
    }
    out.extend_from_slice(number.as_bytes());
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &[u8], mode: SessionMode) {
    out.push(b'\'');
    for byte in text {
        if *byte == b'\'' || *byte == b'\\' && !mode.has_plain_backslashes {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(
        text: &str,
        nulls: u8,
        types: &[[u8; 2]],
        values: &[u8],
    ) -> Result<String, UnknownExecution> {
        let mut all = PreparedStatements::default();
        let parameters = types.len() as u16;
        all.add(7, text.as_bytes().to_vec(), SessionMode::default(), parameters);
        let mut payload = b"\x07\0\0\0\0\x01\0\0\0".to_vec();
        if parameters > 0 {
            payload.extend_from_slice(&[nulls, 1]);
            payload.extend(types.iter().flatten());
            payload.extend_from_slice(values);
        }
        let (text, _) = all.execute(&payload)?;
        Ok(String::from_utf8(text).expect("text"))
    }

    #[test]
    fn values_become_constants() {
        let double = 0.1_f64.to_le_bytes();
        for (kind, values, expected) in [
            ([8, 0], &(-5_i64).to_le_bytes()[..], "-5"),
            ([8, UNSIGNED], &u64::MAX.to_le_bytes()[..], "18446744073709551615"),
            ([1, 0], b"\xff", "-1"),
            ([2, UNSIGNED], b"\xff\xff", "65535"),
            ([3, 0], b"\x00\x00\x00\x80", "-2147483648"),
            ([5, 0], &double[..], "1e-1"),
            ([253, 0], b"\x05it's\\", r"'it''s\\'"),
            ([252, 0], b"\x02\x00\xff", "x'00ff'"),
            ([6, 0], b"", "NULL"),
        ] {
            let text = executed("SELECT a FROM b WHERE c=?", 0, &[kind], values);
            assert_eq!(text, Ok(format!("SELECT a FROM b WHERE c= {expected} ")));
        }
        let text = executed("SELECT '?', ?, ?", 1, &[[253, 0], [1, 0]], b"\x07");
        assert_eq!(text.as_deref(), Ok("SELECT '?',  NULL ,  7 "));
        assert_eq!(executed("SELECT 1", 0, &[], b"").as_deref(), Ok("SELECT 1"));
    }

    #[test]
    fn unsupported_parameters_are_refused() {
        for (text, kind, values) in [
            ("SELECT ?", [12, 0], &b"\0"[..]),
            ("SELECT ?", [5, 0], &f64::NAN.to_le_bytes()[..]),
            ("SELECT ?", [253, 0], b"\x05abc"),
            ("SELECT ?", [8, 0], b"\x05"),
            ("SELECT ?, ?", [1, 0], b"\x05\x06"),
            ("SELECT /*!50000 ? */", [1, 0], b"\x05"),
            ("SELECT '?'", [1, 0], b"\x05"),
        ] {
            let refused = executed(text, 0, &[kind], values);
            let is_expected = text.contains("/*!") == refused.is_ok();
            assert!(is_expected, "{text}: {refused:?}");
        }
    }

    #[test]
    fn types_are_kept_and_pieces_are_noted() {
        let mut all = PreparedStatements::default();
        let mode = SessionMode::default();
        all.add(1, b"SELECT ?".to_vec(), mode, 1);
        assert!(all.execute(b"\x01\0\0\0\0\x01\0\0\0\0\0\x05").is_err());
        assert!(all.execute(b"\x01\0\0\0\0\x01\0\0\0\0\x01\x01\0\x05").is_ok());
        let again = b"\x01\0\0\0\0\x01\0\0\0\0\0\x06";
        assert_eq!(all.execute(again), Ok((b"SELECT  6 ".to_vec(), mode)));
        all.note_piece(1);
        assert!(all.execute(again).is_err());
        assert!(all.execute(again).is_ok());
        all.remove(1);
        assert!(all.execute(again).is_err());
        for id in 0..2_000 {
            all.add(id, vec![b'x'; 10_000], mode, 0);
        }
        assert!(all.bytes <= BYTES_MAX && all.by_id.len() <= STATEMENTS_MAX);
        all.clear();
        assert_eq!(all.bytes, 0);
    }
}
