//! What is remembered of a page after it is gone, or was never there: how its last render ended, and what
//! dropped or marked it last.
//!
//! Found by a hash of its key, seeded so that nobody can choose keys that displace each other. Bounded by
//! [`entries_for`]; where there is no room, one that was not written to lately is forgotten (a clock: each
//! gets a second chance). An entry takes 75 bytes with its place, and some hundred more with its texts once its
//! page was dropped or its response set a cookie ([`Rare`]).

use super::cause::Cause;
use super::changes::Named;
use super::{Content, Outcome, Rendered};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU16;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The fewest and the most entries of a site.
const ENTRIES: (usize, usize) = (64, 16_384);
/// An entry for so many bytes of pages.
const BYTES_PER_ENTRY: usize = 64 << 10;
/// How many cookies of a response are remembered.
pub const COOKIES_MAX: usize = 4;

/// How many pages a site with so much memory for pages remembers.
pub fn entries_for(memory_bytes: usize) -> usize {
    (memory_bytes / BYTES_PER_ENTRY).clamp(ENTRIES.0, ENTRIES.1)
}

/// What is remembered of a page.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// How many times it was rendered.
    pub renders: u32,
    /// How many of these were not stored.
    pub not_stored: u32,
    /// The last render.
    pub render: Option<LastRender>,
    /// What few have, or have after a while.
    pub rare: Option<Box<Rare>>,
}

impl Entry {
    /// The last drop.
    pub fn dropped(&self) -> Option<&LastDrop> {
        self.rare.as_ref()?.dropped.as_ref()
    }

    /// Names of cookies that the last render set.
    pub fn cookies(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.cookies)
    }
}

/// How the last render of a page ended.
#[derive(Clone, Debug)]
pub struct LastRender {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long it took, in milliseconds: seven weeks at most.
    pub took_ms: u32,
    /// The status; none where there was no response.
    pub status: Option<NonZeroU16>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What is remembered of a page that was dropped, or whose response set a cookie.
#[derive(Clone, Debug, Default)]
pub struct Rare {
    /// How many times it was dropped or marked.
    pub drops: u32,
    /// How many of these for nothing: the next render had the same content.
    pub drops_unchanged: u32,
    dropped: Option<LastDrop>,
    cookies: Box<[Box<str>]>,
}

/// What dropped or marked a page last.
#[derive(Clone, Debug)]
pub struct LastDrop {
    /// The change's number.
    pub change: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether it was marked rather than dropped.
    pub is_mark: bool,
    /// Who changed something.
    pub by: Arc<Cause>,
    /// Which of the change's names touched the page.
    pub name: Option<Arc<Named>>,
    /// Whether the next render had the same content; none: there was none yet, or it is not known.
    pub unchanged: Option<bool>,
    /// What was dropped.
    pub(super) content: Option<Content>,
}

impl LastDrop {
    /// A drop that no name of a change has led to.
    pub(super) fn of(change: u64, at_ms: u64, by: Arc<Cause>) -> LastDrop {
        let (name, unchanged, content) = (None, None, None);
        LastDrop { change, at_ms, is_mark: false, by, name, unchanged, content }
    }
}

/// What a render showed of the drop before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing.
    None,
    /// The content is another.
    Changed,
    /// The content is the same.
    Unchanged,
}

/// The memory.
pub(super) struct Memory {
    /// Where the entry of a hash is. A table of the entries themselves would be half empty.
    places: HashTable<u32>,
    /// Each with its hash, around the clock. There is room for all from the first on: what is not written to takes
    /// no memory, and no place is left behind by what has grown.
    entries: Vec<(u64, Entry)>,
    /// Whether each was written to since the clock's hand has passed.
    recent: Vec<bool>,
    /// The clock's hand: where room is looked for next.
    hand: usize,
    most: usize,
    seed: u64,
}

impl Memory {
    pub(super) fn new(most: usize) -> Memory {
        let seed = RandomState::new().hash_one(0);
        let (places, entries, recent) = (HashTable::new(), Vec::new(), Vec::new());
        Memory { places, entries, recent, hand: 0, most: most.max(1), seed }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Entry> {
        let at = self.known(self.hash(key))?;
        Some(self.entries[at].1.clone())
    }

    /// Takes in how a render ended; says what that shows of the drop before.
    pub(super) fn rendered(&mut self, rendered: Rendered<'_>) -> Comparison {
        let entry = self.entry(rendered.key);
        entry.renders = entry.renders.saturating_add(1);
        let (began_ms, at_ms) = rendered.times;
        entry.render = Some(LastRender {
            at_ms,
            took_ms: u32::try_from(at_ms.saturating_sub(began_ms)).unwrap_or(u32::MAX),
            status: rendered.status.and_then(NonZeroU16::new),
            outcome: rendered.outcome,
        });
        if entry.rare.is_some() || !rendered.cookies.is_empty() {
            entry.rare.get_or_insert_default().cookies = rendered.cookies.into();
        }
        let Outcome::Stored(content) = rendered.outcome else {
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
                Comparison::Unchanged
            }
            _ => Comparison::None,
        }
    }

    /// Takes in that a page was dropped or marked.
    pub(super) fn dropped(&mut self, key: &[u8], variant: u32, mut dropped: LastDrop) {
        let entry = self.entry(key);
        dropped.content = match entry.render.as_ref().map(|render| render.outcome) {
            Some(Outcome::Stored(content)) if content.variant == variant => Some(content),
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

    /// A place for an entry that is not there yet: a new one, or that of one that was not written to lately.
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

    /// The next that was not written to since the hand has passed. There are entries.
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
    use crate::target::Target;

    fn render(memory: &mut Memory, key: &str, outcome: Outcome) -> Comparison {
        render_with(memory, key, outcome, Vec::new())
    }

    fn render_with(
        memory: &mut Memory,
        key: &str,
        outcome: Outcome,
        cookies: Vec<Box<str>>,
    ) -> Comparison {
        let target = Target::of_key(b"http://a/").expect("a key");
        memory.rendered(Rendered {
            key: key.as_bytes(),
            target: &target,
            times: (10, 15),
            status: Some(200),
            cookies,
            outcome,
            is_new: true,
        })
    }

    fn stored(hash: u64) -> Outcome {
        Outcome::Stored(Content { variant: 0, hash })
    }

    fn drop_page(memory: &mut Memory, key: &str, variant: u32) {
        let by = Arc::new(Cause::Memcached);
        memory.dropped(key.as_bytes(), variant, LastDrop::of(1, 20, by));
    }

    #[test]
    fn a_drop_is_judged_by_the_next_render_once() {
        let mut memory = Memory::new(10);
        assert_eq!(render(&mut memory, "a", stored(1)), Comparison::None);
        drop_page(&mut memory, "a", 0);
        assert_eq!(render(&mut memory, "a", Outcome::NotStored("x")), Comparison::None);
        assert_eq!(render(&mut memory, "a", stored(1)), Comparison::Unchanged);
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
        render_with(&mut memory, "a", Outcome::NotStored("set-cookie"), vec!["id".into()]);
        assert_eq!(memory.get(b"a").expect("remembered").cookies(), [Box::from("id")]);
        assert!(memory.get(b"a").expect("remembered").dropped().is_none());
        drop_page(&mut memory, "a", 0);
        render(&mut memory, "a", stored(1));
        let entry = memory.get(b"a").expect("remembered");
        assert!(entry.cookies().is_empty());
        assert_eq!(entry.dropped().map(|dropped| dropped.change), Some(1));
    }

    #[test]
    fn it_is_bounded_and_keeps_what_goes_on() {
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
