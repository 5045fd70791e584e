//! Follows a database: connects, reads, applies, and resumes after a break without a gap.
//!
//! | state | event | next |
//! |---|---|---|
//! | not followed | connected; the schema is read and compared with the rules | behind |
//! | behind | everything committed before connecting is applied | followed: the gate opens |
//! | followed | a transaction | applied, then the position advances |
//! | any | the connection breaks | not followed; reconnects after a pause, resumes at the position |
//! | any | the position is lost, or unknown to this server | every page is purged; starts at the current position |
//!
//! A GTID position is valid on every server that has replicated its transactions. After a failover
//! the stream resumes on the other server, which rejects a position that it does not have.
//!
//! Invariants: the gate is closed while there is no position to resume from. The position advances
//! only after the change is applied. Not here: the contents of a stream (`source`).

use super::Feed;
use super::held_rows::{HeldRows, ReleaseCause};
use super::partner_search::PartnerSession;
use super::settle::{Entry, Opening, Waiting};
use super::stream_ahead::StreamAhead;
use change_feed::TouchedTags;
use config::DatabaseKind;
use database_links::fault::{Recovery, StreamFault, Warning};
use databases::source::{self, Stream};
use databases::stream_types::{
    Aim, Position, Resume, SourceConnection, StreamRead, Transaction, TransactionBody,
    VisibilityMarker, say_if_wrong,
};
use footprint::schema::SqlSchema;
use history::ChangeSource;
use history::shown::cut;
use page_store::{ChangeTarget, OpenChange};
use site_state::SiteState;
use site_state::changes::LocalCause;
use statements::footprints::StatementLook;
use statements::terms::Look;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use telemetry::runtime::off_the_way;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The pause between two attempts to connect: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest pause for a cluster's stream, where other nodes wait for this one. A short pause
/// costs the Valkey server almost nothing.
const STREAM_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The most text in bytes that is searched on a thread that serves clients. It takes some tenths of
/// a millisecond.
const TEXT_BYTES: usize = 16 << 10;

/// The task that follows one database of a site and passes its open changes on to be settled.
pub struct Follower {
    /// The site whose database is followed.
    pub site: Arc<SiteState>,
    /// The database that this task follows.
    pub feed: Arc<Feed>,
    /// Receives the open changes, which `settle` settles.
    pub entries: mpsc::Sender<Entry>,
    /// The rows that are held back.
    pub(super) held: HeldRows,
    /// The connection for look-ups of rows.
    pub(super) partners: PartnerSession,
    /// The tables of the database, if rows are followed with their values.
    pub(super) tables: Option<SqlSchema>,
    /// Identifies the last transaction in a visibility query.
    pub(super) last_mark: Option<VisibilityMarker>,
}

impl Follower {
    /// The follower of a database; `held` receives the requests to release held rows.
    pub fn new(
        site: Arc<SiteState>,
        feed: Arc<Feed>,
        entries: mpsc::Sender<Entry>,
        held: HeldRows,
    ) -> Follower {
        let partners = PartnerSession::default();
        Follower { site, feed, entries, held, partners, tables: None, last_mark: None }
    }

    /// Follows the database without end. `first` is a connection that is already open.
    pub async fn run(mut self, mut first: Option<SourceConnection<Stream>>) {
        let feed = self.feed.clone();
        let mut pause = PAUSE;
        let pause_max = match feed.config.server.kind {
            DatabaseKind::Valkey(_) => STREAM_PAUSE_MAX,
            DatabaseKind::MariaDb | DatabaseKind::Postgres(_) => PAUSE_MAX,
        };
        loop {
            let connected = match first.take() {
                Some(connected) => Ok(connected),
                None => {
                    let aim = Aim::Follow(feed.detail(&self.site));
                    self.while_releasing(source::connect(&feed.config, aim)).await
                }
            };
            let broken = match connected {
                Ok(connected) => self.follow(connected).await,
                Err(broken) => broken,
            };
            let was_followed = feed.applied.send_replace(None).is_some();
            feed.next_generation();
            match broken.then {
                Recovery::Gap => self.gap(GapCause::Fault(&broken)),
                Recovery::Lost if feed.progress().is_known() => self.gap(GapCause::Fault(&broken)),
                Recovery::Again | Recovery::Unusable | Recovery::Lost => {}
            }
            pause = if was_followed { PAUSE } else { (pause * 2).min(pause_max) };
            let again_ms = pause.as_millis() as u64;
            let (database, reason, error) = (&feed.config.name, broken.name, broken.text);
            tracing::warn!(event = "database-broken", database, reason, error, again_ms);
            self.while_releasing(tokio::time::sleep(pause)).await;
        }
    }

