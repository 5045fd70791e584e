//! The tables of a database, as far as footprints need them: columns, their kinds, and their keys.
//!
//! Names of columns are compared without regard to case. Two tables whose names differ in case alone are
//! each found by their own name. Invariant: a kind whose comparison is not known exactly is
//! [`SqlColumnKind::Opaque`], and nothing is excluded by such a column. Not here: the queries that read the
//! schema.

use crate::unknown_reads::UnknownReads;
use std::collections::{BTreeMap, HashMap};
use xxhash_rust::xxh3::xxh3_128;

/// The number of columns that are distinguished; all later columns of a table count as one.
const COLUMNS_MAX: usize = 128;

/// A table of a [`SqlSchema`], by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub(crate) u32);

/// The tables of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqlSchema {
    /// In lower case.
    database: String,
    tables: Vec<SqlTable>,
    by_name: HashMap<String, TableId>,
    /// The first table of each name in lower case.
    by_lower_case: HashMap<String, TableId>,
    /// The names of views, and of tables whose rows can change without an event; each with the reason.
    untracked: BTreeMap<String, String>,
    pub(crate) foreign_keys: Vec<ForeignKeyAction>,
}

/// A foreign key by which the database changes rows of the child when a row of the parent changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyAction {
    /// The table of the rows that the database changes.
    pub child: TableId,
    /// The columns of the key in the child.
    pub columns: Vec<u16>,
    /// The table whose change causes it.
    pub parent: TableId,
    /// The columns of the parent that the key refers to, in the same order.
    pub parent_columns: Vec<u16>,
    /// The action when the parent's row is deleted.
    pub on_delete: ChildAction,
    /// The action when the referenced columns change.
    pub on_update: ChildAction,
}

/// The action of a foreign key on the rows of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildAction {
    /// `RESTRICT`, `NO ACTION`: the database refuses the change of the parent.
    None,
    /// `CASCADE`: they are deleted, or get the new values.
    Follow,
    /// `SET NULL`: the columns of the key become NULL.
    SetNull,
}

/// A table and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlTable {
    /// The name as the database writes it.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<SqlColumn>,
    /// Whether the database logs each change before other connections see it, as it does for tables of InnoDB.
    pub is_logged_first: bool,
    by_name: HashMap<String, u16>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlColumn {
    /// The name as the database writes it.
    pub name: String,
    /// How its values are compared.
    pub kind: SqlColumnKind,
    /// The collation by which its values are compared; `None` for other kinds than text.
    pub collation: Option<String>,
    /// The index that the column begins or belongs to.
    pub key: ColumnKey,
    /// Whether the database computes its value from other columns.
    pub is_generated: bool,
}

/// How the values of a column are compared with constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlColumnKind {
    /// A whole number.
    Integer,
    /// A number with a fraction: compared with a tolerance.
    Number,
    /// A date, or a date and time, without a time zone.
    Moment,
    /// Text with a usual collation.
    Text {
        /// Whether `a` and `A` differ.
        is_case_sensitive: bool,
    },
    /// Bytes, compared as they are.
    Bytes,
    /// Anything else: every value may be equal to every constant.
    Opaque,
}

/// The best index that a column belongs to, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnKey {
    /// The primary key.
    Primary,
    /// A unique index.
    Unique,
    /// Another index.
    Index,
    /// No index.
    None,
}

/// A set of columns of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Columns(u128);

impl Columns {
    /// All columns of a table.
    pub const ALL: Columns = Columns(u128::MAX);
    /// A set without a column.
    pub const NONE: Columns = Columns(0);

    /// Adds the column at this position.
    pub fn insert(&mut self, column: usize) {
        self.0 |= 1 << column.min(COLUMNS_MAX - 1);
    }

    /// Adds the columns of another set.
    pub fn extend(&mut self, other: Columns) {
        self.0 |= other.0;
    }

    /// Whether the column is in the set.
    #[must_use]
    pub fn contains(self, column: usize) -> bool {
        self.0 & 1 << column.min(COLUMNS_MAX - 1) != 0
    }

    /// The columns as bits, the first as the lowest.
    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    /// The set with these bits.
    pub(crate) fn of_bits(bits: u128) -> Columns {
        Columns(bits)
    }

