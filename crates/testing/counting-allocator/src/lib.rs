//! The system allocator with counters, for tests of allocations and memory use.
//!
//! Memory in use is counted for the whole process: a test of it must be the only test in its binary.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The allocator, for a test binary's `#[global_allocator]`.
///
/// ```
/// use counting_allocator::{Counting, allocations, held_bytes, taken_bytes};
///
/// #[global_allocator]
/// static COUNTING: Counting = Counting;
///
/// let (before, held) = (allocations(), held_bytes());
/// let page = vec![0_u8; 100];
/// assert_eq!(allocations() - before, 1);
/// assert!(held_bytes() - held >= taken_bytes(page.len()));
/// ```
#[derive(Debug)]
pub struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded unchanged to the system allocator, which fulfils the contract. The counters
// are an atomic and a const-initialised thread local without a destructor, so they do not allocate. `realloc`
// is the default of the trait: a new allocation, a copy, the old one freed.
#[allow(unsafe_code, reason = "a global allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(taken_bytes(layout.size()), Relaxed);
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller fulfils the contract of the method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(taken_bytes(layout.size()), Relaxed);
        // SAFETY: the caller fulfils the contract of the method.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The memory in bytes that a general-purpose allocator needs for an allocation of `size` bytes: steps of 16,
/// with 8 bytes of overhead, at least 32.
pub fn taken_bytes(size: usize) -> usize {
    ((size + 8 + 15) & !15).max(32)
}

/// The memory in use by the process in bytes, where each allocation counts with [`taken_bytes`].
pub fn held_bytes() -> usize {
    HELD.load(Relaxed)
}

/// The number of allocations that this thread has made so far.
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}
