//! PostgreSQL's stream: connects, looks whether it can be followed, reads whole transactions and says
//! what they touch.
//!
//! Definitions are not in the stream. They are looked at every second, when the stream has a table
//! that is not known, and when an event trigger says so; what has changed counts as any row of it.
//! The server's text for itself has a print of them, so that a stream which was broken while they
//! changed has a gap. Every second the server hears how far all is applied, and is asked whether it is
//! there. Invariants: the position is that of transactions that were handed out; the slot is never told
//! more than was applied, nor more than snapshots can do without ([`Forget`]).
//!
//! A server that stops waits until it has been told everything. Where something is kept for a snapshot
//! the connection is let go instead. Not here: what is done with the transactions.

use super::catalogue::{self, Catalogue};
use super::connection::Connection;
use super::setup;
use super::touch::{Definitions, Tables};
use crate::config::{Database, DatabaseKind, Replication};
use crate::database::source::{
    self, Aim, Broken, Connected, Failed, Forget, Made, Mark, Position, Read, Seen, Then,
    Transaction,
};
use change_feed::{CheckError, TouchedTags};
use postgres_replication::position::Lsn;
use postgres_replication::wire::error::{ServerError, ServerErrorKind};
use postgres_replication::wire::frame::Frame;
use postgres_replication::wire::login::Purpose;
use postgres_replication::wire::query::QueryRefused;
use postgres_replication::wire::stream::{self as wire, Reply, Subscription};
use postgres_replication::{Limits, Refusal, Step, Transactions};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// So many changes of a transaction are read before others get their turn.
const TURN: usize = 64;
/// How often the server hears from here, and definitions are looked at.
const BEAT: Duration = Duration::from_secs(1);
/// How long a stream may be silent.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How long a transaction that changes definitions may take to be visible, and between two questions.
const VISIBLE_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Connects, and looks whether the server can be followed.
///
/// # Errors
/// Why not.
pub async fn connect(config: &Arc<Database>, aim: Aim) -> Result<Connected, Broken> {
    let DatabaseKind::Postgres(what) = &config.server.kind else {
        return Err(Broken::unusable("this is no PostgreSQL"));
    };
    let mut connection = Connection::open(&config.server, Purpose::Replication).await?;
    let system = setup::server(&mut connection).await?;
    let mut spare = Connection::open(&config.server, Purpose::Statements).await?;
    let (first, fits) = read(config, &mut spare).await?;
    let followed = first.followed();
    setup::tables(&followed)?;
    let published = setup::publication(&mut spare, what, &followed, aim).await;
    // Of a rule about a table that is not there it is the rule that has to be said.
    let mut warnings = match (published, fits) {
        (Err(_), Err(why)) => return Err(Broken::unusable(why.to_string())),
        (published, _) => published?,
    };
    let slot = setup::slot(&mut spare, what, aim).await?;
    warnings.extend(slot.warnings);
    let committed = super::committed(&mut spare).await?;
    // After it: whatever is in the log up to there had begun.
    let mark = Some(Mark::Begun(super::begun(&mut spare).await?));
    let prints = catalogue::prints(&followed, &what.publication);
    let seen = prints_of(&mut spare, &prints).await?;
    let (tables, fits) = read(config, &mut spare).await?;
    warnings.extend(setup::not_sent(config, &tables.followed()));
    let transactions = Transactions::new(Lsn(0), Limits::default(), tables);
    let server = seen.named(&system);
    let (now, config) = (Instant::now(), config.clone());
    let (what, beat) = (what.clone(), now + BEAT);
    let stream = Stream {
        config,
        what,
        system,
        connection,
        spare,
        transactions,
        slot_at: slot.at,
        told: slot.at,
        keep_bytes: slot.keep_bytes,
        committed: place(&committed),
        prints,
        seen,
        heard: now,
        beat,
    };
    let stream = source::Stream::Postgres(Box::new(stream));
    Ok(Connected { stream, server, committed, mark, fits, warnings })
}

/// The catalogue, and the rules held against it.
async fn read(
    config: &Database,
    connection: &mut Connection,
) -> Result<(Tables, Result<(), CheckError>), Failed> {
    let catalogue = Catalogue::read(connection).await?;
    let fits = config.rules.check(&catalogue.schema);
    let feed = change_feed::Feed::new(&config.rules, &catalogue.schema);
    Ok((Tables::new(feed, catalogue), fits))
}

