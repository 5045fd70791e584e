//! The reads of a statement as bytes, for another process.
//!
//! Integers are little-endian; a text is preceded by its length in four bytes. The constants come first, then the
//! form, so that equal forms are equal bytes and are shared again.
//!
//! Invariants: what [`ReadsLoader::read`] returns is what [`Reads::save`] was given, if the tables are the same
//! ([`SqlSchema::print`]). No bytes are a panic, in reading or in use of what was read: each table, column and constant
//! that is named exists. Counts, depths and lengths have the same limits in both directions. Not here: files.

mod constants;

use crate::condition::{Atom, Condition, MomentPart, Operand, RangeEnd, Slot, Test};
use crate::footprint::{
    Block, FirstRows, Partner, Position, Reads, ReadsForm, RowOrder, TableReads,
};
use crate::schema::{Columns, SqlSchema, SqlTable, TableId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The maximum length of a statement's reads, in bytes.
const BYTES_MAX: usize = 2 << 20;
/// The maximum depth of a condition.
const DEPTH_MAX: usize = 100;
/// The maximum number of tables of a statement, in all blocks together.
const TABLES_MAX: usize = 2_000;
/// The maximum number of forms that are kept to be shared.
const FORMS_MAX: usize = 4_096;

/// Bytes that are no reads of these tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidReads;

impl fmt::Display for InvalidReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are no reads of a statement in these tables")
    }
}

impl std::error::Error for InvalidReads {}

/// Appends a constant as bytes: equal constants are equal bytes.
pub(crate) fn put_operand(out: &mut Vec<u8>, operand: &Operand) {
    constants::write(out, operand);
}

impl Reads {
    /// The reads as bytes. `None` if they exceed a limit, which no usual statement does.
    #[must_use]
    pub fn save(&self) -> Option<Vec<u8>> {
        let tables: usize = self.form.blocks.iter().map(|block| block.tables.len()).sum();
        if tables > TABLES_MAX {
            return None;
        }
        let mut out = Vec::new();
        count(&mut out, self.operands.len());
        self.operands.iter().for_each(|operand| constants::write(&mut out, operand));
        write_form(&mut out, &self.form)?;
        (out.len() <= BYTES_MAX).then_some(out)
    }
}

/// Reads what [`Reads::save`] has written.
#[derive(Debug)]
pub struct ReadsLoader {
    schema: Arc<SqlSchema>,
    /// Each form by its bytes, with the number of constants that it needs.
    forms: HashMap<Box<[u8]>, (Arc<ReadsForm>, usize)>,
}

impl ReadsLoader {
    /// A loader for statements of these tables.
    #[must_use]
    pub fn new(schema: Arc<SqlSchema>) -> ReadsLoader {
        ReadsLoader { schema, forms: HashMap::new() }
    }

    /// The reads.
    ///
    /// # Errors
    /// [`InvalidReads`] if [`Reads::save`] has not written these bytes, or for other tables.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Reads, InvalidReads> {
        if bytes.len() > BYTES_MAX {
            return Err(InvalidReads);
        }
        let mut rest = Rest(bytes);
        let operands = rest.many(constants::read)?;
        let (form, slots) = self.form(rest.0)?;
        if slots > operands.len() {
            return Err(InvalidReads);
        }
        Ok(Reads { form, operands: operands.into() })
    }

    fn form(&mut self, bytes: &[u8]) -> Result<(Arc<ReadsForm>, usize), InvalidReads> {
        if let Some(known) = self.forms.get(bytes) {
            return Ok(known.clone());
        }
        let mut reader = FormReader { schema: &self.schema, rest: Rest(bytes), slots: 0 };
        let form = Arc::new(reader.form()?);
        if !reader.rest.0.is_empty() {
            return Err(InvalidReads);
        }
        let slots = reader.slots;
        if self.forms.len() >= FORMS_MAX {
            self.forms.clear();
        }
        self.forms.insert(bytes.into(), (form.clone(), slots));
        Ok((form, slots))
    }
}

