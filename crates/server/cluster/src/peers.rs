//! Publishes the changes of this node to the other nodes: each change is an entry of the stream.
//!
//! A change is queued after it is applied here. Its write waits until all nodes have applied it
//! ([`Peers::applied_by_all`]), for at most `barrier`. Pending changes stay queued in order; beyond
//! [`WAITING_BYTES`] they become one change of every page. If a reply is lost, a change is
//! published twice, which is harmless. If a write is acknowledged before its change is published, a
//! mark is written beside the snapshots first, where there are any. A process that finds the mark
//! publishes a change of every page (decision 0073).
//!
//! Lock: `queue`, to add or remove a change, or to write the mark; never held across an `await`.
//! The lock of the snapshots' journal may be taken under it.

use super::connection::{Connection, good};
use super::entry_format;
use super::nodes::{ClusterNode, NodeList};
use super::peer_positions::{self, PeerPositions};
use super::stream::shared;
use super::unpublished;
use config::{Database, SharedStream, UnpublishedWrites};
use database_links::fault::ConnectionError;
use database_links::proof_times::{ask_every, proof_max};
use page_store::{ChangeTarget, Strength};
use site_state::SiteState;
use site_state::cluster::Cluster;
use site_state::journal::Snapshots;
use site_state::propagation::Propagation;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use valkey::{Id, NewEntry, Reply, add, all_fields, ask_extent};

/// The most bytes of pending changes.
const WAITING_BYTES: usize = 16 << 20;
/// The most changes that are sent at once.
const AT_ONCE: usize = 256;
/// The most published changes that are tracked until all nodes have applied them.
const SENT_MAX: usize = 10_000;
/// How many checks of the nodes' positions follow without a pause. A timer takes longer than the
/// nodes do.
const LOOKS_AT_ONCE: u32 = 10;
/// The pause between two further checks: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(50);
/// How often the nodes' positions are read while nothing is published. It also detects a closed
/// connection.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The pause between two attempts to reach the server: the first, and the longest.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(2);
/// The timeout for announcing that this node stops, and that it cannot publish.
const GONE_WITHIN: Duration = Duration::from_secs(5);
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);
/// How long a server may be silent, and a change may wait, if `on_lag` sets no limit.
const CONTACT_MAX: Duration = Duration::from_secs(10);

/// The other nodes of the cluster, reached through a stream.
pub struct Peers {
    config: Arc<Database>,
    stream: SharedStream,
    queue: Mutex<Queue>,
    /// The number of the last published change.
    published: AtomicU64,
    /// The number of the last change that all nodes have applied.
    applied: watch::Sender<u64>,
    put: Notify,
    is_begun: AtomicBool,
    nodes: NodeList,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The number of the last queued change.
    last: u64,
    /// The time at which the oldest change was queued that not all nodes have applied.
    waits_since: Option<Instant>,
    /// The time at which the oldest change was queued that is not in the stream.
    unpublished_since: Option<Instant>,
    /// When the positions of the nodes were last read, with success.
    contact: Option<Instant>,
    /// Whether the mark for pending changes is on disk.
    is_marked: bool,
}

struct Waiting {
    number: u64,
    added: NewEntry,
    since: Instant,
}

/// A change that is in the stream.
struct PublishedChange {
    number: u64,
    id: Id,
    since: Instant,
}

/// The state of the publishing task.
#[derive(Default)]
struct Teller {
    server: Option<Server>,
    /// Changes that the next step sends.
    batch: VecDeque<Waiting>,
    /// Published changes that not all nodes have applied, in the order of their IDs.
    sent: VecDeque<PublishedChange>,
    /// Whether a part of `sent` is in a stream that was deleted since, so that all of it has to be
    /// published again. Until then its IDs may not ascend.
    is_another_stream: bool,
    readers: PeerPositions,
    is_away: bool,
    /// How often this node has announced that it cannot publish; 0: it has not, or not since all was
    /// published.
    announced: u64,
    /// The server run (`run_id`) that the last connection had.
    run: String,
    /// The last change that was published to this run.
    last_of_run: Option<(u64, Instant)>,
}

