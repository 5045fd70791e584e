//! MariaDB and MySQL as a source of changes: the queries of `source`, and the replication stream.
//!
//! | file | contents |
//! |---|---|
//! | `connection` | login, statements, the packets of the stream |
//! | `followed` | changed rows with their values, for automatic dependencies |
//! | `naming` | the representation of log positions; committed and visible positions |
//! | `partners` | look-ups of rows by a value, for automatic dependencies |
//! | `schema` | tables, columns and foreign keys, as the rules need them |
//! | `stream` | connects, reads, returns whole transactions |
//! | `touch` | converts a transaction to the tags and tables that it touches |
//! | `untracked` | tables whose rows can change without an event |

mod connection;
mod followed;
mod naming;
mod partners;
mod schema;
mod stream;
mod touch;
mod untracked;

pub use followed::{FollowedTables, ListedTable};
pub use partners::PartnerQuery;
pub use stream::{Stream, connect};
pub use touch::{Tables, TransactionChanges};

use super::stream_types::{Position, RowDetail, Visibility, VisibilityMarker};
use change_feed::schema::Schema;
use config::DatabaseServer;
use connection::Connection;
use database_links::fault::ConnectionError;
use footprint::SqlRow;
use mysql_replication::position::{FilePosition, GtidList};
use mysql_wire::query::QueryLimits;
use naming::Naming;
use statements::footprints::NearestRows;
use std::time::Duration;

/// A connection for queries.
pub struct Session {
    connection: Connection,
    naming: Naming,
    /// The transactions that are visible at the log position of the last query.
    seen: Option<(FilePosition, Option<GtidList>)>,
    /// Whether it is prepared for look-ups of rows.
    can_look_up: bool,
    /// The maximum time for the look-ups of a transaction.
    lookup_time_max: Duration,
    /// Whether rows are in the log before they are visible; `None`: not asked yet.
    is_logged_first: Option<bool>,
}

impl Session {
    /// Connects and logs in. The server ends a look-up that takes longer than `lookup_time_max`.
    ///
    /// # Errors
    /// The connection, the login or a query failed.
    pub async fn open(
        server: &DatabaseServer,
        lookup_time_max: Duration,
    ) -> Result<Session, ConnectionError> {
        let mut connection = Connection::open(server).await?;
        let naming = Naming::of(&mut connection, server).await?;
        Ok(Session {
            connection,
            naming,
            seen: None,
            can_look_up: false,
            lookup_time_max,
            is_logged_first: None,
        })
    }

    /// Returns the committed position.
    ///
    /// # Errors
    /// The query failed.
    pub async fn committed(&mut self) -> Result<Position, ConnectionError> {
        self.naming.committed(&mut self.connection).await
    }

    /// Looks up rows. `None`: they are not known.
    ///
    /// # Errors
    /// The connection failed, and cannot be used again.
    pub async fn find(
        &mut self,
        query: &PartnerQuery,
    ) -> Result<Option<Vec<SqlRow<'static>>>, ConnectionError> {
        if !self.can_look_up {
            partners::prepare(&mut self.connection, self.lookup_time_max).await?;
            self.can_look_up = true;
        }
        query.run(&mut self.connection).await
    }

    /// Looks up the rows near changed rows, and then a position of the log: rows that a look-up has seen were in the log
    /// before they were visible. `None`: the account may not see such a position, or a transaction is prepared (XA),
    /// whose rows may be visible before its commit is in the log.
    ///
    /// # Errors
    /// The connection failed, and cannot be used again.
    pub async fn find_nearest(
        &mut self,
        queries: &[PartnerQuery],
    ) -> Result<Option<(NearestRows, Position)>, ConnectionError> {
        if !self.is_logged_first().await? {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(queries.len());
        for query in queries {
            all.push(self.find(query).await?);
        }
        // In this order: a commit that has ended before the question is in the log before its end.
        if self.has_prepared().await? {
            return Ok(None);
        }
        let end = self.naming.log_end(&mut self.connection).await?;
        Ok(end.map(|end| (all, end)))
    }

    /// Whether a transaction is prepared (XA), or may be: MySQL shows them to accounts with `XA_RECOVER_ADMIN` only.
    async fn has_prepared(&mut self) -> Result<bool, ConnectionError> {
        let prepared = self.connection.try_query("XA RECOVER", QueryLimits::default()).await?;
        Ok(prepared.is_none_or(|transactions| !transactions.rows.is_empty()))
    }

    /// MariaDB 12.3 can write the log within InnoDB (`binlog_storage_engine`); the order is not known there.
    async fn is_logged_first(&mut self) -> Result<bool, ConnectionError> {
        const ENGINE: &str = "SHOW GLOBAL VARIABLES LIKE 'binlog_storage_engine'";
        if let Some(known) = self.is_logged_first {
            return Ok(known);
        }
        let engine = self.connection.query(ENGINE).await?.text(0, 1).unwrap_or_default();
        self.is_logged_first = Some(engine.is_empty());
        Ok(engine.is_empty())
    }

    /// Returns the transactions that are visible to all readers, in the representation of `mark`. A
    /// GTID list is queried once per log position: the position does not move while a commit waits.
    ///
    /// # Errors
    /// A query failed.
    pub async fn visible(
        &mut self,
        mark: &VisibilityMarker,
    ) -> Result<Option<Visibility>, ConnectionError> {
        let seen = self.naming.visible(&mut self.connection).await?;
        let (Some(Visibility::Place(place)), VisibilityMarker::Gtids(_)) = (&seen, mark) else {
            return Ok(seen);
        };
        if self.seen.as_ref().is_none_or(|(known, _)| known != place) {
            let list = naming::up_to(&mut self.connection, place).await?;
            self.seen = Some((place.clone(), list));
        }
        let list = self.seen.as_ref().and_then(|(_, list)| list.clone());
        Ok(list.map(|list| Visibility::Gtids(place.clone(), list)).or(seen))
    }
}

/// Reads the tables of a database.
///
/// # Errors
/// The connection or a query failed.
pub async fn schema(server: &DatabaseServer) -> Result<Schema, ConnectionError> {
    let mut connection = Connection::open(server).await?;
    let name = &server.account.database;
    Ok(schema::read(&mut connection, name, RowDetail::Tags).await?.schema)
}
