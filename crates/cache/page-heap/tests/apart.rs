//! Pages in the region keep their contents, are packed densely, and their memory is returned, while other
//! allocations come and go. There is one test in this program, because [`taken_bytes`] counts for the whole
//! process.

use page_heap::{LONGEST_BYTES, PageHeap, apart, taken_bytes};
use std::thread;

#[global_allocator]
static HEAP: PageHeap = PageHeap;

const PAGES: usize = 40_000;

/// Lengths of pages, the same for the same seed, from 1 to 4,096 bytes.
fn lengths(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 52) as usize + 1
    })
}

fn page(length: usize) -> Box<[u8]> {
    apart(|| vec![length as u8; length].into_boxed_slice())
}

fn is_whole(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == page.len() as u8)
}

/// Creates pages in one thread and replaces half of them, while other threads do the same.
fn come_and_go(seed: u64) -> Vec<Box<[u8]>> {
    let mut pages: Vec<_> = lengths(seed).take(PAGES).map(page).collect();
    for (at, length) in (0..PAGES).step_by(2).zip(lengths(seed + 1)) {
        // A growing vector is copied out of the region or within it.
        let mut grown = std::mem::take(&mut pages[at]).into_vec();
        assert!(is_whole(&grown));
        grown.resize(8000, 0);
        pages[at] = page(length);
    }
    pages
}

#[test]
fn pages_are_intact_and_packed_and_their_memory_is_returned() {
    assert_eq!(taken_bytes(), 0, "nothing before the first page");
    let kept: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=4).map(|seed| scope.spawn(move || come_and_go(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
    });
    assert!(kept.iter().all(|page| is_whole(page)));
    let bytes: usize = kept.iter().map(|page| page.len() + 16).sum();
    let taken = taken_bytes();
    assert!(taken >= bytes - 16 * kept.len(), "{taken} taken for {bytes}");
    assert!(taken < bytes + bytes / 8, "{taken} taken for {bytes}");
    // Freed in an order in which neighbours are not freed together.
    let (even, odd): (Vec<_>, Vec<_>) =
        kept.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    drop(even);
    assert!(odd.iter().all(|(_, page)| is_whole(page)));
    drop(odd);
    assert!(taken_bytes() <= 4 << 20, "{} bytes are kept for nothing", taken_bytes());

    let before = taken_bytes();
    let long: Box<[u8]> = apart(|| vec![1; LONGEST_BYTES + 1].into());
    let zeroed: Box<[u8]> = apart(|| vec![0; 5000].into());
    assert!(long.iter().all(|byte| *byte == 1) && zeroed.iter().all(|byte| *byte == 0));
    assert!(taken_bytes() < before + LONGEST_BYTES, "what is long is not there");
}
