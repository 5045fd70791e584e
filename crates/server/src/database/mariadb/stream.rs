//! MariaDB's stream: connects, looks whether it can be followed, reads whole transactions and says
//! what they touch.
//!
//! Invariants: definitions that changed are read before the next event is; the position is that of
//! transactions that were handed out. Not here: what is done with them.

use super::connection::Connection;
use super::schema::{self, Shapes};
use super::touch::{self, Definitions, Tables};
use crate::config::Database;
use crate::database::source::{
    self, Broken, Connected, Failed, Mark, Position, Read, Then, Transaction,
};
use change_feed::Touched;
use change_feed::schema::Schema;
use mysql_replication::position::{GtidList, Gtids, Start};
use mysql_replication::wire::greeting::Flavour;
use mysql_replication::wire::response::ServerErrorKind;
use mysql_replication::{Limits, Step, StreamRefused, Transactions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;

/// So many changes of a transaction are read before others get their turn.
const TURN: usize = 64;

/// Connects, and looks whether the server can be followed.
///
/// # Errors
/// Why not.
pub async fn connect(config: &Arc<Database>) -> Result<Connected, Broken> {
    const ASK: &str =
        "SELECT @@server_id, @@log_bin, @@global.binlog_format, @@global.gtid_binlog_pos";
    let mut connection = Connection::open(&config.server).await?;
    if connection.flavour() != Flavour::MariaDb {
        return Err(Broken::unusable("this is no MariaDB; others are not followed yet"));
    }
    let rows = connection.query(ASK).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    if text(1) != "1" {
        let why = "the server writes no binary log: set log_bin, and binlog_format = ROW";
        return Err(Broken::unusable(why));
    }
    if text(2) != "ROW" {
        let (database, format) = (&config.name, text(2));
        tracing::warn!(event = "database-format", database, format, "set binlog_format = ROW");
    }
    let committed = text(3).parse().map_err(|_| Broken::unusable(text(3)))?;
    let (schema, shapes) = schema::read(&mut connection, &config.server.account.database).await?;
    let fits = config.rules.check(&schema);
    let committed = Position::MariaDb(committed);
    let tables = watched(config, schema, shapes);
    let transactions = Transactions::new(&start_of(&committed), Limits::default(), tables);
    let config = config.clone();
    let stream = Stream { config, connection, transactions, definitions: Definitions::Same };
    let stream = source::Stream::MariaDb(Box::new(stream));
    Ok(Connected { stream, server: text(0).into(), committed, fits })
}

/// The stream of one connection.
pub struct Stream {
    config: Arc<Database>,
    connection: Connection,
    transactions: Transactions<Tables>,
    /// Whether the last transaction has changed any.
    definitions: Definitions,
}

impl Stream {
    /// Asks for everything after `from`.
    ///
    /// # Errors
    /// Why there is no stream.
    pub async fn start(&mut self, from: &Position) -> Result<(), Broken> {
        let start = start_of(from);
        let tables = std::mem::take(self.transactions.watch());
        self.transactions = Transactions::new(&start, Limits::default(), tables);
        Ok(self.connection.start_stream(own_id(), &start).await?)
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// Why the stream has come to an end.
    pub async fn next(&mut self) -> Result<Read, Broken> {
        if self.definitions == Definitions::Changed {
            self.read_definitions().await?;
        }
        let packet = self.connection.next_event().await?;
        match self.transactions.read(&packet)? {
            Step::Transaction(transaction) => Ok(Read::Transaction(self.touch(&transaction).await)),
            Step::Nothing | Step::Heartbeat => Ok(Read::Nothing),
            Step::Ended => Err(Failed::Io(io::ErrorKind::UnexpectedEof.into()).into()),
        }
    }

    /// Up to where transactions were handed out.
    pub fn position(&self) -> Position {
        match &self.transactions.position().gtids {
            Gtids::MariaDb(list) => Position::MariaDb(list.clone()),
            // The stream was started by a list.
            Gtids::MySql(_) | Gtids::None => Position::MariaDb(GtidList::default()),
        }
    }

    async fn touch(&mut self, transaction: &mysql_replication::Transaction) -> Transaction {
        let mut touched = Touched::default();
        for (at, change) in transaction.changes.iter().enumerate() {
            self.transactions.watch().touch(change, &mut touched);
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        let changed = |change| touch::definitions(change) == Definitions::Changed;
        if transaction.changes.iter().any(changed) {
            self.definitions = Definitions::Changed;
        }
        let place = self.transactions.position().file.clone();
        Transaction { touched, mark: place.map(Mark::Place) }
    }

    /// Asks for the schema again, on a connection of its own.
    async fn read_definitions(&mut self) -> Result<(), Broken> {
        let config = self.config.clone();
        let mut connection = Connection::open(&config.server).await?;
        let name = &config.server.account.database;
        let (schema, shapes) = schema::read(&mut connection, name).await?;
        source::say_if_wrong(&config, &config.rules.check(&schema));
        *self.transactions.watch() = watched(&config, schema, shapes);
        self.transactions.forget_tables();
        self.definitions = Definitions::Same;
        Ok(())
    }
}

fn start_of(from: &Position) -> Start {
    match from {
        Position::MariaDb(list) => Start::MariaDb(list.clone()),
        // Another kind's: nothing of it is here.
        Position::Postgres(_) => Start::MariaDb(GtidList::default()),
    }
}

fn watched(config: &Database, schema: Schema, shapes: Shapes) -> Tables {
    let feed = change_feed::Feed::new(&config.rules, &schema);
    Tables::new(config.server.account.database.clone(), feed, shapes)
}

/// The server id that this reader goes by: one that nobody else has.
fn own_id() -> u32 {
    let random = RandomState::new().build_hasher().finish() as u32;
    // High numbers are rare among people's own.
    random | 1 << 31
}

impl From<StreamRefused> for Broken {
    fn from(refused: StreamRefused) -> Broken {
        let then = match &refused {
            StreamRefused::Server(error) if error.kind() == ServerErrorKind::PositionGone => {
                Then::Gap
            }
            StreamRefused::Server(_) | StreamRefused::Event(_) => Then::Again,
        };
        Broken { name: refused.as_str(), text: refused.to_string(), then }
    }
}
