//! Classifies a statement in the log: its kind, and the tables that it names.
//!
//! This is not a parser: words are examined only as far as needed to recognise transaction boundaries,
//! definitions (`ALTER`, `RENAME`, `TRUNCATE`, `DROP`, `CREATE`) and writes in statement format. If the tables
//! cannot be determined, the result is [`NamedTables::Everything`]: never less than what may have changed.
//!
//! A write in statement format names tables, but its triggers and functions may change others
//! ([`Verb::Write`], `calls`); row format does not have this problem. Names that differ only in case are the same table
//! on some systems; callers must handle this. Sources: the manuals of both servers.

mod built_in;
mod words;

use built_in::is_built_in;
use std::collections::BTreeSet;
use words::{Word, Words};

/// The maximum number of tables that a statement may name before it counts as a change of everything.
const TABLES_MAX: usize = 1000;

/// The effect of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// A transaction begins.
    Begin,
    /// The transaction is committed.
    Commit,
    /// The transaction is rolled back.
    Rollback,
    /// A savepoint with this name is set.
    Savepoint(String),
    /// The changes after this savepoint are rolled back.
    RollbackTo(String),
    /// No effect on tables: savepoints released, `XA END`, accounts, settings, routines.
    Nothing,
    /// An XA transaction begins.
    XaStart,
    /// A prepared XA transaction is committed.
    XaCommit(Option<XaId>),
    /// A prepared XA transaction is rolled back.
    XaRollback(Option<XaId>),
    /// Tables are created, altered, truncated, renamed or dropped.
    Define(NamedTables),
    /// Views are created, altered or dropped.
    DefineViews(NamedTables),
    /// Rows are written in statement format: of these tables, and of those that their triggers write.
    Write(NamedTables),
    /// The effect is unknown.
    Unknown,
}

/// The tables that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedTables {
    /// These tables.
    Tables(Vec<TableName>),
    /// All tables of a database.
    Schema(String),
    /// The tables cannot be determined.
    Everything,
}

/// The name of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The name of the database.
    pub schema: String,
    /// The name of the table.
    pub name: String,
}

/// The id of an XA transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct XaId {
    /// The format number; 1 by default.
    pub format: u32,
    /// The global transaction id, common to all branches.
    pub global: Box<[u8]>,
    /// The branch qualifier of the transaction.
    pub branch: Box<[u8]>,
}

/// Classifies a statement. Names without a database belong to `schema`.
#[must_use]
pub fn read(sql: &[u8], schema: &str) -> Verb {
    let mut statement = Statement { words: Words::new(sql), schema };
    statement.verb()
}

/// The stored functions that a statement may call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementCalls {
    /// The databases that are named before a function.
    pub(crate) databases: BTreeSet<String>,
    /// Whether some may be those of the session's database.
    pub(crate) are_of_session: bool,
}

/// The stored functions that the statement, which writes these tables, may call: every name before a parenthesis. The name
/// of a built-in function, without a database before it, is none. `has_escapes`: a backslash escapes in literals. `None`:
/// they cannot be determined.
#[must_use]
pub(crate) fn calls(sql: &[u8], tables: &[TableName], has_escapes: bool) -> Option<StatementCalls> {
    let (mut words, mut calls) = (Words::in_mode(sql, has_escapes), StatementCalls::default());
    let mut past: [Option<Word>; 5] = Default::default();
    while let Some(word) = words.next() {
        if word == Word::Mark(b'(') {
            match &past {
                [first, dot, Some(of), Some(Word::Mark(b'.')), Some(name)]
                    if !matches!(name, Word::Mark(_)) =>
                {
                    let (of, name) = (of.as_name()?, name.as_name());
                    let is_written =
                        |table: &TableName| table.schema == of && name == Some(&*table.name);
                    // A written table has a list of its columns. Otherwise `of` may also be one of MariaDB's packages: in
                    // the session's database, or in one that is named before it.
                    if !tables.iter().any(is_written) {
                        calls.are_of_session = true;
                        calls.databases.insert(of.to_owned());
                        if *dot == Some(Word::Mark(b'.')) {
                            calls.databases.insert(first.as_ref()?.as_name()?.to_owned());
                        }
                    }
                }
                [.., Some(Word::Plain(name))] => {
                    calls.are_of_session |= !is_built_in(name, words.is_after_gap());
                }
                // A built-in function has no quotes. A literal may be a name that is not UTF-8.
                [.., Some(Word::Quoted(_) | Word::Literal(_))] => calls.are_of_session = true,
                _ => {}
            }
            if calls.databases.len() > TABLES_MAX {
                return None;
            }
        }
        past.rotate_left(1);
        past[4] = Some(word);
    }
    (!words.is_damaged()).then_some(calls)
}

