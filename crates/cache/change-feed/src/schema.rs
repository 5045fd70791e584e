//! The database's description of its tables, as far as rules need it: columns, keys, foreign keys.
//!
//! Names of tables and columns are compared without regard to case. On some systems they are equal; on
//! others, more is touched than necessary. Not here: the queries that read the schema.

use std::collections::BTreeMap;

/// The tables of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// The tables, by name in lower case.
    pub tables: BTreeMap<String, TableDefinition>,
    /// The foreign keys of all tables.
    pub foreign_keys: Vec<ForeignKey>,
}

/// The definition of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// The name as the database writes it.
    pub name: String,
    /// Whether it is a view.
    pub is_view: bool,
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// The definition of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// Whether the column is part of the primary key.
    pub is_primary_key: bool,
    /// Whether two values can be equal although they are written differently.
    pub is_loosely_equal: bool,
    /// Whether its value is computed from other columns.
    pub is_generated: bool,
    /// Whether it holds text in the form that the database compares; numbers, times and bytes do not.
    pub is_text: bool,
    /// The collation by which it is compared, if known.
    pub collation: Option<String>,
}

/// A foreign key of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// The table that has the key.
    pub child: String,
    /// The columns of the key.
    pub columns: Vec<String>,
    /// The name of the referenced table.
    pub parent: String,
    /// The referenced columns, in the same order.
    pub parent_columns: Vec<String>,
    /// The action of the database on children when a parent is deleted.
    pub on_delete: Action,
    /// The action of the database on children when the referenced columns change.
    pub on_update: Action,
}

/// The action of a foreign key on child rows, inside the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// None: the database refuses the change.
    Refuse,
    /// The children are deleted, or get the new values.
    Cascade,
    /// The columns of the children become NULL or the default.
    Set,
}

impl Action {
    /// The action from `information_schema.REFERENTIAL_CONSTRAINTS`. An unknown rule counts as `Cascade`.
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
    /// The table with this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableDefinition> {
        self.tables.get(&name.to_lowercase())
    }

    /// Adds a table to the schema.
    pub fn add(&mut self, table: TableDefinition) {
        self.tables.insert(table.name.to_lowercase(), table);
    }
}

impl TableDefinition {
    /// The column with this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        let name = name.to_lowercase();
        self.columns.iter().find(|column| column.name.to_lowercase() == name)
    }
}
