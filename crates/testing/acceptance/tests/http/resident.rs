//! The memory that pages use is hardly more than the store counts for them. Rendering a page leaves no holes
//! between the pages that stay, and memory is returned to the system when pages are removed.
//!
//! The real binary in front of an origin, 16 concurrent requests. Memory is read from the kernel per process,
//! so other load on the machine makes no difference.

use acceptance::{binary, counter, until};
use harness::{Address, Load, LoadEnd, Pagewell, page_origin};
use std::ops::Range;

/// A length such that two pages fit into the largest temporary allocation, with a remainder.
const CONTENT_BYTES: usize = 2042;
/// After these pages all one-time allocations exist: threads, connections, the history of renders.
const FIRST: Range<usize> = 0..4_000;
const THEN: Range<usize> = 4_000..40_000;
/// The allowed resident memory beyond the counted memory, in percent. It was 20 % when pages were allocated in
/// the general heap.
const BEYOND_PERCENT: u64 = 10;

fn fill(pagewell: &Pagewell, pages: Range<usize>) {
    let Address::Tcp(address) = *pagewell.address() else { panic!("an address of TCP") };
    let mut load = Load::new(address, "/", 16, LoadEnd::Requests(pages.len() as u64));
    load.targets = pages.map(|page| format!("/n/{page}/")).collect();
    let report = load.run().expect("the load runs");
    assert_eq!((report.failures, report.unexpected), (0, 0));
}

/// The resident memory of the process, and the memory counted by the store, in bytes.
fn memory(pagewell: &Pagewell) -> (u64, u64) {
    (pagewell.rss_bytes(), counter(pagewell, "memory_bytes"))
}

#[test]
fn resident_memory_is_hardly_more_than_the_counted_memory() {
    let origin = format!("http://{}", page_origin(CONTENT_BYTES).expect("an origin"));
    let args = ["--origin", &origin, "--memory", "1G", "--log", "warn"];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    fill(&pagewell, FIRST);
    let (resident, counted) = memory(&pagewell);
    fill(&pagewell, THEN);
    let full = memory(&pagewell);
    let (more, counted_more) = (full.0 - resident, full.1 - counted);
    println!("{more} resident for {counted_more} counted");
    assert!(counted_more >= (CONTENT_BYTES * THEN.len()) as u64, "the pages are stored");
    assert!(
        more <= counted_more + counted_more * BEYOND_PERCENT / 100,
        "{more} bytes are resident for {counted_more} that are counted"
    );

    pagewell.invalidate(r#"{"all":true}"#).expect("the control interface answers");
    let half = resident + more / 2;
    until("memory is given back", || pagewell.rss_bytes() < half);
}
