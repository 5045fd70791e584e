//! The columns of a table in `information_schema`, for properties that the stream lacks.
//!
//! [`columns_query`] is the statement, [`TableShape::read_all`] parses its rows. A shape describes the table at
//! the time of the query, but the stream describes the past. Callers must therefore discard the shapes of a
//! table if its definition changes in the stream. [`TableShape::fill`] refuses a shape whose types, names or
//! signs differ from the stream. If two columns of the same type are swapped and the stream has no names, the
//! difference cannot be detected; set `binlog_row_metadata=FULL` if that matters.
//!
//! Sources: the manuals of both servers, "INFORMATION_SCHEMA COLUMNS table".

use crate::charset::Charset;
use crate::column::{Column, ColumnKind, Sign, Special};
use mysql_wire::Refusal;
use mysql_wire::query::Rows;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The statement that queries the columns of a database, or of one table in it.
#[must_use]
pub fn columns_query(schema: &str, table: Option<&str>) -> String {
    let mut sql = "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, \
                   COLUMN_KEY, EXTRA, COLLATION_NAME FROM information_schema.COLUMNS \
                   WHERE TABLE_SCHEMA = "
        .to_owned();
    put_literal(&mut sql, schema);
    if let Some(table) = table {
        sql.push_str(" AND TABLE_NAME = ");
        put_literal(&mut sql, table);
    }
    sql.push_str(" ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION");
    sql
}

/// Appends a text as a literal of hexadecimal digits, which no SQL mode of the server interprets differently.
fn put_literal(sql: &mut String, text: &str) {
    if text.is_empty() {
        return sql.push_str("''");
    }
    sql.push_str("_utf8mb4 0x");
    for byte in text.bytes() {
        // Writing to a string cannot fail.
        let _ = write!(sql, "{byte:02x}");
    }
}

/// The columns of a table, according to the schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableShape {
    columns: Vec<ColumnShape>,
}

/// A column, according to the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnShape {
    /// The name of the column.
    pub name: Arc<str>,
    /// The declared SQL type, such as `int(10) unsigned`.
    pub declared: String,
    /// The name of the character set; `None` if the column is not text.
    pub charset: Option<String>,
    /// The name of the collation; `None` if the column is not text.
    pub collation: Option<String>,
    /// The best index that the column belongs to (`COLUMN_KEY`): `PRI`, `UNI`, `MUL`, or empty.
    pub key: String,
    /// Whether the value is computed from other columns.
    pub is_generated: bool,
}

impl TableShape {
    /// A shape with these columns, in order.
    #[must_use]
    pub fn new(columns: Vec<ColumnShape>) -> TableShape {
        TableShape { columns }
    }

    /// Parses the result of [`columns_query`]: shapes by database and table.
    ///
    /// # Errors
    /// `UnexpectedPacket` if the result does not have the columns of that statement.
    pub fn read_all(rows: &Rows) -> Result<HashMap<(String, String), TableShape>, Refusal> {
        if rows.columns.len() != 8 {
            return Err(Refusal::UnexpectedPacket);
        }
        let mut shapes: HashMap<(String, String), TableShape> = HashMap::new();
        for row in 0..rows.rows.len() {
            let text = |column| rows.text(row, column).unwrap_or_default();
            let column = ColumnShape {
                name: text(2).into(),
                declared: text(3),
                charset: rows.text(row, 4),
                collation: rows.text(row, 7),
                key: text(5),
                is_generated: ["VIRTUAL", "STORED", "PERSISTENT"]
                    .iter()
                    .any(|word| text(6).to_ascii_uppercase().contains(word)),
            };
            shapes.entry((text(0), text(1))).or_default().columns.push(column);
        }
        Ok(shapes)
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnShape] {
        &self.columns
    }

    /// The indices of the primary-key columns, in the order of the table.
    #[must_use]
    pub fn primary_key(&self) -> Vec<usize> {
        let places = self.columns.iter().enumerate();
        places.filter(|(_, column)| column.is_in_primary_key()).map(|(place, _)| place).collect()
    }

    /// Adds the properties that the stream lacks.
    ///
    /// # Errors
    /// `SchemaMismatch`: the table was altered in between. Some columns may then be filled.
    pub fn fill(&self, columns: &mut [Column]) -> Result<(), Refusal> {
        let listed = columns.len().min(self.columns.len());
        // System versioning adds two columns that the schema may hide.
        let is_versioning = |column: &Column| column.kind == ColumnKind::Timestamp { digits: 6 };
        let hidden = &columns[listed..];
        let fits = self.columns.len() == listed
            && (hidden.is_empty() || hidden.len() == 2 && hidden.iter().all(is_versioning));
        if !fits {
            return Err(Refusal::SchemaMismatch);
        }
        columns.iter_mut().zip(&self.columns).try_for_each(|(column, shape)| shape.fill(column))
    }
}