    /// Handles changes that may have been missed: purges every page.
    fn gap(&self, because: GapCause<'_>) {
        self.feed.gate.close(&self.site, self.feed.name());
        // If the gate was closed already, pages from before the gap might still be stored.
        self.site.changes().drop_local(&[ChangeTarget::Everything], LocalCause::Gap);
        // The next process might not notice the gap, so the journal records it.
        if let Some(snapshots) = &self.site.snapshots {
            snapshots.note_everything();
        }
        self.feed.progress().gap();
        let (database, reason) = (&self.feed.config.name, because.as_str());
        tracing::error!(event = "database-gap", database, reason);
        // Last: who sees it counted finds the pages purged and the reason in the log.
        self.site.counters.database_gaps.add();
    }

    /// Records what a new connection has reported.
    fn connected(&self, committed: &Position, warnings: Vec<Warning>) {
        self.feed.report(self.feed.generation(), committed);
        for (event, why) in warnings {
            tracing::warn!(event, database = self.feed.config.name, why);
        }
    }

    async fn follow(&mut self, connected: SourceConnection<Stream>) -> StreamFault {
        let SourceConnection { stream, asked, committed, mark, server, fits, warnings } = connected;
        let mut stream = StreamAhead::new(stream);
        let feed = self.feed.clone();
        self.begin(&mut stream, &server).await;
        say_if_wrong(&feed.config, &fits);
        self.connected(&committed, warnings);
        let is_another = feed.progress().is_of_another(&server);
        if is_another && !feed.progress().is_anywhere() {
            self.gap(GapCause::AnotherServer);
        }
        let mut resumed = feed.progress().resume(&server);
        if resumed.as_ref().is_some_and(|from| from.position.is_lost_by(&committed)) {
            self.gap(GapCause::PositionAhead);
            resumed = feed.progress().resume(&server);
        }
        let is_another_log = is_another || resumed.is_none();
        let (from, left) = match resumed {
            None => (committed.clone(), Resume::Never),
            Some(from) if is_another => (from.position, Resume::Elsewhere),
            Some(from) => (from.position, Resume::Here(from.landmark)),
        };
        if let Err(broken) = self.while_releasing(stream.start(&from, left)).await {
            return broken;
        }
        let mut is_behind = true;
        let forget = |applied: &Position, bytes| feed.forget(applied, bytes);
        loop {
            let read = match self.while_releasing(stream.next(&forget)).await {
                Ok(read) => read,
                Err(broken) => return broken,
            };
            self.note(&mut stream).await;
            if feed.is_doubted() {
                return taken_back();
            }
            self.site.counters.database_events.add();
            let has_moved = match read {
                StreamRead::Transaction(transaction) => {
                    self.apply(transaction, &mut stream).await;
                    true
                }
                StreamRead::Moved => {
                    if let Some(reached) = stream.reached() {
                        feed.progress().advance(reached);
                    }
                    true
                }
                StreamRead::Nothing => false,
            };
            let Some(applied) = stream.position() else { continue };
            if is_behind && applied.has_all(&committed) {
                is_behind = false;
                if let Some(reached) = stream.reached() {
                    feed.progress().advance(reached);
                }
                feed.applied.send_replace(Some(applied.clone()));
                feed.note_settled();
                self.followed(&applied, is_another_log, (mark.clone(), asked)).await;
            } else if !is_behind && has_moved {
                feed.applied.send_replace(Some(applied.clone()));
                feed.note_settled();
            }
            if !is_behind && let Some(opened) = feed.gate.open_at(&applied) {
                tracing::info!(event = "database-caught-up", database = feed.config.name);
                // Each change that was committed while the gate was closed is opened, and queued before the gate.
                self.let_in(opened, None).await;
            }
        }
    }

    /// Marks the database as followed, and opens the gate if it was closed. The mark and the time are
    /// those of the committed position when the connection was opened.
    async fn followed(
        &mut self,
        applied: &Position,
        is_another_log: bool,
        (mark, asked): (Option<VisibilityMarker>, Instant),
    ) {
        let database = &self.feed.config.name;
        tracing::info!(event = "database-followed", database, position = %applied);
        if is_another_log {
            self.last_mark = None;
            // The send fails only if the server stops.
            let _ = self.entries.send(Entry::Elsewhere).await;
        }
        if let Some(opened) = self.feed.gate.open(asked) {
            self.let_in(opened, mark).await;
        }
    }

    /// Queues an opened gate: pages are stored again when all transactions of `mark` are visible.
    async fn let_in(&self, opened: OpenChange, mark: Option<VisibilityMarker>) {
        self.feed.progress().opened();
        let (what, since) = (Opening::Gate, Instant::now());
        let waiting = Waiting { opened, look: None, statements: None, mark, what, since };
        let _ = self.entries.send(Entry::Change(Box::new(waiting))).await;
    }

