//! Compares the page sizes that the store counts with the real heap: the store must not count less than the
//! pages take, and hardly more.
//!
//! Pages are built like responses of an origin: every field value is a slice of a buffer read from the
//! connection, and no page may keep such a buffer alive. The history that explains pages is separate and has
//! its own limit. There is only one test, because the allocator counts for the whole process.

use bytes::Bytes;
use counting_allocator::{Counting, held_bytes};
use history::memory::entries_for;
use history::{Content, History, RenderRecord, StoreOutcome};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_cache::codings::Coding;
use http_cache::{Policy, RequestFacts, StoredResponse, Timestamp, storable};
use page_store::{Limits, Site, Store};
use request_values::target::TargetUri;
use stored_pages::page::{NewPage, StoredPage, dependencies};

const PAGES: usize = 4000;
const READ_BYTES: usize = 8 << 10;
const CONTENT_BYTES: usize = 2042;
/// The memory of a page with a few fields, in addition to its content and header lines, including its URL.
const BEYOND_BYTES: usize = 312;

/// The memory for the history of a page that was stored and not purged.
const REMEMBERED_BYTES: usize = 80;

#[global_allocator]
static COUNTING: Counting = Counting;

/// The fields of a response, all of them slices of one buffer.
fn read(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    lines.iter().for_each(|(_, value)| buffer.extend_from_slice(value.as_bytes()));
    buffer.resize(READ_BYTES, b'x');
    let buffer = Bytes::from(buffer);
    let mut fields = HeaderMap::new();
    let mut from = 0;
    for (name, value) in lines {
        let to = from + value.len();
        let value = HeaderValue::from_maybe_shared(buffer.slice(from..to)).expect("a value");
        fields.append(HeaderName::from_static(name), value);
        from = to;
    }
    fields
}

fn stored(lines: &[(&'static str, &str)]) -> StoredResponse {
    let facts = RequestFacts::new(http_cache::Method::Get);
    let came = Timestamp::from_seconds(784_111_777);
    let policy = Policy::default();
    let fields = read(lines);
    storable(&facts, &HeaderMap::new(), StatusCode::OK, &fields, came, came, &policy)
        .expect("it may be stored")
}

/// Fills a store with pages of these fields. Returns the memory per page according to the allocator and to the
/// store.
fn page_of(lines: &[(&'static str, &str)], codings: &[Coding]) -> (usize, usize) {
    let store = Store::<StoredPage>::new(Limits::new(1 << 28));
    let site = Site::default();
    let (before, counted) = (held_bytes(), store.stats().bytes.total());
    let lease = store.lease();
    for n in 0..PAGES {
        let path = format!("/n/{n}/");
        let key = format!("http://example.org{path}");
        let stored = stored(lines);
        let content = |bytes: usize| Bytes::from(vec![b'x'; bytes].into_boxed_slice());
        let coded = codings.iter().map(|coding| (*coding, content(400))).collect();
        let made_from = dependencies(&stored, &store, site, &path);
        let page = NewPage::with_forms(stored, content(CONTENT_BYTES), coded);
        let key = store.key(key.as_bytes());
        page.put(|new| store.insert(key, 0, &made_from, &lease, new)).expect("no change");
    }
    let real = held_bytes() - before;
    (real / PAGES, (store.stats().bytes.total() - counted) / PAGES)
}

/// The history memory per page of a site with this page budget.
fn remembered_bytes(memory_bytes: usize) -> usize {
    let target = TargetUri::of_key(b"http://example.org/").expect("a key");
    let before = held_bytes();
    let why = History::new(memory_bytes, 0);
    let pages = entries_for(memory_bytes);
    for n in 0..2 * pages as u64 {
        why.rendered(RenderRecord {
            key: format!("http://example.org/n/{n}/").as_bytes(),
            target: &target,
            times: (n, n + 1),
            status: Some(200),
            cookies: Vec::new(),
            outcome: StoreOutcome::Stored(Content { variant: 0, hash: n }),
            refusal: None,
            visitor_cookies: Vec::new(),
            is_new: true,
        });
    }
    (held_bytes() - before) / pages
}

#[test]
fn pages_are_counted_with_their_memory() {
    let few = [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "max-age=36000"),
        ("etag", "\"0123456789abcdef\""),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    let tagged = [&few[..], &[("cache-groups", "\"news\", \"news:4\", \"comments\"")]].concat();
    let many = [
        &tagged[..],
        &[
            ("last-modified", "Sun, 06 Nov 1994 08:00:00 GMT"),
            ("vary", "accept-language"),
            ("surrogate-control", "max-age=600"),
            ("x-powered-by", "PHP/8.2"),
            ("content-language", "de"),
            ("link", "</style.css>; rel=preload; as=style"),
            ("x-frame-options", "SAMEORIGIN"),
        ],
    ]
    .concat();
    for (name, lines, codings) in [
        ("few", &few[..], &[][..]),
        ("tagged", &tagged, &[]),
        ("many", &many, &[]),
        ("coded", &few, &[Coding::Gzip, Coding::Brotli]),
    ] {
        let (real, counted) = page_of(lines, codings);
        println!("{name}: {real} bytes held, {counted} counted");
        assert!(real as f64 <= counted as f64 * 1.02, "{name}: {real} held, {counted} counted");
        assert!(counted as f64 <= real as f64 * 1.1, "{name}: {real} held, {counted} counted");
        if name == "few" {
            let lines: usize = lines.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
            let beyond = real - CONTENT_BYTES - lines;
            assert!(beyond <= BEYOND_BYTES, "{beyond} bytes beyond content and header lines");
        }
    }
    let remembered = remembered_bytes(1 << 30);
    println!("remembered: {remembered} bytes held");
    assert!(remembered <= REMEMBERED_BYTES, "{remembered} bytes are remembered of each page");
}
