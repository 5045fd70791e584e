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
use crate::database::source::{
    self, Broken, Connected, Failed, Left, Made, Position, Read, Then, Transaction, Warning,
};
use change_feed::Touched;
use change_feed::schema::Schema;
use mysql_replication::wire::greeting::Flavour;
use mysql_replication::wire::response::ServerErrorKind;
use mysql_replication::{
    ChangeScope, FallbackReason, Landmark, LandmarkCheck, Limits, Proof, Refusal, Step,
    StreamRefused, Transactions,
};
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
    let mark = naming::mark_of_all(&committed);
    Ok(Connected { stream, server: server.into(), committed, mark, fits, warnings })
}

/// What the server is called, and what of its settings could be better.
async fn look_at(connection: &mut Connection) -> Result<(String, Vec<Warning>), Broken> {
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
    let mut warnings = replicates(connection).await?;
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

/// Whether a replica logs what it replicates: else nothing of that comes, and all seems well. By default
/// MariaDB does not, MySQL does; of MySQL it is not known whether it is one.
async fn replicates(connection: &mut Connection) -> Result<Vec<Warning>, Broken> {
    // What a server does not know is not in the answer.
    let ask = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
               ('log_slave_updates', 'log_replica_updates', 'gtid_slave_pos')";
    let variables = connection.query(ask).await?;
    let is_off = |name| variables.named(name).is_some_and(|value| value == "OFF");
    if !is_off("log_slave_updates") && !is_off("log_replica_updates") {
        return Ok(Vec::new());
    }
    if connection.flavour() == Flavour::MySql {
        let why = "log_replica_updates is OFF: if this is a replica, nothing of what it replicates is \
                   heard of";
        return Ok(vec![("database-format", why.to_owned())]);
    }
    let running = connection.query("SHOW GLOBAL STATUS LIKE 'Slaves_running'").await?;
    let is_running = running.named("Slaves_running").is_some_and(|count| count != "0");
    if !is_running && variables.named("gtid_slave_pos").is_none_or(|at| at.is_empty()) {
        return Ok(Vec::new());
    }
    let text = "the server is a replica and does not log what it replicates, so none of it would be \
                heard of: set log_slave_updates = ON and start it anew, or follow the primary (it \
                replicates no more: RESET SLAVE ALL; SET GLOBAL gtid_slave_pos = '')";
    // What was replicated since it was last followed is in no log.
    Err(Broken { name: "replica-unlogged", text: text.into(), then: Then::Lost })
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
    /// Asks for everything after `from`, where it was left.
    ///
    /// Whether the log is the one that was read is looked at when the server has opened it for the stream:
    /// one that is begun anew between the two ends the stream, or does not prove.
    ///
    /// # Errors
    /// Why there is no stream.
    pub async fn start(&mut self, from: &Position, left: Left) -> Result<(), Broken> {
        let start = naming::start(from);
        let tables = std::mem::take(self.transactions.watch());
        self.transactions = Transactions::new(&start, Limits::default(), tables);
        self.connection.start_stream(own_id(), &start).await?;
        while !self.transactions.has_begun() {
            let packet = self.connection.next_event().await?;
            match self.transactions.read(&packet)? {
                Step::Nothing | Step::Heartbeat => {}
                Step::Transaction(_) => return Err(StreamRefused::from(Refusal::BadValue).into()),
                Step::Ended => return Err(ended()),
            }
        }
        match left {
            Left::Never | Left::Elsewhere => Ok(()),
            Left::Here(Some(landmark)) => {
                self.prove(&landmark).await?;
                self.transactions.go_on(landmark);
                Ok(())
            }
            Left::Here(None) => {
                let text = "by what the log is known again was not left, as by older versions";
                Err(Broken { name: "log-unknown", text: text.into(), then: Then::Gap })
            }
        }
    }

    /// Looks whether the log is the one that was read before, on a connection of its own.
    async fn prove(&self, landmark: &Landmark) -> Result<(), Broken> {
        let mut connection = Connection::open(&self.config.server).await?;
        connection.start_stream(own_id(), &landmark.start()).await?;
        let mut proving = LandmarkCheck::new(landmark.clone());
        loop {
            let packet = connection.next_event().await?;
            match proving.read(&packet)? {
                None => {}
                Some(Proof::Same) => return Ok(()),
                Some(Proof::Another) => return Err(StreamRefused::Replaced.into()),
            }
        }
    }

    /// By what the log is known again where it was read up to.
    pub fn landmark(&self) -> Option<Landmark> {
        self.transactions.landmark().cloned()
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
            Step::Heartbeat => Ok(Read::Moved),
            Step::Nothing => Ok(Read::Nothing),
            Step::Ended => Err(ended()),
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
        Transaction { made: Made::Rows(touched), mark, server: None }
    }

    /// Says so where a transaction was not held: its rows count as any row of their tables.
    fn say_if_large(&self, transaction: &mysql_replication::Transaction) {
        let large = transaction.changes.iter().filter_map(|change| match &change.what {
            ChangeScope::Table { name, why: FallbackReason::TooLarge, .. } => Some(&**name),
            ChangeScope::Everything(FallbackReason::TooLarge) => Some(UNKNOWN),
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

/// The server has ended the stream.
fn ended() -> Broken {
    Failed::Io(io::ErrorKind::UnexpectedEof.into()).into()
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
            StreamRefused::Replaced => Then::Gap,
            StreamRefused::Server(_) | StreamRefused::Event(_) => Then::Again,
        };
        Broken { name: refused.as_str(), text: refused.to_string(), then }
    }
}
