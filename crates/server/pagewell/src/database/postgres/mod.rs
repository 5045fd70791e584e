//! PostgreSQL as a source of changes: what it answers to the questions of `source`, and its stream.
//!
//! | file | |
//! |---|---|
//! | `connection` | a login, statements, the frames of the stream |
//! | `catalogue` | tables, columns, what hangs together; whether any of it has changed |
//! | `setup` | whether the server can be followed: settings, publication, slot |
//! | `stream` | connects, reads, hands out whole transactions |
//! | `touch` | a transaction → what it touches |
//!
//! Sources: PostgreSQL's manual, "Logical Replication", "Logical Decoding", "Transaction ID and Snapshot
//! Information Functions". Not here: bytes (`postgres_replication`).

mod catalogue;
mod connection;
mod setup;
mod stream;
mod touch;

pub use connection::Connection;
pub use stream::{Stream, connect};

use crate::config::DatabaseServer;
use crate::database::source::{Failed, Position, Seen};
use change_feed::schema::Schema;
use postgres_replication::position::Lsn;
use postgres_replication::wire::login::Purpose;

/// What is committed: the end of the log. A commit is answered when the log up to it is on the disk,
/// and the stream has no more than that; where there is more than that in memory (commits that do not
/// wait, or rows of others), a message that has to be written moves it there.
///
/// # Errors
/// Why it could not be asked.
pub async fn committed(connection: &mut Connection) -> Result<Position, Failed> {
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

/// The tables that rules can be proposed for, and why none can be for others. Partitions are told by
/// the table above them.
///
/// # Errors
/// Why they could not be asked for.
pub async fn schema(server: &DatabaseServer) -> Result<(Schema, Vec<String>), Failed> {
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

/// Which transactions have begun and not finished. Each holds a lock on its own number until others see it; a
/// snapshot lists none that is newer than the last that has finished.
///
/// # Errors
/// Why it could not be asked, or what was said.
pub async fn begun(connection: &mut Connection) -> Result<Vec<u32>, Failed> {
    let asked = "SELECT coalesce(string_agg(transactionid::text, ','), '') FROM pg_locks \
                 WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted";
    let text = connection.one(asked).await?;
    let each = text.split(',').filter(|one| !one.is_empty()).map(str::parse);
    each.collect::<Result<_, _>>().map_err(|_| Failed::Said("bad-snapshot", text))
}

/// Which transactions everybody sees.
///
/// # Errors
/// Why it could not be asked.
pub async fn visible(connection: &mut Connection) -> Result<Option<Seen>, Failed> {
    let text = connection.one("SELECT pg_current_snapshot()").await?;
    let snapshot = text.parse().map_err(|_| Failed::Said("bad-snapshot", text))?;
    Ok(Some(Seen::Snapshot(snapshot)))
}

fn lsn(text: String) -> Result<Lsn, Failed> {
    text.parse().map_err(|_| Failed::Said("bad-position", text))
}
