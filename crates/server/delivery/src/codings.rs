//! Compressed forms of responses. For a cached page or file they are made once, outside of the requests
//! that hit it. Other responses are compressed while they are sent.
//!
//! | response | when | how |
//! |---|---|---|
//! | a cached page | when a second client that accepts compression requests it | every configured coding, at the levels in `make` |
//! | a page fetched in the background, or in place of one with compressed forms | after it was stored | the same |
//! | a small file | after it was read | the same |
//! | a page for its first client, or a response that is not stored | while it is sent | gzip, at the fastest level |
//!
//! Invariants: one low-priority thread compresses cached pages ([`Compressor`]). The queue keeps no
//! page in memory. A compressed form is kept only if it is at least a tenth smaller. Encoded content is
//! never encoded again. `http_cache::codings` decides which responses are compressed, and which coding
//! a request gets.

mod compressor;
mod streaming;

pub use compressor::Compressor;
pub use stored_pages::content_encoding::{make, make_for_file};
pub use streaming::encode_response;

use crate::coding_queue::{PLAIN_BYTES, Work};
use crate::site::Site;
use http_cache::codings::{choose, vary_on_accept_encoding};
use http_cache::{Forms, RequestFacts, StoredResponse};
use page_store::KeyBuf;
use std::path::PathBuf;
use std::sync::Arc;
use stored_pages::page::{IdentityContent, NewPage, ReadPage, SharedPage, StoredPage};
use telemetry::phase::{Phase, PhaseWatch};

/// Content longer than this, in bytes, is also cached uncompressed, because decompressing it would take
/// too long.
const UNDONE_BYTES: usize = 4 << 20;

/// Decides whether `stored`, which has `length` bytes of content, will be sent in compressed forms. If
/// so, it adds `Accept-Encoding` to `Vary`, so that already the first response has it.
pub fn prepare(site: &Site, stored: &mut StoredResponse, length: usize) {
    if stored.forms == Forms::Assembled {
        return;
    }
    let codings = &site.config.codings;
    let may = codings.codable.check(stored.status, &stored.headers, Some(length as u64));
    stored.forms = match may {
        Ok(()) if codings.are_made() => Forms::ByCoding,
        _ => Forms::One,
    };
    if stored.forms == Forms::ByCoding {
        vary_on_accept_encoding(&mut stored.headers);
    }
}

/// How likely another request for a page is that was just stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Likely: the page replaces one that had compressed forms, or was fetched in the background.
    Again,
    /// Unknown: one client has requested it so far.
    Once,
}

/// Queues a page that was just stored for compression, if it is to be compressed, has no compressed
/// form yet, and [will be requested again](Demand). For other pages see [`wanted`].
pub fn have_made(site: &Site, page: &SharedPage, asked: Demand) {
    if asked == Demand::Again && lacks_codings(page.payload()) && page.payload().claim_coding() {
        put(site, page);
    }
}

/// Queues a page whose turn has been taken. If the queue is full, the turn is given back for a later
/// attempt.
fn put(site: &Site, page: &SharedPage) {
    if !site.coding_queue.put(Work::page(page)) {
        page.payload().release_coding();
        site.counters.codings_skipped.add();
    }
}

/// Called when a cached page is sent uncompressed: queues it if the client would accept a compressed
/// form. A page that is requested only once is never compressed; on a large site these are most pages.
pub fn wanted(site: &Site, facts: &RequestFacts<'_>, page: &SharedPage) {
    let Some(accepted) = facts.accept_encoding.get() else { return };
    let payload = page.payload();
    if payload.has_turn() || !lacks_codings(payload) || accepted == [b"identity"] {
        return;
    }
    if choose(accepted, &site.config.codings.make).is_some() && payload.claim_coding() {
        put(site, page);
    }
}

fn lacks_codings(page: &StoredPage) -> bool {
    page.stored.forms == Forms::ByCoding && page.forms().codings().is_empty()
}

