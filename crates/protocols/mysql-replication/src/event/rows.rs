//! Changed rows: before and after images of the columns that the event contains.
//!
//! Layout: table id, flags, (version 2: extra data of the server), number of columns, a bit for each column
//! present (twice for an update), then the rows. A row has a NULL bit for each column present, then the values.
//! Source: "Rows_event"; for partial JSON, "Partial_update_rows_event".
//!
//! The rows stay encoded until [`Rows::changes`] decodes them one by one. An invalid row ends the iteration,
//! because the start of the next row is unknown.

use crate::column::{COLUMNS_MAX, Column, ColumnKind};
use crate::compressed;
use crate::table::Table;
use crate::value::{Value, read};
use bytes::Bytes;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;

/// The kind of a row change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Rows were inserted.
    Insert,
    /// Rows were updated.
    Update,
    /// Rows were deleted.
    Delete,
}

/// An event with the changed rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// The id of the table.
    pub table_id: u64,
    /// The kind of change.
    pub kind: RowKind,
    /// Whether the after images of JSON columns can be differences.
    has_partial_json: bool,
    is_compressed: bool,
    columns: usize,
    /// Bits of the columns in the only image, or in the before image of an update.
    present: Bytes,
    /// Bits of the columns in the after image of an update.
    present_after: Bytes,
    body: Bytes,
}

impl Rows {
    pub(super) fn read(code: u8, body: &Bytes, table_id_bytes: usize) -> Result<Rows, Refusal> {
        let kind = match code {
            23 | 30 | 166 | 169 => RowKind::Insert,
            24 | 31 | 39 | 167 | 170 => RowKind::Update,
            _ => RowKind::Delete,
        };
        let has_extra = matches!(code, 30..=39 | 169..);
        let (is_compressed, has_partial_json) = (code >= 166, code == 39);
        let mut reader = Reader::new(body);
        let table_id = reader.uint(table_id_bytes)?;
        // The flags.
        reader.take(2)?;
        if has_extra {
            let len = usize::from(reader.u16()?).checked_sub(2).ok_or(Refusal::BadLength)?;
            reader.take(len)?;
        }
        let columns = reader.lenenc()?;
        if columns > COLUMNS_MAX {
            return Err(Refusal::TooManyColumns);
        }
        let columns = columns as usize;
        let mut bitmap = || reader.take(columns.div_ceil(8)).map(|bits| body.slice_ref(bits));
        let present = bitmap()?;
        let present_after = if kind == RowKind::Update { bitmap()? } else { Bytes::new() };
        let body = body.slice_ref(reader.rest());
        Ok(Rows {
            table_id,
            kind,
            has_partial_json,
            is_compressed,
            columns,
            present,
            present_after,
            body,
        })
    }

    /// The memory that the event occupies, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        const ITSELF: usize = 256;
        ITSELF + self.body.len() + 2 * self.present.len()
    }

    /// A copy in its own allocation. The original keeps the whole receive buffer alive.
    #[must_use]
    pub fn detached(self) -> Rows {
        let (first, second) = (self.present.len(), self.present_after.len());
        let own = Bytes::from([&self.present[..], &self.present_after, &self.body].concat());
        let present = own.slice(..first);
        let present_after = own.slice(first..first + second);
        Rows { present, present_after, body: own.slice(first + second..), ..self }
    }

    /// Whether the event has no row data: it only ends a statement, or its images contain no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Decompresses the rows, if they are compressed.
    ///
    /// # Errors
    /// `TooLong` if the result exceeds `max_bytes`; `BadCompression`, `UnknownCompression`, `Truncated`.
    pub fn unpacked(self, max_bytes: usize) -> Result<Rows, Refusal> {
        if !self.is_compressed {
            return Ok(self);
        }
        // An event without rows ends a statement.
        let body = if self.body.is_empty() {
            Bytes::new()
        } else {
            compressed::event(&self.body, max_bytes)?.into()
        };
        Ok(Rows { is_compressed: false, body, ..self })
    }

    /// Iterates over the changed rows. `table` must be the table of this table id. The iteration ends after an
    /// error.
    #[must_use]
    pub fn changes<'a>(&'a self, table: &'a Table) -> RowChanges<'a> {
        let refused = match &table.columns {
            Err(refusal) => Some(*refusal),
            Ok(columns) if columns.len() != self.columns => Some(Refusal::SchemaMismatch),
            Ok(_) => self.is_compressed.then_some(Refusal::UnknownCompression),
        };
        let columns = table.columns.as_deref().unwrap_or_default();
        RowChanges { rows: self, columns, rest: Reader::new(&self.body), refused }
    }
}