impl ColumnShape {
    /// Whether the column is part of the primary key.
    #[must_use]
    pub fn is_in_primary_key(&self) -> bool {
        self.key == "PRI"
    }

    fn fill(&self, column: &mut Column) -> Result<(), Refusal> {
        let declared = self.declared.to_ascii_lowercase();
        let end = declared.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (word, rest) = declared.split_at(end.unwrap_or(declared.len()));
        if !fits(word, rest, column.kind) || contradicts(column.name.as_ref(), &self.name) {
            return Err(Refusal::SchemaMismatch);
        }
        column.name.get_or_insert_with(|| self.name.clone());
        if column.kind.has_sign() {
            let is_unsigned = rest.contains("unsigned") || rest.contains("zerofill");
            let sign = if is_unsigned { Sign::Unsigned } else { Sign::Signed };
            if column.sign != Sign::Unknown && column.sign != sign {
                return Err(Refusal::SchemaMismatch);
            }
            column.sign = sign;
        }
        if column.kind.has_charset() && column.charset.is_none() {
            let name = self.charset.as_deref().unwrap_or("binary");
            column.charset = Some(Charset::of_name(name));
        }
        if matches!(column.kind, ColumnKind::Enum { .. } | ColumnKind::Set { .. })
            && column.members.is_none()
        {
            column.members = Some(members(&self.declared).ok_or(Refusal::SchemaMismatch)?);
        }
        column.special = match word {
            "uuid" => Special::Uuid,
            "inet6" => Special::Inet6,
            "inet4" => Special::Inet4,
            _ => written(word, rest),
        };
        Ok(())
    }
}

/// How the numbers of a type are written, from the text after its name: `(8,2) unsigned zerofill`.
fn written(word: &str, rest: &str) -> Special {
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let numbers = inside.map_or("", |(inside, _)| inside);
    let (first, second) = numbers.split_once(',').unwrap_or((numbers, ""));
    let (first, second) = (first.trim().parse().ok(), second.trim().parse().ok());
    let is_filled = rest.contains("zerofill");
    match word {
        "float" | "double" if is_filled => Special::FilledFloat,
        "float" | "double" => second.map_or(Special::None, Special::Scaled),
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" if is_filled => {
            first.map_or(Special::None, Special::Filled)
        }
        "decimal" if is_filled => {
            let before: Option<u8> = first.and_then(|all: u8| all.checked_sub(second.unwrap_or(0)));
            before.map_or(Special::None, Special::Filled)
        }
        _ => Special::None,
    }
}

fn contradicts(streamed: Option<&Arc<str>>, listed: &str) -> bool {
    streamed.is_some_and(|streamed| **streamed != *listed)
}

/// Whether a declared type can have this column type in the stream. Unknown types fit every column type.
fn fits(word: &str, rest: &str, kind: ColumnKind) -> bool {
    // The number of fractional digits; the old formats have none.
    let has_digits = |digits: u8| {
        rest.starts_with(&format!("({digits})")) || digits == 0 && !rest.starts_with('(')
    };
    match word {
        "tinyint" => kind == ColumnKind::Tiny,
        "smallint" => kind == ColumnKind::Short,
        "mediumint" => kind == ColumnKind::Int24,
        "int" => kind == ColumnKind::Long,
        "bigint" => kind == ColumnKind::LongLong,
        "float" => kind == ColumnKind::Float,
        "double" => kind == ColumnKind::Double,
        "decimal" => match kind {
            ColumnKind::Decimal { precision, scale } => {
                rest.starts_with(&format!("({precision},{scale})"))
            }
            _ => false,
        },
        "bit" => matches!(kind, ColumnKind::Bit { bits } if rest.starts_with(&format!("({bits})"))),
        "year" => kind == ColumnKind::Year,
        "date" => kind == ColumnKind::Date,
        "time" => match kind {
            ColumnKind::Time { digits } => has_digits(digits),
            kind => kind == ColumnKind::OldTime && has_digits(0),
        },
        "datetime" => match kind {
            ColumnKind::DateTime { digits } => has_digits(digits),
            kind => kind == ColumnKind::OldDateTime && has_digits(0),
        },
        "timestamp" => match kind {
            ColumnKind::Timestamp { digits } => has_digits(digits),
            kind => kind == ColumnKind::OldTimestamp && has_digits(0),
        },
        "enum" => matches!(kind, ColumnKind::Enum { .. }),
        "set" => matches!(kind, ColumnKind::Set { .. }),
        "char" | "binary" | "uuid" | "inet6" | "inet4" => matches!(kind, ColumnKind::Char { .. }),
        "varchar" | "varbinary" => {
            matches!(kind, ColumnKind::Varchar { .. } | ColumnKind::CompressedVarchar { .. })
        }
        "tinytext" | "text" | "mediumtext" | "longtext" | "tinyblob" | "blob" | "mediumblob"
        | "longblob" => {
            matches!(kind, ColumnKind::Blob { .. } | ColumnKind::CompressedBlob { .. })
        }
        _ => true,
    }
}