/// Queues `work`, or counts it as skipped if the queue is full.
pub fn note(site: &Site, work: Work) {
    if !site.coding_queue.put(work) {
        site.counters.codings_skipped.add();
    }
}

/// Compresses queued pages and files, one at a time, until shutdown.
pub async fn run(site: Arc<Site>, compressor: Arc<Compressor>, mut stop: PhaseWatch) {
    // The compressor's turn count after the last work, until the compressor was asked to rest; then
    // `None`.
    let mut used = None;
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = site.coding_queue.added.notified() => {}
            () = tokio::time::sleep(compressor::IDLE), if used.is_some() => {
                used.take().into_iter().for_each(|turns| compressor.rest(turns));
                continue;
            }
        }
        while let Some(work) = site.coding_queue.take() {
            match work {
                Work::Page(key, variant) => match waiting(&site, &key, variant) {
                    Some(page) => code_page(&site, &compressor, page).await,
                    None => continue,
                },
                Work::File(path) => code_file(&site, path).await,
            }
            if stop.borrow().is_leaving() {
                return;
            }
        }
        used = Some(compressor.turns());
    }
}

/// The queued page, if it is still stored and uncompressed.
fn waiting(site: &Site, key: &KeyBuf, variant: u32) -> Option<SharedPage> {
    let found = site.store.peek(key.as_key());
    let waits = |page: &&SharedPage| {
        let payload = page.payload();
        page.variant() == variant && payload.has_turn() && lacks_codings(payload)
    };
    found.iter().find(waits).cloned()
}

async fn code_file(site: &Arc<Site>, path: PathBuf) {
    let site = site.clone();
    let coded = tokio::task::spawn_blocking(move || {
        let Some((_, files)) = site.files.as_deref() else { return };
        if let Err(error) = files.code(&site, &path) {
            tracing::debug!(event = "not-coded", reason = "file", path = %path.display(), %error);
        }
    });
    // A panic has been logged; the file stays uncompressed.
    let _ = coded.await;
}

/// Compresses a page in the low-priority thread. The result is stored from here, at normal priority,
/// because storing takes a lock that requests wait for.
async fn code_page(site: &Arc<Site>, compressor: &Compressor, page: SharedPage) {
    let made = compressor.make(page.clone(), &site.config.codings.make).await;
    if made.is_empty() {
        return;
    }
    // Allocated here, so that the serving threads' heaps can reuse the memory that purged pages have
    // freed.
    let coded = shared_page(
        NewPage::with_forms(page.response(), page.content(), made)
            .with_reads(page.payload().reads().cloned()),
    );
    match coded.put(|new| site.store.replace_payload(&page, new)) {
        Ok(_) => site.counters.coded.add(),
        // The page was purged or refreshed, or is about to be.
        Err(reason) => tracing::debug!(event = "not-coded", reason = reason.as_str()),
    }
}

/// Caches the content of a long page uncompressed as well, after a request for it. This is done only
/// while a quarter of the memory remains free. Otherwise each such request decompresses a compressed
/// form.
pub fn keep_plain(site: &Site, page: &SharedPage) {
    if page.plain().content().is_some() {
        return;
    }
    let memory = site.config.memory_bytes;
    let length = page.length();
    if site.store.stats().bytes.total() + length > memory - memory / 4 {
        return;
    }
    let plain = IdentityContent::Kept(page.content());
    let both = NewPage::restored(page.response(), plain, page.payload().forms().contents())
        .with_reads(page.payload().reads().cloned());
    if let Err(reason) = both.put(|new| site.store.replace_payload(page, new)) {
        tracing::debug!(event = "plain-not-kept", reason = reason.as_str());
    }
}

/// The page as it is cached. If its length is above [`PLAIN_BYTES`] and at most `UNDONE_BYTES`, and it
/// has compressed forms, the uncompressed content is removed.
pub fn shared_page(page: NewPage) -> NewPage {
    match page.length() {
        bytes if bytes <= PLAIN_BYTES || bytes > UNDONE_BYTES => page,
        _ => page.without_plain(),
    }
}
