//! The seam between following a database and the kinds of database: what every kind can do, and the
//! words in which it says how far it is. A further kind is a variant of each enum here and a directory
//! beside `mariadb`; nothing outside them knows what a position or a mark is made of.
//!
//! | | | |
//! |---|---|---|
//! | [`Session`] | a connection for questions | what is committed, what everybody sees |
//! | [`Connected`] | a connection that can be followed | held against the rules, not started |
//! | [`Stream`] | the change stream | whole transactions, each with the position after it |
//!
//! Not here: when anything is applied (`follow`), settled (`settle`) or waited for (`barrier`).

use super::valkey::Heard;
use super::{mariadb, postgres, valkey};
use crate::config::{Database, DatabaseKind, DatabaseServer};
use ::valkey::Place;
use change_feed::schema::Schema;
use change_feed::{CheckError, Touched};
use mysql_replication::Landmark;
use mysql_replication::position::{FilePosition, GtidList, GtidSet, MySqlGtid, PositionOrder};
use postgres_replication::position::Lsn;
use postgres_replication::snapshot::Snapshot;
use postgres_replication::wire::login::Purpose;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

/// How far a stream is read, or a database has committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// MariaDB: the last transaction of each domain.
    MariaDb(GtidList),
    /// MySQL: all its transactions.
    MySql(GtidSet),
    /// MariaDB, MySQL: a place in the log of one server.
    Place(FilePosition),
    /// PostgreSQL: a place in the log.
    Postgres(Lsn),
    /// Valkey, Redis: a place in a stream.
    Stream(Place),
}

impl Position {
    /// Whether everything of `other` is in this one. Positions of two kinds have nothing in common.
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

    /// How many bytes of a log lie between `before` and this place; none where nobody can say.
    #[must_use]
    pub fn bytes_since(&self, before: &Position) -> Option<u64> {
        match (self, before) {
            (Position::Postgres(own), Position::Postgres(before)) => own.0.checked_sub(before.0),
            _ => None,
        }
    }

    /// Whether it means the same to every server that has replicated it, so that the stream can be
    /// taken up at another: it refuses a position that it does not have.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        match self {
            Position::MariaDb(list) => !list.last().is_empty(),
            Position::MySql(set) => *set != GtidSet::default(),
            Position::Place(_) | Position::Postgres(_) | Position::Stream(_) => false,
        }
    }

    /// Whether a server that has committed this much has lost some of what it once sent: its log is
    /// another one. MariaDB counts a transaction as committed before it sends it. MySQL counts it later, so
    /// what it sends may be more; PostgreSQL says so itself when a stream begins.
    #[must_use]
    pub fn is_lost_by(&self, committed: &Position) -> bool {
        if let (Position::Stream(own), Position::Stream(committed)) = (self, committed) {
            return own.is_lost_by(committed);
        }
        matches!(self, Position::MariaDb(_) | Position::Place(_)) && !committed.has_all(self)
    }

    /// The same, where this is what the server itself has said of itself before.
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

/// How far a stream is read, and by what its log is known again there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// How far.
    pub position: Position,
    /// MariaDB, MySQL: what stands in the log before it, where that is known.
    pub landmark: Option<Landmark>,
}

/// How a stream was left that is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Not at all: it begins where the server is.
    Never,
    /// At another server, whose transactions this one has replicated.
    Elsewhere,
    /// At this server; by what its log is known again, if that is known.
    Here(Option<Landmark>),
}

/// What stands before a landmark in a bookmark's text; no position has it at its end.
const LANDMARK: &str = " ~";

/// A position, and the server whose it is: what a stream is taken up by, also by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// What the server says it is; without a space.
    pub server: Arc<str>,
    /// How far.
    pub reached: Reached,
}

