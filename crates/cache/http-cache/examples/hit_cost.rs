//! Measures the decision on a hit: a browser's request with one fresh stored response, repeated as often as
//! the argument says (default 1,000,000). Run it under an instruction counter, twice with different
//! arguments, and divide the difference. It does not read a clock.

use http::{HeaderMap, Method, StatusCode, header};
use http_cache::{Candidate, Fields, Policy, RequestFacts, Timestamp, decide, storable};
use std::hint::black_box;

const BROWSER: &[(&[u8], &[u8])] = &[
    (b"Host", b"example.org"),
    (b"User-Agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    (b"Accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    (b"Accept-Language", b"en-US,en;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
    (b"Connection", b"keep-alive"),
    (b"Cookie", b"a=b; c=d"),
    (b"Upgrade-Insecure-Requests", b"1"),
    (b"Sec-Fetch-Mode", b"navigate"),
];

fn main() {
    let times = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000u64);
    let policy = Policy::default();
    let mut response = HeaderMap::new();
    response.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("max-age=600"));
    let fields: &dyn Fields = &BROWSER;
    let facts = RequestFacts::read(&Method::GET, BROWSER.iter().copied());
    let now = Timestamp::from_seconds(1_790_000_000);
    let stored = storable(&facts, fields, StatusCode::OK, &response, now, now, &policy)
        .expect("it declares a lifetime");
    for at in 0..times {
        let facts = RequestFacts::read(&Method::GET, black_box(BROWSER).iter().copied());
        let candidates = [Candidate { stored: &stored, marked: None }].into_iter();
        black_box(decide(&facts, fields, candidates, &policy, now.plus(at % 1000)));
    }
    println!("{times} decisions");
}
