//! Following a database: connects, reads, applies; comes back after a break, without a gap.
//!
//! | state | what happens | then |
//! |---|---|---|
//! | not followed | connected; the schema read, the rules held against it | behind |
//! | behind | all is applied that the database had committed when it was connected to | followed: the gate opens |
//! | followed | a transaction | applied, then counted by the position |
//! | any | the connection breaks | not followed; again after a pause, from the position |
//! | any | the position is gone, or means nothing to this server | every page is dropped; from where the server is |
//!
//! A position of GTIDs means the same to every server that has replicated them: after a failover it goes
//! on at the other, which refuses a position that it does not have.
//!
//! Invariants: without a position to resume from the gate is closed; the position is advanced only
//! after the change was applied. Not here: what a stream is made of (`source`).

use super::Feed;
use super::settle::{Entry, Opening, Waiting};
use super::source::{
    self, Aim, Broken, Connected, Left, Made, Mark, Position, Read, Stream, Then, Transaction,
};
use crate::config::DatabaseKind;
use crate::site::{Site, off_the_way};
use crate::terms::Look;
use crate::why::Cause;
use crate::why::shown::cut;
use change_feed::TouchedTags;
use page_store::{Change, ChangeTarget, OpenChange, Strength};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Between two attempts, at first and at most.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The most where other machines wait for this one: it costs their server next to nothing.
const STREAM_PAUSE_MAX: Duration = Duration::from_secs(1);

/// How much text is looked through where visitors are served, in bytes: some tenths of a millisecond.
const TEXT_BYTES: usize = 16 << 10;

/// Whose log a stream is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    /// The one that was followed before.
    Same,
    /// Another's, or nobody knows.
    Another,
}

/// A site, one of its databases, and where its open changes go.
pub struct Follower {
    /// The site.
    pub site: Arc<Site>,
    /// The database.
    pub feed: Arc<Feed>,
    /// To be settled.
    pub entries: mpsc::Sender<Entry>,
}

impl Follower {
    /// Follows for ever. `first` is a connection that is there already.
    pub async fn run(self, mut first: Option<Connected>) {
        let feed = &self.feed;
        let mut pause = PAUSE;
        let pause_max = match feed.config.server.kind {
            DatabaseKind::Valkey(_) => STREAM_PAUSE_MAX,
            DatabaseKind::MariaDb | DatabaseKind::Postgres(_) => PAUSE_MAX,
        };
        loop {
            let connected = match first.take() {
                Some(connected) => Ok(connected),
                None => source::connect(&feed.config, Aim::Follow).await,
            };
            let broken = match connected {
                Ok(connected) => self.follow(connected).await,
                Err(broken) => broken,
            };
            let was_followed = feed.applied.send_replace(None).is_some();
            feed.next_generation();
            match broken.then {
                Then::Gap => self.gap(broken.name),
                Then::Lost if feed.progress().is_known() => self.gap(broken.name),
                Then::Again | Then::Unusable | Then::Lost => {}
            }
            pause = if was_followed { PAUSE } else { (pause * 2).min(pause_max) };
            let again_ms = pause.as_millis() as u64;
            let (database, reason, error) = (&feed.config.name, broken.name, broken.text);
            tracing::warn!(event = "database-broken", database, reason, error, again_ms);
            tokio::time::sleep(pause).await;
        }
    }

    /// Changes may have been missed: every page goes.
    fn gap(&self, reason: &'static str) {
        self.feed.gate.close(&self.site, self.feed.name());
        // Where it was closed already, pages of before the gap may be about to be put in.
        let site = self.site.name;
        let everything = Change { site, targets: &[ChangeTarget::Everything] };
        self.site.store.change(&everything, Strength::Drop);
        // The next process may find nothing missing: it is this one that has seen it.
        if let Some(snapshots) = &self.site.snapshots {
            snapshots.note_everything();
        }
        self.feed.progress().gap();
        self.site.counters.database_gaps.add();
        tracing::error!(event = "database-gap", database = self.feed.config.name, reason);
    }

