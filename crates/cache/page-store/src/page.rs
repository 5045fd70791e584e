//! A page: one stored response with its key, and the candidates for a request.
//!
//! The store does not interpret the caller's [`Payload`], which holds headers and content. A stored page
//! never changes, except for its mark (soft invalidation) and its use counts. A freshened or validated
//! response is a new page in the same place. The store returns candidates; `http-cache` selects among them.

use crate::budget::{self, ApproxBytes};
use crate::lease::Number;
use crate::sync::AtomicU64 as Mark;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
use triomphe::ThinArc;

/// The caller's part of a page, beside its [bytes](PageInput).
pub trait Payload: Send + Sync + 'static {
    /// The heap bytes that this payload owns, in addition to its own `size_of`. It must not change while
    /// stored.
    fn bytes(&self) -> usize;

    /// Which clients may receive this page under its key. Called after a change has affected the page,
    /// never under a lock.
    fn audience(&self) -> Audience {
        Audience::Somebody
    }
}

/// The clients that may receive a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All clients: the page may be refreshed without a particular client's request.
    Anybody,
    /// One owner, or clients whose requests share some property.
    Somebody,
}

/// A cache key: bytes that the caller builds from scheme, host, path and query, and their hash. It borrows
/// the bytes, so that a lookup can reuse a buffer. [`Store::key`](crate::Store::key) creates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) hash: u64,
}

impl<'b> Key<'b> {
    /// The bytes of the key.
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
    /// The key as a borrowed value.
    pub fn as_key(&self) -> Key<'_> {
        Key { bytes: &self.bytes, hash: self.hash }
    }
}

/// The soft invalidation of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftMark {
    /// The time of the change in milliseconds of the caller's clock; 0 if the change had none.
    pub at_ms: u64,
}

/// The slot of a page that is in no store.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The maximum of a page's use count, which takes the lowest bits of its byte.
const USES_MAX: u8 = 3;
/// The position of the page's age in the same byte: scans since the last use (`inactive.rs`).
const AGE_AT: u32 = 2;

/// The age at which a page leaves: no request since the last eight scans and the one before them.
pub(crate) const INACTIVE: u8 = 9;

/// The maximum of a page's count of requests.
pub const SERVED_MAX: u16 = u16::MAX;

/// The amount by which a scan increases the age of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeStep {
    /// This scan stands for so many scans. A page that was used since the last scan ages by one only.
    By(u8),
    /// As if this were the first scan, because the interval has changed or there was no scan for long.
    Anew,
}

/// The contents of a new page: a payload, and bytes that share one allocation with it.
pub struct PageInput<'b, P> {
    /// The payload of the caller.
    pub payload: P,
    /// The bytes, in pieces; [`Page::bytes`] returns them concatenated.
    pub bytes: &'b [&'b [u8]],
}

impl<P: Payload> From<P> for PageInput<'_, P> {
    fn from(payload: P) -> Self {
        PageInput { payload, bytes: &[] }
    }
}

/// A stored response. A handle: clones are the same page. A page is one allocation.
pub struct Page<P>(ThinArc<PageHeader<P>, u8>);

/// The header of the allocation, before the bytes of the key and of the caller.
struct PageHeader<P> {
    key_bytes: u32,
    variant: u32,
    hash: u64,
    lease: PackedLease,
    payload: P,
    /// The heap bytes that the payload owns.
    owns: ApproxBytes,
    /// The page's place in the index; written under the index lock only.
    slot: AtomicU32,
    /// The use count for the eviction, 0 to 3, and the age, 0 to [`INACTIVE`].
    uses: AtomicU8,
    /// The number of requests answered; it stops at its maximum.
    served: AtomicU16,
    /// The caller's time of the first soft invalidation of the page, plus one; 0 if there was none. Never
    /// reset.
    marked: Mark,
}

/// The number of a lease in six bytes. A larger number is stored as the maximum, which 1,000 changes a
/// second reach after nine thousand years. The page then counts as older than it is, so nothing is stored
/// wrongly.
#[derive(Clone, Copy)]
struct PackedLease([u16; 3]);

impl PackedLease {
    fn of(lease: Number) -> PackedLease {
        let number = lease.0.min((1 << 48) - 1);
        PackedLease([(number >> 32) as u16, (number >> 16) as u16, number as u16])
    }

    fn number(self) -> Number {
        let [high, middle, low] = self.0.map(u64::from);
        Number(high << 32 | middle << 16 | low)
    }
}

impl<P: Payload> Page<P> {
    pub(crate) fn new(key: Key<'_>, variant: u32, lease: Number, new: PageInput<'_, P>) -> Self {
        let bytes: usize = new.bytes.iter().map(|piece| piece.len()).sum();
        let mut all = Vec::with_capacity(key.bytes.len() + bytes);
        all.extend_from_slice(key.bytes);
        new.bytes.iter().for_each(|piece| all.extend_from_slice(piece));
        let kept = PageHeader {
            key_bytes: u32::try_from(key.bytes.len()).expect("a key is shorter than 4 GiB"),
            variant,
            hash: key.hash,
            lease: PackedLease::of(lease),
            owns: ApproxBytes::of(new.payload.bytes()),
            payload: new.payload,
            slot: AtomicU32::new(NOWHERE),
            uses: AtomicU8::new(0),
            served: AtomicU16::new(0),
            marked: Mark::new(0),
        };
        Self(page_heap::apart(|| ThinArc::from_header_and_slice(kept, &all)))
    }

    /// A page that is in no store and has no key, for the code that reads stored pages.
    pub fn apart(new: PageInput<'_, P>) -> Self {
        Self::new(Key { bytes: &[], hash: 0 }, 0, Number(0), new)
    }
}

