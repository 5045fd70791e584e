//! MariaDB's stream: connects, looks whether it can be followed, reads whole transactions and says
//! what they touch.
//!
//! Invariants: definitions that changed are read before the next event is; the position is that of
//! transactions that were handed out. Not here: what is done with them.

use super::connection::Connection;
use super::naming::{self, Naming};
use super::schema::{self, Shapes};
use super::touch::{self, Definitions, Tables};
use crate::config::Database;
use crate::database::source::{self, Broken, Connected, Failed, Position, Read, Then, Transaction};
use change_feed::Touched;
use change_feed::schema::Schema;
use mysql_replication::wire::greeting::Flavour;
use mysql_replication::wire::response::ServerErrorKind;
use mysql_replication::{Limits, Step, StreamRefused, Transactions, What, Why};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;

/// So many changes of a transaction are read before others get their turn.
const TURN: usize = 64;
/// How many tables a line of the log names.
const NAMED_MAX: usize = 10;
/// In place of a table's name that was not held either.
const UNKNOWN: &str = "?";

/// Connects, and looks whether the server can be followed.
///
/// # Errors
/// Why not.
pub async fn connect(config: &Arc<Database>) -> Result<Connected, Broken> {
    let mut connection = Connection::open(&config.server).await?;
    let naming = Naming::of(&mut connection, &config.server).await?;
    let (server, warnings) = look_at(&mut connection).await?;
    let committed = naming.committed(&mut connection).await?;
    let (schema, shapes) = schema::read(&mut connection, &config.server.account.database).await?;
    let fits = config.rules.check(&schema);
    let tables = watched(config, schema, shapes);
    let transactions = Transactions::new(&naming::start(&committed), Limits::default(), tables);
    let config = config.clone();
    let definitions = Definitions::Same;
    let stream = Stream { config, connection, naming, transactions, definitions };
    let stream = source::Stream::MariaDb(Box::new(stream));
    Ok(Connected { stream, server: server.into(), committed, fits, warnings })
}

/// What the server is called, and what of its settings could be better.
async fn look_at(
    connection: &mut Connection,
) -> Result<(String, Vec<(&'static str, String)>), Broken> {
    let id = match connection.flavour() {
        Flavour::MariaDb => "@@server_id",
        Flavour::MySql => "@@server_uuid",
    };
    let ask = format!("SELECT {id}, @@log_bin, @@global.binlog_format, @@global.binlog_row_image");
    let rows = connection.query(&ask).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    if text(1) != "1" {
        let why = "the server writes no binary log: set log_bin, and binlog_format = ROW";
        return Err(Broken::unusable(why));
    }
    let mut warnings = Vec::new();
    if text(2) != "ROW" {
        let why = format!(
            "binlog_format is {}: most writes will drop every page; set it to ROW",
            text(2)
        );
        warnings.push(("database-format", why));
    }
    if text(3) == "MINIMAL" {
        let why = "binlog_row_image is MINIMAL: tags with columns that a write leaves out drop \
                   what stands for any row; FULL says which";
        warnings.push(("database-format", why.to_owned()));
    }
    Ok((text(0), warnings))
}

/// The stream of one connection.
pub struct Stream {
    config: Arc<Database>,
    connection: Connection,
    naming: Naming,
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
        let start = naming::start(from);
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
    pub fn position(&self) -> Option<Position> {
        naming::reached(self.transactions.position())
    }

    async fn touch(&mut self, transaction: &mysql_replication::Transaction) -> Transaction {
        let mut touched = Touched::default();
        for (at, change) in transaction.changes.iter().enumerate() {
            self.transactions.watch().touch(change, &mut touched);
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        self.say_if_large(transaction);
        let changed = |change| touch::definitions(change) == Definitions::Changed;
        if transaction.changes.iter().any(changed) {
            self.definitions = Definitions::Changed;
        }
        let mark = self.naming.mark(transaction.gtid.as_ref(), self.transactions.position());
        Transaction { touched, mark, server: None }
    }

    /// Says so where a transaction was not held: its rows count as any row of their tables.
    fn say_if_large(&self, transaction: &mysql_replication::Transaction) {
        let large = transaction.changes.iter().filter_map(|change| match &change.what {
            What::Table { name, why: Why::TooLarge, .. } => Some(&**name),
            What::Everything(Why::TooLarge) => Some(UNKNOWN),
            _ => None,
        });
        let tables: Vec<&str> = large.take(NAMED_MAX).collect();
        if !tables.is_empty() {
            let (database, tables) = (&self.config.name, tables.join(", "));
            tracing::warn!(event = "database-large", database, tables);
        }
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
