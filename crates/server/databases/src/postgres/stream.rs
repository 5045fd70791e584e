//! PostgreSQL's logical replication stream: connects, checks whether the server can be followed,
//! reads whole transactions and computes what they touch.
//!
//! The stream has no definitions. They are checked every second, when it has an unknown table, and when an
//! event trigger reports a change. A changed table counts as a change of any of its rows. The server's
//! identifier includes a fingerprint of the definitions, so a change without a stream is a gap. So is an
//! altered publication, also if Pagewell has altered it: not all rows of transactions that were open then
//! are sent, and the new connection waits for them.
//!
//! Invariants: the position is that of the last returned transaction. The slot is never confirmed beyond
//! what is applied, nor beyond what snapshots need ([`Forget`]). A server that shuts down waits for full
//! confirmation; if a snapshot needs the log, the connection is closed. Not here: applying transactions.

use super::catalogue::{self, Catalogue};
use super::connection::{Connection, unanswered};
use super::setup;
use super::touch::Tables;
use crate::stream_types::{
    Aim, Forget, Position, RowDetail, SourceConnection, StreamRead, Transaction, TransactionBody,
    Visibility, VisibilityMarker, say_if_wrong,
};
use change_feed::{CheckError, TouchedTags};
use config::{Database, DatabaseKind, Replication};
use database_links::fault::{ConnectionError, Recovery, StreamFault, Warning};
use postgres_replication::position::Lsn;
use postgres_replication::wire::error::{ServerError, ServerErrorKind};
use postgres_replication::wire::frame::Frame;
use postgres_replication::wire::login::Purpose;
use postgres_replication::wire::query::QueryRefused;
use postgres_replication::wire::stream::{self as wire, Reply, Subscription};
use postgres_replication::{Limits, Refusal, Step, Transactions};
use random_number::random_number;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// After this many changes of a transaction the task yields to others.
const TURN: usize = 64;
/// How often the position is confirmed and the definitions are checked.
const BEAT: Duration = Duration::from_secs(1);
/// The longest time without a frame before the stream counts as broken.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// The most rounds of a connection in search of definitions and a publication that stay as they are. A round in which
/// Pagewell creates or completes the publication counts, too.
const ROUNDS_MAX: usize = 5;
/// How long a transaction that changes definitions may take to become visible. The second constant
/// is the pause between two queries.
const VISIBLE_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Connects, and checks whether the server can be followed.
///
/// # Errors
/// The server is unreachable, or cannot be followed.
pub async fn connect(
    config: &Arc<Database>,
    aim: Aim,
) -> Result<SourceConnection<Stream>, StreamFault> {
    let DatabaseKind::Postgres(what) = &config.server.kind else {
        return Err(StreamFault::unusable("this is no PostgreSQL"));
    };
    let mut connection = Connection::open(&config.server, Purpose::Replication).await?;
    let system = setup::server(&mut connection).await?;
    let mut spare = Connection::open(&config.server, Purpose::Statements).await?;
    let prints = catalogue::prints(&config.rules, &what.publication);
    let mut seen = prints_of(&mut spare, &prints).await?;
    let mut rounds = 0;
    loop {
        let round = ConnectionRound::run(config, what, &mut spare, aim).await?;
        let now = prints_of(&mut spare, &prints).await?;
        rounds += 1;
        let mut server = seen.named(&system);
        if now != seen && rounds < ROUNDS_MAX {
            seen = now;
            continue;
        }
        if now != seen {
            // No position fits to a server of this name, so every page is purged. The next check finds a difference to
            // the definitions from before the round.
            server = format!("{server}/{:x}", random_number()).into();
        }
        let ends = (connection, spare);
        return Ok(round.connected((config, what), ends, (prints, seen), (system, server)));
    }
}

/// The result of the queries before the stream starts. It is used if the definitions and the publication are the same
/// before and after it. Otherwise a table that was created in between would be known and not published, and a
/// definition that was changed in between would never differ from an earlier one.
struct ConnectionRound {
    tables: Tables,
    fits: Result<(), CheckError>,
    slot: setup::Slot,
    warnings: Vec<Warning>,
    asked: Instant,
    committed: Position,
    begun: Vec<u32>,
}

