//! The replication stream of MariaDB and MySQL: connects, checks whether the server can be
//! followed, reads whole transactions and computes what they touch.
//!
//! Invariants: changed table definitions are read before the next event. The position is that of
//! the last returned transaction. Not here: applying transactions.

use super::connection::Connection;
use super::naming::{self, Naming};
use super::schema::{self, TableDefinitions};
use super::touch::{self, Tables, TransactionChanges};
use super::untracked::UntrackedReason;
use crate::stream_types::{
    ChangedRows, Position, Resume, RowDetail, SourceConnection, StreamRead, Transaction,
    TransactionBody, say_if_wrong,
};
use config::Database;
use database_links::fault::{ConnectionError, Recovery, StreamFault, Warning};
use database_links::link::within;
use footprint::schema::SqlSchema;
use mysql_replication::position::MariaDbGtid;
use mysql_replication::{
    ChangeScope, FallbackReason, Landmark, LandmarkCheck, Limits, Proof, Step, StreamRefused,
    Transactions,
};
use mysql_wire::Refusal;
use mysql_wire::greeting::Flavour;
use mysql_wire::packet::Packet;
use mysql_wire::response::ServerErrorKind;
use random_number::random_number;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// After this many changes of a transaction the task yields to others.
const TURN: usize = 64;
/// The most tables that one log line names.
const NAMED_MAX: usize = 10;
/// How long a definition in the log may take until other connections see it, and the pause between two queries.
const DEFINED_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);
/// Replaces a table's name that was not buffered either.
const UNKNOWN: &str = "?";

/// Connects, and checks whether the server can be followed.
///
/// # Errors
/// The server is unreachable, or cannot be followed.
pub async fn connect(
    config: &Arc<Database>,
    detail: RowDetail,
) -> Result<SourceConnection<Stream>, StreamFault> {
    let mut connection = Connection::open(&config.server).await?;
    let naming = Naming::of(&mut connection, &config.server).await?;
    let (server, mut warnings) = look_at(&mut connection).await?;
    if detail == RowDetail::Values {
        refuse_hidden_quotes(&mut connection).await?;
        refuse_uncommitted_reads(&mut connection).await?;
    }
    let asked = Instant::now();
    let committed = naming.committed(&mut connection).await?;
    let name = &config.server.account.database;
    let definitions = schema::read(&mut connection, name, detail).await?;
    let fits = config.rules.check(&definitions.schema);
    let untracked = definitions.untracked.clone();
    let tables = watched(config, definitions);
    warnings.extend(warn_untracked(&tables, &untracked));
    let transactions = Transactions::new(&naming::start(&committed), Limits::default(), tables);
    let config = config.clone();
    let stream = Stream {
        config,
        connection,
        naming,
        committed: committed.clone(),
        transactions,
        are_definitions_changed: false,
        detail,
        is_report_due: true,
    };
    let mark = naming::mark_of_all(&committed);
    let server = server.into();
    Ok(SourceConnection { stream, asked, server, committed, mark, fits, warnings })
}