    /// The columns that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Columns) -> Columns {
        Columns(self.0 & other.0)
    }

    /// The columns that are not in the other set.
    #[must_use]
    pub fn without(self, other: Columns) -> Columns {
        Columns(self.0 & !other.0)
    }

    /// Whether the set has no column.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl SqlColumnKind {
    /// The kind of a column from `information_schema.COLUMNS`: its `DATA_TYPE` or `COLUMN_TYPE`, and its
    /// `COLLATION_NAME`.
    #[must_use]
    pub fn of(data_type: &str, collation: Option<&str>) -> SqlColumnKind {
        let name = data_type.split(|letter: char| !letter.is_ascii_alphanumeric()).next();
        match name.unwrap_or_default().to_ascii_lowercase().as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" => {
                SqlColumnKind::Integer
            }
            // A `float` is written with six digits, which say less than is stored.
            "decimal" | "numeric" | "double" | "real" => SqlColumnKind::Number,
            "date" | "datetime" => SqlColumnKind::Moment,
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
                SqlColumnKind::of_text(collation)
            }
            "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => SqlColumnKind::Bytes,
            _ => SqlColumnKind::Opaque,
        }
    }

    fn of_text(collation: Option<&str>) -> SqlColumnKind {
        match collation {
            Some(name) if change_feed::text::is_usual(name) => {
                SqlColumnKind::Text { is_case_sensitive: !name.ends_with("_ci") }
            }
            _ => SqlColumnKind::Opaque,
        }
    }
}

impl SqlColumn {
    /// A column from a row of `information_schema.COLUMNS`: `COLUMN_NAME`, `DATA_TYPE`, `COLLATION_NAME`
    /// and `COLUMN_KEY` (`PRI`, `UNI`, `MUL` or empty).
    #[must_use]
    pub fn new(name: &str, data_type: &str, collation: Option<&str>, key: &str) -> SqlColumn {
        let key = match key {
            "PRI" => ColumnKey::Primary,
            "UNI" => ColumnKey::Unique,
            "MUL" => ColumnKey::Index,
            _ => ColumnKey::None,
        };
        let kind = SqlColumnKind::of(data_type, collation);
        let collation = collation.map(str::to_owned);
        SqlColumn { name: name.to_owned(), kind, collation, key, is_generated: false }
    }

    /// This column, with a value that the database computes.
    #[must_use]
    pub fn generated(self) -> SqlColumn {
        SqlColumn { kind: SqlColumnKind::Opaque, is_generated: true, ..self }
    }
}

impl SqlSchema {
    /// A database without tables.
    #[must_use]
    pub fn new(database: &str) -> SqlSchema {
        SqlSchema { database: database.to_lowercase(), ..SqlSchema::default() }
    }

    /// Adds a table with its columns in order. A table of the same name is replaced.
    pub fn add(&mut self, name: &str, columns: Vec<SqlColumn>) {
        let by_name = columns.iter().zip(0..).map(|(column, at)| (column.name.to_lowercase(), at));
        let by_name = by_name.collect();
        let table = SqlTable { name: name.to_owned(), columns, is_logged_first: false, by_name };
        match self.by_name.get(name) {
            Some(id) => self.tables[id.0 as usize] = table,
            None => {
                let id = TableId(u32::try_from(self.tables.len()).unwrap_or(u32::MAX));
                self.by_name.insert(name.to_owned(), id);
                self.by_lower_case.entry(name.to_lowercase()).or_insert(id);
                self.tables.push(table);
            }
        }
    }

    /// Records that the database logs each change of a table before other connections see it. Only rows of such tables
    /// are looked up as neighbours ([`crate::NearestLookup`]).
    pub fn set_logged_first(&mut self, table: TableId) {
        if let Some(table) = self.tables.get_mut(table.0 as usize) {
            table.is_logged_first = true;
        }
    }

    /// Adds the name of a view, or of a table whose rows can change without an event of the change stream. A
    /// statement that names it is refused, with the reason `why`.
    pub fn add_untracked(&mut self, name: &str, why: &str) {
        self.untracked.insert(name.to_owned(), why.to_owned());
    }

