//! Tells the other machines what was changed here: each change is an entry of the stream.
//!
//! A change is put here after it was applied, and whoever made it waits until every other machine has applied
//! it as well ([`Others::heard`]), for as long as `barrier` says. What cannot be told stays here until it can,
//! in its order; of more than [`WAITING_BYTES`] the rest is told as a change of every page. Where an answer
//! was lost a change is told twice, which drops nothing that had not to be dropped. Whoever is answered before
//! his change is told is answered after that was written down beside the snapshots, where there are any: a
//! process that finds it tells a change of every page (decision 0073).
//!
//! Lock: `queue`, to put something in or take it out, or write down that something waits; never across an
//! `await`. That of the snapshots' journal may be taken under it.

use super::connection::{Connection, good};
use super::readers::{self, Readers};
use super::stream::shared;
use super::words;
use crate::config::{Database, SharedStream};
use crate::database::Waited;
use crate::database::source::Failed;
use crate::site::Site;
use crate::snapshot::Snapshots;
use page_store::{Strength, Target};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use valkey::{Id, NewEntry, Reply, add, all_fields, ask_extent};

/// How much may wait to be told.
const WAITING_BYTES: usize = 16 << 20;
/// How many are sent at once.
const AT_ONCE: usize = 256;
/// How many are remembered that not everybody has applied.
const SENT_MAX: usize = 10_000;
/// How often is looked who has applied it, without a pause: a timer takes longer than the others do.
const LOOKS_AT_ONCE: u32 = 10;
/// Between two further looks, at first and at most.
const PAUSE: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(50);
/// How often is looked who is there while nothing is told; what has closed the connection is noticed by it.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Between two attempts to reach the server, at first and at most.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// How long a machine that ends takes to say so.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// The other machines, by way of a stream.
pub struct Others {
    config: Arc<Database>,
    stream: SharedStream,
    queue: Mutex<Queue>,
    /// The number of the last change that the stream has.
    told: AtomicU64,
    /// The number of the last change that every machine has applied.
    heard: watch::Sender<u64>,
    put: Notify,
    is_begun: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The number of the last change that was put in.
    last: u64,
    /// Since when the first is waited for that not everybody has applied.
    waits_since: Option<Instant>,
    /// Whether it is written down that something waits.
    is_marked: bool,
}

struct Waiting {
    number: u64,
    added: NewEntry,
    since: Instant,
}

/// A change that the stream has.
struct Sent {
    number: u64,
    id: Id,
    since: Instant,
}

/// What the task that tells has in hand.
#[derive(Default)]
struct Teller {
    server: Option<Server>,
    /// To be sent.
    batch: VecDeque<Waiting>,
    /// To be applied by the others.
    sent: VecDeque<Sent>,
    readers: Readers,
    is_away: bool,
    /// Which start of the server it was told to last.
    run: String,
}

impl Teller {
    /// What not everybody has applied may have gone with the stream: it is told once more, as a change of
    /// everything, which costs nothing: who has read that stream has dropped every page.
    fn tell_all_again(&mut self) {
        let Some((first, last)) = self.sent.front().zip(self.sent.back()) else { return };
        let added = words::entry(&[Target::Everything], Strength::Drop);
        let again = Waiting { number: last.number, added, since: first.since };
        self.sent.clear();
        self.batch.push_front(again);
    }
}

/// A connection to the server, and which start of it that is (`run_id`).
struct Server {
    connection: Connection,
    run: String,
}

impl Server {
    async fn open(config: &Database) -> Result<Server, Failed> {
        let mut connection = Connection::open(&config.server).await?;
        let run = connection.server().await?.run;
        Ok(Server { connection, run })
    }
}

impl Others {
    /// By this stream. Nothing is told before [`begin`](Self::begin).
    #[must_use]
    pub fn new(config: Arc<Database>) -> Others {
        let (queue, heard) = (Mutex::default(), watch::Sender::new(0));
        let (told, put, is_begun) = (AtomicU64::new(0), Notify::new(), AtomicBool::new(false));
        Others { stream: shared(&config), config, queue, told, heard, put, is_begun }
    }