/// The members in `enum('a','it''s')`.
fn members(declared: &str) -> Option<Arc<[Box<str>]>> {
    let (_, mut rest) = declared.split_once('(')?;
    let mut members = Vec::new();
    loop {
        rest = rest.strip_prefix('\'')?;
        let mut member = String::new();
        loop {
            let (text, after) = rest.split_once('\'')?;
            member.push_str(text);
            match after.strip_prefix('\'') {
                Some(after) => {
                    member.push('\'');
                    rest = after;
                }
                None => break rest = after,
            }
        }
        members.push(member.into_boxed_str());
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => return rest.starts_with(')').then(|| members.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnKind) -> Column {
        let (sign, special) = (Sign::Unknown, Special::None);
        Column { kind, name: None, sign, charset: None, members: None, special }
    }

    fn filled(declared: &str, kind: ColumnKind) -> Result<Column, Refusal> {
        let shape = ColumnShape {
            name: "a".into(),
            declared: declared.into(),
            charset: None,
            collation: None,
            key: String::new(),
            is_generated: false,
        };
        let mut columns = [column(kind)];
        TableShape::new(vec![shape]).fill(&mut columns)?;
        let [column] = columns;
        Ok(column)
    }

    #[test]
    fn missing_names_and_signs_are_filled_in() {
        let id = filled("int(10) unsigned", ColumnKind::Long).expect("it fits");
        assert_eq!((id.sign, id.name.as_deref()), (Sign::Unsigned, Some("a")));
        let uuid = filled("uuid", ColumnKind::Char { max_bytes: 16 }).expect("it fits");
        assert_eq!((uuid.special, uuid.charset), (Special::Uuid, Some(Charset::Binary)));
        let choice = filled("enum('a','it''s','(,)')", ColumnKind::Enum { bytes: 1 });
        let members = choice.expect("it fits").members.expect("members");
        assert_eq!(members.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["a", "it's", "(,)"]);
    }

    #[test]
    fn how_numbers_are_written_is_known() {
        let special = |declared: &str, kind| filled(declared, kind).expect("it fits").special;
        assert_eq!(special("int(5) unsigned zerofill", ColumnKind::Long), Special::Filled(5));
        assert_eq!(special("int(5)", ColumnKind::Long), Special::None);
        let decimal = ColumnKind::Decimal { precision: 8, scale: 2 };
        assert_eq!(special("decimal(8,2) unsigned zerofill", decimal), Special::Filled(6));
        assert_eq!(special("double(10,2)", ColumnKind::Double), Special::Scaled(2));
        assert_eq!(special("double", ColumnKind::Double), Special::None);
        assert_eq!(special("float unsigned zerofill", ColumnKind::Float), Special::FilledFloat);
    }

    #[test]
    fn another_table_does_not_fit() {
        let mismatch = Err(Refusal::SchemaMismatch);
        assert_eq!(filled("bigint(20)", ColumnKind::Long), mismatch);
        assert_eq!(filled("datetime(3)", ColumnKind::DateTime { digits: 0 }), mismatch);
        assert_eq!(filled("datetime(3)", ColumnKind::OldDateTime), mismatch);
        assert_eq!(
            filled("decimal(10,2)", ColumnKind::Decimal { precision: 10, scale: 3 }),
            mismatch
        );
        assert!(
            filled("decimal(10,2) unsigned", ColumnKind::Decimal { precision: 10, scale: 2 })
                .is_ok()
        );
        let mut two = [column(ColumnKind::Long), column(ColumnKind::Long)];
        assert_eq!(TableShape::default().fill(&mut two), Err(Refusal::SchemaMismatch));
    }

    #[test]
    fn names_in_statements_cannot_break_out() {
        assert!(columns_query("a'b", Some("c")).contains("= _utf8mb4 0x612762 AND"));
    }
}
