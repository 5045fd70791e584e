//! Content in codings: made once for a page or a file that is kept, off the path of a hit, and then sent
//! to everybody who accepts it; made while it is sent for what is not kept.
//!
//! | what | when | how |
//! |---|---|---|
//! | a page in the store | when a second visitor asks for it who accepts one, in its turn, one at a time | each configured coding, with care |
//! | a page rendered anew in the place of one that had codings, or by itself | after it was stored, likewise | likewise |
//! | a small file | after it was read, likewise | likewise |
//! | a page for the one who asked, before its codings are made; a response that is not stored | while it is sent | gzip, quickly |
//!
//! Invariants: at most one set of compressor tables is in use for pages that are kept (a few MiB at most), by a
//! thread that gives way to all others ([`Compressor`]); what waits holds no content (a page that goes meanwhile
//! is freed); a form is kept only if it is smaller by a tenth; nothing that is encoded already is encoded
//! again. Which response may be coded, and in which coding a request is answered, is decided in
//! `http_cache::codings`.

mod compressor;
mod make;
mod on_the_way;
mod understand;

pub use compressor::Compressor;
pub use make::{make, make_for_file};
pub use on_the_way::{OnTheWay, on_the_way};
pub use understand::{Understanding, may_be_understood, whole};

use crate::page::{NewPage, Plain, ReadPage, SharedPage, StoredPage};
use crate::phase::{Phase, Told};
use crate::site::Site;
use http_cache::codings::{choose, vary_on_accept_encoding};
use http_cache::{Forms, RequestFacts, StoredResponse};
use page_store::KeyBuf;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Content longer than this is kept in its codings only: few ask for it in none.
pub const PLAIN_BYTES: usize = 64 << 10;
/// Content longer than this is kept as it came, too: to undo its coding would take too long.
const UNDONE_BYTES: usize = 4 << 20;

/// Something whose codings are to be made: without holding on to it.
pub enum Work {
    /// The page of this key and variant that has its turn.
    Page(KeyBuf, u32),
    /// The file at this path.
    File(PathBuf),
}

impl Work {
    fn page(page: &SharedPage) -> Work {
        Work::Page(page.key().to_buf(), page.variant())
    }
}

/// What waits for its codings.
pub struct Queue {
    /// Guards the list only; never held while anything is compressed.
    waiting: Mutex<VecDeque<Work>>,
    told: Notify,
    most: usize,
}

impl Queue {
    /// An empty queue with so many places.
    pub fn new(most: usize) -> Queue {
        Queue { waiting: Mutex::default(), told: Notify::new(), most }
    }

    /// Puts `work` in, unless there is no place.
    fn put(&self, work: Work) -> Queued {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.most {
            return Queued::Full;
        }
        waiting.push_back(work);
        drop(waiting);
        self.told.notify_one();
        Queued::Waits
    }

    fn take(&self) -> Option<Work> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Whether there was a place in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queued {
    Waits,
    Full,
}

/// Notes in a response that is about to be stored with `length` bytes of content whether it will be
/// sent in codings: then its `Vary` says so from the first time it is sent.
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

/// Whether a page that was just stored is sure to be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It stands in the place of one that had codings, or was rendered for nobody in particular: it is
    /// one of those that are read.
    Again,
    /// By one visitor so far.
    Once,
}

/// Has the codings of a page made that was just stored, if it is to be sent in any, has none yet and is
/// [asked for again](Asked). Others wait until they are: see [`wanted`].
pub fn have_made(site: &Site, page: &SharedPage, asked: Asked) {
    if asked == Asked::Again && lacks_codings(page.payload()) && page.payload().take_turn() {
        put(site, page);
    }
}

/// Puts a page in the queue, whose turn it has taken; where there is no room it gets another one.
fn put(site: &Site, page: &SharedPage) {
    if site.coding_queue.put(Work::page(page)) == Queued::Full {
        page.payload().give_turn_back();
        site.counters.codings_skipped.add();
    }
}

/// A page answers a request without a coding, although it has been stored for a while: if it is for want of
/// one, they are made. A page that is asked for once is never coded, and of a large site most are.
pub fn wanted(site: &Site, facts: &RequestFacts<'_>, page: &SharedPage) {
    let Some(accepted) = facts.accept_encoding.get() else { return };
    let payload = page.payload();
    if payload.has_turn() || !lacks_codings(payload) || accepted == [b"identity"] {
        return;
    }
    if choose(accepted, &site.config.codings.make).is_some() && payload.take_turn() {
        put(site, page);
    }
}

fn lacks_codings(page: &StoredPage) -> bool {
    page.stored.forms == Forms::ByCoding && page.forms().codings().is_empty()
}

/// Puts `work` in the queue, if there is room.
pub fn note(site: &Site, work: Work) {
    if site.coding_queue.put(work) == Queued::Full {
        site.counters.codings_skipped.add();
    }
}

/// Makes codings, one page after the other, until Pagewell stops.
pub async fn run(site: Arc<Site>, compressor: Arc<Compressor>, mut stop: Told) {
    // Whether pages were coded since the compressor has rested, and its turns then.
    let mut used = None;
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = site.coding_queue.told.notified() => {}
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

/// The page that waits for its codings, if it is there still.
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
        let Some((_, files)) = &site.files else { return };
        if let Err(error) = files.code(&site, &path) {
            tracing::debug!(event = "not-coded", reason = "file", path = %path.display(), %error);
        }
    });
    // A panic has been logged; the file stays as it is.
    let _ = coded.await;
}

/// Has a page compressed, by a thread that gives way to all others: nobody waits for it. What it has made is
/// put in the store here, at the priority of those who serve: there is a lock to be taken for that.
async fn code_page(site: &Arc<Site>, compressor: &Compressor, page: SharedPage) {
    let made = compressor.make(page.clone(), &site.config.codings.make).await;
    if made.is_empty() {
        return;
    }
    // Laid out here: what pages took before is free in the heaps of the threads that serve, and used again.
    let coded = as_kept(NewPage::with_forms(page.response(), page.content(), made));
    match coded.put(|new| site.store.replace_payload(&page, new)) {
        Ok(_) => site.counters.coded.add(),
        // It was dropped, or rendered anew, or is about to be.
        Err(reason) => tracing::debug!(event = "not-coded", reason = reason.as_str()),
    }
}

/// Keeps the content of a long page as it came, too, now that somebody has asked for it so: where a
/// quarter of the memory is left for it. Otherwise each who asks has it made again out of a coding.
pub fn keep_plain(site: &Site, page: &SharedPage) {
    if page.plain().content().is_some() {
        return;
    }
    let memory = site.config.memory_bytes;
    let length = page.length();
    if site.store.stats().bytes.total() + length > memory - memory / 4 {
        return;
    }
    let plain = Plain::Kept(page.content());
    let both = NewPage::restored(page.response(), plain, page.payload().forms().contents());
    if let Err(reason) = both.put(|new| site.store.replace_payload(page, new)) {
        tracing::debug!(event = "plain-not-kept", reason = reason.as_str());
    }
}

/// A page as it is kept: where it is long and has codings, they are enough.
pub fn as_kept(page: NewPage) -> NewPage {
    match page.length() {
        bytes if bytes <= PLAIN_BYTES || bytes > UNDONE_BYTES => page,
        _ => page.without_plain(),
    }
}
