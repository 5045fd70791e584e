//! A page: one stored response with its key, and the pages that are candidates for a request.
//!
//! The store does not look into what it keeps: the caller's [`Payload`] holds headers and content. A page
//! never changes once it is stored, except for its mark (soft invalidation) and its count of uses; a
//! response that is freshened or validated is a new page in its place. Selecting among variants is not done
//! here: the store hands out candidates and `http-cache` chooses.

use crate::budget::{self, Roughly};
use crate::lease::Number;
use crate::sync::AtomicU64 as Mark;
use crate::unused::{Older, UNUSED};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
use triomphe::ThinArc;

/// What a page holds for the caller, beside [bytes](New).
pub trait Payload: Send + Sync + 'static {
    /// The bytes of heap this payload owns, beside its own `size_of`. It must not change while stored.
    fn bytes(&self) -> usize;

    /// Who gets this page who asks for its key. Asked when a change has touched it, never under a lock.
    fn audience(&self) -> Audience {
        Audience::Somebody
    }
}

/// Who gets a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever asks: it may be rendered anew for nobody in particular.
    Anybody,
    /// One owner, or those whose requests have something in common.
    Somebody,
}

/// A cache key: bytes that the caller made of scheme, host, path and query, and their hash. Borrowed, so
/// that a lookup can build it in a buffer it uses again. Made by [`Store::key`](crate::Store::key).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) hash: u64,
}

impl<'b> Key<'b> {
    /// The key's bytes.
    pub fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// A copy that owns its bytes.
    pub fn to_buf(&self) -> KeyBuf {
        KeyBuf { bytes: self.bytes.into(), hash: self.hash }
    }
}

/// A [`Key`] that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBuf {
    bytes: Box<[u8]>,
    hash: u64,
}

impl KeyBuf {
    /// The key, borrowed.
    pub fn as_key(&self) -> Key<'_> {
        Key { bytes: &self.bytes, hash: self.hash }
    }
}

/// A soft invalidation as the pages that it touched know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// When it was, in milliseconds of the caller's clock, as given with the change; 0 where it was not.
    pub at_ms: u64,
}

/// The slot of a page that is in no store.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The number at which a page's count of uses stays: of the byte they are in, the lowest bits.
const USES_MAX: u8 = 3;
/// Above them is the page's age: rounds since it was asked for (`unused.rs`).
const AGE_AT: u32 = 2;

/// The number at which a page's count of requests stays.
pub const SERVED_MAX: u16 = u16::MAX;

/// What becomes a page: a payload, and bytes that are to stand in one allocation with it.
pub struct New<'b, P> {
    /// What the caller wants to know of it.
    pub payload: P,
    /// The bytes, in pieces; [`Page::bytes`] are all of them, one behind the other.
    pub bytes: &'b [&'b [u8]],
}

impl<P: Payload> From<P> for New<'_, P> {
    fn from(payload: P) -> Self {
        New { payload, bytes: &[] }
    }
}

/// A stored response. A handle: its clones are the same page, all of which is one allocation.
pub struct Page<P>(ThinArc<Kept<P>, u8>);

/// What stands before the key's bytes and the caller's.
struct Kept<P> {
    key_bytes: u32,
    variant: u32,
    hash: u64,
    lease: Early,
    payload: P,
    /// What the payload owns.
    owns: Roughly,
    /// Where the index keeps it; written under the index lock only.
    slot: AtomicU32,
    /// 0 to 3, for the eviction; and the age, 0 to [`UNUSED`].
    uses: AtomicU8,
    /// How many requests it has answered; stays at the top.
    served: AtomicU16,
    /// The caller's time of the soft invalidation that touched it first, and one more; 0 for none. Never
    /// taken back.
    marked: Mark,
}

/// A lease's number in six bytes. A number that has no place in them, after nine thousand years of a thousand
/// changes a second, is taken for the last that has: earlier than it was, so that nothing is stored that
/// must not be.
#[derive(Clone, Copy)]
struct Early([u16; 3]);

impl Early {
    fn of(lease: Number) -> Early {
        let number = lease.0.min((1 << 48) - 1);
        Early([(number >> 32) as u16, (number >> 16) as u16, number as u16])
    }

    fn number(self) -> Number {
        let [high, middle, low] = self.0.map(u64::from);
        Number(high << 32 | middle << 16 | low)
    }
}

