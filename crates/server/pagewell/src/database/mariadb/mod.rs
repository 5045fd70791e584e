//! MariaDB and MySQL as a source of changes: what they answer to the questions of `source`, and their
//! stream.
//!
//! | file | |
//! |---|---|
//! | `connection` | a login, statements, the packets of the stream |
//! | `naming` | by what places of the log are named; what is committed, what is visible |
//! | `schema` | tables, columns and foreign keys, as the rules need them |
//! | `stream` | connects, reads, hands out whole transactions |
//! | `touch` | a transaction → what it touches |

mod connection;
mod naming;
mod schema;
mod stream;
mod touch;

pub use stream::{Stream, connect};
pub use touch::Tables;

use super::source::{Failed, Mark, Position, Seen};
use crate::config::DatabaseServer;
use change_feed::schema::Schema;
use connection::Connection;
use mysql_replication::position::{FilePosition, GtidList};
use naming::Naming;

/// A connection for questions.
pub struct Session {
    connection: Connection,
    naming: Naming,
    /// Which transactions everybody sees, at the place that was asked about last.
    seen: Option<(FilePosition, Option<GtidList>)>,
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn open(server: &DatabaseServer) -> Result<Session, Failed> {
        let mut connection = Connection::open(server).await?;
        let naming = Naming::of(&mut connection, server).await?;
        Ok(Session { connection, naming, seen: None })
    }

    /// What is committed.
    ///
    /// # Errors
    /// Why it could not be asked.
    pub async fn committed(&mut self) -> Result<Position, Failed> {
        self.naming.committed(&mut self.connection).await
    }

    /// Up to where everybody sees, in the words of this mark. Where that is a list of transactions, it is
    /// asked for once for each place: as long as a commit waits, the place is the same.
    ///
    /// # Errors
    /// Why it could not be asked.
    pub async fn visible(&mut self, mark: &Mark) -> Result<Option<Seen>, Failed> {
        let seen = self.naming.visible(&mut self.connection).await?;
        let (Some(Seen::Place(place)), Mark::Gtids(_)) = (&seen, mark) else { return Ok(seen) };
        if self.seen.as_ref().is_none_or(|(known, _)| known != place) {
            let list = naming::up_to(&mut self.connection, place).await?;
            self.seen = Some((place.clone(), list));
        }
        let list = self.seen.as_ref().and_then(|(_, list)| list.clone());
        Ok(list.map(|list| Seen::Gtids(place.clone(), list)).or(seen))
    }
}

/// The tables of a database.
///
/// # Errors
/// Why they could not be asked for.
pub async fn schema(server: &DatabaseServer) -> Result<Schema, Failed> {
    let mut connection = Connection::open(server).await?;
    Ok(schema::read(&mut connection, &server.account.database).await?.0)
}