/// How definitions look, and how far the publication tells of them.
async fn prints_of(connection: &mut Connection, sql: &str) -> Result<Prints, Failed> {
    let rows = connection.query(sql).await?;
    let text = |column| rows.text(0, column).unwrap_or_default();
    Ok(Prints { tables: text(0), told: text(1), publication: text(2) })
}

/// What was seen last of the tables that are followed (`catalogue::prints`).
#[derive(Debug, Default, PartialEq, Eq)]
struct Prints {
    /// How they look.
    tables: String,
    /// How far the publication tells of them.
    told: String,
    /// Which publication that is.
    publication: String,
}

impl Prints {
    /// What the server is called: which it is, how its tables look, and who tells of them.
    fn named(&self, system: &str) -> Arc<str> {
        format!("{system}/{}/{}", self.tables, self.publication).into()
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
    /// Which server and which of its histories it is.
    system: String,
    connection: Connection,
    /// For questions about definitions.
    spare: Connection,
    transactions: Transactions<Tables>,
    /// From where the slot can be read.
    slot_at: Lsn,
    /// What the slot was told, and how many bytes of the log it may keep for snapshots.
    told: Lsn,
    keep_bytes: u64,
    /// What was committed when it was connected to.
    committed: Lsn,
    /// The statement by which definitions are looked at, and what it has said last.
    prints: String,
    seen: Prints,
    /// When the server was last heard, and when it hears from here next.
    heard: Instant,
    beat: Instant,
}

impl Stream {
    /// Asks for everything after `from`.
    ///
    /// # Errors
    /// Why there is no stream.
    pub async fn start(&mut self, from: &Position) -> Result<(), Broken> {
        let from = place(from);
        let gap = |name, text: String| Err(Broken { name, text, then: Then::Gap });
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
            Err(QueryRefused::Server(error)) => Err(broken(&error, Then::Again)),
            Err(refused) => Err(Failed::Said(refused.as_str(), refused.to_string()).into()),
        }
    }

    /// Reads one frame, or looks at definitions when it is time.
    ///
    /// # Errors
    /// Why the stream has come to an end.
    pub async fn next(&mut self, forget: Forget<'_>) -> Result<Read, Broken> {
        if Instant::now() >= self.beat {
            self.beat = Instant::now() + BEAT;
            return self.on_beat(forget).await;
        }
        match self.connection.frame_by(self.beat).await? {
            Some(frame) => self.frame(&frame, forget).await,
            None => Ok(Read::Nothing),
        }
    }

    /// Up to where transactions were handed out.
    pub fn position(&self) -> Position {
        Position::Postgres(self.transactions.position())
    }

    async fn on_beat(&mut self, forget: Forget<'_>) -> Result<Read, Broken> {
        if self.heard.elapsed() > SILENT_MAX {
            return Err(Failed::Io(io::ErrorKind::TimedOut.into()).into());
        }
        self.say(self.transactions.position(), Reply::Wanted, forget).await?;
        let seen = prints_of(&mut self.spare, &self.prints).await?;
        if seen == self.seen {
            return Ok(Read::Nothing);
        }
        if seen.tables == self.seen.tables {
            return Err(publication_changed());
        }
        let (touched, server) = self.read_definitions(seen).await?;
        // Whoever asks now sees them as well.
        Ok(Read::Transaction(Transaction { made: Made::Rows(touched), mark: None, server }))
    }

    /// Says that all up to `applied` is applied, and how much of it need not be kept; whether it is all.
    async fn say(
        &mut self,
        applied: Lsn,
        reply: Reply,
        forget: Forget<'_>,
    ) -> Result<Told, Broken> {
        let forgotten = forget(&Position::Postgres(applied), self.keep_bytes);
        let forgotten = forgotten.as_ref().map_or(self.told, place).min(applied);
        self.told = self.told.max(forgotten);
        self.connection.say(applied, self.told, reply).await?;
        Ok(if self.told >= applied { Told::Everything } else { Told::Less })
    }

