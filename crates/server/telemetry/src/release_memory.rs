//! Returns unused memory to the system: see docs/decisions/page-memory.md. This needs
//! `unsafe`, which this module contains and nothing else.
//!
//! - **Code** that runs only at the start (command line, configuration, php-fpm, expressions). After
//!   the start, file-backed pages that are unchanged are released. Code that runs again is mapped again
//!   page by page from the page cache.
//! - **Long buffers.** Buffers and content of megabytes return to the system when they are freed. By
//!   default glibc raises its threshold for that at the first such free. Later blocks of that size then
//!   stay in the heap and become fragmented.
//! - **After a load peak.** Thousands of concurrent requests need buffers and connection states. glibc
//!   returns only the memory at the end of its heap, so the memory between blocks in use would stay
//!   resident.

use rustix::mm::{Advice, madvise};
use std::ops::Range;

/// Returns the free memory of the system's allocator to the system, in whole pages, wherever it is.
/// Threads that allocate wait meanwhile, 1–2 µs per free range, and a thousand connections leave some
/// thousand ranges. So this is called when there is little load. Plain hits do not allocate, and pages
/// have a heap of their own.
pub fn heap() {
    #[cfg(target_env = "gnu")]
    {
        #[allow(unsafe_code)]
        unsafe extern "C" {
            /// See malloc_trim(3).
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        malloc_trim(0);
    }
}

/// Makes allocations longer than [`page_heap::LONGEST_BYTES`] return to the system as soon as they are
/// freed. Shorter ones stay in the heap, which keeps at most twice that length free at its end.
pub fn long_at_once() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        const M_TRIM_THRESHOLD: c_int = -1;
        const M_MMAP_THRESHOLD: c_int = -3;
        const LONGEST: c_int = page_heap::LONGEST_BYTES as c_int;
        #[allow(unsafe_code)]
        unsafe extern "C" {
            /// See mallopt(3).
            safe fn mallopt(param: c_int, value: c_int) -> c_int;
        }
        mallopt(M_MMAP_THRESHOLD, LONGEST);
        mallopt(M_TRIM_THRESHOLD, 2 * LONGEST);
    }
}

/// Releases the pages of the program and its libraries that are identical to their files. Does nothing
/// if the system does not report which pages those are.
pub fn code() {
    let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for addresses in as_in_files(&mappings) {
        let start = std::ptr::with_exposed_provenance_mut(addresses.start);
        #[allow(unsafe_code)]
        // SAFETY: the mapping is file-backed and read-only, and no page differs from the file. A later
        // read or execution gets the same bytes. The mapping still exists: the program loads no
        // libraries at run time, so it unloads none.
        let _ = unsafe { madvise(start, addresses.len(), Advice::LinuxDontNeed) };
    }
}

/// The read-only, file-backed mappings without private pages, from the text of `/proc/self/smaps`
/// (proc_pid_smaps(5)).
fn as_in_files(smaps: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(addresses) = read_only(line) {
            current = addresses;
        } else if line.split_whitespace().eq(["Anonymous:", "0", "kB"]) {
            found.extend(current.take());
        }
    }
    found
}

/// Parses the first line of a mapping. The inner value is its address range, or `None` if it is
/// writable or not file-backed. The outer value is `None` for any other line.
fn read_only(line: &str) -> Option<Option<Range<usize>>> {
    let mut words = line.split_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let addresses = address(from)?..address(to)?;
    let is_read_only = matches!(words.next()?, "r-xp" | "r--p");
    let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    Some((is_read_only && is_file).then_some(addresses))
}

#[cfg(test)]
mod tests {
    use super::{as_in_files, code};

    const SMAPS: &str = "\
1000-3000 r--p 00000000 08:01 42    /usr/bin/pagewell\nRss: 8 kB\nAnonymous:             0 kB\n\
3000-9000 r-xp 00002000 08:01 42    /usr/bin/pagewell\nRss: 8 kB\nAnonymous:             0 kB\n\
9000-a000 r--p 00008000 08:01 42    /usr/bin/pagewell\nRss: 4 kB\nAnonymous:             4 kB\n\
a000-b000 rw-p 00009000 08:01 42    /usr/bin/pagewell\nAnonymous:             0 kB\n\
b000-c000 r--s 00000000 08:01 43    /usr/lib/shared\nAnonymous:             0 kB\n\
d000-e000 r--p 00000000 00:00 0     [vvar]\nAnonymous:             0 kB\n\
e000-f000 r-xp 00000000 00:00 0\nAnonymous:             0 kB\n";

    #[test]
    fn only_unmodified_file_mappings_are_listed() {
        assert_eq!(as_in_files(SMAPS), [0x1000..0x3000, 0x3000..0x9000]);
        assert!(as_in_files("no line\n-\nzz-11 r-xp\n").is_empty());
    }

    #[test]
    fn released_memory_is_not_resident() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("RssFile:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let before = resident();
        code();
        assert!(resident() < before, "{before} kB, and now {}", resident());
    }
}
