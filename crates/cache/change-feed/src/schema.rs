//! What the database says of its tables, as far as rules care: columns, keys, foreign keys.
//!
//! Names of tables and columns are compared without regard to capitals: on some systems they are the
//! same, and where they are not, more is touched than has to be. Not here: how it is asked for.

use std::collections::BTreeMap;

/// A database's tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// The tables, by name in small letters.
    pub tables: BTreeMap<String, TableDefinition>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Its name as the database writes it.
    pub name: String,
    /// Whether rows are kept in it.
    pub kind: TableKind,
    /// Its columns, in order.
    pub columns: Vec<Column>,
}

/// What keeps the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// The table itself.
    Table,
    /// Other tables: it is a view, and no stream speaks of it.
    View,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Whether it is a part of the primary key.
    pub key: KeyPart,
    /// When two values of it are equal.
    pub equality: Equality,
    /// Whether its value is worked out from other columns.
    pub is_generated: bool,
    /// Whether it holds text, which is told as the database compares it; numbers, times and bytes are not.
    pub is_text: bool,
    /// By which collation it is compared, where that is known.
    pub collation: Option<String>,
}

/// Whether a column is a part of the primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    /// It is.
    Primary,
    /// It is not.
    None,
}

/// When the database takes two values for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Equality {
    /// When they are written the same: whole numbers.
    AsWritten,
    /// Otherwise as well, such as text without regard to capitals: a child's value is then not known
    /// from its parent's.
    Loose,
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The table that has it.
    pub child: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// The table that it refers to.
    pub parent: String,
    /// The columns there, in the same order.
    pub parent_columns: Vec<String>,
    /// What the database does to children when a parent goes.
    pub on_delete: Action,
    /// What it does when the parent's columns change.
    pub on_update: Action,
}

/// What a foreign key does to the children, inside the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it refuses.
    Refuse,
    /// They go, or get the new values.
    Cascade,
    /// Their columns become NULL or the default.
    Set,
}

impl Action {
    /// From `information_schema.REFERENTIAL_CONSTRAINTS`. What is not known counts as `Cascade`.
    #[must_use]
    pub fn of_rule(rule: &str) -> Action {
        match rule {
            "RESTRICT" | "NO ACTION" => Action::Refuse,
            "SET NULL" | "SET DEFAULT" => Action::Set,
            _ => Action::Cascade,
        }
    }
}

impl Schema {
    /// The table of this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableDefinition> {
        self.tables.get(&name.to_lowercase())
    }

    /// Puts a table in.
    pub fn add(&mut self, table: TableDefinition) {
        self.tables.insert(table.name.to_lowercase(), table);
    }
}

impl TableDefinition {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        let name = name.to_lowercase();
        self.columns.iter().find(|column| column.name.to_lowercase() == name)
    }
}