impl Teller {
    /// Begins with the run of the server that a new connection has. Changes published to another
    /// run are published once more, even if all nodes that were seen there had applied them: during
    /// a failover some nodes may have followed the new server already.
    fn begin_run(&mut self, run: &str) {
        self.readers.begin_connection();
        if *run == *self.run {
            return;
        }
        run.clone_into(&mut self.run);
        if let Some((number, since)) = self.last_of_run.take() {
            let since = self.sent.front().map_or(since, |first| first.since);
            self.sent.clear();
            self.batch.push_front(everything(number, since));
        }
    }
}

/// Publishes once more the changes that not all nodes have applied: they may be lost with the stream.
fn tell_all_again(sent: &mut VecDeque<PublishedChange>, batch: &mut VecDeque<Waiting>) {
    let Some((first, last)) = sent.front().zip(sent.back()) else { return };
    let again = everything(last.number, first.since);
    sent.clear();
    batch.push_front(again);
}

/// One change of every page, for changes up to `number` that may be lost with the stream. That purges
/// little more: nodes that read the lost stream purge every page anyway.
fn everything(number: u64, since: Instant) -> Waiting {
    let added = entry_format::entry(&[ChangeTarget::Everything], Strength::Drop);
    Waiting { number, added, since }
}

/// Adds a published change to those that are tracked. Returns whether it is in another stream than the
/// one before: the IDs of one stream ascend.
fn track(sent: &mut VecDeque<PublishedChange>, one: PublishedChange) -> bool {
    let is_another = sent.back().is_some_and(|last| one.id <= last.id);
    if sent.len() >= SENT_MAX {
        // Its waiters wait for a later change.
        sent.pop_back();
    }
    sent.push_back(one);
    is_another
}

/// A connection to the server, and the identifier of the server's run (`run_id`).
struct Server {
    connection: Connection,
    run: String,
}

impl Server {
    async fn open(config: &Database) -> Result<Server, ConnectionError> {
        let mut connection = Connection::open(&config.server).await?;
        let run = connection.server().await?.run;
        Ok(Server { connection, run })
    }
}

/// Returns the age of the oldest published change after the position `read`; zero if there is none.
/// The IDs of `sent` ascend.
fn lag(sent: &VecDeque<PublishedChange>, read: Id, now: Instant) -> Duration {
    let oldest = sent.get(sent.partition_point(|one| one.id <= read));
    oldest.map_or(Duration::ZERO, |one| now.duration_since(one.since))
}

impl Cluster for Peers {
    fn publish(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        self.tell(targets, strength);
    }

    fn published(&self) -> u64 {
        self.last()
    }

    fn applied<'c>(
        &'c self,
        before: u64,
        journal: Option<&'c Snapshots>,
    ) -> Pin<Box<dyn Future<Output = Propagation> + Send + 'c>> {
        Box::pin(self.applied_by_all(before, journal))
    }

    fn host_name(&self, process: &str) -> Option<Box<str>> {
        self.nodes.host_name(process)
    }

    fn mark(&self, journal: Option<&Snapshots>) {
        self.write_down(journal);
    }

    fn refuses_writes(&self) -> bool {
        self.stream.unpublished == UnpublishedWrites::Refuse && !self.can_publish()
    }
}

impl Peers {
    /// Creates the publisher for this stream. Nothing is published before [`begin`](Self::begin).
    #[must_use]
    pub fn new(config: Arc<Database>) -> Peers {
        let (queue, applied) = (Mutex::default(), watch::Sender::new(0));
        let (published, put, is_begun) = (AtomicU64::new(0), Notify::new(), AtomicBool::new(false));
        let nodes = NodeList::default();
        Peers { stream: shared(&config), config, queue, published, applied, put, is_begun, nodes }
    }