/// The kinds of positions, as they are written.
const MARIADB: &str = "mariadb";
const MYSQL: &str = "mysql";
const PLACE: &str = "place";
const POSTGRES: &str = "postgres";
const STREAM: &str = "stream";

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, position) = (&self.server, &self.reached.position);
        let kind = match position {
            Position::MariaDb(_) => MARIADB,
            Position::MySql(_) => MYSQL,
            Position::Place(_) => PLACE,
            Position::Postgres(_) => POSTGRES,
            Position::Stream(_) => STREAM,
        };
        write!(f, "{kind} {server} {position}")?;
        match &self.reached.landmark {
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
        // A landmark is the last word, and has neither of the two characters.
        let (position, landmark) = match rest.rsplit_once(LANDMARK) {
            Some((position, text)) => (position, Some(text.parse().map_err(|_| NoBookmark)?)),
            None => (rest, None),
        };
        let position = match kind {
            MARIADB => Position::MariaDb(position.parse().map_err(|_| NoBookmark)?),
            MYSQL => Position::MySql(position.parse().map_err(|_| NoBookmark)?),
            PLACE => Position::Place(position.parse().map_err(|_| NoBookmark)?),
            POSTGRES => Position::Postgres(position.parse().map_err(|_| NoBookmark)?),
            STREAM => Position::Stream(position.parse().map_err(|_| NoBookmark)?),
            _ => return Err(NoBookmark),
        };
        Ok(Bookmark { server: server.into(), reached: Reached { position, landmark } })
    }
}

/// A text that is no bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBookmark;

/// What a transaction is known by when the database says how far everybody sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// MariaDB, MySQL: the place in the log after it.
    Place(FilePosition),
    /// MySQL: its name.
    MySql(MySqlGtid),
    /// PostgreSQL: its number.
    Xid(u32),
    /// MariaDB: all up to here, of which the place in the log is not known.
    Gtids(GtidList),
    /// MySQL: all of these.
    MySqlAll(GtidSet),
    /// PostgreSQL: all of these, which had begun and not finished by then.
    Begun(Vec<u32>),
}

/// How far everybody sees who asks from now on.
#[derive(Clone, Debug)]
pub enum Seen {
    /// MariaDB: all that is in the log up to here.
    Place(FilePosition),
    /// MariaDB: the same, and which transactions that are.
    Gtids(FilePosition, GtidList),
    /// MySQL: these.
    MySql(GtidSet),
    /// PostgreSQL: which transactions have finished.
    Snapshot(Snapshot),
}

impl Seen {
    /// Whether a transaction, or all that a mark stands for, is visible.
    #[must_use]
    pub fn shows(&self, mark: &Mark) -> bool {
        let has = |standing| matches!(standing, PositionOrder::Same | PositionOrder::Ahead);
        match (self, mark) {
            (Seen::Place(seen) | Seen::Gtids(seen, _), Mark::Place(mark)) => {
                has(seen.compare(mark))
            }
            (Seen::Gtids(_, seen), Mark::Gtids(mark)) => has(seen.compare(mark)),
            (Seen::MySql(seen), Mark::MySql(mark)) => seen.has(mark),
            (Seen::MySql(seen), Mark::MySqlAll(mark)) => has(seen.compare(mark)),
            (Seen::Snapshot(seen), Mark::Xid(xid)) => seen.has_finished(*xid),
            (Seen::Snapshot(seen), Mark::Begun(all)) => {
                all.iter().all(|xid| seen.has_finished(*xid))
            }
            _ => false,
        }
    }
}

/// What a transaction is made of.
pub enum Made {
    /// Rows, and what they touch.
    Rows(Touched),
    /// What another machine, or somebody by hand, has told.
    Told(Heard),
}

/// One transaction of the stream.
pub struct Transaction {
    /// What it touches.
    pub made: Made,
    /// By what it is known to be visible; none: nothing can show it.
    pub mark: Option<Mark>,
    /// What the server is called from now on, if that is another name than before: its tables were
    /// defined anew, and what that touches is in here.
    pub server: Option<Arc<str>>,
}

