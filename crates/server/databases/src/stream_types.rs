//! The values that every kind of database reports: positions in a stream and what they prove,
//! transactions, and what a new connection has found. No other module knows how a position or a mark
//! is represented.
//!
//! Not here: the kinds of databases and their operations (`source`).

use change_feed::{CheckError, TouchedTags};
use cluster::PeerInvalidation;
use config::Database;
use database_links::fault::Warning;
use footprint::TableChange;
use mysql_replication::Landmark;
use mysql_replication::position::{FilePosition, GtidList, GtidSet, MySqlGtid, PositionOrder};
use postgres_replication::position::Lsn;
use postgres_replication::snapshot::Snapshot;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::Instant;
use valkey::Place;

/// The position up to which a stream is read, or a database has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// MariaDB: the last transaction (GTID) of each domain.
    MariaDb(GtidList),
    /// MySQL: the set of all executed GTIDs.
    MySql(GtidSet),
    /// MariaDB, MySQL: file and offset in the binary log of one server.
    Place(FilePosition),
    /// PostgreSQL: a position in the write-ahead log (LSN).
    Postgres(Lsn),
    /// Valkey, Redis: a position in a stream (ID and number of entries).
    Stream(Place),
}

impl Position {
    /// Returns whether this position includes all of `other`; `false` if the kinds differ.
    #[must_use]
    pub fn has_all(&self, other: &Position) -> bool {
        let standing = match (self, other) {
            (Position::MariaDb(own), Position::MariaDb(other)) => own.compare(other),
            (Position::MySql(own), Position::MySql(other)) => own.compare(other),
            (Position::Place(own), Position::Place(other)) => own.compare(other),
            (Position::Postgres(own), Position::Postgres(other)) => return own >= other,
            (Position::Stream(own), Position::Stream(other)) => return own.has_all(other),
            _ => PositionOrder::Apart,
        };
        matches!(standing, PositionOrder::Same | PositionOrder::Ahead)
    }

    /// Returns the number of log bytes since `before`; `None` except for PostgreSQL.
    #[must_use]
    pub fn bytes_since(&self, before: &Position) -> Option<u64> {
        match (self, before) {
            (Position::Postgres(own), Position::Postgres(before)) => own.0.checked_sub(before.0),
            _ => None,
        }
    }

    /// Returns whether the position is valid on every server that has replicated its transactions
    /// (GTIDs). The stream can then resume at another server, which rejects an unknown position.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        match self {
            Position::MariaDb(list) => !list.last().is_empty(),
            Position::MySql(set) => *set != GtidSet::default(),
            Position::Place(_) | Position::Postgres(_) | Position::Stream(_) => false,
        }
    }

    /// Returns whether a server with this `committed` position has lost transactions that it once
    /// sent, because its log was reset. MariaDB counts a transaction as committed before it sends
    /// it. MySQL may send a transaction first. PostgreSQL reports a lost position itself when a
    /// stream starts.
    #[must_use]
    pub fn is_lost_by(&self, committed: &Position) -> bool {
        if let (Position::Stream(own), Position::Stream(committed)) = (self, committed) {
            return own.is_lost_by(committed);
        }
        matches!(self, Position::MariaDb(_) | Position::Place(_)) && !committed.has_all(self)
    }

    /// Like [`is_lost_by`](Self::is_lost_by), for a position that the same server reported earlier
    /// as committed.
    #[must_use]
    pub fn is_taken_back_by(&self, committed: &Position) -> bool {
        !matches!(self, Position::Postgres(_)) && !committed.has_all(self)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::MariaDb(list) => list.fmt(f),
            Position::MySql(set) => set.fmt(f),
            Position::Place(place) => place.fmt(f),
            Position::Postgres(place) => place.fmt(f),
            Position::Stream(place) => place.fmt(f),
        }
    }
}

/// The position up to which a stream is read, and a landmark that identifies the log there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// The position after the last transaction.
    pub position: Position,
    /// MariaDB, MySQL: the event before the position, if known. It identifies the log.
    pub landmark: Option<Landmark>,
}

/// How an earlier connection to a stream ended, for the next one that resumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// There was none: the stream starts at the server's current position.
    Never,
    /// It was on another server, whose transactions this one has replicated.
    Elsewhere,
    /// It was on this server, with the landmark of its log, if known.
    Here(Option<Landmark>),
}

/// Separates the position from the landmark in a bookmark's text. No position ends with it.
const LANDMARK: &str = " ~";

/// A position and its server. A stream is resumed by it, also by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// The server's identifier, without a space.
    pub server: Arc<str>,
    /// The position on that server.
    pub stream_position: StreamPosition,
}

