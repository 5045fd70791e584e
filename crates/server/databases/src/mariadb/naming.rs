//! The representations of a server's log positions, and the queries for them.
//!
//! | positions | committed | visible | settles |
//! |---|---|---|---|
//! | MariaDB's GTIDs | `@@gtid_binlog_pos` | the position that a snapshot reports | by position |
//! | MySQL's GTIDs | `@@gtid_executed` | the same: it includes a transaction after the engine's commit | by GTID |
//! | file and offset | `SHOW MASTER STATUS` | MariaDB: the position of a snapshot; MySQL: not available | by position, or by time |
//!
//! Sources: MariaDB's manual, "gtid_binlog_pos" and "START TRANSACTION WITH CONSISTENT SNAPSHOT";
//! MySQL's, "gtid_executed", and `MYSQL_BIN_LOG::process_commit_stage_queue`.

use super::connection::Connection;
use crate::stream_types::{Position, Visibility, VisibilityMarker};
use config::{DatabaseServer, PositionBy};
use database_links::fault::ConnectionError;
use mysql_replication::position::{self, FilePosition, Gtid, GtidList, Gtids, Start};
use mysql_wire::greeting::Flavour;
use mysql_wire::query::{QueryLimits, Rows};

/// The representation of log positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// GTIDs in MariaDB's form (domain, server, sequence).
    MariaDb,
    /// GTIDs in MySQL's form (server UUID, transaction).
    MySql,
    /// File and offset in the binary log of one server.
    File,
}

impl Naming {
    /// Chooses the best representation that the server supports.
    ///
    /// # Errors
    /// The query failed.
    pub async fn of(
        connection: &mut Connection,
        server: &DatabaseServer,
    ) -> Result<Naming, ConnectionError> {
        match (server.by, connection.flavour()) {
            (PositionBy::File, _) => Ok(Naming::File),
            (PositionBy::Gtid, Flavour::MariaDb) => Ok(Naming::MariaDb),
            (PositionBy::Gtid, Flavour::MySql) => {
                let mode = connection.one("SELECT @@global.gtid_mode").await?;
                Ok(if mode == "ON" { Naming::MySql } else { Naming::File })
            }
        }
    }

    /// Returns the committed position. In each representation it includes a transaction before its
    /// COMMIT is acknowledged.
    ///
    /// # Errors
    /// The query failed.
    pub async fn committed(self, connection: &mut Connection) -> Result<Position, ConnectionError> {
        let bad = |text: &str| ConnectionError::Said("bad-position", text.to_owned());
        match self {
            Naming::MariaDb => {
                let text = connection.one("SELECT @@gtid_binlog_pos").await?;
                text.parse().map(Position::MariaDb).map_err(|_| bad(&text))
            }
            Naming::MySql => {
                let text = connection.one("SELECT @@global.gtid_executed").await?;
                // The server splits the set over several lines.
                text.parse().map(Position::MySql).map_err(|_| bad(&text))
            }
            Naming::File => place(connection).await.map(Position::Place),
        }
    }

    /// Returns a position that includes every transaction that is visible now; `None` if the account may not see it. MySQL
    /// adds a GTID to `gtid_executed` after its rows are visible, but writes to the log before that.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn log_end(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Position>, ConnectionError> {
        if self == Naming::MariaDb {
            return self.committed(connection).await.map(Some);
        }
        // MySQL 8.4 removed the old statement, and older versions do not know the new one.
        for statement in ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"] {
            let rows = connection.try_query(statement, QueryLimits::default()).await?;
            if let Some(place) = rows.and_then(|rows| file_position(&rows)) {
                return Ok(Some(Position::Place(place)));
            }
        }
        Ok(None)
    }

    /// Returns the position or set that is visible to all readers; `None` if the server cannot
    /// report it.
    ///
    /// # Errors
    /// The query failed.
    pub async fn visible(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Visibility>, ConnectionError> {
        match (self, connection.flavour()) {
            (Naming::MySql, _) => match self.committed(connection).await? {
                Position::MySql(set) => Ok(Some(Visibility::MySql(set))),
                _ => Ok(None),
            },
            (Naming::MariaDb | Naming::File, Flavour::MariaDb) => snapshot(connection).await,
            (Naming::MariaDb | Naming::File, Flavour::MySql) => Ok(None),
        }
    }

    /// Returns the mark of a transaction, from its GTID and the stream's position after it.
    pub fn mark(self, gtid: Option<&Gtid>, after: &position::Position) -> Option<VisibilityMarker> {
        match (self, gtid) {
            (Naming::MySql, Some(Gtid::MySql(gtid))) => Some(VisibilityMarker::MySql(gtid.clone())),
            (Naming::MySql, _) => None,
            (Naming::MariaDb | Naming::File, _) => after.file.clone().map(VisibilityMarker::Place),
        }
    }
}

