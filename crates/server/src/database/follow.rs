//! The stream of a database: connects, reads, applies; comes back after a break, without a gap.
//!
//! | state | what happens | then |
//! |---|---|---|
//! | not followed | connected; the schema read, the rules held against it | behind |
//! | behind | all is applied that the database had committed when it was connected to | followed: the gate opens |
//! | followed | a transaction | applied, then counted by the position |
//! | any | the connection breaks | not followed; again after a pause, from the position |
//! | any | the position is gone, or it is another server | every page is dropped; from where the server is |
//!
//! Invariants: without a position to resume from the gate is closed; the position is advanced only
//! after the change was applied; definitions that changed are read before the next event is. Source:
//! MariaDB's manual, "Global Transaction ID".

use super::apply::{self, Definitions, Tables};
use super::barrier::has_all;
use super::connection::{Connection, Failed};
use super::schema::{self, Shapes};
use super::settle::Entry;
use crate::config::Database;
use crate::site::Site;
use change_feed::schema::Schema;
use change_feed::{CheckError, Touched};
use mysql_replication::position::{GtidList, Gtids, Start};
use mysql_replication::wire::greeting::Flavour;
use mysql_replication::wire::response::ServerErrorKind;
use mysql_replication::{Limits, Step, StreamRefused, Transaction, Transactions};
use page_store::Target;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Between two attempts, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// So many changes of a transaction are read before others get their turn.
const TURN: usize = 64;

/// Why the stream is not followed any more.
pub enum Broken {
    /// The connection failed.
    Connection(Failed),
    /// The stream cannot be read on.
    Stream(StreamRefused),
    /// The server, as it is set up, cannot be followed; a sentence for the operator.
    Unusable(String),
}

impl From<Failed> for Broken {
    fn from(failed: Failed) -> Broken {
        match failed {
            Failed::Said(name, text) if FOR_THE_OPERATOR.contains(&name) => Broken::Unusable(text),
            failed => Broken::Connection(failed),
        }
    }
}

/// What no further attempt mends.
const FOR_THE_OPERATOR: [&str; 6] = [
    "access-denied",
    "not-permitted",
    "no-such-table",
    "unknown-plugin",
    "password-in-the-clear",
    "old-server",
];

impl Broken {
    fn name(&self) -> &'static str {
        match self {
            Broken::Connection(failed) => failed.as_str(),
            Broken::Stream(refused) => refused.as_str(),
            Broken::Unusable(_) => "unusable",
        }
    }

    fn text(&self) -> String {
        match self {
            Broken::Connection(failed) => failed.to_string(),
            Broken::Stream(refused) => refused.to_string(),
            Broken::Unusable(text) => text.clone(),
        }
    }

    fn is_gap(&self) -> bool {
        match self {
            Broken::Stream(StreamRefused::Server(error)) => {
                error.kind() == ServerErrorKind::PositionGone
            }
            Broken::Stream(StreamRefused::Event(_)) => false,
            Broken::Connection(_) | Broken::Unusable(_) => false,
        }
    }
}

/// A database that was connected to and can be followed.
pub struct Connected {
    connection: Connection,
    /// What it had committed before its schema was read.
    committed: GtidList,
    server_id: String,
    tables: (Schema, Shapes),
    fits: Result<(), CheckError>,
}

impl Connected {
    /// Whether the rules fit the schema.
    pub fn fits(&self) -> Result<(), String> {
        self.fits.as_ref().map_err(ToString::to_string).copied()
    }
}