/// The names of the position kinds in a bookmark's text.
const MARIADB: &str = "mariadb";
const MYSQL: &str = "mysql";
const PLACE: &str = "place";
const POSTGRES: &str = "postgres";
const CLUSTER: &str = "cluster";

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, position) = (&self.server, &self.stream_position.position);
        let kind = match position {
            Position::MariaDb(_) => MARIADB,
            Position::MySql(_) => MYSQL,
            Position::Place(_) => PLACE,
            Position::Postgres(_) => POSTGRES,
            Position::Stream(_) => CLUSTER,
        };
        write!(f, "{kind} {server} {position}")?;
        match &self.stream_position.landmark {
            Some(landmark) => write!(f, "{LANDMARK}{landmark}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Bookmark {
    type Err = NoBookmark;

    fn from_str(text: &str) -> Result<Bookmark, NoBookmark> {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().ok_or(NoBookmark);
        let (kind, server, rest) = (word()?, word()?, word()?);
        // The landmark is the last word and contains neither a space nor `~`.
        let (position, landmark) = match rest.rsplit_once(LANDMARK) {
            Some((position, text)) => (position, Some(text.parse().map_err(|_| NoBookmark)?)),
            None => (rest, None),
        };
        let position = match kind {
            MARIADB => Position::MariaDb(position.parse().map_err(|_| NoBookmark)?),
            MYSQL => Position::MySql(position.parse().map_err(|_| NoBookmark)?),
            PLACE => Position::Place(position.parse().map_err(|_| NoBookmark)?),
            POSTGRES => Position::Postgres(position.parse().map_err(|_| NoBookmark)?),
            CLUSTER => Position::Stream(position.parse().map_err(|_| NoBookmark)?),
            _ => return Err(NoBookmark),
        };
        Ok(Bookmark {
            server: server.into(),
            stream_position: StreamPosition { position, landmark },
        })
    }
}

/// The error for a text that is not a bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBookmark;

/// Identifies a transaction in a query for the transactions that all readers see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibilityMarker {
    /// MariaDB, MySQL: the position in the log after the transaction.
    Place(FilePosition),
    /// MySQL: the transaction's GTID.
    MySql(MySqlGtid),
    /// PostgreSQL: the transaction's ID (xid).
    Xid(u32),
    /// MariaDB: all transactions up to these GTIDs, whose position in the log is not known.
    Gtids(GtidList),
    /// MySQL: all transactions of this set.
    MySqlAll(GtidSet),
    /// PostgreSQL: these transactions, which were in progress when they were listed.
    Begun(Vec<u32>),
}

/// The transactions that are visible to every query from now on.
#[derive(Clone, Debug)]
pub enum Visibility {
    /// MariaDB: everything in the log up to this position.
    Place(FilePosition),
    /// MariaDB: everything in the log up to this position, with its GTIDs.
    Gtids(FilePosition, GtidList),
    /// MySQL: the transactions of this set.
    MySql(GtidSet),
    /// PostgreSQL: a snapshot that lists which transactions have finished.
    Snapshot(Snapshot),
}

impl Visibility {
    /// Returns whether the transaction, or all transactions, that `mark` identifies are visible.
    #[must_use]
    pub fn shows(&self, mark: &VisibilityMarker) -> bool {
        let has = |standing| matches!(standing, PositionOrder::Same | PositionOrder::Ahead);
        match (self, mark) {
            (
                Visibility::Place(seen) | Visibility::Gtids(seen, _),
                VisibilityMarker::Place(mark),
            ) => has(seen.compare(mark)),
            (Visibility::Gtids(_, seen), VisibilityMarker::Gtids(mark)) => has(seen.compare(mark)),
            (Visibility::MySql(seen), VisibilityMarker::MySql(mark)) => seen.has(mark),
            (Visibility::MySql(seen), VisibilityMarker::MySqlAll(mark)) => has(seen.compare(mark)),
            (Visibility::Snapshot(seen), VisibilityMarker::Xid(xid)) => seen.has_finished(*xid),
            (Visibility::Snapshot(seen), VisibilityMarker::Begun(all)) => {
                all.iter().all(|xid| seen.has_finished(*xid))
            }
            _ => false,
        }
    }
}

/// The content of a transaction.
pub enum TransactionBody {
    /// Changed rows.
    Rows(ChangedRows),
    /// An invalidation that another node, or an operator by hand, has published.
    Published(PeerInvalidation),
}

