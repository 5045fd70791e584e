//! The interface to each kind of database: the operations of every kind. A new kind is a variant of
//! each enum here and in `stream_types`, and a directory beside `mariadb`.
//!
//! | type | what it is | what it gives |
//! |---|---|---|
//! | [`Session`] | a connection for queries | the committed position, the visible transactions |
//! | [`SourceConnection`] | a connection that can be followed | the schema check; the stream is not started |
//! | [`Stream`] | the change stream | whole transactions, each with the position after it |
//!
//! Not here: when a transaction is applied (`follow`), settled (`settle`) or waited for
//! (`barrier`).

use super::stream_types::{
    Aim, Forget, Position, Resume, RowDetail, SourceConnection, StreamPosition, StreamRead,
    Transaction, TransactionBody, Visibility, VisibilityMarker,
};
use super::{mariadb, postgres};
use change_feed::schema::Schema;
use cluster::EntryRead;
use config::{Database, DatabaseKind, DatabaseServer};
use database_links::fault::{ConnectionError, StreamFault};
use footprint::SqlRow;
use footprint::schema::SqlSchema;
use postgres_replication::wire::login::Purpose;
use statements::footprints::NearestRows;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub use mariadb::PartnerQuery;

/// A connection for queries.
pub enum Session {
    /// A connection to MariaDB or MySQL.
    MariaDb(Box<mariadb::Session>),
    /// A connection to PostgreSQL.
    Postgres(Box<postgres::Connection>),
    /// A connection to Valkey or Redis.
    Valkey(Box<cluster::Session>),
}

impl Session {
    /// Connects and logs in. The server ends a look-up that takes longer than `lookup_time_max`, if it can.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(
        config: &Database,
        lookup_time_max: Duration,
    ) -> Result<Session, ConnectionError> {
        let server = &config.server;
        match &server.kind {
            DatabaseKind::MariaDb => {
                let opened = mariadb::Session::open(server, lookup_time_max).await;
                opened.map(|session| Session::MariaDb(Box::new(session)))
            }
            DatabaseKind::Postgres(_) => {
                let opened = postgres::Connection::open(server, Purpose::Statements).await;
                opened.map(|connection| Session::Postgres(Box::new(connection)))
            }
            DatabaseKind::Valkey(_) => {
                let opened = cluster::Session::open(config).await;
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
            Session::Valkey(session) => session.committed().await.map(Position::Stream),
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

/// Connects, and checks whether the database can be followed.
///
/// # Errors
/// It cannot be reached, or cannot be followed.
pub async fn connect(
    config: &Arc<Database>,
    aim: Aim,
) -> Result<SourceConnection<Stream>, StreamFault> {
    match &config.server.kind {
        DatabaseKind::MariaDb => {
            let detail = match aim {
                Aim::Follow(detail) => detail,
                Aim::Check => RowDetail::Tags,
            };
            let connected = mariadb::connect(config, detail).await?;
            Ok(connected.map(|stream| Stream::MariaDb(Box::new(stream))))
        }
        DatabaseKind::Postgres(_) => {
            let connected = postgres::connect(config, aim).await?;
            Ok(connected.map(|stream| Stream::Postgres(Box::new(stream))))
        }
        DatabaseKind::Valkey(_) => {
            let is_followed = matches!(aim, Aim::Follow(_));
            let found = cluster::connect(config, is_followed).await?;
            Ok(SourceConnection {
                stream: Stream::Valkey(Box::new(found.stream)),
                asked: found.asked,
                server: found.server,
                committed: Position::Stream(found.committed),
                mark: None,
                fits: Ok(()),
                warnings: found.warnings,
            })
        }
    }
}

/// The change stream of a database, of one kind.
pub enum Stream {
    /// MariaDB's or MySQL's binary log.
    MariaDb(Box<mariadb::Stream>),
    /// PostgreSQL's logical replication stream.
    Postgres(Box<postgres::Stream>),
    /// A stream of Valkey or Redis.
    Valkey(Box<cluster::Stream>),
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
                if let Position::Stream(place) = from {
                    stream.start(*place);
                }
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
            Stream::Valkey(stream) => Ok(match stream.next().await? {
                EntryRead::Published(invalidation) => {
                    let made = TransactionBody::Published(invalidation);
                    StreamRead::Transaction(Transaction { made, mark: None, server: None })
                }
                EntryRead::Moved => StreamRead::Moved,
                EntryRead::Nothing => StreamRead::Nothing,
            }),
        }
    }

    /// Reads once from the stream, if something arrives until then and no definitions have to be read first. Only for
    /// streams that report rows with their values.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next_until(&mut self, until: Instant) -> Result<Option<StreamRead>, StreamFault> {
        match self {
            Stream::MariaDb(stream) => stream.next_until(until).await,
            Stream::Postgres(_) | Stream::Valkey(_) => Ok(None),
        }
    }

    /// Returns whether all transactions whose rows are visible have been read, if they are visible before this position
    /// of the log.
    #[must_use]
    pub fn has_read(&self, end: &Position) -> bool {
        match self {
            Stream::MariaDb(stream) => stream.has_read(end),
            Stream::Postgres(_) | Stream::Valkey(_) => false,
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
            Stream::Valkey(stream) => Some(Position::Stream(stream.position())),
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
