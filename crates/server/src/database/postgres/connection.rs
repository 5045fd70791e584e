//! A connection to PostgreSQL: login, statements, the frames of the stream.
//!
//! Every wait is bounded. What has failed once is of no use any more and is dropped. Over TCP the
//! connection is in the clear (the password is not: the login proves it without sending it).
//! Not here: TLS.

use crate::config::{self, Address, DatabaseServer, Place};
use crate::database::source::Failed;
use crate::origin::socket::Socket;
use bytes::BytesMut;
use postgres_replication::position::Lsn;
use postgres_replication::wire::frame::{Frame, FrameReader};
use postgres_replication::wire::login::{
    Account, Channel, Login, LoginRefused, LoginStep, Purpose,
};
use postgres_replication::wire::query::{Query, QueryLimits, QueryRefused, Rows, query};
use postgres_replication::wire::stream::{self, Reply, Subscription};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// How long connecting, a frame of the login, or the answer to a statement may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a slot may take to be made: it waits for the transactions that are under way.
const SLOT_WITHIN: Duration = Duration::from_secs(60);
/// The longest frame that is held whole; of a longer row its table is told.
const FRAME_BYTES: usize = 16 << 20;
/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that is logged in.
pub struct Connection {
    socket: Socket,
    frames: FrameReader,
    input: BytesMut,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub async fn open(server: &DatabaseServer, purpose: Purpose) -> Result<Connection, Failed> {
        within(ANSWER_WITHIN, Self::log_in(server, purpose)).await
    }

    async fn log_in(server: &DatabaseServer, purpose: Purpose) -> Result<Connection, Failed> {
        let (address, channel) = match &server.place {
            Place::Unix(path) => (Address::Unix(path.clone()), Channel::Local),
            Place::Tcp(host, port) => {
                let mut found = tokio::net::lookup_host((host.as_str(), *port)).await?;
                let address =
                    found.next().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                (Address::Tcp(address), Channel::Plain)
            }
        };
        let mut connection = Connection {
            socket: Socket::connect(&address).await?,
            frames: FrameReader::new(FRAME_BYTES),
            input: BytesMut::new(),
        };
        let begun = Login::begin(account(server), channel, purpose);
        let (mut login, hello) = begun.map_err(refused)?;
        connection.socket.write_all(&hello).await?;
        loop {
            match login.read(&connection.receive().await?).map_err(refused)? {
                LoginStep::Send(bytes) => connection.socket.write_all(&bytes).await?,
                LoginStep::Wait => {}
                LoginStep::Done => break,
            }
        }
        if let Some(sql) = login.first_statement() {
            connection.ask(sql).await?;
        }
        Ok(connection)
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// Why there are no rows. What the server refuses leaves the connection usable.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, Failed> {
        within(ANSWER_WITHIN, self.ask(sql)).await
    }

    /// Runs a statement that makes a slot.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn make_slot(&mut self, sql: &str) -> Result<Rows, Failed> {
        within(SLOT_WITHIN, self.ask(sql)).await
    }

    /// The first value that a statement gives; empty for NULL and for no rows.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn one(&mut self, sql: &str) -> Result<String, Failed> {
        Ok(self.query(sql).await?.text(0, 0).unwrap_or_default())
    }

    async fn ask(&mut self, sql: &str) -> Result<Rows, Failed> {
        let bytes = query(sql).map_err(|refusal| said(refusal.as_str(), &refusal))?;
        self.socket.write_all(&bytes).await?;
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let read = reading.read(&self.receive().await?);
            if let Some(rows) = read.map_err(|error| said(error.as_str(), &error))? {
                return Ok(rows);
            }
        }
    }

    /// Asks for the stream from `from`; from then on every frame is one of it.
    ///
    /// # Errors
    /// What the server refuses, as it says it; or the connection failed.
    pub async fn start_stream(
        &mut self,
        what: &Subscription,
        from: Lsn,
    ) -> Result<Result<(), QueryRefused>, Failed> {
        let bytes =
            stream::start(what, from).map_err(|refusal| said(refusal.as_str(), &refusal))?;
        self.socket.write_all(&bytes).await?;
        loop {
            let frame = within(ANSWER_WITHIN, self.receive()).await?;
            match stream::started(&frame) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(refused) => return Ok(Err(refused)),
            }
        }
    }

    /// The next frame of the stream; none if it has not come by then.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn frame_by(&mut self, by: Instant) -> Result<Option<Frame>, Failed> {
        // A timer costs something; most frames are there already.
        if let Some(frame) = self.ready()? {
            return Ok(Some(frame));
        }
        match tokio::time::timeout_at(by, self.receive()).await {
            Ok(frame) => frame.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Says how far the stream is applied.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn say(&mut self, applied: Lsn, reply: Reply) -> Result<(), Failed> {
        let bytes = stream::status(applied, applied, reply);
        within(ANSWER_WITHIN, async { Ok(self.socket.write_all(&bytes).await?) }).await
    }

    fn ready(&mut self) -> Result<Option<Frame>, Failed> {
        self.frames.read(&mut self.input).map_err(|refusal| said(refusal.as_str(), &refusal))
    }

    async fn receive(&mut self) -> Result<Frame, Failed> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(frame);
            }
            self.input.reserve(READ_BYTES);
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

fn said(name: &'static str, error: &dyn std::fmt::Display) -> Failed {
    Failed::Said(name, error.to_string())
}

fn refused(refused: LoginRefused) -> Failed {
    said(refused.as_str(), &refused)
}

fn account(server: &DatabaseServer) -> Account {
    let config::Account { user, password, database } = server.account.clone();
    Account { user, password, database }
}

async fn within<T>(
    time: Duration,
    what: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    match tokio::time::timeout(time, what).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}
