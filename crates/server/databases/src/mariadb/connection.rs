//! A connection to MariaDB or MySQL: login, statements, the packets of the replication stream.
//!
//! Every wait has a timeout. A connection that has failed is closed and not reused. TCP connections
//! are unencrypted unless TLS is configured. The password is never sent in the clear: the login
//! proves knowledge of it. Not here: the transport (`link`).

use bytes::BytesMut;
use config::{self, DatabaseServer, Place};
use database_links::fault::ConnectionError;
use database_links::link::{Link, within};
use mysql_replication::command;
use mysql_replication::position::Start;
use mysql_wire::greeting::{Flavour, Greeting};
use mysql_wire::login::{Account, Channel, Login, LoginRefused, LoginStep};
use mysql_wire::packet::{Packet, PacketReader};
use mysql_wire::query::{Query, QueryLimits, QueryRefused, Rows, query};
use std::io;
use std::time::Duration;

/// The timeout for connecting, a packet of the login, or the response to a statement.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The interval at which the server sends heartbeats on an idle stream, in seconds.
const HEARTBEAT_SECONDS: u32 = 1;
/// The longest time without a packet before the stream counts as broken.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// The longest packet that is buffered, in bytes. A longer event counts as a change of any row of
/// its table.
const PACKET_BYTES: usize = 16 << 20;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that is logged in.
pub struct Connection {
    link: Link,
    packets: Packets,
    flavour: Flavour,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(server: &DatabaseServer) -> Result<Connection, ConnectionError> {
        within(ANSWER_WITHIN, Self::log_in(server)).await
    }

    async fn log_in(server: &DatabaseServer) -> Result<Connection, ConnectionError> {
        let channel = match (&server.place, server.tls.as_ref()) {
            (Place::Unix(_), _) => Channel::Local,
            (Place::Tcp(..), None) => Channel::Plain,
            (Place::Tcp(..), Some(_)) => Channel::Tls,
        };
        let mut link = Link::connect(server).await?;
        let mut packets = Packets::default();
        let mut login = Login::new(account(server), channel, 1 << 30);
        loop {
            let packet = packets.receive(&mut link).await?;
            let mut step = login.read(&packet).map_err(refused)?;
            if let LoginStep::StartTls(bytes) = &step {
                // Bytes received before TLS are not authenticated.
                if !packets.input.is_empty() {
                    return Err(io::Error::from(io::ErrorKind::InvalidData).into());
                }
                link.write(bytes).await?;
                link = link.over_tls(server).await?;
                step = login.tls_is_up().map_err(refused)?;
            }
            match step {
                LoginStep::Send(bytes) => link.write(&bytes).await?,
                LoginStep::Wait => {}
                LoginStep::StartTls(_) => return Err(io::Error::other("TLS within TLS").into()),
                LoginStep::Done => break,
            }
        }
        let flavour = login.greeting().map_or(Flavour::MySql, Greeting::flavour);
        Ok(Connection { link, packets, flavour })
    }

    /// Returns whether the server is MariaDB or MySQL.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The server rejected the statement, which leaves the connection usable, or the connection
    /// failed.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        within(ANSWER_WITHIN, self.ask(sql)).await
    }

    /// Runs a statement and returns its first value; empty for NULL and for no rows.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn one(&mut self, sql: &str) -> Result<String, ConnectionError> {
        Ok(self.query(sql).await?.text(0, 0).unwrap_or_default())
    }

    /// Runs a statement that the server may refuse; `None` then. The result is limited.
    ///
    /// # Errors
    /// The connection failed, or the result exceeds the limits. The connection cannot be used again.
    pub async fn try_query(
        &mut self,
        sql: &str,
        limits: QueryLimits,
    ) -> Result<Option<Rows>, ConnectionError> {
        match within(ANSWER_WITHIN, self.rows(sql, limits)).await? {
            Ok(rows) => Ok(Some(rows)),
            Err(QueryRefused::Server(_)) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn ask(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        let rows = self.rows(sql, QueryLimits::default()).await?;
        rows.map_err(|error| failed(&error))
    }

    async fn rows(
        &mut self,
        sql: &str,
        limits: QueryLimits,
    ) -> Result<Result<Rows, QueryRefused>, ConnectionError> {
        self.link.write(&query(sql)).await?;
        let mut reading = Query::new(limits);
        loop {
            let packet = self.receive().await?;
            match reading.read(&packet) {
                Ok(None) => {}
                Ok(Some(rows)) => return Ok(Ok(rows)),
                Err(refused) => return Ok(Err(refused)),
            }
        }
    }

    /// Requests the stream from `start`. Every packet after this is an event.
    ///
    /// # Errors
    /// A setting was refused, or the connection failed.
    pub async fn start_stream(
        &mut self,
        server_id: u32,
        start: &Start,
    ) -> Result<(), ConnectionError> {
        for sql in command::prepare(self.flavour, start, HEARTBEAT_SECONDS) {
            self.query(&sql).await?;
        }
        self.link.write(&command::dump(server_id, start)).await?;
        Ok(())
    }

    /// Returns the next packet of the stream.
    ///
    /// # Errors
    /// The connection failed, or nothing arrived within [`SILENT_MAX`].
    pub async fn next_event(&mut self) -> Result<Packet, ConnectionError> {
        // A timer has a cost, and most packets are in the buffer already.
        match self.packets.ready()? {
            Some(packet) => Ok(packet),
            None => within(SILENT_MAX, self.receive()).await,
        }
    }

    async fn receive(&mut self) -> Result<Packet, ConnectionError> {
        self.packets.receive(&mut self.link).await
    }
}

/// Received bytes, split into packets.
struct Packets {
    reader: PacketReader,
    input: BytesMut,
}

impl Default for Packets {
    fn default() -> Packets {
        Packets { reader: PacketReader::new(PACKET_BYTES), input: BytesMut::new() }
    }
}

impl Packets {
    fn ready(&mut self) -> Result<Option<Packet>, ConnectionError> {
        let read = self.reader.read(&mut self.input);
        read.map_err(|refusal| ConnectionError::Said(refusal.as_str(), refusal.to_string()))
    }

    async fn receive(&mut self, link: &mut Link) -> Result<Packet, ConnectionError> {
        loop {
            if let Some(packet) = self.ready()? {
                return Ok(packet);
            }
            self.input.reserve(READ_BYTES);
            if link.read(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

fn failed(error: &QueryRefused) -> ConnectionError {
    ConnectionError::of(error.as_str(), error, error.is_lasting())
}

fn refused(error: LoginRefused) -> ConnectionError {
    ConnectionError::of(error.as_str(), &error, error.is_lasting())
}

fn account(server: &DatabaseServer) -> Account {
    let config::Account { user, password, database } = server.account.clone();
    Account { user, password, database }
}
