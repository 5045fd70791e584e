//! Checks whether a PostgreSQL server can be followed: its settings, the publication, the slot.
//! Missing objects are created if the site allows it (`manage`). Otherwise the error contains the
//! statement.
//!
//! | object | requirement |
//! |---|---|
//! | server | version 14 or later, no standby, `wal_level = logical` |
//! | table of a rule | written to the log (not unlogged), with identifiable rows (`REPLICA IDENTITY`) |
//! | publication | inserts, updates, deletes and `TRUNCATE` of all these tables, without row filters |
//! | slot | of `pgoutput` and this database, at a position that the log still has |
//!
//! The publication is created before the slot, because earlier log entries could not be decoded. A
//! table without identity is never added to a publication: the server would reject the
//! application's updates. A check ([`Aim::Check`]) changes nothing: it creates the publication in a
//! transaction that is rolled back. Not here: whether the rules match the tables.

use super::catalogue::{Kind, Table};
use super::connection::Connection;
use crate::stream_types::Aim;
use config::{Database, Manage, Replication};
use database_links::fault::{Recovery, StreamFault, Warning};
use postgres_replication::message::Identity;
use postgres_replication::position::Lsn;
use postgres_replication::wire::query::{Rows, identifier, literal};
use std::collections::BTreeSet;

const VERSION_MIN: u32 = 140_000;
/// The log events of warnings.
const IDENTITY: &str = "database-identity";
const SLOT: &str = "database-slot";
const MADE: &str = "database-made";

/// Checks the server's settings, and returns its identifier: system and timeline.
///
/// # Errors
/// The server cannot be followed.
pub async fn server(connection: &mut Connection) -> Result<String, StreamFault> {
    const ASK: &str = "SELECT current_setting('server_version_num'), \
         current_setting('server_version'), pg_is_in_recovery(), current_setting('wal_level')";
    let rows = connection.query(ASK).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    if text(0).parse().is_ok_and(|version: u32| version < VERSION_MIN) {
        return Err(StreamFault::unusable(format!("this is PostgreSQL {}; 14 is needed", text(1))));
    }
    if text(2) == "t" {
        let why = "this is a standby: follow the primary, whose readers see changes first";
        return Err(StreamFault::unusable(why));
    }
    if text(3) != "logical" {
        let level = text(3);
        return Err(StreamFault::unusable(format!(
            "wal_level is {level}: ALTER SYSTEM SET wal_level = logical; and restart the server"
        )));
    }
    let rows = connection.query("IDENTIFY_SYSTEM").await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    Ok(format!("{}/{}", text(0), text(1)))
}

/// Checks the tables that are followed.
///
/// # Errors
/// A table cannot be followed.
pub fn tables(tables: &[&Table]) -> Result<(), StreamFault> {
    match tables.iter().find_map(|table| stands_in_the_way(table)) {
        Some(why) => Err(not_published(why)),
        None => Ok(()),
    }
}

/// The error for rows that the server does not send. Changes of them may have been missed, so no page is used until
/// an operator has corrected it.
fn not_published(text: String) -> StreamFault {
    StreamFault { name: "not-published", text, then: Recovery::Lost }
}

/// Returns why a table cannot be followed, with the statement that corrects it; `None`: it can be
/// followed.
pub fn stands_in_the_way(table: &Table) -> Option<String> {
    let (name, key) = (table.quoted(), table.columns.iter().any(|column| column.is_identity));
    if table.kind == Kind::Unlogged {
        return Some(format!(
            "table {name} is unlogged, so nothing tells of it: ALTER TABLE {name} SET LOGGED"
        ));
    }
    let is_told_apart = table.identity != Identity::Nothing && key;
    (table.kind == Kind::Ordinary && !is_told_apart).then(|| {
        format!(
            "the rows of table {name} cannot be identified, and PostgreSQL would refuse to \
             update or delete them if they were published: ALTER TABLE {name} REPLICA IDENTITY FULL"
        )
    })
}

/// Returns warnings about columns that a rule needs, but that the stream lacks before a change.
pub fn not_sent(config: &Database, tables: &[&Table]) -> Vec<Warning> {
    let mut found = Vec::new();
    for table in tables.iter().filter(|table| table.kind == Kind::Ordinary) {
        for name in &table.names {
            let needed = config.rules.columns(name);
            let column = |needed: &String| {
                table.columns.iter().find(|own| own.name.eq_ignore_ascii_case(needed))
            };
            let is_missing = |needed: &&String| {
                column(needed).is_some_and(|own| own.is_generated || !own.is_identity)
            };
            let missing: Vec<&str> = needed.iter().filter(is_missing).map(String::as_str).collect();
            if !missing.is_empty() {
                let (table, columns) = (table.quoted(), missing.join(", "));
                found.push((
                    IDENTITY,
                    format!(
                        "of a row of {table} before its change PostgreSQL does not send {columns}, \
                         so that any row counts as changed: ALTER TABLE {table} REPLICA IDENTITY FULL"
                    ),
                ));
            }
        }
    }
    found
}

