//! The interface to each kind of database: the operations of every kind, and types for its stream
//! positions. A new kind is a variant of each enum here and a directory beside `mariadb`. No other
//! module knows how a position or a mark is represented.
//!
//! | type | what it is | what it gives |
//! |---|---|---|
//! | [`Session`] | a connection for queries | the committed position, the visible transactions |
//! | [`SourceConnection`] | a connection that can be followed | the schema check; the stream is not started |
//! | [`Stream`] | the change stream | whole transactions, each with the position after it |
//!
//! Not here: when a transaction is applied (`follow`), settled (`settle`) or waited for
//! (`barrier`).

use super::valkey::PeerInvalidation;
use super::{mariadb, postgres, valkey};
use crate::fault::{ConnectionError, StreamFault};
use ::valkey::Place;
use change_feed::schema::Schema;
use change_feed::{CheckError, TouchedTags};
use config::{Database, DatabaseKind, DatabaseServer};
use footprint::schema::SqlSchema;
use footprint::{SqlRow, TableChange};
use mysql_replication::Landmark;
use mysql_replication::position::{FilePosition, GtidList, GtidSet, MySqlGtid, PositionOrder};
use postgres_replication::position::Lsn;
use postgres_replication::snapshot::Snapshot;
use postgres_replication::wire::login::Purpose;
use statements::footprints::NearestRows;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::time::Instant;

pub use mariadb::PartnerQuery;

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
}

impl ChangedRows {
    /// Returns whether nothing that is followed has changed.
    pub fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.rows.is_empty()
    }
}

impl From<TouchedTags> for ChangedRows {
    fn from(touched: TouchedTags) -> ChangedRows {
        ChangedRows { touched, rows: Vec::new() }
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

/// A connection for queries.
pub enum Session {
    /// A connection to MariaDB or MySQL.
    MariaDb(Box<mariadb::Session>),
    /// A connection to PostgreSQL.
    Postgres(Box<postgres::Connection>),
    /// A connection to Valkey or Redis.
    Valkey(Box<valkey::Session>),
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(config: &Database) -> Result<Session, ConnectionError> {
        let server = &config.server;
        match &server.kind {
            DatabaseKind::MariaDb => {
                let opened = mariadb::Session::open(server).await;
                opened.map(|session| Session::MariaDb(Box::new(session)))
            }
            DatabaseKind::Postgres(_) => {
                let opened = postgres::Connection::open(server, Purpose::Statements).await;
                opened.map(|connection| Session::Postgres(Box::new(connection)))
            }
            DatabaseKind::Valkey(_) => {
                let opened = valkey::Session::open(config).await;
                opened.map(|session| Session::Valkey(Box::new(session)))
            }
        }
    }

    /// Queries the database's committed position. It includes every transaction whose COMMIT was
    /// acknowledged before this call.
    ///
    /// # Errors
    /// The query failed; the connection must not be used again.
    pub async fn committed(&mut self) -> Result<Position, ConnectionError> {
        match self {
            Session::MariaDb(session) => session.committed().await,
            Session::Postgres(connection) => postgres::committed(connection).await,
            Session::Valkey(session) => session.committed().await,
        }
    }

    /// Queries which transactions are visible to all readers, in the representation of `mark`.
    /// `None`: it cannot report it.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    pub async fn visible(
        &mut self,
        mark: &VisibilityMarker,
    ) -> Result<Option<Visibility>, ConnectionError> {
        match self {
            Session::MariaDb(session) => session.visible(mark).await,
            Session::Postgres(connection) => postgres::visible(connection).await,
            Session::Valkey(_) => Ok(None),
        }
    }

    /// Looks up the partners of a changed row. `None`: they are not known.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    pub async fn find(
        &mut self,
        query: &PartnerQuery,
    ) -> Result<Option<Vec<SqlRow<'static>>>, ConnectionError> {
        match self {
            Session::MariaDb(session) => session.find(query).await,
            Session::Postgres(_) | Session::Valkey(_) => Ok(None),
        }
    }

    /// Looks up the rows near changed rows, and a position of the log after everything that the look-ups have seen.
    /// `None`: that position is not known.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    pub async fn find_nearest(
        &mut self,
        queries: &[PartnerQuery],
    ) -> Result<Option<(NearestRows, Position)>, ConnectionError> {
        match self {
            Session::MariaDb(session) => session.find_nearest(queries).await,
            Session::Postgres(_) | Session::Valkey(_) => Ok(None),
        }
    }
}

