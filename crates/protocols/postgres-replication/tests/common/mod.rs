//! A small blocking client for the tests: a Unix socket or TCP, a login, statements, the stream.
//!
//! It implements what the README requires of the owner of a socket, and stores every frame of the stream for
//! recordings. Reads have a timeout; a silent stream fails the test.

#![allow(dead_code, reason = "each test uses a part of it")]

use bytes::BytesMut;
use harness::{Address, Postgres, PostgresOptions, PrivateDir, Stream};
use postgres_replication::position::Lsn;
use postgres_replication::wire::error::ServerErrorKind;
use postgres_replication::wire::frame::{Frame, FrameReader};
use postgres_replication::wire::login::{
    Account, Channel, Login, LoginRefused, LoginStep, Purpose,
};
use postgres_replication::wire::query::{Query, QueryLimits, QueryRefused, Rows, query};
use postgres_replication::wire::stream::{self, Reply, Subscription};
use postgres_replication::{
    Cell, ChangeScope, Interest, Limits, RowChange, Step, Transaction, Transactions, Watch,
};
use std::io::{Read, Write};
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Connection {
    stream: Stream,
    frames: FrameReader,
    input: BytesMut,
    pub version: String,
}

impl Connection {
    pub fn open(
        address: &Address,
        account: Account,
        purpose: Purpose,
    ) -> Result<Connection, LoginRefused> {
        let channel = match address {
            Address::Tcp(_) => Channel::Plain,
            Address::Unix(_) => Channel::Local,
        };
        let stream = address.connect(PATIENCE).expect("the server accepts");
        let (frames, input) = (FrameReader::new(16 << 20), BytesMut::new());
        let mut connection = Connection { stream, frames, input, version: String::new() };
        let (mut login, hello) = Login::begin(account, channel, purpose)?;
        connection.send(&hello);
        loop {
            match login.read(&connection.frame().expect("an answer"))? {
                LoginStep::Send(bytes) => connection.send(&bytes),
                LoginStep::Wait => {}
                LoginStep::Done => break,
            }
        }
        login.server_version().clone_into(&mut connection.version);
        if let Some(sql) = login.first_statement() {
            connection.query(sql).expect("it runs");
        }
        Ok(connection)
    }

    pub fn hold_at_most(&mut self, payload_bytes: usize) {
        self.frames = FrameReader::new(payload_bytes);
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("can be sent");
    }

