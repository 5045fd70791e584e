//! The send backlog: what is in memory, or on the disk, for clients that have asked for it and have not taken it
//! yet. All clients together are bounded (`limits.client_backlog_bytes`, `limits.client_backlog_disk`), for the
//! whole process. Beyond a bound the connections of the slowest clients are closed: memory does not grow with
//! clients that ask and do not read (docs/decisions/0078-responses-leave-the-origin-at-its-speed.md).
//!
//! | bytes | counted from | until |
//! |---|---|---|
//! | of a stored page, which a front writes past hyper | the system takes no more | all of it is written |
//! | of a stored page, which hyper writes | hyper has the response ([`track`]) | hyper has released the last of it |
//! | of a response on its way (`response_spool`) | the origin sent them | hyper has released them ([`ClientBacklog::tracked`]) |
//! | on the disk | they are written there | the response has ended |
//!
//! A page counts once, however many clients wait for it, and not while the store counts it. Whether it does is
//! looked at when the sum of all is over the bound, and then every [`LOOK`] as long as it is.
//!
//! One lock, around the table of clients: taken when a client begins to wait for a response and when that ends.
//! The bytes of responses are atomics beside it. Nothing is freed and nobody is woken under the lock.

use crate::let_go;
use crate::log::Seldom;
use crate::page::{ReadPage, SharedPage};
use crate::reached::Limit;
use crate::site::Site;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// Shorter pages and pieces are not counted: what else a request takes is more.
pub const LONG_BYTES: usize = 8 << 10;
/// The share of `memory` that is meant where `limits.client_backlog_bytes` is 0.
const SHARE: usize = 4;
/// So many of the longest pages it is at least then, and if it is set.
const PAGES_MIN: (usize, usize) = (4, 2);
/// What every client is taken to have read, in bytes.
const HEAD_START_BYTES: u64 = 64 << 10;
/// The least time that it is taken to have had: who has just come and reads is not slow.
const TIME_MIN: Duration = Duration::from_secs(1);
/// How long what was seen of the store is taken for true.
const LOOK: Duration = Duration::from_millis(200);
/// How soon the slowest are looked for again, at the earliest.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Bytes in memory that are for one client each.
static SINGLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A connection, as one that responses wait for.
pub struct Client {
    /// Whose bound counts, and where it is noted that it was reached.
    site: Arc<Site>,
    taken: AtomicU64,
    /// Bytes that it had taken when it was first waited for.
    before: AtomicU64,
    is_waited_for: AtomicBool,
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Bytes in memory for it alone.
    single_bytes: AtomicUsize,
    /// Bytes on the disk for it.
    disk_bytes: AtomicU64,
}

impl Client {
    /// A connection of `site`.
    pub fn new(site: &Arc<Site>) -> Arc<Client> {
        Arc::new(Client {
            site: site.clone(),
            taken: AtomicU64::new(0),
            before: AtomicU64::new(0),
            is_waited_for: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            waker: Mutex::default(),
            single_bytes: AtomicUsize::new(0),
            disk_bytes: AtomicU64::new(0),
        })
    }

    /// It has taken so many more bytes.
    pub fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Of the only response that waits for it, it has taken so many bytes.
    pub fn has_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    /// How many it has taken in all.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// It takes no more for now: what the system took before is no reading.
    pub fn waits(&self) {
        if !self.is_waited_for.swap(true, Ordering::Relaxed) {
            self.before.store(self.taken(), Ordering::Relaxed);
        }
    }

    /// Ready when it is to be cut off.
    pub fn poll_cut(&self, cx: &Context<'_>) -> Poll<()> {
        *self.waker() = Some(cx.waker().clone());
        match self.is_cut() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn begins(&self) {
        self.before.store(self.taken(), Ordering::Relaxed);
        self.is_waited_for.store(false, Ordering::Relaxed);
    }

    /// Whether it is to be cut off.
    pub fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Acquire)
    }

    fn wake(&self) {
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many seconds so much will keep it busy, by what it has taken `since` a response waits for it.
    fn seconds(&self, bytes: u64, since: Instant, now: Instant) -> f64 {
        let taken = self.taken().saturating_sub(self.before.load(Ordering::Relaxed));
        let time = now.duration_since(since).max(TIME_MIN);
        bytes as f64 * time.as_secs_f64() / (taken + HEAD_START_BYTES) as f64
    }
}