impl<P: Payload> Page<P> {
    pub(crate) fn new(key: Key<'_>, variant: u32, lease: Number, new: New<'_, P>) -> Self {
        let bytes: usize = new.bytes.iter().map(|piece| piece.len()).sum();
        let mut all = Vec::with_capacity(key.bytes.len() + bytes);
        all.extend_from_slice(key.bytes);
        new.bytes.iter().for_each(|piece| all.extend_from_slice(piece));
        let kept = Kept {
            key_bytes: u32::try_from(key.bytes.len()).expect("a key is shorter than 4 GiB"),
            variant,
            hash: key.hash,
            lease: Early::of(lease),
            owns: Roughly::of(new.payload.bytes()),
            payload: new.payload,
            slot: AtomicU32::new(NOWHERE),
            uses: AtomicU8::new(0),
            served: AtomicU16::new(0),
            marked: Mark::new(0),
        };
        Self(page_heap::apart(|| ThinArc::from_header_and_slice(kept, &all)))
    }

    /// A page that is in no store and has no key: to be read as those are that have been stored.
    pub fn apart(new: New<'_, P>) -> Self {
        Self::new(Key { bytes: &[], hash: 0 }, 0, Number(0), new)
    }
}

/// What a page takes of its allocation beside the bytes in it: itself, how many bytes there are, and how often
/// it is held.
pub(crate) const fn fixed_bytes<P>() -> usize {
    size_of::<Kept<P>>() + 2 * size_of::<usize>()
}

impl<P> Page<P> {
    fn kept(&self) -> &Kept<P> {
        &self.0.header.header
    }

    /// What the caller stored.
    pub fn payload(&self) -> &P {
        &self.kept().payload
    }

    /// The bytes that stand with the payload.
    pub fn bytes(&self) -> &[u8] {
        &self.0.slice[self.kept().key_bytes as usize..]
    }

    /// The key it is stored under.
    pub fn key(&self) -> Key<'_> {
        let kept = self.kept();
        Key { bytes: &self.0.slice[..kept.key_bytes as usize], hash: kept.hash }
    }

    /// The hash of the key it is stored under.
    pub(crate) fn hash(&self) -> u64 {
        self.kept().hash
    }

    /// Whether both are one page, not only equal.
    pub fn is(&self, other: &Page<P>) -> bool {
        std::ptr::eq(self.kept(), other.kept())
    }

    /// Which variant of its key it is; the caller's number.
    pub fn variant(&self) -> u32 {
        self.kept().variant
    }

    /// The clock's value when the render that made it began.
    pub fn lease(&self) -> Number {
        self.kept().lease.number()
    }

    /// The bytes it takes in the store, without the dependency index; up to a multiple of what allocators
    /// hand out.
    pub fn heap_bytes(&self) -> usize {
        budget::page_bytes::<P>(self.0.slice.len(), self.kept().owns.bytes())
    }

    /// Whether a soft invalidation touched it: to be treated as stale.
    pub fn is_marked(&self) -> bool {
        self.kept().marked.load(Ordering::Acquire) != 0
    }

    /// The first soft invalidation that touched it, if any did: later ones do not move it, so that "usable
    /// for so long after a change" counts from the first change it does not show.
    pub fn marked(&self) -> Option<Marked> {
        let at_ms = self.kept().marked.load(Ordering::Acquire).checked_sub(1)?;
        Some(Marked { at_ms })
    }

    /// Marks it, where it is not marked yet. Under the index lock.
    pub(crate) fn mark(&self, mark: Marked) {
        if !self.is_marked() {
            self.kept().marked.store(mark.at_ms.saturating_add(1), Ordering::Release);
        }
    }

    /// Counts a use, by which it is young. Not exact under contention, and written only when it changes: a
    /// hot page's cache line stays shared between the cores.
    pub(crate) fn used(&self) {
        let before = self.kept().uses.load(Ordering::Relaxed);
        // Used that often, and of no age.
        if before != USES_MAX {
            let uses = ((before & USES_MAX) + 1).min(USES_MAX);
            self.kept().uses.store(uses, Ordering::Relaxed);
        }
    }

    pub(crate) fn uses(&self) -> u8 {
        self.kept().uses.load(Ordering::Relaxed) & USES_MAX
    }

    /// It has so many uses, and the age that it has.
    pub(crate) fn set_uses(&self, uses: u8) {
        let with = |before: u8| Some(before & !USES_MAX | uses.min(USES_MAX));
        let byte = &self.kept().uses;
        // Always something, so it is always done.
        let _ = byte.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
    }

    /// It is the other in another form: with the same uses and of the same age.
    pub(crate) fn take_uses_of(&self, other: &Page<P>) {
        self.kept().uses.store(other.kept().uses.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Rounds since it was asked for.
    pub(crate) fn age(&self) -> u8 {
        self.kept().uses.load(Ordering::Relaxed) >> AGE_AT
    }

    /// Makes it older; its age then. Under the index lock. Whoever asks for it at this moment wins.
    pub(crate) fn grow_older(&self, older: Older) -> u8 {
        let before = self.kept().uses.load(Ordering::Relaxed);
        let age = match (older, before >> AGE_AT) {
            (Older::Anew, _) | (_, 0) => 1,
            (Older::By(rounds), age) => age.saturating_add(rounds).min(UNUSED),
        };
        let after = before & USES_MAX | age << AGE_AT;
        let byte = &self.kept().uses;
        match byte.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => age,
            Err(_) => 0,
        }
    }

    /// Counts a request that is answered with it. Not exact under contention, as a load and a store: it is
    /// for people to read, and nothing is decided by it.
    pub fn serve(&self) {
        let served = self.kept().served.load(Ordering::Relaxed);
        self.kept().served.store(served.saturating_add(1), Ordering::Relaxed);
    }

    /// How many requests it has answered, about; [`SERVED_MAX`] stands for as many or more.
    pub fn served(&self) -> u16 {
        self.kept().served.load(Ordering::Relaxed)
    }

    pub(crate) fn set_served(&self, served: u16) {
        self.kept().served.store(served, Ordering::Relaxed);
    }

    /// Whether a store keeps it. By the next moment that may have changed, unless it never was in one, or
    /// has left it.
    pub fn is_stored(&self) -> bool {
        self.slot() != NOWHERE
    }

    pub(crate) fn slot(&self) -> u32 {
        self.kept().slot.load(Ordering::Relaxed)
    }

    pub(crate) fn set_slot(&self, slot: u32) {
        self.kept().slot.store(slot, Ordering::Relaxed);
    }
}