/// A setting that works but could be improved: the name of the log event, and a sentence.
pub type Warning = (&'static str, String);

/// A connection to a database that can be followed.
pub struct SourceConnection {
    /// The change stream, not started yet.
    pub stream: Stream,
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

/// Reads the tables that rules can be proposed for, and a sentence for each table that has an
/// obstacle.
///
/// # Errors
/// The tables could not be queried.
pub async fn schema(server: &DatabaseServer) -> Result<(Schema, Vec<String>), StreamFault> {
    match &server.kind {
        DatabaseKind::MariaDb => Ok((mariadb::schema(server).await?, Vec::new())),
        DatabaseKind::Postgres(_) => Ok(postgres::schema(server).await?),
        DatabaseKind::Valkey(_) => Ok((Schema::default(), Vec::new())),
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

/// Connects, and checks whether the database can be followed.
///
/// # Errors
/// It cannot be reached, or cannot be followed.
pub async fn connect(config: &Arc<Database>, aim: Aim) -> Result<SourceConnection, StreamFault> {
    match &config.server.kind {
        DatabaseKind::MariaDb => {
            let detail = match aim {
                Aim::Follow(detail) => detail,
                Aim::Check => RowDetail::Tags,
            };
            mariadb::connect(config, detail).await
        }
        DatabaseKind::Postgres(_) => postgres::connect(config, aim).await,
        DatabaseKind::Valkey(_) => valkey::connect(config, aim).await,
    }
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

/// The change stream of a database, of one kind.
pub enum Stream {
    /// MariaDB's or MySQL's binary log.
    MariaDb(Box<mariadb::Stream>),
    /// PostgreSQL's logical replication stream.
    Postgres(Box<postgres::Stream>),
    /// A stream of Valkey or Redis.
    Valkey(Box<valkey::Stream>),
}

impl Stream {
    /// Requests all transactions after `from`. `left` says how the earlier connection ended.
    ///
    /// # Errors
    /// The stream could not be started.
    pub async fn start(&mut self, from: &Position, left: Resume) -> Result<(), StreamFault> {
        match self {
            Stream::MariaDb(stream) => stream.start(from, left).await,
            Stream::Postgres(stream) => stream.start(from).await,
            Stream::Valkey(stream) => {
                stream.start(from);
                Ok(())
            }
        }
    }

    /// Reads the next transaction. The previous one must be applied: the call may confirm its
    /// position to the database, as far as `forget` allows. Table definitions that it changed are
    /// read first.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next(&mut self, forget: Forget<'_>) -> Result<StreamRead, StreamFault> {
        match self {
            Stream::MariaDb(stream) => stream.next().await,
            Stream::Postgres(stream) => stream.next(forget).await,
            Stream::Valkey(stream) => stream.next().await,
        }
    }

    /// Returns the tables of the database, once after they were read; `None` if rows are not reported with their
    /// values. To be called before the stream is started, and after each read.
    #[must_use]
    pub fn take_definitions(&mut self) -> Option<SqlSchema> {
        match self {
            Stream::MariaDb(stream) => stream.take_definitions(),
            Stream::Postgres(_) | Stream::Valkey(_) => None,
        }
    }

    /// Returns the position after the last returned transaction; `None`: not known yet.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match self {
            Stream::MariaDb(stream) => stream.position(),
            Stream::Postgres(stream) => Some(stream.position()),
            Stream::Valkey(stream) => Some(stream.position()),
        }
    }

    /// Returns the same position, with the landmark that identifies the log there.
    #[must_use]
    pub fn reached(&self) -> Option<StreamPosition> {
        let position = self.position()?;
        let landmark = match self {
            Stream::MariaDb(stream) => stream.landmark(),
            Stream::Postgres(_) | Stream::Valkey(_) => None,
        };
        Some(StreamPosition { position, landmark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_places() {
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