/// A row: a value for each column of the table, or `None` if the image lacks the column.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    values: Vec<Option<Value<'a>>>,
}

impl<'a> Row<'a> {
    /// The value of the column with this index; `None` if the image lacks it.
    #[must_use]
    pub fn get(&self, column: usize) -> Option<&Value<'a>> {
        self.values.get(column)?.as_ref()
    }

    /// All values, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> &[Option<Value<'a>>] {
        &self.values
    }
}

/// The images of a changed row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange<'a> {
    /// The row before the change; `None` for an insert. Minimal images contain only its key.
    pub before: Option<Row<'a>>,
    /// The row after the change; `None` for a delete. Minimal images contain only the columns that were
    /// written.
    pub after: Option<Row<'a>>,
}

impl RowChange<'_> {
    /// Whether the column with this index changed. An insert or a delete changes all columns. A column that is
    /// missing in the after image of an update was not written.
    #[must_use]
    pub fn changed(&self, column: usize) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return true;
        };
        match (before.get(column), after.get(column)) {
            (_, None) => false,
            (_, Some(Value::JsonInPart)) => true,
            (Some(before), Some(after)) if before == after => false,
            (_, Some(_)) => true,
        }
    }
}

/// An iterator over the changed rows of an event.
#[derive(Debug, Clone)]
pub struct RowChanges<'a> {
    rows: &'a Rows,
    columns: &'a [Column],
    rest: Reader<'a>,
    refused: Option<Refusal>,
}

impl<'a> Iterator for RowChanges<'a> {
    type Item = Result<RowChange<'a>, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let change = match self.refused {
            Some(refusal) => Err(refusal),
            None => self.change(),
        };
        if change.is_err() {
            self.rest.take_rest();
        }
        Some(change)
    }
}

impl<'a> RowChanges<'a> {
    fn change(&mut self) -> Result<RowChange<'a>, Refusal> {
        let was_left = self.rest.rest().len();
        let first = self.image(&self.rows.present, false)?;
        let change = match self.rows.kind {
            RowKind::Insert => RowChange { before: None, after: Some(first) },
            RowKind::Delete => RowChange { before: Some(first), after: None },
            RowKind::Update => {
                let after = self.image(&self.rows.present_after, self.rows.has_partial_json)?;
                RowChange { before: Some(first), after: Some(after) }
            }
        };
        // A row of zero bytes would never end the iteration.
        if self.rest.rest().len() == was_left { Err(Refusal::BadLength) } else { Ok(change) }
    }

    fn image(&mut self, present: &[u8], has_partial_json: bool) -> Result<Row<'a>, Refusal> {
        let mut partial =
            if has_partial_json { self.partial()? } else { Bits { bytes: &[], at: 0 } };
        let count = (0..self.columns.len()).filter(|at| bit(present, *at)).count();
        let mut nulls = Bits { bytes: self.rest.take(count.div_ceil(8))?, at: 0 };
        let mut values = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            // There is a bit for every JSON column, whether or not the image contains it.
            let is_json = matches!(column.kind, ColumnKind::Json { .. });
            let in_part = is_json && partial.next();
            if !bit(present, at) {
                values.push(None);
            } else if nulls.next() {
                values.push(Some(Value::Null));
            } else {
                let raw = read::raw(column.kind, &mut self.rest)?;
                let value = if in_part { Value::JsonInPart } else { read::meaning(column, raw)? };
                values.push(Some(value));
            }
        }
        Ok(Row { values })
    }

    /// Decodes the options of the row and, for partial JSON, a bit for each JSON column.
    fn partial(&mut self) -> Result<Bits<'a>, Refusal> {
        match self.rest.lenenc()? {
            0 => Ok(Bits { bytes: &[], at: 0 }),
            1 => {
                let is_json = |column: &&Column| matches!(column.kind, ColumnKind::Json { .. });
                let count = self.columns.iter().filter(is_json).count();
                Ok(Bits { bytes: self.rest.take(count.div_ceil(8))?, at: 0 })
            }
            _ => Err(Refusal::BadValue),
        }
    }
}

/// Bits in order, the lowest of each byte first. Bits beyond the end are 0.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn next(&mut self) -> bool {
        self.at += 1;
        bit(self.bytes, self.at - 1)
    }
}

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}
