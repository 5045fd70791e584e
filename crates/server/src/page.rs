//! What the store keeps of a page: the stored response and its content.

use bytes::Bytes;
use http_cache::Stored;
use page_store::{Dependencies, Page, Payload, Store};

/// A page in the store.
pub struct StoredPage {
    /// Status, header lines, tags, and what reuse needs.
    pub stored: Stored,
    /// The content, complete, in an allocation of its own.
    pub content: Bytes,
}

impl Payload for StoredPage {
    fn bytes(&self) -> usize {
        self.stored.heap_bytes() + self.content.len()
    }
}

/// What a page at `path_and_query` with this stored response depends on.
pub fn dependencies(
    stored: &Stored,
    store: &Store<StoredPage>,
    site: page_store::Site,
    path_and_query: &str,
) -> Dependencies {
    let mut dependencies = store.dependencies(site, path_and_query.as_bytes());
    for tag in stored.tags.iter() {
        dependencies.tag(tag);
    }
    dependencies
}

/// The number by which the store tells the variants of a page apart.
pub fn variant(stored: &Stored) -> u64 {
    if stored.nominated.is_empty() {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64(&stored.nominated.variant_key())
}

/// A page as the store hands it out.
pub type SharedPage = std::sync::Arc<Page<StoredPage>>;
