//! MariaDB as a source of changes: what it answers to the questions of `source`, and its stream.
//!
//! | file | |
//! |---|---|
//! | `connection` | a login, statements, the packets of the stream |
//! | `schema` | tables, columns and foreign keys, as the rules need them |
//! | `stream` | connects, reads, hands out whole transactions |
//! | `touch` | a transaction → what it touches |
//!
//! Sources: MariaDB's manual, "Global Transaction ID" and "START TRANSACTION WITH CONSISTENT SNAPSHOT".

mod connection;
mod schema;
mod stream;
mod touch;

pub use connection::Connection;
pub use stream::{Stream, connect};

use crate::database::source::{Failed, Position, Seen};
use mysql_replication::position::FilePosition;

/// What is committed. The position counts a transaction before its COMMIT is answered.
///
/// # Errors
/// Why it could not be asked.
pub async fn committed(connection: &mut Connection) -> Result<Position, Failed> {
    let text = connection.one("SELECT @@gtid_binlog_pos").await?;
    let list = text.parse().map_err(|_| Failed::Said("bad-position", text))?;
    Ok(Position::MariaDb(list))
}

/// Up to which place of the log everybody sees: a transaction that begins with a snapshot says it
/// (`binlog_snapshot_file`, `binlog_snapshot_position`).
///
/// # Errors
/// Why it could not be asked.
pub async fn visible(connection: &mut Connection) -> Result<Option<Seen>, Failed> {
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let rows = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'").await?;
    // A snapshot that is kept keeps old rows from being cleaned up.
    connection.query("ROLLBACK").await?;
    let named = |name: &str| {
        let row = (0..rows.rows.len())
            .find(|row| rows.text(*row, 0).is_some_and(|own| own.eq_ignore_ascii_case(name)))?;
        rows.text(row, 1)
    };
    let file = named("binlog_snapshot_file").filter(|file| !file.is_empty());
    let offset = named("binlog_snapshot_position").and_then(|offset| offset.parse().ok());
    let place = file.zip(offset);
    Ok(place.map(|(file, offset)| Seen::Place(FilePosition { file: file.as_str().into(), offset })))
}
