//! The items of the memcached port, as pages in the site's store, under keys that no HTTP request has.
//!
//! A key that begins with `/` is a page of the site. It depends on its URL like any page, and `delete`
//! invalidates that URL. Other keys belong to the client: they depend on their tags only, and count as
//! generated when they are stored. Both may have tags (`page_line.rs`).
//!
//! Locks: a stripe (selected by key) is held while an item is edited, and the store's locks are taken
//! under it. `get` takes no stripe. A modified item retains the lease and dependencies that it was
//! stored with, so later changes still invalidate it (`Store::replace_payload`). A page that is marked
//! stale (soft purge) counts as absent.

use super::page_line;
use bytes::Bytes;
use delivery::site::Site;
use history::ChangeSource;
use memcache::{Edit, EditResult, Item, Items, Moment, NewCas, SetRefusal};
use page_store::{ChangeTarget, Dependencies, Lease, NotReplaced, StoreRefusal, Strength};
use site_state::memcached_keys::NAMESPACE;
use site_state::memcached_leases::Leases;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use stored_pages::page::{NewPage, SharedPage};

/// The key with which a client requests a lease.
const LEASE_KEY: &[u8] = b"pagewell:lease";
/// The number of locks for edits.
const STRIPES: usize = 64;
/// The version that is reported: memcached's, which clients compare, followed by Pagewell's.
const VERSION: &str = concat!("1.6.18-pagewell-", env!("CARGO_PKG_VERSION"));

/// Stores the items of one site.
pub struct Keeper {
    site: Arc<Site>,
    leases: Arc<Leases>,
    stripes: [Mutex<()>; STRIPES],
    cas: AtomicU64,
    flushed: RwLock<FlushState>,
}

/// Which items the `flush_all` commands have removed.
#[derive(Clone, Copy, Default)]
struct FlushState {
    /// Items with a `cas` up to this are flushed.
    up_to: u64,
    /// Items stored before this are flushed.
    before: Moment,
    /// The time of a scheduled flush; it applies once this time has passed.
    to_come: Option<Moment>,
}

impl FlushState {
    fn has(&self, item: &Item, now: Moment) -> bool {
        let has_come = self.to_come.filter(|at| *at <= now);
        item.cas <= self.up_to || item.stored < self.before.max(has_come.unwrap_or_default())
    }

    /// Flushes all items at the time `at`; `cas` is the last one assigned. A scheduled flush whose time
    /// has passed stays in effect; one in the future is replaced.
    fn flush(&mut self, at: Moment, now: Moment, cas: u64) {
        let has_come = self.to_come.take().filter(|at| *at <= now);
        self.before = self.before.max(has_come.unwrap_or_default());
        if at <= now { self.up_to = cas } else { self.to_come = Some(at) }
    }
}

impl Keeper {
    /// The items of a site, with its leases.
    pub fn new(site: Arc<Site>, leases: Arc<Leases>) -> Keeper {
        let (cas, flushed) = (AtomicU64::new(0), RwLock::default());
        Keeper { site, leases, stripes: [const { Mutex::new(()) }; STRIPES], cas, flushed }
    }

    /// The site that stores the items.
    pub fn site(&self) -> &Arc<Site> {
        &self.site
    }

    /// The page with an item that is stored under a key, in any state.
    fn stored(&self, key: &[u8]) -> Option<SharedPage> {
        let store = &self.site.store;
        let key = [NAMESPACE, key].concat();
        let found = store.candidates(store.key(&key));
        found.iter().find(|page| page.payload().item().is_some()).cloned()
    }