/// The changed rows of a transaction.
pub struct ChangedRows {
    /// The tags and tables that they touch by the rules.
    pub touched: TouchedTags,
    /// The rows themselves, if the stream reports them ([`RowDetail::Values`]).
    pub rows: Vec<TableChange>,
    /// The identifier of the transaction, if it has one (GTID).
    pub transaction: Option<Box<str>>,
}

impl ChangedRows {
    /// Returns whether nothing that is followed has changed.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.rows.is_empty()
    }
}

impl From<TouchedTags> for ChangedRows {
    fn from(touched: TouchedTags) -> ChangedRows {
        ChangedRows { touched, rows: Vec::new(), transaction: None }
    }
}

/// The detail in which a stream reports changed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDetail {
    /// The tags that they touch by the rules.
    Tags,
    /// Also their values, for automatic dependencies. Only MariaDB and MySQL report them.
    Values,
}

/// One transaction of the stream.
pub struct Transaction {
    /// The content to apply.
    pub made: TransactionBody,
    /// Identifies the transaction in a query for visible ones; `None`: there is no such query.
    pub mark: Option<VisibilityMarker>,
    /// The server's new identifier, if redefined tables have changed it. The changes that follow
    /// from the redefinition are part of this transaction.
    pub server: Option<Arc<str>>,
}

/// The result of reading from the stream once.
pub enum StreamRead {
    /// A complete transaction; the stream's position is after it.
    Transaction(Transaction),
    /// No change, but the position has advanced.
    Moved,
    /// No change, and the position is the same.
    Nothing,
}

/// A connection to a database that can be followed.
pub struct SourceConnection<S> {
    /// The change stream, not started yet.
    pub stream: S,
    /// When the committed position was queried. A cluster's stream: when this node has reported itself.
    pub asked: Instant,
    /// The server's identifier as it reports it, without a space.
    pub server: Arc<str>,
    /// The position that the server had committed before its schema was read.
    pub committed: Position,
    /// Identifies all transactions up to `committed` in a query for visible ones, if there is one.
    pub mark: Option<VisibilityMarker>,
    /// Whether the rules match the schema.
    pub fits: Result<(), CheckError>,
    /// Settings that work but could be improved.
    pub warnings: Vec<Warning>,
}

impl<S> SourceConnection<S> {
    /// Returns the same connection with the stream that `stream` makes of this one.
    pub fn map<T>(self, stream: impl FnOnce(S) -> T) -> SourceConnection<T> {
        let SourceConnection { stream: own, asked, server, committed, mark, fits, warnings } = self;
        let stream = stream(own);
        SourceConnection { stream, asked, server, committed, mark, fits, warnings }
    }
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To follow the database, in this detail. A missing publication or slot is created if the site allows it.
    Follow(RowDetail),
    /// To check whether it can be followed. Nothing is changed on the server.
    Check,
}

/// Logs an error if the rules do not match the schema. A missing column then counts as any value.
pub fn say_if_wrong(config: &Database, fits: &Result<(), CheckError>) {
    if let Err(error) = fits {
        let (database, reason) = (&config.name, error.as_str());
        tracing::error!(event = "database-rules-wrong", database, reason, %error);
    }
}

/// Returns the position up to which the database may discard its log; `None`: no more than before.
/// The arguments are the applied position, and the most bytes of log to keep for snapshots.
pub type Forget<'a> = &'a (dyn Fn(&Position, u64) -> Option<Position> + Sync);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_bytes_between_two_positions() {
        let at = |lsn| Position::Postgres(Lsn(lsn));
        assert_eq!(at(7).bytes_since(&at(3)), Some(4));
        assert_eq!(at(3).bytes_since(&at(7)), None);
        let other = Position::MariaDb(GtidList::default());
        assert_eq!(at(3).bytes_since(&other), None);
    }

    #[test]
    fn a_bookmark_goes_there_and_back() {
        for text in [
            "mariadb 1 0-1-7,2-3-9",
            "mariadb 1 ",
            "place 7 bin.000002:1234",
            "postgres 7/1/ab 16/B374D848",
            "cluster ab12 1700000000000-3/17",
            "mariadb 1 0-1-7 ~62696e:5f3a:4:",
            "mariadb 1  ~62696e:5f3a:4:",
            "place 7 a ~b.000002:1234 ~62696e:5f3a:4:",
        ] {
            let read: Bookmark = text.parse().expect("a bookmark");
            assert_eq!(read.to_string(), text);
        }
        for wrong in [
            "",
            "mariadb",
            "mariadb 1",
            "mariadb 1 x",
            "oracle 1 0-1-7",
            "postgres 1 0-1-7",
            "mariadb 1 0-1-7 ~x",
        ] {
            assert!(wrong.parse::<Bookmark>().is_err(), "{wrong}");
        }
    }
}
