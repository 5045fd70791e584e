//! Huge pages are requested for the used part of a large region only, and for the whole region after
//! [`use_huge_pages`]. There is one test in this program, because [`taken_bytes`] counts for the whole
//! process.

use page_heap::{PageHeap, apart, taken_bytes, use_huge_pages};
use std::fs;

#[global_allocator]
static HEAP: PageHeap = PageHeap;

const MIB: usize = 1 << 20;

fn page() -> Box<[u8]> {
    apart(|| vec![1; 4000].into_boxed_slice())
}

/// The bytes of all mappings with the huge page advice, and how many of them are readable and writable.
/// `None` if the kernel does not support huge pages.
fn bytes_advised_huge() -> Option<(usize, usize)> {
    fs::metadata("/sys/kernel/mm/transparent_hugepage").ok()?;
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut size, mut usable, mut asked) = (0, false, (0, 0));
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Size:") => size = words.next()?.parse::<usize>().ok()? << 10,
            Some("VmFlags:") if words.any(|flag| flag == "hg") => {
                asked.0 += size;
                asked.1 += if usable { size } else { 0 };
            }
            Some(word) if !word.ends_with(':') => usable = words.next() == Some("rw-p"),
            _ => {}
        }
    }
    Some(asked)
}

#[test]
fn the_used_part_of_a_large_region_may_be_huge() {
    let mut pages: Vec<_> = (0..60 * MIB / 4096).map(|_| page()).collect();
    let Some((asked, _)) = bytes_advised_huge() else { return };
    assert_eq!(asked, 0, "a small one, of {} bytes", taken_bytes());

    pages.extend((0..40 * MIB / 4096).map(|_| page()));
    let (asked, _) = bytes_advised_huge().expect("as before");
    let taken = taken_bytes();
    assert!(asked < taken && asked + 4 * MIB >= taken, "{asked} asked of {taken}");
    assert_eq!(asked % (2 * MIB), 0, "whole ones");

    use_huge_pages();
    // Until the last huge page is only partly used.
    pages.extend((0..2 * MIB / 4096).map(|_| page()));
    while taken_bytes().is_multiple_of(2 * MIB) {
        pages.push(page());
    }
    let (asked, usable) = bytes_advised_huge().expect("as before");
    assert!(asked >= taken_bytes(), "{asked} asked of {}", taken_bytes());
    assert!(usable >= taken_bytes() && usable % (2 * MIB) == 0, "{usable} usable");
    assert!(pages.iter().all(|page| page.iter().all(|byte| *byte == 1)));
}
