//! MariaDB and MySQL as a source of changes: the queries of `source`, and the replication stream.
//!
//! | file | contents |
//! |---|---|
//! | `connection` | login, statements, the packets of the stream |
//! | `naming` | the representation of log positions; committed and visible positions |
//! | `schema` | tables, columns and foreign keys, as the rules need them |
//! | `stream` | connects, reads, returns whole transactions |
//! | `touch` | converts a transaction to the tags and tables that it touches |

mod connection;
mod naming;
mod schema;
mod stream;
mod touch;

pub use stream::{Stream, connect};
pub use touch::Tables;

use super::source::{Position, Visibility, VisibilityMarker};
use crate::fault::ConnectionError;
use change_feed::schema::Schema;
use config::DatabaseServer;
use connection::Connection;
use mysql_replication::position::{FilePosition, GtidList};
use naming::Naming;

/// A connection for queries.
pub struct Session {
    connection: Connection,
    naming: Naming,
    /// The transactions that are visible at the log position of the last query.
    seen: Option<(FilePosition, Option<GtidList>)>,
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The connection, the login or a query failed.
    pub async fn open(server: &DatabaseServer) -> Result<Session, ConnectionError> {
        let mut connection = Connection::open(server).await?;
        let naming = Naming::of(&mut connection, server).await?;
        Ok(Session { connection, naming, seen: None })
    }

    /// Returns the committed position.
    ///
    /// # Errors
    /// The query failed.
    pub async fn committed(&mut self) -> Result<Position, ConnectionError> {
        self.naming.committed(&mut self.connection).await
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
    Ok(schema::read(&mut connection, &server.account.database).await?.0)
}
