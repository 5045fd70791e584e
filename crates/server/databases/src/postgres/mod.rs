//! PostgreSQL as a source of changes: the queries of `source`, and the replication stream.
//!
//! | file | contents |
//! |---|---|
//! | `connection` | login, statements, the frames of the stream |
//! | `catalogue` | tables, columns, inheritance; detects changed definitions |
//! | `setup` | checks settings, publication and slot; creates missing ones |
//! | `stream` | connects, reads, returns whole transactions |
//! | `touch` | converts a transaction to the tags and tables that it touches |
//!
//! Sources: PostgreSQL's manual, "Logical Replication", "Logical Decoding", "Transaction ID and
//! Snapshot Information Functions". Not here: bytes (`postgres_replication`).

mod catalogue;
mod connection;
mod setup;
mod stream;
mod touch;

pub use connection::Connection;
pub use stream::{Stream, connect};

use crate::stream_types::{Position, Visibility};
use change_feed::schema::Schema;
use config::DatabaseServer;
use database_links::fault::ConnectionError;
use postgres_replication::position::Lsn;
use postgres_replication::wire::login::Purpose;

/// Returns the committed position, which is the end of the log. A COMMIT is acknowledged once the
/// log is flushed up to it, and the stream sends only flushed log. If the log in memory is ahead
/// (asynchronous commits, rows of open transactions), a transactional message flushes it.
///
/// # Errors
/// A query failed.
pub async fn committed(connection: &mut Connection) -> Result<Position, ConnectionError> {
    const ASK: &str = "SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()";
    const FLUSH: &str =
        "SET synchronous_commit = local; SELECT pg_logical_emit_message(true, 'pagewell', '')";
    let rows = connection.query(ASK).await?;
    let place = |column| rows.text(0, column).unwrap_or_default();
    let (end, on_disk) = (lsn(place(0))?.before_header(), lsn(place(1))?);
    if on_disk < end {
        connection.query(FLUSH).await?;
    }
    Ok(Position::Postgres(end))
}

/// Returns the tables that rules can be proposed for, and for each other table the reason why not.
/// The parent table represents its partitions.
///
/// # Errors
/// The connection or a query failed.
pub async fn schema(server: &DatabaseServer) -> Result<(Schema, Vec<String>), ConnectionError> {
    let mut connection = Connection::open(server, Purpose::Statements).await?;
    let catalogue = catalogue::Catalogue::read(&mut connection).await?;
    let (mut schema, mut left_out) = (Schema::default(), Vec::new());
    schema.foreign_keys.clone_from(&catalogue.schema.foreign_keys);
    for table in catalogue.all().filter(|table| !catalogue.is_partition(table)) {
        match setup::stands_in_the_way(table) {
            Some(why) => left_out.push(why),
            None => schema.add(catalogue::definition(table)),
        }
    }
    Ok((schema, left_out))
}

/// Returns the IDs of transactions in progress. Each holds a lock on its own ID until other
/// transactions see its changes. A snapshot (`pg_current_snapshot`) is no substitute: it lists no
/// transaction newer than the last finished one.
///
/// # Errors
/// The query failed, or its result is invalid.
pub async fn begun(connection: &mut Connection) -> Result<Vec<u32>, ConnectionError> {
    let asked = "SELECT coalesce(string_agg(transactionid::text, ','), '') FROM pg_locks \
                 WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted";
    let text = connection.one(asked).await?;
    let each = text.split(',').filter(|one| !one.is_empty()).map(str::parse);
    each.collect::<Result<_, _>>().map_err(|_| ConnectionError::Said("bad-snapshot", text))
}

/// Returns the transactions that are visible to all readers.
///
/// # Errors
/// The query failed, or its result is invalid.
pub async fn visible(connection: &mut Connection) -> Result<Option<Visibility>, ConnectionError> {
    let text = connection.one("SELECT pg_current_snapshot()").await?;
    let snapshot = text.parse().map_err(|_| ConnectionError::Said("bad-snapshot", text))?;
    Ok(Some(Visibility::Snapshot(snapshot)))
}

fn lsn(text: String) -> Result<Lsn, ConnectionError> {
    text.parse().map_err(|_| ConnectionError::Said("bad-position", text))
}
