//! The system's allocator with counts beside it, for tests of what is allocated and what is held.
//!
//! What is held is counted for the whole process: a test of it is the only one in its binary.

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

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract; the
// counters are an atomic and a constant-initialised thread local without destructor, so they
// allocate nothing themselves. `realloc` is the trait's own: a new place, a copy, the old one freed.
#[allow(unsafe_code, reason = "a global allocator cannot be written without it")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(taken_bytes(layout.size()), Relaxed);
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(taken_bytes(layout.size()), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What a general-purpose allocator takes for an allocation of so many bytes: steps of 16, with 8
/// of its own, and never less than 32.
pub fn taken_bytes(size: usize) -> usize {
    ((size + 8 + 15) & !15).max(32)
}

/// The bytes that the process holds now, each allocation counted with what it takes.
pub fn held_bytes() -> usize {
    HELD.load(Relaxed)
}

/// How many allocations this thread has made so far.
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}