    /// This was changed, and is to be told.
    pub fn tell(&self, targets: &[Target<'_>], strength: Strength) {
        let mut added = words::entry(targets, strength);
        let mut queue = self.queue();
        if queue.bytes + added.bytes() > WAITING_BYTES {
            tracing::error!(event = "stream-too-much", changes = queue.waiting.len());
            queue.waiting.clear();
            queue.bytes = 0;
            added = words::entry(&[Target::Everything], Strength::Drop);
        }
        queue.last += 1;
        queue.bytes += added.bytes();
        let (number, since) = (queue.last, Instant::now());
        queue.waits_since.get_or_insert(since);
        queue.waiting.push_back(Waiting { number, added, since });
        drop(queue);
        self.put.notify_one();
    }

    /// The number of the last change that was put in.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.queue().last
    }

    /// Waits until every machine has applied what was put in after `before` and by now, within the bound: not
    /// at all where one has been waited for as long already. What is not even told by then is written down.
    pub async fn heard(&self, before: u64, snapshots: Option<&Snapshots>) -> Waited {
        let (last, since) = {
            let queue = self.queue();
            (queue.last, queue.waits_since)
        };
        if last <= before {
            return Waited::No;
        }
        let waited = self.applied(last, since).await;
        if waited != Waited::Applied {
            self.mark(snapshots);
        }
        waited
    }

    /// Waits until every machine has applied all up to this number, of which the first waits since then.
    async fn applied(&self, last: u64, since: Option<Instant>) -> Waited {
        let bound = self.config.barrier;
        if bound.is_zero() {
            return Waited::No;
        }
        let mut heard = self.heard.subscribe();
        let until = since.unwrap_or_else(Instant::now) + bound;
        match tokio::time::timeout_at(until, heard.wait_for(|heard| *heard >= last)).await {
            Ok(Ok(_)) => Waited::Applied,
            Ok(Err(_)) | Err(_) => Waited::Late,
        }
    }

    /// Writes down that something is not told yet, where that is so.
    pub fn mark(&self, snapshots: Option<&Snapshots>) {
        let Some(snapshots) = snapshots else { return };
        let mut queue = self.queue();
        if !queue.is_marked && self.told.load(Ordering::Acquire) < queue.last {
            queue.is_marked = snapshots.mark_untold();
        }
    }

    /// The same the other way round.
    fn unmark(&self, snapshots: Option<&Snapshots>) {
        let Some(snapshots) = snapshots else { return };
        let mut queue = self.queue();
        let is_marked = queue.is_marked || snapshots.lacks_mark();
        if is_marked && self.told.load(Ordering::Acquire) == queue.last {
            queue.is_marked = !snapshots.unmark_untold();
        }
    }

