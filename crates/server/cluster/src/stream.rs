//! The stream: connects, reads, returns one entry after the other.
//!
//! A restarted server may have lost entries, so it counts as another server; its `run_id` shows the
//! restart. Entries that were deleted before they were read are detected at the next read, by their
//! count (`valkey::Place`). That happens before they are reported as applied.

use super::connection::{Connection, good};
use super::entry_format::{self, PeerInvalidation};
use super::peer_positions::{self, OwnField};
use super::unpublished::{self, NodeReports};
use config::{Database, DatabaseKind, SharedStream};
use database_links::fault::{ConnectionError, Recovery, StreamFault, Warning};
use database_links::proof_times::ask_every;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use valkey::{
    Entry, Id, Place, Reply, add_nothing, all_fields, ask_extent, read_after, read_whole, whole,
};

/// The most entries that one read requests.
const ENTRIES: usize = 32;

/// A connection for queries about a stream.
pub struct Session {
    connection: Connection,
    key: String,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The connection or the login failed.
    pub async fn open(config: &Database) -> Result<Session, ConnectionError> {
        let connection = Connection::open(&config.server).await?;
        Ok(Session { connection, key: shared(config).key })
    }

    /// Returns the end of the stream.
    ///
    /// # Errors
    /// The query failed.
    pub async fn committed(&mut self) -> Result<Place, ConnectionError> {
        self.place().await
    }

    /// Tests whether the account may add entries, and whether the server accepts them.
    async fn try_to_add(&mut self) -> Result<(), ConnectionError> {
        self.connection.send(&add_nothing(&self.key)).await?;
        match self.connection.receive().await? {
            // The server checks the ID after everything else.
            Reply::Error(text) if text.contains("greater than 0-0") => Ok(()),
            other => good(other).map(drop),
        }
    }

    /// Tests whether the account may write this node's position and read those of others.
    async fn try_to_say(&mut self) -> Result<(), ConnectionError> {
        self.connection.send(&peer_positions::try_all(&self.key)).await?;
        for _ in 0..3 {
            good(self.connection.receive().await?)?;
        }
        Ok(())
    }

    /// Reads what the nodes report about themselves.
    ///
    /// # Errors
    /// The query failed.
    pub async fn reports(&mut self) -> Result<NodeReports, ConnectionError> {
        let hashes = [unpublished::hash(&self.key), peer_positions::hash(&self.key)];
        self.connection.send(&hashes.map(|hash| all_fields(&hash)).concat()).await?;
        let (unpublished, positions) =
            (self.connection.fields().await?, self.connection.fields().await?);
        Ok(NodeReports { unpublished, positions })
    }

    /// Executes commands, as far as the account may.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn try_all(&mut self, commands: &[Vec<u8>]) -> Result<(), ConnectionError> {
        self.connection.try_all(commands).await
    }

    async fn place(&mut self) -> Result<Place, ConnectionError> {
        self.connection.send(&ask_extent(&self.key)).await?;
        self.connection.extent(&self.key).await
    }
}

/// Returns the stream's settings from a configuration that has a stream.
pub fn shared(config: &Database) -> SharedStream {
    match &config.server.kind {
        DatabaseKind::Valkey(shared) => shared.clone(),
        DatabaseKind::MariaDb | DatabaseKind::Postgres(_) => {
            unreachable!("a database is no stream")
        }
    }
}

/// Handles a reply that cannot be read, such as an entry that is too long. It would fail again, so
/// it is skipped as a gap: it may have invalidated any page.
fn unread(failed: ConnectionError) -> StreamFault {
    match failed {
        ConnectionError::Said(name @ "bad-reply", text) => {
            StreamFault { name, text, then: Recovery::Gap }
        }
        other => other.into(),
    }
}

/// A stream that is being read.
pub struct Stream {
    session: Session,
    place: Place,
    waiting: VecDeque<Entry>,
    /// Writes this node's position; `None` during a check.
    own: Option<OwnField>,
    /// When the command was sent that has last reported this node, with success.
    contact: Instant,
    /// How long the server waits for the next entry.
    wait: Duration,
    /// Whether the last read reached the end.
    is_at_end: bool,
}

/// A connection to a stream that can be followed.
pub struct StreamConnection {
    /// The stream, not started yet.
    pub stream: Stream,
    /// When this node has reported itself.
    pub asked: Instant,
    /// The identifier of the server's run.
    pub server: Arc<str>,
    /// The end of the stream, queried after that.
    pub committed: Place,
    /// Settings that work but could be improved.
    pub warnings: Vec<Warning>,
}

/// The result of reading from the stream once.
pub enum EntryRead {
    /// An invalidation by another node, or by hand; the stream's position is after it.
    Published(PeerInvalidation),
    /// An entry of this node: only the position has advanced.
    Moved,
    /// No entry has arrived.
    Nothing,
}

