//! The send backlog: bytes in memory or on the disk that clients have requested and not read yet. Its
//! size is limited for the whole process (`limits.client_backlog_bytes`, `limits.client_backlog_disk`).
//! Above a limit, the connections of the slowest clients are closed, so clients that do not read cannot
//! exhaust memory (docs/decisions/uploads-and-slow-clients.md).
//!
//! | bytes | counted from | until |
//! |---|---|---|
//! | of a stored page that a front sends without hyper | the socket is full | all of it is written |
//! | of a stored page that hyper sends | hyper has the response ([`track`]) | hyper has released the last piece |
//! | of a response in progress (`response_spool`) | the origin sent them | hyper has released them ([`ClientBacklog::tracked`]) |
//! | of a response that is collected ([`CollectedBytes`]) | the origin sent them | it is stored, or is not |
//! | on the disk | they are written there | the response has ended |
//!
//! A page counts once, however many clients wait for it, and not while it is in the store. Whether it
//! is in the store is checked when the total exceeds the limit, and then every 200 ms while it does.
//!
//! One lock, around the table of clients: taken when a client begins or stops waiting for a response.
//! Byte counts of responses are atomics. No memory is freed and no task is woken under the lock.

mod table;

use self::table::{Content, table};
use bytes::Bytes;
use site_state::SiteState;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};
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

/// Bytes in memory that are for a single client each.
static SINGLE_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes in memory of responses that are being collected, of all sites.
static COLLECTED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A connection as a receiver of responses.
pub struct Recipient {
    /// Its limits apply, and its counters record that they were reached.
    site: Arc<SiteState>,
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
    pub fn new(site: &Arc<SiteState>) -> Arc<Recipient> {
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
fn bytes_max(site: &SiteState) -> usize {
    let page_bytes = site.limits.page_bytes;
    match site.limits.client_backlog_bytes {
        0 => (site.config.memory_bytes / SHARE).max(PAGES_MIN.0 * page_bytes),
        bytes => bytes.max(PAGES_MIN.1 * page_bytes),
    }
}

/// Bytes in memory for clients now, excluding pages in the store.
pub fn memory_bytes() -> usize {
    let apart = table().apart_bytes() + SINGLE_BYTES.load(Ordering::Relaxed);
    apart + COLLECTED_BYTES.load(Ordering::Relaxed)
}

/// Whether data for single clients uses half of the limit; then further responses go to the disk.
pub fn is_memory_short(site: &SiteState) -> bool {
    SINGLE_BYTES.load(Ordering::Relaxed) > bytes_max(site) / 2
}

/// Counts bytes in memory for one client; `backlog` is `None` while the client is not known yet.
pub fn hold(site: &SiteState, backlog: Option<&ClientBacklog>, bytes: usize) {
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

/// Content that is collected until it is known whether it is stored. All of it together has half of the limit; clients
/// that do not read take none of that. Each site has its own account, as it has its own share of `memory`, so no
/// visitor of one site ends the storing of another. Counted until this is dropped.
pub struct CollectedBytes {
    site: Arc<SiteState>,
    bytes: usize,
}

impl CollectedBytes {
    /// Begins to count for a site, with none.
    pub fn of(site: &Arc<SiteState>) -> CollectedBytes {
        CollectedBytes { site: site.clone(), bytes: 0 }
    }

    /// Counts `bytes` more; `false` if there is no room for them, so that the content cannot be collected.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let all = self.site.collected_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let has_room = all <= bytes_max(&self.site) / 2;
        if has_room {
            self.bytes += bytes;
            COLLECTED_BYTES.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.site.collected_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.site.counters.memory_short.add();
        }
        has_room
    }

    /// Gives back the bytes that were counted.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.site.collected_bytes.fetch_sub(bytes, Ordering::Relaxed);
        COLLECTED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for CollectedBytes {
    fn drop(&mut self) {
        self.release();
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

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::clock::Clock;

    #[test]
    fn a_site_that_collects_takes_no_room_from_another() {
        let site = || {
            let file = toml::from_str("site.origin = \"http://127.0.0.1:1\"\nmemory = \"64M\"\n");
            let config = config::resolve(&file.expect("a configuration"));
            let config = Arc::new(config.expect("it can be used"));
            SiteState::new(config, Clock::start(), None, true)
        };
        let (one, other) = (site(), site());
        let half = bytes_max(&one) / 2;
        let mut collected = CollectedBytes::of(&one);
        assert!(collected.grow(half) && !collected.grow(1));
        assert!(!CollectedBytes::of(&one).grow(1));
        assert!(CollectedBytes::of(&other).grow(half));
        collected.release();
        assert!(CollectedBytes::of(&one).grow(half));
    }
}
