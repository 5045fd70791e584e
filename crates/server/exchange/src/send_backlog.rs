//! The send backlog: bytes in memory or on the disk that clients have requested and not read yet. Its
//! size is limited for the whole process (`limits.client_backlog_bytes`, `limits.client_backlog_disk`).
//! Above a limit, the connections of the slowest clients are closed, so clients that do not read cannot
//! exhaust memory (docs/decisions/0078-responses-leave-the-origin-at-its-speed.md).
//!
//! | bytes | counted from | until |
//! |---|---|---|
//! | of a stored page that a front sends without hyper | the socket is full | all of it is written |
//! | of a stored page that hyper sends | hyper has the response ([`track`]) | hyper has released the last piece |
//! | of a response in progress (`response_spool`) | the origin sent them | hyper has released them ([`ClientBacklog::tracked`]) |
//! | on the disk | they are written there | the response has ended |
//!
//! A page counts once, however many clients wait for it, and not while it is in the store. Whether it
//! is in the store is checked when the total exceeds the limit, and then every [`LOOK`] while it does.
//!
//! One lock, around the table of clients: taken when a client begins or stops waiting for a response.
//! Byte counts of responses are atomics. No memory is freed and no task is woken under the lock.

use crate::site::Site;
use bytes::Bytes;
use config::log::Seldom;
use site_state::limit_hits::Limit;
use site_state::page::{ReadPage, SharedPage};
use site_state::release_memory;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// Shorter content, in bytes, is not counted: other state of a request takes more memory.
pub const LONG_BYTES: usize = 8 << 10;
/// Default of `limits.client_backlog_bytes` (0): this fraction (1/`SHARE`) of `memory`.
const SHARE: usize = 4;
/// Minimum of the limit, in pages of maximum size: by default, and if it is configured.
const PAGES_MIN: (usize, usize) = (4, 2);
/// Bytes that every client is assumed to have read.
const HEAD_START_BYTES: u64 = 64 << 10;
/// Minimum time that a client is assumed to have had, so that a new client that reads is not slow.
const TIME_MIN: Duration = Duration::from_secs(1);
/// How long a check against the store remains valid.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum interval between two searches for the slowest clients.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Bytes in memory that are for a single client each.
static SINGLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A connection as a receiver of responses.
pub struct Recipient {
    /// Its limits apply, and its counters record that they were reached.
    site: Arc<Site>,
    taken: AtomicU64,
    /// Bytes that the client had taken when a response first waited for it.
    before: AtomicU64,
    is_waited_for: AtomicBool,
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
    /// Bytes in memory that are for this client alone.
    single_bytes: AtomicUsize,
    /// Bytes on the disk for this client.
    disk_bytes: AtomicU64,
}