    async fn follow(&self, connected: Connected) -> Broken {
        let Connected { mut stream, committed, mark, server, fits, warnings } = connected;
        let feed = &self.feed;
        source::say_if_wrong(&feed.config, &fits);
        for (event, why) in warnings {
            tracing::warn!(event, database = feed.config.name, why);
        }
        let is_another = feed.progress().is_of_another(&server);
        if is_another && !feed.progress().is_anywhere() {
            self.gap("another-server");
        }
        let mut resumed = feed.progress().resume(&server);
        if resumed.as_ref().is_some_and(|from| from.position.is_lost_by(&committed)) {
            self.gap("position-ahead");
            resumed = feed.progress().resume(&server);
        }
        let log = if is_another || resumed.is_none() { Log::Another } else { Log::Same };
        let (from, left) = match resumed {
            None => (committed.clone(), Left::Never),
            Some(from) if is_another => (from.position, Left::Elsewhere),
            Some(from) => (from.position, Left::Here(from.landmark)),
        };
        if let Err(broken) = stream.start(&from, left).await {
            return broken;
        }
        let mut is_behind = true;
        let forget = |applied: &Position, bytes| feed.forget(applied, bytes);
        loop {
            let read = match stream.next(&forget).await {
                Ok(read) => read,
                Err(broken) => return broken,
            };
            if feed.is_doubted() {
                return taken_back();
            }
            self.site.counters.database_events.add();
            let has_moved = match read {
                Read::Transaction(transaction) => {
                    self.apply(transaction, &stream).await;
                    true
                }
                Read::Moved => {
                    if let Some(reached) = stream.reached() {
                        feed.progress().advance(reached);
                    }
                    true
                }
                Read::Nothing => false,
            };
            let Some(applied) = stream.position() else { continue };
            if is_behind && applied.has_all(&committed) {
                is_behind = false;
                if let Some(reached) = stream.reached() {
                    feed.progress().advance(reached);
                }
                feed.applied.send_replace(Some(applied.clone()));
                self.followed(&applied, log, mark.clone()).await;
            } else if !is_behind && has_moved {
                feed.applied.send_replace(Some(applied.clone()));
            }
            if let Some(opened) = feed.gate.open_at(&applied) {
                tracing::info!(event = "database-caught-up", database = feed.config.name);
                // What was committed meanwhile has been opened, change by change, and comes before it.
                self.let_in(opened, None).await;
            }
        }
    }

    /// The database is followed: the gate opens, if it was closed.
    async fn followed(&self, applied: &Position, log: Log, mark: Option<Mark>) {
        let database = &self.feed.config.name;
        tracing::info!(event = "database-followed", database, position = %applied);
        if log == Log::Another {
            // The receiver ends with the server.
            let _ = self.entries.send(Entry::Elsewhere).await;
        }
        if let Some(opened) = self.feed.gate.open() {
            self.let_in(opened, mark).await;
        }
    }

    /// Of a gate that was opened: pages are let in when all that the mark stands for is visible.
    async fn let_in(&self, opened: OpenChange, mark: Option<Mark>) {
        self.feed.progress().opened();
        let (what, since) = (Opening::Gate, Instant::now());
        let waiting = Waiting { opened, look: None, mark, what, since };
        let _ = self.entries.send(Entry::Change(waiting)).await;
    }

    async fn apply(&self, transaction: Transaction, stream: &Stream) {
        let began = Instant::now();
        let counters = &self.site.counters;
        counters.database_transactions.add();
        let Transaction { made, mark, server } = transaction;
        match made {
            Made::Rows(touched) if touched.is_empty() => {}
            Made::Rows(touched) => {
                self.feed.progress().opened();
                let (opened, look) = open(&self.site, self.feed.name(), touched).await;
                counters.database_changes.add();
                counters.database_apply_us.set(began.elapsed().as_micros() as u64);
                let what = Opening::Transaction;
                let waiting = Waiting { opened, look, mark, what, since: Instant::now() };
                // The receiver ends with the server.
                let _ = self.entries.send(Entry::Change(waiting)).await;
            }
            // Everybody sees what it tells of.
            Made::Told(heard) => {
                let site = self.site.now();
                let by = Cause::Stream { from: cut(&heard.from) };
                heard.with_targets(site.config.rules.form(), |targets| {
                    site.change(targets, heard.strength, by);
                });
                counters.stream_heard.add();
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
}

/// The database has said that it has not committed what it has sent.
fn taken_back() -> Broken {
    let text = "the server has not committed what it has sent: its log was begun anew";
    Broken { name: "position-ahead", text: text.into(), then: Then::Gap }
}

/// Opens a change of what was touched. Where texts were, what settles with it.
async fn open(
    site: &Arc<Site>,
    database: &str,
    touched: TouchedTags,
) -> (OpenChange, Option<Look>) {
    let by = Cause::database(database, touched.tables());
    if !touched.is_everything() {
        let mut looked = None;
        // Long texts hold up nobody.
        match touched.text_bytes() > TEXT_BYTES {
            true => off_the_way(&mut || looked = site.terms.look(&touched)),
            false => looked = site.terms.look(&touched),
        }
        let (searches, look) = looked.unzip();
        let searches = searches.iter().flatten().map(|tag| ChangeTarget::Tag(tag));
        let tags = touched.tags().map(|tag| ChangeTarget::Tag(tag.as_bytes()));
        let targets: Vec<ChangeTarget<'_>> = tags.chain(searches).collect();
        return (site.open(&targets, by), look);
    }
    // Dropping a million pages takes a while: not where visitors are served.
    let (own, again) = (site.clone(), by.clone());
    let opening = move || own.open(&[ChangeTarget::Everything], by);
    let opened = match tokio::task::spawn_blocking(opening).await {
        Ok(opened) => opened,
        // It has panicked, or the server ends: here, then.
        Err(_) => site.open(&[ChangeTarget::Everything], again),
    };
    (opened, None)
}
