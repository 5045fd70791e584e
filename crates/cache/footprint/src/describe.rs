//! Footprints and touches in words, for people who ask why a page was purged.
//!
//! `wp_posts where ID in (5, 7) and post_status = 'publish' (post_title, post_status)`. Texts are bounded,
//! and cut with `…`. Not here: the statement, and the page.

use crate::compare::Constant;
use crate::condition::{Atom, Condition, MomentPart, Operand, RangeEnd, Slot, Test};
use crate::footprint::{FirstRows, Footprint, FootprintTouch, RowOrder};
use crate::row::{RowEvent, SqlValue};
use crate::schema::{ColumnKey, Columns, SqlSchema, SqlTable};
use std::fmt::{self, Write};

/// The maximum length of a description, in bytes.
const TEXT_BYTES_MAX: usize = 400;
/// The maximum number of constants or columns in a list.
const LISTED_MAX: usize = 8;

impl Footprint<'_> {
    /// The footprint in words: the table, the condition, and the columns that the result depends on.
    #[must_use]
    pub fn describe(&self, schema: &SqlSchema) -> String {
        let table = schema.table(self.table);
        let mut text = Text(String::new());
        // A text that is full says so by its end.
        let _ = Description { footprint: self, table }.write(&mut text);
        text.0
    }
}

impl FootprintTouch {
    /// The columns whose change touches the footprint, in words.
    #[must_use]
    pub fn describe(self, schema: &SqlSchema, footprint: &Footprint<'_>) -> String {
        let (FootprintTouch::Changed(columns) | FootprintTouch::Moved(columns)) = self;
        let mut text = Text(String::new());
        let _ = write_columns(&mut text, schema.table(footprint.table), columns);
        text.0
    }
}

/// A changed row in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowText {
    /// The row, by the values of its primary key: `row 5 of wp_posts`, `new row 5 of wp_posts`.
    pub row: String,
    /// The table and the changed columns: `wp_posts (post_title)`; the table alone if the row is new or gone.
    pub columns: String,
}

impl RowEvent<'_> {
    /// The change in words.
    #[must_use]
    pub fn describe(&self, schema: &SqlSchema) -> RowText {
        let table = schema.table(self.table);
        let (mut row, mut columns) = (Text(String::new()), Text(String::new()));
        // A text that is full says so by its end.
        let _ = self.write_row(&mut row, table);
        let _ = self.write_changed(&mut columns, table);
        RowText { row: row.0, columns: columns.0 }
    }

    fn write_row(&self, text: &mut Text, table: &SqlTable) -> fmt::Result {
        text.write_str(match (&self.before, &self.after) {
            (None, _) => "new row",
            (Some(_), None) => "deleted row",
            (Some(_), Some(_)) => "row",
        })?;
        let keys = (0_u16..).zip(&table.columns).filter(|(_, own)| own.key == ColumnKey::Primary);
        let image = self.images().last();
        for (number, (at, _)) in keys.enumerate() {
            let value = match image.map(|image| image.get(at)) {
                Some(SqlValue::Text(value)) => value,
                Some(SqlValue::Null | SqlValue::Unknown) | None => "?",
            };
            write!(text, "{}{value}", if number > 0 { ", " } else { " " })?;
        }
        write!(text, " of {}", table.name)
    }

    fn write_changed(&self, text: &mut Text, table: &SqlTable) -> fmt::Result {
        text.write_str(&table.name)?;
        if self.before.is_none() || self.after.is_none() {
            return Ok(());
        }
        text.write_str(" (")?;
        write_columns(text, table, self.changed)?;
        text.write_str(")")
    }
}

/// A text of a bounded length.
struct Text(String);

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = TEXT_BYTES_MAX.saturating_sub(self.0.len());
        if part.len() > room {
            self.0.push_str(&part[..part.floor_char_boundary(room)]);
            self.0.push('…');
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

struct Description<'d> {
    footprint: &'d Footprint<'d>,
    table: &'d SqlTable,
}

