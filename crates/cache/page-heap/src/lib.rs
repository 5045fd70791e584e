//! Memory for what stays, apart from what comes and goes.
//!
//! Pages stay for hours; what it takes to make one (buffers, header maps, tasks) for milliseconds. In one heap
//! the places that the latter leave are filled by pages, each of which leaves a remainder that is too small for
//! the next one, and what comes and goes takes new places: a fifth of the heap was such remainders
//! ([0067](../../../docs/decisions/0067-a-heap-for-pages.md)). So what is allocated within [`apart`] comes out
//! of a region of its own, and everything else from the system's allocator, as ever.
//!
//! Invariants: an address is the region's or the system's, and that alone decides who frees it. Where the region
//! cannot be had, or is used up, what is to be apart comes from the system's allocator. One lock, the region's:
//! no other is taken under it, and nothing is allocated under it elsewhere.
#![allow(unsafe_code, reason = "a global allocator cannot be written without it")]

mod region;

pub use region::{taken_bytes, use_huge_pages};

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What is longer comes from the system's allocator all the same: what it leaves behind when it goes is worth
/// giving back to the system at once.
pub const LONGEST_BYTES: usize = 1 << 20;

/// The allocator, for a binary's `#[global_allocator]`. Without it [`apart`] does nothing.
///
/// ```
/// use page_heap::{PageHeap, apart, taken_bytes};
///
/// #[global_allocator]
/// static HEAP: PageHeap = PageHeap;
///
/// let before = taken_bytes();
/// let page: Box<[u8]> = apart(|| vec![b'x'; 1 << 20].into());
/// assert!(taken_bytes() >= before + page.len());
/// ```
#[derive(Debug)]
pub struct PageHeap;

thread_local! {
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Allocates what `make` does where pages are. What it returns, and whatever else it has made, may be freed
/// anywhere and by any thread.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    let _ends = Scope { before: APART.replace(true) };
    make()
}

/// Puts back what was before, in a panic too.
struct Scope {
    before: bool,
}

impl Drop for Scope {
    fn drop(&mut self) {
        APART.set(self.before);
    }
}

/// Whether this is to come out of the region.
fn is_apart(layout: Layout) -> bool {
    APART.get() && layout.size() <= LONGEST_BYTES && layout.align() <= region::ALIGNMENT
}

// SAFETY: what the system's allocator has given goes back to it and what the region has given to the region, told
// apart by their addresses; both keep the contract. `APART` is a constant-initialised thread local without
// destructor, so it allocates nothing and is there until the thread's end.
unsafe impl GlobalAlloc for PageHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_apart(layout) {
            let pointer = region::allocate(layout.size());
            if !pointer.is_null() {
                return pointer;
            }
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if region::has(pointer) {
            // SAFETY: the region has given it, and the caller promises that nobody uses it any more.
            return unsafe { region::free(pointer) };
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_apart(layout) {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise is passed on.
        let pointer = unsafe { self.alloc(layout) };
        if !pointer.is_null() {
            // SAFETY: so many bytes were just allocated there.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !region::has(pointer) {
            // SAFETY: the caller's promise is passed on.
            return unsafe { System.realloc(pointer, layout, bytes) };
        }
        // SAFETY: the caller promises that `bytes`, rounded up to the alignment, is a size.
        let grown = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: `bytes` is not 0, as the caller promises.
        let new = unsafe { self.alloc(grown) };
        if !new.is_null() {
            // SAFETY: both are at least so long, and the new one is nobody else's.
            unsafe { new.copy_from_nonoverlapping(pointer, layout.size().min(bytes)) };
            // SAFETY: the region has given it, and from now on the caller has the new one.
            unsafe { region::free(pointer) };
        }
        new
    }
}