/// Returns the server's identifier, and warnings about its settings.
async fn look_at(connection: &mut Connection) -> Result<(String, Vec<Warning>), StreamFault> {
    let id = match connection.flavour() {
        Flavour::MariaDb => "@@server_id",
        Flavour::MySql => "@@server_uuid",
    };
    let ask = format!("SELECT {id}, @@log_bin, @@global.binlog_format, @@global.binlog_row_image");
    let rows = connection.query(&ask).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    if text(1) != "1" {
        let why = "the server writes no binary log: set log_bin, and binlog_format = ROW";
        return Err(StreamFault::unusable(why));
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

/// Refuses automatic dependencies where the meaning of double quotes is not known. MariaDB reports `ANSI_QUOTES` in
/// the status of each answer; MySQL does not, and the statements of a page might be read as other ones.
async fn refuse_hidden_quotes(connection: &mut Connection) -> Result<(), StreamFault> {
    if connection.flavour() == Flavour::MariaDb {
        return Ok(());
    }
    let mode = connection.one("SELECT @@global.sql_mode").await?;
    if mode.split(',').any(|flag| flag == "ANSI_QUOTES") {
        let why = "sql_mode has ANSI_QUOTES, which MySQL does not tell clients: automatic dependencies cannot read \
                   the statements of pages; remove it from the server's sql_mode";
        return Err(StreamFault::unusable(why));
    }
    Ok(())
}

/// Refuses automatic dependencies where sessions read rows by default that are not committed: they may be rolled back,
/// which is no event. `init_connect` may have set the level of this session.
async fn refuse_uncommitted_reads(connection: &mut Connection) -> Result<(), StreamFault> {
    let name = match connection.flavour() {
        Flavour::MariaDb => "tx_isolation",
        Flavour::MySql => "transaction_isolation",
    };
    let ask = format!("SELECT @@global.{name}, @@session.{name}");
    let levels = connection.query(&ask).await?;
    let is_dirty = |column| {
        let level = levels.text(0, column).unwrap_or_default();
        level.eq_ignore_ascii_case("READ-UNCOMMITTED")
    };
    if is_dirty(0) || is_dirty(1) {
        let why = "the server's default isolation level is READ UNCOMMITTED: pages would show rows that are rolled \
                   back later; set transaction_isolation to REPEATABLE-READ, or turn automatic dependencies off";
        return Err(StreamFault::unusable(why));
    }
    Ok(())
}

/// Warnings about tables that pages are made from, and whose rows can change without an event. A view is none: nobody
/// expects it to be followed.
fn warn_untracked(
    tables: &Tables,
    untracked: &BTreeMap<String, UntrackedReason>,
) -> impl Iterator<Item = Warning> {
    let is_asked = |(name, reason): &(&String, &UntrackedReason)| {
        **reason != UntrackedReason::View && tables.wants(name)
    };
    let effect = match tables.schema() {
        Some(_) => "pages that read it have no automatic dependencies",
        None => "a rule names it, and misses such changes",
    };
    untracked.iter().filter(is_asked).take(NAMED_MAX).map(move |(name, reason)| {
        ("database-untracked", format!("table {name}: {reason}: {effect}"))
    })
}

/// Checks whether a replica writes replicated transactions to its own log. If it does not, the
/// stream lacks them without any error. MariaDB's default is off, MySQL's is on. Whether a MySQL
/// server is a replica is not known.
async fn replicates(connection: &mut Connection) -> Result<Vec<Warning>, StreamFault> {
    // The result omits variables that a server does not have.
    let ask = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
               ('log_slave_updates', 'log_replica_updates', 'gtid_slave_pos')";
    let variables = connection.query(ask).await?;
    let is_off = |name| variables.named(name).is_some_and(|value| value == "OFF");
    if !is_off("log_slave_updates") && !is_off("log_replica_updates") {
        return Ok(Vec::new());
    }
    if connection.flavour() == Flavour::MySql {
        let why = "log_replica_updates is OFF: if this is a replica, its replicated changes are not \
                   followed";
        return Ok(vec![("database-format", why.to_owned())]);
    }
    let running = connection.query("SHOW GLOBAL STATUS LIKE 'Slaves_running'").await?;
    let is_running = running.named("Slaves_running").is_some_and(|count| count != "0");
    if !is_running && variables.named("gtid_slave_pos").is_none_or(|at| at.is_empty()) {
        return Ok(Vec::new());
    }
    let text = "the server is a replica and does not log replicated changes, so they would be \
                missed: set log_slave_updates = ON and restart it, or follow the primary (if it \
                replicates no more: RESET SLAVE ALL; SET GLOBAL gtid_slave_pos = '')";
    // Replicated changes since the last connection are in no log.
    Err(StreamFault { name: "replica-unlogged", text: text.into(), then: Recovery::Lost })
}

/// The stream of one connection.
pub struct Stream {
    config: Arc<Database>,
    connection: Connection,
    naming: Naming,
    /// The committed position when the definitions were read first.
    committed: Position,
    transactions: Transactions<Tables>,
    /// Whether the last transaction has changed a table definition.
    are_definitions_changed: bool,
    detail: RowDetail,
    /// Whether the definitions have not been reported yet.
    is_report_due: bool,
}

impl Stream {
    /// Requests everything after `from`. `left` says how the earlier connection ended.
    ///
    /// After the server has opened the log for the stream, a landmark proves that it is still the
    /// same log. If the log is reset between the two steps, the stream ends or the proof fails.
    ///
    /// # Errors
    /// The stream could not be started, or the log is another one.
    pub async fn start(&mut self, from: &Position, left: Resume) -> Result<(), StreamFault> {
        let start = naming::start(from);
        let tables = std::mem::take(self.transactions.watch());
        self.transactions = Transactions::new(&start, Limits::default(), tables);
        // MySQL logs a definition before it is visible: one that an earlier connection has received, or that is before
        // the end of the log, may not have been seen by this one.
        self.are_definitions_changed = match (self.naming, self.connection.flavour()) {
            (Naming::MySql, _) => !self.committed.has_all(from),
            (Naming::File, Flavour::MySql) => true,
            (Naming::MariaDb | Naming::File, _) => false,
        };
        self.connection.start_stream(own_id(), &start).await?;
        while !self.transactions.has_begun() {
            let packet = self.connection.next_event().await?;
            match self.transactions.read(&packet).map_err(refused)? {
                Step::Nothing | Step::Heartbeat => {}
                Step::Transaction(_) => return Err(refused(Refusal::BadValue.into())),
                Step::Ended => return Err(ended()),
            }
        }
        match left {
            Resume::Never | Resume::Elsewhere => Ok(()),
            Resume::Here(Some(landmark)) => {
                self.prove(&landmark).await?;
                self.transactions.go_on(landmark);
                Ok(())
            }
            Resume::Here(None) => {
                let text = "by what the log is known again was not left, as by older versions";
                Err(StreamFault { name: "log-unknown", text: text.into(), then: Recovery::Gap })
            }
        }
    }

    /// Checks on a separate connection whether the log is the one that was read before.
    async fn prove(&self, landmark: &Landmark) -> Result<(), StreamFault> {
        let mut connection = Connection::open(&self.config.server).await?;
        connection.start_stream(own_id(), &landmark.start()).await?;
        let mut proving = LandmarkCheck::new(landmark.clone());
        loop {
            let packet = connection.next_event().await?;
            match proving.read(&packet).map_err(refused)? {
                None => {}
                Some(Proof::Same) => return Ok(()),
                Some(Proof::Another) => return Err(refused(StreamRefused::Replaced)),
            }
        }
    }

    /// Returns the landmark that identifies the log at the current position.
    pub fn landmark(&self) -> Option<Landmark> {
        self.transactions.landmark().cloned()
    }

    /// Reads one packet.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next(&mut self) -> Result<StreamRead, StreamFault> {
        if self.are_definitions_changed {
            self.read_definitions().await?;
            return Ok(StreamRead::Nothing);
        }
        let packet = self.connection.next_event().await?;
        self.read(&packet).await
    }

    /// Reads one packet, if one arrives until then and no definitions have to be read first. The wait for a packet can
    /// be cancelled without a loss.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next_until(&mut self, until: Instant) -> Result<Option<StreamRead>, StreamFault> {
        if self.are_definitions_changed {
            return Ok(None);
        }
        match timeout_at(until, self.connection.next_event()).await {
            Ok(packet) => self.read(&packet?).await.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether all transactions up to a position of the log have been read, and none is prepared (XA): the rows
    /// of such a transaction may be visible before its commit is in the log.
    pub fn has_read(&self, end: &Position) -> bool {
        if self.transactions.has_prepared() {
            return false;
        }
        let own = match end {
            Position::Place(_) => self.transactions.position().file.clone().map(Position::Place),
            _ => self.position(),
        };
        own.is_some_and(|own| own.has_all(end) && are_of_one_server(&own, end))
    }

    async fn read(&mut self, packet: &Packet) -> Result<StreamRead, StreamFault> {
        match self.transactions.read(packet).map_err(refused)? {
            Step::Transaction(transaction) => {
                Ok(StreamRead::Transaction(self.touch(&transaction).await))
            }
            Step::Heartbeat => Ok(StreamRead::Moved),
            Step::Nothing => Ok(StreamRead::Nothing),
            Step::Ended => Err(ended()),
        }
    }

    /// Returns the position after the last returned transaction.
    pub fn position(&self) -> Option<Position> {
        naming::reached(self.transactions.position())
    }

    async fn touch(&mut self, transaction: &mysql_replication::Transaction) -> Transaction {
        let mut changes = TransactionChanges::default();
        for (at, change) in transaction.changes.iter().enumerate() {
            self.transactions.watch().touch(change, &mut changes);
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        self.say_if_large(transaction);
        if transaction.changes.iter().any(touch::changes_definitions) {
            self.are_definitions_changed = true;
        }
        let mark = self.naming.mark(transaction.gtid.as_ref(), self.transactions.position());
        let rows = match self.detail {
            RowDetail::Values => changes.rows.into_changes(),
            RowDetail::Tags => Vec::new(),
        };
        let id = transaction.gtid.as_ref().map(|gtid| gtid.to_string().into());
        let changed = ChangedRows { touched: changes.touched, rows, transaction: id };
        let made = TransactionBody::Rows(changed);
        Transaction { made, mark, server: None }
    }

    /// Returns the tables as the reader of statements needs them, once after they were read.
    pub fn take_definitions(&mut self) -> Option<SqlSchema> {
        if !std::mem::take(&mut self.is_report_due) {
            return None;
        }
        self.transactions.watch().schema().map(|schema| (**schema).clone())
    }

    /// Logs a warning if a transaction was too large to buffer: its rows count as any row of their
    /// tables.
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

    /// Waits until other connections see the definitions up to the current position. MySQL sends a transaction
    /// before it is committed, and with it a definition; MariaDB logs a definition that has changed.
    async fn until_visible(&self, connection: &mut Connection) -> Result<(), ConnectionError> {
        match (self.naming, self.connection.flavour()) {
            (Naming::MySql, _) => {
                let Some(position) = self.position() else { return Ok(()) };
                while !self.naming.committed(connection).await?.has_all(&position) {
                    sleep(PAUSE).await;
                }
            }
            // The server cannot report what is visible.
            (Naming::File, Flavour::MySql) => {
                sleep(self.config.settle.min(DEFINED_WITHIN / 2)).await
            }
            (Naming::MariaDb | Naming::File, _) => {}
        }
        Ok(())
    }

    /// Reads the schema again, on a separate connection.
    async fn read_definitions(&mut self) -> Result<(), StreamFault> {
        let config = self.config.clone();
        let mut connection = Connection::open(&config.server).await?;
        within(DEFINED_WITHIN, self.until_visible(&mut connection)).await?;
        let name = &config.server.account.database;
        let read = schema::read(&mut connection, name, self.detail).await?;
        say_if_wrong(&config, &config.rules.check(&read.schema));
        *self.transactions.watch() = watched(&config, read);
        self.transactions.forget_tables();
        (self.are_definitions_changed, self.is_report_due) = (false, true);
        Ok(())
    }
}

fn watched(config: &Database, read: TableDefinitions) -> Tables {
    let feed = change_feed::Feed::new(&config.rules, &read.schema);
    let views = read.schema.tables.iter().filter(|(_, table)| table.is_view);
    let views = views.map(|(name, _)| name.clone()).collect();
    Tables::new(config.server.account.database.clone(), feed, read.shapes, read.followed, views)
}

/// The error for a stream that the server has ended.
fn ended() -> StreamFault {
    ConnectionError::Io(io::ErrorKind::UnexpectedEof.into()).into()
}

/// Whether the last GTIDs of each domain are of the same server. Otherwise their numbers need not ascend in the log
/// (`gtid_strict_mode=OFF`).
fn are_of_one_server(own: &Position, end: &Position) -> bool {
    let (Position::MariaDb(own), Position::MariaDb(end)) = (own, end) else { return true };
    let is_of_one = |gtid: &MariaDbGtid| {
        let same = |own: &&MariaDbGtid| own.domain == gtid.domain && own.server == gtid.server;
        own.last().iter().any(|own| same(&own))
    };
    end.last().iter().all(is_of_one)
}

/// Returns a random server ID for this replication client, so that no other client has the same
/// one.
fn own_id() -> u32 {
    // Administrators rarely choose IDs in the upper half of the range.
    random_number() as u32 | 1 << 31
}

/// Converts an error of the stream.
fn refused(refused: StreamRefused) -> StreamFault {
    let then = match &refused {
        StreamRefused::Server(error) if error.kind() == ServerErrorKind::PositionGone => {
            Recovery::Gap
        }
        StreamRefused::Replaced => Recovery::Gap,
        StreamRefused::Server(_) | StreamRefused::Event(_) => Recovery::Again,
    };
    StreamFault { name: refused.as_str(), text: refused.to_string(), then }
}
