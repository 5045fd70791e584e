//! A separate heap for stored pages, so that long-lived and short-lived allocations do not mix.
//!
//! Pages live for hours; the buffers, header maps and tasks of a request live for milliseconds. In a shared
//! heap, pages fill the gaps that requests leave, and each gap keeps a remainder too small for the next
//! page. These remainders were a fifth of the heap
//! ([0067](../../../docs/decisions/page-memory.md)). Allocations made within [`apart`] therefore
//! come from a region of their own; all others come from the system's allocator.
//!
//! Invariants: an address belongs either to the region or to the system, and the address alone decides
//! which of them frees it. If the region is not available or full, the system's allocator is used. There is
//! one lock, that of the region; no other lock is taken under it, and no other allocator is called under
//! it.
#![allow(unsafe_code, reason = "a global allocator cannot be written without it")]

mod region;

pub use region::{taken_bytes, use_huge_pages};

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The longest allocation that the region serves, in bytes. Longer ones come from the system's allocator,
/// which returns their memory to the system as soon as they are freed.
pub const LONGEST_BYTES: usize = 1 << 20;

/// The allocator, for a binary's `#[global_allocator]`. Without it, [`apart`] has no effect.
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

/// Runs `make` with its allocations placed in the region for pages. The result, and everything else that
/// `make` has allocated, may be freed anywhere and by any thread.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    let _ends = Scope { before: APART.replace(true) };
    make()
}

/// Restores the previous setting at the end of [`apart`], also after a panic.
struct Scope {
    before: bool,
}

impl Drop for Scope {
    fn drop(&mut self) {
        APART.set(self.before);
    }
}

/// Whether an allocation of this layout is to come from the region.
fn is_apart(layout: Layout) -> bool {
    APART.get() && layout.size() <= LONGEST_BYTES && layout.align() <= region::ALIGNMENT
}

// SAFETY: each allocation is freed by the allocator that made it, which its address identifies; both of
// them keep the contract. `APART` is a constant-initialised thread local without a destructor: it allocates
// nothing and exists until the thread ends.
unsafe impl GlobalAlloc for PageHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_apart(layout) {
            let pointer = region::allocate(layout.size());
            if !pointer.is_null() {
                return pointer;
            }
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if region::has(pointer) {
            // SAFETY: the region has allocated it, and the caller guarantees that it is not used any more.
            return unsafe { region::free(pointer) };
        }
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !is_apart(layout) {
            // SAFETY: the caller upholds the contract of `alloc_zeroed`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        let pointer = unsafe { self.alloc(layout) };
        if !pointer.is_null() {
            // SAFETY: `layout.size()` bytes were just allocated there.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !region::has(pointer) {
            // SAFETY: the caller upholds the contract of `realloc`.
            return unsafe { System.realloc(pointer, layout, bytes) };
        }
        // SAFETY: the caller guarantees that `bytes`, rounded up to the alignment, is a valid size.
        let grown = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        // SAFETY: `bytes` is not 0, as the caller guarantees.
        let new = unsafe { self.alloc(grown) };
        if !new.is_null() {
            // SAFETY: both allocations are at least this long, and the new one is not shared.
            unsafe { new.copy_from_nonoverlapping(pointer, layout.size().min(bytes)) };
            // SAFETY: the region has allocated it, and the caller uses only the new allocation from now on.
            unsafe { region::free(pointer) };
        }
        new
    }
}
