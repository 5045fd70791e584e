//! The table of waiting clients: who waits for which content, how many bytes that is, and whose
//! connection is closed if it is too much.
//!
//! The limit is checked when a wait begins, and every [`LOOK`] while the total exceeds it, because the
//! store may remove pages at any time. Byte counts of responses change without the lock: each decision
//! reads them once, and works with what it has read.

use super::{Recipient, SINGLE_BYTES, bytes_max};
use event_log::Seldom;
use site_state::SiteState;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stored_pages::page::SharedPage;
use telemetry::limit_hits::Limit;
use telemetry::release_memory;
use tokio::time::Instant;

/// How long a check against the store remains valid.
const LOOK: Duration = Duration::from_millis(200);
/// Minimum interval between two searches for the slowest clients.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Locks the table.
pub(super) fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The waiting clients, and the content that they wait for.
#[derive(Default)]
pub(super) struct Table {
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
pub(super) struct WaitingClient {
    client: Arc<Recipient>,
    since: Instant,
    /// The ids of pages, and of content generated from them.
    contents: Vec<usize>,
    /// The number of responses in progress.
    pub(super) responses: usize,
}

pub(super) struct Content {
    pub(super) page: Option<SharedPage>,
    pub(super) bytes: usize,
    /// How many responses wait for it, of all clients.
    pub(super) waiting: usize,
}

impl Content {
    /// Whether the content is in memory only because of clients.
    fn is_apart(&self) -> bool {
        self.page.as_ref().is_none_or(|page| !page.is_stored())
    }
}

impl Table {
    /// The entry of a client, which is created if needed.
    pub(super) fn client(&mut self, client: &Arc<Recipient>) -> &mut WaitingClient {
        self.clients.entry(Arc::as_ptr(client) as usize).or_insert_with(|| {
            client.begins();
            let (client, since) = (client.clone(), Instant::now());
            WaitingClient { client, since, contents: Vec::new(), responses: 0 }
        })
    }

    /// Adds a wait. Returns the clients to disconnect; the caller wakes them.
    pub(super) fn enter(
        &mut self,
        of: &Arc<Recipient>,
        id: usize,
        content: Content,
    ) -> Vec<Arc<Recipient>> {
        let bytes = content.bytes;
        let entry = self.contents.entry(id).or_insert(content);
        self.bytes += if entry.waiting == 0 { bytes } else { 0 };
        entry.waiting += 1;
        self.client(of).contents.push(id);
        self.look(&of.site)
    }

    /// Bytes of contents that are in memory only because of clients.
    pub(super) fn apart_bytes(&self) -> usize {
        let apart = self.contents.values().filter(|content| content.is_apart());
        apart.map(|content| content.bytes).sum()
    }

    /// The total of counted bytes, including stored pages.
    fn all_bytes(&self) -> usize {
        self.bytes + SINGLE_BYTES.load(Ordering::Relaxed)
    }

    /// Returns the clients to disconnect because the limit is exceeded.
    pub(super) fn look(&mut self, site: &SiteState) -> Vec<Arc<Recipient>> {
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
    pub(super) fn response_ended(&mut self, client: &Arc<Recipient>) -> Option<WaitingClient> {
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
    pub(super) fn leave(
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
        let single = |waiting: &WaitingClient| waiting.client.single_bytes.load(Ordering::Relaxed);
        let remaining = self.remaining(|waiting| single(waiting) as u64);
        let mut bytes = 0;
        for (waiting, single) in &remaining {
            bytes += *single as usize;
            for id in &waiting.contents {
                apart.entry(*id).and_modify(|count| *count += 1);
            }
        }
        apart.retain(|_, count| *count > 0);
        bytes += apart.keys().map(|id| self.contents[id].bytes).sum::<usize>();
        let mut cut = Vec::new();
        if bytes > self.bytes_max {
            let held = |id: &usize| apart.get(id).map_or(0, |_| self.contents[id].bytes as u64);
            let all_held = |waiting: &WaitingClient, single: u64| {
                single + waiting.contents.iter().map(held).sum::<u64>()
            };
            for (waiting, single) in slowest_first(remaining, all_held) {
                if bytes <= self.bytes_max - self.bytes_max / 8 {
                    break;
                }
                waiting.client.is_cut.store(true, Ordering::Release);
                cut.push(waiting.client.clone());
                bytes -= single as usize;
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
    pub(super) fn relieve_disk(&mut self, disk_max: u64) -> Vec<Arc<Recipient>> {
        let remaining = self.remaining(|waiting| waiting.client.disk_bytes.load(Ordering::Relaxed));
        let mut bytes: u64 = remaining.iter().map(|(_, disk)| *disk).sum();
        let mut cut = Vec::new();
        for (waiting, disk) in slowest_first(remaining, |_, disk| disk) {
            if bytes <= disk_max - disk_max / 8 {
                break;
            }
            waiting.client.is_cut.store(true, Ordering::Release);
            cut.push(waiting.client.clone());
            bytes -= disk;
        }
        self.tell(&cut, Limit::ClientBacklogDisk);
        cut
    }

    /// The clients that are not being disconnected, with the number of bytes that `count` returns for
    /// each. It is read once, because responses change it meanwhile, and a sum must not change while it
    /// is used.
    fn remaining(&self, count: impl Fn(&WaitingClient) -> u64) -> Vec<(&WaitingClient, u64)> {
        let left = self.clients.values().filter(|waiting| !waiting.client.is_cut());
        left.map(|waiting| (waiting, count(waiting))).collect()
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

/// Sorts clients with their byte counts, the slowest first, by the time that each needs for the bytes
/// that it waits for, which `held` returns. Among clients that read nothing the oldest comes first.
fn slowest_first(
    clients: Vec<(&WaitingClient, u64)>,
    held: impl Fn(&WaitingClient, u64) -> u64,
) -> Vec<(&WaitingClient, u64)> {
    let now = Instant::now();
    let seconds = |(waiting, count): &(&WaitingClient, u64)| {
        waiting.client.seconds(held(waiting, *count), waiting.since, now)
    };
    let mut slowest: Vec<_> = clients.into_iter().map(|one| (seconds(&one), one)).collect();
    slowest.sort_unstable_by(|(one, a), (other, b)| {
        other.total_cmp(one).then(a.0.since.cmp(&b.0.since))
    });
    slowest.into_iter().map(|(_, one)| one).collect()
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