/// Checks the publication, and creates or completes it if allowed.
///
/// # Errors
/// The publication is missing or incomplete; the text contains the statement that corrects it.
pub async fn publication(
    connection: &mut Connection,
    what: &Replication,
    tables: &[&Table],
    aim: Aim,
) -> Result<Vec<Warning>, StreamFault> {
    let name = literal(&what.publication);
    let rows = connection
        .query(&format!(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot \
             FROM pg_publication WHERE pubname = {name}"
        ))
        .await?;
    let quoted = identifier(&what.publication);
    let with_rows: Vec<&Table> =
        tables.iter().filter(|table| table.kind == Kind::Ordinary).copied().collect();
    if rows.rows.is_empty() {
        let sql = format!("CREATE PUBLICATION {quoted} FOR TABLE {}", list(&with_rows, tables));
        return make(connection, what, &sql, "there is no such publication", aim).await;
    }
    if rows.text(0, 0).as_deref() != Some("t") {
        return Err(StreamFault::unusable(format!(
            "publication {quoted} leaves some changes out: ALTER PUBLICATION {quoted} \
             SET (publish = 'insert, update, delete, truncate')"
        )));
    }
    if rows.text(0, 1).as_deref() == Some("t") && tables.len() > with_rows.len() {
        return Err(StreamFault::unusable(format!(
            "publication {quoted} does not tell of a partition that is emptied: \
             ALTER PUBLICATION {quoted} SET (publish_via_partition_root = false)"
        )));
    }
    // Older versions have no row filters. As a JSON field the column can be queried in every
    // version.
    let rows = connection
        .query(&format!(
            "SELECT t.schemaname, t.tablename, to_jsonb(t) ->> 'rowfilter' \
             FROM pg_publication_tables t WHERE t.pubname = {name}"
        ))
        .await?;
    match uncovered(&what.publication, &rows, &with_rows, tables)? {
        Some(sql) => {
            let missing = "the publication does not tell of all tables that rules are about";
            make(connection, what, &sql, missing, aim).await
        }
        None => Ok(Vec::new()),
    }
}

/// Returns the statement that adds the missing tables; `None`: none is missing.
fn uncovered(
    publication: &str,
    published: &Rows,
    with_rows: &[&Table],
    tables: &[&Table],
) -> Result<Option<String>, StreamFault> {
    let quoted = identifier(publication);
    let row_of = |table: &Table| {
        (0..published.rows.len()).find(|row| {
            let text = |column| published.text(*row, column).unwrap_or_default();
            (text(0), text(1)) == table.place
        })
    };
    for table in with_rows {
        let filter = row_of(table).and_then(|row| published.text(row, 2));
        if let Some(filter) = filter {
            let name = table.quoted();
            return Err(StreamFault::unusable(format!(
                "publication {quoted} leaves out rows of {name}, all but {filter}: \
                 ALTER PUBLICATION {quoted} DROP TABLE {name}; \
                 ALTER PUBLICATION {quoted} ADD TABLE {name}"
            )));
        }
    }
    let missing: Vec<&Table> =
        with_rows.iter().filter(|table| row_of(table).is_none()).copied().collect();
    let add = || format!("ALTER PUBLICATION {quoted} ADD TABLE {}", list(&missing, tables));
    Ok((!missing.is_empty()).then(add))
}

/// Returns the tables to publish. For a partition it lists the topmost table, so that partitions
/// created later are included.
fn list(missing: &[&Table], tables: &[&Table]) -> String {
    let whole = |table: &&Table| {
        let above = tables.iter().filter(|above| {
            above.kind == Kind::Partitioned
                && above.names.first().is_some_and(|name| table.names.contains(name))
        });
        // The table without a parent.
        above.min_by_key(|above| above.names.len()).map_or_else(|| table.quoted(), |t| t.quoted())
    };
    missing
        .iter()
        .map(whole)
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect::<Vec<_>>()
        .join(", ")
}

async fn make(
    connection: &mut Connection,
    what: &Replication,
    sql: &str,
    missing: &str,
    aim: Aim,
) -> Result<Vec<Warning>, StreamFault> {
    if what.manage == Manage::No {
        return Err(not_published(format!(
            "{missing}. As the tables' owner: {sql}; or set manage = true"
        )));
    }
    let done = match aim {
        Aim::Follow(_) => connection.query(sql).await,
        Aim::Check => connection.query(&format!("BEGIN; {sql}; ROLLBACK")).await,
    };
    done.map_err(|failed| {
        not_published(format!("{missing}, and it cannot be made ({failed}): {sql}"))
    })?;
    if aim == Aim::Check {
        return Ok(vec![(MADE, format!("{missing}: at the start it is made, {sql}"))]);
    }
    tracing::info!(event = "database-made", statement = sql);
    Ok(Vec::new())
}