    /// Records what a read has shown beside changes: contact, and new definitions.
    async fn note(&mut self, stream: &mut StreamAhead) {
        stream.contact().into_iter().for_each(|sent| self.feed.gate.set_contact(sent));
        self.define(stream).await;
    }

    async fn apply(&mut self, transaction: Transaction, stream: &mut StreamAhead) {
        let began = Instant::now();
        let site = self.site.clone();
        let counters = &site.counters;
        counters.database_transactions.add();
        let Transaction { made, mark, server } = transaction;
        match made {
            TransactionBody::Rows(changed) if changed.is_empty() => {}
            TransactionBody::Rows(changed) => {
                self.rows(changed, mark, stream).await;
                counters.database_changes.add();
                counters.database_apply_us.set(began.elapsed().as_micros() as u64);
            }
            // A published invalidation needs no settling: its data is already visible to all
            // readers.
            TransactionBody::Published(heard) => {
                let site = site.now();
                let host_name = site.cluster.as_ref().and_then(|all| all.host_name(&heard.from));
                let by = ChangeSource::Cluster { from: cut(&heard.from), host_name };
                heard.with_targets(site.config.rules.form(), |targets| {
                    site.changes().apply(targets, heard.strength, by);
                });
                counters.cluster_received.add();
            }
        }
        let mut progress = self.feed.progress();
        if let Some(reached) = stream.reached() {
            progress.advance(reached);
        }
        if let Some(server) = server {
            progress.is_now(server);
        }
    }

    /// Completes a task, and releases held rows until then.
    pub(super) async fn while_releasing<T>(&mut self, task: impl Future<Output = T>) -> T {
        // Without tables there are no held rows, and nobody can wait for them.
        if self.tables.is_none() {
            return task.await;
        }
        let mut task = pin!(task);
        loop {
            let cause = tokio::select! {
                done = &mut task => return done,
                cause = self.held.wait() => cause,
            };
            self.release(&cause).await;
            if let ReleaseCause::Asked(answer) = cause {
                // A write whose time is over has dropped its receiver.
                let _ = answer.send(());
            }
        }
    }
}

/// Why changes may have been missed.
#[derive(Clone, Copy)]
enum GapCause<'f> {
    /// The connected server is another one.
    AnotherServer,
    /// The log ends before the position.
    PositionAhead,
    /// The stream has ended by this fault.
    Fault(&'f StreamFault),
}

impl GapCause<'_> {
    /// The reason in the log.
    fn as_str(self) -> &'static str {
        match self {
            GapCause::AnotherServer => "another-server",
            GapCause::PositionAhead => "position-ahead",
            GapCause::Fault(fault) => fault.name,
        }
    }
}

/// The error for a server that has not committed what it has sent.
fn taken_back() -> StreamFault {
    let text = "the server has not committed the changes that it has sent: its log was restarted";
    StreamFault { name: "position-ahead", text: text.into(), then: Recovery::Gap }
}

/// Opens a change of the touched tags and statements. If texts were touched, their scan settles with it.
pub(super) async fn open(
    site: &Arc<SiteState>,
    touched: TouchedTags,
    statements: Option<&StatementLook>,
    by: ChangeSource,
) -> (OpenChange, Option<Look>) {
    if !touched.is_everything() && !statements.is_some_and(StatementLook::is_everything) {
        let mut looked = None;
        // Long texts are searched where they delay no client.
        if touched.text_bytes() > TEXT_BYTES {
            off_the_way(&mut || looked = site.terms.look(&touched))
        } else {
            looked = site.terms.look(&touched)
        }
        let (searches, look) = looked.unzip();
        let searches = searches.iter().flatten().map(|tag| ChangeTarget::Tag(tag));
        let tags = touched.tags().map(|tag| ChangeTarget::Tag(tag.as_bytes()));
        let statements = statements.into_iter().flat_map(StatementLook::tags);
        let targets: Vec<ChangeTarget<'_>> =
            tags.chain(searches).chain(statements.map(ChangeTarget::Tag)).collect();
        let changes = site.changes();
        let opened =
            if targets.is_empty() { changes.open_nothing() } else { changes.open(&targets, by) };
        return (opened, look);
    }
    // Purging a million pages takes a while, so it runs on a blocking thread.
    let (own, again) = (site.clone(), by.clone());
    let opening = move || own.changes().open(&[ChangeTarget::Everything], by);
    let opened = match tokio::task::spawn_blocking(opening).await {
        Ok(opened) => opened,
        // The task has panicked, or the server ends, so it runs here.
        Err(_) => site.changes().open(&[ChangeTarget::Everything], again),
    };
    (opened, None)
}