/// How much may be in memory for all clients, in bytes.
fn bytes_max(site: &Site) -> usize {
    let page_bytes = site.limits.page_bytes;
    match site.limits.client_backlog_bytes {
        0 => (site.config.memory_bytes / SHARE).max(PAGES_MIN.0 * page_bytes),
        bytes => bytes.max(PAGES_MIN.1 * page_bytes),
    }
}

/// Bytes in memory for clients now, without the pages of the store.
pub fn memory_bytes() -> usize {
    let table = table();
    let apart = table.contents.values().filter(|content| content.is_apart());
    apart.map(|content| content.bytes).sum::<usize>() + SINGLE_BYTES.load(Ordering::Relaxed)
}

/// Whether half of the bound is in memory for single clients: then further responses go to the disk.
pub fn is_memory_short(site: &Site) -> bool {
    SINGLE_BYTES.load(Ordering::Relaxed) > bytes_max(site) / 2
}

/// Counts bytes that are in memory for one client, which is known or not yet.
pub fn hold(site: &Arc<Site>, backlog: Option<&ClientBacklog>, bytes: usize) {
    if let Some(ClientBacklog { client }) = backlog {
        client.single_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    let all = SINGLE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // Whether the pages in the table are stored is looked at under its lock.
    if all > bytes_max(site) / 2 {
        let slowest = table().look(site);
        slowest.iter().for_each(|client| client.wake());
    }
}

/// Ends what [`hold`] began.
pub fn release(backlog: Option<&ClientBacklog>, bytes: usize) {
    if let Some(ClientBacklog { client }) = backlog {
        client.single_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
    SINGLE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

/// Closes the connections of the clients that would need longest for what is on the disk for them, until an
/// eighth of `disk_max` bytes is free.
pub fn relieve_disk(disk_max: u64) {
    let slowest = table().relieve_disk(disk_max);
    slowest.iter().for_each(|client| client.wake());
}

/// A client that responses wait for, in the table for as long as this lives.
pub struct ClientBacklog {
    client: Arc<Client>,
}

impl ClientBacklog {
    /// Puts the client in the table.
    pub fn begin(client: &Arc<Client>) -> Arc<ClientBacklog> {
        table().client(client).responses += 1;
        Arc::new(ClientBacklog { client: client.clone() })
    }

    /// The same bytes, counted for this client until the last of them has been released.
    pub fn tracked(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        hold(&self.client.site, Some(self), bytes.len());
        Bytes::from_owner(TrackedPiece { bytes, backlog: self.clone() })
    }

    /// Counts what is on the disk for it: `more` bytes, and `less` no longer.
    pub fn count_disk(&self, more: u64, less: u64) {
        self.client.disk_bytes.fetch_add(more, Ordering::Relaxed);
        self.client.disk_bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// Counts what is in memory for it and was counted for nobody until now.
    pub fn adopt(&self, bytes: usize) {
        self.client.single_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same content of `page`, if it is of one: see [`track`].
    pub fn track(&self, page: Option<SharedPage>, content: Bytes) -> Bytes {
        track(&self.client, page, content)
    }
}

impl Drop for ClientBacklog {
    fn drop(&mut self) {
        let gone = table().response_ended(&self.client);
        drop(gone);
    }
}

/// Bytes of a response that hyper has.
struct TrackedPiece {
    bytes: Bytes,
    backlog: Arc<ClientBacklog>,
}

impl AsRef<[u8]> for TrackedPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for TrackedPiece {
    fn drop(&mut self) {
        release(Some(&self.backlog), self.bytes.len());
    }
}

/// Bytes that wait for a client, however many there are.
pub struct HeldBytes {
    backlog: Arc<ClientBacklog>,
    bytes: usize,
}

impl HeldBytes {
    /// None yet.
    pub fn of(client: &Arc<Client>) -> HeldBytes {
        HeldBytes { backlog: ClientBacklog::begin(client), bytes: 0 }
    }

    /// There are so many now.
    pub fn set(&mut self, bytes: usize) {
        release(Some(&self.backlog), std::mem::replace(&mut self.bytes, bytes));
        hold(&self.backlog.client.site, Some(&self.backlog), bytes);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        release(Some(&self.backlog), self.bytes);
    }
}

/// A client waits for some content, for as long as this lives.
pub struct BacklogEntry {
    client: Arc<Client>,
    content: usize,
}

impl BacklogEntry {
    /// `client` waits for something of this page.
    pub fn of_page(client: &Arc<Client>, page: SharedPage) -> BacklogEntry {
        let (id, bytes) = (std::ptr::from_ref(page.payload()) as usize, page.heap_bytes());
        BacklogEntry::begin(client, id, Content { page: Some(page), bytes, waiting: 0 })
    }

    fn begin(client: &Arc<Client>, id: usize, content: Content) -> BacklogEntry {
        let slowest = table().enter(client, id, content);
        slowest.iter().for_each(|client| client.wake());
        BacklogEntry { client: client.clone(), content: id }
    }
}

impl Drop for BacklogEntry {
    fn drop(&mut self) {
        let gone = table().leave(&self.client, self.content);
        drop(gone);
    }
}

/// The same content, of `page` if it is of one, counted for `client` until the last piece of it has been
/// released. A short piece is copied, for it may keep a long page in memory.
pub fn track(client: &Arc<Client>, page: Option<SharedPage>, content: Bytes) -> Bytes {
    if content.len() < LONG_BYTES {
        return Bytes::copy_from_slice(&content);
    }
    let entry = match page {
        Some(page) if is_of(&page, &content) => BacklogEntry::of_page(client, page),
        // Made for this client: it may be a part of what was made of the page.
        page => {
            let bytes = page.map_or(0, |page| page.length()).max(content.len());
            let made = Content { page: None, bytes, waiting: 0 };
            BacklogEntry::begin(client, content.as_ptr() as usize, made)
        }
    };
    Bytes::from_owner(TrackedContent { content, _entry: entry })
}

struct TrackedContent {
    content: Bytes,
    _entry: BacklogEntry,
}

impl AsRef<[u8]> for TrackedContent {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

/// Whether it is the page's own bytes; not so where they were made for one client.
fn is_of(page: &SharedPage, content: &[u8]) -> bool {
    let has = |bytes: &[u8]| bytes.as_ptr_range().contains(&content.as_ptr());
    let forms = page.payload().forms();
    let mut forms = forms.codings().iter().filter_map(|coding| forms.get(*coding));
    page.plain().content().is_some_and(has)
        || forms.any(|form| form.form().content().is_some_and(has))
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which clients wait for what.
#[derive(Default)]
struct Table {
    clients: HashMap<usize, WaitingClient>,
    contents: HashMap<usize, Content>,
    /// What all contents take.
    bytes: usize,
    /// How much of that was in the store, or on its way out, when it was last looked at.
    excused: usize,
    /// The bound of the site that looked last.
    bytes_max: usize,
    is_watched: bool,
    /// When the slowest were looked for last.
    looked: Option<Instant>,
}

/// A client, and what it waits for.
struct WaitingClient {
    client: Arc<Client>,
    since: Instant,
    /// Pages, and what was made of them.
    contents: Vec<usize>,
    /// How many responses on their way.
    responses: usize,
}

struct Content {
    page: Option<SharedPage>,
    bytes: usize,
    /// How many clients wait for it, each as often as it does.
    waiting: usize,
}

impl WaitingClient {
    fn single_bytes(&self) -> usize {
        self.client.single_bytes.load(Ordering::Relaxed)
    }
}

impl Content {
    /// Whether it is in memory for the sake of clients alone.
    fn is_apart(&self) -> bool {
        self.page.as_ref().is_none_or(|page| !page.is_stored())
    }
}

impl Table {
    /// The entry of a client, which begins to wait if it does not yet.
    fn client(&mut self, client: &Arc<Client>) -> &mut WaitingClient {
        self.clients.entry(Arc::as_ptr(client) as usize).or_insert_with(|| {
            client.begins();
            let (client, since) = (client.clone(), Instant::now());
            WaitingClient { client, since, contents: Vec::new(), responses: 0 }
        })
    }

    /// Returns the clients that are cut off, which are to be woken.
    fn enter(&mut self, client: &Arc<Client>, id: usize, content: Content) -> Vec<Arc<Client>> {
        let bytes = content.bytes;
        let entry = self.contents.entry(id).or_insert(content);
        self.bytes += if entry.waiting == 0 { bytes } else { 0 };
        entry.waiting += 1;
        self.client(client).contents.push(id);
        self.look(&client.site)
    }

    /// Everything that is counted, stored pages among it.
    fn all_bytes(&self) -> usize {
        self.bytes + SINGLE_BYTES.load(Ordering::Relaxed)
    }

    /// Returns the clients that are cut off because the bound is passed.
    fn look(&mut self, site: &Site) -> Vec<Arc<Client>> {
        self.bytes_max = bytes_max(site);
        let all = self.all_bytes();
        if all <= self.bytes_max {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.is_watched, true) {
            tokio::spawn(watch());
        }
        // Connections that were just cut off have not ended yet.
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN);
        match is_due && all - self.excused.min(all) > self.bytes_max {
            true => self.relieve(),
            false => Vec::new(),
        }
    }

    /// A response has ended; returns the client's entry where it was the last, to be freed.
    fn response_ended(&mut self, client: &Arc<Client>) -> Option<WaitingClient> {
        let number = Arc::as_ptr(client) as usize;
        let waiting = self.clients.get_mut(&number)?;
        waiting.responses -= 1;
        self.without(number)
    }

    /// Takes a client out that waits for nothing.
    fn without(&mut self, number: usize) -> Option<WaitingClient> {
        let waiting = self.clients.get(&number)?;
        match waiting.contents.is_empty() && waiting.responses == 0 {
            true => self.clients.remove(&number),
            false => None,
        }
    }

    /// Returns what no client waits for any more, to be freed.
    fn leave(
        &mut self,
        client: &Arc<Client>,
        id: usize,
    ) -> (Option<Content>, Option<WaitingClient>) {
        let mut content = None;
        let number = Arc::as_ptr(client) as usize;
        if let Some(waiting) = self.clients.get_mut(&number)
            && let Some(at) = waiting.contents.iter().position(|content| *content == id)
        {
            waiting.contents.swap_remove(at);
        }
        let gone = self.without(number);
        if let Some(entry) = self.contents.get_mut(&id) {
            entry.waiting -= 1;
            if entry.waiting == 0 {
                self.bytes -= entry.bytes;
                // As if it had been excused: it is looked too often rather than too late.
                self.excused = self.excused.saturating_sub(entry.bytes);
                content = self.contents.remove(&id);
            }
        }
        (content, gone)
    }

    /// Marks the slowest clients as cut off, until what is in memory for clients, without the pages of the
    /// store, is well within the bound; returns them.
    fn relieve(&mut self) -> Vec<Arc<Client>> {
        self.looked = Some(Instant::now());
        // How many clients wait for each page that is not stored, of those that are not cut off already. Whether
        // a page is stored is looked at once: the store may drop it meanwhile.
        let of = self.contents.iter().filter(|(_, content)| content.is_apart());
        let mut apart: HashMap<usize, usize> = of.map(|(id, _)| (*id, 0)).collect();
        let mut bytes = 0;
        for waiting in self.clients.values().filter(|waiting| !waiting.client.is_cut()) {
            bytes += waiting.single_bytes();
            for id in &waiting.contents {
                apart.entry(*id).and_modify(|count| *count += 1);
            }
        }
        apart.retain(|_, count| *count > 0);
        bytes += apart.keys().map(|id| self.contents[id].bytes).sum::<usize>();
        let mut cut = Vec::new();
        if bytes > self.bytes_max {
            let held = |id: &usize| apart.get(id).map_or(0, |_| self.contents[id].bytes);
            let held = |waiting: &WaitingClient| {
                waiting.single_bytes() + waiting.contents.iter().map(held).sum::<usize>()
            };
            for waiting in self.slowest(|waiting| held(waiting) as u64) {
                if bytes <= self.bytes_max - self.bytes_max / 8 {
                    break;
                }
                waiting.client.is_cut.store(true, Ordering::Release);
                cut.push(waiting.client.clone());
                bytes = bytes.saturating_sub(waiting.single_bytes());
                for id in &waiting.contents {
                    let Some(count) = apart.get_mut(id) else { continue };
                    *count -= 1;
                    bytes -= if *count == 0 { self.contents[id].bytes } else { 0 };
                }
            }
        }
        let left = apart.iter().filter(|(_, count)| **count > 0);
        let left: usize = left.map(|(id, _)| self.contents[id].bytes).sum();
        self.excused = self.bytes - left.min(self.bytes);
        self.tell(&cut, Limit::ClientBacklogBytes);
        cut
    }

    /// The same for what is on the disk.
    fn relieve_disk(&mut self, disk_max: u64) -> Vec<Arc<Client>> {
        let disk = |waiting: &WaitingClient| waiting.client.disk_bytes.load(Ordering::Relaxed);
        let slowest = self.slowest(disk);
        let mut bytes: u64 = slowest.iter().map(|waiting| disk(waiting)).sum();
        let mut cut = Vec::new();
        for waiting in slowest {
            if bytes <= disk_max - disk_max / 8 {
                break;
            }
            waiting.client.is_cut.store(true, Ordering::Release);
            cut.push(waiting.client.clone());
            bytes -= disk(waiting).min(bytes);
        }
        self.tell(&cut, Limit::ClientBacklogDisk);
        cut
    }

    /// The clients that are not cut off, the slowest first: by how long each would need for what it waits for.
    /// Of those that do not read the oldest comes first.
    fn slowest(&self, held: impl Fn(&WaitingClient) -> u64) -> Vec<&WaitingClient> {
        let now = Instant::now();
        let seconds =
            |waiting: &WaitingClient| waiting.client.seconds(held(waiting), waiting.since, now);
        let left = self.clients.values().filter(|waiting| !waiting.client.is_cut());
        let mut slowest: Vec<_> = left.map(|waiting| (seconds(waiting), waiting)).collect();
        slowest.sort_unstable_by(|one, other| {
            other.0.total_cmp(&one.0).then(one.1.since.cmp(&other.1.since))
        });
        slowest.into_iter().map(|(_, waiting)| waiting).collect()
    }

    fn tell(&self, cut: &[Arc<Client>], limit: Limit) {
        static SAID: Seldom = Seldom::once_in(Duration::from_secs(60));
        cut.iter().for_each(|client| client.site.counters.reached.note(limit));
        let is_due = |client: &Arc<Client>| SAID.is_due(client.site.clock.monotonic());
        if cut.first().is_some_and(is_due) {
            let (clients, limit) = (cut.len(), limit.key());
            tracing::warn!(event = "slow-clients-cut", clients, limit);
        }
    }
}

/// Looks again and again, as long as the sum is over the bound: the store may drop pages without anybody
/// asking for one that is long.
async fn watch() {
    let mut watching = Watching { is_over: false };
    while !watching.is_over {
        tokio::time::sleep(LOOK).await;
        let slowest = watching.look(&mut table());
        slowest.iter().for_each(|client| client.wake());
    }
    // The memory of the clients that were cut off goes back to the system.
    let _ = tokio::task::spawn_blocking(let_go::heap).await;
}

/// Whoever comes when this has ended begins to look again: also where its runtime has ended it.
struct Watching {
    is_over: bool,
}

impl Watching {
    fn look(&mut self, table: &mut Table) -> Vec<Arc<Client>> {
        if table.all_bytes() > table.bytes_max {
            return table.relieve();
        }
        self.is_over = true;
        (table.is_watched, table.excused) = (false, 0);
        Vec::new()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.is_over {
            table().is_watched = false;
        }
    }
}
