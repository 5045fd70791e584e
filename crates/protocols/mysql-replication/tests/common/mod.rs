//! A small blocking client for the tests: a Unix socket or TCP, a login, statements, the stream.
//!
//! It implements what the README requires of the owner of a socket, and stores every packet of the stream for
//! recordings. Reads have a timeout; a silent stream fails the test.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod told;

use bytes::BytesMut;
use harness::{Address, MariaDb, MariaDbOptions, PrivateDir, Stream, free_port};
use mysql_replication::command;
use mysql_replication::position::Start;
use mysql_replication::schema::{TableShape, columns_query};
use mysql_replication::{Interest, Limits, Step, StreamRefused, Transaction, Transactions, Watch};
use mysql_wire::login::{Account, Channel, Login, LoginRefused, LoginStep};
use mysql_wire::packet::{Packet, PacketReader};
use mysql_wire::query::{Query, QueryLimits, QueryRefused, Rows, query};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// The transport: a socket, or TLS over a socket.
pub trait Carrier: Read + Write {}

impl<T: Read + Write> Carrier for T {}

pub struct Connection {
    stream: Box<dyn Carrier>,
    packets: PacketReader,
    input: BytesMut,
    pub login: Login,
}

impl Connection {
    pub fn open(address: &Address, account: Account) -> Result<Connection, LoginRefused> {
        Self::open_with(address, account, 64 << 20)
    }

    pub fn open_with(
        address: &Address,
        account: Account,
        packet_bytes: usize,
    ) -> Result<Connection, LoginRefused> {
        let channel = match address {
            Address::Tcp(_) => Channel::Plain,
            Address::Unix(_) => Channel::Local,
        };
        let stream = Box::new(address.connect(PATIENCE).expect("the server accepts"));
        let mut connection = Self::begin(stream, account, channel, packet_bytes);
        match connection.log_in()? {
            None => Ok(connection),
            Some(_) => unreachable!("TLS was not asked for"),
        }
    }

    pub fn open_tls(
        address: &Address,
        account: Account,
        tls: rustls::ClientConnection,
    ) -> Result<Connection, LoginRefused> {
        // Two handles of one socket: before TLS, and under it.
        let socket = match address.connect(PATIENCE).expect("the server accepts") {
            Stream::Tcp(socket) => socket,
            Stream::Unix(_) => unreachable!("TLS is for TCP"),
        };
        let below = socket.try_clone().expect("another handle");
        let mut connection = Self::begin(Box::new(socket), account, Channel::Tls, 64 << 20);
        let request = connection.log_in()?.expect("TLS is due");
        connection.send(&request);
        connection.stream = Box::new(rustls::StreamOwned::new(tls, below));
        let LoginStep::Send(bytes) = connection.login.tls_is_up()? else {
            unreachable!("the login comes next")
        };
        connection.send(&bytes);
        assert_eq!(connection.log_in()?, None);
        Ok(connection)
    }

    fn begin(
        stream: Box<dyn Carrier>,
        account: Account,
        channel: Channel,
        packet_bytes: usize,
    ) -> Connection {
        let login = Login::new(account, channel, 1 << 30);
        let packets = PacketReader::new(packet_bytes);
        Connection { stream, packets, input: BytesMut::new(), login }
    }