    /// Queues a change that has to be published.
    fn tell(&self, targets: &[ChangeTarget<'_>], strength: Strength) {
        let mut added = entry_format::entry(targets, strength);
        let mut queue = self.queue();
        if queue.bytes + added.bytes() > WAITING_BYTES {
            tracing::error!(event = "cluster-backlog-too-large", changes = queue.waiting.len());
            queue.waiting.clear();
            queue.bytes = 0;
            added = entry_format::entry(&[ChangeTarget::Everything], Strength::Drop);
        }
        queue.last += 1;
        queue.bytes += added.bytes();
        let (number, since) = (queue.last, Instant::now());
        queue.waits_since.get_or_insert(since);
        queue.unpublished_since.get_or_insert(since);
        queue.waiting.push_back(Waiting { number, added, since });
        drop(queue);
        self.put.notify_one();
    }

    /// The number of the last queued change.
    fn last(&self) -> u64 {
        self.queue().last
    }

    /// Waits until every node has applied the changes that were queued after `before` and until
    /// now. The time limit counts from the oldest change that is still pending. A change that is
    /// not even published by then is recorded on disk.
    async fn applied_by_all(&self, before: u64, snapshots: Option<&Snapshots>) -> Propagation {
        let (last, since) = {
            let queue = self.queue();
            (queue.last, queue.waits_since)
        };
        if last <= before {
            return Propagation::NotNeeded;
        }
        let waited = self.applied_up_to(last, since).await;
        if waited != Propagation::Applied {
            self.write_down(snapshots);
        }
        waited
    }

    /// Waits until every node has applied all changes up to this number. `since` is the time from
    /// which the limit counts.
    async fn applied_up_to(&self, last: u64, since: Option<Instant>) -> Propagation {
        let bound = self.config.barrier;
        if bound.is_zero() {
            return Propagation::NotNeeded;
        }
        let mut applied = self.applied.subscribe();
        let until = since.unwrap_or_else(Instant::now) + bound;
        match tokio::time::timeout_at(until, applied.wait_for(|applied| *applied >= last)).await {
            Ok(Ok(_)) => Propagation::Applied,
            Ok(Err(_)) | Err(_) => Propagation::TimedOut,
        }
    }

    /// Records on disk that a change is not published yet, if there is one.
    fn write_down(&self, snapshots: Option<&Snapshots>) {
        let Some(snapshots) = snapshots else { return };
        let mut queue = self.queue();
        if !queue.is_marked && self.published.load(Ordering::Acquire) < queue.last {
            queue.is_marked = snapshots.mark_unpublished();
        }
    }

    /// Removes the mark if all changes are published.
    fn unmark(&self, snapshots: Option<&Snapshots>) {
        let Some(snapshots) = snapshots else { return };
        let mut queue = self.queue();
        let is_marked = queue.is_marked || snapshots.lacks_mark();
        if is_marked && self.published.load(Ordering::Acquire) == queue.last {
            queue.is_marked = !snapshots.unmark_unpublished();
        }
    }

    /// Returns the number of pending changes: those that are not in the stream yet.
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.queue().last.saturating_sub(self.published.load(Ordering::Acquire))
    }

    /// Returns whether this node could publish a change now, as far as it knows: no change waits for
    /// longer than a write does, and the server has answered within `lag_max`.
    fn can_publish(&self) -> bool {
        let queue = self.queue();
        let is_recent = |at: Instant, bound: Duration| at.elapsed() <= bound;
        let contact_max = proof_max(&self.config).unwrap_or(CONTACT_MAX);
        queue.unpublished_since.is_none_or(|since| is_recent(since, self.config.barrier))
            && queue.contact.is_some_and(|at| is_recent(at, contact_max))
    }