    async fn frame(&mut self, frame: &Frame, forget: Forget<'_>) -> Result<Read, Broken> {
        self.heard = Instant::now();
        if wire::is_aside(frame) {
            return Ok(Read::Nothing);
        }
        if let Some(error) = wire::error(frame) {
            return Err(broken(&error, Then::Gap));
        }
        let before = self.transactions.position();
        match self.transactions.read(frame)? {
            Step::Transaction(transaction) => {
                Ok(Read::Transaction(self.touch(&transaction).await?))
            }
            Step::Keepalive(reply) => {
                if reply == Reply::Wanted {
                    // It waits for that when it stops. All up to here is applied: it was handed out,
                    // and asked for what comes next.
                    let told = self.say(before, Reply::NotNeeded, forget).await?;
                    if told == Told::Less {
                        let text =
                            "the server wants to hear that nothing is kept, as when it stops";
                        let (name, text) = (ServerErrorKind::Away.as_str(), text.into());
                        return Err(Broken { name, text, then: Then::Again });
                    }
                    self.beat = Instant::now();
                }
                let moved = self.transactions.position() > before;
                Ok(if moved { Read::Moved } else { Read::Nothing })
            }
            Step::Nothing => Ok(Read::Nothing),
            Step::Ended => Err(Failed::Io(io::ErrorKind::UnexpectedEof.into()).into()),
        }
    }

    async fn touch(
        &mut self,
        transaction: &postgres_replication::Transaction,
    ) -> Result<Transaction, Broken> {
        let (mut touched, mut server) = (TouchedTags::default(), None);
        let changes = &transaction.changes;
        if self.transactions.watch().definitions(changes) == Definitions::Changed {
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
        let mark = Some(Mark::Xid(transaction.xid));
        Ok(Transaction { made: Made::Rows(touched), mark, server })
    }

    /// A transaction can come before its definitions can be read.
    async fn until_visible(&mut self, xid: u32) -> Result<(), Broken> {
        let began = Instant::now();
        loop {
            let seen = super::visible(&mut self.spare).await?;
            if seen.is_some_and(|seen: Seen| seen.shows(&Mark::Xid(xid))) {
                return Ok(());
            }
            if began.elapsed() > VISIBLE_WITHIN {
                let text = "a definition is committed, and nobody sees it".into();
                return Err(Broken { name: "definition-not-visible", text, then: Then::Gap });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads the catalogue again: what has changed counts as any row of it, and the server has another
    /// name. What is seen of it was asked for before, so that nothing falls between the two.
    async fn read_definitions(
        &mut self,
        seen: Prints,
    ) -> Result<(TouchedTags, Option<Arc<str>>), Broken> {
        // What was changed while it told of less is not known.
        if !self.seen.publication.is_empty() && seen.publication != self.seen.publication {
            return Err(publication_changed());
        }
        let (tables, fits) = read(&self.config, &mut self.spare).await?;
        source::say_if_wrong(&self.config, &fits);
        let followed = tables.followed();
        setup::tables(&followed)?;
        setup::publication(&mut self.spare, &self.what, &followed, Aim::Follow).await?;
        let prints = catalogue::prints(&followed, &self.what.publication);
        // Which may have been altered just now, by ourselves.
        let publication = prints_of(&mut self.spare, &prints).await?.publication;
        // Of other tables than before there is no last time: they are looked at once more.
        self.seen = match prints == self.prints {
            true => Prints { publication, ..seen },
            false => Prints { publication, ..Prints::default() },
        };
        self.prints = prints;
        let mut touched = TouchedTags::default();
        tables.touch_changed(self.transactions.watch(), &mut touched);
        *self.transactions.watch() = tables;
        self.transactions.ask_interests();
        let is_seen = !self.seen.tables.is_empty();
        Ok((touched, is_seen.then(|| self.seen.named(&self.system))))
    }
}

fn publication_changed() -> Broken {
    let text =
        "the publication was altered: what was changed meanwhile may not have been told".into();
    Broken { name: "publication-changed", text, then: Then::Gap }
}

/// What the slot was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Everything that is applied.
    Everything,
    /// Less: a snapshot needs it.
    Less,
}

/// An error of the server: it may come again and again at the same place, so that what it is about can
/// only be passed over.
fn broken(error: &ServerError, otherwise: Then) -> Broken {
    let then = match error.kind() {
        ServerErrorKind::Away | ServerErrorKind::InUse | ServerErrorKind::Full => Then::Again,
        ServerErrorKind::NotPermitted | ServerErrorKind::AccessDenied => Then::Unusable,
        _ => otherwise,
    };
    Broken { name: error.kind().as_str(), text: error.to_string(), then }
}

impl From<Refusal> for Broken {
    fn from(refusal: Refusal) -> Broken {
        // The same bytes would come again.
        Broken { name: refusal.as_str(), text: refusal.to_string(), then: Then::Gap }
    }
}
