//! What clients are owed and do not take: pages that are in memory for their sake alone, after the store has
//! let go of them or never had them. All of them together are bounded (`limits.owed`), for the whole process:
//! beyond that the slowest clients are cut off, rather than memory growing with those who ask and do not read
//! (docs/decisions/0065-what-is-owed.md).
//!
//! | answered by | counted from | until |
//! |---|---|---|
//! | a front, past hyper | when the system takes no more | all of it is taken |
//! | hyper, over HTTP/1 or HTTP/2 | when hyper is given it ([`lend`]) | hyper has let go of the last of it |
//!
//! A page counts once, however many wait for it, and not while it is in the store, which counts it itself.
//! Whether it is, is looked at when the sum of all is over the bound, and then every [`LOOK`] as long as it is.
//!
//! One lock, around the table of those who wait: taken when a client begins to be owed a page and when that
//! ends. Nothing is freed and nobody is woken under it.

use crate::log::Seldom;
use crate::page::{ReadPage, SharedPage};
use crate::reached::Limit;
use crate::site::Site;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// Shorter pages and pieces are not counted: what else a request takes is more.
pub const LONG_BYTES: usize = 8 << 10;
/// The share of `memory` that is meant where `limits.owed` is 0.
const SHARE: usize = 4;
/// So many of the longest pages it is at least then, and if it is set.
const PAGES_MIN: (usize, usize) = (4, 2);
/// What every client is taken to have read, in bytes.
const HEAD_START_BYTES: u64 = 64 << 10;
/// The least time that it is taken to have had: who has just come and reads is not slow.
const TIME_MIN: Duration = Duration::from_secs(1);
/// How long what was seen of the store is taken for true.
const LOOK: Duration = Duration::from_millis(200);

static OWED: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// A connection, as one that may be owed something.
pub struct Client {
    /// Whose bound counts, and where it is noted that it was reached.
    site: Arc<Site>,
    taken: AtomicU64,
    /// What it had taken when it was first waited for.
    before: AtomicU64,
    is_waited_for: AtomicBool,
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
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
        })
    }

    /// It has taken so many more bytes.
    pub fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Of the only content that it is owed, it has taken so many.
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

    /// How many seconds so much will keep it busy, by what it has taken `since` it is owed something.
    fn seconds(&self, bytes: usize, since: Instant, now: Instant) -> f64 {
        let taken = self.taken().saturating_sub(self.before.load(Ordering::Relaxed));
        let time = now.duration_since(since).max(TIME_MIN);
        bytes as f64 * time.as_secs_f64() / (taken + HEAD_START_BYTES) as f64
    }
}

/// How much all clients may be owed, in bytes.
fn bytes_max(site: &Site) -> usize {
    let page_bytes = site.limits.page_bytes;
    match site.limits.owed {
        0 => (site.config.memory_bytes / SHARE).max(PAGES_MIN.0 * page_bytes),
        bytes => bytes.max(PAGES_MIN.1 * page_bytes),
    }
}

/// What clients are owed now, in bytes, without the pages of the store.
pub fn owed_bytes() -> usize {
    let table = table();
    let apart = table.contents.values().filter(|content| content.is_apart());
    apart.map(|content| content.bytes).sum()
}

/// A client is owed some content, for as long as this lives.
pub struct Owing {
    client: Arc<Client>,
    content: usize,
}

impl Owing {
    /// `client` is owed something of this page.
    pub fn of_page(client: &Arc<Client>, page: SharedPage) -> Owing {
        let (id, bytes) = (std::ptr::from_ref(page.payload()) as usize, page.heap_bytes());
        Owing::begin(client, id, Content { page: Some(page), bytes, owed: 0 })
    }

    fn begin(client: &Arc<Client>, id: usize, content: Content) -> Owing {
        let slowest = table().enter(client, id, content);
        slowest.iter().for_each(|client| client.wake());
        Owing { client: client.clone(), content: id }
    }
}

impl Drop for Owing {
    fn drop(&mut self) {
        let gone = table().leave(&self.client, self.content);
        drop(gone);
    }
}

/// The same content, of `page` if it is of one, owed to `client` until the last piece of it has been let go
/// of. A short piece is copied, for it may hold on to a long page.
pub fn lend(client: &Arc<Client>, page: Option<SharedPage>, content: Bytes) -> Bytes {
    if content.len() < LONG_BYTES {
        return Bytes::copy_from_slice(&content);
    }
    let owing = match page {
        Some(page) if is_of(&page, &content) => Owing::of_page(client, page),
        // Made for this client: it may be a part of what was made of the page.
        page => {
            let bytes = page.map_or(0, |page| page.length()).max(content.len());
            let made = Content { page: None, bytes, owed: 0 };
            Owing::begin(client, content.as_ptr() as usize, made)
        }
    };
    Bytes::from_owner(Lent { content, _owing: owing })
}

struct Lent {
    content: Bytes,
    _owing: Owing,
}

