//! A connection to Valkey or Redis (RESP): login, commands, replies.
//!
//! Every wait has a timeout; the replies to commands that are sent together have one in common. A connection that has failed is closed and not reused. The password is
//! sent as plain text: use TLS (`rediss://`) for a server on another machine. Not here: the
//! transport (`link`).

use bytes::BytesMut;
use config::{DatabaseServer, Place};
use database_links::fault::ConnectionError;
use database_links::link::{Link, within};
use std::io;
use std::time::Duration;
use tokio::time::Instant;
use valkey::{Place as Reached, Replies, Reply, authenticate, command, extent, fields, select};

/// The timeout for connecting, and for the reply to a command.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The longest reply in bytes. It exceeds the largest reply to a read of entries.
const REPLY_BYTES: usize = 48 << 20;
/// The most characters of a server's error message that are shown.
const ERROR_CHARACTERS: usize = 300;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that is logged in.
pub struct Connection {
    link: Link,
    replies: Replies,
    input: BytesMut,
    /// When all replies to the commands that were sent last must have arrived.
    answer_by: Instant,
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
        let mut link = Link::connect(server).await?;
        if server.tls.is_some() && matches!(server.place, Place::Tcp(..)) {
            link = link.over_tls(server).await?;
        }
        let (replies, input) = (Replies::new(REPLY_BYTES), BytesMut::new());
        let mut connection = Connection { link, replies, input, answer_by: Instant::now() };
        let account = &server.account;
        if !account.password.is_empty() {
            connection.ask(&authenticate(&account.user, &account.password)).await?;
        }
        if account.database != "0" {
            connection.ask(&select(&account.database)).await?;
        }
        Ok(connection)
    }

    /// Sends a command and returns its reply.
    ///
    /// # Errors
    /// The connection failed, or the server replied with an error.
    pub async fn ask(&mut self, command: &[u8]) -> Result<Reply, ConnectionError> {
        self.send(command).await?;
        good(self.receive().await?)
    }

    /// Sends commands whose replies may be errors, for example because the account may not do that.
    /// Together they have one timeout.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn try_all(&mut self, commands: &[Vec<u8>]) -> Result<(), ConnectionError> {
        if !commands.is_empty() {
            self.send(&commands.concat()).await?;
        }
        for _ in commands {
            self.receive().await?;
        }
        Ok(())
    }

    /// Queries the server's description (`INFO`).
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub async fn server(&mut self) -> Result<valkey::Server, ConnectionError> {
        match self.ask(&command(&[b"INFO"])).await? {
            Reply::Bytes(text) => Ok(valkey::Server::read(&String::from_utf8_lossy(&text))),
            _ => Err(ConnectionError::Said(
                "bad-reply",
                "INFO was answered with something else".into(),
            )),
        }
    }

    /// Reads the next reply as the fields of a hash.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), or the reply has another type.
    pub async fn fields(&mut self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, ConnectionError> {
        let read = fields(good(self.receive().await?)?);
        let why = "a hash was asked for, and something else was answered";
        read.ok_or_else(|| ConnectionError::Said("bad-reply", why.into()))
    }

    /// Reads the next reply as the end of the stream with this key: its last ID and its counts.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), or the key is not a stream.
    pub async fn extent(&mut self, key: &str) -> Result<Reached, ConnectionError> {
        let reply = self.receive().await?;
        if let Some(place) = extent(&reply) {
            return Ok(place);
        }
        good(reply)?;
        let why = format!("{key} is no stream, or the server is older than Redis 7.0");
        Err(ConnectionError::Lasting("old-server", why))
    }

    /// Sends commands without waiting for their replies.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn send(&mut self, commands: &[u8]) -> Result<(), ConnectionError> {
        self.send_waiting(commands, Duration::ZERO).await
    }

    /// The same for commands on which the server waits for as long as `wait`.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn send_waiting(
        &mut self,
        commands: &[u8],
        wait: Duration,
    ) -> Result<(), ConnectionError> {
        self.answer_by = Instant::now() + ANSWER_WITHIN + wait;
        within(ANSWER_WITHIN, async { Ok(self.link.write(commands).await?) }).await
    }

    /// Reads the next reply to the commands that were sent last.
    ///
    /// # Errors
    /// The connection failed, or the bytes are not a reply.
    pub async fn receive(&mut self) -> Result<Reply, ConnectionError> {
        let left = self.answer_by.saturating_duration_since(Instant::now());
        within(left, self.reply()).await
    }

    async fn reply(&mut self) -> Result<Reply, ConnectionError> {
        loop {
            let read = self.replies.read();
            let read = read.map_err(|why| ConnectionError::Said("bad-reply", why.to_string()))?;
            if let Some(reply) = read {
                return Ok(reply);
            }
            self.input.clear();
            self.input.reserve(READ_BYTES);
            if self.link.read(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.replies.push(&self.input);
        }
    }
}

/// Returns the reply unless it is an error.
pub fn good(reply: Reply) -> Result<Reply, ConnectionError> {
    let Reply::Error(text) = reply else { return Ok(reply) };
    // The text is shown in logs and on terminals.
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let text: String = text.chars().take(ERROR_CHARACTERS).map(shown).collect();
    Err(match text.split(' ').next() {
        Some("NOAUTH" | "WRONGPASS") => ConnectionError::Lasting("access-denied", text),
        Some("NOPERM") => ConnectionError::Lasting("not-permitted", text),
        Some("WRONGTYPE") => ConnectionError::Lasting("no-stream", text),
        // A password for a user without one gives `ERR AUTH <password> called without any …`.
        Some("ERR") if text.contains("AUTH") => ConnectionError::Lasting("access-denied", text),
        _ => ConnectionError::Said("refused", text),
    })
}
