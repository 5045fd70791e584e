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

use super::source::{Failed, Position, Seen};
use crate::config::DatabaseServer;
use change_feed::schema::Schema;
use connection::Connection;
use naming::Naming;

/// A connection for questions.
pub struct Session {
    connection: Connection,
    naming: Naming,
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn open(server: &DatabaseServer) -> Result<Session, Failed> {
        let mut connection = Connection::open(server).await?;
        let naming = Naming::of(&mut connection, server).await?;
        Ok(Session { connection, naming })
    }

    /// What is committed.
    ///
    /// # Errors
    /// Why it could not be asked.
    pub async fn committed(&mut self) -> Result<Position, Failed> {
        self.naming.committed(&mut self.connection).await
    }

    /// Up to where everybody sees.
    ///
    /// # Errors
    /// Why it could not be asked.
    pub async fn visible(&mut self) -> Result<Option<Seen>, Failed> {
        self.naming.visible(&mut self.connection).await
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