    /// The page's item, if clients may see it: neither marked stale, expired nor flushed.
    fn visible<'p>(&self, page: &'p SharedPage, now: Moment) -> Option<&'p Item> {
        let item = page.payload().item()?;
        let flushed = *self.flushed.read().unwrap_or_else(PoisonError::into_inner);
        (!page.is_marked() && !item.has_ended(now) && !flushed.has(item, now)).then_some(item)
    }

    fn stripe(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let at = xxhash_rust::xxh3::xxh3_64(key) as usize % STRIPES;
        self.stripes[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_cas(&self) -> u64 {
        self.cas.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The normalised URL of the page that a key stands for; `None` unless the key begins with `/`.
    fn url(&self, key: &[u8]) -> Option<String> {
        if !key.starts_with(b"/") {
            return None;
        }
        // nginx encodes a `%` of the URI in a key as `%25`.
        let written = as_text(key).replace("%25", "%");
        Some(self.site.now().config.rules.form().normal(&written).page.into_owned())
    }

    /// Stores an item in place of `old`. If it is refused, `old` is removed as well, because its client
    /// considers it replaced.
    fn put(&self, key: &[u8], old: Option<&SharedPage>, mut item: Item, now: Moment) -> EditResult {
        let said = match page_line::read(&item.value) {
            Ok(said) => said,
            Err(page_line::Unreadable) => return self.refused(old, SetRefusal::Unreadable),
        };
        let url = self.url(key);
        if url.is_some() && item.flags != 0 {
            // Only the client that encoded the value can decode it, so its page line is unreadable
            // here.
            tracing::warn!(event = "memcached-encoded", key = %String::from_utf8_lossy(key), flags = item.flags);
            return self.refused(old, SetRefusal::Encoded);
        }
        let lease = match said.lease {
            Some(token) => self.leases.handed(token, now.0),
            None if url.is_some() || !said.tags.is_empty() => Some(self.leases.assumed(now.0)),
            None => Some(Arc::new(self.site.store.lease())),
        };
        let Some(lease) = lease else { return self.refused(old, SetRefusal::Changed) };
        let name = url.as_deref().map_or(key, str::as_bytes);
        let mut dependencies = self.site.store.dependencies(self.site.name, name);
        for tag in &said.tags {
            dependencies.tag(tag);
        }
        let (tags, since) = (said.tags.iter().map(|tag| &tag[..]), Some(lease.number()));
        let site = &self.site;
        site.terms.depend(&mut dependencies, tags, since, &site.changes());
        // A separate allocation, because the received buffer contains more than the value.
        let value = Bytes::copy_from_slice(&item.value[said.value_at..]);
        item.value = value;
        item.cas = self.next_cas();
        self.insert(key, old, item, &dependencies, &lease)
    }

    fn insert(
        &self,
        key: &[u8],
        old: Option<&SharedPage>,
        item: Item,
        dependencies: &Dependencies,
        lease: &Lease,
    ) -> EditResult {
        let store = &self.site.store;
        let key = [NAMESPACE, key].concat();
        let page = NewPage::of_item(item.clone());
        match page.put(|new| store.insert(store.key(&key), 0, dependencies, lease, new)) {
            Ok(_) => {
                self.site.counters.memcached_stored.add();
                EditResult::Done(Some(item))
            }
            Err(refused) => self.refused(old, reason(refused.reason)),
        }
    }

    fn refused(&self, old: Option<&SharedPage>, why: SetRefusal) -> EditResult {
        if let Some(old) = old {
            self.site.store.remove(old);
        }
        self.site.counters.memcached_refused.add();
        tracing::debug!(event = "memcached-refused", reason = why.as_str());
        EditResult::Not(why)
    }

    fn change(&self, page: &SharedPage, mut item: Item, new: NewCas) -> EditResult {
        if new == NewCas::Yes {
            item.cas = self.next_cas();
        }
        let new = NewPage::of_item(item.clone());
        match new.put(|new| self.site.store.replace_payload(page, new)) {
            Ok(_) => EditResult::Done(Some(item)),
            Err(NotReplaced::TooLarge) => self.refused(Some(page), SetRefusal::NoRoom),
            Err(NotReplaced::NotStored | NotReplaced::Marked) => {
                EditResult::Not(SetRefusal::Changed)
            }
        }
    }

    /// Removes an item. For a page this is also a change of its URL, so that no response that was
    /// requested before is stored afterwards.
    fn remove(&self, key: &[u8], page: Option<&SharedPage>) -> EditResult {
        if let Some(page) = page {
            self.site.store.remove(page);
        }
        if let Some(url) = self.url(key) {
            self.site.changes().apply(
                &[ChangeTarget::Url(url.as_bytes())],
                Strength::Drop,
                ChangeSource::Memcached,
            );
        }
        EditResult::Done(None)
    }

    /// A new lease, as an item.
    fn lease(&self, now: Moment) -> Item {
        let value = self.leases.hand_out(&self.site.store, now.0);
        Item { value: value.into(), flags: 0, cas: self.next_cas(), ends: None, stored: now }
    }
}

/// A key as text. Bytes that are not valid UTF-8 are percent-encoded, as in a request for the page.
fn as_text(key: &[u8]) -> Cow<'_, str> {
    let Err(_) = std::str::from_utf8(key) else { return String::from_utf8_lossy(key) };
    let each = key.iter().map(|byte| {
        if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
    });
    Cow::Owned(each.collect())
}

fn reason(refused: StoreRefusal) -> SetRefusal {
    match refused {
        StoreRefusal::TooLarge => SetRefusal::NoRoom,
        StoreRefusal::TooManyTags | StoreRefusal::TagTooLong | StoreRefusal::OwnerUnclear => {
            SetRefusal::Unreadable
        }
        _ => SetRefusal::Changed,
    }
}

impl Items for Keeper {
    fn get(&self, key: &[u8], now: Moment) -> Option<Item> {
        if key == LEASE_KEY {
            return Some(self.lease(now));
        }
        let page = self.stored(key);
        let item = page.as_ref().and_then(|page| self.visible(page, now)).cloned();
        let counters = &self.site.counters;
        if item.is_some() {
            counters.memcached_hits.add()
        } else {
            counters.memcached_misses.add()
        }
        item
    }

    fn edit(
        &self,
        key: &[u8],
        now: Moment,
        edit: &mut dyn FnMut(Option<&Item>) -> Edit,
    ) -> EditResult {
        if key == LEASE_KEY {
            return EditResult::Not(SetRefusal::Changed);
        }
        let _alone = self.stripe(key);
        let page = self.stored(key);
        let item = page.as_ref().and_then(|page| self.visible(page, now));
        match (edit(item), page.as_ref()) {
            (Edit::Put(item), page) => self.put(key, page, item, now),
            (Edit::Change(item, new), Some(page)) => self.change(page, item, new),
            (Edit::Remove, page) => self.remove(key, page),
            (Edit::Discard, Some(page)) => {
                self.site.store.remove(page);
                EditResult::Done(None)
            }
            (Edit::Keep | Edit::Change(..) | Edit::Discard, _) => EditResult::Done(None),
        }
    }

    fn flush(&self, at: Moment, now: Moment) {
        let mut flushed = self.flushed.write().unwrap_or_else(PoisonError::into_inner);
        flushed.flush(at, now, self.cas.load(Ordering::Relaxed));
    }

    fn stats(&self, now: Moment) -> Vec<(&'static str, String)> {
        let (counters, stats) = (&self.site.counters, self.site.store.stats());
        let (hits, misses) = (counters.memcached_hits.get(), counters.memcached_misses.get());
        vec![
            ("pid", std::process::id().to_string()),
            ("time", (now.0 / 1_000).to_string()),
            ("version", VERSION.to_owned()),
            ("pointer_size", usize::BITS.to_string()),
            ("cmd_get", (hits + misses).to_string()),
            ("cmd_set", counters.memcached_stored.get().to_string()),
            ("get_hits", hits.to_string()),
            ("get_misses", misses.to_string()),
            ("limit_maxbytes", self.site.config.memory_bytes.to_string()),
            ("bytes", stats.bytes.total().to_string()),
            ("curr_items", stats.pages.to_string()),
            ("evictions", stats.counters.evicted.to_string()),
        ]
    }

    fn version(&self) -> &str {
        VERSION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(cas: u64, stored: u64) -> Item {
        Item { value: Bytes::new(), flags: 0, cas, ends: None, stored: Moment(stored) }
    }

    #[test]
    fn flushed_values_are_not_returned_again() {
        let (old, new) = (item(1, 1_000), item(2, 5_000));
        let mut flushed = FlushState::default();
        flushed.flush(Moment(3_000), Moment(1_500), 1);
        assert!(!flushed.has(&old, Moment(2_999)) && flushed.has(&old, Moment(3_000)));
        // A second flush far in the future, after the first has taken effect.
        flushed.flush(Moment(100_000), Moment(6_000), 2);
        assert!(flushed.has(&old, Moment(6_000)) && !flushed.has(&new, Moment(6_000)));
        // An immediate flush, which cancels the scheduled one.
        flushed.flush(Moment(7_000), Moment(7_000), 2);
        assert!(flushed.has(&new, Moment(7_000)));
        assert!(!flushed.has(&item(3, 8_000), Moment(200_000)));
    }

    #[test]
    fn a_key_of_any_bytes_is_text() {
        assert_eq!(as_text("/ä b".as_bytes()), "/ä b");
        assert_eq!(as_text(b"/\xe4/\xc3\xa4"), "/%E4/%C3%A4");
    }
}