struct Statement<'a> {
    words: Words<'a>,
    schema: &'a str,
}

impl Statement<'_> {
    fn verb(&mut self) -> Verb {
        let Some(first) = self.words.next() else { return Verb::Nothing };
        let Word::Plain(word) = first else { return Verb::Unknown };
        match word.to_ascii_uppercase().as_str() {
            "BEGIN" => Verb::Begin,
            "START" => match self.words.keyword().as_str() {
                "TRANSACTION" => Verb::Begin,
                _ => Verb::Nothing,
            },
            "COMMIT" => Verb::Commit,
            "ROLLBACK" => self.rollback(),
            "SAVEPOINT" => self.words.name().map_or(Verb::Unknown, Verb::Savepoint),
            "RELEASE" | "GRANT" | "REVOKE" | "FLUSH" | "OPTIMIZE" | "CHECK" | "CHECKSUM"
            | "INSTALL" | "UNINSTALL" => Verb::Nothing,
            "SET" => self.set(),
            "ANALYZE" => self.analyze(),
            "XA" => self.xa(),
            "CREATE" => self.define(Self::create),
            "ALTER" => self.define(Self::alter),
            "DROP" => self.define(Self::drop),
            "RENAME" => self.rename(),
            "TRUNCATE" => {
                self.words.skip_any(&["TABLE"]);
                self.one_table()
            }
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => Verb::Write(self.tables_until(&["SET"])),
            "DELETE" => Verb::Write(self.tables_until(&["WHERE"])),
            "LOAD" => self.load(),
            _ => Verb::Unknown,
        }
    }

    /// MariaDB's `SET STATEMENT variable=value FOR …` executes a statement.
    fn set(&mut self) -> Verb {
        if !self.words.peek_is(&["STATEMENT"]) {
            return Verb::Nothing;
        }
        while let Some(word) = self.words.next() {
            if word.is("FOR") {
                // Only once, so that the recursion depth does not depend on the length of the statement.
                return if self.words.peek_is(&["SET"]) { Verb::Unknown } else { self.verb() };
            }
        }
        Verb::Unknown
    }

    /// In MariaDB, `ANALYZE` executes the statement that follows, unless a table follows.
    fn analyze(&mut self) -> Verb {
        self.words.skip_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.words.peek_is(&["TABLE", "TABLES"]) { Verb::Nothing } else { Verb::Unknown }
    }

    fn rollback(&mut self) -> Verb {
        self.words.skip_any(&["WORK"]);
        match self.words.keyword().as_str() {
            "TO" => {
                self.words.skip_any(&["SAVEPOINT"]);
                self.words.name().map_or(Verb::Unknown, Verb::RollbackTo)
            }
            _ => Verb::Rollback,
        }
    }

    fn xa(&mut self) -> Verb {
        match self.words.keyword().as_str() {
            "START" | "BEGIN" => Verb::XaStart,
            "COMMIT" => Verb::XaCommit(self.words.xa_id()),
            "ROLLBACK" => Verb::XaRollback(self.words.xa_id()),
            "END" | "PREPARE" => Verb::Nothing,
            _ => Verb::Unknown,
        }
    }

    /// A definition, which `read` reads after the kind of object that it concerns.
    fn define(&mut self, read: fn(&mut Self, &str) -> Verb) -> Verb {
        let kind = self.words.kind();
        match read(self, &kind) {
            Verb::Define(named) if kind == "VIEW" => Verb::DefineViews(named),
            verb => verb,
        }
    }

    fn create(&mut self, kind: &str) -> Verb {
        match kind {
            "TABLE" | "VIEW" | "SEQUENCE" => {
                self.words.skip_any(&["IF", "NOT", "EXISTS"]);
                self.one_table()
            }
            "INDEX" => self.indexed(),
            "DATABASE" | "SCHEMA" => Verb::Nothing,
            "" => Verb::Unknown,
            _ => Verb::Nothing,
        }
    }

    /// `CREATE INDEX … ON table`, `DROP INDEX … ON table`: a definition, which `SHOW COLUMNS` shows.
    fn indexed(&mut self) -> Verb {
        self.words.skip_any(&["IF", "NOT", "EXISTS"]);
        // The name of the index, which may be any word if it is quoted.
        self.words.name();
        while let Some(word) = self.words.next() {
            if word.is("ON") {
                return self.one_table();
            }
        }
        Verb::Define(NamedTables::Everything)
    }

    fn alter(&mut self, kind: &str) -> Verb {
        match kind {
            "TABLE" => {
                self.words.skip_any(&["IF", "EXISTS"]);
                self.altered()
            }
            "VIEW" | "SEQUENCE" => {
                self.words.skip_any(&["IF", "EXISTS"]);
                self.one_table()
            }
            "" => Verb::Unknown,
            _ => Verb::Nothing,
        }
    }

    /// The altered table, its new name, and a table that exchanges rows with a partition.
    fn altered(&mut self) -> Verb {
        let Some(own) = self.table() else { return Verb::Define(NamedTables::Everything) };
        let mut tables = vec![own];
        while let Some(word) = self.words.next() {
            let is = |wanted: &str| word.is(wanted);
            if is("RENAME") {
                self.words.skip_any(&["TO", "AS", "="]);
                if self.words.peek_is(&["COLUMN", "INDEX", "KEY"]) {
                    continue;
                }
            } else if !(is("WITH") && self.words.peek_is(&["TABLE"])) {
                // MariaDB's CONVERT PARTITION … TO TABLE and CONVERT TABLE … TO PARTITION.
                if !(is("TO") || is("CONVERT")) || !self.words.peek_is(&["TABLE"]) {
                    continue;
                }
            }
            self.words.skip_any(&["TABLE"]);
            match self.table() {
                Some(other) if tables.len() < TABLES_MAX => tables.push(other),
                _ => return Verb::Define(NamedTables::Everything),
            }
        }
        Verb::Define(self.named(tables))
    }

    fn drop(&mut self, kind: &str) -> Verb {
        match kind {
            "TABLE" | "TABLES" | "VIEW" | "SEQUENCE" => {
                self.words.skip_any(&["IF", "EXISTS"]);
                let mut tables = Vec::new();
                loop {
                    match self.table() {
                        Some(table) if tables.len() < TABLES_MAX => tables.push(table),
                        _ => return Verb::Define(NamedTables::Everything),
                    }
                    match self.words.next() {
                        Some(Word::Mark(b',')) => {}
                        _ => return Verb::Define(self.named(tables)),
                    }
                }
            }
            "DATABASE" | "SCHEMA" => {
                self.words.skip_any(&["IF", "EXISTS"]);
                let schema = self.words.name();
                Verb::Define(schema.map_or(NamedTables::Everything, NamedTables::Schema))
            }
            "INDEX" => self.indexed(),
            "" => Verb::Unknown,
            _ => Verb::Nothing,
        }
    }

    /// `RENAME TABLE a TO b, c TO d`: the old and new name of each table.
    fn rename(&mut self) -> Verb {
        match self.words.keyword().as_str() {
            "TABLE" | "TABLES" => self.words.skip_any(&["IF", "EXISTS"]),
            "USER" => return Verb::Nothing,
            _ => return Verb::Unknown,
        }
        let mut tables = Vec::new();
        loop {
            match self.table() {
                Some(table) if tables.len() < TABLES_MAX => tables.push(table),
                _ => return Verb::Define(NamedTables::Everything),
            }
            // WAIT n and NOWAIT may come before TO.
            loop {
                match self.words.next() {
                    Some(Word::Mark(b',')) => break,
                    Some(word) if word.is("TO") => break,
                    Some(_) => {}
                    None => return Verb::Define(self.named(tables)),
                }
            }
        }
    }

    fn one_table(&mut self) -> Verb {
        match self.table() {
            Some(table) => Verb::Define(self.named(vec![table])),
            None => Verb::Define(NamedTables::Everything),
        }
    }

    fn insert(&mut self) -> Verb {
        self.words.skip_any(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "INTO"]);
        let Some(table) = self.table() else { return Verb::Write(NamedTables::Everything) };
        Verb::Write(self.named(vec![table]))
    }

    fn load(&mut self) -> Verb {
        while let Some(word) = self.words.next() {
            if word.is("TABLE") {
                let table = self.table();
                let named = table.map_or(NamedTables::Everything, |table| self.named(vec![table]));
                return Verb::Write(named);
            }
        }
        Verb::Unknown
    }

    /// Collects every name that may be a table, up to one of these words. It may include tables that are not
    /// written, but never misses one.
    fn tables_until(&mut self, ends: &[&str]) -> NamedTables {
        const SKIPPED: [&str; 5] = ["LOW_PRIORITY", "QUICK", "IGNORE", "FROM", "HISTORY"];
        self.words.skip_any(&SKIPPED);
        let mut tables = Vec::new();
        let mut depth = 0u32;
        let mut expected = true;
        while let Some(word) = self.words.peek() {
            let at_top = depth == 0;
            match word {
                Word::Mark(b'(') => depth += 1,
                Word::Mark(b')') => depth = depth.saturating_sub(1),
                Word::Mark(b',') => expected = true,
                word if at_top && ends.iter().any(|end| word.is(end)) => break,
                // A subquery: its tables are only read, and its words are not names.
                word if word.is("SELECT") => return NamedTables::Everything,
                word if ["JOIN", "STRAIGHT_JOIN", "FROM", "USING"].iter().any(|it| word.is(it)) => {
                    expected = true;
                }
                Word::Plain(_) | Word::Quoted(_) if expected => {
                    match self.table() {
                        Some(table) if tables.len() < TABLES_MAX => tables.push(table),
                        _ => return NamedTables::Everything,
                    }
                    expected = false;
                    continue;
                }
                _ => {}
            }
            self.words.next();
        }
        self.named(tables)
    }

    /// A table name, optionally with its database.
    fn table(&mut self) -> Option<TableName> {
        let first = self.words.name()?;
        if self.words.peek() != Some(Word::Mark(b'.')) {
            return Some(TableName { schema: self.schema.to_owned(), name: first });
        }
        self.words.next();
        // `DELETE t.* FROM …`
        if self.words.peek() == Some(Word::Mark(b'*')) {
            return Some(TableName { schema: self.schema.to_owned(), name: first });
        }
        Some(TableName { schema: first, name: self.words.name()? })
    }

    fn named(&self, tables: Vec<TableName>) -> NamedTables {
        let is_whole =
            tables.iter().all(|table| !table.schema.is_empty() && !table.name.is_empty());
        if tables.is_empty() || !is_whole || self.words.is_damaged() {
            NamedTables::Everything
        } else {
            NamedTables::Tables(tables)
        }
    }
}

#[cfg(test)]
#[path = "statement/statement_tests.rs"]
mod statement_tests;