    /// How many changes the stream does not have yet.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.queue().last.saturating_sub(self.told.load(Ordering::Acquire))
    }

    /// This machine answers nothing from memory any more: nobody waits for it. Bounded.
    pub async fn gone(&self) {
        let say = async {
            let mut connection = Connection::open(&self.config.server).await?;
            connection.ask(&readers::gone(&self.stream.key, &self.config)).await
        };
        // Who cannot be told waits until it has been silent for long.
        let _ = tokio::time::timeout(GONE_WITHIN, say).await;
    }

    /// Begins to tell what is put in; once is enough. What an earlier process has not told may have been
    /// anything.
    pub fn begin(self: &Arc<Others>, site: &Arc<Site>) {
        if self.is_begun.swap(true, Ordering::AcqRel) {
            return;
        }
        if site.snapshots.as_ref().is_some_and(|snapshots| snapshots.was_left_untold()) {
            tracing::warn!(event = "stream-left-untold");
            self.queue().is_marked = true;
            self.tell(&[Target::Everything], Strength::Drop);
        }
        tokio::spawn(run(self.clone(), site.clone()));
    }

    async fn run(&self, site: &Site) {
        let (mut teller, mut pause, mut looks) = (Teller::default(), PAUSE, 0);
        loop {
            self.take(&mut teller.batch);
            if teller.batch.is_empty() && teller.sent.is_empty() {
                let put = tokio::time::timeout(LOOK_EVERY, self.put.notified()).await;
                (pause, looks) = (PAUSE, 0);
                if put.is_ok() {
                    continue;
                }
            }
            let was_kept = teller.server.is_some();
            match self.step(&mut teller, site).await {
                Ok(Moved::Yes) => (pause, looks) = (PAUSE, 0),
                Ok(Moved::No) if looks < LOOKS_AT_ONCE => looks += 1,
                Ok(Moved::No) => {
                    // Something else may be told meanwhile.
                    let _ = tokio::time::timeout(pause, self.put.notified()).await;
                    pause = (pause * 2).min(LOOK_MAX);
                }
                Err(failed) => {
                    teller.server = None;
                    // The server may have closed it because it was idle.
                    if !was_kept {
                        self.say_away(&mut teller, &failed);
                        pause = (pause * 2).clamp(AGAIN, AGAIN_MAX);
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        }
    }

    /// Sends what is to be sent, and looks who has applied it.
    async fn step(&self, teller: &mut Teller, site: &Site) -> Result<Moved, Failed> {
        let SharedStream { key, keep } = &self.stream;
        if teller.server.is_none() {
            let server = Server::open(&self.config).await?;
            if *server.run != *std::mem::replace(&mut teller.run, server.run.clone()) {
                teller.tell_all_again();
            }
            teller.server = Some(server);
        }
        let Teller { server, batch, sent, readers, .. } = teller;
        let Some(Server { connection, run }) = server else { return Ok(Moved::No) };
        let looking = all_fields(&readers::hash(key));
        let asked = Instant::now();
        let mut commands = Vec::new();
        if !batch.is_empty() {
            // Before anything is added: what somebody has read by then does not count for it.
            commands = [looking.clone(), ask_extent(key)].concat();
            batch.iter().for_each(|one| commands.append(&mut add(key, *keep, &one.added)));
        }
        commands.extend_from_slice(&looking);
        connection.send(&commands).await?;
        let (highest, mut before) = (sent.back().map(|one| one.id), None);
        if !batch.is_empty() {
            before = Some((connection.fields().await, connection.extent(key).await));
        }
        while !batch.is_empty() {
            let id = id(good(connection.receive(Duration::ZERO).await?)?)?;
            // It is told, whatever becomes of the others.
            let Some(Waiting { number, since, .. }) = batch.pop_front() else { break };
            self.told.fetch_max(number, Ordering::AcqRel);
            site.counters.stream_told.add();
            if sent.len() >= SENT_MAX {
                // Whoever waits for it waits for a later one.
                sent.pop_back();
            }
            sent.push_back(Sent { number, id, since });
        }
        self.unmark(site.snapshots.as_deref());
        let mut is_another = false;
        if let Some((said, extent)) = before {
            let last = extent?.id;
            readers.see(key, said?, Some(last), asked);
            is_another = highest > Some(last);
        }
        let said = connection.fields().await?;
        if std::mem::take(&mut teller.is_away) {
            tracing::info!(event = "stream-told");
        }
        let forgotten = readers.see(key, said, None, asked);
        let least = readers.least(run, asked);
        for command in forgotten {
            connection.send(&command).await?;
            // Where it may not, it stays.
            connection.receive(Duration::ZERO).await?;
        }
        if is_another {
            teller.tell_all_again();
        }
        Ok(self.take_in(&mut teller.sent, least))
    }

    /// Everybody has applied all up to here; none: there is nobody.
    fn take_in(&self, sent: &mut VecDeque<Sent>, least: Option<Id>) -> Moved {
        let mut last = None;
        while let Some(one) = sent.pop_front_if(|one| least.is_none_or(|least| one.id <= least)) {
            last = Some(one.number);
        }
        let Some(last) = last else { return Moved::No };
        let mut queue = self.queue();
        let next = sent.front().map(|one| one.since);
        let next = next.or_else(|| queue.waiting.front().map(|one| one.since));
        queue.waits_since = next.filter(|_| queue.last > last);
        drop(queue);
        self.heard.send_replace(last);
        Moved::Yes
    }

    /// Fills an empty batch.
    fn take(&self, batch: &mut VecDeque<Waiting>) {
        if batch.is_empty() {
            let mut queue = self.queue();
            let count = queue.waiting.len().min(AT_ONCE);
            batch.extend(queue.waiting.drain(..count));
            queue.bytes -= batch.iter().map(|one| one.added.bytes()).sum::<usize>();
        }
    }

    fn say_away(&self, teller: &mut Teller, failed: &Failed) {
        if self.untold() > 0 && !std::mem::replace(&mut teller.is_away, true) {
            let (reason, place) = (failed.as_str(), self.config.server.place.to_string());
            tracing::error!(event = "stream-untold", place, reason, error = %failed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether anything has come of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// What an entry is called that was added.
fn id(reply: Reply) -> Result<Id, Failed> {
    let Reply::Bytes(text) = reply else { return Err(unread()) };
    let id = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    id.ok_or_else(unread)
}

fn unread() -> Failed {
    Failed::Said("bad-reply", "a command was answered with something else".into())
}

/// Tells what is put in, as long as the process lives: what is told last is told while it ends.
async fn run(others: Arc<Others>, site: Arc<Site>) {
    others.run(&site).await;
}