impl ConnectionRound {
    async fn run(
        config: &Database,
        what: &Replication,
        spare: &mut Connection,
        aim: Aim,
    ) -> Result<ConnectionRound, StreamFault> {
        let (tables, fits) = read(config, spare).await?;
        let followed = tables.followed();
        setup::tables(&followed)?;
        let published = setup::publication(spare, what, &followed, aim).await;
        // If a rule names a missing table, the rule is the error to report.
        let mut warnings = match (published, &fits) {
            (Err(broken), Err(why)) if broken.then != Recovery::Again => {
                return Err(StreamFault { text: why.to_string(), ..broken });
            }
            (published, _) => published?,
        };
        let mut slot = setup::slot(spare, what, aim).await?;
        warnings.append(&mut slot.warnings);
        warnings.extend(setup::not_sent(config, &followed));
        let asked = Instant::now();
        let committed = super::committed(spare).await?;
        // This query must come after the one for the committed position: every transaction in the log
        // up to there has begun by now.
        let begun = super::begun(spare).await?;
        Ok(ConnectionRound { tables, fits, slot, warnings, asked, committed, begun })
    }

    fn connected(
        self,
        (config, what): (&Arc<Database>, &Replication),
        (connection, spare): (Connection, Connection),
        (prints, seen): (String, Prints),
        (system, server): (String, Arc<str>),
    ) -> SourceConnection<Stream> {
        let ConnectionRound { tables, fits, slot, warnings, asked, committed, begun } = self;
        let now = Instant::now();
        let stream = Stream {
            config: config.clone(),
            what: what.clone(),
            system,
            connection,
            spare,
            transactions: Transactions::new(Lsn(0), Limits::default(), tables),
            slot_at: slot.at,
            confirmed: slot.at,
            keep_bytes: slot.keep_bytes,
            committed: place(&committed),
            prints,
            seen,
            heard: now,
            beat: now + BEAT,
        };
        let mark = Some(VisibilityMarker::Begun(begun));
        SourceConnection { stream, asked, server, committed, mark, fits, warnings }
    }
}

/// Reads the catalogue, and checks the rules against it.
async fn read(
    config: &Database,
    connection: &mut Connection,
) -> Result<(Tables, Result<(), CheckError>), ConnectionError> {
    let catalogue = Catalogue::read(connection).await?;
    let fits = config.rules.check(&catalogue.schema);
    let feed = change_feed::Feed::new(&config.rules, &catalogue.schema);
    Ok((Tables::new(feed, catalogue), fits))
}

/// Queries the fingerprints of the definitions and of the publication.
async fn prints_of(connection: &mut Connection, sql: &str) -> Result<Prints, ConnectionError> {
    let rows = connection.query(sql).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    Ok(Prints { tables: text(0), published: text(1), publication: text(2), readers: text(3) })
}

/// The last fingerprints of the followed tables (`catalogue::prints`).
#[derive(Debug, PartialEq, Eq)]
struct Prints {
    /// The fingerprint of their definitions.
    tables: String,
    /// The fingerprint of what the publication sends of them.
    published: String,
    /// The fingerprint of the publication itself.
    publication: String,
    /// The fingerprint of the views that read the tables, and of enumerations.
    readers: String,
}

impl Prints {
    /// Returns the server's identifier: the system, its definitions and its publication.
    fn named(&self, system: &str) -> Arc<str> {
        format!("{system}/{}/{}/{}", self.tables, self.publication, self.readers).into()
    }

    /// Whether tables, and what reads them, are defined as before.
    fn has_definitions_of(&self, before: &Prints) -> bool {
        (&self.tables, &self.readers) == (&before.tables, &before.readers)
    }
}

fn place(position: &Position) -> Lsn {
    match position {
        Position::Postgres(place) => *place,
        _ => Lsn(0),
    }
}

/// The stream of one connection.
pub struct Stream {
    config: Arc<Database>,
    what: Replication,
    /// The identifier of the server and its timeline.
    system: String,
    connection: Connection,
    /// A second connection, for queries about definitions.
    spare: Connection,
    transactions: Transactions<Tables>,
    /// The position from which the slot can be read.
    slot_at: Lsn,
    /// The position that was confirmed to the slot, and the most log in bytes to keep for
    /// snapshots.
    confirmed: Lsn,
    keep_bytes: u64,
    /// The committed position at the time of connecting.
    committed: Lsn,
    /// The statement that computes the fingerprints, and its last result.
    prints: String,
    seen: Prints,
    /// The time of the last received frame, and the time of the next confirmation.
    heard: Instant,
    beat: Instant,
}