    /// The names that statements are refused for, each with the reason.
    pub fn untracked(&self) -> impl Iterator<Item = (&str, &str)> {
        self.untracked.iter().map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// The reason to refuse a statement that names a table which [`SqlSchema::table_id`] does not find.
    pub(crate) fn unknown_table(&self, name: &str) -> UnknownReads {
        let found = self.untracked.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        match found {
            Some((own, why)) => UnknownReads::Untracked(own.clone(), why.clone()),
            None => UnknownReads::Table(name.to_owned()),
        }
    }

    /// Adds a foreign key with an action. The database's change stream does not have the rows that it
    /// changes.
    pub fn add_foreign_key(&mut self, key: ForeignKeyAction) {
        self.foreign_keys.push(key);
    }

    /// The table with this name, or else with this name in another case: servers differ in whether it counts.
    #[must_use]
    pub fn table_id(&self, name: &str) -> Option<TableId> {
        if self.untracked.contains_key(name) {
            return None;
        }
        let exact = self.by_name.get(name);
        exact.or_else(|| self.by_lower_case.get(&name.to_lowercase())).copied()
    }

    /// The table with this id.
    ///
    /// # Panics
    /// If the id is of another schema with more tables.
    #[must_use]
    pub fn table(&self, id: TableId) -> &SqlTable {
        &self.tables[id.0 as usize]
    }

    /// The table with this id, if there is one.
    pub(crate) fn find(&self, id: TableId) -> Option<&SqlTable> {
        self.tables.get(id.0 as usize)
    }

    /// The ids of all tables.
    pub fn table_ids(&self) -> impl Iterator<Item = TableId> + use<> {
        (0..u32::try_from(self.tables.len()).unwrap_or(u32::MAX)).map(TableId)
    }

    /// A hash of everything that statements are read with: schemas with the same hash give each table and column
    /// the same number and meaning.
    #[must_use]
    pub fn print(&self) -> u128 {
        let SqlSchema { database, tables, by_name: _, by_lower_case: _, untracked, foreign_keys } =
            self;
        let tables =
            tables.iter().map(|table| (&table.name, &table.columns, table.is_logged_first));
        let tables: Vec<_> = tables.collect();
        let text = format!("{database:?} {tables:?} {untracked:?} {foreign_keys:?}");
        xxh3_128(text.as_bytes())
    }

    /// Whether this is the name of the database.
    pub(crate) fn is_database(&self, name: &str) -> bool {
        name.to_lowercase() == self.database
    }
}

impl SqlTable {
    /// The position of the column with this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).or_else(|| self.by_name.get(&name.to_lowercase())).copied()
    }

    /// The columns that may have changed in an updated row. `is_changed` takes a column's position, and
    /// is not called for generated columns: they follow others, and a stream need not have them. They
    /// count as changed with any other column. With a column of the primary key all columns count as changed: the
    /// row has moved to another place, so a query without `ORDER BY` may begin with another one.
    #[must_use]
    pub fn changed(&self, is_changed: impl Fn(usize) -> bool) -> Columns {
        let (mut changed, mut generated) = (Columns::NONE, Columns::NONE);
        for (at, column) in self.columns.iter().enumerate() {
            if column.is_generated {
                generated.insert(at);
            } else if is_changed(at) {
                if column.key == ColumnKey::Primary {
                    return Columns::ALL;
                }
                changed.insert(at);
            }
        }
        if !changed.is_empty() {
            changed.extend(generated);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_print_differs_wherever_statements_would_be_read_in_another_way() {
        let column = |name: &str, data_type: &str, key: &str| {
            SqlColumn::new(name, data_type, Some("utf8mb4_general_ci"), key)
        };
        let build = |tables: &[&str], columns: Vec<SqlColumn>| {
            let mut schema = SqlSchema::new("site");
            tables.iter().for_each(|name| schema.add(name, columns.clone()));
            schema
        };
        let usual = || vec![column("id", "int", "PRI"), column("name", "text", "")];
        let schema = build(&["a", "b"], usual());
        assert_eq!(schema.print(), build(&["a", "b"], usual()).print());
        let action = ForeignKeyAction {
            child: TableId(1),
            columns: vec![0],
            parent: TableId(0),
            parent_columns: vec![0],
            on_delete: ChildAction::Follow,
            on_update: ChildAction::None,
        };
        let mut with_key = schema.clone();
        with_key.add_foreign_key(action);
        let mut with_view = schema.clone();
        with_view.add_untracked("v", "a view");
        let others = [
            build(&["b", "a"], usual()),
            build(&["a"], usual()),
            build(&["a", "b"], vec![column("id", "int", "PRI"), column("name", "blob", "")]),
            build(&["a", "b"], vec![column("id", "int", ""), column("name", "text", "")]),
            build(&["a", "b"], vec![column("name", "text", ""), column("id", "int", "PRI")]),
            build(&["a", "b"], usual().into_iter().map(SqlColumn::generated).collect()),
            with_key,
            with_view,
            SqlSchema::new("site"),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(schema.print(), other.print(), "{at}");
        }
    }
}