impl Description<'_> {
    fn write(&self, text: &mut Text) -> fmt::Result {
        text.write_str(&self.table.name)?;
        match &self.footprint.reads.condition {
            Condition::Always => {}
            Condition::Never => text.write_str(" (its definition)")?,
            condition => {
                text.write_str(" where ")?;
                self.condition(text, condition)?;
            }
        }
        if let Some(FirstRows { column, order, count }) = self.footprint.reads.first {
            let column = &self.table.columns[usize::from(column)].name;
            let order = match order {
                RowOrder::Ascending => "",
                RowOrder::Descending => " descending",
            };
            write!(text, ", the first {count} by {column}{order}")?;
        }
        match self.footprint.reads.used {
            Columns::NONE => Ok(()),
            used => {
                text.write_str(" (")?;
                write_columns(text, self.table, used)?;
                text.write_str(")")
            }
        }
    }

    fn condition(&self, text: &mut Text, condition: &Condition) -> fmt::Result {
        match condition {
            Condition::Always => text.write_str("any row"),
            Condition::Never => text.write_str("no row"),
            Condition::Atom(atom) => self.atom(text, atom),
            Condition::All(all) => self.list(text, all, " and "),
            Condition::Any(any) => {
                text.write_str("(")?;
                self.list(text, any, " or ")?;
                text.write_str(")")
            }
        }
    }

    fn list(&self, text: &mut Text, conditions: &[Condition], between: &str) -> fmt::Result {
        for (at, condition) in conditions.iter().enumerate() {
            if at > 0 {
                text.write_str(between)?;
            }
            self.condition(text, condition)?;
        }
        Ok(())
    }

    fn atom(&self, text: &mut Text, atom: &Atom) -> fmt::Result {
        let column = &self.table.columns[usize::from(atom.column)].name;
        let column = match atom.part {
            None => column.clone(),
            Some(MomentPart::Year) => format!("year({column})"),
            Some(MomentPart::Month) => format!("month({column})"),
            Some(MomentPart::Day) => format!("day({column})"),
        };
        let not = if atom.is_negated { "not " } else { "" };
        match &atom.test {
            Test::In(slot) => self.constants(text, &column, *slot, atom.is_negated),
            Test::Like(_) => write!(text, "{column} {not}like a pattern"),
            Test::Null => write!(text, "{column} is {not}null"),
            Test::Range { low, high } => {
                if let Some(low) = low {
                    self.end(text, &column, low, '>')?;
                }
                if low.is_some() && high.is_some() {
                    text.write_str(" and ")?;
                }
                high.as_ref().map_or(Ok(()), |high| self.end(text, &column, high, '<'))
            }
        }
    }

    fn end(&self, text: &mut Text, column: &str, end: &RangeEnd, sign: char) -> fmt::Result {
        let equal = if end.is_included { "=" } else { "" };
        match end.value.of(self.footprint.operands) {
            Operand::One(value) => write!(text, "{column} {sign}{equal} {value}"),
            Operand::Integers(_) | Operand::Constants(_) | Operand::Pattern(_) => Ok(()),
        }
    }

    fn constants(
        &self,
        text: &mut Text,
        column: &str,
        slot: Slot,
        is_negated: bool,
    ) -> fmt::Result {
        let not = if is_negated { "not " } else { "" };
        match slot.of(self.footprint.operands) {
            Operand::One(value) if is_negated => write!(text, "{column} <> {value}"),
            Operand::One(value) => write!(text, "{column} = {value}"),
            Operand::Integers(values) => {
                write!(text, "{column} {not}in (")?;
                write_list(text, values.iter())
            }
            Operand::Constants(values) => {
                write!(text, "{column} {not}in (")?;
                write_list(text, values.iter())
            }
            Operand::Pattern(_) => Ok(()),
        }
    }
}

/// The values of a list, and its closing parenthesis.
fn write_list(text: &mut Text, values: impl ExactSizeIterator<Item: fmt::Display>) -> fmt::Result {
    let more = values.len().saturating_sub(LISTED_MAX);
    for (at, value) in values.take(LISTED_MAX).enumerate() {
        write!(text, "{}{value}", if at > 0 { ", " } else { "" })?;
    }
    if more > 0 { write!(text, ", … {more} more)") } else { text.write_str(")") }
}