impl Stream {
    /// Requests everything after `from`.
    ///
    /// # Errors
    /// The stream could not be started.
    pub async fn start(&mut self, from: &Position) -> Result<(), StreamFault> {
        let from = place(from);
        let gap = |name, text: String| Err(StreamFault { name, text, then: Recovery::Gap });
        let from = from.before_header();
        if from < self.slot_at.before_header() {
            return gap("slot-ahead", format!("the slot begins at {}, not {from}", self.slot_at));
        }
        if from > self.committed {
            return gap(
                "server-behind",
                format!("the server is at {}, not {from}", self.committed),
            );
        }
        let tables = std::mem::take(self.transactions.watch());
        self.transactions = Transactions::new(from, Limits::default(), tables);
        let Replication { slot, publication, .. } = self.what.clone();
        let subscription = Subscription { slot, publication };
        match self.connection.start_stream(&subscription, from).await? {
            Ok(()) => Ok(()),
            Err(QueryRefused::Server(error)) if wire::is_slot_lost(&error) => {
                gap("slot-lost", error.to_string())
            }
            Err(QueryRefused::Server(error)) => Err(broken(&error, Recovery::Again)),
            Err(refused) => Err(unanswered(&refused).into()),
        }
    }

    /// Reads one frame, or checks the definitions when they are due.
    ///
    /// # Errors
    /// The stream has ended.
    pub async fn next(&mut self, forget: Forget<'_>) -> Result<StreamRead, StreamFault> {
        if Instant::now() >= self.beat {
            self.beat = Instant::now() + BEAT;
            return self.on_beat(forget).await;
        }
        match self.connection.frame_by(self.beat).await? {
            Some(frame) => self.frame(&frame, forget).await,
            None => Ok(StreamRead::Nothing),
        }
    }

    /// Returns the position after the last returned transaction.
    pub fn position(&self) -> Position {
        Position::Postgres(self.transactions.position())
    }

    async fn on_beat(&mut self, forget: Forget<'_>) -> Result<StreamRead, StreamFault> {
        if self.heard.elapsed() > SILENT_MAX {
            return Err(ConnectionError::Io(io::ErrorKind::TimedOut.into()).into());
        }
        self.say(self.transactions.position(), Reply::Wanted, forget).await?;
        let seen = prints_of(&mut self.spare, &self.prints).await?;
        if seen == self.seen {
            return Ok(StreamRead::Nothing);
        }
        if seen.has_definitions_of(&self.seen) {
            return Err(publication_changed());
        }
        let (touched, server) = self.read_definitions(seen).await?;
        // Queries sent from now on see the new definitions, so there is nothing to settle.
        Ok(StreamRead::Transaction(Transaction {
            made: TransactionBody::Rows(touched.into()),
            mark: None,
            server,
        }))
    }

    /// Confirms `applied`, and up to where the log may be discarded. Returns whether all of it may
    /// be.
    async fn say(
        &mut self,
        applied: Lsn,
        reply: Reply,
        forget: Forget<'_>,
    ) -> Result<bool, StreamFault> {
        let forgotten = forget(&Position::Postgres(applied), self.keep_bytes);
        let forgotten = forgotten.as_ref().map_or(self.confirmed, place).min(applied);
        self.confirmed = self.confirmed.max(forgotten);
        self.connection.say(applied, self.confirmed, reply).await?;
        Ok(self.confirmed >= applied)
    }

    async fn frame(
        &mut self,
        frame: &Frame,
        forget: Forget<'_>,
    ) -> Result<StreamRead, StreamFault> {
        self.heard = Instant::now();
        if let Some(error) = wire::error(frame) {
            return Err(broken(&error, Recovery::Gap));
        }
        if wire::is_aside(frame) {
            return Ok(StreamRead::Nothing);
        }
        let before = self.transactions.position();
        match self.transactions.read(frame).map_err(refused)? {
            Step::Transaction(transaction) => {
                Ok(StreamRead::Transaction(self.touch(&transaction).await?))
            }
            Step::Keepalive(reply) => {
                if reply == Reply::Wanted {
                    // A server that shuts down waits for this confirmation. Everything up to here
                    // is applied, because the caller applies a transaction before it requests the
                    // next.
                    let is_confirmed = self.say(before, Reply::NotNeeded, forget).await?;
                    if !is_confirmed {
                        let text =
                            "the server wants to hear that nothing is kept, as when it stops";
                        let (name, text) = (ServerErrorKind::Away.as_str(), text.into());
                        return Err(StreamFault { name, text, then: Recovery::Again });
                    }
                    self.beat = Instant::now();
                }
                let moved = self.transactions.position() > before;
                Ok(if moved { StreamRead::Moved } else { StreamRead::Nothing })
            }
            Step::Nothing => Ok(StreamRead::Nothing),
            Step::Ended => Err(ConnectionError::Io(io::ErrorKind::UnexpectedEof.into()).into()),
        }
    }