fn write_form(out: &mut Vec<u8>, form: &ReadsForm) -> Option<()> {
    out.push(u8::from(form.uses_clock) | u8::from(form.is_random) << 1);
    count(out, form.blocks.len());
    for block in &form.blocks {
        count(out, block.tables.len());
        for reads in &block.tables {
            out.extend_from_slice(&reads.table.0.to_le_bytes());
            write_condition(out, &reads.condition, 0)?;
            out.extend_from_slice(&reads.tested.bits().to_le_bytes());
            out.extend_from_slice(&reads.used.bits().to_le_bytes());
            count(out, reads.partners.len());
            for partner in &reads.partners {
                let Partner { column, other: Position { block, table }, other_column } = partner;
                out.extend_from_slice(&column.to_le_bytes());
                count(out, *block);
                count(out, *table);
                out.extend_from_slice(&other_column.to_le_bytes());
            }
            write_first(out, reads.first);
        }
    }
    Some(())
}

fn write_first(out: &mut Vec<u8>, first: Option<FirstRows>) {
    let Some(FirstRows { column, order, count }) = first else { return out.push(0) };
    out.push(match order {
        RowOrder::Ascending => 1,
        RowOrder::Descending => 2,
    });
    out.extend_from_slice(&column.to_le_bytes());
    out.push(count);
}

fn write_condition(out: &mut Vec<u8>, condition: &Condition, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    let (kind, inner): (u8, &[Condition]) = match condition {
        Condition::Always => (0, &[]),
        Condition::Never => (1, &[]),
        Condition::Atom(atom) => {
            out.push(2);
            write_atom(out, atom);
            return Some(());
        }
        Condition::All(all) => (3, all),
        Condition::Any(any) => (4, any),
    };
    out.push(kind);
    if kind > 2 {
        count(out, inner.len());
    }
    inner.iter().try_for_each(|condition| write_condition(out, condition, depth + 1))
}

fn write_atom(out: &mut Vec<u8>, atom: &Atom) {
    out.extend_from_slice(&atom.column.to_le_bytes());
    out.push(match atom.part {
        None => 0,
        Some(MomentPart::Year) => 1,
        Some(MomentPart::Month) => 2,
        Some(MomentPart::Day) => 3,
    });
    out.push(u8::from(atom.is_negated));
    match &atom.test {
        Test::In(slot) => {
            out.push(0);
            out.extend_from_slice(&slot.0.to_le_bytes());
        }
        Test::Range { low, high } => {
            out.push(1);
            for end in [low, high] {
                let kind = end.as_ref().map_or(0, |end| 1 + u8::from(end.is_included));
                out.push(kind);
                end.iter().for_each(|end| out.extend_from_slice(&end.value.0.to_le_bytes()));
            }
        }
        Test::Like(slot) => {
            out.push(2);
            out.extend_from_slice(&slot.0.to_le_bytes());
        }
        Test::Null => out.push(3),
    }
}

/// Reads a form, and counts the constants that it needs.
struct FormReader<'f> {
    schema: &'f SqlSchema,
    rest: Rest<'f>,
    slots: usize,
}