impl<P> Clone for Page<P> {
    fn clone(&self) -> Self {
        Self(ThinArc::clone(&self.0))
    }
}

impl<P> fmt::Debug for Page<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("key", &String::from_utf8_lossy(self.key().bytes))
            .field("variant", &self.variant())
            .field("lease", &self.lease())
            .finish_non_exhaustive()
    }
}

/// The pages stored under a key: one for each variant. Cloning copies no page.
pub enum Candidates<P> {
    /// Nothing is stored.
    None,
    /// The usual case.
    One(Page<P>),
    /// Several variants, oldest first; behind one more step, so that the usual case is the smaller.
    Many(Arc<Box<[Page<P>]>>),
}

impl<P> Candidates<P> {
    /// The candidates, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Page<P>> {
        self.as_slice().iter()
    }

    /// The candidates as a slice, oldest first.
    pub fn as_slice(&self) -> &[Page<P>] {
        match self {
            Self::None => &[],
            Self::One(page) => std::slice::from_ref(page),
            Self::Many(pages) => pages,
        }
    }

    pub(crate) fn from_vec(mut pages: Vec<Page<P>>) -> Self {
        match pages.len() {
            0 => Self::None,
            1 => pages.pop().map_or(Self::None, Self::One),
            _ => Self::Many(Arc::new(pages.into())),
        }
    }
}

impl<P> fmt::Debug for Candidates<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<P> Clone for Candidates<P> {
    fn clone(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::One(page) => Self::One(page.clone()),
            Self::Many(pages) => Self::Many(Arc::clone(pages)),
        }
    }
}

impl<'c, P> IntoIterator for &'c Candidates<P> {
    type Item = &'c Page<P>;
    type IntoIter = std::slice::Iter<'c, Page<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Payload for [u64; 2] {
        fn bytes(&self) -> usize {
            100
        }
    }

    #[test]
    fn a_page_is_forty_bytes_and_its_payload() {
        assert_eq!(size_of::<Kept<[u64; 2]>>(), 40 + 16);
        let page = Page::new(Key { bytes: b"key", hash: 7 }, 1, Number(9), New::from([1, 2]));
        assert_eq!(
            (page.lease(), page.key().bytes(), page.bytes()),
            (Number(9), &b"key"[..], &[][..])
        );
        assert_eq!(
            page.heap_bytes(),
            budget::heap((40 + 16 + 16 + 3_usize).next_multiple_of(8)) + 112
        );
    }

    #[test]
    fn a_number_that_has_no_place_is_an_earlier_one() {
        for number in [0, 1, 65_536, 0x1234_5678_9abc, (1 << 48) - 1] {
            assert_eq!(Early::of(Number(number)).number(), Number(number));
        }
        assert_eq!(Early::of(Number(u64::MAX)).number(), Number((1 << 48) - 1));
    }
}