    /// The next frame; `None` at the end of the connection.
    pub fn frame(&mut self) -> Option<Frame> {
        let mut piece = [0; 4096];
        loop {
            if let Some(frame) = self.frames.read(&mut self.input).expect("frames") {
                return Some(frame);
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    pub fn query(&mut self, sql: &str) -> Result<Rows, QueryRefused> {
        self.send(&query(sql).expect("a statement"));
        let mut reading = Query::new(QueryLimits::default());
        loop {
            if let Some(rows) = reading.read(&self.frame().expect("an answer"))? {
                return Ok(rows);
            }
        }
    }

    pub fn one(&mut self, sql: &str) -> String {
        self.query(sql).expect("an answer").text(0, 0).unwrap_or_default()
    }

    /// Starts the stream of the slot `pagewell`.
    pub fn start(&mut self, from: Lsn) -> Result<(), QueryRefused> {
        self.send(&stream::start(&subscription(), from).expect("a command"));
        while !stream::started(&self.frame().expect("an answer"))? {}
        Ok(())
    }
}

pub fn subscription() -> Subscription {
    Subscription { slot: "pagewell".into(), publication: "pagewell".into() }
}

/// Reports the rows of nearly every table.
#[derive(Clone, Copy, Default)]
pub struct Curious;

impl Watch for Curious {
    fn interest(&mut self, _: &str, table: &str) -> Interest {
        match table {
            "passed_over" => Interest::None,
            "asked" => Interest::Table,
            _ => Interest::Rows,
        }
    }
}

/// A private server with a database `paper`, a role with the replication privilege, and a publication of all
/// tables.
pub struct Paper {
    pub database: Postgres,
}

impl Paper {
    pub fn new(tables: &str) -> Paper {
        Self::with(PostgresOptions::default(), tables)
    }

    pub fn with(options: PostgresOptions, tables: &str) -> Paper {
        let dir = PrivateDir::temporary("pgr").expect("a directory");
        let database = Postgres::start_with(dir, options).expect("PostgreSQL starts");
        database.create_database("paper", "writer", "secret").expect("a database");
        let paper = Paper { database };
        paper.sql("CREATE ROLE follower LOGIN REPLICATION PASSWORD 'secret'");
        paper.sql(tables);
        paper.sql("CREATE PUBLICATION pagewell FOR ALL TABLES");
        paper.make_slot();
        paper
    }

    pub fn make_slot(&self) {
        self.sql("SELECT pg_create_logical_replication_slot('pagewell', 'pgoutput')");
    }

    pub fn sql(&self, sql: &str) -> String {
        self.database.sql_in("paper", sql).expect("the statements run")
    }

    pub fn connect(&self, purpose: Purpose) -> Connection {
        Connection::open(&self.address(), account("follower"), purpose).expect("a login")
    }

    pub fn address(&self) -> Address {
        Address::Unix(self.database.socket())
    }

    pub fn follow(&self) -> Follower {
        self.follow_from(Lsn(0), Limits::default())
    }

    /// Starts the stream again at `from`. Waits if the previous reader still holds the slot.
    pub fn follow_again(&self, from: Lsn) -> Follower {
        let deadline = harness::Deadline::after(PATIENCE);
        loop {
            let mut connection = self.connect(Purpose::Replication);
            match connection.start(from) {
                Ok(()) => {
                    let transactions = Transactions::new(from, Limits::default(), Curious);
                    return Follower { connection, transactions, recorded: Vec::new() };
                }
                Err(QueryRefused::Server(error))
                    if error.kind() == ServerErrorKind::InUse && !deadline.passed() => {}
                Err(refused) => panic!("the stream does not start: {refused}"),
            }
        }
    }

    pub fn follow_as(&self, account: Account) -> Follower {
        let opened = Connection::open(&self.address(), account, Purpose::Replication);
        let mut connection = opened.expect("a login");
        connection.start(Lsn(0)).expect("the stream starts");
        let transactions = Transactions::new(Lsn(0), Limits::default(), Curious);
        Follower { connection, transactions, recorded: Vec::new() }
    }

    pub fn follow_from(&self, from: Lsn, limits: Limits) -> Follower {
        let mut connection = self.connect(Purpose::Replication);
        connection.start(from).expect("the stream starts");
        let transactions = Transactions::new(from, limits, Curious);
        Follower { connection, transactions, recorded: Vec::new() }
    }
}

pub fn account(user: &str) -> Account {
    Account { user: user.into(), password: "secret".into(), database: "paper".into() }
}

pub struct Follower {
    pub connection: Connection,
    pub transactions: Transactions<Curious>,
    /// The payloads of all frames.
    pub recorded: Vec<Vec<u8>>,
}

impl Follower {
    /// Reads one frame; `None` if the stream has ended.
    pub fn step(&mut self) -> Option<Step> {
        let frame = self.connection.frame()?;
        if let Some(error) = stream::error(&frame) {
            panic!("the server says {error}");
        }
        self.recorded.push(frame.payload.to_vec());
        let step = self.transactions.read(&frame).expect("it can be read");
        if let Step::Keepalive(Reply::Wanted) = step {
            self.confirm();
        }
        Some(step)
    }

    /// Confirms that everything is applied.
    pub fn confirm(&mut self) {
        let applied = self.transactions.position();
        self.connection.send(&stream::status(applied, applied, Reply::NotNeeded));
    }

    /// The next transaction that has changes; `None` if the stream has ended.
    pub fn try_next(&mut self) -> Option<Transaction> {
        loop {
            match self.step()? {
                Step::Transaction(transaction) if !transaction.changes.is_empty() => {
                    return Some(transaction);
                }
                Step::Ended => return None,
                _ => {}
            }
        }
    }

    pub fn next(&mut self) -> Transaction {
        self.try_next().expect("the stream goes on")
    }

    /// The changes of the next transaction as text.
    pub fn told(&mut self) -> Vec<String> {
        told(&self.next())
    }
}

/// The changes of a transaction as text: `update news id=1 title=?>uno`.
pub fn told(transaction: &Transaction) -> Vec<String> {
    let mut lines = Vec::new();
    for change in &transaction.changes {
        match change {
            ChangeScope::Rows(rows) => {
                for row in rows.changes() {
                    lines.push(match row {
                        Ok(row) => format!("{} {}", row_kind(&row), row_told(&row, rows)),
                        Err(refusal) => format!("refused {refusal}"),
                    });
                }
            }
            ChangeScope::Table { schema, name, why } => {
                lines.push(format!("table {schema}.{name} {}", why.as_str()));
            }
            ChangeScope::Definitions => lines.push("definitions".into()),
            ChangeScope::Everything(why) => lines.push(format!("everything {}", why.as_str())),
        }
    }
    lines
}

fn row_kind(row: &RowChange<'_>) -> &'static str {
    match (row.is_insert(), row.is_delete()) {
        (true, _) => "insert",
        (_, true) => "delete",
        _ => "update",
    }
}

fn row_told(row: &RowChange<'_>, rows: &postgres_replication::TableRows) -> String {
    let mut text = rows.table.name.to_string();
    for (place, column) in rows.table.columns.iter().enumerate() {
        let cell = |cell: Cell<'_>| match cell {
            Cell::Text(text) if text.len() > 50 => format!("({} bytes)", text.len()),
            Cell::Text(text) => text.to_owned(),
            Cell::Null => "NULL".into(),
            Cell::Unknown => "?".into(),
        };
        let (before, after) = (cell(row.before(place)), cell(row.after(place)));
        let values = match (row_kind(row), row.changed(place)) {
            ("insert", _) => after,
            ("delete", _) => before,
            (_, false) if before == after => before,
            (_, false) => format!("{before}={after}"),
            (_, true) => format!("{before}>{after}"),
        };
        text += &format!(" {}={values}", column.name);
    }
    text
}
