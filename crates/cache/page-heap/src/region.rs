//! The region: addresses as many as the machine has memory, of which the first are used, without a gap, and an
//! allocator that packs what is asked for into them (dlmalloc: the best fit of what is free, 8 bytes beside each).
//!
//! Guarded by one lock; `FROM` and `LENGTH` are written once, under it, before anybody is given an address in
//! there. Memory behind the last that is used goes back to the system when there are two megabytes of it.
//!
//! Once it is large, what is used of it may be in huge pages. That is said of memory that has pages in it already,
//! so the kernel puts it together in the background, and nobody who stores a page waits for it
//! ([0068](../../../docs/decisions/0068-pages-in-huge-pages.md)).

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What everything in the region is aligned to.
pub(crate) const ALIGNMENT: usize = 2 * size_of::<usize>();
/// The region is made usable in steps of so many bytes.
const STEP_BYTES: usize = 1 << 20;
/// Huge pages begin at multiples of this.
const HUGE_BYTES: usize = 2 << 20;
/// So much is used before any of it is to be in huge pages: what is less fits what the processor remembers of the
/// page tables.
const LARGE_BYTES: usize = 64 << 20;

static FROM: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// From the beginning of the region, the bytes for which huge pages have been asked.
static ASKED: AtomicUsize = AtomicUsize::new(0);
static HUGE: AtomicBool = AtomicBool::new(false);
static HEAP: Mutex<Dlmalloc<Addresses>> = Mutex::new(
    const {
        let mut heap = Dlmalloc::new_with_allocator(Addresses {
            start: AtomicPtr::new(null_mut()),
            was_asked_for: AtomicBool::new(false),
        });
        assert!(heap.set_granularity(STEP_BYTES), "a power of two");
        heap
    },
);

/// Has the region in huge pages as it grows, once it is large, and not only what is used of it: at once, where the
/// system has them for those that ask, but whoever stores a page waits for the kernel meanwhile.
pub fn use_huge_pages() {
    HUGE.store(true, Relaxed);
}

/// The bytes that are in use by the region: up to the last that is allocated, and up to two megabytes more.
pub fn taken_bytes() -> usize {
    USED.load(Relaxed)
}

/// Whether this address is in the region.
pub(crate) fn has(pointer: *mut u8) -> bool {
    // Whoever sees the length sees where it begins.
    let length = LENGTH.load(Acquire);
    pointer.addr().wrapping_sub(FROM.load(Relaxed)) < length
}

/// So many bytes, aligned to [`ALIGNMENT`]; null where there are none.
pub(crate) fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: the alignment is one that it has for everything.
    unsafe { heap().malloc(bytes, ALIGNMENT) }
}

/// Frees what was allocated.
///
/// # Safety
/// [`allocate`] has given it, and nobody uses it any more.
pub(crate) unsafe fn free(pointer: *mut u8) {
    // SAFETY: the caller's promise is passed on.
    unsafe { heap().c_free(pointer) }
}

fn heap() -> MutexGuard<'static, Dlmalloc<Addresses>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the allocator has its memory from: the region's addresses, one after the other.
struct Addresses {
    /// Where the region begins; null as long as it is not there.
    start: AtomicPtr<u8>,
    /// Whether it was asked for: where it could not be had once, it is not asked for again at each page.
    was_asked_for: AtomicBool,
}

impl Addresses {
    /// Where the region begins, which is reserved now if it was not before.
    fn start(&self) -> *mut u8 {
        let start = self.start.load(Relaxed);
        if !start.is_null() || self.was_asked_for.swap(true, Relaxed) {
            return start;
        }
        let (start, length) = reserve();
        if !start.is_null() {
            self.start.store(start, Relaxed);
            FROM.store(start.addr(), Relaxed);
            LENGTH.store(length, Release);
        }
        start
    }

    /// Asks for huge pages, once much is used: for what is used, in whole ones, or for all. `used` is what was
    /// there before more was needed: the last step of it may have nothing in it yet, all else has pages, so that
    /// a huge one in their place takes no more memory.
    fn ask_for_huge_pages(start: *mut u8, used: usize) {
        let full = used.saturating_sub(STEP_BYTES);
        let full = full - full % HUGE_BYTES;
        let wanted = if HUGE.load(Relaxed) { LENGTH.load(Relaxed) } else { full };
        let asked = ASKED.load(Relaxed);
        if full < LARGE_BYTES || wanted <= asked {
            return;
        }
        // SAFETY: within the mapping, and it changes nothing of what is there. Where the kernel has no huge pages
        // it says no, and all is as it was.
        let _ = unsafe { madvise(start.add(asked).cast(), wanted - asked, Advice::LinuxHugepage) };
        ASKED.store(wanted, Relaxed);
    }
}

// SAFETY: it gives every byte of its own mapping once, one piece behind the other, and takes back only the end.
unsafe impl Allocator for Addresses {
    fn alloc(&self, bytes: usize) -> (*mut u8, usize, u32) {
        let (start, used) = (self.start(), USED.load(Relaxed));
        if start.is_null() || LENGTH.load(Relaxed) - used < bytes {
            return (null_mut(), 0, 0);
        }
        // SAFETY: within the mapping, as was just looked at.
        let piece = unsafe { start.add(used) };
        let usable = MprotectFlags::READ | MprotectFlags::WRITE;
        // Up to the end of a huge page: the kernel has none for what is usable in part.
        let protected = (used + bytes).next_multiple_of(HUGE_BYTES) - used;
        // SAFETY: within the mapping, which has whole huge pages; these addresses are ours alone, and nobody has
        // been given them.
        match unsafe { mprotect(piece.cast(), protected, usable) } {
            Ok(()) => {
                USED.store(used + bytes, Relaxed);
                Self::ask_for_huge_pages(start, used);
                (piece, bytes, 0)
            }
            Err(_) => (null_mut(), 0, 0),
        }
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, pointer: *mut u8, before: usize, after: usize) -> bool {
        let used = USED.load(Relaxed);
        if pointer.addr() + before != FROM.load(Relaxed) + used {
            return false;
        }
        // SAFETY: within the mapping; the allocator says that nothing is there any more.
        let given_back =
            unsafe { madvise(pointer.add(after).cast(), before - after, Advice::LinuxDontNeed) };
        if given_back.is_ok() {
            USED.store(used - (before - after), Relaxed);
        }
        given_back.is_ok()
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

/// Reserves as many addresses as the machine has bytes of memory: they are neither memory nor promised any until
/// they are made usable. Null where that is not to be had.
fn reserve() -> (*mut u8, usize) {
    let machine = rustix::system::sysinfo();
    let memory = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    let Some(length) =
        usize::try_from(memory).ok().and_then(|b| b.checked_next_multiple_of(HUGE_BYTES))
    else {
        return (null_mut(), 0);
    };
    // SAFETY: a new mapping, where there is none.
    let mapped = unsafe {
        mmap_anonymous(null_mut(), length + HUGE_BYTES, ProtFlags::empty(), MapFlags::PRIVATE)
    };
    let Ok(mapped) = mapped else { return (null_mut(), 0) };
    let aside = mapped.addr().next_multiple_of(HUGE_BYTES) - mapped.addr();
    // SAFETY: within the mapping, which is longer by more than that.
    let start = unsafe { mapped.cast::<u8>().add(aside) };
    (start, length)
}
