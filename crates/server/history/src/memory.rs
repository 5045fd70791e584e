//! Remembers pages after they are gone, or that were never stored: how the last render ended, and
//! what purged or marked the page last.
//!
//! An entry is found by a hash of its key, seeded so that no client can choose keys that displace
//! each other. The number is bounded by [`entries_for`]; if it is full, an entry without recent
//! writes is overwritten (second-chance clock). An entry takes 75 bytes with its place. It takes
//! some hundred more once its page was purged, its response set a cookie or was refused by the
//! application, or its request had a cookie that is on no list ([`RareHistory`]).

use super::cause::ChangeSource;
use super::changes::ChangeName;
use super::shown::cut_to;
use super::{Content, RenderRecord, StoreOutcome};
use hashbrown::HashTable;
use random_number::random_number;
use reasons::Reason;
use std::num::NonZeroU16;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The fewest and the most entries of a site.
const ENTRIES: (usize, usize) = (64, 16_384);
/// The bytes of page memory per entry.
const BYTES_PER_ENTRY: usize = 64 << 10;
/// The most cookies of a response that are remembered, and the most of a request.
pub const COOKIES_MAX: usize = 4;
/// The longest name of a request's cookie that is remembered, in bytes. Clients choose these names.
const VISITOR_COOKIE_BYTES: usize = 64;

/// Returns the number of entries for a site with this much memory for pages.
pub fn entries_for(memory_bytes: usize) -> usize {
    (memory_bytes / BYTES_PER_ENTRY).clamp(ENTRIES.0, ENTRIES.1)
}

/// The history of a page.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// How many times it was rendered.
    pub renders: u32,
    /// How many of these renders were not stored.
    pub not_stored: u32,
    /// The last render, if there was one.
    pub render: Option<LastRender>,
    /// Data that few pages have.
    pub rare: Option<Box<RareHistory>>,
}

impl Entry {
    /// Returns the last purge or mark.
    pub fn dropped(&self) -> Option<&LastDrop> {
        self.rare.as_ref()?.dropped.as_ref()
    }

    /// Returns the names of the cookies that the last render set.
    pub fn cookies(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.cookies)
    }

    /// Returns the application's code for its reason not to offer the last response.
    pub fn refusal(&self) -> Option<&str> {
        self.rare.as_ref()?.refusal.as_deref()
    }

    /// Returns the names of the cookies of the last request that may be why it was not stored.
    pub fn visitor_cookies(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.visitor_cookies)
    }
}

/// How the last render of a page ended.
#[derive(Clone, Debug)]
pub struct LastRender {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long it took, in milliseconds; at most seven weeks.
    pub took_ms: u32,
    /// The status code; `None` if there was no response.
    pub status: Option<NonZeroU16>,
    /// Whether it was stored, and the reason if not.
    pub outcome: StoreOutcome,
}

/// The data that few pages have: a purge, cookies, or a refusal of the application.
#[derive(Clone, Debug, Default)]
pub struct RareHistory {
    /// How many times it was purged or marked.
    pub drops: u32,
    /// How many of these were unnecessary: the next render had the same content.
    pub drops_unchanged: u32,
    dropped: Option<LastDrop>,
    cookies: Box<[Box<str>]>,
    visitor_cookies: Box<[Box<str>]>,
    refusal: Option<Box<str>>,
}

/// The last purge or mark of a page.
#[derive(Clone, Debug)]
pub struct LastDrop {
    /// The number of the change.
    pub change: u64,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether the page was marked instead of purged.
    pub is_mark: bool,
    /// The cause of the change.
    pub by: Arc<ChangeSource>,
    /// The name of the change that matched the page.
    pub name: Option<Arc<ChangeName>>,
    /// Whether the next render had the same content; `None` if there was none yet, or it is
    /// unknown.
    pub unchanged: Option<bool>,
    /// The content before the change.
    pub(super) content: Option<Content>,
}