    /// Runs the login until it is done, or until TLS must start; then returns the bytes to send first.
    fn log_in(&mut self) -> Result<Option<Vec<u8>>, LoginRefused> {
        loop {
            let packet = self.receive();
            match self.login.read(&packet)? {
                LoginStep::Send(bytes) => self.send(&bytes),
                LoginStep::Wait => {}
                LoginStep::StartTls(bytes) => return Ok(Some(bytes)),
                LoginStep::Done => return Ok(None),
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes it");
        self.stream.flush().expect("the server takes it");
    }

    pub fn receive(&mut self) -> Packet {
        loop {
            if let Some(packet) = self.packets.read(&mut self.input).expect("in sequence") {
                return packet;
            }
            let mut piece = vec![0; 64 << 10];
            let count = self.stream.read(&mut piece).expect("the server says something");
            assert!(count > 0, "the server has closed the connection");
            self.input.extend_from_slice(&piece[..count]);
        }
    }

    pub fn query(&mut self, sql: &str) -> Result<Rows, QueryRefused> {
        self.send(&query(sql));
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let packet = self.receive();
            if let Some(rows) = reading.read(&packet)? {
                return Ok(rows);
            }
        }
    }

    pub fn one(&mut self, sql: &str) -> String {
        self.query(sql).expect("an answer").text(0, 0).unwrap_or_default()
    }

    pub fn start_stream(&mut self, server_id: u32, start: &Start) {
        let flavour = self.login.greeting().expect("it greeted").flavour();
        for sql in command::prepare(flavour, start, 1) {
            self.query(&sql).expect("a setting");
        }
        self.send(&command::dump(server_id, start));
    }
}

pub fn account(database: &str) -> Account {
    Account { user: "replica".into(), password: "secret".into(), database: database.into() }
}

/// A server that writes a log in row format, with further options.
pub fn server(more: &[&str]) -> MariaDb {
    let dir = PrivateDir::temporary("binlog").expect("a directory");
    let port = Some(free_port().expect("a port"));
    let options = MariaDbOptions::followed(&[&["--gtid-strict-mode=1"], more].concat());
    let server = MariaDb::start_with(dir, MariaDbOptions { port, ..options }).expect("MariaDB");
    set_up(&server);
    server
}

/// Creates accounts for reading the stream and for writing, and a database.
fn set_up(server: &MariaDb) {
    server.create_database("news", "writer", "secret").expect("a database");
    server
        .sql(
            "CREATE USER replica@localhost IDENTIFIED BY 'secret';
             GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO replica@localhost;
             GRANT SELECT ON news.* TO replica@localhost;",
        )
        .expect("an account");
}

/// Follows all tables of `news`, with the shapes it was given.
#[derive(Default)]
pub struct News {
    pub shapes: HashMap<(String, String), Arc<TableShape>>,
    pub interests: HashMap<String, Interest>,
}

impl Watch for News {
    fn interest(&mut self, schema: &str, table: &str) -> Interest {
        match schema {
            "news" => self.interests.get(table).copied().unwrap_or(Interest::Rows),
            _ => Interest::None,
        }
    }

    fn follows(&mut self, schema: &str) -> bool {
        schema == "news"
    }

    fn shape(&mut self, schema: &str, table: &str) -> Option<Arc<TableShape>> {
        self.shapes.get(&(schema.to_owned(), table.to_owned())).cloned()
    }
}

pub struct Follower {
    pub connection: Connection,
    pub transactions: Transactions<News>,
    pub recorded: Vec<Packet>,
}

impl Follower {
    /// A reader from the server's current position, by GTID.
    pub fn now(server: &MariaDb, server_id: u32, limits: Limits) -> Follower {
        let address = Address::Unix(server.socket().to_owned());
        let mut asking = Connection::open(&address, account("news")).expect("a login");
        let list = asking.one("SELECT @@gtid_current_pos");
        Self::at(server, server_id, limits, &Start::MariaDb(list.parse().expect("a list")))
    }

    pub fn at(server: &MariaDb, server_id: u32, limits: Limits, start: &Start) -> Follower {
        let address = Address::Unix(server.socket().to_owned());
        let bound = limits.event_bytes;
        let mut connection =
            Connection::open_with(&address, account("news"), bound).expect("a login");
        let mut news = News::default();
        let rows = connection.query(&columns_query("news", None)).expect("columns");
        for (name, shape) in TableShape::read_all(&rows).expect("shapes") {
            news.shapes.insert(name, Arc::new(shape));
        }
        connection.start_stream(server_id, start);
        let transactions = Transactions::new(start, limits, news);
        Follower { connection, transactions, recorded: Vec::new() }
    }

    pub fn next(&mut self) -> Result<Transaction, StreamRefused> {
        loop {
            let packet = self.connection.receive();
            self.recorded.push(packet.clone());
            match self.transactions.read(&packet)? {
                Step::Transaction(transaction) => return Ok(transaction),
                Step::Nothing | Step::Heartbeat => {}
                Step::Ended => panic!("the stream ended"),
            }
        }
    }

    /// All transactions up to the last one that the server has committed.
    pub fn catch_up(&mut self, server: &MariaDb) -> Vec<Transaction> {
        use mysql_replication::position::{GtidList, Gtids, PositionOrder};
        let now: GtidList = server
            .sql("SELECT @@gtid_current_pos")
            .expect("a list")
            .trim()
            .parse()
            .expect("a list");
        let mut read = Vec::new();
        loop {
            let Gtids::MariaDb(own) = &self.transactions.position().gtids else {
                panic!("followed by GTID")
            };
            if matches!(own.compare(&now), PositionOrder::Same | PositionOrder::Ahead) {
                return read;
            }
            read.push(self.next().expect("a transaction"));
        }
    }
}