impl FormReader<'_> {
    fn form(&mut self) -> Result<ReadsForm, InvalidReads> {
        let flags = self.rest.u8()?;
        if flags > 0b11 {
            return Err(InvalidReads);
        }
        let (mut blocks, mut tables) = (Vec::new(), 0);
        for _ in 0..self.rest.count(TABLES_MAX)? {
            let own = self.rest.count(TABLES_MAX)?;
            tables += own;
            if tables > TABLES_MAX {
                return Err(InvalidReads);
            }
            let all = (0..own).map(|_| self.table()).collect::<Result<_, _>>()?;
            blocks.push(Block { tables: all });
        }
        let form = ReadsForm { blocks, uses_clock: flags & 1 != 0, is_random: flags & 0b10 != 0 };
        if self.has_partners(&form) { Ok(form) } else { Err(InvalidReads) }
    }

    fn table(&mut self) -> Result<TableReads, InvalidReads> {
        let table = TableId(self.rest.u32()?);
        let columns = self.schema.find(table).ok_or(InvalidReads)?;
        let condition = self.condition(columns, 0)?;
        let (tested, used) = (self.columns()?, self.columns()?);
        let partners = self.rest.many(|rest| {
            let column = rest.u16()?;
            let other = Position { block: rest.count(TABLES_MAX)?, table: rest.count(TABLES_MAX)? };
            Ok(Partner { column, other, other_column: rest.u16()? })
        })?;
        let first = self.first(columns)?;
        Ok(TableReads { table, condition, tested, used, partners, first })
    }

    fn first(&mut self, table: &SqlTable) -> Result<Option<FirstRows>, InvalidReads> {
        let order = match self.rest.u8()? {
            0 => return Ok(None),
            1 => RowOrder::Ascending,
            2 => RowOrder::Descending,
            _ => return Err(InvalidReads),
        };
        let (column, count) = (self.rest.u16()?, self.rest.u8()?);
        if usize::from(column) >= table.columns.len() || count == 0 {
            return Err(InvalidReads);
        }
        Ok(Some(FirstRows { column, order, count }))
    }

    /// Whether all columns of all partners exist.
    fn has_partners(&self, form: &ReadsForm) -> bool {
        let has = |table: TableId, column: u16| {
            self.schema.find(table).is_some_and(|own| usize::from(column) < own.columns.len())
        };
        let mut all = form.blocks.iter().flat_map(|block| &block.tables);
        all.all(|own| {
            own.partners.iter().all(|partner| {
                let block = form.blocks.get(partner.other.block);
                let other = block.and_then(|block| block.tables.get(partner.other.table));
                has(own.table, partner.column)
                    && other.is_some_and(|other| has(other.table, partner.other_column))
            })
        })
    }

    fn columns(&mut self) -> Result<Columns, InvalidReads> {
        self.rest.array().map(|bits| Columns::of_bits(u128::from_le_bytes(bits)))
    }

    fn condition(&mut self, table: &SqlTable, depth: usize) -> Result<Condition, InvalidReads> {
        if depth > DEPTH_MAX {
            return Err(InvalidReads);
        }
        let kind = self.rest.u8()?;
        match kind {
            0 => return Ok(Condition::Always),
            1 => return Ok(Condition::Never),
            2 => return self.atom(table).map(Condition::Atom),
            3 | 4 => {}
            _ => return Err(InvalidReads),
        }
        let mut inner = Vec::new();
        for _ in 0..self.rest.count(BYTES_MAX)? {
            inner.push(self.condition(table, depth + 1)?);
        }
        Ok(if kind == 3 { Condition::All(inner) } else { Condition::Any(inner) })
    }

    fn atom(&mut self, table: &SqlTable) -> Result<Atom, InvalidReads> {
        let column = self.rest.u16()?;
        if usize::from(column) >= table.columns.len() {
            return Err(InvalidReads);
        }
        let part = match self.rest.u8()? {
            0 => None,
            1 => Some(MomentPart::Year),
            2 => Some(MomentPart::Month),
            3 => Some(MomentPart::Day),
            _ => return Err(InvalidReads),
        };
        let is_negated = self.rest.flag()?;
        let test = match self.rest.u8()? {
            0 => Test::In(self.slot()?),
            1 => Test::Range { low: self.end()?, high: self.end()? },
            2 => Test::Like(self.slot()?),
            3 => Test::Null,
            _ => return Err(InvalidReads),
        };
        Ok(Atom { column, part, test, is_negated })
    }

    fn end(&mut self) -> Result<Option<RangeEnd>, InvalidReads> {
        let is_included = match self.rest.u8()? {
            0 => return Ok(None),
            1 => false,
            2 => true,
            _ => return Err(InvalidReads),
        };
        Ok(Some(RangeEnd { value: self.slot()?, is_included }))
    }

    fn slot(&mut self) -> Result<Slot, InvalidReads> {
        let slot = self.rest.u16()?;
        self.slots = self.slots.max(usize::from(slot) + 1);
        Ok(Slot(slot))
    }
}

fn count(out: &mut Vec<u8>, count: usize) {
    // No reader accepts the maximum.
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

/// The bytes that are still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], InvalidReads> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(InvalidReads)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidReads> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(InvalidReads)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, InvalidReads> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, InvalidReads> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, InvalidReads> {
        self.array().map(u32::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, InvalidReads> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(InvalidReads),
        }
    }

    fn count(&mut self, max: usize) -> Result<usize, InvalidReads> {
        let count = self.u32()? as usize;
        if count > max { Err(InvalidReads) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<&'a str, InvalidReads> {
        let length = self.count(BYTES_MAX)?;
        str::from_utf8(self.take(length)?).map_err(|_| InvalidReads)
    }

    /// Reads a count, and as many elements. Each takes at least a byte, so memory follows the length.
    fn many<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, InvalidReads>,
    ) -> Result<Vec<T>, InvalidReads> {
        let mut all = Vec::new();
        for _ in 0..self.count(BYTES_MAX)? {
            all.push(read(self)?);
        }
        Ok(all)
    }
}