/// The bytes of a page's allocation in addition to the key and the caller's bytes: the header, the length
/// and the reference count.
const fn fixed_bytes<P>() -> usize {
    size_of::<PageHeader<P>>() + 2 * size_of::<usize>()
}

impl<P> Page<P> {
    #[inline]
    fn kept(&self) -> &PageHeader<P> {
        &self.0.header.header
    }

    /// The payload of the caller.
    pub fn payload(&self) -> &P {
        &self.kept().payload
    }

    /// The bytes of the caller.
    pub fn bytes(&self) -> &[u8] {
        &self.0.slice[self.kept().key_bytes as usize..]
    }

    /// The key under which the page is stored.
    #[inline]
    pub fn key(&self) -> Key<'_> {
        let kept = self.kept();
        Key { bytes: &self.0.slice[..kept.key_bytes as usize], hash: kept.hash }
    }

    /// The hash of the key under which the page is stored.
    pub(crate) fn hash(&self) -> u64 {
        self.kept().hash
    }

    /// Whether both handles are the same page, not only equal ones.
    pub fn is(&self, other: &Page<P>) -> bool {
        std::ptr::eq(self.kept(), other.kept())
    }

    /// The caller's number of the variant.
    pub fn variant(&self) -> u32 {
        self.kept().variant
    }

    /// The clock's value when the page's render began.
    pub fn lease(&self) -> Number {
        self.kept().lease.number()
    }

    /// The bytes of the page in the store without the dependency index, rounded as allocators round them.
    pub fn heap_bytes(&self) -> usize {
        budget::page_bytes(fixed_bytes::<P>(), self.0.slice.len(), self.kept().owns.bytes())
    }

    /// Whether a soft invalidation has marked the page: it must be treated as stale.
    pub fn is_marked(&self) -> bool {
        self.kept().marked.load(Ordering::Acquire) != 0
    }

    /// The first soft invalidation of the page, if there was one. Later ones do not change it: the time
    /// limit for a stale page counts from the first change that the page does not show.
    pub fn marked(&self) -> Option<SoftMark> {
        let at_ms = self.kept().marked.load(Ordering::Acquire).checked_sub(1)?;
        Some(SoftMark { at_ms })
    }

    /// Marks the page, unless it is marked already. Under the index lock.
    pub(crate) fn mark(&self, mark: SoftMark) {
        if !self.is_marked() {
            self.kept().marked.store(mark.at_ms.saturating_add(1), Ordering::Release);
        }
    }

    /// Counts a use and resets the age. It is not exact under contention. It writes only if the value
    /// changes, which keeps the cache line of a hot page shared between the cores.
    pub(crate) fn used(&self) {
        let before = self.kept().uses.load(Ordering::Relaxed);
        // The count is at its maximum and the age is 0.
        if before != USES_MAX {
            let uses = ((before & USES_MAX) + 1).min(USES_MAX);
            self.kept().uses.store(uses, Ordering::Relaxed);
        }
    }

    pub(crate) fn uses(&self) -> u8 {
        self.kept().uses.load(Ordering::Relaxed) & USES_MAX
    }

    /// Sets the use count and keeps the age.
    pub(crate) fn set_uses(&self, uses: u8) {
        let with = |before: u8| Some(before & !USES_MAX | uses.min(USES_MAX));
        let byte = &self.kept().uses;
        // The closure always returns `Some`, so the update always succeeds.
        let _ = byte.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
    }

    /// Takes over the use count and the age of the same response in another form.
    pub(crate) fn take_uses_of(&self, other: &Page<P>) {
        self.kept().uses.store(other.kept().uses.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The number of scans since the last use.
    pub(crate) fn age(&self) -> u8 {
        self.kept().uses.load(Ordering::Relaxed) >> AGE_AT
    }

    /// Increases the age and returns it, under the index lock. A concurrent lookup wins: then the age is 0.
    pub(crate) fn grow_older(&self, older: AgeStep) -> u8 {
        let before = self.kept().uses.load(Ordering::Relaxed);
        let age = match (older, before >> AGE_AT) {
            (AgeStep::Anew, _) | (_, 0) => 1,
            (AgeStep::By(rounds), age) => age.saturating_add(rounds).min(INACTIVE),
        };
        let after = before & USES_MAX | age << AGE_AT;
        let byte = &self.kept().uses;
        match byte.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => age,
            Err(_) => 0,
        }
    }

    /// Counts a request that the page answers. It is a load and a store, so it is not exact under
    /// contention; it is for display, and no decision depends on it.
    pub fn serve(&self) {
        let served = self.kept().served.load(Ordering::Relaxed);
        self.kept().served.store(served.saturating_add(1), Ordering::Relaxed);
    }

    /// The approximate number of requests answered; [`SERVED_MAX`] stands for that many or more.
    pub fn served(&self) -> u16 {
        self.kept().served.load(Ordering::Relaxed)
    }

    pub(crate) fn set_served(&self, served: u16) {
        self.kept().served.store(served, Ordering::Relaxed);
    }

    /// Whether the page is in a store. The result may be outdated at once, unless the page was never stored
    /// or has left.
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
    /// One page, the usual case.
    One(Page<P>),
    /// Several variants, oldest first. They are behind a pointer, which keeps the usual case small.
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
        assert_eq!(size_of::<PageHeader<[u64; 2]>>(), 40 + 16);
        let page = Page::new(Key { bytes: b"key", hash: 7 }, 1, Number(9), PageInput::from([1, 2]));
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
            assert_eq!(PackedLease::of(Number(number)).number(), Number(number));
        }
        assert_eq!(PackedLease::of(Number(u64::MAX)).number(), Number((1 << 48) - 1));
    }
}