/// A replication slot that is ready to be read.
pub struct Slot {
    /// The position from which it can be read.
    pub at: Lsn,
    /// The most log to keep for snapshots, in bytes.
    pub keep_bytes: u64,
    /// Warnings about the slot.
    pub warnings: Vec<Warning>,
}

/// Checks the slot, and creates it if allowed.
///
/// # Errors
/// The slot is missing or unusable; the text contains the statement that corrects it.
pub async fn slot(
    connection: &mut Connection,
    what: &Replication,
    aim: Aim,
) -> Result<Slot, StreamFault> {
    let name = literal(&what.slot);
    let make = format!("SELECT pg_create_logical_replication_slot({name}, 'pgoutput')");
    let remove = format!("SELECT pg_drop_replication_slot({name})");
    let rows = connection
        .query(&format!(
            "SELECT plugin, database = current_database(), wal_status, confirmed_flush_lsn \
             FROM pg_replication_slots WHERE slot_name = {name}"
        ))
        .await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    let server_keeps = server_keeps(connection).await?;
    // A slot keeps somewhat more log than its confirmed position requires.
    let keep_bytes = what.keep_bytes.min(server_keeps.unwrap_or(u64::MAX) / 2);
    let mut warnings = Vec::new();
    if server_keeps.is_none() {
        warnings.push((SLOT, WITHOUT_BOUND.to_owned()));
    }
    if rows.rows.is_empty() {
        let at = made(connection, what, &[make], "there is no such slot", aim).await?;
        return Ok(Slot { at, keep_bytes, warnings });
    }
    if text(0) != "pgoutput" || text(1) != "t" {
        return Err(StreamFault::unusable(format!(
            "slot {} is of another plugin or database: give this one another name (slot)",
            what.slot
        )));
    }
    if text(2) == "unreserved" {
        let why = "the slot's log is longer than max_slot_wal_keep_size, and about to be lost";
        warnings.push((SLOT, why.to_owned()));
    }
    let at = match text(3).parse() {
        Ok(place) if text(2) != "lost" => place,
        _ => made(connection, what, &[remove, make], "the log of the slot is gone", aim).await?,
    };
    Ok(Slot { at, keep_bytes, warnings })
}

const WITHOUT_BOUND: &str = "max_slot_wal_keep_size is -1: while Pagewell is away the log grows until \
     the disk is full; ALTER SYSTEM SET max_slot_wal_keep_size = '4GB', and reload";

/// Returns the most log that the server keeps for a slot, in bytes; `None`: unlimited.
async fn server_keeps(connection: &mut Connection) -> Result<Option<u64>, StreamFault> {
    const ASK: &str = "SELECT setting FROM pg_settings WHERE name = 'max_slot_wal_keep_size'";
    // The setting is in megabytes; -1 means unlimited and does not parse as `u64`.
    let megabytes: Option<u64> = connection.one(ASK).await?.parse().ok();
    Ok(megabytes.map(|megabytes| megabytes.saturating_mul(1 << 20)))
}

async fn made(
    connection: &mut Connection,
    what: &Replication,
    sql: &[String],
    missing: &str,
    aim: Aim,
) -> Result<Lsn, StreamFault> {
    let statements = sql.join("; ");
    let lost = |text: String| StreamFault { name: "slot-lost", text, then: Recovery::Lost };
    if what.manage == Manage::No {
        let slot = &what.slot;
        return Err(lost(format!("{missing} ({slot}). {statements}; or set manage = true")));
    }
    if aim == Aim::Check {
        return if sql.len() > 1 { Ok(Lsn(0)) } else { has_room(connection).await };
    }
    for one in sql {
        let done = connection.make_slot(one).await;
        done.map_err(|failed| lost(format!("{missing}, and none can be made: {failed}")))?;
        tracing::info!(event = "database-made", statement = one);
    }
    let place = connection
        .one(&format!(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = {}",
            literal(&what.slot)
        ))
        .await?;
    place.parse().map_err(|_| lost(format!("the slot has no place: {place:?}")))
}

/// Checks whether the server allows one more slot. A trial creation could not be rolled back.
async fn has_room(connection: &mut Connection) -> Result<Lsn, StreamFault> {
    const ASK: &str = "SELECT count(*) < current_setting('max_replication_slots')::int \
         FROM pg_replication_slots";
    match connection.one(ASK).await?.as_str() {
        "t" => Ok(Lsn(0)),
        _ => Err(StreamFault::unusable(
            "the server has no room for one more slot: raise max_replication_slots",
        )),
    }
}