/// Connects, and checks whether the stream can be followed. `is_followed`: it will be, so this node
/// reports its position; otherwise nothing is changed on the server.
///
/// # Errors
/// The server is unreachable, or the stream cannot be followed.
pub async fn connect(
    config: &Arc<Database>,
    is_followed: bool,
) -> Result<StreamConnection, StreamFault> {
    let mut session = Session::open(config).await?;
    let server = session.connection.server().await?;
    if server.run.is_empty() {
        return Err(StreamFault::unusable("the server does not say which one it is (run_id)"));
    }
    if server.role != "master" {
        // A replica may be promoted later, so the connection is tried again.
        let why = format!("the server is no primary ({}): nothing can be published", server.role);
        return Err(ConnectionError::Said("read-only", why).into());
    }
    session.try_to_add().await?;
    let run: Arc<str> = server.run.as_str().into();
    let asked = Instant::now();
    let mut own = is_followed.then(|| OwnField::new(&session.key, config, &run));
    match own.as_mut().and_then(|own| own.say(Id::default())) {
        // Before the end of the stream is queried: a node that publishes after that waits for this
        // one.
        Some(said) => drop(session.connection.ask(&said).await?),
        None => session.try_to_say().await?,
    }
    let committed = session.committed().await?;
    let warnings: Vec<Warning> = server
        .evicts_anything()
        .then(|| {
            let policy = &server.policy;
            let why = format!(
                "maxmemory-policy is {policy}: the stream may be thrown away like any other key, and every page with it; volatile-lru or noeviction keep it"
            );
            ("cluster-stream-evictable", why)
        })
        .into_iter()
        .collect();
    let (place, waiting) = (Place::default(), VecDeque::new());
    let wait = ask_every(config);
    let stream = Stream { session, place, waiting, own, contact: asked, wait, is_at_end: false };
    Ok(StreamConnection { stream, asked, server: run, committed, warnings })
}

impl Stream {
    /// Sets the position after which reading starts.
    pub fn start(&mut self, from: Place) {
        self.place = Place { gone: 0, ..from };
    }

    /// Returns when the command was sent that has last reported this node, with success.
    pub fn contact(&self) -> Instant {
        self.contact
    }

    /// Returns the next entry, if one arrives within a second. The first call does not wait.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next(&mut self) -> Result<EntryRead, StreamFault> {
        if self.waiting.is_empty() {
            self.read().await?;
        }
        let Some(entry) = self.waiting.pop_front() else { return Ok(EntryRead::Nothing) };
        self.place.id = entry.id;
        self.place.added += 1;
        let heard = entry_format::read(&entry);
        if &*heard.from == entry_format::own() {
            return Ok(EntryRead::Moved);
        }
        Ok(EntryRead::Published(heard))
    }

    async fn read(&mut self) -> Result<(), StreamFault> {
        let (read, now) = self.ask().await.map_err(unread)?;
        let (count, last) = (read.len(), read.last().map(|entry| entry.id));
        let is_all = count < ENTRIES;
        if self.place.read_on(count as u64, last, is_all, &now).is_none() {
            let (key, from) = (&self.session.key, self.place);
            let text =
                format!("of {key} entries after {from} have gone unread; it has come to {now}");
            return Err(StreamFault { name: "position-ahead", text, then: Recovery::Gap });
        }
        (self.waiting, self.is_at_end) = (read.into(), is_all);
        Ok(())
    }

    /// Reads the next entries, and the end of the stream at the same moment.
    async fn ask(&mut self) -> Result<(Vec<Entry>, Place), ConnectionError> {
        let Session { connection, key } = &mut self.session;
        // Returned entries are applied. Their position is written before the next read; see
        // `peer_positions`.
        let said = self.own.as_mut().and_then(|own| own.say(self.place.id));
        let (is_said, sent) = (said.is_some(), Instant::now());
        let mut commands = said.unwrap_or_default();
        let mut wait = Duration::ZERO;
        if self.is_at_end {
            wait = self.wait;
            // This read only waits. Its entry is read again below, together with the end of the
            // stream.
            commands.append(&mut read_after(key, self.place.id, 1, Some(wait.as_millis() as u64)));
        }
        commands.append(&mut read_whole(key, self.place.id, ENTRIES));
        connection.send_waiting(&commands, wait).await?;
        if is_said {
            good(connection.receive().await?)?;
            self.contact = sent;
        }
        if self.is_at_end {
            good(connection.receive().await?)?;
        }
        let read = whole(good(connection.receive().await?)?);
        read.ok_or_else(|| {
            ConnectionError::Said("bad-reply", "a read was answered with something else".into())
        })
    }

    /// Returns the position of the last returned entry.
    #[must_use]
    pub fn position(&self) -> Place {
        self.place
    }
}
