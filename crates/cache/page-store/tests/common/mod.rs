//! Shared by the tests: a payload that records the version of its data, and short forms of calls.
//!
//! Nothing here checks anything: the tests do.

#![allow(dead_code)]

use page_store::{
    AppliedChange, Change, ChangeTarget, Dependencies, Lease, Limits, NotStored, Page, Payload,
    Site, Store, StoreRefusal, Strength,
};

/// The site of most tests.
pub const SITE: Site = Site(1);

/// A payload that claims to own `bytes` of heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestPayload {
    /// The version of the data from which it was rendered.
    pub from: u64,
    /// The heap bytes that it claims to own.
    pub bytes: usize,
}

impl Payload for TestPayload {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A store large enough to evict nothing.
pub fn roomy() -> Store<TestPayload> {
    Store::with_seed(Limits::new(1 << 30), 1)
}

/// The dependencies of `url` with these tags.
pub fn depends(store: &Store<TestPayload>, url: &str, tags: &[&str]) -> Dependencies {
    let mut dependencies = store.dependencies(SITE, url.as_bytes());
    for tag in tags {
        dependencies.tag(tag.as_bytes());
    }
    dependencies
}

/// Stores a small page of variant 0 at `url`, with its URL as the key.
pub fn put(
    store: &Store<TestPayload>,
    url: &str,
    tags: &[&str],
    lease: &Lease,
) -> Result<Page<TestPayload>, StoreRefusal> {
    put_made(store, url, 0, tags, lease, TestPayload { from: 0, bytes: 100 })
        .map_err(|refused| refused.reason)
}

/// Stores a page.
pub fn put_made(
    store: &Store<TestPayload>,
    url: &str,
    variant: u32,
    tags: &[&str],
    lease: &Lease,
    made: TestPayload,
) -> Result<Page<TestPayload>, NotStored<TestPayload>> {
    let dependencies = depends(store, url, tags);
    store.insert(store.key(url.as_bytes()), variant, &dependencies, lease, made)
}

/// Whether a page is stored at `url`.
pub fn has(store: &Store<TestPayload>, url: &str) -> bool {
    count(store, url) > 0
}

/// The number of variants stored at `url`.
pub fn count(store: &Store<TestPayload>, url: &str) -> usize {
    store.candidates(store.key(url.as_bytes())).iter().count()
}

/// Drops the pages that depend on `target`.
pub fn drop_all(store: &Store<TestPayload>, target: ChangeTarget<'_>) -> AppliedChange {
    store.change(&Change { site: SITE, targets: &[target] }, Strength::Drop)
}

/// A tag as a target.
pub fn tag(name: &str) -> ChangeTarget<'_> {
    ChangeTarget::Tag(name.as_bytes())
}