/// What came of reading on.
pub enum Read {
    /// A whole transaction; the stream's position is after it.
    Transaction(Transaction),
    /// Nothing that changes anything; the position has moved.
    Moved,
    /// Nothing that changes anything.
    Nothing,
}

/// A connection for questions.
pub enum Session {
    /// To MariaDB.
    MariaDb(Box<mariadb::Session>),
    /// To PostgreSQL.
    Postgres(Box<postgres::Connection>),
    /// To Valkey or Redis.
    Valkey(Box<valkey::Session>),
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn open(config: &Database) -> Result<Session, Failed> {
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

    /// What the database has committed: everything whose COMMIT was answered before this was asked.
    ///
    /// # Errors
    /// Why it could not be asked; the connection is of no use any more.
    pub async fn committed(&mut self) -> Result<Position, Failed> {
        match self {
            Session::MariaDb(session) => session.committed().await,
            Session::Postgres(connection) => postgres::committed(connection).await,
            Session::Valkey(session) => session.committed().await,
        }
    }

    /// How far everybody sees, in the words of this mark; none if the database cannot say.
    ///
    /// # Errors
    /// As [`committed`](Self::committed).
    pub async fn visible(&mut self, mark: &Mark) -> Result<Option<Seen>, Failed> {
        match self {
            Session::MariaDb(session) => session.visible(mark).await,
            Session::Postgres(connection) => postgres::visible(connection).await,
            Session::Valkey(_) => Ok(None),
        }
    }
}

/// What could be better: the log event, and a sentence.
pub type Warning = (&'static str, String);

/// A database that was connected to and can be followed.
pub struct Connected {
    /// Its stream, not started yet.
    pub stream: Stream,
    /// Which server it is, in its own words, without a space.
    pub server: Arc<str>,
    /// What it had committed before its schema was read.
    pub committed: Position,
    /// By what all of that is known to be visible; none: nothing can show it.
    pub mark: Option<Mark>,
    /// Whether the rules fit the schema.
    pub fits: Result<(), CheckError>,
    /// What works, and would work better set up otherwise.
    pub warnings: Vec<Warning>,
}

/// The tables that rules can be proposed for, and of each other what stands in the way: a sentence.
///
/// # Errors
/// Why they could not be asked for.
pub async fn schema(server: &DatabaseServer) -> Result<(Schema, Vec<String>), Broken> {
    match &server.kind {
        DatabaseKind::MariaDb => Ok((mariadb::schema(server).await?, Vec::new())),
        DatabaseKind::Postgres(_) => Ok(postgres::schema(server).await?),
        DatabaseKind::Valkey(_) => Ok((Schema::default(), Vec::new())),
    }
}

/// What a database is connected to for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To be followed: what is missing is made, where the site has said so.
    Follow,
    /// To see whether it could be: nothing is changed.
    Check,
}

/// Connects, and looks whether the database can be followed.
///
/// # Errors
/// Why not.
pub async fn connect(config: &Arc<Database>, aim: Aim) -> Result<Connected, Broken> {
    match &config.server.kind {
        DatabaseKind::MariaDb => mariadb::connect(config).await,
        DatabaseKind::Postgres(_) => postgres::connect(config, aim).await,
        DatabaseKind::Valkey(_) => valkey::connect(config, aim).await,
    }
}

/// Rules that do not fit go on, with what is not there being any value.
pub fn say_if_wrong(config: &Database, fits: &Result<(), CheckError>) {
    if let Err(error) = fits {
        let (database, reason) = (&config.name, error.as_str());
        tracing::error!(event = "database-rules-wrong", database, reason, %error);
    }
}

/// Asked with what is applied, and how many bytes of its log the database may keep for us: up to where it
/// need not keep it any more; none: no further than before.
pub type Forget<'a> = &'a (dyn Fn(&Position, u64) -> Option<Position> + Sync);

/// A change stream.
pub enum Stream {
    /// Of MariaDB.
    MariaDb(Box<mariadb::Stream>),
    /// Of PostgreSQL.
    Postgres(Box<postgres::Stream>),
    /// Of Valkey or Redis.
    Valkey(Box<valkey::Stream>),
}

impl Stream {
    /// Asks for everything after `from`, where it was left.
    ///
    /// # Errors
    /// Why there is no stream.
    pub async fn start(&mut self, from: &Position, left: Left) -> Result<(), Broken> {
        match self {
            Stream::MariaDb(stream) => stream.start(from, left).await,
            Stream::Postgres(stream) => stream.start(from).await,
            Stream::Valkey(stream) => {
                stream.start(from);
                Ok(())
            }
        }
    }

