//! What pages take of the machine's memory is what the store counts for them, and hardly more: what it takes to
//! make a page leaves no holes between those that stay; and it is given back when they go.
//!
//! The real binary before an origin, 16 requests at a time. Memory as the kernel counts it: what the machine does
//! beside makes no difference.

use acceptance::{binary, counter, until};
use harness::{Address, Load, Pagewell, LoadEnd, page_origin};
use std::ops::Range;

/// Of a length that two of fit into what the largest thing takes that comes and goes, with a remainder.
const CONTENT_BYTES: usize = 2042;
/// After these all is there that there is once: threads, connections, what is remembered of renders.
const FIRST: Range<usize> = 0..4_000;
const THEN: Range<usize> = 4_000..40_000;
/// What may be resident beyond what is counted. It was a fifth of all when pages were where all else is.
const BEYOND_PERCENT: u64 = 10;

fn fill(pagewell: &Pagewell, pages: Range<usize>) {
    let Address::Tcp(address) = *pagewell.address() else { panic!("an address of TCP") };
    let mut load = Load::new(address, "/", 16, LoadEnd::Requests(pages.len() as u64));
    load.targets = pages.map(|page| format!("/n/{page}/")).collect();
    let report = load.run().expect("the load runs");
    assert_eq!((report.failures, report.unexpected), (0, 0));
}

/// Resident, and counted by the store.
fn memory(pagewell: &Pagewell) -> (u64, u64) {
    (pagewell.rss_bytes(), counter(pagewell, "memory_bytes"))
}

#[test]
fn what_is_resident_is_what_is_counted_and_hardly_more() {
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