/// Connects, and looks whether the database can be followed.
///
/// # Errors
/// Why not.
pub async fn connect(config: &Database) -> Result<Connected, Broken> {
    const ASK: &str =
        "SELECT @@server_id, @@log_bin, @@global.binlog_format, @@global.gtid_binlog_pos";
    let mut connection = Connection::open(config).await?;
    if connection.flavour() != Flavour::MariaDb {
        return Err(Broken::Unusable("this is no MariaDB; others are not followed yet".into()));
    }
    let rows = connection.query(ASK).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    if text(1) != "1" {
        let why = "the server writes no binary log: set log_bin, and binlog_format = ROW";
        return Err(Broken::Unusable(why.into()));
    }
    if text(2) != "ROW" {
        let format = text(2);
        tracing::warn!(event = "database-format", format, "set binlog_format = ROW");
    }
    let committed = text(3).parse().map_err(|_| Broken::Unusable(text(3)))?;
    let tables = schema::read(&mut connection, &config.account.database).await?;
    let fits = config.rules.check(&tables.0);
    Ok(Connected { connection, committed, server_id: text(0), tables, fits })
}

/// Where to take the stream up again.
#[derive(Default)]
struct Resume {
    /// What is applied; none: nothing is known, and the gate is closed.
    applied: Option<GtidList>,
    server_id: String,
}

/// Follows the database of a site for ever. `first` is a connection that is there already.
pub async fn run(site: Arc<Site>, entries: mpsc::Sender<Entry>, mut first: Option<Connected>) {
    let Some(feed) = &site.feed else { return };
    let mut resume = Resume::default();
    let mut pause = PAUSE;
    loop {
        let connected = match first.take() {
            Some(connected) => Ok(connected),
            None => connect(&feed.config).await,
        };
        let broken = match connected {
            Ok(connected) => Stream::follow(&site, &entries, &mut resume, connected).await,
            Err(broken) => broken,
        };
        let was_followed = feed.applied.send_replace(None).is_some();
        if broken.is_gap() {
            gap(&site, &mut resume, broken.name());
        }
        pause = if was_followed { PAUSE } else { (pause * 2).min(PAUSE_MAX) };
        let again_ms = pause.as_millis() as u64;
        let (reason, error) = (broken.name(), broken.text());
        tracing::warn!(event = "database-broken", reason, error, again_ms);
        tokio::time::sleep(pause).await;
    }
}

/// Changes may have been missed: every page goes.
fn gap(site: &Site, resume: &mut Resume, reason: &'static str) {
    if let Some(feed) = &site.feed {
        feed.gate.close(site);
    }
    resume.applied = None;
    site.counters.database_gaps.add();
    tracing::error!(event = "database-gap", reason);
}

/// A stream that is read.
struct Stream<'a> {
    site: &'a Arc<Site>,
    entries: &'a mpsc::Sender<Entry>,
    transactions: Transactions<Tables>,
}

