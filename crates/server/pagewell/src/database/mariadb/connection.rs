//! A connection to a database: login, statements, the packets of the stream.
//!
//! Every wait is bounded. What has failed once is of no use any more and is dropped. Over TCP the
//! connection is in the clear unless TLS is asked for (the password never is: the login proves it
//! without sending it). Not here: what carries the bytes (`link`).

use crate::config::{self, DatabaseServer, Place};
use crate::database::link::{Link, within};
use crate::database::source::Failed;
use bytes::BytesMut;
use mysql_replication::position::Start;
use mysql_replication::wire::command;
use mysql_replication::wire::greeting::{Flavour, Greeting};
use mysql_replication::wire::login::{Account, Channel, Login, LoginRefused, LoginStep};
use mysql_replication::wire::packet::{Packet, PacketReader};
use mysql_replication::wire::query::{Query, QueryLimits, Rows, query};
use std::io;
use std::time::Duration;

/// How long connecting, a packet of the login, or the answer to a statement may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How often the server says that it is there.
const HEARTBEAT_SECONDS: u32 = 1;
/// How long a stream may be silent.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// The longest packet that is held whole; of a longer event its table is told.
const PACKET_BYTES: usize = 16 << 20;
/// How much is read at once.
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
    /// Why it could not.
    pub async fn open(server: &DatabaseServer) -> Result<Connection, Failed> {
        within(ANSWER_WITHIN, Self::log_in(server)).await
    }

    async fn log_in(server: &DatabaseServer) -> Result<Connection, Failed> {
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
                // What came before TLS could be anybody's.
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

    /// Whose dialect the server speaks.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// Why there are no rows. What the server refuses leaves the connection usable.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, Failed> {
        within(ANSWER_WITHIN, self.ask(sql)).await
    }

    /// The first value that a statement gives; empty for NULL and for no rows.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn one(&mut self, sql: &str) -> Result<String, Failed> {
        Ok(self.query(sql).await?.text(0, 0).unwrap_or_default())
    }

    async fn ask(&mut self, sql: &str) -> Result<Rows, Failed> {
        self.link.write(&query(sql)).await?;
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let packet = self.receive().await?;
            let read = reading.read(&packet);
            let read = read.map_err(|error| Failed::Said(error.as_str(), error.to_string()))?;
            if let Some(rows) = read {
                return Ok(rows);
            }
        }
    }

    /// Asks for the stream from `start`; from then on every packet is an event.
    ///
    /// # Errors
    /// A setting was refused, or the connection failed.
    pub async fn start_stream(&mut self, server_id: u32, start: &Start) -> Result<(), Failed> {
        for sql in command::prepare(self.flavour, start, HEARTBEAT_SECONDS) {
            self.query(&sql).await?;
        }
        self.link.write(&command::dump(server_id, start)).await?;
        Ok(())
    }

    /// The next packet of the stream; silence is a failure.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn next_event(&mut self) -> Result<Packet, Failed> {
        // A timer costs something; most packets are there already.
        match self.packets.ready()? {
            Some(packet) => Ok(packet),
            None => within(SILENT_MAX, self.receive()).await,
        }
    }

    async fn receive(&mut self) -> Result<Packet, Failed> {
        self.packets.receive(&mut self.link).await
    }
}

/// What has come in, cut into packets.
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
    fn ready(&mut self) -> Result<Option<Packet>, Failed> {
        let read = self.reader.read(&mut self.input);
        read.map_err(|refusal| Failed::Said(refusal.as_str(), refusal.to_string()))
    }

    async fn receive(&mut self, link: &mut Link) -> Result<Packet, Failed> {
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

fn refused(error: LoginRefused) -> Failed {
    Failed::Said(error.as_str(), error.to_string())
}

fn account(server: &DatabaseServer) -> Account {
    let config::Account { user, password, database } = server.account.clone();
    Account { user, password, database }
}
