//! Memory that was needed once and is not any more, and that nobody else would let go of: see
//! docs/decisions/0069-what-is-let-go-of.md. To let go of memory needs `unsafe`, which is here, and nothing else.
//!
//! - **Code** that the start alone runs: reading the command line and the configuration, finding php-fpm, building
//!   expressions. When all is started the process lets go of what is as it is in its files; what is run after that
//!   comes back, page by page, from where the system has the file in memory anyway.
//! - **What was long.** The buffers and the content of a page of megabytes go back to the system when they are
//!   freed. The system's allocator learns, from the first that goes, to keep places as long as that for the next
//!   one; others settle in them, and what was needed once stays resident.
//! - **What a crowd left behind.** Thousands of connections that ask for pages at the same moment need buffers and
//!   states, which are freed when their clients rest. The system's allocator gives back what lies at the end of its
//!   heap alone: what lies between things that are still in use stays with the process.

use rustix::mm::{Advice, madvise};
use std::ops::Range;

/// Gives what is free in the system's allocator back to the system, whole pages, wherever they lie. Others that
/// allocate wait meanwhile, a microsecond or two for each place, of which a thousand connections leave some
/// thousand: for when it is quiet. Hits do not allocate, and pages have a heap of their own.
pub fn heap() {
    #[cfg(target_env = "gnu")]
    {
        #[allow(unsafe_code)]
        unsafe extern "C" {
            /// malloc_trim(3).
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        malloc_trim(0);
    }
}

/// From now on what is longer than [`page_heap::LONGEST_BYTES`] is the system's own as soon as it is freed; what is
/// shorter stays in the heap, which keeps at most twice as much free at its end.
pub fn long_at_once() {
    #[cfg(target_env = "gnu")]
    {
        use std::ffi::c_int;
        const M_TRIM_THRESHOLD: c_int = -1;
        const M_MMAP_THRESHOLD: c_int = -3;
        const LONGEST: c_int = page_heap::LONGEST_BYTES as c_int;
        #[allow(unsafe_code)]
        unsafe extern "C" {
            /// mallopt(3).
            safe fn mallopt(param: c_int, value: c_int) -> c_int;
        }
        mallopt(M_MMAP_THRESHOLD, LONGEST);
        mallopt(M_TRIM_THRESHOLD, 2 * LONGEST);
    }
}

/// Lets go of the pages of the program and its libraries that are as they are in their files. Does nothing where
/// the system does not say which those are.
pub fn code() {
    let mappings = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for addresses in as_in_files(&mappings) {
        let start = std::ptr::with_exposed_provenance_mut(addresses.start);
        #[allow(unsafe_code)]
        // SAFETY: a mapping of a file that cannot be written to, and has no page that differs from the file: whoever
        // reads there next, or runs what is there, is given the same bytes. It is there still: the program loads no
        // libraries, so it unloads none.
        let _ = unsafe { madvise(start, addresses.len(), Advice::LinuxDontNeed) };
    }
}

/// The mappings that cannot be written to, are of a file, and have nothing of their own (proc_pid_smaps(5)).
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

/// The first line of a mapping: its addresses, or none where it is of no file or can be written to; `None` for
/// any other line.
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
    fn only_what_is_as_in_its_file() {
        assert_eq!(as_in_files(SMAPS), [0x1000..0x3000, 0x3000..0x9000]);
        assert!(as_in_files("no line\n-\nzz-11 r-xp\n").is_empty());
    }

    #[test]
    fn what_is_let_go_of_is_not_resident() {
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