impl AsRef<[u8]> for Lent {
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
    OWED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is owed what.
#[derive(Default)]
struct Table {
    clients: HashMap<usize, Owed>,
    contents: HashMap<usize, Content>,
    /// What all contents take.
    bytes: usize,
    /// How much of that was in the store, or on its way out, when it was last looked at.
    excused: usize,
    /// The bound, as whoever came last has it.
    bytes_max: usize,
    is_watched: bool,
}

/// What one client is owed.
struct Owed {
    client: Arc<Client>,
    since: Instant,
    contents: Vec<usize>,
}

struct Content {
    page: Option<SharedPage>,
    bytes: usize,
    /// How often.
    owed: usize,
}

impl Content {
    /// Whether it is in memory for the sake of clients alone.
    fn is_apart(&self) -> bool {
        self.page.as_ref().is_none_or(|page| !page.is_stored())
    }
}

impl Table {
    /// Returns who has been cut off, to be told.
    fn enter(&mut self, client: &Arc<Client>, id: usize, content: Content) -> Vec<Arc<Client>> {
        let bytes = content.bytes;
        let entry = self.contents.entry(id).or_insert(content);
        self.bytes += if entry.owed == 0 { bytes } else { 0 };
        entry.owed += 1;
        let owed = self.clients.entry(Arc::as_ptr(client) as usize).or_insert_with(|| {
            client.begins();
            Owed { client: client.clone(), since: Instant::now(), contents: Vec::new() }
        });
        owed.contents.push(id);
        self.bytes_max = bytes_max(&client.site);
        if self.bytes <= self.bytes_max {
            return Vec::new();
        }
        if !std::mem::replace(&mut self.is_watched, true) {
            tokio::spawn(watch());
        }
        match self.bytes - self.excused.min(self.bytes) > self.bytes_max {
            true => self.relieve(),
            false => Vec::new(),
        }
    }

    /// Returns what nobody is owed any more, to be freed.
    fn leave(&mut self, client: &Arc<Client>, id: usize) -> (Option<Content>, Option<Owed>) {
        let (mut content, mut gone) = (None, None);
        let number = Arc::as_ptr(client) as usize;
        if let Some(owed) = self.clients.get_mut(&number) {
            if let Some(at) = owed.contents.iter().position(|content| *content == id) {
                owed.contents.swap_remove(at);
            }
            if owed.contents.is_empty() {
                gone = self.clients.remove(&number);
            }
        }
        if let Some(entry) = self.contents.get_mut(&id) {
            entry.owed -= 1;
            if entry.owed == 0 {
                self.bytes -= entry.bytes;
                // As if it had been excused: it is looked too often rather than too late.
                self.excused = self.excused.saturating_sub(entry.bytes);
                content = self.contents.remove(&id);
            }
        }
        (content, gone)
    }

    /// Marks the slowest as cut off, until what is owed besides the pages of the store is well within the
    /// bound; returns them.
    fn relieve(&mut self) -> Vec<Arc<Client>> {
        let now = Instant::now();
        // How often each is owed to somebody who is not on his way out. Which they are is looked at once: the
        // store lets go of pages meanwhile.
        let of = self.contents.iter().filter(|(_, content)| content.is_apart());
        let mut apart: HashMap<usize, usize> = of.map(|(id, _)| (*id, 0)).collect();
        let mut waiting: Vec<&Owed> = Vec::new();
        for owed in self.clients.values().filter(|owed| !owed.client.is_cut()) {
            for id in &owed.contents {
                apart.entry(*id).and_modify(|count| *count += 1);
            }
            waiting.push(owed);
        }
        apart.retain(|_, count| *count > 0);
        let mut bytes: usize = apart.keys().map(|id| self.contents[id].bytes).sum();
        let mut slowest: Vec<(f64, &Owed)> = Vec::new();
        if bytes > self.bytes_max {
            let held = |id: &usize| apart.get(id).map_or(0, |_| self.contents[id].bytes);
            let held = |owed: &Owed| owed.contents.iter().map(held).sum();
            let seconds = |owed: &Owed| owed.client.seconds(held(owed), owed.since, now);
            slowest = waiting.iter().map(|owed| (seconds(owed), *owed)).collect();
            // Of those who do not read the oldest first.
            let order = |one: &(f64, &Owed), other: &(f64, &Owed)| {
                other.0.total_cmp(&one.0).then(one.1.since.cmp(&other.1.since))
            };
            slowest.sort_unstable_by(order);
        }
        let mut cut = Vec::new();
        for (_, owed) in slowest {
            if bytes <= self.bytes_max - self.bytes_max / 8 {
                break;
            }
            owed.client.is_cut.store(true, Ordering::Release);
            cut.push(owed.client.clone());
            for id in &owed.contents {
                let Some(count) = apart.get_mut(id) else { continue };
                *count -= 1;
                bytes -= if *count == 0 { self.contents[id].bytes } else { 0 };
            }
        }
        self.excused = self.bytes - bytes;
        self.tell(&cut);
        cut
    }

    fn tell(&self, cut: &[Arc<Client>]) {
        static SAID: Seldom = Seldom::once_in(Duration::from_secs(60));
        cut.iter().for_each(|client| client.site.counters.reached.note(Limit::Owed));
        let is_due = |client: &Arc<Client>| SAID.is_due(client.site.clock.monotonic());
        if cut.first().is_some_and(is_due) {
            let (clients, bytes_max) = (cut.len(), self.bytes_max);
            tracing::warn!(event = "owed-too-much", clients, bytes_max);
        }
    }
}

/// Looks again and again, as long as the sum is over the bound: the store may let go of pages without anybody
/// asking for one that is long.
async fn watch() {
    let mut watching = Watching { is_over: false };
    while !watching.is_over {
        tokio::time::sleep(LOOK).await;
        let slowest = watching.look(&mut table());
        slowest.iter().for_each(|client| client.wake());
    }
}

/// Whoever comes when this has ended begins to look again: also where its runtime has ended it.
struct Watching {
    is_over: bool,
}

impl Watching {
    fn look(&mut self, table: &mut Table) -> Vec<Arc<Client>> {
        if table.bytes > table.bytes_max {
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