impl Recipient {
    /// Creates the state for a connection to `site`.
    pub fn new(site: &Arc<Site>) -> Arc<Recipient> {
        Arc::new(Recipient {
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

    /// Records that the client has taken `bytes` more bytes.
    pub fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records that the client has taken `bytes` bytes of the only response that waits for it.
    pub fn has_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that the client has taken in total.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Records that the socket is full. Bytes that the socket buffer took before do not count as read.
    pub fn waits(&self) {
        if !self.is_waited_for.swap(true, Ordering::Relaxed) {
            self.before.store(self.taken(), Ordering::Relaxed);
        }
    }

    /// Ready when the client is to be disconnected.
    pub fn poll_cut(&self, cx: &Context<'_>) -> Poll<()> {
        *self.waker() = Some(cx.waker().clone());
        if self.is_cut() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn begins(&self) {
        self.before.store(self.taken(), Ordering::Relaxed);
        self.is_waited_for.store(false, Ordering::Relaxed);
    }

    /// Whether the client is to be disconnected.
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

    /// How many seconds the client would need for `bytes`, judging by its speed `since` a response
    /// waits for it.
    fn seconds(&self, bytes: u64, since: Instant, now: Instant) -> f64 {
        let taken = self.taken().saturating_sub(self.before.load(Ordering::Relaxed));
        let time = now.duration_since(since).max(TIME_MIN);
        bytes as f64 * time.as_secs_f64() / (taken + HEAD_START_BYTES) as f64
    }
}

/// The limit for all clients in memory, in bytes.
fn bytes_max(site: &Site) -> usize {
    let page_bytes = site.limits.page_bytes;
    match site.limits.client_backlog_bytes {
        0 => (site.config.memory_bytes / SHARE).max(PAGES_MIN.0 * page_bytes),
        bytes => bytes.max(PAGES_MIN.1 * page_bytes),
    }
}

/// Bytes in memory for clients now, excluding pages in the store.
pub fn memory_bytes() -> usize {
    let table = table();
    let apart = table.contents.values().filter(|content| content.is_apart());
    apart.map(|content| content.bytes).sum::<usize>() + SINGLE_BYTES.load(Ordering::Relaxed)
}

/// Whether data for single clients uses half of the limit; then further responses go to the disk.
pub fn is_memory_short(site: &Site) -> bool {
    SINGLE_BYTES.load(Ordering::Relaxed) > bytes_max(site) / 2
}

/// Counts bytes in memory for one client; `backlog` is `None` while the client is not known yet.
pub fn hold(site: &Arc<Site>, backlog: Option<&ClientBacklog>, bytes: usize) {
    if let Some(ClientBacklog { client }) = backlog {
        client.single_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    let all = SINGLE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // The table's lock is needed to check which pages are stored.
    if all > bytes_max(site) / 2 {
        let slowest = table().look(site);
        slowest.iter().for_each(|client| client.wake());
    }
}

/// Ends the counting that [`hold`] began.
pub fn release(backlog: Option<&ClientBacklog>, bytes: usize) {
    if let Some(ClientBacklog { client }) = backlog {
        client.single_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
    SINGLE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

/// Disconnects the clients that would need longest to read their data on the disk, until an eighth of
/// `disk_max` bytes is free.
pub fn relieve_disk(disk_max: u64) {
    let slowest = table().relieve_disk(disk_max);
    slowest.iter().for_each(|client| client.wake());
}

/// A client that responses wait for; it is in the table until this is dropped.
pub struct ClientBacklog {
    client: Arc<Recipient>,
}

impl ClientBacklog {
    /// Adds the client to the table.
    pub fn begin(client: &Arc<Recipient>) -> Arc<ClientBacklog> {
        table().client(client).responses += 1;
        Arc::new(ClientBacklog { client: client.clone() })
    }

    /// The same bytes, counted for this client until the last reference is dropped.
    pub fn tracked(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        hold(&self.client.site, Some(self), bytes.len());
        Bytes::from_owner(TrackedPiece { bytes, backlog: self.clone() })
    }

    /// Adds `more` and subtracts `less` bytes on the disk for this client.
    pub fn count_disk(&self, more: u64, less: u64) {
        self.client.disk_bytes.fetch_add(more, Ordering::Relaxed);
        self.client.disk_bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// Assigns bytes to this client that have been counted without a client so far.
    pub fn adopt(&self, bytes: usize) {
        self.client.single_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same content, which belongs to `page` if given; see [`track`].
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

/// A variable number of bytes that wait for a client.
pub struct HeldBytes {
    backlog: Arc<ClientBacklog>,
    bytes: usize,
}

impl HeldBytes {
    /// Begins to count bytes for this client, with none.
    pub fn of(client: &Arc<Recipient>) -> HeldBytes {
        HeldBytes { backlog: ClientBacklog::begin(client), bytes: 0 }
    }

    /// Sets the number of bytes that wait for the client.
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

/// A client that waits for some content; counted until this is dropped.
pub struct BacklogEntry {
    client: Arc<Recipient>,
    content: usize,
}

impl BacklogEntry {
    /// `client` waits for content of this page.
    pub fn of_page(client: &Arc<Recipient>, page: SharedPage) -> BacklogEntry {
        let (id, bytes) = (std::ptr::from_ref(page.payload()) as usize, page.heap_bytes());
        BacklogEntry::begin(client, id, Content { page: Some(page), bytes, waiting: 0 })
    }

    fn begin(client: &Arc<Recipient>, id: usize, content: Content) -> BacklogEntry {
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

/// The same content, counted for `client` until the last reference is dropped; it belongs to `page` if
/// given. Short content is copied, because it might keep a long page in memory.
pub fn track(client: &Arc<Recipient>, page: Option<SharedPage>, content: Bytes) -> Bytes {
    if content.len() < LONG_BYTES {
        return Bytes::copy_from_slice(&content);
    }
    let entry = match page {
        Some(page) if is_of(&page, &content) => BacklogEntry::of_page(client, page),
        // Generated for this client; it may be a part of content that was generated from the page.
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

/// Whether `content` is the page's own memory, as opposed to bytes generated for one client.
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

/// The waiting clients, and the content that they wait for.
#[derive(Default)]
struct Table {
    clients: HashMap<usize, WaitingClient>,
    contents: HashMap<usize, Content>,
    /// The total size of all contents, in bytes.
    bytes: usize,
    /// How many of these bytes were in the store, or for clients being disconnected, at the last check.
    excused: usize,
    /// The limit of the site that checked last, in bytes.
    bytes_max: usize,
    is_watched: bool,
    /// The time of the last search for the slowest clients.
    looked: Option<Instant>,
}

/// A client, and the content that it waits for.
struct WaitingClient {
    client: Arc<Recipient>,
    since: Instant,
    /// The ids of pages, and of content generated from them.
    contents: Vec<usize>,
    /// The number of responses in progress.
    responses: usize,
}

struct Content {
    page: Option<SharedPage>,
    bytes: usize,
    /// How many responses wait for it, of all clients.
    waiting: usize,
}

impl WaitingClient {
    fn single_bytes(&self) -> usize {
        self.client.single_bytes.load(Ordering::Relaxed)
    }
}

impl Content {
    /// Whether the content is in memory only because of clients.
    fn is_apart(&self) -> bool {
        self.page.as_ref().is_none_or(|page| !page.is_stored())
    }
}

impl Table {
    /// The entry of a client, which is created if needed.
    fn client(&mut self, client: &Arc<Recipient>) -> &mut WaitingClient {
        self.clients.entry(Arc::as_ptr(client) as usize).or_insert_with(|| {
            client.begins();
            let (client, since) = (client.clone(), Instant::now());
            WaitingClient { client, since, contents: Vec::new(), responses: 0 }
        })
    }

    /// Adds a wait. Returns the clients to disconnect; the caller wakes them.
    fn enter(&mut self, of: &Arc<Recipient>, id: usize, content: Content) -> Vec<Arc<Recipient>> {
        let bytes = content.bytes;
        let entry = self.contents.entry(id).or_insert(content);
        self.bytes += if entry.waiting == 0 { bytes } else { 0 };
        entry.waiting += 1;
        self.client(of).contents.push(id);
        self.look(&of.site)
    }

    /// The total of counted bytes, including stored pages.
    fn all_bytes(&self) -> usize {
        self.bytes + SINGLE_BYTES.load(Ordering::Relaxed)
    }

    /// Returns the clients to disconnect because the limit is exceeded.
    fn look(&mut self, site: &Site) -> Vec<Arc<Recipient>> {
        self.bytes_max = bytes_max(site);
        let all = self.all_bytes();
        if all <= self.bytes_max {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.is_watched, true) {
            tokio::spawn(watch());
        }
        // Connections that were just disconnected have not ended yet.
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN);
        if is_due && all - self.excused.min(all) > self.bytes_max {
            self.relieve()
        } else {
            Vec::new()
        }
    }

    /// Ends a response. Returns the client's entry if it was the last; the caller frees it.
    fn response_ended(&mut self, client: &Arc<Recipient>) -> Option<WaitingClient> {
        let number = Arc::as_ptr(client) as usize;
        let waiting = self.clients.get_mut(&number)?;
        waiting.responses -= 1;
        self.without(number)
    }

    /// Removes a client that waits for nothing.
    fn without(&mut self, number: usize) -> Option<WaitingClient> {
        let waiting = self.clients.get(&number)?;
        if waiting.contents.is_empty() && waiting.responses == 0 {
            self.clients.remove(&number)
        } else {
            None
        }
    }

    /// Ends a wait. Returns the entries that are no longer needed; the caller frees them.
    fn leave(
        &mut self,
        client: &Arc<Recipient>,
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
                // Counted as excused, so that the next check is rather too early than too late.
                self.excused = self.excused.saturating_sub(entry.bytes);
                content = self.contents.remove(&id);
            }
        }
        (content, gone)
    }

    /// Marks the slowest clients for disconnection, until the bytes for clients outside the store are
    /// an eighth below the limit. Returns these clients.
    fn relieve(&mut self) -> Vec<Arc<Recipient>> {
        self.looked = Some(Instant::now());
        // How many remaining clients wait for each content outside the store. Whether it is stored is
        // checked once, because the store may remove it at any time.
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

    /// Like [`Table::relieve`], for the bytes on the disk.
    fn relieve_disk(&mut self, disk_max: u64) -> Vec<Arc<Recipient>> {
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

    /// The remaining clients, the slowest first, by the time that each needs for the bytes it waits
    /// for. Among clients that read nothing the oldest comes first.
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

    fn tell(&self, cut: &[Arc<Recipient>], limit: Limit) {
        static SAID: Seldom = Seldom::once_in(Duration::from_secs(60));
        cut.iter().for_each(|client| client.site.counters.limit_hits.note(limit));
        let is_due = |client: &Arc<Recipient>| SAID.is_due(client.site.clock.monotonic());
        if cut.first().is_some_and(is_due) {
            let (clients, limit) = (cut.len(), limit.key());
            tracing::warn!(event = "slow-clients-cut", clients, limit);
        }
    }
}

/// Repeats the check while the total exceeds the limit, because the store may remove pages at any time.
async fn watch() {
    let mut watching = Watching { is_over: false };
    while !watching.is_over {
        tokio::time::sleep(LOOK).await;
        let slowest = watching.look(&mut table());
        slowest.iter().for_each(|client| client.wake());
    }
    // Returns the memory of the disconnected clients to the system.
    let _ = tokio::task::spawn_blocking(release_memory::heap).await;
}

/// Allows the next caller to start watching again, even if the runtime has cancelled this task.
struct Watching {
    is_over: bool,
}

impl Watching {
    fn look(&mut self, table: &mut Table) -> Vec<Arc<Recipient>> {
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
