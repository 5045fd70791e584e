//! Shared by the tests: stored responses made by `http_cache`, snapshots of them, and a function that reads
//! a whole snapshot.

#![allow(dead_code)]

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_cache::codings::Coding;
use http_cache::validators::own_etag;
use http_cache::{Forms, Policy, RequestFacts, StoredResponse, Timestamp, storable};
use page_snapshot::{
    Content, End, Head, PageStatements, Piece, Position, Reader, SavedPage, SnapshotError, Writer,
};

/// A stored response with these header fields; `None` if it may not be stored.
pub fn stored(lines: &[(&str, &str)]) -> Option<StoredResponse> {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    let mut request = HeaderMap::new();
    request.insert("accept-language", HeaderValue::from_static("de, en"));
    request.insert("cookie", HeaderValue::from_static("a=1"));
    let asked = request.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    let facts = RequestFacts::read(&http::Method::GET, asked);
    let policy = Policy::default();
    let (asked, came) = (Timestamp(1_000_000_000_000), Timestamp(1_000_000_000_250));
    let status = StatusCode::OK;
    storable(&facts, &request, status, &headers, asked, came, &policy).ok()
}

/// A typical page.
pub fn usual() -> StoredResponse {
    let mut stored = stored(&[
        ("content-type", "text/html"),
        ("cache-control", "max-age=60, stale-while-revalidate=5, no-cache=\"x-secret\""),
        ("cache-groups", "\"news\", \"news:4\""),
        ("vary", "accept-language"),
        ("last-modified", "Sat, 08 Sep 2001 01:46:40 GMT"),
        ("surrogate-control", "max-age=120"),
    ])
    .expect("it may be stored");
    stored.set_content_length(Some(5));
    stored.forms = Forms::ByCoding;
    stored.set_own_etag(own_etag(7));
    stored
}

/// A record of a page with this key and response.
pub fn record<'a>(key: &'a str, stored: &StoredResponse) -> SavedPage<'a> {
    SavedPage {
        key: key.as_bytes(),
        worth: 5,
        marked_at_ms: Some(99),
        stored: stored.clone(),
        content: Content::Kept(b"hello"),
        forms: vec![(Coding::Zstd, b"zzz"), (Coding::Gzip, b"g")],
        statements: Some(PageStatements { is_timed: true, keys: vec![1 << 100, 7, 7] }),
    }
}

/// A head with one position.
pub fn head() -> Head {
    let position = Position { source: b"mariadb 1".to_vec(), at: b"0-1-100".to_vec() };
    let (begun_ms, print, tables) = (1_000_000_000_000, 1 << 100, Some(1 << 99));
    Head { generation: 7, begun_ms, print, tables, positions: vec![position] }
}

/// A snapshot of as many statements and pages, each page with `bytes` bytes of content.
pub fn snapshot(pages: usize, bytes: usize) -> Vec<u8> {
    let stored = usual();
    let content = vec![b'x'; bytes];
    let mut writer = Writer::new(&head(), 42);
    let mut all = Vec::new();
    for n in 0..pages {
        writer.statement(n as u128, &content);
    }
    for n in 0..pages {
        let key = format!("http://a/{n}");
        let page = SavedPage { content: Content::Kept(&content), ..record(&key, &stored) };
        writer.page(&page);
        if n % 7 == 0 {
            writer.take(|bytes| all.extend_from_slice(bytes));
        }
    }
    writer.end();
    writer.take(|bytes| all.extend_from_slice(bytes)).expect("it is complete");
    all
}

/// The contents of a snapshot that was read.
#[derive(Debug, Default)]
pub struct ReadSnapshot {
    /// The head.
    pub head: Option<Head>,
    /// The keys of the statements.
    pub statements: Vec<u128>,
    /// The keys of the pages.
    pub keys: Vec<String>,
    /// The end.
    pub end: Option<End>,
}

/// Reads a snapshot with all its pages to its end.
pub fn read(mut bytes: &[u8]) -> Result<ReadSnapshot, SnapshotError> {
    let (mut reader, mut seen) = (Reader::default(), ReadSnapshot::default());
    while let Some(count) = reader.wants() {
        let (taken, rest) = bytes.split_at_checked(count).ok_or(SnapshotError::CutOff)?;
        bytes = rest;
        match reader.read(taken)? {
            Piece::Part => {}
            Piece::Head(head) => seen.head = Some(head),
            Piece::Statements(statements) => {
                for statement in statements.iter() {
                    seen.statements.push(statement?.0);
                }
            }
            Piece::Pages(pages) => {
                for page in pages.iter() {
                    seen.keys.push(String::from_utf8_lossy(page?.key).into_owned());
                }
            }
            Piece::End(end) => seen.end = Some(end),
        }
    }
    Ok(seen)
}