    /// Returns whether this node has had changes for longer than `lag_max` that it cannot publish.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let bound = proof_max(&self.config).unwrap_or(CONTACT_MAX);
        self.queue().unpublished_since.is_some_and(|since| since.elapsed() > bound)
    }

    /// Returns the other nodes of the cluster, as last seen, at most some seconds ago.
    #[must_use]
    pub fn nodes(&self) -> Vec<ClusterNode> {
        self.nodes.nodes()
    }

    /// Announces that this node answers nothing from the cache any more, so that no node waits for
    /// it. Takes at most [`GONE_WITHIN`].
    pub async fn gone(&self) {
        let mut commands = vec![peer_positions::gone(&self.stream.key, &self.config)];
        // With pending changes an announcement stays: the others must not use the pages that these
        // changes purge. They remove it once their gates have closed.
        if self.pending() == 0 {
            commands.push(unpublished::withdraw(&self.stream.key));
        }
        let say = async { Connection::open(&self.config.server).await?.try_all(&commands).await };
        // If this fails, the other nodes wait until this one has been silent for its own limit.
        let _ = tokio::time::timeout(GONE_WITHIN, say).await;
    }

    /// Starts publishing queued changes; further calls do nothing. If an earlier process left
    /// changes unpublished, they are unknown, so a change of every page is published.
    pub fn begin(self: &Arc<Peers>, site: &Arc<SiteState>) {
        if self.is_begun.swap(true, Ordering::AcqRel) {
            return;
        }
        if site.snapshots.as_ref().is_some_and(|snapshots| snapshots.was_left_unpublished()) {
            tracing::warn!(event = "cluster-left-pending");
            self.queue().is_marked = true;
            self.tell(&[ChangeTarget::Everything], Strength::Drop);
        }
        tokio::spawn(run(self.clone(), site.clone()));
    }

    async fn run(&self, site: &SiteState) {
        let (mut teller, mut pause, mut looks) = (Teller::default(), PAUSE, 0);
        loop {
            self.take(&mut teller.batch);
            if teller.batch.is_empty() && teller.sent.is_empty() {
                let put = tokio::time::timeout(self.look_every(), self.put.notified()).await;
                (pause, looks) = (PAUSE, 0);
                if put.is_ok() {
                    continue;
                }
            }
            let was_kept = teller.server.is_some();
            match self.step(&mut teller, site).await {
                Ok(true) => (pause, looks) = (PAUSE, 0),
                Ok(false) if looks < LOOKS_AT_ONCE => looks += 1,
                Ok(false) => {
                    // Wakes early if another change is queued.
                    let _ = tokio::time::timeout(pause, self.put.notified()).await;
                    pause = (pause * 2).min(LOOK_MAX);
                }
                Err(failed) => {
                    teller.server = None;
                    self.nodes.lost_contact();
                    // The server may have closed the connection because it was idle.
                    if !was_kept {
                        self.say_away(&mut teller, &failed);
                        if self.pending() > 0 {
                            self.announce(&mut teller).await;
                        }
                        pause = (pause * 2).clamp(AGAIN, AGAIN_MAX);
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        }
    }

    /// Sends queued changes, and checks which nodes have applied them. Returns whether all nodes have applied more.
    async fn step(&self, teller: &mut Teller, site: &SiteState) -> Result<bool, ConnectionError> {
        let SharedStream { key, keep, .. } = &self.stream;
        if teller.server.is_none() {
            let server = Server::open(&self.config).await?;
            teller.begin_run(&server.run);
            teller.server = Some(server);
        }
        let Teller { server, batch, sent, is_another_stream, readers, last_of_run, .. } = teller;
        let Some(Server { connection, run }) = server else { return Ok(false) };
        let looking = all_fields(&peer_positions::hash(key));
        let asked = Instant::now();
        let mut commands = Vec::new();
        if !batch.is_empty() {
            // Read the positions before the entries are added: a position reported by then cannot
            // include them.
            commands = [looking.clone(), ask_extent(key)].concat();
            batch.iter().for_each(|one| commands.append(&mut add(key, *keep, &one.added)));
        }
        commands.extend_from_slice(&looking);
        connection.send(&commands).await?;
        let (highest, mut before) = (sent.back().map(|one| one.id), None);
        if !batch.is_empty() {
            before =
                Some((connection.fields().await, Instant::now(), connection.extent(key).await));
        }
        while !batch.is_empty() {
            let id = id(good(connection.receive().await?)?)?;
            // This entry is published, even if a later one fails.
            let Some(Waiting { number, since, .. }) = batch.pop_front() else { break };
            self.published.fetch_max(number, Ordering::AcqRel);
            *last_of_run = Some((number, since));
            site.counters.cluster_published.add();
            *is_another_stream |= track(sent, PublishedChange { number, id, since });
        }
        self.unmark(site.snapshots.as_deref());
        // The fields are dated by their arrival, because a node may have written its own until then.
        if let Some((said, arrived, extent)) = before {
            let last = extent?.id;
            readers.see(key, said?, Some(last), arrived);
            *is_another_stream |= highest > Some(last);
        }
        let said = connection.fields().await?;
        if std::mem::take(&mut teller.is_away) {
            tracing::info!(event = "cluster-published");
        }
        let forgotten = readers.see(key, said, None, Instant::now());
        if std::mem::take(is_another_stream) {
            tell_all_again(sent, batch);
        }
        if readers.is_followed_elsewhere(asked) {
            let text = "this node follows another server: the connection is opened again".into();
            return Err(ConnectionError::Said("followed-elsewhere", text));
        }
        let least = readers.least(run, asked);
        self.nodes.update(asked, || readers.nodes(run, asked, |read| lag(sent, read, asked)));
        if self.is_all_published(asked) && teller.announced > 0 {
            connection.send(&unpublished::withdraw(key)).await?;
            // If the account may not, the others stop counting it, because it is not renewed.
            if good(connection.receive().await?).is_ok() {
                teller.announced = 0;
            }
        }
        connection.try_all(&forgotten).await?;
        Ok(self.take_in(&mut teller.sent, least))
    }

    /// Releases the writes up to `least`, the position that all nodes have applied, and returns whether
    /// there were any. `None`: there is no other node.
    fn take_in(&self, sent: &mut VecDeque<PublishedChange>, least: Option<Id>) -> bool {
        let mut last = None;
        while let Some(one) = sent.pop_front_if(|one| least.is_none_or(|least| one.id <= least)) {
            last = Some(one.number);
        }
        let Some(last) = last else { return false };
        let mut queue = self.queue();
        let next = sent.front().map(|one| one.since);
        let next = next.or_else(|| queue.waiting.front().map(|one| one.since));
        queue.waits_since = next.filter(|_| queue.last > last);
        drop(queue);
        self.applied.send_replace(last);
        true
    }

    /// Refills an empty batch from the queue.
    fn take(&self, batch: &mut VecDeque<Waiting>) {
        if batch.is_empty() {
            let mut queue = self.queue();
            let count = queue.waiting.len().min(AT_ONCE);
            batch.extend(queue.waiting.drain(..count));
            queue.bytes -= batch.iter().map(|one| one.added.bytes()).sum::<usize>();
        }
    }

    /// Records that the server has answered, and returns whether every change is in the stream.
    fn is_all_published(&self, asked: Instant) -> bool {
        let mut queue = self.queue();
        queue.contact = Some(asked);
        let is_all = self.published.load(Ordering::Acquire) == queue.last;
        queue.unpublished_since =
            if is_all { None } else { queue.waiting.front().map(|one| one.since) };
        is_all
    }

    /// Announces that this node cannot publish, where the server still accepts that.
    async fn announce(&self, teller: &mut Teller) {
        teller.announced += 1;
        let say = async {
            let mut connection = Connection::open(&self.config.server).await?;
            connection.ask(&unpublished::announce(&self.stream.key, teller.announced)).await
        };
        // If this fails too, the other nodes have to do without.
        let _ = tokio::time::timeout(ANNOUNCED_WITHIN, say).await;
    }

    /// How often the nodes' positions are read while nothing is published.
    fn look_every(&self) -> Duration {
        match self.stream.unpublished {
            UnpublishedWrites::Accept => LOOK_EVERY,
            UnpublishedWrites::Refuse => ask_every(&self.config),
        }
    }

    fn say_away(&self, teller: &mut Teller, failed: &ConnectionError) {
        if self.pending() > 0 && !std::mem::replace(&mut teller.is_away, true) {
            let (reason, place) = (failed.as_str(), self.config.server.place.to_string());
            tracing::error!(event = "cluster-pending", place, reason, error = %failed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the ID of an added entry from the reply.
fn id(reply: Reply) -> Result<Id, ConnectionError> {
    let Reply::Bytes(text) = reply else { return Err(unread()) };
    let id = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    id.ok_or_else(unread)
}

fn unread() -> ConnectionError {
    ConnectionError::Said("bad-reply", "a command was answered with something else".into())
}

/// Publishes queued changes until the process ends, including those that are queued while it ends.
async fn run(peers: Arc<Peers>, site: Arc<SiteState>) {
    peers.run(&site).await;
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
