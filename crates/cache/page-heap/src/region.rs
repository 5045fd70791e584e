//! The region: a reserved range of addresses as large as the machine's memory. Its used part starts at the
//! beginning and has no gaps. Allocations are packed into it by dlmalloc (best fit, 8 bytes of overhead
//! each).
//!
//! One lock guards the region. `FROM` and `LENGTH` are written once, under that lock, before the first
//! address is returned. Free memory behind the last allocation is returned to the system once it reaches
//! two megabytes.
//!
//! Once the region is large, the used part is advised for transparent huge pages. The advice covers only
//! memory that has pages already, so the kernel collapses them in the background and no allocation waits
//! for it ([0068](../../../docs/decisions/page-memory.md)).

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The alignment of every allocation in the region, in bytes.
pub(crate) const ALIGNMENT: usize = 2 * size_of::<usize>();
/// The region is made usable in steps of this many bytes.
const STEP_BYTES: usize = 1 << 20;
/// The size and alignment of a huge page, in bytes.
const HUGE_BYTES: usize = 2 << 20;
/// Huge pages are requested only once this many bytes are used: a smaller region fits the TLB without them.
const LARGE_BYTES: usize = 64 << 20;

static FROM: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes, from the beginning of the region, for which huge pages have been requested.
static ADVISED: AtomicUsize = AtomicUsize::new(0);
static HUGE: AtomicBool = AtomicBool::new(false);
static HEAP: Mutex<Dlmalloc<Addresses>> = Mutex::new(
    const {
        let mut heap = Dlmalloc::new_with_allocator(Addresses {
            start: AtomicPtr::new(null_mut()),
            was_attempted: AtomicBool::new(false),
        });
        assert!(heap.set_granularity(STEP_BYTES), "a power of two");
        heap
    },
);

/// Requests huge pages for the whole region as soon as it is large, not only for the part that is used.
///
/// The kernel then supplies a huge page at the first access, if it has one for processes that request them.
/// The thread that stores a page waits for the kernel while it does so.
pub fn use_huge_pages() {
    HUGE.store(true, Relaxed);
}

/// The bytes that the region uses: up to the end of the last allocation, plus at most two megabytes.
pub fn taken_bytes() -> usize {
    USED.load(Relaxed)
}

/// Whether this address lies in the region.
pub(crate) fn has(pointer: *mut u8) -> bool {
    // A thread that reads the length also sees the start: the length is stored last, with `Release`.
    let length = LENGTH.load(Acquire);
    pointer.addr().wrapping_sub(FROM.load(Relaxed)) < length
}

/// Allocates this many bytes, aligned to [`ALIGNMENT`]. Returns null if the region is full or not
/// available.
pub(crate) fn allocate(bytes: usize) -> *mut u8 {
    // SAFETY: `ALIGNMENT` is the allocator's own alignment.
    unsafe { heap().malloc(bytes, ALIGNMENT) }
}

/// Frees an allocation of the region.
///
/// # Safety
/// The pointer was returned by [`allocate`] and is not used any more.
pub(crate) unsafe fn free(pointer: *mut u8) {
    // SAFETY: the caller upholds the contract of this function, which is that of `c_free`.
    unsafe { heap().c_free(pointer) }
}

fn heap() -> MutexGuard<'static, Dlmalloc<Addresses>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory source of the allocator: the region's addresses, in ascending order.
struct Addresses {
    /// The start of the region; null while it is not reserved.
    start: AtomicPtr<u8>,
    /// Whether the reservation was attempted. A failed reservation is not repeated for every page.
    was_attempted: AtomicBool,
}

impl Addresses {
    /// The start of the region; reserves the region at the first call. Null if the reservation failed.
    fn start(&self) -> *mut u8 {
        let start = self.start.load(Relaxed);
        if !start.is_null() || self.was_attempted.swap(true, Relaxed) {
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

    /// Requests huge pages once the region is large: for the used part in whole huge pages, or for
    /// everything.
    ///
    /// `used` is the number of bytes used before the current growth. The last step of it may still be
    /// untouched; all memory before it has pages, so a huge page in their place takes no additional memory.
    fn advise_huge_pages(start: *mut u8, used: usize) {
        let full = used.saturating_sub(STEP_BYTES);
        let full = full - full % HUGE_BYTES;
        let wanted = if HUGE.load(Relaxed) { LENGTH.load(Relaxed) } else { full };
        let asked = ADVISED.load(Relaxed);
        if full < LARGE_BYTES || wanted <= asked {
            return;
        }
        // SAFETY: the range lies within the mapping, and the advice changes none of its contents. A kernel
        // without huge pages returns an error and leaves everything as it was.
        let _ = unsafe { madvise(start.add(asked).cast(), wanted - asked, Advice::LinuxHugepage) };
        ADVISED.store(wanted, Relaxed);
    }
}

// SAFETY: every byte of the mapping is handed out once, in ascending order, and only the end is taken back.
unsafe impl Allocator for Addresses {
    fn alloc(&self, bytes: usize) -> (*mut u8, usize, u32) {
        let (start, used) = (self.start(), USED.load(Relaxed));
        if start.is_null() || LENGTH.load(Relaxed) - used < bytes {
            return (null_mut(), 0, 0);
        }
        // SAFETY: within the mapping, as the check above has shown.
        let piece = unsafe { start.add(used) };
        let usable = MprotectFlags::READ | MprotectFlags::WRITE;
        // Up to the end of a huge page: the kernel creates none that is only partly accessible.
        let protected = (used + bytes).next_multiple_of(HUGE_BYTES) - used;
        // SAFETY: within the mapping, which consists of whole huge pages. These addresses belong to this
        // process alone and have not been handed out.
        match unsafe { mprotect(piece.cast(), protected, usable) } {
            Ok(()) => {
                USED.store(used + bytes, Relaxed);
                Self::advise_huge_pages(start, used);
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
        // SAFETY: within the mapping; the allocator guarantees that nothing is allocated there any more.
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

/// Reserves a range of addresses as large as the machine's memory. The range takes no memory and no commit
/// charge until it is made usable. Returns null and 0 if the reservation fails.
fn reserve() -> (*mut u8, usize) {
    let machine = rustix::system::sysinfo();
    let memory = u64::from(machine.mem_unit).saturating_mul(machine.totalram);
    let Some(length) =
        usize::try_from(memory).ok().and_then(|b| b.checked_next_multiple_of(HUGE_BYTES))
    else {
        return (null_mut(), 0);
    };
    // SAFETY: a new mapping at an address that the kernel chooses.
    let mapped = unsafe {
        mmap_anonymous(null_mut(), length + HUGE_BYTES, ProtFlags::empty(), MapFlags::PRIVATE)
    };
    let Ok(mapped) = mapped else { return (null_mut(), 0) };
    let aside = mapped.addr().next_multiple_of(HUGE_BYTES) - mapped.addr();
    // SAFETY: within the mapping, which is longer by one huge page.
    let start = unsafe { mapped.cast::<u8>().add(aside) };
    (start, length)
}