impl Stream<'_> {
    async fn follow(
        site: &Arc<Site>,
        entries: &mpsc::Sender<Entry>,
        resume: &mut Resume,
        connected: Connected,
    ) -> Broken {
        let Connected { mut connection, committed, server_id, tables, fits } = connected;
        let Some(feed) = &site.feed else { return Broken::Unusable(String::new()) };
        say_if_wrong(&fits);
        if resume.applied.is_some() && resume.server_id != server_id {
            gap(site, resume, "another-server");
        }
        resume.server_id = server_id;
        let start = Start::MariaDb(resume.applied.clone().unwrap_or_else(|| committed.clone()));
        if let Err(failed) = connection.start_stream(own_id(), &start).await {
            return failed.into();
        }
        let tables = watched(&feed.config, tables);
        let transactions = Transactions::new(&start, Limits::default(), tables);
        let mut stream = Stream { site, entries, transactions };
        let mut is_behind = true;
        loop {
            let step = match stream.step(&mut connection, &feed.config).await {
                Ok(step) => step,
                Err(broken) => return broken,
            };
            let Gtids::MariaDb(applied) = &stream.transactions.position().gtids else { continue };
            if step == Read::Transaction {
                resume.applied = Some(applied.clone());
            }
            if is_behind && has_all(applied, &committed) {
                is_behind = false;
                resume.applied = Some(applied.clone());
                feed.applied.send_replace(Some(applied.clone()));
                stream.followed().await;
            } else if !is_behind && step == Read::Transaction {
                feed.applied.send_replace(Some(applied.clone()));
            }
        }
    }

    /// The database is followed: the gate opens, if it was closed.
    async fn followed(&self) {
        let position = self.transactions.position();
        let Gtids::MariaDb(applied) = &position.gtids else { return };
        tracing::info!(event = "database-followed", position = %applied);
        let Some(opened) = self.site.feed.as_ref().and_then(|feed| feed.gate.open()) else {
            return;
        };
        // Where in the log that is, only the next transaction says.
        let entry = Entry { opened, at: None, since: Instant::now(), after_gap: true };
        // The receiver ends with the server.
        let _ = self.entries.send(entry).await;
    }

    async fn step(
        &mut self,
        connection: &mut Connection,
        config: &Database,
    ) -> Result<Read, Broken> {
        let packet = connection.next_event().await?;
        self.site.counters.database_events.add();
        match self.transactions.read(&packet).map_err(Broken::Stream)? {
            Step::Transaction(transaction) => {
                self.apply(&transaction, config).await?;
                Ok(Read::Transaction)
            }
            Step::Nothing | Step::Heartbeat => Ok(Read::Nothing),
            Step::Ended => {
                let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                Err(Failed::Io(error).into())
            }
        }
    }

    async fn apply(&mut self, transaction: &Transaction, config: &Database) -> Result<(), Broken> {
        let began = Instant::now();
        let counters = &self.site.counters;
        counters.database_transactions.add();
        let mut touched = Touched::default();
        for (at, change) in transaction.changes.iter().enumerate() {
            self.transactions.watch().touch(change, &mut touched);
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        if !touched.is_empty() {
            let opened = open(self.site, touched).await;
            counters.database_changes.add();
            counters.database_lag_us.set(began.elapsed().as_micros() as u64);
            let at = self.transactions.position().file.clone();
            let entry = Entry { opened, at, since: Instant::now(), after_gap: false };
            // The receiver ends with the server.
            let _ = self.entries.send(entry).await;
        }
        let changed = |change| apply::definitions(change) == Definitions::Changed;
        if transaction.changes.iter().any(changed) {
            self.read_definitions(config).await?;
        }
        Ok(())
    }

    /// Asks for the schema again, before anything else is read.
    async fn read_definitions(&mut self, config: &Database) -> Result<(), Broken> {
        let mut connection = Connection::open(config).await?;
        let tables = schema::read(&mut connection, &config.account.database).await?;
        say_if_wrong(&config.rules.check(&tables.0));
        *self.transactions.watch() = watched(config, tables);
        self.transactions.forget_tables();
        Ok(())
    }
}

/// What a packet came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Transaction,
    Nothing,
}

fn watched(config: &Database, (schema, shapes): (Schema, Shapes)) -> Tables {
    let feed = change_feed::Feed::new(&config.rules, &schema);
    Tables::new(config.account.database.clone(), feed, shapes)
}

/// Rules that do not fit go on with what is not there being any value.
fn say_if_wrong(fits: &Result<(), CheckError>) {
    if let Err(error) = fits {
        tracing::error!(event = "database-rules-wrong", reason = error.as_str(), %error);
    }
}

async fn open(site: &Arc<Site>, touched: Touched) -> page_store::Opened {
    if !touched.is_everything() {
        let targets: Vec<Target<'_>> =
            touched.tags().map(|tag| Target::Tag(tag.as_bytes())).collect();
        return site.open(&targets, "database");
    }
    // Dropping a million pages takes a while: not where visitors are served.
    let own = site.clone();
    let opening = move || own.open(&[Target::Everything], "database");
    match tokio::task::spawn_blocking(opening).await {
        Ok(opened) => opened,
        // It has panicked, or the server ends: here, then.
        Err(_) => site.open(&[Target::Everything], "database"),
    }
}

/// The server id that this reader goes by: one that nobody else has.
fn own_id() -> u32 {
    let random = RandomState::new().build_hasher().finish() as u32;
    // High numbers are rare among people's own.
    random | 1 << 31
}