fn write_columns(text: &mut Text, table: &SqlTable, columns: Columns) -> fmt::Result {
    if columns == Columns::ALL {
        return text.write_str("all columns");
    }
    let names = table.columns.iter().enumerate().filter(|(at, _)| columns.contains(*at));
    for (at, (_, column)) in names.enumerate() {
        write!(text, "{}{}", if at > 0 { ", " } else { "" }, column.name)?;
    }
    Ok(())
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Integer(number) => number.fmt(f),
            Constant::Number(number) => number.fmt(f),
            Constant::Moment(text) => write!(f, "'{}'", text.trim_end_matches(".000000")),
            Constant::Text { text, .. } | Constant::Folded(text) | Constant::Bytes(text) => {
                write!(f, "'{text}'")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::{SqlColumn, SqlSchema};
    use crate::{RowEvent, SqlMode, SqlRow, SqlValue, StatementReader};
    use std::sync::Arc;

    fn schema() -> Arc<SqlSchema> {
        let mut schema = SqlSchema::new("site");
        let text =
            |name: &str| SqlColumn::new(name, "varchar(20)", Some("utf8mb4_unicode_520_ci"), "");
        let columns = vec![
            SqlColumn::new("ID", "bigint(20)", None, "PRI"),
            text("post_status"),
            text("post_title"),
            SqlColumn::new("post_date", "datetime", None, ""),
        ];
        schema.add("wp_posts", columns);
        let posts = schema.table_id("wp_posts").expect("added");
        schema.set_logged_first(posts);
        Arc::new(schema)
    }

    #[test]
    fn a_footprint_is_described_in_words() {
        let schema = schema();
        let mut reader = StatementReader::new(schema.clone());
        for (statement, expected) in [
            ("SELECT * FROM wp_posts", "wp_posts (all columns)"),
            (
                "SELECT post_title FROM wp_posts WHERE ID IN (7, 5) AND post_status = 'publish'",
                "wp_posts where ID in (5, 7) and post_status = 'publish' (post_title)",
            ),
            (
                "SELECT COUNT(*) FROM wp_posts WHERE post_date <= '2026-01-02' OR post_title IS NULL",
                "wp_posts where (post_date <= '2026-01-02 00:00:00' or post_title is null)",
            ),
            (
                "SELECT ID FROM wp_posts WHERE YEAR(post_date) = 2026 AND post_title NOT LIKE '%a%'",
                "wp_posts where year(post_date) = 2026 and post_title not like a pattern (ID)",
            ),
            (
                "SELECT ID FROM wp_posts WHERE ID IN (1,2,3,4,5,6,7,8,9,10)",
                "wp_posts where ID in (1, 2, 3, 4, 5, 6, 7, 8, … 2 more) (ID)",
            ),
            (
                "SELECT ID FROM wp_posts WHERE post_date < '2026-01-02' ORDER BY post_date DESC LIMIT 1",
                "wp_posts where post_date < '2026-01-02 00:00:00', the first 1 by post_date descending \
                 (ID, post_date)",
            ),
            ("DESCRIBE wp_posts", "wp_posts (its definition)"),
        ] {
            let reads = reader.read(statement.as_bytes(), SqlMode::default()).expect("known");
            let footprint = reads.footprints().next().expect("one table");
            assert_eq!(footprint.describe(&schema), expected);
        }
        let long = format!("SELECT ID FROM wp_posts WHERE post_title = '{}'", "é".repeat(1000));
        let reads = reader.read(long.as_bytes(), SqlMode::default()).expect("known");
        let text = reads.footprints().next().expect("one table").describe(&schema);
        assert!(text.len() < 410 && text.ends_with('…'), "{text}");
    }

    #[test]
    fn a_touch_names_the_columns_that_changed() {
        let schema = schema();
        let mut reader = StatementReader::new(schema.clone());
        let row = |status: &'static str, title: &'static str| {
            SqlRow::new(
                ["5", status, title, "2026-01-02 00:00:00"]
                    .map(|value| SqlValue::Text(value.into()))
                    .to_vec(),
            )
        };
        let statement = "SELECT post_title FROM wp_posts WHERE post_status = 'publish'";
        let reads = reader.read(statement.as_bytes(), SqlMode::default()).expect("known");
        let footprint = reads.footprints().next().expect("one table");
        for (before, after, expected) in [
            (row("publish", "a"), row("publish", "b"), Some("post_title")),
            (row("draft", "a"), row("publish", "a"), Some("post_status")),
            (row("publish", "a"), row("PUBLISH", "a"), None),
            (row("draft", "a"), row("draft", "b"), None),
        ] {
            let event = RowEvent::new(&schema, footprint.table, Some(before), Some(after));
            let touch = footprint.touch(&event).map(|touch| touch.describe(&schema, &footprint));
            assert_eq!(touch.as_deref(), expected);
        }
    }
}
