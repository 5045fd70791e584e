//! A connection to PostgreSQL: login, statements, the frames of the replication stream.
//!
//! Every wait has a timeout. A connection that has failed is closed and not reused. TCP connections
//! are unencrypted unless TLS is configured. The password is never sent in the clear: the login
//! proves knowledge of it. If TLS is configured, it is requested first, and the connection never
//! continues without it. Source: PostgreSQL's manual, "SSL Session Encryption". Not here: the
//! transport (`link`).

use bytes::BytesMut;
use config::{self, DatabaseServer, Place};
use database_links::fault::ConnectionError;
use database_links::link::{Link, within};
use postgres_replication::position::Lsn;
use postgres_replication::wire::frame::{Frame, FrameReader};
use postgres_replication::wire::login::{
    Account, Channel, Login, LoginRefused, LoginStep, Purpose, tls_request,
};
use postgres_replication::wire::query::{Query, QueryLimits, QueryRefused, Rows, query};
use postgres_replication::wire::stream::{self, Reply, Subscription};
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// The timeout for connecting, a frame of the login, or the response to a statement.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The timeout for creating a slot, which waits for the transactions in progress.
const SLOT_WITHIN: Duration = Duration::from_secs(60);
/// The longest frame that is buffered, in bytes. A longer row counts as a change of any row of its
/// table.
const FRAME_BYTES: usize = 16 << 20;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that is logged in.
pub struct Connection {
    link: Link,
    frames: FrameReader,
    input: BytesMut,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(
        server: &DatabaseServer,
        purpose: Purpose,
    ) -> Result<Connection, ConnectionError> {
        within(ANSWER_WITHIN, Self::log_in(server, purpose)).await
    }

    async fn log_in(
        server: &DatabaseServer,
        purpose: Purpose,
    ) -> Result<Connection, ConnectionError> {
        let mut link = Link::connect(server).await?;
        let channel = match (&server.place, server.tls.as_ref()) {
            (Place::Unix(_), _) => Channel::Local,
            (Place::Tcp(..), None) => Channel::Plain,
            (Place::Tcp(..), Some(_)) => {
                link = over_tls(link, server).await?;
                Channel::Tls
            }
        };
        let (frames, input) = (FrameReader::new(FRAME_BYTES), BytesMut::new());
        let mut connection = Connection { link, frames, input };
        let begun = Login::begin(account(server), channel, purpose);
        let (mut login, hello) = begun.map_err(refused)?;
        connection.link.write(&hello).await?;
        loop {
            match login.read(&connection.receive().await?).map_err(refused)? {
                LoginStep::Send(bytes) => connection.link.write(&bytes).await?,
                LoginStep::Wait => {}
                LoginStep::Done => break,
            }
        }
        if let Some(sql) = login.first_statement() {
            connection.ask(sql).await?;
        }
        Ok(connection)
    }

    /// Runs a statement and returns its rows.
    ///
    /// # Errors
    /// The server rejected the statement, which leaves the connection usable, or the connection
    /// failed.
    pub async fn query(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        within(ANSWER_WITHIN, self.ask(sql)).await
    }

    /// Runs a statement that creates a slot, with a longer timeout.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn make_slot(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        within(SLOT_WITHIN, self.ask(sql)).await
    }

    /// Runs a statement and returns its first value; empty for NULL and for no rows.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn one(&mut self, sql: &str) -> Result<String, ConnectionError> {
        Ok(self.query(sql).await?.text(0, 0).unwrap_or_default())
    }

    async fn ask(&mut self, sql: &str) -> Result<Rows, ConnectionError> {
        let bytes = query(sql).map_err(|refusal| said(refusal.as_str(), &refusal))?;
        self.link.write(&bytes).await?;
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let read = reading.read(&self.receive().await?);
            if let Some(rows) = read.map_err(|error| unanswered(&error))? {
                return Ok(rows);
            }
        }
    }

    /// Requests the stream from `from`. Every frame after this belongs to the stream.
    ///
    /// # Errors
    /// Inner: the server refused, with its message. Outer: the connection failed.
    pub async fn start_stream(
        &mut self,
        what: &Subscription,
        from: Lsn,
    ) -> Result<Result<(), QueryRefused>, ConnectionError> {
        let bytes =
            stream::start(what, from).map_err(|refusal| said(refusal.as_str(), &refusal))?;
        self.link.write(&bytes).await?;
        loop {
            let frame = within(ANSWER_WITHIN, self.receive()).await?;
            match stream::started(&frame) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(refused) => return Ok(Err(refused)),
            }
        }
    }

    /// Returns the next frame of the stream; `None` if none arrived by the deadline.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn frame_by(&mut self, by: Instant) -> Result<Option<Frame>, ConnectionError> {
        // A timer has a cost, and most frames are in the buffer already.
        if let Some(frame) = self.ready()? {
            return Ok(Some(frame));
        }
        match tokio::time::timeout_at(by, self.receive()).await {
            Ok(frame) => frame.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reports the received position, and the position up to which the server may discard its log.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn say(
        &mut self,
        received: Lsn,
        kept: Lsn,
        reply: Reply,
    ) -> Result<(), ConnectionError> {
        let bytes = stream::status(received, kept, reply);
        within(ANSWER_WITHIN, async { Ok(self.link.write(&bytes).await?) }).await
    }

    fn ready(&mut self) -> Result<Option<Frame>, ConnectionError> {
        self.frames.read(&mut self.input).map_err(|refusal| said(refusal.as_str(), &refusal))
    }

    async fn receive(&mut self) -> Result<Frame, ConnectionError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(frame);
            }
            self.input.reserve(READ_BYTES);
            if self.link.read(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// Requests TLS. The server responds with one letter and sends nothing else before the handshake.
async fn over_tls(mut link: Link, server: &DatabaseServer) -> Result<Link, ConnectionError> {
    link.write(&tls_request()).await?;
    let mut answer = BytesMut::new();
    link.read(&mut answer).await?;
    match &answer[..] {
        b"S" => link.over_tls(server).await,
        b"" => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        // An overloaded server responds with an error. Bytes after the letter are not
        // authenticated.
        [b'S', ..] | [b'E', ..] => {
            let why = "what came in answer to the request for TLS is more than a letter";
            Err(io::Error::new(io::ErrorKind::InvalidData, why).into())
        }
        _ => {
            let why =
                "the server does not speak TLS: ssl = on in postgresql.conf, with a certificate";
            Err(ConnectionError::Lasting("no-tls", why.into()))
        }
    }
}

fn said(name: &'static str, error: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::Said(name, error.to_string())
}

fn refused(refused: LoginRefused) -> ConnectionError {
    ConnectionError::of(refused.as_str(), &refused, refused.is_lasting())
}

/// Converts the error of a statement.
pub fn unanswered(refused: &QueryRefused) -> ConnectionError {
    ConnectionError::of(refused.as_str(), refused, refused.is_lasting())
}

fn account(server: &DatabaseServer) -> Account {
    let config::Account { user, password, database } = server.account.clone();
    Account { user, password, database }
}
