//! A connection to Valkey or Redis: login, commands, replies.
//!
//! Every wait is bounded. What has failed once is of no use any more and is dropped. The password goes over
//! the connection as it is: over TCP to another machine TLS belongs in the URL. Not here: what carries the
//! bytes (`link`).

use crate::config::{DatabaseServer, Place};
use crate::database::link::{Link, within};
use crate::database::source::Failed;
use bytes::BytesMut;
use std::io;
use std::time::Duration;
use valkey::{Place as Reached, Replies, Reply, authenticate, command, extent, fields, select};

/// How long connecting, or the answer to a command may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// What a reply takes at most: more than as many entries as are asked for do.
const REPLY_BYTES: usize = 48 << 20;
/// How much is shown of what the server says against a command.
const ERROR_CHARACTERS: usize = 300;
/// How much is read at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that is logged in.
pub struct Connection {
    link: Link,
    replies: Replies,
    input: BytesMut,
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
        let mut link = Link::connect(server).await?;
        if server.tls.is_some() && matches!(server.place, Place::Tcp(..)) {
            link = link.over_tls(server).await?;
        }
        let (replies, input) = (Replies::new(REPLY_BYTES), BytesMut::new());
        let mut connection = Connection { link, replies, input };
        let account = &server.account;
        if !account.password.is_empty() {
            connection.ask(&authenticate(&account.user, &account.password)).await?;
        }
        if account.database != "0" {
            connection.ask(&select(&account.database)).await?;
        }
        Ok(connection)
    }

    /// Sends a command, and waits for its reply.
    ///
    /// # Errors
    /// Why there is none, or what the server says against it.
    pub async fn ask(&mut self, command: &[u8]) -> Result<Reply, Failed> {
        self.send(command).await?;
        good(self.receive(Duration::ZERO).await?)
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub async fn server(&mut self) -> Result<valkey::Server, Failed> {
        match self.ask(&command(&[b"INFO"])).await? {
            Reply::Bytes(text) => Ok(valkey::Server::read(&String::from_utf8_lossy(&text))),
            _ => Err(Failed::Said("bad-reply", "INFO was answered with something else".into())),
        }
    }

    /// The next reply, to a command that asks for the fields of a hash.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), or it is something else.
    pub async fn fields(&mut self) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Failed> {
        let read = fields(good(self.receive(Duration::ZERO).await?)?);
        let why = "a hash was asked for, and something else was answered";
        read.ok_or_else(|| Failed::Said("bad-reply", why.into()))
    }

    /// The next reply, to a command that asks how far this stream has come.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask), or it is something else.
    pub async fn extent(&mut self, key: &str) -> Result<Reached, Failed> {
        let reply = self.receive(Duration::ZERO).await?;
        if let Some(place) = extent(&reply) {
            return Ok(place);
        }
        good(reply)?;
        let why = format!("{key} is no stream, or the server is older than Redis 7.0");
        Err(Failed::Said("old-server", why))
    }

    /// Sends commands; each has a reply.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn send(&mut self, commands: &[u8]) -> Result<(), Failed> {
        within(ANSWER_WITHIN, async { Ok(self.link.write(commands).await?) }).await
    }

    /// The next reply, which may take this much longer than others.
    ///
    /// # Errors
    /// The connection failed, or what came is no reply.
    pub async fn receive(&mut self, longer: Duration) -> Result<Reply, Failed> {
        within(ANSWER_WITHIN + longer, self.reply()).await
    }

    async fn reply(&mut self) -> Result<Reply, Failed> {
        loop {
            let read = self.replies.read();
            let read = read.map_err(|why| Failed::Said("bad-reply", why.to_string()))?;
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

/// A reply that is no error.
pub fn good(reply: Reply) -> Result<Reply, Failed> {
    let Reply::Error(text) = reply else { return Ok(reply) };
    // It comes into logs and onto screens.
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let text: String = text.chars().take(ERROR_CHARACTERS).map(shown).collect();
    let name = match text.split(' ').next() {
        Some("NOAUTH" | "WRONGPASS") => "access-denied",
        Some("NOPERM") => "not-permitted",
        Some("WRONGTYPE") => "no-stream",
        // A password for a user without one: `ERR AUTH <password> called without any password …`.
        Some("ERR") if text.contains("AUTH") => "access-denied",
        _ => "refused",
    };
    Err(Failed::Said(name, text))
}