/// Returns the mark of all transactions up to a committed position.
pub fn mark_of_all(committed: &Position) -> Option<VisibilityMarker> {
    match committed {
        Position::MariaDb(list) => Some(VisibilityMarker::Gtids(list.clone())),
        Position::MySql(set) => Some(VisibilityMarker::MySqlAll(set.clone())),
        Position::Place(place) => Some(VisibilityMarker::Place(place.clone())),
        Position::Postgres(_) | Position::Stream(_) => None,
    }
}

/// Returns the transactions in the log up to a position; `None` if the log has no such position.
/// The server reads the log file from its beginning for this query.
///
/// # Errors
/// The query failed.
pub async fn up_to(
    connection: &mut Connection,
    place: &FilePosition,
) -> Result<Option<GtidList>, ConnectionError> {
    let file: String = place.file.bytes().map(|byte| format!("{byte:02x}")).collect();
    let ask = format!("SELECT BINLOG_GTID_POS(0x{file}, {})", place.offset);
    let list = connection.query(&ask).await?.text(0, 0);
    Ok(list.and_then(|list| list.parse().ok()))
}

/// Converts a position to the start of a stream.
pub fn start(from: &Position) -> Start {
    match from {
        Position::MariaDb(list) => Start::MariaDb(list.clone()),
        Position::MySql(set) => Start::MySql(set.clone()),
        Position::Place(place) => Start::File(place.clone()),
        // A position of another kind of database: it says nothing about this log.
        Position::Postgres(_) | Position::Stream(_) => Start::MariaDb(GtidList::default()),
    }
}

/// Returns the position of a stream; `None` for file positions until the server has sent the file's
/// name.
pub fn reached(position: &position::Position) -> Option<Position> {
    match &position.gtids {
        Gtids::MariaDb(list) => Some(Position::MariaDb(list.clone())),
        Gtids::MySql(set) => Some(Position::MySql(set.clone())),
        Gtids::None => position.file.clone().map(Position::Place),
    }
}

async fn place(connection: &mut Connection) -> Result<FilePosition, ConnectionError> {
    // MySQL 8.4 removed the old statement.
    let rows = match connection.query("SHOW MASTER STATUS").await {
        Err(ConnectionError::Said("other", _)) => {
            connection.query("SHOW BINARY LOG STATUS").await?
        }
        rows => rows?,
    };
    file_position(&rows).ok_or_else(|| {
        let file = rows.text(0, 0).unwrap_or_default();
        ConnectionError::Said("bad-position", format!("SHOW MASTER STATUS: {file:?}"))
    })
}

/// The file and the offset in the result of `SHOW MASTER STATUS`.
fn file_position(rows: &Rows) -> Option<FilePosition> {
    let file = rows.text(0, 0).filter(|file| !file.is_empty())?;
    let offset = rows.text(0, 1)?.parse().ok()?;
    Some(FilePosition { file: file.as_str().into(), offset })
}

/// Returns the log position that a consistent snapshot sees. The server reports it in
/// `binlog_snapshot_file` and `binlog_snapshot_position`.
async fn snapshot(connection: &mut Connection) -> Result<Option<Visibility>, ConnectionError> {
    connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
    let rows = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'").await?;
    // An open snapshot would prevent the server from purging old row versions.
    connection.query("ROLLBACK").await?;
    let file = rows.named("binlog_snapshot_file").filter(|file| !file.is_empty());
    let offset = rows.named("binlog_snapshot_position").and_then(|offset| offset.parse().ok());
    let place = file.zip(offset);
    Ok(place.map(|(file, offset)| {
        Visibility::Place(FilePosition { file: file.as_str().into(), offset })
    }))
}