impl LastDrop {
    /// Creates the entry for a purge without a matching name.
    pub(super) fn of(change: u64, at_ms: u64, by: Arc<ChangeSource>) -> LastDrop {
        let (name, unchanged, content) = (None, None, None);
        LastDrop { change, at_ms, is_mark: false, by, name, unchanged, content }
    }
}

/// The comparison of a render with the content before the last purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// There was nothing to compare.
    None,
    /// The content of the page differs.
    Changed,
    /// The content of the page is the same. With the cause of the purge.
    Unchanged(Arc<ChangeSource>),
}

/// The histories of the remembered pages.
pub(super) struct Memory {
    /// The index of each hash in `entries`. A hash table of the entries themselves would be half
    /// empty.
    places: HashTable<u32>,
    /// The entries with their hashes, in the order of the clock. Capacity for all is reserved at
    /// once: unwritten memory costs nothing, and growth leaves no unused copies behind.
    entries: Vec<(u64, Entry)>,
    /// Whether each entry was written since the clock's hand passed it.
    recent: Vec<bool>,
    /// The clock's hand: the next entry to check for reuse.
    hand: usize,
    most: usize,
    seed: u64,
}

impl Memory {
    pub(super) fn new(most: usize) -> Memory {
        let seed = random_number();
        let (places, entries, recent) = (HashTable::new(), Vec::new(), Vec::new());
        Memory { places, entries, recent, hand: 0, most: most.max(1), seed }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Entry> {
        let at = self.known(self.hash(key))?;
        Some(self.entries[at].1.clone())
    }

    /// Records how a render ended. Returns whether the content changed since the purge before it.
    pub(super) fn rendered(&mut self, rendered: RenderRecord<'_>) -> Comparison {
        let entry = self.entry(rendered.key);
        entry.renders = entry.renders.saturating_add(1);
        let (began_ms, at_ms) = rendered.times;
        entry.render = Some(LastRender {
            at_ms,
            took_ms: u32::try_from(at_ms.saturating_sub(began_ms)).unwrap_or(u32::MAX),
            status: rendered.status.and_then(NonZeroU16::new),
            outcome: rendered.outcome,
        });
        let visitor_cookies = rendered.visitor_cookies.iter().take(COOKIES_MAX);
        let visitor_cookies: Box<[Box<str>]> =
            visitor_cookies.map(|name| cut_to(name, VISITOR_COOKIE_BYTES)).collect();
        let is_plain =
            rendered.cookies.is_empty() && visitor_cookies.is_empty() && rendered.refusal.is_none();
        if entry.rare.is_some() || !is_plain {
            let rare = entry.rare.get_or_insert_default();
            rare.cookies = rendered.cookies.into();
            rare.visitor_cookies = visitor_cookies;
            rare.refusal = rendered.refusal;
        }
        let StoreOutcome::Stored(content) = rendered.outcome else {
            entry.not_stored = entry.not_stored.saturating_add(1);
            return Comparison::None;
        };
        let Some(rare) = &mut entry.rare else { return Comparison::None };
        let open = rare.dropped.as_mut().filter(|dropped| dropped.unchanged.is_none());
        let Some(dropped) = open else { return Comparison::None };
        match dropped.content {
            Some(old) if old.variant == content.variant => {
                dropped.unchanged = Some(old == content);
                if old != content {
                    return Comparison::Changed;
                }
                rare.drops_unchanged = rare.drops_unchanged.saturating_add(1);
                Comparison::Unchanged(dropped.by.clone())
            }
            _ => Comparison::None,
        }
    }

    /// Replaces the reason of the last render, if it ended at `at_ms` and was not stored.
    pub(super) fn correct_reason(&mut self, key: &[u8], at_ms: u64, reason: Reason) {
        let Some(at) = self.known(self.hash(key)) else { return };
        if let Some(render) = &mut self.entries[at].1.render
            && render.at_ms == at_ms
            && let StoreOutcome::NotStored(known) = &mut render.outcome
        {
            *known = reason;
        }
    }

    /// Records that a page was purged or marked.
    pub(super) fn dropped(&mut self, key: &[u8], variant: u32, mut dropped: LastDrop) {
        let entry = self.entry(key);
        dropped.content = match entry.render.as_ref().map(|render| render.outcome) {
            Some(StoreOutcome::Stored(content)) if content.variant == variant => Some(content),
            _ => None,
        };
        let rare = entry.rare.get_or_insert_default();
        rare.drops = rare.drops.saturating_add(1);
        rare.dropped = Some(dropped);
    }

    fn entry(&mut self, key: &[u8]) -> &mut Entry {
        let hash = self.hash(key);
        let known = self.known(hash);
        let at = known.unwrap_or_else(|| self.place(hash));
        self.recent[at] = known.is_some();
        &mut self.entries[at].1
    }

    fn known(&self, hash: u64) -> Option<usize> {
        let is_it = |at: &u32| self.entries[*at as usize].0 == hash;
        self.places.find(hash, is_it).map(|at| *at as usize)
    }

    /// Returns a place for a new entry: an unused one, or that of an entry without recent writes.
    fn place(&mut self, hash: u64) -> usize {
        let new = (hash, Entry::default());
        let at = self.entries.len();
        if at < self.most {
            self.entries.reserve_exact(self.most - at);
            self.recent.reserve_exact(self.most - at);
            self.entries.push(new);
            self.recent.push(false);
            self.has_place(at);
            return at;
        }
        let at = self.forgettable();
        let old = self.entries[at].0;
        let place = self.places.find_entry(old, |place| *place as usize == at);
        place.expect("every entry has its place").remove();
        self.entries[at] = new;
        self.has_place(at);
        at
    }

    fn has_place(&mut self, at: usize) {
        let place = u32::try_from(at).expect("there are some thousands at most");
        let hash = |place: &u32| self.entries[*place as usize].0;
        self.places.insert_unique(self.entries[at].0, place, hash);
    }

    /// Returns the next entry that was not written since the hand passed it. There must be entries.
    fn forgettable(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.entries.len();
            if !std::mem::take(&mut self.recent[at]) {
                return at;
            }
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use request_values::target::TargetUri;

    fn render(memory: &mut Memory, key: &str, outcome: StoreOutcome) -> Comparison {
        render_with(memory, key, outcome, Vec::new())
    }

    fn render_with(
        memory: &mut Memory,
        key: &str,
        outcome: StoreOutcome,
        cookies: Vec<Box<str>>,
    ) -> Comparison {
        render_of(memory, key, outcome, |record| record.cookies = cookies)
    }

    fn render_of(
        memory: &mut Memory,
        key: &str,
        outcome: StoreOutcome,
        edit: impl FnOnce(&mut RenderRecord<'_>),
    ) -> Comparison {
        let target = TargetUri::of_key(b"http://a/").expect("a key");
        let mut record = RenderRecord {
            key: key.as_bytes(),
            target: &target,
            times: (10, 15),
            status: Some(200),
            cookies: Vec::new(),
            outcome,
            refusal: None,
            visitor_cookies: Vec::new(),
            is_new: true,
        };
        edit(&mut record);
        memory.rendered(record)
    }

    fn stored(hash: u64) -> StoreOutcome {
        StoreOutcome::Stored(Content { variant: 0, hash })
    }

    fn drop_page(memory: &mut Memory, key: &str, variant: u32) {
        let by = Arc::new(ChangeSource::Memcached);
        memory.dropped(key.as_bytes(), variant, LastDrop::of(1, 20, by));
    }

    #[test]
    fn a_drop_is_judged_by_the_next_render_once() {
        let mut memory = Memory::new(10);
        assert_eq!(render(&mut memory, "a", stored(1)), Comparison::None);
        drop_page(&mut memory, "a", 0);
        assert_eq!(
            render(&mut memory, "a", StoreOutcome::NotStored(Reason::TooLarge)),
            Comparison::None
        );
        assert!(matches!(render(&mut memory, "a", stored(1)), Comparison::Unchanged(_)));
        assert_eq!(render(&mut memory, "a", stored(1)), Comparison::None);
        drop_page(&mut memory, "a", 0);
        assert_eq!(render(&mut memory, "a", stored(2)), Comparison::Changed);
        drop_page(&mut memory, "a", 7);
        assert_eq!(render(&mut memory, "a", stored(2)), Comparison::None, "another variant went");
        let entry = memory.get(b"a").expect("remembered");
        assert_eq!((entry.renders, entry.not_stored), (6, 1));
        let rare = entry.rare.expect("it was dropped");
        assert_eq!((rare.drops, rare.drops_unchanged), (3, 1));
    }

    #[test]
    fn the_cookies_are_those_of_the_last_render() {
        let mut memory = Memory::new(10);
        render_with(
            &mut memory,
            "a",
            StoreOutcome::NotStored(Reason::SetCookie),
            vec!["id".into()],
        );
        assert_eq!(memory.get(b"a").expect("remembered").cookies(), [Box::from("id")]);
        assert!(memory.get(b"a").expect("remembered").dropped().is_none());
        drop_page(&mut memory, "a", 0);
        render(&mut memory, "a", stored(1));
        let entry = memory.get(b"a").expect("remembered");
        assert!(entry.cookies().is_empty());
        assert_eq!(entry.dropped().map(|dropped| dropped.change), Some(1));
    }

    #[test]
    fn refusal_and_visitor_cookies_are_those_of_the_last_render_and_bounded() {
        let mut memory = Memory::new(10);
        let names: Vec<Box<str>> =
            (0..100).map(|at| format!("{at}{}", "n".repeat(999)).into()).collect();
        render_of(&mut memory, "a", StoreOutcome::NotStored(Reason::Private), |record| {
            record.refusal = Some("visitors-cookie".into());
            record.visitor_cookies = names;
        });
        let entry = memory.get(b"a").expect("remembered");
        assert_eq!(entry.refusal(), Some("visitors-cookie"));
        assert_eq!(entry.visitor_cookies().len(), COOKIES_MAX);
        assert!(entry.visitor_cookies().iter().all(|name| name.len() <= VISITOR_COOKIE_BYTES));
        render(&mut memory, "a", stored(1));
        let entry = memory.get(b"a").expect("remembered");
        assert_eq!((entry.refusal(), entry.visitor_cookies().len()), (None, 0));
    }

    #[test]
    fn a_reason_is_corrected_only_for_its_own_render() {
        let mut memory = Memory::new(10);
        render(&mut memory, "a", StoreOutcome::NotStored(Reason::NoLifetime));
        let reason =
            |memory: &Memory| memory.get(b"a").and_then(|entry| entry.render).map(|r| r.outcome);
        memory.correct_reason(b"a", 14, Reason::PhpFatalError);
        assert_eq!(reason(&memory), Some(StoreOutcome::NotStored(Reason::NoLifetime)));
        memory.correct_reason(b"a", 15, Reason::PhpFatalError);
        assert_eq!(reason(&memory), Some(StoreOutcome::NotStored(Reason::PhpFatalError)));
        render(&mut memory, "a", stored(1));
        memory.correct_reason(b"a", 15, Reason::PhpFatalError);
        assert_eq!(reason(&memory), Some(stored(1)), "it was stored");
        memory.correct_reason(b"unknown", 15, Reason::PhpFatalError);
        assert!(memory.get(b"unknown").is_none());
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_pages_in_use() {
        let mut memory = Memory::new(64);
        for at in 0..10_000 {
            render(&mut memory, "often", stored(at));
            render(&mut memory, &at.to_string(), stored(at));
        }
        assert_eq!((memory.entries.len(), memory.places.len()), (64, 64));
        assert_eq!(memory.recent.len(), 64);
        assert_eq!(memory.get(b"often").map(|entry| entry.renders), Some(10_000));
        assert!(memory.get(b"1").is_none());
    }
}