    /// Reads on. To be called when what was read before is applied: the database may be told so, as far
    /// as `forget` lets it. Definitions that a transaction has changed are known when the next is read.
    ///
    /// # Errors
    /// Why the stream has come to an end.
    pub async fn next(&mut self, forget: Forget<'_>) -> Result<Read, Broken> {
        match self {
            Stream::MariaDb(stream) => stream.next().await,
            Stream::Postgres(stream) => stream.next(forget).await,
            Stream::Valkey(stream) => stream.next().await,
        }
    }

    /// Up to where transactions were handed out; none: it is not known yet.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        match self {
            Stream::MariaDb(stream) => stream.position(),
            Stream::Postgres(stream) => Some(stream.position()),
            Stream::Valkey(stream) => Some(stream.position()),
        }
    }

    /// The same, with what the log is known by there.
    #[must_use]
    pub fn reached(&self) -> Option<Reached> {
        let position = self.position()?;
        let landmark = match self {
            Stream::MariaDb(stream) => stream.landmark(),
            Stream::Postgres(_) | Stream::Valkey(_) => None,
        };
        Some(Reached { position, landmark })
    }
}

/// Why a connection failed.
#[derive(Debug)]
pub enum Failed {
    /// The network, or silence.
    Io(io::Error),
    /// The database says no, or something that cannot be read: its name, and the sentence.
    Said(&'static str, String),
}

impl Failed {
    /// Its name, as in the log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Failed::Io(_) => "connection",
            Failed::Said(name, _) => name,
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Io(error) => error.fmt(f),
            Failed::Said(_, text) => f.write_str(text),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

/// Why the stream is not followed any more.
#[derive(Debug)]
pub struct Broken {
    /// Its name, as in the log.
    pub name: &'static str,
    /// A sentence.
    pub text: String,
    /// What can be done.
    pub then: Then,
}

/// What can be done about a stream that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Try again, from the position.
    Again,
    /// Try again from where the database is: the position is gone, and changes may have been missed.
    Gap,
    /// The database, as it is set up, cannot be followed; an operator has to mend that.
    Unusable,
    /// Both: the position is gone, and an operator has to mend that.
    Lost,
}

impl Broken {
    /// A database that cannot be followed; a sentence for the operator.
    pub fn unusable(text: impl Into<String>) -> Broken {
        Broken { name: "unusable", text: text.into(), then: Then::Unusable }
    }
}

impl From<Failed> for Broken {
    fn from(failed: Failed) -> Broken {
        let then = match &failed {
            Failed::Said(name, _) if FOR_THE_OPERATOR.contains(name) => Then::Unusable,
            _ => Then::Again,
        };
        Broken { name: failed.as_str(), text: failed.to_string(), then }
    }
}

/// What no further attempt mends.
const FOR_THE_OPERATOR: [&str; 13] = [
    "bad-certificate",
    "no-binary-log",
    "no-tls",
    "access-denied",
    "not-permitted",
    "no-such-table",
    "unknown-plugin",
    "password-in-the-clear",
    "old-server",
    "no-stream",
    "no-such-database",
    "unknown-method",
    "bad-proof",
];

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
            "stream ab12 1700000000000-3/17",
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