    async fn touch(
        &mut self,
        transaction: &postgres_replication::Transaction,
    ) -> Result<Transaction, StreamFault> {
        let (mut touched, mut server) = (TouchedTags::default(), None);
        let changes = &transaction.changes;
        if !self.transactions.watch().covers(changes) {
            self.until_visible(transaction.xid).await?;
            let seen = prints_of(&mut self.spare, &self.prints).await?;
            (touched, server) = self.read_definitions(seen).await?;
        }
        for (at, change) in changes.iter().enumerate() {
            self.transactions.watch().touch(change, &mut touched);
            if at % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        let mark = Some(VisibilityMarker::Xid(transaction.xid));
        Ok(Transaction { made: TransactionBody::Rows(touched.into()), mark, server })
    }

    /// Waits until a transaction is visible, because the stream may send it before its definitions
    /// can be read.
    async fn until_visible(&mut self, xid: u32) -> Result<(), StreamFault> {
        let began = Instant::now();
        loop {
            let seen = super::visible(&mut self.spare).await?;
            if seen.is_some_and(|seen: Visibility| seen.shows(&VisibilityMarker::Xid(xid))) {
                return Ok(());
            }
            if began.elapsed() > VISIBLE_WITHIN {
                let text = "a definition is committed, and nobody sees it".into();
                return Err(StreamFault {
                    name: "definition-not-visible",
                    text,
                    then: Recovery::Gap,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads the catalogue again. Changed tables count as changes of any of their rows, and the
    /// server gets a new identifier. `seen` was queried before the catalogue, so no change in
    /// between is lost.
    async fn read_definitions(
        &mut self,
        seen: Prints,
    ) -> Result<(TouchedTags, Option<Arc<str>>), StreamFault> {
        // Changes made while the publication was incomplete are not known.
        if seen.publication != self.seen.publication {
            return Err(publication_changed());
        }
        let (tables, fits) = read(&self.config, &mut self.spare).await?;
        say_if_wrong(&self.config, &fits);
        let followed = tables.followed();
        setup::tables(&followed)?;
        setup::publication(&mut self.spare, &self.what, &followed, Aim::Follow(RowDetail::Tags))
            .await?;
        // This process may just have added a table. Rows that were written to it before are not sent,
        // nor are all of a transaction that is still open.
        if prints_of(&mut self.spare, &self.prints).await?.publication != seen.publication {
            return Err(publication_changed());
        }
        let mut touched = TouchedTags::default();
        tables.touch_changed(self.transactions.watch(), &mut touched);
        if seen.readers != self.seen.readers {
            followed.iter().for_each(|table| tables.any_row(&table.names, &mut touched));
        }
        *self.transactions.watch() = tables;
        self.transactions.ask_interests();
        self.seen = seen;
        Ok((touched, Some(self.seen.named(&self.system))))
    }
}

fn publication_changed() -> StreamFault {
    let text =
        "the publication was altered: changes since then may be missing from the stream".into();
    StreamFault { name: "publication-changed", text, then: Recovery::Gap }
}

/// Converts an error of the server. An error other than those listed would recur at the same
/// position, so `otherwise` decides, usually to skip that position.
fn broken(error: &ServerError, otherwise: Recovery) -> StreamFault {
    let then = match error.kind() {
        ServerErrorKind::Away | ServerErrorKind::InUse | ServerErrorKind::Full => Recovery::Again,
        ServerErrorKind::NotPermitted | ServerErrorKind::AccessDenied => Recovery::Unusable,
        _ => otherwise,
    };
    StreamFault { name: error.kind().as_str(), text: error.to_string(), then }
}

fn refused(refusal: Refusal) -> StreamFault {
    // A new connection would receive the same bytes.
    StreamFault { name: refusal.as_str(), text: refusal.to_string(), then: Recovery::Gap }
}
