//! A small blocking connection to a database over its Unix socket, for statements.
//!
//! Reads are bounded in time. An error is a sentence: no caller can do anything about it.

mod mariadb;
mod postgres;

pub use mariadb::Connection as MariaDbConnection;

use super::Kind;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 16 << 10;

/// The first two values of a row.
type Row = (Option<String>, Option<String>);

/// A connection as `writer` to the database `items`.
pub enum Sql {
    /// To MariaDB.
    MariaDb(mariadb::Connection),
    /// To PostgreSQL.
    Postgres(postgres::Connection),
}

impl Sql {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub fn open(kind: Kind, socket: &Path) -> Result<Sql, String> {
        match kind {
            Kind::Mariadb => mariadb::Connection::open(socket).map(Sql::MariaDb),
            Kind::Postgres => postgres::Connection::open(socket).map(Sql::Postgres),
        }
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The error of the server or of the network.
    pub fn run(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        match self {
            Sql::MariaDb(connection) => connection.run(statement),
            Sql::Postgres(connection) => connection.run(statement),
        }
    }

    /// Numbers by their ids, of a statement that gives both.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn numbers(&mut self, statement: &str) -> Result<Vec<(usize, u64)>, String> {
        let number = |text: &Option<String>| text.as_ref()?.parse::<u64>().ok();
        let pair = |row: &Row| Some((usize::try_from(number(&row.0)?).ok()?, number(&row.1)?));
        let all: Option<Vec<_>> = self.run(statement)?.iter().map(pair).collect();
        all.ok_or_else(|| format!("{statement}: no numbers"))
    }
}
