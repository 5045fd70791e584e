//! What is remembered of a page after it is gone, or was never there: how its last render ended, and what
//! dropped or marked it last.
//!
//! Found by a hash of its key, seeded so that nobody can choose keys that displace each other. Bounded by
//! [`entries_for`]; where there is no room, one that was not written to lately is forgotten (a clock: each
//! gets a second chance). An entry takes some 250 bytes and its texts.

use super::cause::Cause;
use super::changes::Named;
use super::{Content, Outcome, Rendered};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
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
    /// How many times it was dropped or marked.
    pub drops: u32,
    /// How many of these for nothing: the next render had the same content.
    pub drops_unchanged: u32,
    /// The last render.
    pub render: Option<LastRender>,
    /// The last drop.
    pub dropped: Option<LastDrop>,
    /// Whether it was written to since the clock's hand has passed.
    is_recent: bool,
}

/// How the last render of a page ended.
#[derive(Clone, Debug)]
pub struct LastRender {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// The status; none where there was no response.
    pub status: Option<u16>,
    /// What came of it.
    pub outcome: Outcome,
    /// Names of cookies that it set.
    pub cookies: Vec<Box<str>>,
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
    /// Where the entry of a hash is. A table of the entries themselves would be half empty: 2.7 MB of nothing.
    places: HashMap<u64, u32>,
    /// Each with its hash, around the clock.
    entries: Vec<(u64, Entry)>,
    /// The clock's hand: where room is looked for next.
    hand: usize,
    most: usize,
    seed: u64,
}

impl Memory {
    pub(super) fn new(most: usize) -> Memory {
        let seed = RandomState::new().hash_one(0);
        Memory { places: HashMap::new(), entries: Vec::new(), hand: 0, most: most.max(1), seed }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Entry> {
        let at = *self.places.get(&self.hash(key))?;
        self.entries.get(at as usize).map(|(_, entry)| entry.clone())
    }

    /// Takes in how a render ended; says what that shows of the drop before.
    pub(super) fn rendered(&mut self, rendered: Rendered<'_>) -> Comparison {
        let entry = self.entry(rendered.key);
        entry.renders = entry.renders.saturating_add(1);
        let (began_ms, at_ms) = rendered.times;
        entry.render = Some(LastRender {
            at_ms,
            took_ms: at_ms.saturating_sub(began_ms),
            status: rendered.status,
            outcome: rendered.outcome,
            cookies: rendered.cookies,
        });
        let Outcome::Stored(content) = rendered.outcome else {
            entry.not_stored = entry.not_stored.saturating_add(1);
            return Comparison::None;
        };
        let open = entry.dropped.as_mut().filter(|dropped| dropped.unchanged.is_none());
        let Some(dropped) = open else { return Comparison::None };
        match dropped.content {
            Some(old) if old.variant == content.variant => {
                dropped.unchanged = Some(old == content);
                if old != content {
                    return Comparison::Changed;
                }
                entry.drops_unchanged = entry.drops_unchanged.saturating_add(1);
                Comparison::Unchanged
            }
            _ => Comparison::None,
        }
    }

    /// Takes in that a page was dropped or marked.
    pub(super) fn dropped(&mut self, key: &[u8], variant: u32, mut dropped: LastDrop) {
        let entry = self.entry(key);
        entry.drops = entry.drops.saturating_add(1);
        dropped.content = match entry.render.as_ref().map(|render| render.outcome) {
            Some(Outcome::Stored(content)) if content.variant == variant => Some(content),
            _ => None,
        };
        entry.dropped = Some(dropped);
    }

    fn entry(&mut self, key: &[u8]) -> &mut Entry {
        let hash = self.hash(key);
        let known = self.places.get(&hash).copied();
        let at = known.unwrap_or_else(|| self.place(hash));
        let entry = &mut self.entries[at as usize].1;
        entry.is_recent = known.is_some();
        entry
    }

    /// A place for an entry that is not there yet: a new one, or that of one that was not written to lately.
    fn place(&mut self, hash: u64) -> u32 {
        let new = (hash, Entry::default());
        let at = if self.entries.len() < self.most {
            self.entries.push(new);
            self.entries.len() - 1
        } else {
            let at = self.forgettable();
            let (old, _) = std::mem::replace(&mut self.entries[at], new);
            self.places.remove(&old);
            at
        };
        let at = u32::try_from(at).expect("there are some thousands at most");
        self.places.insert(hash, at);
        at
    }

    /// The next that was not written to since the hand has passed. There are entries.
    fn forgettable(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[at].1.is_recent) {
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
        let target = Target::of_key(b"http://a/").expect("a key");
        memory.rendered(Rendered {
            key: key.as_bytes(),
            target: &target,
            times: (10, 15),
            status: Some(200),
            cookies: Vec::new(),
            outcome,
            is_new: true,
        })
    }

    fn stored(hash: u64) -> Outcome {
        Outcome::Stored(Content { variant: 0, hash })
    }

    fn drop_page(memory: &mut Memory, key: &str, variant: u32) {
        let by = Arc::new(Cause::Memcached);
        let (name, unchanged, content) = (None, None, None);
        let dropped =
            LastDrop { change: 1, at_ms: 20, is_mark: false, by, name, unchanged, content };
        memory.dropped(key.as_bytes(), variant, dropped);
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
        assert_eq!((entry.drops, entry.drops_unchanged), (3, 1));
    }

    #[test]
    fn it_is_bounded_and_keeps_what_goes_on() {
        let mut memory = Memory::new(64);
        for at in 0..10_000 {
            render(&mut memory, "often", stored(at));
            render(&mut memory, &at.to_string(), stored(at));
        }
        assert_eq!((memory.entries.len(), memory.places.len()), (64, 64));
        assert_eq!(memory.get(b"often").map(|entry| entry.renders), Some(10_000));
        assert!(memory.get(b"1").is_none());
    }
}
